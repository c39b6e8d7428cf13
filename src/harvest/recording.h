/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A recording that goes on: the options, the profile that grows, the modules that were met, and notes
   for the end. session.c opens it, and the samplers (collect/sampler.h) add to it. It knows neither of
   them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/build.h"
#include "safe/arena.h"

struct err;
struct kernel_names;
struct library;
struct pollfd;
struct probes;
struct process;
struct profile;

#define RECORDING_DEPTH 32768u /* frames of a path, by default */

/* An event to sample (collect/events.h makes them from names). */
struct recording_event {
	char name[64], unit[24];
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config, config1, config2;
	uint64_t period; /* in its unit, per sample: nanoseconds for clocks */
	uint64_t hz;     /* samples per second that were asked for; 0: every period-th event */
	bool clock;      /* cpu-clock, task-clock: CPU time of the thread */
	bool counter;    /* the CPU counts it, and has few counters */
	bool user_only;  /* only user code is sampled */
	uint8_t off; /* RECORDING_BLOCKED, RECORDING_QUEUED: time off the CPU that is sampled, too */
	uint8_t call; /* enum recording_call: the agent counts it when the program calls a function */
	uint8_t io;   /* enum recording_io: counted at each call that reads or writes */
	uint8_t probe; /* enum recording_probe: the kernel's sampler counts it at calls of functions */
};
/* Why a thread is off the CPU: it waits for something, or it could run, but has no CPU. */
#define RECORDING_BLOCKED 1u
#define RECORDING_QUEUED 2u

/* The metrics of the events `alloc`, `lock` and `mpi`, in this order. */
enum recording_call {
	RECORDING_CALL_NONE,
	RECORDING_HEAP_SAMPLES, /* its `period` is in bytes; 1: all allocations, 0: as it fits */
	RECORDING_HEAP_BYTES,
	RECORDING_HEAP_CALLS,
	RECORDING_HEAP_LIVE,
	RECORDING_HEAP_PEAK,
	RECORDING_HEAP_TEMPORARY,
	RECORDING_HEAP_BRIEF,
	RECORDING_HEAP_FREED,
	RECORDING_HEAP_LIFETIME, /* in ticks, until the profile is complete */
	RECORDING_HEAP_ELSEWHERE,
	RECORDING_HEAP_RELEASED,
	RECORDING_HEAP_WASTED,
	RECORDING_HEAP_GROWN,
	RECORDING_HEAP_MAPPED,
	RECORDING_HEAP_KEPT,
	RECORDING_LOCK_WAITS,
	RECORDING_LOCK_NS,
	RECORDING_LOCK_HELD,
	RECORDING_MPI_CALLS,
	RECORDING_MPI_NS,
};

/* The metrics of the event `io`, in this order. */
enum recording_io {
	RECORDING_IO_NONE,
	RECORDING_IO_SAMPLES, /* each call is one */
	RECORDING_IO_BYTES,
	RECORDING_IO_CALLS,
	RECORDING_IO_NS,
};

/* The metrics of probed functions, in this order. */
enum recording_probe {
	RECORDING_PROBE_NONE,
	RECORDING_PROBE_CALLS,
	RECORDING_PROBE_NS,
	RECORDING_PROBE_METRIC, /* and so on: those of struct probes */
};

struct recording_options {
	struct recording_event events[ARENA_METRICS_MAX];
	size_t event_count;
	uint64_t hz;
	bool timers; /* POSIX timers instead of perf events (for the first event, a clock) */
	enum recipes_mode unwind;
	bool frame_pointers; /* --unwind=fp */
	bool collapse;       /* bound recursion in the tree */
	bool timeline;       /* also notes when the samples of the first event came */
	bool follow;         /* follows the code at samples of the first event; agents only */
	bool calls;         /* counts returns, as a metric after those of the events; agents only */
	uint32_t max_depth; /* frames of a path; 0: RECORDING_DEPTH */
	const char *agent;  /* path of libculprit-agent.so */
	bool kernel;        /* the kernel samples (collect/kernel/kernel.h); no agent is needed */
	bool kernel_frames; /* functions of the kernel are frames, too, where they may be known */
	bool whole;         /* the whole machine is sampled, which only the kernel can do */
	bool drained;       /* there will be drains; only with `whole` */
	/* With `whole`: one of so many samples is walked, the others are counted. 0: all are walked. */
	uint32_t every;
	/* Functions whose calls the kernel's sampler counts, which are the caller's; NULL: none. */
	struct probes *probes;
	/* Programs that do what we had better not do ourselves; NULL: we do it. `maker` makes unwind
	   tables (library/maker.h). `reacher` opens files and reads memory of other processes
	   (process/reach.h), for the kernel's sampler. */
	const char *maker, *reacher;
	/* Called several times a second while everything else waits for unwind tables. `what` is the
	   file of the latest one. False: do not wait any longer, so that paths through such code stay
	   partial. NULL: always wait. */
	bool (*wait_on)(void *context, const char *what);
	void *wait_context;
};

struct recording_state { /* for progress and the summary */
	uint64_t samples, partial, lost;
	unsigned processes, threads, live;
	/* If the kernel samples: the records that it sent, and how many of these are copies of stacks. */
	uint64_t records, record_bytes, copies;
};

struct recording_counted {    /* samples that the kernel only counted */
	uint64_t samples, ns; /* ns: time that counting took */
	uint64_t places;      /* entries that came out of its tables */
	uint64_t evicted;     /* of these, because there was no room */
};

/* Who owns a process, in recordings with drains (session_drain). */
struct process_owner {
	int64_t start_ms;      /* since 1970; the same in all drains */
	const char *container; /* its id or control group; "": none */
	uint32_t user;
};

/* The profile while it grows (harvest/harvest.h). */
#define HARVEST_USERS 64
struct harvest {
	struct profile *profile;
	uint32_t *modules; /* by module id: index + 1 in the profile */
	/* The module of code made at run time that was last used: the index of its process, and its own
	   index + 1. */
	uint32_t jit_process, jit_module;
	uint32_t kernel_module;       /* its index, if `kernel` */
	bool kernel;                  /* there is such a module */
	struct objects *objects;      /* harvest/objects.h; NULL: none yet */
	struct process_owner *owners; /* of the profile's processes, if there will be drains */
	size_t owner_room;
	/* There will be drains: only a part is read of the name lists that processes write. */
	bool bounded;
	struct harvest_budget {
		uint32_t user;
		size_t left;      /* bytes */
	} budgets[HARVEST_USERS]; /* the last one is for all other users */
	size_t budget_count;
};

struct recording {
	struct recording_options options;
	struct library *library;
	struct harvest harvest;
	struct process *processes; /* those that are not forgotten yet */
	bool kernel_frames;        /* functions of the kernel are frames: harvest/kernel_frames.h */
	struct kernel_names *kernel_names; /* NULL: not read yet */
	uint64_t kernel_stamp;             /* of its modules when they were read */

	/* Of the recording, or of what comes after the last drain. */
	uint64_t start_ns, start_ticks;
	int64_t boot_ms; /* when the machine started, since 1970 */
	uint64_t random;

	/* Totals until now. */
	uint64_t samples, partial, lost;
	unsigned process_count, thread_count, idle_threads;
	struct {
		unsigned unsampled_threads, refused_processes, go_programs, damaged_trees, unkept;
		unsigned restricted_programs, lost_maps, own_code_threads;
		unsigned changed_processes; /* in which something of ours is left */
		uint64_t unseen_io;         /* calls that read or write in ways that are not seen */
		uint64_t unseen_bytes;      /* the same without root, as the kernel counts bytes */
		uint32_t uncounted;         /* ARENA_UNCOUNTED_…: why returns were not counted */
		const char *nameless_kernel; /* why the kernel's functions have no names */
		int unsampled_error;
		char go_name[64];
		char other_malloc
			[512]; /* a file whose malloc a program called instead of ours; "": none */
		char *refused_why, *changed_why;
	} notes;
};

/* Checks the options, and completes them. The caller makes the library and the harvest. */
struct err *recording_open(struct recording *r, const struct recording_options *options);
/* The time of the recording begins now. */
void recording_begin(struct recording *r);
/* Also after recording_open has failed. No process may be left. */
void recording_close(struct recording *r);
/* Returns how many metrics there are. */
uint32_t recording_metrics(const struct recording *r);
/* Returns a time as the profile has it: since the recording began. */
uint64_t recording_since(const struct recording *r, uint64_t ns);
/* Returns a random number. */
uint64_t recording_random(struct recording *r);
/* Counts samples that were lost, in the profile as well. */
void recording_lose(struct recording *r, const char *why, uint64_t samples);
/* Counts a failure if `e` is an error, and frees it. Returns whether all is well. */
bool recording_note_error(struct recording *r, struct err *e);
/* Waits for unwind tables that are being made, until the first of these descriptors is readable. Calls
   `meanwhile` if another one is. False: nobody wants to wait any longer (see wait_on). `what`: see
   there. */
bool recording_wait(const struct recording *r, const char *what, struct pollfd *ready, size_t count,
		    void (*meanwhile)(void *context), void *context);
