/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a run found: counts, and the differences, grouped by the instruction whose recipe led
 * astray and by what was wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/space.h"
#include "unwind/walk.h"

struct isa;
struct json;

enum miss_reason {
	MISS_PARTIAL, /* the walk ended with an error */
	MISS_ADDRESS, /* another return address */
	MISS_CFA,     /* the right return address, but another SP */
	MISS_SHORT,   /* ended as complete before the last frame */
	MISS_LONG,    /* went on after the last frame */
	MISS_RETURN,  /* the program returned to where no frame was expected to */
};

struct miss {
	uint64_t step;
	uint64_t at;  /* the instruction whose recipe it was */
	uint64_t pc;  /* where the program stood */
	size_t frame; /* number of the frame that was left, 0 the innermost */
	size_t depth; /* the same from the outermost */
	bool forgiven; /* seen between two stacks, it was the other one: not counted as a difference */
	enum miss_reason reason;
	enum walk_end end;
	uint64_t got, wanted; /* addresses, or SPs */
	/* Of a walk that left the truth: the frame where it did, and all beyond it in one number. */
	uint64_t other_pc, other_sp, others;
	struct recipe recipe;
};

struct miss_group {
	struct miss first;
	uint64_t count;
	char *module, *function;
	uint64_t address; /* of the module's own */
	uint64_t offset;  /* in the function */
	char text[96];    /* the instruction */
};

struct report {
	uint64_t steps, complete, consistent, transitions, signals, unwound, lost, declared,
		windows, frames;
	uint64_t deepest;
	double seconds;
	struct miss_group *groups;
	size_t group_count;
	struct report_names *names;
};

void report_add(struct report *report, const struct isa *isa, const struct space *space,
		const struct miss *miss);
void report_text(const struct report *report, size_t groups_shown);
void report_json(const struct report *report, struct json *j);
void report_free(struct report *report);
