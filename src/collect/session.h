/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The collector's side of a recording: the socket on which agents announce
 * themselves, the tables that they are given, the arenas in which they count,
 * the perf events that make them sample, and the profile that comes of it.
 *
 *    session_open()
 *    start the command with session_environment()
 *    while (it runs) { poll(session_fd(), …); session_handle(); }
 *    session_finish() -> profile
 *
 * The collector holds every descriptor, the targets none: a target that closes
 * all of its descriptors, forks, execs or dies changes nothing; a collector
 * that dies takes the events with it, and the target runs on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "library/account.h"
#include "recipes/build.h"
#include "safe/arena.h"

struct err;
struct profile;
struct session;

/* An event to sample (collect/events.h makes them from names). */
struct session_event {
	char name[64], unit[24];
	uint32_t type; /* as in struct perf_event_attr */
	uint64_t config, config1, config2;
	uint64_t period; /* of its unit per sample: nanoseconds for clocks */
	uint64_t hz;     /* samples per second that were asked for; 0: every period-th event */
	bool clock;      /* cpu-clock, task-clock: CPU time of the thread */
	bool counter;    /* the CPU counts it, and has few counters */
	bool user_only;  /* the kernel allows no more */
};

struct session_options {
	struct session_event events[ARENA_METRICS_MAX];
	size_t event_count;
	uint64_t hz;
	bool timers; /* POSIX timers instead of perf events (for the first event, a clock) */
	enum recipes_mode unwind;
	bool frame_pointers; /* --unwind=fp */
	bool collapse;       /* bound recursion in the tree */
	bool timeline;       /* also when the samples of the first event came */
	uint32_t max_depth;  /* 0: the default */
	const char *agent;   /* path of libculprit-agent.so */
	bool kernel;         /* the kernel samples (collect/kernel.h), no agent is needed */
	bool whole;          /* the whole machine, which only the kernel can */
	bool drained;        /* there will be drains, of the whole machine */
	uint32_t every; /* of the whole machine, one of so many samples has its path; 0: each */
	const char
		*maker; /* program that makes unwind tables apart (library/maker.h); NULL: we do */
	const char *
		reacher; /* that opens and reads what others have (process/reach.h), for the kernel's sampler; NULL: we do */
	/* Asked several times a second while everything else waits for unwind tables, that of the file `what` last.
	   False: they are not waited for any longer, and paths through such code stay partial. NULL: they are. */
	bool (*wait_on)(void *context, const char *what);
	void *wait_context;
};

struct session_state { /* for progress and the summary */
	uint64_t samples, partial, lost;
	unsigned processes, threads, live;
	uint64_t elapsed_ns;
	/* where the kernel samples: what came out of it, and how many of those are copies of stacks */
	uint64_t records, record_bytes, copies;
};

struct err *session_open(const struct session_options *options, struct session **out);
void session_close(struct session *session); /* NULL is fine */

/* One descriptor (an epoll) that is readable when session_handle has something to do. */
int session_fd(const struct session *session);
/* Does what there is to do and returns at once; to be called at least every 100 ms too. */
struct err *session_handle(struct session *session);

/* The environment for the command: `environ` with LD_PRELOAD and the socket's name added;
   malloc'ed, NULL-terminated, the caller's (one free). */
char **session_environment(struct session *session, char **environment);

/* In the command's process, before exec: limits are as we found them, and it is sampled from
   then on. */
void session_child(struct session *session);

/* Samples a process that is there already, with all its threads and the children that it makes
   from now on. Only where the kernel samples. */
struct err *session_attach(struct session *session, pid_t pid);

void session_status(struct session *session, struct session_state *out);

/* What was counted until now, as a profile that the caller frees; the recording goes on. */
struct err *session_snapshot(struct session *session, struct profile **out);

/* A part of a recording of the whole machine, for those that go on for weeks. */
struct session_process {
	int64_t start_ms;      /* since 1970; the same in all drains */
	const char *container; /* its id or control group; "": in none */
	uint32_t user;
};
struct session_counted {      /* samples that the kernel counted by place */
	uint64_t samples, ns; /* ns: that it took for all */
	uint64_t places;      /* that came out of its tables for them */
	uint64_t evicted;     /* of these, for want of room */
};
struct session_drained {
	struct profile *profile; /* the caller's */
	struct session_process
		*processes; /* of the profile's; likewise (free); texts are the profile's */
	struct session_counted counted;
	struct library_account making;
};
/* What was counted since the last drain, each sample in one of them; what the session remembers of it
   is given up. `last`: sampling has ended before, everywhere. */
struct err *session_drain(struct session *session, bool last, struct session_drained *out);
void session_drained_free(struct session_drained *drained);
/* How large the profile is that the next drain will give: nodes, or values, whatever is more. */
size_t session_held(struct session *session);

/* Ends sampling everywhere and hands over the profile. `still_running`: processes that live on,
   without being sampled any more. */
struct err *session_finish(struct session *session, struct profile **out, unsigned *still_running);
