/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a thread. They are ours: the target holds no descriptor.
 * Each sends its signal to the thread, and the signal's si_fd, the number of
 * our descriptor, says by its last digit (base 8) which event it is.
 *
 * The signal kills a program that does not catch it. So an event is enabled
 * only when the thread is known to catch it, after it was opened with the order
 * that exec removes it: whatever program the thread is by then, it is safe.
 *
 * The first sample of a thread comes after a part of a period that chance
 * decides, so that threads shorter than a period have their fair share of
 * samples. The kernel stops the event at that sample; it goes on with its
 * period as soon as we have seen that. And now and then the period is changed a
 * little, so that it never runs in step with what the program does.
 *
 * Targets count on that no sample comes sooner than nine tenths of a period
 * after another: see agent/waits.c.
 */
#include "collect/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "process/status.h"

#define FAST_TICK_NS 2000000ull
#define YOUNG_NS \
	20000000ull /* for so long after a thread's start the first sample is watched for */
#define CHANGES_PER_TICK 20u /* of periods: each disturbs a CPU */
#define CHANGE_NS 100000000ull
#define CHANGE_SAMPLES 64u /* since the last one at least: a change begins a period anew */
#define NAME_NS 1000000000ull
#define CHANGE_COUNTED_NS 2000000000ull /* a change loses half a period of what has no clock */

/* ---- chance ---- */

static uint64_t random_below(struct session *s, uint64_t limit)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return limit ? (s->random >> 11) % limit : 0;
}

static uint64_t later_period(struct session *s, uint64_t period)
{
	uint64_t swing = period / 10;
	return period - swing + random_below(s, 2 * swing + 1);
}

/* ---- descriptors ---- */

static int take_slot(struct session *s)
{
	return s->slot_count ? s->slots[--s->slot_count] : s->next_slot++;
}

static void give_slot(struct session *s, int slot)
{
	if (s->slot_count == s->slot_room) {
		size_t room = s->slot_room ? s->slot_room * 2 : 64;
		int *more = reallocarray(s->slots, room, sizeof *more);
		if (!more)
			return; /* one is lost */
		s->slots = more;
		s->slot_room = room;
	}
	s->slots[s->slot_count++] = slot;
}

/* Moves the descriptor to one with this number; -1 where somebody else has that. */
static int move_to(int fd, int number)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, number);
	int error = errno == EINVAL ? EMFILE : errno; /* the number is beyond the limit */
	if (moved >= 0 && moved != number) {
		close(moved);
		moved = -1;
		error = EEXIST;
	}
	errno = error;
	return moved;
}

/* ---- opening ---- */

static int open_event(const struct session_event *event, pid_t tid, uint64_t first)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof attr,
		.config = event->config,
		.sample_period = first,
		.disabled = 1,
		.exclude_kernel = event->user_only,
		.exclude_hv = event->user_only,
		.remove_on_exec = 1,
		.config1 = event->config1,
		.config2 = event->config2,
	};
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool aim(int fd, pid_t tid)
{
	struct f_owner_ex owner = {F_OWNER_TID, tid};
	return !fcntl(fd, F_SETSIG, WIRE_SIGNAL) && !fcntl(fd, F_SETOWN_EX, &owner) &&
	       !fcntl(fd, F_SETFL, O_RDWR | O_ASYNC);
}

static void close_events(int slot, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(slot * SESSION_EVENT_SLOTS + (int)i);
}

/* All events into the slot's numbers; errno says what failed. */
static bool open_events(struct session *s, struct thread *t, int slot)
{
	for (size_t i = 0; i < s->options.event_count; i++) {
		t->first[i] = 1 + random_below(s, s->options.events[i].period);
		int fd = open_event(&s->options.events[i], t->tid, t->first[i]);
		int there = fd < 0 ? -1 : move_to(fd, slot * SESSION_EVENT_SLOTS + (int)i);
		int error = errno;
		if (fd >= 0)
			close(fd);
		if (there < 0 || !aim(there, t->tid)) {
			error = there < 0 ? error : errno;
			close_events(slot, there < 0 ? i : i + 1);
			errno = error;
			return false;
		}
	}
	return true;
}

static bool catches_signal(const struct thread *t)
{
	char name[48];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/status", (int)t->tid);
	struct err *e = process_file(t->process->pid, name, &text);
	const char *line = e ? NULL : strstr(buf_text(&text), "\nSigCgt:");
	uint64_t caught = line ? strtoull(line + strlen("\nSigCgt:"), NULL, 16) : 0;
	err_free(e);
	buf_free(&text);
	return caught >> (WIRE_SIGNAL - 1) & 1;
}

static void read_name(struct session *s, struct thread *t)
{
	char name[48];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/comm", (int)t->tid);
	struct err *e = process_file(t->process->pid, name, &text);
	if (!e && text.size) {
		snprintf(t->name, sizeof t->name, "%.*s", (int)strcspn(text.data, "\n"), text.data);
		if (t->profile)
			s->harvest.profile->threads[t->profile - 1].name = profile_string(
				s->harvest.profile, t->name);
	}
	err_free(e);
	buf_free(&text);
}

static void note_failure(struct session *s, int error)
{
	if (error == ESRCH) /* it has ended since */
		return;
	s->notes.unsampled_threads++;
	s->notes.unsampled_error = error;
}

static void watch_young(struct session *s, uint64_t now)
{
	s->young_until_ns = now + YOUNG_NS;
	if (!s->timer_fast)
		session_set_tick(s, FAST_TICK_NS);
	s->timer_fast = true;
}

void sampling_open(struct session *s, struct thread *t)
{
	if (t->process->gone || t->process->foreign) {
		s->notes.unsampled_threads += t->process->foreign;
		return;
	}
	read_name(s, t);
	if (s->options.timers)
		return;
	int slot = -1;
	bool good = false;
	for (int tries = 0; !good && tries < 1000; tries++) { /* numbers that others have */
		slot = take_slot(s);
		good = open_events(s, t, slot);
		if (!good && errno != EEXIST)
			break;
	}
	if (!good) {
		int error = errno;
		give_slot(s, slot);
		note_failure(s, error);
		return;
	}
	if (!catches_signal(t)) {
		close_events(slot, s->options.event_count);
		give_slot(s, slot);
		return;
	}
	t->slot = slot;
	t->open = t->young = true;
	for (size_t i = 0; i < s->options.event_count; i++)
		ioctl(slot * SESSION_EVENT_SLOTS + (int)i, PERF_EVENT_IOC_REFRESH, 1);
	watch_young(s, session_now());
}

void sampling_close(struct session *s, struct thread *t)
{
	if (!t->open)
		return;
	close_events(t->slot, s->options.event_count);
	give_slot(s, t->slot);
	t->open = false;
	t->slot = -1;
}

/* ---- periods ---- */

static void change_period(struct session *s, struct thread *t, size_t event)
{
	uint64_t period = later_period(s, s->options.events[event].period);
	ioctl(t->slot * SESSION_EVENT_SLOTS + (int)event, PERF_EVENT_IOC_PERIOD, &period);
}

/* Whether the event has stopped at its first sample. The signal of that may have been dropped, when
   another event's was pending. */
static bool has_stopped(const struct thread *t, struct arena_thread *r, size_t event)
{
	uint64_t count;
	if (atomic_load_explicit(&r->samples[event], memory_order_relaxed))
		return true;
	return read(t->slot * SESSION_EVENT_SLOTS + (int)event, &count, sizeof count) ==
		       (ssize_t)sizeof count &&
	       count >= t->first[event];
}

void sampling_grow_up(struct session *s, struct thread *t, struct arena_thread *r)
{
	bool young = false;
	if (!t->open || !t->young)
		return;
	for (size_t i = 0; i < s->options.event_count; i++) {
		if (t->settled >> i & 1)
			continue;
		if (!has_stopped(t, r, i)) {
			young = true;
			continue;
		}
		change_period(s, t, i);
		ioctl(t->slot * SESSION_EVENT_SLOTS + (int)i, PERF_EVENT_IOC_ENABLE, 0);
		t->settled |= 1u << i;
	}
	t->young = young;
}

static bool attend(struct session *s, struct thread *t, struct arena_thread *r, uint64_t now)
{
	uint64_t samples = 0;
	for (size_t i = 0; i < s->options.event_count; i++)
		samples += atomic_load_explicit(&r->samples[i], memory_order_relaxed);
	if (samples - t->samples < CHANGE_SAMPLES && now - t->attended_ns < NAME_NS)
		return false;
	t->attended_ns = now;
	read_name(s, t);
	if (samples - t->samples < CHANGE_SAMPLES)
		return true;
	t->samples = samples;
	bool all = now - t->changed_ns >= CHANGE_COUNTED_NS;
	for (size_t i = 0; t->open && i < s->options.event_count; i++)
		if ((t->settled >> i & 1) && (all || s->options.events[i].clock))
			change_period(s, t, i);
	if (all)
		t->changed_ns = now;
	return true;
}

void sampling_tick(struct session *s)
{
	uint64_t now = session_now(), busy = 0, interval;
	unsigned changes = 0;
	bool slow = now - s->attended_ns >= SESSION_TICK_NS * 9 / 10;
	if (slow)
		s->attended_ns = now;
	interval = CHANGE_NS * 9 / 10 > s->busy_threads * (CHANGE_NS / CHANGES_PER_TICK)
			   ? CHANGE_NS * 9 / 10
			   : s->busy_threads * (CHANGE_NS / CHANGES_PER_TICK);
	for (struct arena *a = s->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++) {
			struct thread *t = &a->threads[i];
			struct arena_thread *r = arena_record(a, t->chunk);
			sampling_grow_up(s, t, r);
			if (!slow)
				continue;
			busy += now - t->attended_ns < 2 * interval;
			if (changes < CHANGES_PER_TICK && now - t->attended_ns >= interval)
				changes += attend(s, t, r, now);
		}
	if (slow)
		s->busy_threads = busy;
	if (s->timer_fast && now > s->young_until_ns) {
		s->timer_fast = false;
		session_set_tick(s, SESSION_TICK_NS);
	}
}

/* ---- what a signal costs ---- */

static void on_signal(int signal)
{
	(void)signal;
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

uint64_t sampling_delivery(void)
{
	enum { TRIES = 256 };
	uint64_t times[TRIES];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
	sigset_t set, mask;
	pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	sigemptyset(&set);
	sigaddset(&set, WIRE_SIGNAL);
	if (sigaction(WIRE_SIGNAL, &action, &before))
		return 0;
	pthread_sigmask(SIG_UNBLOCK, &set, &mask);
	for (int i = 0; i < TRIES; i++) {
		uint64_t start = session_now();
		syscall(SYS_tgkill, pid, tid, WIRE_SIGNAL);
		times[i] = session_now() - start;
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(WIRE_SIGNAL, &before, NULL);
	qsort(times, TRIES, sizeof *times, compare_times);
	return times[TRIES / 2];
}
