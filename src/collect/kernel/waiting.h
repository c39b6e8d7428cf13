/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that wait for their code to be known (walks.c): copies of stacks, and places that were only counted. */
#include <stdint.h>

struct err;
struct kernel;
struct kernel_far;
struct kernel_place;
struct kernel_snapshot;
struct kernel_waiting;
struct process;

#define WAITING_ONE ((uint64_t)2 << 20) /* bytes of one process, so that others have a part */

/* `far`: what was copied with it from elsewhere, or NULL. */
void waiting_add(struct kernel *k, const struct kernel_snapshot *snapshot, const uint8_t *bytes,
		 const struct kernel_far *far);
/* The same for one that is only counted. */
void waiting_add_place(struct kernel *k, const struct kernel_place *place);
/* Counts of a place. */
struct err *waiting_count(struct kernel *k, struct process *p, uint64_t pc, uint32_t event,
			  uint64_t count);
/* The one that `link` points to; frees it. */
void waiting_remove(struct kernel *k, struct kernel_waiting **link);
/* Tells the library which lists they need. */
void waiting_use(const struct kernel *k);
/* The profile is another one from now on. */
void waiting_restart(struct kernel *k);
void waiting_close(struct kernel *k);
