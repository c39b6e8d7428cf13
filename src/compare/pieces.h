/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pieces of a function (its loops, or its lines) are the same in different builds of it. A loop
 * has no name, and a line's number changes with every line above it. So the pieces of one build, in the
 * order in which they are written, are laid beside those of another, so that those that are alike come
 * together: by what they contain, and by their traits. A piece that only one build has does not shift the
 * rest. Who adds pieces says what counts for how much.
 */
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct err;

#define PIECE_UNKNOWN UINT64_MAX

enum piece_trait {
	PIECE_OFFSET, /* from the function's first line */
	PIECE_LENGTH, /* lines */
	PIECE_DEPTH,  /* loops around it in the function */
	PIECE_HEIGHT, /* loops in it, one in the other */
	PIECE_INSIDE, /* from the first line of the loop that it is in */
	PIECE_BEFORE, /* from the piece before it; this and the next two are found by pieces_match */
	PIECE_AFTER,  /* to the piece behind it */
	PIECE_REST,   /* to the function's last piece; it counts if one of the two before does */
	PIECE_TRAITS,
};

struct piece {
	uint32_t function; /* a number that is the same in all builds */
	uint32_t module, last_run;
	uint64_t file;                 /* hash of its name */
	uint64_t position;             /* line; an address where that is not known */
	uint64_t traits[PIECE_TRAITS]; /* PIECE_UNKNOWN: it has none */
	uint32_t same;
	size_t first, content; /* part of the contents, once they are in order */
};

struct piece_content {
	uint32_t piece;
	uint64_t what;
};

struct pieces {
	struct piece *all;
	size_t count, room;
	struct piece_content *contents;
	size_t content_count, content_room;
	struct lookup by_place;
};

/* What makes two pieces alike: how much each trait counts if it is the same, and all of the contents. Those
   with less than `least` are not. */
struct piece_weights {
	uint32_t traits[PIECE_TRAITS];
	uint32_t content, least;
};

/* The number of a piece of this function, module, file and position, which is added where there was none. */
struct err *pieces_add(struct pieces *pieces, const struct piece *piece, uint32_t *number);
/* The same; LOOKUP_NONE: it was not added. */
uint32_t pieces_find(const struct pieces *pieces, const struct piece *piece);
/* Says what a piece contains: a number that is the same in all builds. */
struct err *pieces_contain(struct pieces *pieces, uint32_t number, uint64_t what);
/* Sets `same`, after all were added. */
struct err *pieces_match(struct pieces *pieces, const struct piece_weights *weights);
void pieces_free(struct pieces *pieces);
