/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A daemon that runs: run.c has its life and what it is told, work.c what it does again
 * and again.
 */
#include "collect/session.h"
#include "daemon/daemon.h"
#include "daemon/here.h"
#include "daemon/wall.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct err;
struct namer;
struct shipper;
struct steering;
struct writer;

struct daemon {
	const struct daemon_options *options;
	struct config config;
	struct recording_options recording_options;
	struct session *session;
	struct writer *writer;
	struct shipper *shipper; /* NULL: nothing is sent on */
	struct steering *steering;
	struct namer *namer;
	int signals;
	bool stop, broken;
	bool tidy_more, tidy_look; /* there is something to tidy; there may be */
	bool moved;                /* the database is another file since */
	bool epoch_due;            /* what comes is of another one, which could not begin yet */
	char note[96];             /* about the epoch that begins next */
	struct here here;
	struct wall wall;
	uint64_t drained_ns, retry_ns, tidy_ns, fed_ns, minded_ns; /* when that was last */
	uint64_t cpu_ns;                                           /* of ours, at the last drain */
	uint64_t waiting_since_ns, given_up; /* while the database takes nothing */
	enum daemon_counted {
		DAEMON_COUNTED, /* all of the time */
		DAEMON_COUNTED_IN_TURNS,
		DAEMON_COUNTED_NEVER,
	} counted[ARENA_METRICS_MAX]; /* as was said of each event */
};

/* Of a clock that nobody sets, and that goes on while the machine sleeps. */
uint64_t daemon_now_ns(void);
__attribute__((format(printf, 3, 4))) void daemon_say(const struct daemon *d, enum config_log level,
						      const char *format, ...);

/* From now on what comes is of another epoch. */
struct err *daemon_begin_epoch(struct daemon *d);
/* The same where one is due, as soon as that can be. */
void daemon_begin_if_due(struct daemon *d);
/* Takes away what was counted and writes it, or keeps it until it can be. */
struct err *daemon_drain(struct daemon *d, bool last);
/* What waits is tried again. */
void daemon_try_again(struct daemon *d);
/* Where the clock was set, or CPUs were switched on or off, another epoch is due. */
void daemon_mind(struct daemon *d);
/* What is due now. */
struct err *daemon_drain_in_time(struct daemon *d);
void daemon_tidy(struct daemon *d);
void daemon_feed_watchdog(struct daemon *d);
