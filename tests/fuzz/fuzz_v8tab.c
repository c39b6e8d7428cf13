/* SPDX-License-Identifier: Apache-2.0 */
/* V8's own table. The input is code and constants; the rest of the file is sound. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "elf_parts.h"
#include "image/v8tab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	free(all);
	image_close(image);
	return 0;
}
