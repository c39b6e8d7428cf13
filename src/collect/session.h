/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A session: the collector's work on one recording. It has the recording (harvest/recording.h), an event
 * loop, and one of the two samplers (sampler.h), and makes the profile. recorder.c uses it, and so do
 * daemon/ and live/.
 *
 *    session_open()
 *    start the command with session_environment()
 *    while (it runs) { poll(session_fd(), …); session_handle(); }
 *    session_finish() -> profile
 *
 * The collector holds every descriptor, the targets none. So nothing changes if a target closes all of its
 * descriptors, forks, execs or dies. If the collector dies, the events end with it, and the target runs on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harvest/recording.h"
#include "library/account.h"

struct err;
struct profile;
struct session;

struct err *session_open(const struct recording_options *options, struct session **out);
void session_close(struct session *session); /* NULL is allowed */

/* Returns a descriptor (an epoll) that is readable when session_handle has something to do. */
int session_fd(const struct session *session);
/* Does what there is to do, and returns at once. Also call it at least every 100 ms. */
struct err *session_handle(struct session *session);

/* Returns the environment for the command. With agents, it is `environment` with LD_PRELOAD and the
   socket's name added. It is malloc'ed and NULL-terminated; the caller frees it (one free). */
char **session_environment(struct session *session, char **environment);

/* Call it in the command's process, before exec. Limits become as we found them, and the command is
   sampled from then on. */
void session_child(struct session *session);

/* Begins to sample a running process, with all its threads and the children that it makes from now on. With agents, one
   is loaded into it (AGENT_LATE). */
struct err *session_attach(struct session *session, pid_t pid);

/* Puts the probes into the process of the command that are for it alone. It must not have exec'd yet. */
struct err *session_probe(struct session *session, pid_t pid);
/* Puts those of the recording's probes in place that are fresh (harvest/probes.h). From `first` on they are new. */
struct err *session_probe_more(struct session *session, size_t first);
/* Takes the probes of a function away, by its number, from 1 on. */
void session_probe_less(struct session *session, uint32_t number);

void session_status(struct session *session, struct recording_state *out);

/* Makes a profile of what was counted until now, which the caller frees. The recording goes on. */
struct err *session_snapshot(struct session *session, struct profile **out);

/* A part of a recording of the whole machine that may go on for weeks. */
struct session_drained {
	struct profile *profile; /* the caller frees it */
	/* One for each process of the profile. The caller frees the array; its strings belong to the
	   profile. */
	struct process_owner *processes;
	struct recording_counted counted;
	struct library_account making;
};
/* Takes what was counted since the last drain. Each sample is in exactly one drain. Afterwards the
   session remembers nothing of it. `last`: ends sampling everywhere first. */
struct err *session_drain(struct session *session, bool last, struct session_drained *out);
void session_drained_free(struct session_drained *drained);
/* Returns how large the profile of the next drain will be: its nodes or its values, whichever are more. */
size_t session_held(struct session *session);

/* Ends sampling everywhere, and hands over the profile. `still_running`: how many processes live on,
   without being sampled any more. */
struct err *session_finish(struct session *session, struct profile **out, unsigned *still_running);
