/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Go's own table of its functions (pclntab), which its runtime needs and `strip` therefore
 * leaves: where each begins, its name, and for each instruction how large its frame is, its
 * file and line, and what was inlined there. All versions from Go 1.2 on; every
 * byte is foreign. Nothing in it changes after opening: for several threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct gotab;

struct gotab_function {
	uint64_t start, end; /* up to the next one; padding is its own */
	const char *name;    /* owned by the table, "" where it is damaged */
	uint32_t line;       /* where it is written; 0: not known (before Go 1.20) */
	uint8_t id;          /* which of those that the runtime knows; differs with versions */
	bool top;            /* nobody calls it: stacks begin there (from Go 1.17 on) */
	bool writes_sp;      /* it goes to another stack, or aligns this one (from Go 1.17 on) */
};

/* NULL where the image has no such table, or none that makes sense. The image must outlive it. */
struct gotab *gotab_open(struct image *image);
void gotab_close(struct gotab *table); /* NULL is fine */

/* Functions are numbered in the order of their addresses. */
size_t gotab_count(const struct gotab *table);
bool gotab_function(const struct gotab *table, size_t index, struct gotab_function *out);
/* The function that has the address; false: none has. */
bool gotab_find(const struct gotab *table, uint64_t address, size_t *index);

enum gotab_what {
	GOTAB_SP,   /* bytes that were pushed since the entry, not counting the return address */
	GOTAB_FILE, /* for gotab_file() */
	GOTAB_LINE,
	GOTAB_INLINE, /* which of what was inlined; -1: none */
};

/* Values of a function, each of which holds for [start, end): false at their end. Begin with zeroes
   in all but `table` and `index`. */
struct gotab_values {
	const struct gotab *table;
	size_t index;
	enum gotab_what what;
	uint64_t start, end;
	int32_t value;
	uint64_t at; /* the next byte, + 1 */
};
bool gotab_next(struct gotab_values *values);
/* The value at an address of the function; false: it has none. */
bool gotab_value(const struct gotab *table, size_t index, enum gotab_what what, uint64_t address,
		 int32_t *out);

/* The path of a file of the function, or NULL. */
const char *gotab_file(const struct gotab *table, size_t index, int32_t file);

/* One of what was inlined into the function: its name, and the address in whose place it was called.
   False where it is not known. */
bool gotab_inlined(const struct gotab *table, size_t index, int32_t which, const char **name,
		   uint64_t *call);
