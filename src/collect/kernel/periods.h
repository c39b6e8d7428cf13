/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Changes the periods of events again and again, so that samples are never quite in step with anything.
   kernel.c calls it at each tick. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel;
struct kernel_pace;

/* Whether it is time to change the periods. */
bool periods_due(const struct kernel *k);
/* Changes the periods. The first call comes before anything is sampled. */
void periods_change(struct kernel *k);
/* Notes that the period changes when `count` events have happened, and that each `period`th event should
   have been a sample. Returns by which part the rate must rise to make up for missing samples, within
   limits. */
double periods_repay(struct kernel_pace *pace, uint64_t count, uint64_t period);
