/* SPDX-License-Identifier: Apache-2.0 */
/* V8's own table, and what its builtins are. The input is code and constants; the rest of the file is sound. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "elf_parts.h"
#include "flow/builtins.h"
#include "image/symbols.h"
#include "image/v8tab.h"
#include "isa/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct isa *isa, struct image *code, const struct v8tab_builtin *b)
{
	const struct symbol symbol = {
		.address = ELF_CODE + b->start, .size = b->size, .name = V8TAB_NUMBERED};
	enum builtin_kind kind = builtin_kind(code, isa, &symbol);
	uint64_t start, end;
	assert(kind == BUILTIN_NUMBERED || kind == BUILTIN_ENTRY || kind == BUILTIN_DIRECT_ENTRY);
	if (kind == BUILTIN_DIRECT_ENTRY)
		assert(builtin_direct_call(code, isa, &symbol, &start, &end) &&
		       start > symbol.address && end > start && end < symbol.address + b->size);
}

/* The bytes, as code that is in memory. */
static void look_at_all(const struct elf_part *text, const struct v8tab_builtin *all, size_t count)
{
	struct image *code = elf_code(EM_AARCH64, text->bytes, text->size, NULL, 0);
	for (size_t i = 0; i < count; i++) {
		look_at(&isa_aarch64, code, &all[i]);
		look_at(&isa_x86_64, code, &all[i]);
	}
	image_close(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {".text", ".rodata"};
	static const uint8_t exported[] = V8TAB_EXPORTED;
	struct elf_part parts[3] = {[2] = {".dynstr", exported, sizeof exported}};
	struct v8tab_builtin *all;
	if (!elf_cut(data, size, names, parts, 2))
		return 0;
	struct image *image = elf_open(parts, 3, "v8");
	size_t count = v8tab_read(image, &all);
	for (size_t i = 0; i < count; i++) {
		assert(all[i].size && all[i].start + all[i].size <= parts[0].size);
		assert(!i || all[i].start >= all[i - 1].start + all[i - 1].size);
	}
	if (count)
		look_at_all(&parts[0], all, count);
	free(all);
	image_close(image);
	return 0;
}
