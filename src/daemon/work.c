/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel samples; every so often what came is taken away and put into the
 * database as an interval. Where that takes nothing (the disk is full), the
 * interval waits, and what comes meanwhile stays in the session, as far as there is
 * room for it; the rest is counted as lost.
 */
#include "daemon/state.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/events.h"
#include "daemon/interval.h"
#include "daemon/namer.h"
#include "daemon/notify.h"
#include "daemon/writer.h"
#include "process/reach.h"
#include "profile/profile.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define HELD_MAX 50000u /* nodes or values: then it is time to drain */
#define RETRY_NS (2 * SECOND_NS)
#define TIDY_NS SECOND_NS             /* while there is something to do */
#define TIDY_LOOK_NS (10 * SECOND_NS) /* whether there is, where drains follow each other soon */
#define MIND_NS SECOND_NS
#define FREE_MAX ((size_t)1 << 20) /* bytes of ours that may lie idle */

uint64_t daemon_now_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

/* The journal knows how bad a line is by what stands before it (sd-daemon(3)). */
void daemon_say(const struct daemon *d, enum config_log level, const char *format, ...)
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

/* ---- epochs ---- */

static void tell_news(struct daemon *d)
{
	char *news = writer_news(d->writer);
	if (news)
		daemon_say(d, CONFIG_ERROR, "%s", news);
	d->moved |= news != NULL;
	free(news);
	if (writer_is_broken(d->writer))
		d->broken = d->stop = true;
}

struct err *daemon_begin_epoch(struct daemon *d)
{
	struct store_event events[ARENA_METRICS_MAX];
	struct wall_time now = wall_now();
	for (size_t i = 0; i < d->recording_options.event_count; i++) {
		const struct recording_event *x = &d->recording_options.events[i];
		/* Each sample of time off the CPU has its path. */
		uint32_t every = event_is_off(x) ? 1 : d->recording_options.every;
		events[i] = (struct store_event){x->name, x->unit, x->period, every, x->user_only};
	}
	struct store_epoch epoch = {
		.host = d->here.host,
		.kernel = d->here.kernel,
		.machine = d->here.machine,
		.cpu = d->here.cpu,
		.version = CULPRIT_VERSION,
		.note = d->note,
		.cpus = d->here.cpus,
		.hz = d->recording_options.hz,
		.start_ms = now.wall_ms - (int64_t)((now.steady_ns - d->drained_ns) / 1000000),
		.events = events,
		.event_count = d->recording_options.event_count};
	struct err *e = writer_begin(d->writer, &epoch);
	tell_news(d);
	if (e)
		return e;
	d->note[0] = 0;
	daemon_say(d, CONFIG_INFO,
		   "epoch %" PRId64 ": %" PRIu64 " samples a second of %s on each of %u CPUs",
		   writer_epoch(d->writer), epoch.hz, events[0].name, epoch.cpus);
	return e;
}

/* ---- intervals ---- */

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

static void set_times(struct daemon *d, struct interval *v, struct wall_time now,
		      const struct namer_account *names, const struct reach_account *reach)
{
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall_span(&d->wall, now, now.steady_ns - d->drained_ns, &v->rows.start_ms, &v->rows.end_ms);
	/* Who makes tables for it, reads names, or looks at what others have, is a part of it. */
	uint64_t apart = v->from.making.memory > names->memory ? v->from.making.memory
							       : names->memory;
	v->rows.cost.cpu_ns = cpu - d->cpu_ns + v->from.making.cpu_ns + names->cpu_ns +
			      reach->cpu_ns;
	v->rows.cost.memory = resident() + apart;
	d->cpu_ns = cpu;
	d->drained_ns = now.steady_ns;
}

/* Said once, until it takes them again. */
static void say_it_waits(struct daemon *d, const char *why)
{
	if (d->waiting_since_ns)
		return;
	d->waiting_since_ns = daemon_now_ns();
	daemon_say(d, CONFIG_ERROR, "%s: samples are kept in memory until it can be written", why);
}

/* Says what has become of an interval, when that changes. */
static void say_outcome(struct daemon *d, enum writer_result result)
{
	tell_news(d);
	if (result == WRITER_STORED && d->waiting_since_ns) {
		daemon_say(d, CONFIG_WARNING,
			   "the database takes samples again, after %.0f s; %" PRIu64
			   " samples are lost",
			   (double)(daemon_now_ns() - d->waiting_since_ns) / 1e9, d->given_up);
		d->waiting_since_ns = d->given_up = 0;
	} else if (result == WRITER_WAITS) {
		say_it_waits(d, writer_problem(d->writer));
	}
	d->tidy_look |= result == WRITER_STORED;
}

static void report_names(const struct daemon *d, const struct namer_account *names)
{
	if (names->cpu_ns)
		daemon_say(d, CONFIG_DEBUG,
			   "names of functions read apart: %.1f ms of CPU time, %" PRIu64
			   " kB at most",
			   (double)names->cpu_ns / 1e6, names->memory / 1024);
	if (names->failed)
		daemon_say(d, CONFIG_WARNING,
			   "%u files whose functions cannot be named for now, the last: %s",
			   names->failed, names->reason);
}

static void report_interval(const struct daemon *d, const struct interval *v)
{
	daemon_say(d, CONFIG_DEBUG,
		   "%" PRIu64 " samples of %zu processes in %" PRId64
		   " ms: %zu places, %zu paths, %zu "
		   "functions; %.1f ms of our CPU time, %" PRIu64 " kB",
		   v->samples, v->rows.process_count, v->rows.end_ms - v->rows.start_ms,
		   v->rows.count_count, v->rows.path_count, v->rows.symbol_count,
		   (double)v->rows.cost.cpu_ns / 1e6, v->rows.cost.memory / 1024);
	const struct library_account *m = &v->from.making;
	if (m->made || m->failed)
		daemon_say(d, m->failed ? CONFIG_WARNING : CONFIG_DEBUG,
			   "%u unwind tables made apart: %.1f ms of CPU time, %" PRIu64
			   " kB at most; %u could not be made%s%s",
			   m->made, (double)m->cpu_ns / 1e6, m->memory / 1024, m->failed,
			   m->failed ? ", the last for: " : "", m->reason);
	const struct recording_counted *c = &v->from.counted;
	uint64_t walked = v->samples > c->samples ? v->samples - c->samples : 0;
	if (c->samples && walked)
		daemon_say(d, CONFIG_DEBUG,
			   "%" PRIu64 " of them counted in the kernel, %" PRIu64
			   " ns each, as %" PRIu64 " places, %" PRIu64 " for want of room; %" PRIu64
			   " others, %" PRIu64 " ns each",
			   c->samples, c->ns / c->samples, c->places, c->evicted, walked,
			   (v->rows.cost.kernel_ns - c->ns) / walked);
}

/* Events that are not counted all of the time: when that begins and ends. */
static void say_coverage(struct daemon *d, const struct profile *p)
{
	for (size_t i = 0; i < p->metric_count && i < ARENA_METRICS_MAX; i++) {
		const struct profile_metric *m = &p->metrics[i];
		struct buf line = {0};
		bool some = coverage_note(m->coverage, m->name, m->unit, m->period, &line);
		enum daemon_counted now = coverage_never(m->coverage) ? DAEMON_COUNTED_NEVER
					  : some                      ? DAEMON_COUNTED_IN_TURNS
								      : DAEMON_COUNTED;
		if (some && now != d->counted[i])
			daemon_say(d, CONFIG_WARNING, "%.*s", (int)strcspn(buf_text(&line), "\n"),
				   buf_text(&line));
		else if (now != d->counted[i])
			daemon_say(d, CONFIG_WARNING, "%s is counted all of the time again",
				   m->name);
		d->counted[i] = now;
		buf_free(&line);
	}
}

void daemon_begin_if_due(struct daemon *d)
{
	struct err *e = d->epoch_due && !writer_waits(d->writer) ? daemon_begin_epoch(d) : NULL;
	if (e)
		say_it_waits(d, err_text(e));
	else if (!writer_waits(d->writer))
		d->epoch_due = false;
	err_free(e);
}

/* What was counted since the last drain goes into the new epoch, on the clock that holds now: that is
   mostly the right one. */
static void mind_clock(struct daemon *d, struct wall_time now)
{
	int64_t by = wall_set(&d->wall, now);
	if (!by)
		return;
	double seconds = (double)(by < 0 ? -by : by) / 1e3;
	const char *way = by < 0 ? "back" : "forward";
	daemon_say(d, CONFIG_WARNING, "the clock was set %s by %.1f s: another epoch begins%s", way,
		   seconds, by > 0 ? "; for an hour nothing counts as older for that" : "");
	snprintf(d->note, sizeof d->note, "the clock was set %s by %.1f s before this", way,
		 seconds);
	d->epoch_due = true;
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

/* Of symbols that were read, and of what was written. A little is kept: the next interval needs it again. */
static void give_back_memory(void)
{
	if (mallinfo2().fordblks > FREE_MAX)
		malloc_trim(0);
}

struct err *daemon_drain(struct daemon *d, bool last)
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
	say_coverage(d, v.from.profile);
	give_back_memory();
	struct wall_time now = wall_now();
	mind_clock(d, now);
	daemon_begin_if_due(d);
	struct namer_account names = namer_take_account(d->namer);
	struct reach_account reach = reach_take_account();
	set_times(d, &v, now, &names, &reach);
	report_interval(d, &v);
	report_names(d, &names);
	if (reach.late)
		daemon_say(
			d, CONFIG_WARNING,
			"no answer %u times, the last for %s: nothing of its user, or its directory, is read for a while",
			reach.late, reach.newest);
	say_outcome(d, writer_add(d->writer, &v));
	give_back_memory();
	return NULL;
}

/* ---- what is due ---- */

static bool is_due(uint64_t *last_ns, uint64_t every_ns)
{
	uint64_t now = daemon_now_ns();
	if (now - *last_ns < every_ns)
		return false;
	*last_ns = now;
	return true;
}

void daemon_try_again(struct daemon *d)
{
	if (writer_waits(d->writer))
		say_outcome(d, writer_retry(d->writer));
	daemon_begin_if_due(d);
}

struct err *daemon_drain_in_time(struct daemon *d)
{
	bool many = session_held(d->session) > HELD_MAX;
	bool late = daemon_now_ns() - d->drained_ns >= d->config.interval_s * SECOND_NS;
	if (writer_waits(d->writer) || d->epoch_due) {
		if (is_due(&d->retry_ns, RETRY_NS))
			daemon_try_again(d);
		bool waits = writer_waits(d->writer) || d->epoch_due;
		return many && waits ? daemon_drain(d, false) : NULL;
	}
	return many || late ? daemon_drain(d, false) : NULL;
}

/* Rates are of a number of CPUs. */
static void mind_cpus(struct daemon *d)
{
	uint32_t cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus == d->here.cpus || writer_waits(d->writer) || d->epoch_due)
		return;
	daemon_say(d, CONFIG_INFO, "%u CPUs run now, not %u: another epoch begins", cpus,
		   d->here.cpus);
	struct err *e = daemon_drain(d, false);
	if (e)
		daemon_say(d, CONFIG_WARNING, "%s", err_text(e));
	err_free(e);
	d->here.cpus = cpus;
	d->epoch_due = true;
}

void daemon_mind(struct daemon *d)
{
	mind_clock(d, wall_now());
	if (is_due(&d->minded_ns, MIND_NS))
		mind_cpus(d);
}

void daemon_tidy(struct daemon *d)
{
	struct store_policy policy = store_policy;
	if ((!d->tidy_more && !d->tidy_look) || writer_waits(d->writer) ||
	    !is_due(&d->tidy_ns, d->tidy_more ? TIDY_NS : TIDY_LOOK_NS))
		return;
	d->tidy_look = false;
	policy.keep_s = d->config.keep_s;
	policy.max_bytes = d->config.max_bytes;
	struct err *e = writer_tidy(d->writer, &policy, wall_age_ms(&d->wall, wall_now()),
				    &d->tidy_more);
	tell_news(d);
	if (e && !d->broken)
		daemon_say(d, CONFIG_WARNING, "%s", err_text(e));
	err_free(e);
	give_back_memory();
}

void daemon_feed_watchdog(struct daemon *d)
{
	uint64_t every = notify_watchdog_ns();
	if (every && is_due(&d->fed_ns, every))
		notify("WATCHDOG=1");
}
