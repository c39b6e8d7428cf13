/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sampling from the kernel: an event on each CPU runs a program of ours (bpf/)
 * that walks the stack of whoever is to be sampled. Nothing is loaded into the
 * program, so any can be sampled: static ones, running ones, ones of other users.
 *
 *    kernel.c         loads the program, opens the events
 *    kernel_can.c     what is missing where it cannot;  kernel_age.c: a newer kernel
 *    kernel_cpus.c    which CPUs there are to sample
 *    kernel_reader.c  empties the ring, whatever else there is to do
 *    kernel_maps.c    notes what processes map, for those that end before we look
 *    kernel_code.c    tells the program what code is where: modules, lists
 *    kernel_tables.c  and how to unwind it
 *    kernel_tasks.c   who is sampled: processes and threads come and go
 *    kernel_paths.c   from what the program sends to the tree of the profile
 *    kernel_copy.c    stacks that it could only copy
 *    kernel_counters.c  the same of samples that it only counts
 *    kernel_periods.c   how often: never quite in step with anything
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/bpf/shared.h"

struct err;
struct kernel;
struct library_list;
struct process;
struct session;

/* Whether this kernel and user may: `why` (size bytes) gets what is missing and what provides it. */
bool kernel_can(char *why, size_t size);

/* No more samples; what there is is read. */
void kernel_stop(struct session *s);
/* Reads what has come, and looks at what it is about. */
void kernel_drain(struct session *s, bool all);
/* Samples that were lost since this was called last go into the profile as such. */
void kernel_lost(struct session *s);
/* Names of the kernel's functions, with those of modules that were loaded since. */
void kernel_renew_names(struct session *s);
