/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whose code each node of a profile is: from frames (addresses) to scopes. A
 * frame is one scope or several, outermost first: its function, then the
 * functions that were inlined there. Names by symbols are found for all; what
 * costs more (inlined functions, lines) only for functions that have at least
 * the asked-for share of the samples.
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
enum attribution_by { BY_FUNCTION, BY_LINE, BY_FILE, BY_MODULE, BY_INSN };

struct attribution_options {
	enum attribution_by by;
	bool no_inline;
	uint32_t metric;
	double detail; /* least share of a function's samples for inlined functions and lines */
	const regex_t *focus;  /* only paths with a function that matches; NULL: all */
	const regex_t *ignore; /* no paths with a function that matches; NULL: all */
};

struct attribution {
	const struct profile *profile;
	struct scopes *scopes;
	uint32_t *
		first; /* the scopes of node i are chain[first[i] … first[i + 1]); none for the root */
	uint32_t *chain;
	size_t chain_count, chain_room;
	bool *dropped; /* nodes whose samples focus or ignore leave out */
};

/* `profile` and `modules` must outlive the result. */
struct err *attribution_make(const struct profile *profile, struct modules *modules,
			     const struct attribution_options *options, struct attribution *out);
void attribution_free(struct attribution *attribution);
