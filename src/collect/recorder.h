/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes a recording of a command, of running processes, or of the whole machine: from the options to the
 * file. cmd/record.c uses it. Everything that can go wrong before a command starts is checked before it
 * starts. From then on the command comes first: whatever happens to the recording, it runs to its end.
 *
 *    recorder_open(&r, &options)
 *    recorder_run(&r)         until the command has ended, the time is over, or somebody presses Ctrl-C
 *    r.profile, r.problem:    what came of it
 *    recorder_close(&r)
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/args.h"
#include "base/buf.h"
#include "collect/target.h"
#include "harvest/recording.h"
#include "profile/output.h"

struct err;
struct live;
struct probes;
struct profile;
struct session;

enum recorder_unwind { UNWIND_AUTO, UNWIND_CFI, UNWIND_ANALYSIS, UNWIND_FP };
enum recorder_collector { COLLECTOR_AUTO, COLLECTOR_AGENT, COLLECTOR_KERNEL };

struct recorder_options {
	struct arg_list events, pids;
	uint64_t hz, max_depth;
	const char *output; /* NULL: no file */
	enum recorder_unwind unwind;
	enum recorder_collector collector;
	bool collapse, timeline, calls, follow, all, no_kernel;
	double seconds;      /* 0: to the command's end */
	char **command;      /* NULL: processes that run already */
	const char *version; /* of culprit, for the profile */
	const char *libdir;  /* where the agent is installed, relative to the prefix */
	/* Functions whose calls are counted, instead of samples; NULL: none. The caller's. */
	struct probes *probes;
	/* Called several times a second while it goes on; NULL: nobody wants to know. */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
	/* Called if sampling is over, and only the unwind table of this file is still waited for. */
	void (*say_what_waits)(const struct recorder_options *options, const char *file);
};

struct recorder {
	const struct recorder_options *options;
	struct recording_options wanted;
	struct session *session; /* NULL once sampling has ended */
	struct target target;
	struct live *live; /* for those who look at it meanwhile; NULL: nobody can */
	struct output output;
	struct profile *profile;
	struct recording_state state; /* when sampling ended */
	unsigned living;              /* processes that go on after the command */
	uint64_t start_ns, save_ns, interval_ns;
	uint64_t over_ns; /* since when only unwind tables are waited for */
	bool said;        /* people were told about that */
	bool stopped;     /* somebody has asked us to stop */
	char why_timers[400], agent[PATH_MAX];
	struct buf notes;    /* for people, one line each */
	struct err *problem; /* what ended sampling, or kept the profile from being saved */
};

/* Takes out what a collector that was killed has left in a process: probes of the kernel on top of it would crash that. An
   error: somebody else counts there. */
struct err *recorder_clear_probes(pid_t pid);
/* Whether the processes of these options can count their own calls; an error says why not. */
struct err *recorder_check_probes(const struct recorder_options *options);
struct err *recorder_open(struct recorder *r, const struct recorder_options *options);
void recorder_run(struct recorder *r);
/* Also after recorder_open has failed. */
void recorder_close(struct recorder *r);
