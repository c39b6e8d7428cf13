/* SPDX-License-Identifier: Apache-2.0 */
/* Procedures and inlining. The input is cut into sections (elf_cut). */
#include "inline_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_info",     ".debug_abbrev",      ".debug_str",  ".debug_line",
	".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_ranges",
	".debug_rnglists", ".debug_aranges",
};
#define PARTS (sizeof names / sizeof names[0])

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_part parts[PARTS];
	struct image *image;
	if (!elf_cut(data, size, names, parts, PARTS))
		return 0;
	image = elf_open(parts, PARTS, "parts");
	inline_check_all(image);
	image_close(image);
	return 0;
}
