/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The processes that count in our arenas: which process a record belongs to, and which modules it has in
   memory. scan.c, talk.c and copies.c use it. */
#include <sys/types.h>

struct agents;
struct arena;
struct err;
struct library_module;
struct process;

/* A function that is called when the process ends. */
typedef void program_ended(void *process);

/* Adds a program that said HELLO. `namespace_pid`: its pid in its own namespace. NULL if out of memory. */
struct process *program_add(struct agents *agents, struct arena *a, pid_t pid, pid_t namespace_pid,
			    program_ended *ended);
/* Adds a child that one of the arena's processes forked. `namespace_pid` and `parent` are the pids in its
   record. */
struct process *program_add_forked(struct agents *agents, struct arena *a, pid_t namespace_pid,
				   pid_t parent, program_ended *ended);
/* Removes the process from its arena. */
void program_leave(struct process *p);
/* The process with this pid, if it is alive; or NULL. */
struct process *program_find(const struct agents *agents, pid_t pid);
/* The tid, as we see it, of a thread that has the tid `namespace_tid` in its own namespace. */
pid_t program_tid(const struct process *p, pid_t namespace_tid);
/* Reads the process's list of modules again, and tells it to all of its threads. */
struct err *program_look(struct agents *agents, struct process *p,
			 const struct library_module **executable);
