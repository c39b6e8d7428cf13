/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The addresses of a profile, each once, with the frames that lie there: a
 * function and what was inlined into it, and the line of each.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct job;

#define LOCATION_NONE UINT32_MAX

struct frame {
	uint32_t scope;
	uint32_t location;
	const char *file; /* of the line; NULL: not known */
	int line;         /* 0: not known */
};

struct location {
	uint32_t module;
	uint64_t address;      /* as the profile has it; of a caller it is the return address */
	uint8_t kind;          /* enum profile_node_kind */
	uint32_t first, count; /* its frames, outermost first; at least one */
};

struct locations {
	struct location *all;
	size_t count;
	struct frame *frames;
	size_t frame_count;
	uint32_t *of_node; /* by node of the profile; LOCATION_NONE where nothing is exported */
};

struct err *locations_make(struct job *job, struct locations *out);
void locations_free(struct locations *locations);

/* The instruction at a location: a call, where it is a return address. */
uint64_t location_instruction(const struct location *location);

/* Every frame of every path once: a tree whose rows know what called them. */
struct frame_tree {
	struct locations locations;
	uint32_t *parent;  /* STACK_NONE: it is the outermost */
	uint32_t *frame;   /* its place in locations.frames */
	size_t count;      /* a parent's row comes before those of its children */
	uint32_t *of_node; /* the row of the innermost frame */
};
#define STACK_NONE UINT32_MAX

struct err *frame_tree_make(struct job *job, struct frame_tree *out);
void frame_tree_free(struct frame_tree *stacks);
