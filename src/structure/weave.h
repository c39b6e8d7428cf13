/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The scope tree of one procedure, from plain arrays: pieces of its code that
 * know their line, the context (the procedure itself, or code inlined into it)
 * and the innermost loop. Loops come from control flow and contexts from the
 * compiler (or from the line map: aliens.h), and neither knows of the other.
 * Here the two nests become one: every loop gets the context that it belongs to.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAVE_NONE UINT32_MAX

struct weave_piece { /* ascending by start */
	uint64_t start, end;
	uint32_t file, line; /* 0: not known */
	uint32_t context;
	uint32_t loop; /* the innermost, WEAVE_NONE: none */
	bool control;  /* has the jump that decides whether its loop goes on */
	bool known;    /* its line is known, and its context not only carried over */
	bool leads;    /* a block of the control flow begins with it */
	bool follows;  /* control may come from the code before it */
	bool placed;   /* has no line, but its file is that of the function it comes from */
};

struct weave_context { /* 0 is the procedure; parents before children */
	uint32_t parent;
	uint32_t call_file, call_line;
	uint32_t file, line; /* where it is written */
	const char *name;    /* NULL: not known */
};

struct weave_loop {      /* parents before children */
	uint32_t parent; /* WEAVE_NONE: none */
	uint64_t header; /* address */
	uint64_t back;   /* address of the jump back */
	bool irreducible;
};

struct weave_input {
	const struct weave_piece *pieces;
	size_t piece_count;
	const struct weave_context *contexts;
	size_t context_count;
	const struct weave_loop *loops;
	size_t loop_count;
	/* Contexts were told from the line map: it does not say what was inlined into what, so
	   they nest only where a loop stands between them, and one of them belongs to no call. */
	bool flat;
	uint64_t deadline_ns; /* by CLOCK_MONOTONIC; 0: none. Later, what is optional is left out */
};

enum weave_type { WEAVE_PROCEDURE, WEAVE_INLINE, WEAVE_LOOP, WEAVE_LINE };

struct weave_node {
	uint8_t type; /* enum weave_type */
	uint32_t parent;
	uint32_t id;         /* context or loop */
	uint32_t file, line; /* of a line or loop; 0: not known */
	uint32_t last_line;  /* of a loop */
};

struct weave {
	struct weave_node
		*nodes; /* parents before children; 0 is the procedure and its own parent */
	size_t count;
	uint32_t *of_piece; /* the node of each piece, mostly a WEAVE_LINE */
};

/* False: out of memory, or a contradiction in the input (an index out of range). */
bool weave_build(const struct weave_input *input, struct weave *out);

/* What optimisation tore apart is joined again, to a fixed point. Copies of one loop (a part that
   was peeled off, the rest after a vector loop) become one. With input->flat as the literature has
   it: loops of one context that share a statement are one loop, and a statement that is at several
   levels of a nest is at the innermost. Else, as the file says more, only loops with the same line
   are joined and no statement moves. */
bool weave_normalize(const struct weave_input *input, struct weave *tree);
void weave_free(struct weave *tree);

/* The context that each loop belongs to; loop_count numbers, for tests the caller's to free. */
uint32_t *weave_loop_contexts(const struct weave_input *input);

bool weave_late(const struct weave_input *input);
