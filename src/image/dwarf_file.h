/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The DWARF of an image as libdw wants it. libdw is handed a file of our own
 * making in memory: the few debug sections that places are found by, read and
 * decompressed by image.h with its bounds. So libelf never sees foreign headers,
 * every compression works, and a file that changes under us does no harm. DWARF
 * that libdw would make too much of (dwarf_bounds.h) is left out.
 */
#include <elfutils/libdw.h>
#include <stdint.h>

#include "image/dwarf_bounds.h"

struct image;

struct dwarf_file {
	Dwarf *dwarf; /* NULL: the image has no DWARF */
	Elf *elf;
	uint8_t *bytes;
	struct dwarf_line_parts lines; /* in `bytes` */
	/* What dwz moved out of several files into a common one. */
	Dwarf *shared;
	Elf *shared_elf;
	uint8_t *shared_bytes;
};

/* Leaves file->dwarf NULL where there is nothing to read. */
void dwarf_file_open(struct dwarf_file *file, struct image *image);
void dwarf_file_close(struct dwarf_file *file);
