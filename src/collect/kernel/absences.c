/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/absences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "harvest/kernel_frames.h"
#include "harvest/recording.h"
#include "process/kernel_names.h"
#include "profile/profile.h"

#define SWITCHING_FRAMES 12u /* more than there are between such functions, or to our program */
#define SMALL_MEAN 30.0      /* from here on, a Poisson distribution is nearly normal */
#define SMALL_COUNT 64u      /* the same for a binomial one */

uint64_t absences_period(const struct kernel *k)
{
	uint64_t least = 0;
	for (size_t i = 0; i < k->recording->options.event_count; i++) {
		const struct recording_event *event = &k->recording->options.events[i];
		if (event->off && (!least || event->period < least))
			least = event->period;
	}
	return least;
}

bool absences_have_event(const struct kernel *k, uint32_t event)
{
	return event == KERNEL_EVENT_OFF || event == KERNEL_EVENT_IO ||
	       event == KERNEL_EVENT_PROBE || event < k->recording->options.event_count;
}

/* ---- how many samples ---- */

static double chance(struct recording *r) /* a random number between 0 and 1, neither of them */
{
	return ((double)(recording_random(r) >> 12) + 0.5) / (double)(1ull << 52);
}

static double normal(struct recording *r, double mean, double variance)
{
	double u = chance(r), v = chance(r);
	return mean + sqrt(variance) * sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Returns a number from a Poisson distribution, but not 0. */
static uint64_t draw_samples(struct recording *r, double mean)
{
	if (mean >= SMALL_MEAN) {
		double n = normal(r, mean, mean);
		return n < 1 ? 1 : (uint64_t)(n + 0.5);
	}
	/* The chances of 1, 2, … in turn, of what is left without that of 0. */
	double one = mean * exp(-mean), left = chance(r) * -expm1(-mean);
	uint64_t n = 1;
	while (left > one && one > 0) {
		left -= one;
		one *= mean / (double)++n;
	}
	return n;
}

/* Returns how many of `count` samples fall into a part. */
static uint64_t draw_part(struct recording *r, uint64_t count, double part)
{
	uint64_t n = 0;
	if (part >= 1)
		return count;
	if (count > SMALL_COUNT) {
		double x = normal(r, (double)count * part, (double)count * part * (1 - part));
		return x < 0 ? 0 : x > (double)count ? count : (uint64_t)(x + 0.5);
	}
	for (uint64_t i = 0; i < count; i++)
		n += chance(r) < part;
	return n;
}

bool absences_have_sample(struct kernel *k, uint64_t ns)
{
	return chance(k->recording) < -expm1(-(double)ns / (double)absences_period(k));
}

/* ---- from the absence to the profile ---- */

#define CLOCKS_DIFFER_NS 1000000

/* Half of the older moments go, but not the first. */
static void thin_out(struct kernel_waited *h)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < h->count; i++)
		if (i >= h->count / 2 || i % 2 == 0)
			h->at[kept++] = h->at[i];
	h->count = kept;
}

static void add_moment(struct kernel_waited *h, uint64_t time, uint64_t waited_ns)
{
	if (h->count == KERNEL_WAITED)
		thin_out(h);
	h->at[h->count].time = time;
	h->at[h->count++].waited_ns = waited_ns;
}

static void keep_waits(struct kernel_thread *t, const struct kernel_off *off, uint64_t start,
		       uint64_t end)
{
	if (!t->waits)
		t->waits = calloc(1, sizeof *t->waits);
	struct kernel_waited *h = t->waits;
	if (!h)
		return;
	/* The kernel's sums come from two clocks, which differ a little. */
	uint64_t before = off->blocked_before, last = h->count ? h->at[h->count - 1].waited_ns : 0;
	if (h->count && (start < h->at[h->count - 1].time || before + CLOCKS_DIFFER_NS < last))
		h->count = 0; /* it has become another program */
	else if (before < last)
		before = last;
	add_moment(h, start, before);
	add_moment(h, end, before + end - start);
}

/* Returns how many ns a thread has waited until a moment, from some time on. */
static double waited_until(const struct kernel_waited *h, uint64_t time)
{
	uint32_t i = h->count;
	while (i && h->at[i - 1].time > time)
		i--;
	if (!i || i == h->count)
		return (double)h->at[i ? i - 1 : 0].waited_ns;
	double part = (double)(time - h->at[i - 1].time) /
		      (double)(h->at[i].time - h->at[i - 1].time);
	return (double)h->at[i - 1].waited_ns +
	       part * (double)(h->at[i].waited_ns - h->at[i - 1].waited_ns);
}

/* Returns which part of this time a thread has waited. */
static double waited_between(const struct kernel_waited *h, uint64_t start, uint64_t end)
{
	if (!h || !h->count || end <= start)
		return 0;
	double ns = waited_until(h, end) - waited_until(h, start);
	return fmin(1, fmax(0, ns / (double)(end - start)));
}

/* Finds the thread that has ended a wait. It may have ended itself. */
static const struct kernel_waited *find_thread(struct kernel *k, const struct kernel_off *off,
					       struct kernel_absence *out)
{
	pid_t process = (pid_t)off->waker_process, tid = (pid_t)off->waker_thread;
	uint32_t index;
	out->waker = 1 + PROFILE_WAKER_OUTSIDER;
	const struct kernel_ended *ended = tasks_has_thread(k, tid) ? NULL
								    : tasks_ended(k, process, tid);
	if (ended) {
		out->waker = PROFILE_WAKERS + ended->profile;
		return ended->waits;
	}
	struct kernel_thread *t = k->whole || tasks_find_process(k, process)
					  ? tasks_find(k, process, tid)
					  : NULL;
	struct err *e = t ? tasks_place(k, t, &index) : NULL;
	if (t && !e)
		out->waker = 1 + PROFILE_WAKERS + index;
	recording_note_error(k->recording, e);
	return t ? t->waits : NULL;
}

/* Finds who has ended a wait, which took from `start` to `end`. */
static void find_waker(struct kernel *k, const struct kernel_off *off, uint64_t start, uint64_t end,
		       struct kernel_absence *out)
{
	if (off->waker == KERNEL_WAKER_INTERRUPT)
		out->waker = 1 + PROFILE_WAKER_INTERRUPT;
	else if (off->waker == KERNEL_WAKER_KERNEL)
		out->waker = 1 + PROFILE_WAKER_KERNEL;
	else if (off->waker == KERNEL_WAKER_THREAD)
		out->waited = waited_between(find_thread(k, off, out), start, end);
}

void absences_note(struct kernel *k, const struct kernel_off *off)
{
	struct kernel_thread *t = tasks_find(k, (pid_t)off->head.process, (pid_t)off->head.thread);
	uint64_t period = absences_period(k);
	if (!t || !period || !off->ns)
		return;
	double queued = (double)off->queued_ns / (double)off->ns;
	uint32_t rarity = off->rarity & 31;
	double mean = (double)off->ns / ((double)period * (double)(1u << rarity));
	uint64_t samples = draw_samples(k->recording, mean);
	uint64_t ready = draw_part(k->recording, samples, queued < 1 ? queued : 1);
	t->absence.queued = ready << rarity;
	t->absence.blocked = (samples - ready) << rarity;
	t->absence.waker = 0;
	t->absence.waited = 0;
	t->absence.queued_ns = off->queued_ns < off->ns ? off->queued_ns : off->ns;
	t->absence.blocked_ns = off->ns - t->absence.queued_ns;
	t->absence_time = off->head.time;
	uint64_t start = off->head.time - off->ns, end = start + t->absence.blocked_ns;
	/* A database keeps no wakers. */
	if (!t->absence.blocked_ns || k->recording->options.drained)
		return;
	keep_waits(t, off, start, end);
	if (t->absence.blocked)
		find_waker(k, off, start, end, &t->absence);
}

struct kernel_absence absences_take(const struct kernel_thread *t, uint64_t time)
{
	return t->absence_time == time ? t->absence : (struct kernel_absence){0};
}

/* Counts who ended a wait, for an event that has `blocked` of its samples. */
static struct err *count_wake(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			      const struct kernel_absence *absence, uint64_t blocked)
{
	if (!absence->waker || !blocked)
		return NULL;
	return profile_wake(k->recording->harvest.profile,
			    &(struct profile_wake){
				    .node = node,
				    .thread = thread,
				    .metric = event,
				    .waker = absence->waker - 1,
				    .count = blocked,
				    .waited = draw_part(k->recording, blocked, absence->waited)});
}

/* Returns the node below which a thread is that could run, but has no CPU: in the function that has put it to
   sleep. So events of all time tell this apart from the wait before. */
static struct err *find_queued(struct kernel *k, struct process *process, uint32_t node,
			       uint32_t *out)
{
	const struct kernel_names *names = k->off.schedule ? NULL
							   : kernel_frames_names(k->recording);
	*out = node;
	if (!k->kernel_frames)
		return NULL;
	if (names)
		k->off.schedule = kernel_names_address(names, "schedule");
	const uint64_t inside = k->off.schedule + 4; /* behind its first instruction */
	return k->off.schedule ? kernel_frames_add_waiting(k->recording, process, &inside, 1, out)
			       : NULL;
}

/* Whether time off the CPU goes onto the time line as samples of an event: of the first that has it. The time line has
   the samples of the first event, too. */
static bool is_timed(const struct kernel *k, uint32_t event, uint8_t off)
{
	for (uint32_t i = 0; i < event; i++)
		if (k->recording->options.events[i].off & off)
			return false;
	return k->recording->options.timeline;
}

/* Counts samples of a part of an absence, which took `ns` until `end_ns`. */
static struct err *count_part(struct kernel *k, const struct profile_span *part, uint32_t end,
			      uint64_t end_ns, uint64_t ns, bool timed)
{
	struct profile_span span = *part;
	struct err *e = frames_count_only(k, span.thread, span.node, span.metric, end,
					  span.samples);
	if (e || !timed)
		return e;
	uint64_t last = recording_since(k->recording, end_ns) / 1000;
	uint64_t first = recording_since(k->recording, end_ns - ns) / 1000;
	span.start_us = first;
	span.duration_us = last - first;
	return profile_time_span(k->recording->harvest.profile, &span);
}

static uint32_t limited(uint64_t samples)
{
	return samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX;
}

struct err *absences_count(struct kernel *k, struct process *process, uint32_t thread,
			   uint32_t node, struct kernel_absence absence, uint32_t end,
			   uint64_t time)
{
	struct err *e = NULL;
	double period = (double)absences_period(k);
	for (uint32_t i = 0; !e && i < k->recording->options.event_count; i++) {
		const struct recording_event *event = &k->recording->options.events[i];
		/* An event with a longer period has a part of the samples. */
		double part = period / (double)event->period;
		uint64_t blocked = event->off & RECORDING_BLOCKED ? absence.blocked : 0;
		uint64_t queued = event->off & RECORDING_QUEUED ? absence.queued : 0;
		blocked = blocked ? draw_part(k->recording, blocked, part) : 0;
		queued = queued ? draw_part(k->recording, queued, part) : 0;
		uint32_t at = node;
		if (queued && event->off & RECORDING_BLOCKED)
			e = find_queued(k, process, node, &at);
		struct profile_span waits = {.thread = thread,
					     .node = node,
					     .metric = i,
					     .samples = limited(blocked),
					     .waker = absence.waker};
		struct profile_span ready = {
			.thread = thread, .node = at, .metric = i, .samples = limited(queued)};
		if (!e && blocked)
			e = count_part(k, &waits, end, time - absence.queued_ns, absence.blocked_ns,
				       is_timed(k, i, RECORDING_BLOCKED));
		if (!e && queued)
			e = count_part(k, &ready, end, time, absence.queued_ns,
				       is_timed(k, i, RECORDING_QUEUED));
		if (!e)
			e = count_wake(k, thread, node, i, &absence, blocked);
	}
	return e;
}

/* ---- the kernel's own frames ---- */

/* A function of the kernel that takes a lock of the kernel, and sleeps until it has it. */
static bool takes_lock(const struct kernel_names *names, uint64_t address)
{
	uint64_t start, size;
	const char *name = kernel_names_find(names, address - 1, &start, &size);
	return name && (strstr(name, "mutex") || strstr(name, "down_") || strstr(name, "rwsem"));
}

/* Functions that put threads to sleep are together in the kernel's memory. Those of a thread that waits say
   nothing but that, and the kernel itself leaves them out, in /proc/PID/stack and in tell_waiting(). Only those
   that take locks tell of what is waited for: the outermost of them stays. */
uint32_t absences_skip(struct kernel *k, const uint64_t *addresses, uint32_t count)
{
	const struct kernel_names *names = count ? kernel_frames_names(k->recording) : NULL;
	uint32_t skip = 0;
	if (names && !k->off.sleepers_end) {
		k->off.sleepers = kernel_names_address(names, "__sched_text_start");
		k->off.sleepers_end = kernel_names_address(names, "__sched_text_end");
		if (k->off.sleepers_end <= k->off.sleepers)
			k->off.sleepers_end = UINT64_MAX; /* there is no such list */
	}
	for (uint32_t i = 0; k->off.sleepers && i < count && i < skip + SWITCHING_FRAMES; i++)
		if (addresses[i] - k->off.sleepers < k->off.sleepers_end - k->off.sleepers)
			skip = i + 1;
	if (skip && takes_lock(names, addresses[skip - 1]))
		skip--;
	return skip && skip == count ? count - 1 : skip;
}
