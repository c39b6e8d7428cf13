/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The shared object that copies of functions are loaded from: an ordinary one, so that exceptions, debuggers and
 * profilers see through it. It has the unwind information and the exception tables of the functions, rewritten for the
 * copies, and a symbol for each.
 *
 * An exception goes on at the first step of its landing pad: if the code of the copy must do something there, it has
 * a step of its own for that, with the same `from`, before the instruction's.
 *
 * An object must lie at its own addresses. dlopen of glibc 2.36 and later, and that of musl, put it there if these are
 * free; older ones of glibc only do in programs that are not moved. l_addr of its link_map is 0 then. If it is not, the
 * object must be closed again: its code does not find its module.
 */
#include <stddef.h>
#include <stdint.h>

#include "copies/copy.h"

struct buf;
struct err;
struct frames;
struct image;

#define OBJECT_TABLES 4096u /* where the tables begin, from the base on */

struct object_input {
	struct image *image; /* the module that the functions are of */
	const char *name;    /* of the object */
	uint64_t base; /* where its first byte will be, in the module's addresses; of a page */
	uint64_t bias; /* where the module is in memory: what is added to its addresses */
	const uint8_t *tables; /* data for the code: at base + OBJECT_TABLES; only read */
	size_t table_size;
	const struct copy
		*copies; /* ascending by address: the first begins a page, behind the tables */
	size_t copy_count;
};

/* Writes the file. Its addresses are those in memory, so it needs no relocation. An error names the function whose copy
   could not be described. */
struct err *object_write(const struct object_input *input, struct buf *out);

/* Whether the unwind information and the exception table of a function can be written for this copy; an error says why
   not. `frames` are those of its module (paths/frames.h), opened once for all its copies. Several threads may ask. */
struct err *object_check(const struct frames *frames, const struct copy *copy);
