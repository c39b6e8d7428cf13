/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Periods are never quite those that were asked for. So no event runs in step with what a program or the
 * scheduler does, nor with another event. For example, samples of an event wake the collector now and then.
 * If the period of a second event were a multiple of the first one's, the second event would always sample
 * the collector, and nobody else.
 *
 * A change begins a period anew: what was counted of the current one is lost. So changes are rare, and they
 * are made up for. For a clock, which goes on by itself, the time says how many samples there should have
 * been. For events that a CPU counts, their number does.
 */
#include "collect/kernel/periods.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "collect/kernel/state.h"
#include "harvest/recording.h"

#define CHANGE_NS 200000000ull /* between two changes of a clock's period */
/* The same for events that a CPU counts: their counters must be read. */
#define CHANGE_COUNTED_NS 1000000000ull
/* Between two changes of a counted event: each one loses half a period. */
#define CHANGE_SAMPLES 64
/* The same for a clock: the half must be less than SWING_LEAST. */
#define CHANGE_PERIODS 32
#define SWING_LEAST 0.02 /* parts of the rate */
#define SWING_MOST 0.05
#define REPAY_MOST 0.05

static double chance(struct kernel *k) /* a random number between 0 and 1 */
{
	return (double)(recording_random(k->recording) >> 40) / (1 << 24);
}

static void set(struct kernel *k, size_t index, const struct recording_event *event, double swing)
{
	uint64_t period = (uint64_t)((double)event->period / (1 + swing) + 0.5);
	if (!period || ioctl(k->events.fds[index], PERF_EVENT_IOC_PERIOD, &period))
		return;
	k->events.paces[index].period = period;
}

/* ---- clocks ---- */

static uint64_t clock_period(const struct kernel *k) /* of the first clock; 0: there is none */
{
	for (size_t i = 0; i < k->recording->options.event_count; i++)
		if (k->recording->options.events[i].clock)
			return k->recording->options.events[i].period;
	return 0;
}

static uint64_t change_interval(const struct kernel *k)
{
	uint64_t periods = CHANGE_PERIODS * clock_period(k);
	return periods > CHANGE_NS ? periods : CHANGE_NS;
}

/* The rate is higher and lower in turn, by the same amount, so that there are as many samples in all. Which of both
   comes first is chance: else short recordings would have too many. If a change comes late, or loses half a period,
   the next ones make up for it. */
static void vary_clock_rate(struct kernel *k, uint64_t now)
{
	double interval = (double)change_interval(k);
	if (k->sampling)
		k->events.ahead += (k->events.swing * (double)(now - k->events.changed_ns) -
				    (double)clock_period(k) / 2) /
				   interval;
	double part = chance(k), most = SWING_LEAST + part * (SWING_MOST - SWING_LEAST);
	if (k->events.ahead >= SWING_LEAST || k->events.ahead <= -SWING_LEAST)
		k->events.swing = k->events.ahead > SWING_MOST    ? -SWING_MOST
				  : k->events.ahead < -SWING_MOST ? SWING_MOST
								  : -k->events.ahead;
	else
		k->events.swing = chance(k) < 0.5 ? most : -most;
}

/* ---- events that a CPU counts ---- */

double periods_repay(struct kernel_pace *pace, uint64_t count, uint64_t period)
{
	uint64_t events = count - pace->count;
	double wanted = (double)events / (double)period;
	pace->owed += wanted - (double)(events / pace->period);
	pace->count = count;
	double part = wanted > 0 ? pace->owed / wanted : 0;
	return part > REPAY_MOST ? REPAY_MOST : part < -REPAY_MOST ? -REPAY_MOST : part;
}

/* As many samples as were missed until now are added, within as many events as there were since the last
   change. */
static void pace_one(struct kernel *k, size_t index, const struct recording_event *event)
{
	struct kernel_pace *pace = &k->events.paces[index];
	struct tally_reading now;
	double swing = (2 * chance(k) - 1) * SWING_MOST;
	if (!k->sampling) /* the first change loses nothing */
		set(k, index, event, swing);
	else if (tally_read(k->events.fds[index], &now) && now.count > pace->count &&
		 now.count - pace->count >= CHANGE_SAMPLES * event->period)
		set(k, index, event, swing + periods_repay(pace, now.count, event->period));
}

/* ---- all events ---- */

bool periods_due(const struct kernel *k)
{
	return k->sampling && now_ns() - k->events.changed_ns >= change_interval(k);
}

void periods_change(struct kernel *k)
{
	uint64_t now = now_ns();
	bool counted = !k->sampling || now - k->events.paced_ns >= CHANGE_COUNTED_NS;
	vary_clock_rate(k, now);
	k->events.changed_ns = now;
	if (counted)
		k->events.paced_ns = now;
	for (size_t i = 0; i < k->cpus * k->recording->options.event_count; i++) {
		const struct recording_event *event =
			&k->recording->options.events[i % k->recording->options.event_count];
		/* The kernel's own events keep their periods: they happen irregularly, in step with nothing. */
		if (k->events.fds[i] >= 0 && event->clock)
			set(k, i, event, k->events.swing);
		else if (k->events.fds[i] >= 0 && counted && event->counter)
			pace_one(k, i, event);
	}
}
