/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions at some addresses of a file, as bytes that one process sends to another: pieces of the file's
 * code in ascending order, each with its function. The teller (library/teller.h) writes them, and the
 * daemon's namer reads them. The writer has parsed foreign bytes, so the reader checks everything.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct places;

#define PIECES_MAX ((size_t)8 << 20)       /* bytes of all pieces */
#define PIECES_NAME_MAX ((size_t)64 << 10) /* bytes of a name: longer ones are cut off */

/* One piece of code: addresses from `from` up to `to`. */
struct pieces_item {
	uint64_t from, to;
	uint64_t start, size; /* of the function; 0 if there is no name */
	/* `length` bytes, none of them 0; NULL: no function is known there. */
	const char *name;
	size_t length;
};

/* Appends the pieces that contain these addresses, which must ascend, as `places` knows them. Pieces
   beyond PIECES_MAX are left out. False if out of memory. */
bool pieces_write(struct places *places, const uint64_t *addresses, size_t count, struct buf *out);

/* A reader of pieces. Begin with the bytes in `at` and `left`. */
struct pieces {
	const uint8_t *at;
	size_t left;
	uint64_t end; /* of the last piece */
};

/* Reads the next piece. False at the end, or if the bytes are damaged; then `left` is not 0. */
bool pieces_next(struct pieces *pieces, struct pieces_item *out);
/* Whether all bytes are valid pieces. */
bool pieces_are_whole(const void *bytes, size_t size);
