/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls belong to functions, but the agent counts them at the instruction where it met the function: perhaps in
   a loop, or in code that was inlined there. Here the counts go to the function's first instruction, in the same
   context. session.c calls it before a profile is handed over. */
#include <stdint.h>

struct profile;

/* Moves the counts of a metric. Those of functions without a symbol stay where they are. */
void entries_take_counts(struct profile *profile, uint32_t metric);
