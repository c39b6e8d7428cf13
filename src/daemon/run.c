/* SPDX-License-Identifier: Apache-2.0 */
/* One loop, from the first sample to the last; and what it is told meanwhile. */
#include "daemon/state.h"

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/kernel.h"
#include "daemon/namer.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/shipper.h"
#include "daemon/steering.h"
#include "daemon/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS 100
#define LAST_TRIES 5            /* at the end, a second apart */
#define LARGE_BLOCK (128 << 10) /* bytes */
#define IDLE_MAX (4 << 20)      /* at the end of the heap */

/* ---- questions and signals ---- */

/* While an interval waits, what comes after it must stay where it is. */
static struct err *check_writer(const struct daemon *d)
{
	if (d->epoch_due)
		return err_new("an epoch that was asked for could not begin yet");
	return writer_waits(d->writer) ? err_new("%s", writer_problem(d->writer)) : NULL;
}

static struct err *next_epoch(struct daemon *d)
{
	struct err *e = check_writer(d);
	if (!e)
		e = daemon_drain(d, false);
	if (!e)
		e = check_writer(d);
	return e ? e : daemon_begin_epoch(d);
}

static void answer(struct daemon *d)
{
	const char *question = steering_question(d->steering);
	if (!question)
		return;
	struct err *e = strcmp(question, "epoch") ? err_new("what is '%.32s'?", question)
						  : next_epoch(d);
	if (e)
		steering_answer(d->steering, "error %s", err_text(e));
	else
		steering_answer(d->steering, "ok %" PRId64, writer_epoch(d->writer));
	err_free(e);
}

static bool same_sampling(const struct config *a, const struct config *b)
{
	bool same = a->hz == b->hz && a->every == b->every && a->event_count == b->event_count;
	for (size_t i = 0; same && i < a->event_count; i++)
		same = !strcmp(a->events[i], b->events[i]);
	return same;
}

/* Other events, another rate: another session, another epoch. What cannot be sampled leaves all as it
   was. */
static struct err *resample(struct daemon *d, const struct config *config)
{
	struct recording_options options;
	struct session *session;
	struct err *e = check_writer(d);
	if (!e)
		e = daemon_events(config, &options);
	if (!e)
		e = session_open(&options, &session);
	if (e)
		return e;
	e = daemon_drain(d, true);
	session_close(d->session);
	d->session = session;
	d->recording_options = options;
	d->epoch_due = true;
	daemon_begin_if_due(d);
	return e;
}

static bool same_fleet(const struct config *a, const struct config *b)
{
	return !strcmp(a->fleet, b->fleet) &&
	       (!*a->fleet ||
		(!strcmp(a->fleet_credentials, b->fleet_credentials) &&
		 !strcmp(a->fleet_ca, b->fleet_ca) && a->fleet_every_s == b->fleet_every_s &&
		 a->fleet_spool == b->fleet_spool && a->fleet_patience_ms == b->fleet_patience_ms));
}

/* What needs a restart goes on as it is, and is told each time. */
static void keep_fixed(struct config *c, const struct config *before)
{
	strcpy(c->database, before->database);
	strcpy(c->socket, before->socket);
	strcpy(c->fleet, before->fleet);
	strcpy(c->fleet_credentials, before->fleet_credentials);
	strcpy(c->fleet_ca, before->fleet_ca);
	c->fleet_every_s = before->fleet_every_s;
	c->fleet_spool = before->fleet_spool;
	c->fleet_patience_ms = before->fleet_patience_ms;
}

static struct err *reload(struct daemon *d)
{
	struct config config;
	struct err *e = daemon_settings(d->options, &config);
	if (e)
		return e;
	if (strcmp(config.database, d->config.database) != 0 ||
	    strcmp(config.socket, d->config.socket) != 0 || !same_fleet(&config, &d->config))
		daemon_say(d, CONFIG_WARNING, "another database, socket or fleet needs a restart");
	keep_fixed(&config, &d->config);
	if (!same_sampling(&config, &d->config))
		e = resample(d, &config);
	if (e)
		return e;
	d->config = config;
	daemon_say(d, CONFIG_INFO, "settings are read anew");
	return NULL;
}

static void on_reload(struct daemon *d)
{
	char text[96];
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 clock_ns(CLOCK_MONOTONIC) / 1000);
	notify(text);
	struct err *e = reload(d);
	if (e)
		daemon_say(d, CONFIG_ERROR, "settings stay as they were: %s", err_text(e));
	err_free(e);
	notify("READY=1");
}

static void hear_signals(struct daemon *d)
{
	struct signalfd_siginfo info;
	while (read(d->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGHUP)
			on_reload(d);
		else
			d->stop = true;
	}
}

/* ---- its life ---- */

/* What waits to be sent is in the database: with another one it begins anew, as soon as that can be
   written. */
static void follow_database(struct daemon *d)
{
	if (!d->moved)
		return;
	shipper_close(d->shipper);
	d->shipper = NULL;
	if (writer_waits(d->writer))
		return;
	d->moved = false;
	struct err *e = shipper_open(&d->config, d->writer, &d->shipper);
	if (e)
		daemon_say(d, CONFIG_ERROR,
			   *d->config.fleet ? "%s: nothing is sent on until a restart" : "%s",
			   err_text(e));
	err_free(e);
}

static void say_of_shipper(void *daemon, enum config_log level, const char *text)
{
	daemon_say(daemon, level, "%s", text);
}

static struct err *catch_signals(struct daemon *d)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signals < 0 ? err_errno("cannot wait for signals") : NULL;
}

/* Memory that was used once shall not stay: the end of what malloc has for other threads is never given back,
   and what is large has its own pages. */
static void keep_small(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	mallopt(M_TRIM_THRESHOLD, IDLE_MAX);
}

static struct err *open_all(struct daemon *d)
{
	char why[400], missing[400];
	int64_t newest_ms = INT64_MIN;
	keep_small();
	struct err *e = daemon_settings(d->options, &d->config);
	if (e)
		return e;
	if (!kernel_can_sample(why, sizeof why))
		return err_new("%s", why);
	here_read(&d->here);
	e = daemon_events(&d->config, &d->recording_options);
	if (!e)
		e = catch_signals(d);
	if (!e)
		e = writer_open(d->config.database, &d->writer);
	if (!e)
		e = steering_open(d->config.socket, &d->steering);
	if (!e)
		e = privileges_drop(missing, sizeof missing);
	if (!e && *missing)
		daemon_say(d, CONFIG_WARNING,
			   "without privileges that are missing it cannot know %s: run as root",
			   missing);
	if (!e)
		e = shipper_open(&d->config, d->writer, &d->shipper);
	if (!e)
		e = namer_open(d->recording_options.maker, &d->namer);
	if (!e)
		e = session_open(&d->recording_options, &d->session);
	d->drained_ns = daemon_now_ns();
	if (!e)
		e = writer_newest(d->writer, &newest_ms);
	wall_start(&d->wall, wall_now(), newest_ms);
	d->cpu_ns = 0; /* with what it took to begin */
	return e ? e : daemon_begin_epoch(d);
}

static struct err *run(struct daemon *d)
{
	struct err *e = NULL;
	notify("READY=1");
	while (!d->stop && !e) {
		struct pollfd ready[] = {{.fd = session_fd(d->session), .events = POLLIN},
					 {.fd = d->signals, .events = POLLIN},
					 {.fd = steering_fd(d->steering), .events = POLLIN}};
		if (poll(ready, 3, TICK_MS) < 0 && errno != EINTR)
			return err_errno("cannot wait");
		e = session_handle(d->session);
		daemon_mind(d);
		if (!e)
			e = daemon_drain_in_time(d);
		if (ready[1].revents)
			hear_signals(d);
		if (ready[2].revents && !d->stop)
			answer(d);
		daemon_tidy(d);
		follow_database(d);
		shipper_tick(d->shipper, say_of_shipper, d);
		daemon_feed_watchdog(d);
	}
	return e;
}

/* The one that waits, and then what came since. */
static struct err *finish(struct daemon *d)
{
	struct err *e = NULL;
	notify("STOPPING=1");
	for (int i = 0; i < LAST_TRIES && !d->broken; i++) {
		if (!writer_waits(d->writer) && !d->epoch_due)
			break;
		if (i)
			sleep(1);
		daemon_try_again(d);
	}
	e = daemon_drain(d, true);
	shipper_finish(d->shipper, say_of_shipper, d);
	if (!e && writer_unsaved(d->writer))
		e = err_new("%" PRIu64 " samples could not be written and are lost: %s",
			    writer_unsaved(d->writer), writer_problem(d->writer));
	if (!e)
		daemon_say(d, CONFIG_INFO, "stopped");
	return e;
}

static void close_all(struct daemon *d)
{
	session_close(d->session);
	steering_close(d->steering);
	shipper_close(d->shipper);
	writer_close(d->writer);
	namer_close(d->namer);
	if (d->signals >= 0)
		close(d->signals);
}

struct err *daemon_run(const struct daemon_options *o)
{
	struct daemon d = {.options = o, .signals = -1};
	struct err *e = open_all(&d);
	if (!e) {
		struct err *problem = run(&d);
		e = finish(&d);
		if (problem)
			err_free(e);
		e = problem ? problem : e;
	}
	close_all(&d);
	return e;
}
