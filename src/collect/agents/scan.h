/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Looking at the memory that targets count in: threads that are new, or have ended; samples that were left to us. */
#include <sys/types.h>

struct agents;
struct arena;
struct process;

/* The program that said HELLO. NULL: no memory. */
struct process *scan_add_program(struct agents *agents, struct arena *a, pid_t pid, pid_t own);
/* Looks at every record of an arena. */
void scan_arena(struct agents *agents, struct arena *a);
/* The same for all; those that nobody uses any more are freed. */
void scan_all(struct agents *agents);
/* While we wait for tables: new threads are sampled, samples to walk put aside. */
void scan_greet(struct agents *agents);
/* Takes everything that the process counted, and forgets it. */
void scan_end(struct process *p);
/* The same for all that count in the arena, and for the arena. */
void scan_finish(struct agents *agents, struct arena *a);
