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

/* For s->kernel. Nothing is sampled before kernel_start. */
struct err *kernel_open(struct session *s);
void kernel_close(struct session *s); /* fine without */
void kernel_start(struct session *s);
/* No more samples; what there is is read. */
void kernel_stop(struct session *s);
/* Reads what has come, and looks at what it is about. */
void kernel_drain(struct session *s, bool all);
/* What came out of the kernel so far. */
struct session_state;
void kernel_status(const struct session *s, struct session_state *out);
/* Adds what events have counted since their tallies began, to one for each event; `anew`: they begin
   again. */
struct tally;
void kernel_tally(struct session *s, struct tally *tallies, bool anew);
/* Every SESSION_TICK_NS. */
void kernel_tick(struct session *s);
/* Samples that were lost since this was called last go into the profile as such. */
void kernel_lost(struct session *s);
/* A descriptor that is readable when kernel_drain has something urgent to do. */
int kernel_fd(const struct session *s);
/* Before a snapshot: what threads call themselves now. */
void kernel_name(struct session *s);
/* Names of the kernel's functions, with those of modules that were loaded since. */
void kernel_renew_names(struct session *s);
/* What a sample costs besides what the sampler measures of itself, in nanoseconds. Takes some 30 ms. */
uint64_t kernel_delivery(void);
/* A process that runs already. */
struct err *kernel_attach(struct session *s, pid_t pid);
/* In the command's process, before exec: it is to be sampled from then on. */
void kernel_join(struct session *s);
