/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sees to it that time off the CPU is sampled, for the events `blocked` and `wall`. What the sampler tells of it
   goes through absences.h. */
#include <stdint.h>

struct err;
struct kernel;

enum off_kind { OFF_NO_WAY, OFF_TRACEPOINT, OFF_FUNCTION, OFF_PROBE };
/* How we are told that a thread is back on a CPU. */
struct off_way {
	enum off_kind kind; /* by a tracepoint, where a function begins, or by a kprobe there */
	char probed[256];   /* OFF_PROBE: the function's name */
	/* Where each CPU keeps whether it is in an interrupt, if in a variable: as in struct kernel_settings. */
	int64_t preempt_count;
};
/* Returns the cheapest way that this kernel has. */
const struct off_way *off_way(void);

/* Chooses the programs that are needed, before they are loaded. */
void off_choose(struct kernel *k);
/* Begins, if an event wants it. */
struct err *off_open(struct kernel *k);
/* Processes were added that run already: their threads may be off the CPU. */
void off_begin(struct kernel *k);
/* Ends sampling, and takes the absences that have not ended. */
void off_stop(struct kernel *k);
void off_close(struct kernel *k);
