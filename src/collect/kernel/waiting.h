/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The queue of samples that wait until their code is known: copies of stacks, and places that are only
   counted. kernel.c and counters.c add samples, walks.c walks and removes them. Those whose tables are still being
   made are parked at their process: there may be very many, and most of the time none of them can go on. */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct kernel;
struct kernel_copy;
struct kernel_far;
struct kernel_place;
struct kernel_waiting;
struct process;

#define WAITING_ONE ((uint64_t)2 << 20) /* bytes of one process, so that there is room for others */

/* Adds a copy. `far`: what was copied with it from elsewhere, or NULL. */
void waiting_add(struct kernel *k, const struct kernel_copy *copy, const uint8_t *bytes,
		 const struct kernel_far *far);
/* Adds a sample that is only counted. */
void waiting_add_place(struct kernel *k, const struct kernel_place *place);
/* Adds so many samples of a place. */
struct err *waiting_count(struct kernel *k, struct process *p, uint64_t pc, uint32_t event,
			  uint64_t count);
/* Parks the first one of the queue at its process, behind others. */
void waiting_park(struct kernel *k);
/* Removes the first one of the queue, and frees it. */
void waiting_remove(struct kernel *k);
/* The same of those that are parked at a process. */
void waiting_remove_parked(struct kernel *k, struct process *p);
/* Takes processes out of the list of those that have parked ones, if they have none any more. */
void waiting_sort_out(struct kernel *k);
/* Whether any sample waits. */
bool waiting_any(const struct kernel *k);
/* Tells the library which lists they need. */
void waiting_mark_used(const struct kernel *k);
/* A new profile begins: each sample looks up its thread again. */
void waiting_restart(struct kernel *k);
void waiting_close(struct kernel *k);
