/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who is sampled: processes and threads come and go. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct kernel_task;
struct kernel_thread;
struct process;

/* A process that was there before us. */
bool tasks_attach(struct kernel *k, pid_t pid);
/* All of them. */
void tasks_scan(struct kernel *k);
void tasks_forked(struct kernel *k, const struct kernel_task *t);
void tasks_executed(struct kernel *k, const struct kernel_task *t);
void tasks_exited(struct kernel *k, const struct kernel_task *t);
/* The process that has this number now; NULL: none. */
struct process *tasks_find_process(const struct kernel *k, pid_t pid);
/* The nearest one that it comes from and that lives: it sees the same files, most probably. 0: none. */
pid_t tasks_relative(const struct kernel *k, const struct process *p);
bool tasks_known(const struct kernel *k, pid_t thread);
/* Whether there is such a process, or was a moment ago. */
bool tasks_has(const struct kernel *k, pid_t process);
/* Forgets what has ended; in a recording of the whole machine a while after that, since the kernel
   goes on working for it. */
void tasks_reap(struct kernel *k);
/* The thread of a sample, made where it was not known; NULL where there is no memory. */
struct kernel_thread *tasks_find(struct kernel *k, pid_t process, pid_t thread);
/* Looks at the names of threads again, of some at a time. */
void tasks_name(struct kernel *k);
/* The thread's index in the profile. */
struct err *tasks_keep(struct kernel *k, struct kernel_thread *t, uint32_t *index);
/* The same for a thread that may have ended since. */
struct err *tasks_keep_again(struct kernel *k, struct process *p, pid_t tid, uint32_t *index);
/* What stands for a process whose threads are not told apart; NULL: no memory. `changes` tells which of
   the programs that it has been. */
struct process *tasks_process(struct kernel *k, pid_t process, uint32_t changes);
struct err *tasks_keep_process(struct kernel *k, struct process *p, uint32_t *index);
/* Samples of it that were handled elsewhere. */
void tasks_add_cost(struct kernel *k, struct process *p, uint64_t samples, uint64_t ns);
/* Ends all of a process's threads, or (NULL) of all. */
void tasks_finish(struct kernel *k, const struct process *p);
/* What threads that go on took until now goes into the profile. */
void tasks_settle(struct kernel *k);
/* The profile is another one from now on. */
void tasks_restart(struct kernel *k);
/* All processes end for us. */
void tasks_forget_all(struct kernel *k);
void tasks_close(struct kernel *k);
