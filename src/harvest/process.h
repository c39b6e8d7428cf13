/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A process of a recording: who it is, what it has in memory, its place in the profile. A number may mean one
 * process after another, and a process may become another program: that is another one of these, too.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct library_list;
struct process_agent;
struct process_kernel;
struct recording;

struct process {
	struct process *next, *previous; /* in the recording */
	pid_t pid;                       /* as we see it */
	pid_t own; /* as it sees itself: another one in a namespace of its own */
	pid_t parent;
	int pidfd;        /* -1: there was no descriptor for it */
	bool gone;        /* ended, or replaced */
	bool replaced;    /* by a new image: the process goes on as another one of ours */
	uint16_t machine; /* ELF machine of its code: another one than ours in an emulator */
	bool foreign; /* a number that is not one of ours: in a namespace that we do not see into */
	uid_t user;
	char name[96]; /* profile/process_name.h */
	char file[64]; /* the name of its file, when it was named */
	bool named;    /* it goes on with that name, whatever it calls itself */
	char *command;
	int32_t rank, status;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t start_ms;          /* since 1970; 0: nobody has asked yet */
	char *container;           /* the same; NULL: none */
	uint64_t described_ns;     /* when its name was looked at last */
	const struct library_list *list;
	uint64_t looked_ns;    /* when its memory was looked at for the sake of a sample */
	uint32_t useless;      /* how often in a row nothing was new */
	uint32_t profile;      /* its index there + 1; 0: not there yet */
	uint32_t more_threads; /* index + 1 of what stands for the threads beyond the limit */
	bool unnamed_code;     /* it ran code of no module */
	/* What its sampler knows of it: one of the two, from malloc. */
	struct process_agent *agent;   /* collect/agents/state.h */
	struct process_kernel *kernel; /* collect/kernel/state.h */
};

/* NULL: no memory. `own`: see above. */
struct process *process_add(struct recording *r, pid_t pid, pid_t own);
/* A child is like its parent until it says otherwise. */
void process_inherit(struct process *p, const struct process *parent);
bool process_is_alive(const struct process *p);
/* Field `number` (from 1) of /proc/PID/stat, or -1. The name before may hold anything. */
long process_stat_field(pid_t pid, unsigned number);
/* Its name as the kernel has it. */
void process_read_comm(struct process *p);
/* Reads anew what the process is called, if it can still be read. */
void process_describe(struct recording *r, struct process *p, bool first);
/* The same for some of those whose names are old. */
void process_describe_some(struct recording *r, uint64_t now);
/* When it began, as the kernel tells it at a fork. */
void process_born(const struct recording *r, struct process *p, uint64_t boot_ns);
/* Frees it. */
void process_forget(struct recording *r, struct process *p);
