/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ring buffers into which the kernel puts samples, one for each thread, and a reader thread that empties
 * them. inside.c uses them. The reader does nothing else, so a ring does not fill up while the main thread
 * makes tables. The kernel copies only the innermost part of a stack; the reader reads the rest from the
 * process at once.
 *
 *    kernel --> ring --> reader thread --> list of copies --> inside_ring_take, by the main thread
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

#define INSIDE_INNER 48u

struct inside_copy { /* a sample */
	struct inside_copy *next;
	uint64_t id;    /* of the event, as the kernel numbers it */
	uint64_t count; /* the event's count at this moment */
	uint64_t ns;    /* CLOCK_MONOTONIC */
	uint64_t registers[CPU_REGISTERS], pc;
	uint64_t address; /* of the copied stack */
	/* `copied` bytes are from the moment of the sample; the rest, up to `size`, was read later. */
	size_t size, copied;
	bool cut; /* the stack goes on beyond the copy */
	uint32_t inner_count;
	uint64_t inner[INSIDE_INNER]; /* frames of the kernel, innermost first */
	uint8_t stack[];
};

/* `inner`: as all events were asked for (inside_ring_ask). */
struct err *inside_rings_open(bool inner, struct inside_rings **out);
void inside_rings_close(struct inside_rings *all);      /* NULL is fine */
int inside_rings_fd(const struct inside_rings *all);    /* readable if something has come */
void inside_rings_hear(const struct inside_rings *all); /* resets that, until more comes */

/* Sets what an event must record for a ring of this size. `inner`: frames of the kernel, too. */
void inside_ring_ask(struct perf_event_attr *attr, size_t size, bool inner);

/* Maps the ring of the thread's event. NULL if it fails: see errno. */
struct inside_ring *inside_ring_open(struct inside_rings *all, int event, pid_t tid, size_t size);
/* Sets about where the upper end of the thread's stack is. Copies are completed up to there. */
void inside_ring_know(struct inside_rings *all, struct inside_ring *ring, uint64_t stack_top);
/* Takes what has come, oldest first. The caller frees each. *lost: samples that had no room. */
struct inside_copy *inside_ring_take(struct inside_rings *all, struct inside_ring *ring,
				     uint64_t *lost);
/* Frees the ring and the samples that were not taken. The event remains the caller's. */
void inside_ring_close(struct inside_rings *all, struct inside_ring *ring);
