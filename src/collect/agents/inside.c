/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that come without a signal. These are the samples that come while the kernel works for a thread, in
 * a system call or a page fault: there, a signal would end the call, or cut short a transfer that has begun.
 * And they are all samples of an event that the CPU counts, if it has too few counters to count each event
 * twice.
 *
 * The kernel copies the registers of the thread's own code, and the innermost part of its stack, to a ring
 * (inside_ring.h). Here these become copies, like those that a target leaves (copies.c).
 */
#include "collect/agents/inside.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/copies.h"
#include "collect/agents/inside_ring.h"
#include "collect/agents/state.h"
#include "collect/events.h"
#include "harvest/inner.h"
#include "harvest/recording.h"

struct inside {
	size_t event_count;
	int events[ARENA_METRICS_MAX];   /* -1: the event is of user code only */
	int leader;                      /* the event whose ring all share */
	uint64_t ids[ARENA_METRICS_MAX]; /* as the kernel numbers them in its records */
	int chance;                      /* event for the sample by chance; -1: none */
	uint64_t chance_id;
	struct inside_ring *ring;
	struct arena *arena; /* NULL: not known yet, see inside_adopt */
	uint32_t owner;      /* chunk of the thread's record */
	uint64_t samples;
};

/* ---- opening ---- */

static int open_event(const struct agents *agents, size_t number, bool whole, pid_t tid,
		      uint64_t period, size_t ring)
{
	const struct recording_event *event = &agents->recording->options.events[number];
	struct perf_event_attr attr = event_attr(event);
	attr.sample_period = period;
	attr.exclude_user = !whole;
	attr.exclude_hv = 1;
	attr.remove_on_exec = 1;
	inside_ring_ask(&attr, ring, agents->recording->inner);
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Sends the samples of `fd` to the leader's ring. */
static bool join(const struct inside *in, int fd, uint64_t *id)
{
	return fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_ID, id) &&
	       (fd == in->leader || !ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, in->leader));
}

static void close_all(struct agents *agents, struct inside *in)
{
	if (in->ring)
		inside_ring_close(agents->inside.rings, in->ring);
	inside_end_chance(in);
	for (size_t i = 0; i < in->event_count; i++)
		if (in->events[i] >= 0)
			close(in->events[i]);
	free(in);
}

static bool open_all(struct agents *agents, struct inside *in, pid_t tid, const uint64_t *periods,
		     uint64_t first, size_t size)
{
	const struct recording_event *events = agents->recording->options.events;
	for (size_t i = 0; i < in->event_count; i++) {
		if (events[i].user_only)
			continue;
		int fd = in->events[i] = open_event(agents, i, inside_takes_all(agents, i), tid,
						    periods[i], size);
		if (fd >= 0 && !in->ring) {
			in->leader = fd;
			in->ring = inside_ring_open(agents->inside.rings, fd, tid, size);
		}
		if (fd < 0 || !in->ring || !join(in, fd, &in->ids[i]))
			return false;
	}
	if (first) { /* if this fails, we go on without it */
		in->chance = open_event(agents, 0, false, tid, first, size);
		if (in->chance >= 0 && !join(in, in->chance, &in->chance_id))
			inside_end_chance(in);
	}
	return true;
}

static struct inside *open_sized(struct agents *agents, pid_t tid, const uint64_t *periods,
				 uint64_t first, size_t size)
{
	struct inside *in = calloc(1, sizeof *in);
	if (!in)
		return NULL;
	in->event_count = agents->recording->options.event_count;
	in->chance = -1;
	for (size_t i = 0; i < in->event_count; i++)
		in->events[i] = -1;
	if (!open_all(agents, in, tid, periods, first, size)) {
		int error = errno;
		close_all(agents, in);
		errno = error;
		return NULL;
	}
	agents->inside.count++;
	return in;
}

/* The kernel locks rings in memory. So the first threads get large rings, and if there are many, the
   others get small ones. Users other than root have a limit (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK):
   their sizes begin at LIMITED_RING. */
#define LIMITED_RING 3
#define LAST_RING 5
struct inside *inside_open(struct agents *agents, pid_t tid, const uint64_t *periods,
			   uint64_t first)
{
	static const struct {
		size_t threads, size;
	} rings[] = {{8, 4u << 20},   {64, 512u << 10}, {SIZE_MAX, 64u << 10},
		     {8, 256u << 10}, {32, 64u << 10},  {SIZE_MAX, 16u << 10}};
	size_t i = geteuid() ? LIMITED_RING : 0;
	while (agents->inside.count >= rings[i].threads)
		i++;
	struct inside *in = open_sized(agents, tid, periods, first, rings[i].size);
	if (!in && errno == EPERM && i < LAST_RING)
		in = open_sized(agents, tid, periods, first, rings[LAST_RING].size);
	return in;
}

void inside_enable(const struct inside *in)
{
	if (in->chance >= 0)
		ioctl(in->chance, PERF_EVENT_IOC_REFRESH, 1);
	for (size_t i = 0; i < in->event_count; i++)
		ioctl(in->events[i], PERF_EVENT_IOC_ENABLE, 0);
}

void inside_adopt(struct agents *agents, struct inside *in, struct arena *a, uint32_t owner)
{
	const struct arena_thread *record = arena_record(a, owner);
	in->arena = a;
	in->owner = owner;
	inside_ring_know(agents->inside.rings, in->ring, record ? record->stack_top : 0);
}

void inside_change_period(const struct inside *in, size_t event, uint64_t period)
{
	ioctl(in->events[event], PERF_EVENT_IOC_PERIOD, &period);
}

void inside_end_chance(struct inside *in)
{
	if (in->chance >= 0)
		close(in->chance);
	in->chance = -1;
}

uint64_t inside_samples(const struct inside *in)
{
	return in->samples;
}

int inside_event(const struct inside *in, size_t event)
{
	return in->events[event];
}

/* ---- how many counters there are ---- */

#define COUNTED_NS 2000000u /* long enough to see whether a group is counted */

/* Opens a counter of this thread, in the group of `leader`; -1 on errors. */
static int open_counter(const struct recording_event *event, int leader, bool user)
{
	struct perf_event_attr attr = event_attr(event);
	attr.disabled = leader < 0;
	attr.exclude_user = !user;
	attr.exclude_kernel = user;
	attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* The kernel counts a group as a whole or not at all. */
static bool are_counted_at_once(int leader)
{
	struct tally_reading now;
	uint64_t until = now_ns() + COUNTED_NS;
	ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
	while (now_ns() < until)
		;
	return tally_read(leader, &now) && now.running_ns && now.running_ns == now.enabled_ns;
}

/* Whether the CPU has enough counters to count each event twice. */
static bool counters_suffice(const struct agents *agents)
{
	int open[2 * ARENA_METRICS_MAX];
	size_t count = 0;
	bool all = true;
	for (size_t i = 0; all && i < 2 * agents->recording->options.event_count; i++) {
		const struct recording_event *event = &agents->recording->options.events[i / 2];
		bool user = !(i % 2);
		if (!event->counter || (event->user_only && !user))
			continue;
		int fd = open_counter(event, count ? open[0] : -1, user);
		all = fd >= 0;
		if (all)
			open[count++] = fd;
	}
	all = all && (!count || are_counted_at_once(open[0]));
	while (count)
		close(open[--count]);
	return all;
}

bool inside_takes_all(const struct agents *agents, size_t event)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	return agents->inside.few_counters && e->counter && !e->user_only;
}

/* ---- taking samples ---- */

struct err *inside_start(struct agents *agents)
{
	bool any = false;
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		any |= !agents->recording->options.events[i].user_only;
	if (!any || agents->recording->options.timers)
		return NULL;
	agents->inside.few_counters = !counters_suffice(agents);
	if (agents->recording->options.kernel_frames)
		inner_open(agents->recording);
	return inside_rings_open(agents->recording->inner, &agents->inside.rings);
}

int inside_fd(const struct agents *agents)
{
	return agents->inside.rings ? inside_rings_fd(agents->inside.rings) : -1;
}

void inside_hear(struct agents *agents)
{
	inside_rings_hear(agents->inside.rings);
	inside_take_all(agents);
}

void inside_stop(struct agents *agents)
{
	inside_rings_close(agents->inside.rings);
	agents->inside.rings = NULL;
	inner_close(agents->recording);
}

/* With a sample by chance, the first tick of a period is half a sample too much: see sampling.c. */
static bool is_left_out(const struct agents *agents, const struct inside *in, size_t event,
			const struct inside_copy *copy)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	return !event && in->chance_id && copy->id != in->chance_id &&
	       copy->count < e->period * 6 / 5 && copy->ns * UINT64_C(0x9e3779b97f4a7c15) >> 63;
}

static size_t event_of(const struct inside *in, const struct inside_copy *copy)
{
	size_t i = 0;
	while (i < in->event_count && copy->id != in->ids[i] && (i || copy->id != in->chance_id))
		i++;
	return i;
}

static void take_copy(struct agents *agents, struct inside *in, const struct inside_copy *copy)
{
	size_t event = event_of(in, copy);
	const struct arena_thread *record = arena_record(in->arena, in->owner);
	if (event == in->event_count || !record || is_left_out(agents, in, event, copy))
		return;
	if (record->handler_stack - copy->address < ARENA_CHUNK) /* it came in our own handler */
		return;
	struct arena_copy from = {.event = (uint32_t)event,
				  .weight = 1,
				  .ns = copy->ns,
				  .pc = copy->pc,
				  .address = copy->address,
				  .size = copy->size,
				  .cut = copy->cut};
	memcpy(from.registers, copy->registers, sizeof from.registers);
	in->samples++;
	if (!copies_add(agents, in->arena, in->owner, &from, copy))
		recording_lose(agents->recording, "no room", 1);
	else if (!event)
		agents->recording->samples++;
}

void inside_take(struct agents *agents, struct inside *in)
{
	uint64_t lost;
	if (!in->arena || !in->arena->header)
		return;
	for (struct inside_copy *copy = inside_ring_take(agents->inside.rings, in->ring, &lost),
				*next;
	     copy; copy = next) {
		next = copy->next;
		take_copy(agents, in, copy);
		free(copy);
	}
	recording_lose(agents->recording, "no room", lost);
}

void inside_take_all(struct agents *agents)
{
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++)
			if (a->threads[i].events.open && a->threads[i].events.inside)
				inside_take(agents, a->threads[i].events.inside);
}

void inside_close(struct agents *agents, struct inside *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->event_count; i++)
		ioctl(in->events[i], PERF_EVENT_IOC_DISABLE, 0);
	inside_take(agents, in);
	close_all(agents, in);
	agents->inside.count--;
}
