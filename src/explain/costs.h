/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What instructions cost: how many cycles go by while an instruction is the oldest one that is not finished.
 * Most are finished along with the one before and cost nothing; some wait. Single ones vary too much to tell
 * anything, so windows of a few consecutive instructions are looked at. Windows of one kind have a common
 * distribution of cycles, which is learned from all of a program's windows.
 */
#include <stddef.h>
#include <stdint.h>

#include "explain/frequency.h"

#define COST_KINDS 24 /* of windows */
#define COST_CELLS 110
#define COST_STEP 0.1   /* of the logarithm of cycles, from one cell to the next */
#define COST_FIRST (-5.0) /* of the first cell */
#define COST_COUNTS 24  /* numbers of samples that are told apart */
#define COST_PLACES 180

struct frequency_costs {
	double share[COST_KINDS][COST_CELLS]; /* of each kind, how the cycles of windows are spread */
	/* The logarithm of how likely a number of samples is, by the frequency. */
	float likelihood[COST_KINDS][COST_COUNTS][COST_PLACES];
};

struct cost_window {
	double samples;
	uint8_t kind;
};

#define COST_WINDOW 4 /* instructions at most */

/* Cuts the instructions of a block into windows, at most `count` of them; returns how many. */
size_t cost_cut(const struct frequency_insn *insns, size_t count, struct cost_window *out);

/* What is usual, and what to begin with. */
void cost_usual(struct frequency_costs *costs);
/* Makes `likelihood` from `share`. */
void cost_prepare(struct frequency_costs *costs);

/* The logarithm of how likely the window's samples are at this logarithm of the frequency, in samples for a
   cycle that each execution takes. */
double cost_likelihood(const struct frequency_costs *costs, const struct cost_window *window,
		       double frequency);
/* Adds `weight` to the cells of `sums`, by how likely each is. */
void cost_count(const struct frequency_costs *costs, const struct cost_window *window,
		double frequency, double weight, double *sums);
