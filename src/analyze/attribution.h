/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whose code each node of a profile is: from frames (addresses) to scopes. A
 * frame is one scope or several, outermost first: its function, then the
 * functions that were inlined there and the loops around the place. Names by
 * symbols are found for all; what costs more (inlined functions, loops, lines)
 * only for functions that have at least the asked-for share of the samples.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct modules;
struct profile;
struct scopes;

/* What frames are told apart by. */
enum attribution_by { BY_FUNCTION, BY_LOOP, BY_LINE, BY_FILE, BY_MODULE, BY_INSN };

struct attribution_options {
	enum attribution_by by;
	bool no_inline, no_loops;
	uint32_t metric;
	double detail; /* least share of a function's samples for inlined functions, loops and lines */
	const regex_t *focus;  /* only paths with a function that matches; NULL: all */
	const regex_t *ignore; /* no paths with a function that matches; NULL: all */
};

struct attribution_step {
	uint32_t scope;
	const char *call_file; /* of an inlined function: where it is called; NULL: not known */
	int call_line;
};

struct attribution_span {
	uint32_t first, count;
};

struct attribution {
	const struct profile *profile;
	enum attribution_by by;
	struct scopes *scopes;
	struct attribution_span *spans; /* by node: its part of the steps; none for the root */
	struct attribution_step *steps;
	size_t step_count, step_room;
	/* The scopes of samples in a frame without steps, and of those of the kernel; 0: that of its caller. */
	uint32_t rest, kernel_rest;
	bool *dropped; /* nodes whose samples focus or ignore leave out */
	uint8_t *
		reasons; /* by node, why a thread waits there (reasons.h); NULL: nothing tells of waiting */
};

/* `profile` and `modules` must outlive the result. */
struct err *attribution_make(const struct profile *profile, struct modules *modules,
			     const struct attribution_options *options, struct attribution *out);
void attribution_free(struct attribution *attribution);

/* The scope of samples in this node, where they are in none of its steps; 0: they are. */
uint32_t attribution_rest(const struct attribution *attribution, uint32_t node);
