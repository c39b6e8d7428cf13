/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What instructions cost: how many cycles go by while an instruction is the oldest one that is not finished.
 * An instruction that waits for nothing has a small share of a cycle, always the same, or none where it is
 * finished along with the one before; others wait. What is alike has a common distribution of cycles, which
 * is learned from all of a program's instructions.
 *
 * Each instruction is looked at in two ways: alone, by what stands before it; and together with others, because
 * the CPU finishes several at once, and it varies where such a group begins. Where it mostly tells which instruction
 * waited, these are pairs: a plain one, and a plain one or a jump behind it. Where it finishes groups in order and
 * interrupts fall between them (x86-64), an instruction alone tells little: it may have none of its group's
 * samples, or all. There, four in a row are looked at; a comparison and its branch are one of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/frequency.h"

#define COST_BEFORE 5 /* what stands before: nothing in the block, plain, load, store, other */
#define COST_AFTER 3  /* what is in a pair: nothing more, plain, jump */
#define COST_INSIDE 3 /* what is in a group: plain ones, loads and stores, others */
#define COST_GROUP 4  /* the most in a group */
#define COST_GROUPS (COST_INSIDE * COST_GROUP * 2)
#define COST_ALONE (FREQUENCY_KINDS * COST_BEFORE)
#define COST_KINDS (COST_ALONE + FREQUENCY_KINDS * COST_AFTER * 2)
#define COST_CELLS 400     /* up to 8100 cycles: DRAM far away, on a busy machine */
#define COST_STEP 0.05     /* of the logarithm of cycles, from one cell to the next */
#define COST_FIRST (-11.0) /* of the first cell, which is as good as none */
#define COST_COUNTS 32     /* numbers of samples that are told apart */
#define COST_PLACES 520

struct frequency_costs {
	double share[COST_KINDS][COST_CELLS]; /* of each kind, how the cycles are spread */
	double weights[2];                    /* of windows: of an instruction alone, of several */
	bool groups;                          /* not pairs */
	double doubt; /* by how much all of it may be wrong together: the deviation of a logarithm */
	double small; /* what an instruction costs that waits for nothing, in cycles */
	/* The logarithm of how likely a number of samples is, by the frequency. */
	float likelihood[COST_KINDS][COST_COUNTS][COST_PLACES];
};

struct cost_window {            /* an instruction or a pair */
	double samples, center; /* center: of its likelihood, a logarithm */
	uint8_t kind, index;    /* index: of its samples, in `likelihood` */
};

/* The windows of the instructions of a block, at most twice as many; returns how many. */
size_t cost_cut(const struct frequency_costs *costs, const struct frequency_insn *insns,
		size_t count, struct cost_window *out);

/* What is usual, and what to begin with, on a CPU of this kind that finishes at most `width` instructions in a cycle;
   0: not known. */
void cost_usual(struct frequency_costs *costs, const struct isa *isa, double width);
/* Makes the rest from `share`. */
void cost_prepare(struct frequency_costs *costs);

/* What the window tells, beside others. */
double cost_weight(const struct frequency_costs *costs, const struct cost_window *window);
/* The logarithm of how likely the samples are at this logarithm of the frequency, in samples for a cycle
   that each execution takes. */
double cost_likelihood(const struct frequency_costs *costs, const struct cost_window *window,
		       double frequency);
/* How many instructions it is that waited for nothing, as far as their samples tell: about `small` cycles each. 0: it is
   not, or the window does not tell. */
unsigned cost_small(const struct frequency_costs *costs, const struct cost_window *window,
		    double frequency);
/* Instructions in a window of this kind that are finished one after the other. */
unsigned cost_size(const struct frequency_costs *costs, size_t kind);
/* Adds `weight` to the cells of `sums`, by how likely each is. */
void cost_count(const struct frequency_costs *costs, const struct cost_window *window,
		double frequency, double weight, double *sums);
