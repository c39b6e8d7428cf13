/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop. The kernel samples; every so often what came is taken away and put
 * into the database as an interval. Where that takes nothing (the disk is full),
 * the interval waits, and what comes meanwhile stays in the session, as far as
 * there is room for it; the rest is counted as lost.
 */
#include "cmd/daemon.h"

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "collect/kernel.h"
#include "collect/session.h"
#include "daemon/steering.h"
#include "daemon/here.h"
#include "daemon/interval.h"
#include "daemon/namer.h"
#include "daemon/notify.h"
#include "daemon/shipper.h"
#include "daemon/writer.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define TICK_MS 100
#define HELD_MAX 50000u /* nodes or values: then it is time to drain */
#define RETRY_NS (2 * SECOND_NS)
#define TIDY_NS SECOND_NS
#define LAST_TRIES 5 /* at the end, a second apart */

struct daemon {
	const struct daemon_options *options;
	struct config config;
	struct session_options session_options;
	struct session *session;
	struct writer *writer;
	struct shipper *shipper; /* NULL: nothing is sent on */
	struct steering *steering;
	struct namer *namer;
	int signals;
	bool stop, tidy_more, broken;
	bool epoch_due; /* what comes is of another one, which could not begin yet */
	struct here here;
	uint64_t drained_ns, retry_ns, tidy_ns, fed_ns; /* when that was last */
	uint64_t cpu_ns;                                /* of ours, at the last drain */
	uint64_t waiting_since_ns, given_up;            /* while the database takes nothing */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Time goes on while the machine sleeps. */
static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

/* The journal knows how bad a line is by what stands before it (sd-daemon(3)). */
__attribute__((format(printf, 3, 4))) static void say(const struct daemon *d, enum config_log level,
						      const char *format, ...)
{
	static const int priorities[] = {3, 4, 6, 7};
	struct buf line = {0};
	char text[2048];
	va_list arguments;
	if (level > d->config.log)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (getenv("JOURNAL_STREAM"))
		buf_printf(&line, "<%d>", priorities[level]);
	buf_printf(&line, "culprit daemon: %s\n", text);
	fputs(buf_text(&line), stderr);
	buf_free(&line);
}

static void say_of_shipper(void *daemon, enum config_log level, const char *text)
{
	say(daemon, level, "%s", text);
}

/* Epochs */

static struct err *begin_epoch(struct daemon *d)
{
	struct store_event events[ARENA_METRICS_MAX];
	for (size_t i = 0; i < d->session_options.event_count; i++) {
		const struct session_event *x = &d->session_options.events[i];
		events[i] = (struct store_event){x->name, x->unit, x->period,
						 d->session_options.every, x->user_only};
	}
	struct store_epoch epoch = {.host = d->here.host,
				    .kernel = d->here.kernel,
				    .machine = d->here.machine,
				    .cpu = d->here.cpu,
				    .version = CULPRIT_VERSION,
				    .note = "",
				    .cpus = d->here.cpus,
				    .hz = d->session_options.hz,
				    .start_ms = now_ms(),
				    .events = events,
				    .event_count = d->session_options.event_count};
	struct err *e = writer_begin(d->writer, &epoch);
	if (!e)
		say(d, CONFIG_INFO,
		    "epoch %" PRId64 ": %" PRIu64 " samples a second of %s on each of %u CPUs",
		    writer_epoch(d->writer), epoch.hz, events[0].name, epoch.cpus);
	return e;
}

/* Intervals */

static uint64_t resident(void)
{
	unsigned long long size, pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file && fscanf(file, "%llu %llu", &size, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The clock may have been set meanwhile: how long it was is told by another one. */
static void set_times(struct daemon *d, struct interval *v)
{
	uint64_t now = now_ns(), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	v->rows.end_ms = now_ms();
	v->rows.start_ms = v->rows.end_ms - (int64_t)((now - d->drained_ns) / 1000000);
	v->rows.cost.cpu_ns = cpu - d->cpu_ns;
	v->rows.cost.memory = resident();
	d->cpu_ns = cpu;
	d->drained_ns = now;
}

/* Said once, until it takes them again. */
static void say_it_waits(struct daemon *d, const char *why)
{
	if (d->waiting_since_ns)
		return;
	d->waiting_since_ns = now_ns();
	say(d, CONFIG_ERROR, "%s: samples are kept in memory until it can be written", why);
}

/* Says what has become of an interval, when that changes. */
static void settle(struct daemon *d, enum writer_result result)
{
	if (result == WRITER_STORED && d->waiting_since_ns) {
		say(d, CONFIG_WARNING,
		    "the database takes samples again, after %.0f s; %" PRIu64 " samples are lost",
		    (double)(now_ns() - d->waiting_since_ns) / 1e9, d->given_up);
		d->waiting_since_ns = d->given_up = 0;
	} else if (result == WRITER_WAITS) {
		say_it_waits(d, writer_problem(d->writer));
	} else if (result == WRITER_BROKEN) {
		d->broken = d->stop = true;
	}
	d->tidy_more |= result == WRITER_STORED;
}

static void report_interval(const struct daemon *d, const struct interval *v)
{
	say(d, CONFIG_DEBUG,
	    "%" PRIu64 " samples of %zu processes in %" PRId64 " ms: %zu places, %zu paths, %zu "
	    "functions; %.1f ms of our CPU time, %" PRIu64 " kB",
	    v->samples, v->rows.process_count, v->rows.end_ms - v->rows.start_ms,
	    v->rows.count_count, v->rows.path_count, v->rows.symbol_count,
	    (double)v->rows.cost.cpu_ns / 1e6, v->rows.cost.memory / 1024);
	const struct session_counted *c = &v->from.counted;
	uint64_t walked = v->samples > c->samples ? v->samples - c->samples : 0;
	if (c->samples && walked)
		say(d, CONFIG_DEBUG,
		    "%" PRIu64 " of them counted in the kernel, %" PRIu64 " ns each, as %" PRIu64
		    " places, %" PRIu64 " for want of room; %" PRIu64 " others, %" PRIu64
		    " ns each",
		    c->samples, c->ns / c->samples, c->places, c->evicted, walked,
		    (v->rows.cost.kernel_ns - c->ns) / walked);
}

/* Whether there is an epoch for what comes. */
static bool begin_if_due(struct daemon *d)
{
	struct err *e = d->epoch_due && !writer_waits(d->writer) ? begin_epoch(d) : NULL;
	if (e)
		say_it_waits(d, err_text(e));
	else if (!writer_waits(d->writer))
		d->epoch_due = false;
	err_free(e);
	return !d->epoch_due;
}

/* While one waits there is no place for another. */
static void give_up(struct daemon *d, struct session_drained *drained)
{
	uint64_t samples = 0;
	for (uint32_t i = 0; i < drained->profile->metric_count; i++)
		samples += profile_samples(drained->profile, i);
	d->given_up += samples;
	writer_lose(d->writer, samples);
	session_drained_free(drained);
}

static struct err *drain(struct daemon *d, bool last)
{
	struct session_drained drained;
	struct interval v;
	struct err *e = session_drain(d->session, last, &drained);
	if (e)
		return e;
	if (writer_waits(d->writer) || d->epoch_due) {
		give_up(d, &drained);
		return NULL;
	}
	e = interval_make(&drained, d->namer, d->here.boot, &v);
	if (e) {
		interval_free(&v);
		return e;
	}
	malloc_trim(0); /* of tables that were made meanwhile */
	set_times(d, &v);
	report_interval(d, &v);
	settle(d, writer_add(d->writer, &v));
	return NULL;
}

/* What is due */

static bool is_due(uint64_t *last_ns, uint64_t every_ns)
{
	uint64_t now = now_ns();
	if (now - *last_ns < every_ns)
		return false;
	*last_ns = now;
	return true;
}

static void try_again(struct daemon *d)
{
	if (writer_waits(d->writer))
		settle(d, writer_retry(d->writer));
	begin_if_due(d);
}

static struct err *drain_in_time(struct daemon *d)
{
	bool many = session_held(d->session) > HELD_MAX;
	bool late = now_ns() - d->drained_ns >= d->config.interval_s * SECOND_NS;
	if (writer_waits(d->writer) || d->epoch_due) {
		if (is_due(&d->retry_ns, RETRY_NS))
			try_again(d);
		bool waits = writer_waits(d->writer) || d->epoch_due;
		return many && waits ? drain(d, false) : NULL;
	}
	return many || late ? drain(d, false) : NULL;
}

static void tidy(struct daemon *d)
{
	struct store_policy policy = store_policy;
	if (!d->tidy_more || writer_waits(d->writer) || !is_due(&d->tidy_ns, TIDY_NS))
		return;
	policy.keep_s = d->config.keep_s;
	policy.max_bytes = d->config.max_bytes;
	struct err *e = writer_tidy(d->writer, &policy, now_ms(), &d->tidy_more);
	if (e)
		say(d, CONFIG_WARNING, "%s", err_text(e));
	err_free(e);
}

static void feed_watchdog(struct daemon *d)
{
	uint64_t every = notify_watchdog_ns();
	if (every && is_due(&d->fed_ns, every))
		notify("WATCHDOG=1");
}

/* Questions and signals */

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
		e = drain(d, false);
	if (!e)
		e = check_writer(d);
	return e ? e : begin_epoch(d);
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
	struct session_options options;
	struct session *session;
	struct err *e = check_writer(d);
	if (!e)
		e = daemon_events(config, &options);
	if (!e)
		e = session_open(&options, &session);
	if (e)
		return e;
	e = drain(d, true);
	session_close(d->session);
	d->session = session;
	d->session_options = options;
	d->epoch_due = true;
	begin_if_due(d);
	return e;
}

static struct err *reload(struct daemon *d)
{
	struct config config;
	struct err *e = daemon_settings(d->options, &config);
	if (e)
		return e;
	if (strcmp(config.database, d->config.database) != 0 ||
	    strcmp(config.socket, d->config.socket) != 0 ||
	    strcmp(config.fleet, d->config.fleet) != 0)
		say(d, CONFIG_WARNING, "another database, socket or fleet needs a restart");
	strcpy(config.database, d->config.database);
	strcpy(config.socket, d->config.socket);
	strcpy(config.fleet, d->config.fleet);
	if (!same_sampling(&config, &d->config))
		e = resample(d, &config);
	if (e)
		return e;
	d->config = config;
	say(d, CONFIG_INFO, "settings are read anew");
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
		say(d, CONFIG_ERROR, "settings stay as they were: %s", err_text(e));
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

/* Its life */

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

static struct err *open_all(struct daemon *d)
{
	char why[400];
	struct err *e = daemon_settings(d->options, &d->config);
	if (e)
		return e;
	if (!kernel_can(why, sizeof why))
		return err_new("%s", why);
	here_read(&d->here);
	e = daemon_events(&d->config, &d->session_options);
	if (!e)
		e = catch_signals(d);
	if (!e)
		e = writer_open(d->config.database, &d->writer);
	if (!e)
		e = shipper_open(&d->config, d->writer, &d->shipper);
	if (!e)
		e = steering_open(d->config.socket, &d->steering);
	if (!e)
		e = namer_open(&d->namer);
	if (!e)
		e = session_open(&d->session_options, &d->session);
	d->drained_ns = now_ns();
	d->cpu_ns = 0; /* with what it took to begin */
	return e ? e : begin_epoch(d);
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
		if (!e)
			e = drain_in_time(d);
		if (ready[1].revents)
			hear_signals(d);
		if (ready[2].revents && !d->stop)
			answer(d);
		tidy(d);
		shipper_tick(d->shipper, say_of_shipper, d);
		feed_watchdog(d);
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
		try_again(d);
	}
	if (!d->broken)
		e = drain(d, true);
	shipper_finish(d->shipper, say_of_shipper, d);
	if (!e && d->broken)
		return err_new("%s", writer_problem(d->writer));
	if (!e && writer_unsaved(d->writer))
		e = err_new("%" PRIu64 " samples could not be written and are lost: %s",
			    writer_unsaved(d->writer), writer_problem(d->writer));
	if (!e)
		say(d, CONFIG_INFO, "stopped");
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

int daemon_run(const struct daemon_options *o)
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
	return e ? cmd_fail("daemon", e) : CMD_OK;
}
