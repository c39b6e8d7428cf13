/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The processes and threads that are sampled. kernel.c passes on the records of forks, execs and exits.
   The other files of this folder look up processes and threads here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct kernel_ended;
struct kernel_task;
struct kernel_thread;
struct kernel_told;
struct process;

/* Adds a process that started before us. False: no memory. */
bool tasks_attach(struct kernel *k, pid_t pid);
/* Adds all processes of the machine. */
void tasks_scan(struct kernel *k);
/* Handle the records of a fork, an exec and an exit. */
void tasks_forked(struct kernel *k, const struct kernel_task *t);
void tasks_executed(struct kernel *k, const struct kernel_task *t);
void tasks_exited(struct kernel *k, const struct kernel_task *t);
/* Returns the process that has this number now; NULL: none. */
struct process *tasks_find_process(const struct kernel *k, pid_t pid);
/* Returns the nearest ancestor that is alive; 0: none. Most probably it sees the same files. */
pid_t tasks_relative(const struct kernel *k, const struct process *p);
/* Whether this thread is known. */
bool tasks_has_thread(const struct kernel *k, pid_t thread);
/* Whether there is such a process, or was a moment ago. */
bool tasks_has_process(const struct kernel *k, pid_t process);
/* Forgets what has ended. In a recording of the whole machine it waits a while, since the kernel still
   works for processes that have ended. */
void tasks_reap(struct kernel *k);
/* Returns the thread of a sample, and adds it if it was not known; NULL: no memory. */
struct kernel_thread *tasks_find(struct kernel *k, pid_t process, pid_t thread);
/* Returns a thread that has ended a moment ago; NULL: none that is in the profile. */
const struct kernel_ended *tasks_ended(const struct kernel *k, pid_t process, pid_t tid);
/* Notes all time of a thread that is alive at the end. */
void tasks_add_sums(struct kernel *k, const struct kernel_told *told);
/* Reads the names of some threads again. */
void tasks_name(struct kernel *k);
/* Gives a thread its place in the profile, and returns the index. */
struct err *tasks_place(struct kernel *k, struct kernel_thread *t, uint32_t *index);
/* The same for a thread that may have ended since. */
struct err *tasks_place_ended(struct kernel *k, struct process *p, pid_t tid, uint32_t *index);
/* Returns the process that counted samples belong to; NULL: no memory. `changes` tells which of the
   programs it was that the process has been. */
struct process *tasks_process(struct kernel *k, pid_t process, uint32_t changes);
/* Returns the index of the thread in the profile that stands for all threads of the process. */
struct err *tasks_place_process(struct kernel *k, struct process *p, uint32_t *index);
/* Adds the cost of samples that were only counted. */
void tasks_add_cost(struct kernel *k, struct process *p, uint64_t samples, uint64_t ns);
/* Ends all threads of a process; NULL: of all processes. */
void tasks_finish(struct kernel *k, const struct process *p);
/* Puts the totals of living threads into the profile, before a drain. */
void tasks_add_totals(struct kernel *k);
/* A new profile begins, in which no thread has a place yet. */
void tasks_restart(struct kernel *k);
/* Ends and forgets all processes. */
void tasks_forget_all(struct kernel *k);
void tasks_close(struct kernel *k);
