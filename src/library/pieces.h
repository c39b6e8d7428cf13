/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions at some addresses of a file, as bytes between two processes: pieces
 * of its code, in order, each with the function that it is of. Who writes them has
 * parsed foreign bytes, so who reads them believes nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct places;

#define PIECES_MAX ((size_t)8 << 20)       /* bytes of all */
#define PIECES_NAME_MAX ((size_t)64 << 10) /* bytes of a name: what is longer is cut */

struct pieces_item {
	uint64_t from, to;
	uint64_t start, size; /* of the function; 0 without a name */
	const char *name;     /* `length` bytes, none of them 0; NULL: nothing is known there */
	size_t length;
};

/* Those around these addresses, which ascend, of what `places` knows. What is more than PIECES_MAX is left out.
   False: there was not enough memory. */
bool pieces_write(struct places *places, const uint64_t *addresses, size_t count, struct buf *out);

struct pieces {
	const uint8_t *at;
	size_t left;
	uint64_t end; /* of the last one */
};

/* One after the other. False: the end, or nonsense, and then `left` is not 0. */
bool pieces_next(struct pieces *pieces, struct pieces_item *out);
/* Whether there is no nonsense. */
bool pieces_are_whole(const void *bytes, size_t size);
