/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the dynamic linker will write: where the module keeps pointers to its
 * own code, and which memory words hold the addresses of imported functions.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;

struct reloc {
	uint64_t offset;    /* the word that is written */
	uint64_t value;     /* what it will hold, relative to the load address; 0 for an import */
	const char *symbol; /* name of an import or export, NULL for none; owned by the image */
};

/* All relocations of .rela.dyn, .rela.plt and .relr.dyn that are understood, by offset;
   malloc'ed, the caller's. Damaged tables give what is intact. */
struct err *relocs_read(struct image *image, struct reloc **out, size_t *count);
