/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What instructions usually cost on each CPU: where learning begins. */
#include "explain/costs.h"

struct usual {
	float none, small; /* shares of those that cost nothing, and the small share of a cycle */
	float tail,
		wide; /* of those that wait: the middle of their cycles, and the deviation of its logarithm */
};

struct usual_bump { /* around where, and the deviations of its logarithm to each side */
	float center, below, above;
};

struct usual_table {
	/* Of the CPU that it was measured on: instructions that it finishes in a cycle, at best; and what 1 below
	   stands for, in cycles. */
	double width, unit;
	double doubt; /* of the unit: programs differ by so much, the deviation of its logarithm */
	struct usual_bump none, small;
	struct usual alone[FREQUENCY_KINDS][COST_BEFORE];
	bool by_groups; /* not by pairs */
	double weights[2];
	struct usual pairs[FREQUENCY_KINDS][COST_AFTER][2];
	struct usual groups[COST_INSIDE][COST_GROUP][2];
};

extern const struct usual_table usual_aarch64, usual_x86_64;
