/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where CFI is provably wrong: a run of instructions on which it and the
 * analysis disagree and that ends in a return or a jump out of the procedure.
 * There the stack must be as it was at the entry, and the analysis says it is
 * while the CFI says it is not. (Some compilers describe no epilogues.)
 */
#include <stdint.h>

struct analysis;
struct rows;

/* Calls `each` for every such run, in ascending order. `cfi` is finished. */
void corrections_each(const struct analysis *analysis, const struct rows *cfi,
		      void (*each)(void *context, uint64_t start, uint64_t end), void *context);
