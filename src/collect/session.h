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

#include "harvest/recording.h"
#include "library/account.h"

struct err;
struct profile;
struct session;

struct err *session_open(const struct recording_options *options, struct session **out);
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

void session_status(struct session *session, struct recording_state *out);

/* What was counted until now, as a profile that the caller frees; the recording goes on. */
struct err *session_snapshot(struct session *session, struct profile **out);

/* A part of a recording of the whole machine, for those that go on for weeks. */
struct session_drained {
	struct profile *profile; /* the caller's */
	struct process_owner
		*processes; /* of the profile's; likewise (free); texts are the profile's */
	struct recording_counted counted;
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
