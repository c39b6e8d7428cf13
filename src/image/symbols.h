/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Function symbols of an image: .symtab, .dynsym and .gnu_debugdata (the
 * xz-compressed mini symbol table), and where there is no .symtab any more the own tables of Go's
 * programs and of V8; merged, sorted by address, one per address
 * (of aliases, the sized, global, least-underscored one wins).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct symbols;

struct symbol {
	uint64_t address, size; /* size 0: unknown */
	const char *name;       /* as in the file (mangled); owned by the symbols */
	bool global;            /* STB_GLOBAL or STB_WEAK */
};

/* Reads the function symbols (STT_FUNC, STT_GNU_IFUNC; STT_NOTYPE in executable
   sections of hand-written assembly too, but no mapping symbols such as $x and $d) of
   `image` and, where not NULL, of its separate debug file. Damaged tables give what is intact. */
struct err *symbols_read(struct image *image, struct image *debug, struct symbols **out);
/* The same, but only what a search for one of these addresses, which ascend, can come to: of large tables little
   is in memory then, and hardly a name is read. */
struct err *symbols_read_near(struct image *image, struct image *debug, const uint64_t *addresses,
			      size_t count, struct symbols **out);
/* Only .dynsym: what remains after `strip`. */
struct err *symbols_read_dynamic(struct image *image, struct symbols **out);
void symbols_free(struct symbols *symbols);

size_t symbols_all(const struct symbols *symbols, const struct symbol **out);
/* The symbol that covers `address` (by its size, or up to the next symbol), or NULL. */
const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address);
/* The same, and around the address where it holds: from `start` on, before `end`. */
const struct symbol *symbols_around(const struct symbols *symbols, uint64_t address,
				    uint64_t *start, uint64_t *end);
