/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ring buffers into which the kernel puts samples, one for each thread, and a reader thread that empties
 * them. unsignalled.c uses them. The reader does nothing else, so a ring does not fill up while the main
 * thread makes tables. The kernel copies only the innermost part of a stack; the reader reads the rest from
 * the process at once.
 *
 *    kernel --> ring --> reader thread --> list of copies --> sample_ring_take, by the main thread
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/cpu.h"

struct err;
struct perf_event_attr;
struct sample_rings;
struct sample_ring;

#define RING_KERNEL_FRAMES 48u

struct ring_copy { /* a sample */
	struct ring_copy *next;
	uint64_t id;    /* of the event, as the kernel numbers it */
	uint64_t count; /* the event's count at this moment */
	uint64_t ns;    /* CLOCK_MONOTONIC */
	uint64_t registers[CPU_REGISTERS], pc;
	uint64_t address; /* of the copied stack */
	/* `copied` bytes are from the moment of the sample; the rest, up to `size`, was read later. */
	size_t size, copied;
	bool cut; /* the stack goes on beyond the copy */
	uint32_t kernel_frame_count;
	uint64_t kernel_frames[RING_KERNEL_FRAMES]; /* frames of the kernel, innermost first */
	uint8_t stack[];
};

/* `kernel_frames`: as all events were asked for (sample_ring_ask). */
struct err *sample_rings_open(bool kernel_frames, struct sample_rings **out);
void sample_rings_close(struct sample_rings *all);      /* NULL is fine */
int sample_rings_fd(const struct sample_rings *all);    /* readable if something has come */
void sample_rings_hear(const struct sample_rings *all); /* resets that, until more comes */

/* Sets what an event must record for a ring of this size. `kernel_frames`: frames of the kernel, too. */
void sample_ring_ask(struct perf_event_attr *attr, size_t size, bool kernel_frames);

/* Maps the ring of the thread's event. NULL if it fails: see errno. */
struct sample_ring *sample_ring_open(struct sample_rings *all, int event, pid_t tid, size_t size);
/* Sets about where the upper end of the thread's stack is. Copies are completed up to there. */
void sample_ring_know(struct sample_rings *all, struct sample_ring *ring, uint64_t stack_top);
/* Takes what has come, oldest first. The caller frees each. *lost: samples that had no room. */
struct ring_copy *sample_ring_take(struct sample_rings *all, struct sample_ring *ring,
				   uint64_t *lost);
/* Frees the ring and the samples that were not taken. The event remains the caller's. */
void sample_ring_close(struct sample_rings *all, struct sample_ring *ring);
