/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads and writes, for the event `io`. The sampler tells of each path by which a thread reads or writes, and adds up
   the calls (bpf/io.h). Here the paths get their places in the profile, with a last frame that says what was read or
   written, and the sums are taken. paths.c and walks.c pass on what belongs to their paths. */
#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel/bpf/shared.h"

struct err;
struct kernel;
struct kernel_thread;
struct process;

/* Whether an event wants it. */
bool io_wanted(const struct kernel *k);
/* Chooses the programs that are needed, and says which system calls to look at, before they are loaded. */
void io_choose(struct kernel *k);
void io_fill_calls(uint8_t calls[KERNEL_IO_CALLS]);
/* Begins, if an event wants it. */
struct err *io_open(struct kernel *k);
void io_close(struct kernel *k);

/* Learns what a descriptor stands for. */
void io_learn(struct kernel *k, const struct kernel_object *object);
/* Keeps what was read or written until its path comes. */
void io_note(struct kernel *k, const struct kernel_io *io);
/* Returns what belongs to the path that came then; if it was lost, one without calls. */
struct kernel_io io_take(const struct kernel_thread *t, uint64_t time);
/* Counts it below the node of its path, whose walk has come to this end (enum walk_end), or notes where its sum
   belongs. */
struct err *io_count(struct kernel *k, const struct kernel_io *io, uint32_t thread, uint32_t node,
		     uint32_t end);

/* A thread has ended: takes its sums. */
void io_end_thread(struct kernel *k, uint32_t thread);
/* Takes all sums until now. */
void io_settle(struct kernel *k);
/* Ends counting. */
void io_detach(struct kernel *k);
/* Takes all sums, also those whose path was lost. */
void io_stop(struct kernel *k);
