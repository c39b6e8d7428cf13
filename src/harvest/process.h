/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A process of a recording: who it is, what it has in memory, its place in the profile. The samplers add
   and forget processes. A number may mean one process after another, and a process may become another
   program by exec: each of these has a struct of its own. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct library_list;
struct process_agent;
struct process_kernel;
struct recording;
struct scripts;

struct process {
	struct process *next, *previous; /* in the recording */
	pid_t pid;                       /* its number as we see it */
	pid_t namespace_pid;             /* its number in its own namespace, as it sees itself */
	pid_t parent;
	int pidfd;        /* -1: there is none */
	bool gone;        /* ended, or replaced */
	bool replaced;    /* by exec: the process goes on as another struct process */
	uint16_t machine; /* ELF machine of its code: not ours in an emulator */
	/* `pid` is not a number of ours: it is in a namespace that we do not see into */
	bool foreign;
	uid_t user;
	char name[96]; /* see profile/process_name.h */
	char file[64]; /* name of its executable, when `name` was made */
	bool named;    /* it keeps that name, whatever it calls itself */
	char *command;
	int32_t rank, status;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t start_ms;          /* since 1970; 0: not read yet */
	char *container;           /* its id or control group; NULL: none, or not read yet */
	uint64_t described_ns;     /* when its name was last read */
	const struct library_list *list;
	uint64_t looked_ns;    /* when its memory map was last read because of a sample */
	uint32_t useless;      /* how many times in a row nothing was new */
	uint32_t profile;      /* index + 1 in the profile; 0: not there yet */
	uint32_t more_threads; /* index + 1 of the place that its threads beyond the limit share */
	bool unnamed_code;     /* it ran code of no module */
	struct scripts *scripts; /* its interpreted functions; NULL: none were called */
	/* What its sampler knows of it: one of the two, malloc'ed. */
	struct process_agent *agent;   /* collect/agents/state.h */
	struct process_kernel *kernel; /* collect/kernel/state.h */
};

/* Adds a process; NULL: no memory. `namespace_pid`: see above. */
struct process *process_add(struct recording *r, pid_t pid, pid_t namespace_pid);
/* Copies what a child has from its parent until it says otherwise. */
void process_inherit(struct process *p, const struct process *parent);
bool process_is_alive(const struct process *p);
/* Returns field `number` (from 1) of /proc/PID/stat, or -1. The name in field 2 may hold any characters. */
long process_stat_field(pid_t pid, unsigned number);
/* Reads its name as the kernel has it. */
void process_read_comm(struct process *p);
/* Reads what the process is called, if it can still be read. `first`: also reads its parent and its
   rank. */
void process_describe(struct recording *r, struct process *p, bool first);
/* The same for some processes whose names are old. */
void process_describe_some(struct recording *r, uint64_t now);
/* Sets when it began, as the kernel tells it at a fork. */
void process_born(const struct recording *r, struct process *p, uint64_t boot_ns);
/* Removes it from the recording, and frees it. */
void process_forget(struct recording *r, struct process *p);
