/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where CFI is provably wrong: runs of instructions on which it and the
 * analysis disagree, and for which the code itself decides.
 */
#include <stdint.h>

struct analysis;
struct rows;

enum correction {
	/* The run ends in a return or a jump out of the procedure. There the stack must be as it
	   was at the entry, and the analysis says it is while the CFI says it is not. (Some
	   compilers describe no epilogues.) */
	CORRECTION_EPILOGUE,
	/* Both agreed on the instruction before the run; it changed SP or FP by a known amount, and
	   the CFI did not follow. (Some describe a prologue only at its end.) */
	CORRECTION_LATE,
};

/* Calls `each` for every such run, in ascending order. `cfi` is finished. */
void corrections_each(const struct analysis *analysis, const struct rows *cfi,
		      void (*each)(void *context, enum correction why, uint64_t start,
				   uint64_t end),
		      void *context);
