/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Looks at the arenas: threads that are new or have ended, and copies that threads have left. agents.c and
   talk.c call it. */
#include <sys/types.h>

struct agents;
struct arena;
struct process;

/* Adds a program that said HELLO. NULL if out of memory. */
struct process *scan_add_program(struct agents *agents, struct arena *a, pid_t pid,
				 pid_t namespace_pid);
/* Looks at every record of an arena. */
void scan_arena(struct agents *agents, struct arena *a);
/* The same for all arenas. Frees arenas that nobody uses any more. */
void scan_all(struct agents *agents);
/* The short form of a scan, while we wait for tables: new threads are sampled, and copies are taken out of
   the arenas. */
void scan_briefly(struct agents *agents);
/* Takes everything that the process counted, and forgets the process. */
void scan_end(struct process *p);
/* The same for all processes of the arena, and frees the arena. */
void scan_finish(struct agents *agents, struct arena *a);
