/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording that goes on: what was asked for, the profile that grows, the modules that were met, and what is
 * to be said of it at the end. Whoever samples adds to it (collect/sampler.h); it knows none of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/build.h"
#include "safe/arena.h"

struct err;
struct library;
struct pollfd;
struct process;
struct profile;

#define RECORDING_DEPTH 32768u /* frames of a path, where nothing else was asked for */

/* An event to sample (collect/events.h makes them from names). */
struct recording_event {
	char name[64], unit[24];
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config, config1, config2;
	uint64_t period; /* of its unit per sample: nanoseconds for clocks */
	uint64_t hz;     /* samples per second that were asked for; 0: every period-th event */
	bool clock;      /* cpu-clock, task-clock: CPU time of the thread */
	bool counter;    /* the CPU counts it, and has few counters */
	bool user_only;  /* the kernel allows no more */
};

struct recording_options {
	struct recording_event events[ARENA_METRICS_MAX];
	size_t event_count;
	uint64_t hz;
	bool timers; /* POSIX timers instead of perf events (for the first event, a clock) */
	enum recipes_mode unwind;
	bool frame_pointers; /* --unwind=fp */
	bool collapse;       /* bound recursion in the tree */
	bool timeline;       /* also when the samples of the first event came */
	uint32_t max_depth;  /* frames of a path; 0: RECORDING_DEPTH */
	const char *agent;   /* path of libculprit-agent.so */
	bool kernel;         /* the kernel samples (collect/kernel/kernel.h), no agent is needed */
	bool whole;          /* the whole machine, which only the kernel can */
	bool drained;        /* there will be drains, of the whole machine */
	uint32_t every; /* of the whole machine, one of so many samples has its path; 0: each */
	/* Programs that do for us what we had better not do ourselves; NULL: we do. One makes unwind tables
	   (library/maker.h), one opens and reads what others have (process/reach.h), for the kernel's sampler. */
	const char *maker, *reacher;
	/* Asked several times a second while everything else waits for unwind tables, that of the file `what` last.
	   False: they are not waited for any longer, and paths through such code stay partial. NULL: they are. */
	bool (*wait_on)(void *context, const char *what);
	void *wait_context;
};

struct recording_state { /* for progress and the summary */
	uint64_t samples, partial, lost;
	unsigned processes, threads, live;
	uint64_t elapsed_ns;
	/* where the kernel samples: what came out of it, and how many of those are copies of stacks */
	uint64_t records, record_bytes, copies;
};

struct recording_counted {    /* samples that the kernel counted by place */
	uint64_t samples, ns; /* ns: that it took for all */
	uint64_t places;      /* that came out of its tables for them */
	uint64_t evicted;     /* of these, for want of room */
};

/* Whose a process is, in recordings that are taken away in parts (session_drain). */
struct process_owner {
	int64_t start_ms;      /* since 1970; the same in all drains */
	const char *container; /* its id or control group; "": in none */
	uint32_t user;
};

/* The profile while it grows (harvest/harvest.h). */
#define HARVEST_USERS 64
struct harvest {
	struct profile *profile;
	uint32_t *modules;                /* by module id: index in the profile + 1 */
	uint32_t jit_process, jit_module; /* the last one asked for: index + 1 */
	uint32_t kernel_module;           /* index */
	bool kernel;                      /* there is one */
	struct process_owner *owners; /* of the profile's processes, where there will be drains */
	size_t owner_room;
	bool bounded; /* there will be drains: what processes write of themselves is not all read */
	struct harvest_budget {
		uint32_t user;
		size_t left;      /* bytes */
	} budgets[HARVEST_USERS]; /* the last one is for all others */
	size_t budget_count;
};

struct recording {
	struct recording_options options;
	struct library *library;
	struct harvest harvest;
	struct process *processes; /* those that are not forgotten yet */

	uint64_t start_ns, start_ticks; /* of the recording, or what comes after the last drain */
	int64_t boot_ms;                /* since 1970 */
	uint64_t random;

	/* what there was until now */
	uint64_t samples, partial, lost;
	unsigned process_count, thread_count, idle_threads;
	struct {
		unsigned unsampled_threads, refused_processes, go_programs, damaged_trees, unkept;
		unsigned restricted_programs, lost_maps, outside_threads;
		const char *nameless_kernel; /* why its functions have no names */
		int unsampled_error;
		char go_name[64];
		char *refused_why;
	} notes;
};

/* Checks the options, and completes them. The library and the harvest are yet to be made. */
struct err *recording_open(struct recording *r, const struct recording_options *options);
/* Also where opening failed; no process is left. */
void recording_close(struct recording *r);
/* As a profile has it: since the recording began. */
uint64_t recording_since(const struct recording *r, uint64_t ns);
/* A number by chance. */
uint64_t recording_random(struct recording *r);
/* Samples that nobody will see: they are in the profile as such. */
void recording_lose(struct recording *r, const char *why, uint64_t samples);
/* Something could not be kept, where `e` says so. Frees it; whether all is well. */
bool recording_kept(struct recording *r, struct err *e);
/* Waits until the first of these descriptors is readable, for unwind tables that are being made; calls `meanwhile`
   when another one is. False: nobody wants to wait any longer (see wait_on). `what`: see there. */
bool recording_wait(const struct recording *r, const char *what, struct pollfd *ready, size_t count,
		    void (*meanwhile)(void *context), void *context);
