/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The processes that count in our arenas: who they are, and what code they have in memory. */
#include <sys/types.h>

struct agents;
struct arena;
struct err;
struct library_module;
struct process;

/* Is called when the process ends. */
typedef void program_ended(void *process);

/* The program that said HELLO. NULL: no memory. */
struct process *program_add(struct agents *agents, struct arena *a, pid_t pid, pid_t own,
			    program_ended *ended);
/* A child that one of the arena's processes forked, as its record names it. */
struct process *program_add_forked(struct agents *agents, struct arena *a, pid_t own, pid_t parent,
				   program_ended *ended);
/* It counts in its arena no more. */
void program_leave(struct process *p);
struct process *program_find(const struct agents *agents, pid_t pid); /* alive; or NULL */
/* The number that we know a thread by. */
pid_t program_tid(const struct process *p, pid_t own);
/* Makes its list of modules the present one and tells all of its threads. */
struct err *program_look(struct agents *agents, struct process *p,
			 const struct library_module **executable);
