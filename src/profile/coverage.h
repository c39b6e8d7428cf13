/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of the time an event was counted.
 *
 * A CPU has few counters. Where there are more events than that, the kernel lets
 * them take turns, some thousandths of a second each, and of an event there are
 * only the samples of its own turns. A sample then stands for more than its
 * period: for period / share. Counts stay what they are, samples that were taken,
 * so that what is concluded from their number stays right; who wants to know how
 * much it was multiplies by coverage_period().
 */
#include <stdbool.h>
#include <stdint.h>

struct buf;

struct coverage {
	uint64_t enabled_ns; /* that it should have been counted, all CPUs or threads together */
	uint64_t running_ns; /* that it was; both 0: nobody knows, it is taken as always */
};

/* Between 0 (never) and 1 (always). What is missing of less than a thousandth is the way that times
   are taken, and is none. */
double coverage_share(struct coverage c);
/* It should have been counted and never was. */
bool coverage_never(struct coverage c);
/* What a sample stands for, where the event was sampled every `period`. */
uint64_t coverage_period(struct coverage c, uint64_t period);

/* Makes one of two, with which all samples together stand for as much as those of each did with its
   own: `samples` is how many `into` is about, `more` how many `from` is about. Of what was never
   counted it is assumed that it was as the rest. */
void coverage_add(struct coverage *into, uint64_t samples, struct coverage from, uint64_t more);

/* Appends a line for people where it was not counted all of the time; else nothing. Returns whether. */
bool coverage_note(struct coverage c, const char *event, const char *unit, uint64_t period,
		   struct buf *out);
