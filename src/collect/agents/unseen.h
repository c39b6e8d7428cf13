/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much processes read and write in ways that agents do not see (-e io): the kernel counts all bytes that a process
   moves by descriptors, and the agent those of them that it sees (arena_thread.moved). Bytes of functions for sockets alone
   (recv, send) are in neither, nor are those of mapped files and io_uring. */
struct agents;
struct arena_thread;
struct process;

/* A process is there. */
void unseen_open(struct agents *agents, struct process *p);
/* A program has begun in it: what was read before, as its libraries, does not count. */
void unseen_begin(struct process *p);
/* A thread of the process has ended. */
void unseen_add(struct process *p, const struct arena_thread *record);
/* The process ends, and its threads are not counted yet. If it is gone already, nothing is known. */
void unseen_look(struct process *p);
/* Its threads are counted: the difference is noted in the recording. */
void unseen_end(struct agents *agents, struct process *p);
