/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Looks at threads that wait, where agents sample time off the CPU: an agent walks the path of a wait when that ends. If
   it does not end before the process, or before sampling, its path is walked here, from the thread's stack. */
struct agents;
struct process;
struct thread;

/* A thread has begun. */
void waiting_begin_thread(struct agents *agents, struct thread *t);
/* Looks at threads that wait for a while. */
void waiting_tick(struct agents *agents);
/* Looks at all threads of a process; of all processes, if that is NULL. */
void waiting_look(struct agents *agents, const struct process *p);
