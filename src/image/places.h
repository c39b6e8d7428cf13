/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Everything that is known about an address of one module, in one answer: the
 * function by symbol tables, inlined functions, files and lines by DWARF, of
 * the image and of its separate debug file. Each is read when first needed.
 * One thread at a time may use it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct places;
struct symbol;
struct symbols;

#define PLACES_MAX 256

struct place {
	const char *function;      /* demangled; NULL: not known */
	const char *symbol;        /* as the file says it; NULL: not known */
	uint64_t offset;           /* from the function's start; only where `inlined` is not set */
	const char *file;          /* NULL: not known */
	int line;                  /* 0: not known */
	const char *declared_file; /* where the function itself is written; NULL: not known */
	int declared_line;
	bool inlined; /* into the next place */
};

/* `image` must outlive the result. What cannot be read is left unknown. `download`: ask
   debuginfod for the debug file. */
struct err *places_open(struct image *image, bool download, struct places **out);
void places_close(struct places *places); /* NULL is fine */

/* Its separate debug file and its symbols, NULL where there are none. */
struct image *places_debug(struct places *places);
const struct symbols *places_symbols(struct places *places);
/* To be called first, where only these addresses, which ascend, will be asked for: the symbols are those
   that matter to them, and others need not be read. */
void places_near(struct places *places, const uint64_t *addresses, size_t count);

/* The places of the instruction at `address`, innermost first, at most PLACES_MAX: at least one,
   whose fields may all be unknown. Strings are owned by `places`. */
size_t places_find(struct places *places, uint64_t address, struct place *out);
/* Only the function, by its symbol: quick. NULL: not known. */
const struct symbol *places_function(struct places *places, uint64_t address);
/* A symbol's name for people; owned by `places`. */
const char *places_name(struct places *places, const char *symbol);
