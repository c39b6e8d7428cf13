/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How often there is a sample: never quite in step with anything. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel;
struct kernel_pace;

/* Whether it is time for other periods. */
bool periods_due(const struct kernel *k);
/* The first time before anything is sampled. */
void periods_change(struct kernel *k);
/* Notes that the period changes after so many events, of which each `period`th should have been a sample:
   so much of the rate higher it makes good for those that there were not, where that can be. */
double periods_repay(struct kernel_pace *pace, uint64_t count, uint64_t period);
