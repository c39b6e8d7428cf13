/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The DWARF of an image as libdw wants it. libdw is handed a file of our own
 * making in memory: the few debug sections that places are found by, read and
 * decompressed by image.h with its bounds. So libelf never sees foreign headers,
 * every compression works, and a file that changes under us does no harm.
 */
#include <elfutils/libdw.h>
#include <stdint.h>

struct image;

struct dwarf_file {
	Dwarf *dwarf; /* NULL: the image has no DWARF */
	Elf *elf;
	uint8_t *bytes;
	/* What dwz moved out of several files into a common one. */
	Dwarf *shared;
	Elf *shared_elf;
	uint8_t *shared_bytes;
};

/* Leaves file->dwarf NULL where there is nothing to read. */
void dwarf_file_open(struct dwarf_file *file, struct image *image);
void dwarf_file_close(struct dwarf_file *file);
