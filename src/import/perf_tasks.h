/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes and threads of a recording, as its records tell them one after
 * the other, and what each process has in memory. A forked process shares its
 * parent's list of mappings until one of them maps something.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/walk.h"

struct binaries;
struct binary;
struct err;
struct profile;
struct perf_tasks;

struct task_process {
	struct task_process *chain;
	int32_t pid, parent;
	char name[64];
	struct task_space *space;
	uint64_t start, end; /* times of records; 0: not told */
	uint32_t images;     /* counts execs whose old program has samples */
	uint32_t profile;    /* its number there + 1; 0: not in it yet */
	uint32_t made_code;  /* number + 1 of its module of code made at run time; 0: none */
};

struct task_thread {
	struct task_thread *chain;
	struct task_process *process;
	int32_t tid;
	char name[64];
	uint64_t start, end;
	uint32_t image; /* of its process, that `profile` is for */
	uint32_t profile;
};

struct perf_tasks *perf_tasks_new(struct binaries *binaries);
void perf_tasks_free(struct perf_tasks *tasks); /* NULL is fine */

/* Mappings that were not kept: there were too many. */
uint64_t perf_tasks_unkept(const struct perf_tasks *tasks);

/* What records say. They return an error without memory. */
/* `other`: it runs another program than its parent by now, as those that ran before perf did. */
struct err *perf_tasks_fork(struct perf_tasks *tasks, int32_t pid, int32_t parent, int32_t tid,
			    bool other, uint64_t time);
void perf_tasks_exit(struct perf_tasks *tasks, int32_t pid, int32_t tid, uint64_t time);
struct err *perf_tasks_name(struct perf_tasks *tasks, int32_t pid, int32_t tid, const char *name,
			    bool exec, uint64_t time);
/* `binary` NULL: memory that the program made executable. */
struct err *perf_tasks_map(struct perf_tasks *tasks, int32_t pid, uint64_t start, uint64_t size,
			   uint64_t offset, struct binary *binary);

/* The thread, made up where no record told of it. NULL without memory. */
struct task_thread *perf_tasks_thread(struct perf_tasks *tasks, int32_t pid, int32_t tid);
/* All code of a process; its binaries are opened. Empty without memory. */
struct walk_space perf_tasks_walk(struct perf_tasks *tasks, struct task_process *process);

/* The thread's number in the profile, where it is added with its process; times count from
   `base`. */
struct err *perf_tasks_keep(struct task_thread *thread, struct profile *profile, uint64_t base,
			    uint32_t *index);
/* Writes names and ends that came after a thread was kept. */
void perf_tasks_finish(struct perf_tasks *tasks, struct profile *profile, uint64_t base,
		       uint64_t end);
/* For each process that is in the profile. */
void perf_tasks_each(struct perf_tasks *tasks,
		     void (*visit)(void *context, struct task_process *process), void *context);
