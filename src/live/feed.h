/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the profiles of a recording come from while it goes on: a recorder of
 * our user that is asked (collect/live.h), without one the file as it is; or
 * processes that we record ourselves.
 *
 *    feed_ask(s);
 *    poll(feed_fds(s, …));
 *    feed_handle(s, &profile)      now and then with a profile
 */
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct profile;
struct feed;

enum feed_state {
	FEED_GOING, /* more will come */
	FEED_ENDED, /* it is whole */
	FEED_CUT,   /* it is not whole, and nobody is there to go on with it */
};

#define FEED_FDS 1
#define FEED_TICK_MS 100 /* feed_handle is to be called that often, too */

/* An error where there is no such recording, or it is another user's. `counted`: a file that has counts of paths alone is fine, too. */
struct err *feed_open_file(const char *path, bool counted, struct feed **out);

struct feed_processes {
	const pid_t *pids;
	size_t count;
	uint64_t hz;
	const char *version; /* of the program */
	const char *libdir;  /* where its agent is installed, relative to the prefix */
};
/* Begins to record: that may take a while. */
struct err *feed_open_processes(const struct feed_processes *wanted, struct feed **out);
void feed_close(struct feed *feed); /* NULL is fine */

enum feed_state feed_state(const struct feed *feed);

/* Says that a newer profile is welcome. */
void feed_ask(struct feed *feed);
/* Fills in what to wait for and returns how many. */
size_t feed_fds(const struct feed *feed, struct pollfd fds[FEED_FDS]);
/* Returns at once; *profile is the caller's, or NULL where there is none newer. */
struct err *feed_handle(struct feed *feed, struct profile **profile);

/* Ends a recording of our own: *profile is all of it; NULL where somebody else records. */
struct err *feed_finish(struct feed *feed, struct profile **profile);
