/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builtins of V8 (node, Chromium): assembly that V8's own compiler made, put into the program
 * without unwind information. Its callers are code made at run time and others of its kind, and
 * all of them keep frame pointers; but they push and pop in ways that no analysis can follow (as
 * many arguments as a register says), and deoptimized code "returns" to the first instruction of
 * some of them.
 *
 * So wherever a builtin calls, its frame is taken by FP; elsewhere the analysis is believed, which
 * knows those that have no frame. The entries from and to C++ are left to the analysis altogether.
 */
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define PREFIX "Builtins_"
#define BUILTINS_MIN 100u /* fewer are somebody else's */

static bool is_builtin(const struct symbol *s)
{
	return s->size && !strncmp(s->name, PREFIX, strlen(PREFIX));
}

/* What C++ calls, and what calls C++ without a frame of its own. */
static bool is_entry(const char *name)
{
	name += strlen(PREFIX);
	return (!strncmp(name, "JS", 2) && strstr(name, "Entry")) || !strcmp(name, "DirectCEntry");
}

/* What the deoptimizer makes the callees of optimized code return to. */
static bool is_continuation(const char *name)
{
	return strstr(name, "EnterAt") || strstr(name, "Continuation") ||
	       strstr(name, "ContinueTo");
}

static uint32_t pointer_rule(const struct isa *isa, struct rows *rows)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = isa->fp,
		.cfa_offset = 16,
		.ra = RECIPE_AT_CFA,
		.ra_offset = -8,
		.fp = RECIPE_AT_CFA,
		.fp_offset = -16,
		.extra = RECIPE_LOST,
		.source = RECIPE_FROM_SHAPE,
	};
	return rows_rule(rows, &recipe);
}

static void add_calls(struct image *image, const struct isa *isa, const struct symbol *s,
		      uint32_t rule, struct rows *rows)
{
	size_t size;
	const uint8_t *code = image_bytes_at(image, s->address, &size);
	if (code && size > s->size)
		size = s->size;
	for (size_t at = 0; code && at < size;) {
		struct insn insn;
		isa->decode(code + at, size - at, s->address + at, &insn);
		if (!insn.length)
			break;
		if (insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT)
			rows_add(rows, s->address + at, s->address + at + insn.length, rule);
		at += insn.length;
	}
}

/* Before all symbols of a large library are read in vain. */
static bool may_have_builtins(struct image *image)
{
	static const char *const tables[] = {".strtab", ".dynstr"};
	for (size_t i = 0; i < 2; i++) {
		const struct image_section *section = image_section(image, tables[i]);
		size_t size = 0;
		const uint8_t *bytes = section ? image_section_bytes(image, section, &size) : NULL;
		if (bytes && memmem(bytes, size, PREFIX, strlen(PREFIX)))
			return true;
	}
	return false;
}

static void each_builtin(struct image *image, struct rows *rows, bool last)
{
	if (!may_have_builtins(image))
		return;
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct symbols *symbols = NULL;
	const struct symbol *all;
	err_free(symbols_read(image, NULL, &symbols));
	size_t count = symbols && isa ? symbols_all(symbols, &all) : 0, builtins = 0;
	for (size_t i = 0; i < count; i++)
		builtins += is_builtin(&all[i]);
	for (size_t i = 0; builtins >= BUILTINS_MIN && i < count; i++) {
		if (!is_builtin(&all[i]) || is_entry(all[i].name))
			continue;
		uint32_t rule = pointer_rule(isa, rows);
		uint64_t start = all[i].address;
		if (last) {
			rows_add(rows, start, start + all[i].size, rule);
			continue;
		}
		add_calls(image, isa, &all[i], rule, rows);
		if (is_continuation(all[i].name) && start >= isa->insn_min)
			rows_add(rows, start - isa->insn_min, start, rule);
	}
	symbols_free(symbols);
}

void shapes_add_v8(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, false);
}

void shapes_add_v8_last(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, true);
}
