/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that come without a signal. These are the samples that come while the kernel works for a thread, in
 * a system call or a page fault: there, a signal would end the call, or cut short a transfer that has begun.
 * And they are all samples of an event that the CPU counts, if it has too few counters to count each event
 * twice.
 *
 * The kernel copies the registers of the thread's own code, and the innermost part of its stack, to a ring
 * (sample_ring.h). Here these become copies, like those that a target leaves (copies.c).
 */
#include "collect/agents/unsignalled.h"

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
#include "collect/agents/sample_ring.h"
#include "collect/agents/state.h"
#include "collect/events.h"
#include "harvest/kernel_frames.h"
#include "harvest/recording.h"

struct unsignalled {
	size_t event_count;
	int events[ARENA_METRICS_MAX];   /* -1: the event is of user code only */
	int leader;                      /* the event whose ring all share */
	uint64_t ids[ARENA_METRICS_MAX]; /* as the kernel numbers them in its records */
	int chance;                      /* event for the sample by chance; -1: none */
	uint64_t chance_id;
	struct sample_ring *ring;
	struct arena *arena; /* NULL: not known yet, see unsignalled_adopt */
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
	sample_ring_ask(&attr, ring, agents->recording->kernel_frames);
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Sends the samples of `fd` to the leader's ring. */
static bool join(const struct unsignalled *u, int fd, uint64_t *id)
{
	return fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_ID, id) &&
	       (fd == u->leader || !ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, u->leader));
}

static void close_all(struct agents *agents, struct unsignalled *u)
{
	if (u->ring)
		sample_ring_close(agents->unsignalled.rings, u->ring);
	unsignalled_end_chance(u);
	for (size_t i = 0; i < u->event_count; i++)
		if (u->events[i] >= 0)
			close(u->events[i]);
	free(u);
}

static bool open_all(struct agents *agents, struct unsignalled *u, pid_t tid,
		     const uint64_t *periods, uint64_t first, bool whole, size_t size)
{
	const struct recording_event *events = agents->recording->options.events;
	for (size_t i = 0; i < u->event_count; i++) {
		if (events[i].user_only || !event_is_sampled(&events[i]))
			continue;
		int fd = u->events[i] = open_event(agents, i,
						   whole || unsignalled_takes_all(agents, i), tid,
						   periods[i], size);
		if (fd >= 0 && !u->ring) {
			u->leader = fd;
			u->ring = sample_ring_open(agents->unsignalled.rings, fd, tid, size);
		}
		if (fd < 0 || !u->ring || !join(u, fd, &u->ids[i]))
			return false;
	}
	if (first) { /* if this fails, we go on without it */
		u->chance = open_event(agents, 0, whole, tid, first, size);
		if (u->chance >= 0 && !join(u, u->chance, &u->chance_id))
			unsignalled_end_chance(u);
	}
	return true;
}

static struct unsignalled *open_sized(struct agents *agents, pid_t tid, const uint64_t *periods,
				      uint64_t first, bool whole, size_t size)
{
	struct unsignalled *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->event_count = agents->recording->options.event_count;
	u->chance = -1;
	for (size_t i = 0; i < u->event_count; i++)
		u->events[i] = -1;
	if (!open_all(agents, u, tid, periods, first, whole, size)) {
		int error = errno;
		close_all(agents, u);
		errno = error;
		return NULL;
	}
	agents->unsignalled.count++;
	return u;
}

/* The kernel locks rings in memory. So the first threads get large rings, and if there are many, the
   others get small ones. Users other than root have a limit (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK):
   their sizes begin at LIMITED_RING. */
#define LIMITED_RING 3
#define LAST_RING 5
struct unsignalled *unsignalled_open(struct agents *agents, pid_t tid, const uint64_t *periods,
				     uint64_t first, bool whole)
{
	static const struct {
		size_t threads, size;
	} rings[] = {{8, 4u << 20},   {64, 512u << 10}, {SIZE_MAX, 64u << 10},
		     {8, 256u << 10}, {32, 64u << 10},  {SIZE_MAX, 16u << 10}};
	size_t i = geteuid() ? LIMITED_RING : 0;
	while (agents->unsignalled.count >= rings[i].threads)
		i++;
	struct unsignalled *u = open_sized(agents, tid, periods, first, whole, rings[i].size);
	if (!u && errno == EPERM && i < LAST_RING)
		u = open_sized(agents, tid, periods, first, whole, rings[LAST_RING].size);
	return u;
}

void unsignalled_enable(const struct unsignalled *u)
{
	if (u->chance >= 0)
		ioctl(u->chance, PERF_EVENT_IOC_REFRESH, 1);
	for (size_t i = 0; i < u->event_count; i++)
		ioctl(u->events[i], PERF_EVENT_IOC_ENABLE, 0);
}

void unsignalled_adopt(struct agents *agents, struct unsignalled *u, struct arena *a,
		       uint32_t owner)
{
	const struct arena_thread *record = arena_record(a, owner);
	u->arena = a;
	u->owner = owner;
	sample_ring_know(agents->unsignalled.rings, u->ring, record ? record->stack_top : 0);
}

void unsignalled_change_period(const struct unsignalled *u, size_t event, uint64_t period)
{
	ioctl(u->events[event], PERF_EVENT_IOC_PERIOD, &period);
}

void unsignalled_end_chance(struct unsignalled *u)
{
	if (u->chance >= 0)
		close(u->chance);
	u->chance = -1;
}

uint64_t unsignalled_samples(const struct unsignalled *u)
{
	return u->samples;
}

int unsignalled_event(const struct unsignalled *u, size_t event)
{
	return u->events[event];
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

bool unsignalled_takes_all(const struct agents *agents, size_t event)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	return agents->unsignalled.few_counters && e->counter && !e->user_only;
}

/* ---- taking samples ---- */

struct err *unsignalled_start(struct agents *agents)
{
	bool any = false;
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		any |= !agents->recording->options.events[i].user_only &&
		       event_is_sampled(&agents->recording->options.events[i]);
	if (!any || agents->recording->options.timers)
		return NULL;
	agents->unsignalled.few_counters = !counters_suffice(agents);
	if (agents->recording->options.kernel_frames)
		kernel_frames_open(agents->recording);
	return sample_rings_open(agents->recording->kernel_frames, &agents->unsignalled.rings);
}

int unsignalled_fd(const struct agents *agents)
{
	return agents->unsignalled.rings ? sample_rings_fd(agents->unsignalled.rings) : -1;
}

void unsignalled_hear(struct agents *agents)
{
	sample_rings_hear(agents->unsignalled.rings);
	unsignalled_take_all(agents);
}

void unsignalled_stop(struct agents *agents)
{
	sample_rings_close(agents->unsignalled.rings);
	agents->unsignalled.rings = NULL;
	kernel_frames_close(agents->recording);
}

/* With a sample by chance, the first tick of a period is half a sample too much: see sampling.c. */
static bool is_left_out(const struct agents *agents, const struct unsignalled *u, size_t event,
			const struct ring_copy *copy)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	return !event && u->chance_id && copy->id != u->chance_id &&
	       copy->count < e->period * 6 / 5 && copy->ns * UINT64_C(0x9e3779b97f4a7c15) >> 63;
}

static size_t event_of(const struct unsignalled *u, const struct ring_copy *copy)
{
	size_t i = 0;
	while (i < u->event_count && copy->id != u->ids[i] && (i || copy->id != u->chance_id))
		i++;
	return i;
}

static void take_copy(struct agents *agents, struct unsignalled *u, struct ring_copy *copy)
{
	size_t event = event_of(u, copy);
	const struct arena_thread *record = arena_record(u->arena, u->owner);
	if (event == u->event_count || !record || is_left_out(agents, u, event, copy))
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
	u->samples++;
	if (!copies_add(agents, u->arena, u->owner, &from, copy))
		recording_lose(agents->recording, "no room", 1);
	else if (!event)
		agents->recording->samples++;
}

void unsignalled_take(struct agents *agents, struct unsignalled *u)
{
	uint64_t lost;
	if (!u->arena || !u->arena->header)
		return;
	for (struct ring_copy *copy = sample_ring_take(agents->unsignalled.rings, u->ring, &lost),
			      *next;
	     copy; copy = next) {
		next = copy->next;
		take_copy(agents, u, copy);
		free(copy);
	}
	recording_lose(agents->recording, "no room", lost);
}

void unsignalled_take_all(struct agents *agents)
{
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++)
			if (a->threads[i].events.open && a->threads[i].events.unsignalled)
				unsignalled_take(agents, a->threads[i].events.unsignalled);
}

void unsignalled_close(struct agents *agents, struct unsignalled *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->event_count; i++)
		ioctl(u->events[i], PERF_EVENT_IOC_DISABLE, 0);
	unsignalled_take(agents, u);
	close_all(agents, u);
	agents->unsignalled.count--;
}
