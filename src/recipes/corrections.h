/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where CFI is provably wrong: runs of instructions on which it and the
 * analysis disagree, and for which the code itself decides.
 */
#include <stdint.h>

struct analysis;
struct rows;

/* In both, CFI and analysis agreed on the instruction before the run; it changed SP or FP by a
   known amount, and the CFI did not follow, or says that something is stored which is not yet. */
enum correction {
	CORRECTION_EPILOGUE, /* the run ends by leaving the procedure, the stack as at the entry:
				some compilers describe no epilogues */
	CORRECTION_LATE,     /* else: some describe a prologue only at its end */
};

/* Calls `each` for every such run, in ascending order. `cfi` is finished. */
void corrections_each(const struct analysis *analysis, const struct rows *cfi,
		      void (*each)(void *context, enum correction why, uint64_t start,
				   uint64_t end),
		      void *context);
