/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What control flow says about one procedure: its loops, and for each block of
 * its code the innermost of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/returns.h"
#include "flow/survey.h"
#include "structure/weave.h"

struct err;
struct extents;
struct graph;
struct graph_landing;
struct image;
struct insn;
struct isa;
struct references;
struct symbols;

/* What all procedures of a module share. Several threads may use one. */
struct control_module {
	/* As in struct graph_input, but for its context. NULL: nobody asks. */
	bool (*returns_again)(const void *context, const struct insn *call);
	const void *again_context;
	struct image *image;
	const struct isa *isa; /* NULL: a CPU that we cannot read; no procedure has loops */
	struct survey survey;
	struct returns returns;
	struct references *references;
	struct graph_landing *landings;
	size_t landing_count;
};

/* `symbols` may be NULL. All must outlive the result. */
struct err *control_open(struct image *image, const struct symbols *symbols,
			 struct control_module *out);
void control_close(struct control_module *module);

struct control_block { /* ascending */
	uint64_t start, end;
	uint64_t last; /* its last instruction */
	uint32_t loop; /* WEAVE_NONE: none */
	bool control;  /* that decides whether the loop goes on */
	bool falls;    /* control may go on to the code behind it */
};

struct control {
	struct control_block *blocks;
	size_t block_count;
	struct weave_loop *loops;
	size_t loop_count;
	uint32_t unresolved; /* indirect jumps whose targets are not known */
	bool truncated;      /* too large: there are no loops */
};

/* `max_blocks` bounds the work. */
struct err *control_read(const struct control_module *module, const struct extents *extents,
			 uint32_t procedure, uint32_t max_blocks, struct control *out);
void control_free(struct control *code);

/* The graph alone: the caller's (graph_free). */
struct err *control_graph(const struct control_module *module, const struct extents *extents,
			  uint32_t procedure, uint32_t max_blocks, struct graph *out);
