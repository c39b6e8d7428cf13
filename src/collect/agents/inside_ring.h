/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rings that the kernel puts samples in, one for each thread, and a small thread of ours that
 * empties them. It has nothing else to do, so that a ring has room for what comes while tables are
 * made, and so that the rest of a stack, of which the kernel copies the innermost part, is read at once.
 *
 *    kernel --> ring --> the small thread --> list of copies --> inside_ring_take, by the session
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/cpu.h"

struct err;
struct perf_event_attr;
struct inside_rings;
struct inside_ring;

struct inside_copy { /* a sample */
	struct inside_copy *next;
	uint64_t id;    /* of the event, as the kernel calls it */
	uint64_t count; /* that the event has counted until now */
	uint64_t ns;    /* CLOCK_MONOTONIC */
	uint64_t registers[CPU_REGISTERS], pc;
	uint64_t address;    /* of the stack */
	size_t size, copied; /* copied: what is of the sample's time, the rest was read later */
	bool cut;            /* it goes on beyond */
	uint8_t stack[];
};

struct err *inside_rings_open(struct inside_rings **out);
void inside_rings_close(struct inside_rings *all);      /* NULL is fine */
int inside_rings_fd(const struct inside_rings *all);    /* readable where something has come */
void inside_rings_hear(const struct inside_rings *all); /* so that it is quiet until more comes */

/* What an event has to say for a ring of this size. */
void inside_ring_ask(struct perf_event_attr *attr, size_t size);

/* The ring of the thread's event. NULL where it cannot be: errno says why. */
struct inside_ring *inside_ring_open(struct inside_rings *all, int event, pid_t tid, size_t size);
/* Where the thread's stack begins, more or less: so far copies are completed. */
void inside_ring_know(struct inside_rings *all, struct inside_ring *ring, uint64_t stack_top);
/* What has come, oldest first; the caller frees each. *lost: what had no room. */
struct inside_copy *inside_ring_take(struct inside_rings *all, struct inside_ring *ring,
				     uint64_t *lost);
/* With what was not taken. The event is the caller's. */
void inside_ring_close(struct inside_rings *all, struct inside_ring *ring);
