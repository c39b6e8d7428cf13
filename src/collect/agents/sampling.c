/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a thread. They are ours: the target holds no descriptor.
 *
 * A signal that comes while the kernel works for the thread ends what it does: a wait returns
 * EINTR, a transfer that has begun is shorter than asked for, whatever the handler's flags. So each
 * event is opened twice:
 *
 *    in the thread's own code     a signal to the thread, which finds it nowhere else
 *    while the kernel works       no signal: registers and stack come here, see inside.c
 *
 * An event that the CPU counts takes a counter for each of the two. Where there are too few, all of its samples
 * come here, and one does.
 *
 * The signal's si_fd, the number of our descriptor, says which event it is. It kills a program
 * that does not catch it. So an event is enabled only when the thread is known to catch
 * it, after it was opened with the order that exec removes it: whatever program the thread is by then, it is safe.
 *
 * The first event, if it is a clock, is opened once more, in both kinds:
 *
 *    by chance  |----u---->|  stops                  u: a part of a period, by chance
 *    periodic   |--------P'-------->|--------P'-------->|--------P'-------->|
 *
 * So threads shorter than a period have their fair share of samples, and nothing
 * has to be done in time for a thread to be sampled on. That the others have one half too many then is
 * made good by the first tick of the period, which every other thread leaves out.
 * Now and then the period is changed a little, so that it never runs in
 * step with what the program does.
 *
 * The numbers of descriptors, modulo twice the count of events:
 *
 *    0 … count - 1     periodic events
 *    count             the first one's sample by chance
 *
 * An emulator's signals are not its program's, and the kernel knows nothing of that: there, events are not
 * told apart, and a sample may come at any time (agent/waits.c).
 */
#include "collect/agents/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/inside.h"
#include "collect/agents/state.h"
#include "collect/events.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "process/registers.h"
#include "process/status.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define CHANGES_PER_TICK 20u /* of periods: each disturbs a CPU */
#define CHANGE_NS 100000000ull
#define CHANGE_SAMPLES 64u /* since the last one at least: a change begins a period anew */
#define NAME_NS 1000000000ull
#define CHANGE_COUNTED_NS 2000000000ull /* a change loses half a period of what has no clock */
#define SILENT_PERIODS 20u              /* so many without a sample: the event is opened anew */
#define SILENT_MAX 6u                   /* doublings of that, where it was of no use */
#define NUMBER_TRIES 64

/* ---- chance ---- */

static uint64_t random_below(struct agents *agents, uint64_t limit)
{
	uint64_t number = recording_random(agents->recording);
	return limit ? (number >> 11) % limit : 0;
}

/* Where no clock weighs samples, a period that is longer makes fewer of them: then it is changed but a little. */
static uint64_t later_period(struct agents *agents, uint64_t period, bool weighed)
{
	uint64_t swing = period / (weighed ? 10 : 50);
	return period - swing + random_below(agents, 2 * swing + 1);
}

/* ---- descriptors ---- */

/* Moves the descriptor to a number that is `wanted`, modulo twice the count of events; -1 where that cannot be, and
   the descriptor is closed. */
static int renumber(struct agents *agents, int fd, int wanted)
{
	int count = (int)agents->recording->options.event_count * 2, error = EMFILE;
	int moved = fd % count == wanted ? fd : -1;
	for (int tries = 0, from = fd + 1; moved < 0 && tries < NUMBER_TRIES; tries++) {
		from += (wanted - from % count + count) % count;
		moved = fcntl(fd, F_DUPFD_CLOEXEC, from);
		error = errno == EINVAL ? EMFILE : errno; /* beyond the limit */
		if (moved < 0)
			break;
		if (moved % count == wanted)
			continue;
		from = moved + 1 + tries * count; /* many in a row may be taken */
		close(moved);
		moved = -1;
		error = EMFILE;
	}
	if (moved != fd)
		close(fd);
	errno = error;
	return moved;
}

/* ---- opening ---- */

static int open_event(const struct recording_event *event, pid_t tid, uint64_t period, bool user)
{
	struct perf_event_attr attr = event_attr(event);
	attr.sample_period = period;
	attr.exclude_kernel = attr.exclude_hv = user;
	attr.remove_on_exec = 1;
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool aim(int fd, pid_t tid)
{
	struct f_owner_ex owner = {F_OWNER_TID, tid};
	return !fcntl(fd, F_SETSIG, WIRE_SIGNAL) && !fcntl(fd, F_SETOWN_EX, &owner) &&
	       !fcntl(fd, F_SETFL, O_RDWR | O_ASYNC);
}

/* An event that waits to be enabled, or -1: errno says why. */
static int prepare(struct agents *agents, pid_t tid, size_t event, int number, uint64_t period,
		   bool split)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	int fd = open_event(e, tid, period, e->user_only || split);
	if (fd >= 0)
		fd = renumber(agents, fd, number);
	if (fd >= 0 && !aim(fd, tid)) {
		int error = errno;
		close(fd);
		errno = error;
		fd = -1;
	}
	return fd;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void tally_one(int fd, struct tally *tally)
{
	const struct tally_reading none = {0};
	struct tally_reading now;
	if (tally_read(fd, &now))
		tally_add(tally, &none, &now);
}

/* A clock goes on wherever the thread is: each of the two has counted all. */
static void tally_events(const struct agents *agents, const struct events *e, struct tally *tallies)
{
	for (size_t i = 0; e->open && i < agents->recording->options.event_count; i++) {
		tally_one(e->periodic[i], &tallies[i]);
		if (e->inside && !agents->recording->options.events[i].clock)
			tally_one(inside_event(e->inside, i), &tallies[i]);
	}
}

static void close_events(struct agents *agents, struct events *e)
{
	if (!e->open)
		return;
	tally_events(agents, e, agents->sampling.tallies);
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		close_one(&e->periodic[i]);
	close_one(&e->once);
	inside_close(agents, e->inside);
	e->inside = NULL;
	e->open = false;
}

/* Those that no signal brings. */
static void prepare_inside(struct agents *agents, pid_t tid, bool by_chance, struct events *e)
{
	uint64_t periods[ARENA_METRICS_MAX];
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		periods[i] = later_period(agents, agents->recording->options.events[i].period,
					  false);
	e->inside = inside_open(
		agents, tid, periods,
		by_chance ? 1 + random_below(agents, agents->recording->options.events[0].period)
			  : 0);
	agents->recording->notes.outside_threads += !e->inside && errno != ESRCH;
}

/* All of them, not enabled; errno says what failed. */
static bool prepare_all(struct agents *agents, pid_t tid, bool split, struct events *e)
{
	size_t count = agents->recording->options.event_count;
	const struct recording_event *first = &agents->recording->options.events[0];
	bool by_chance = first->clock && !first->user_only;
	*e = (struct events){.open = true, .once = -1};
	for (size_t i = 0; i < count; i++)
		e->periodic[i] = -1;
	if (split)
		prepare_inside(agents, tid, by_chance, e);
	for (size_t i = 0; i < count; i++) {
		uint64_t period = agents->recording->options.events[i].period;
		if (e->inside && inside_is_whole(agents, i))
			continue;
		e->periodic[i] = prepare(agents, tid, i, (int)i,
					 later_period(agents, period, !split), split);
		if (e->periodic[i] < 0) {
			int error = errno;
			close_events(agents, e);
			errno = error;
			return false;
		}
	}
	if (by_chance) /* without it, if need be */
		e->once = prepare(agents, tid, 0, (int)count,
				  1 + random_below(agents, first->period), split);
	return true;
}

static bool catches_signal(pid_t pid, pid_t tid)
{
	char name[48];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/status", (int)tid);
	struct err *e = process_file(pid, name, &text);
	const char *line = e ? NULL : strstr(buf_text(&text), "\nSigCgt:");
	uint64_t caught = line ? strtoull(line + strlen("\nSigCgt:"), NULL, 16) : 0;
	err_free(e);
	buf_free(&text);
	return caught >> (WIRE_SIGNAL - 1) & 1;
}

static void read_name(struct agents *agents, struct thread *t)
{
	char name[48];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/comm", (int)t->tid);
	struct err *e = process_file(t->process->pid, name, &text);
	if (!e && text.size) {
		snprintf(t->name, sizeof t->name, "%.*s", (int)strcspn(text.data, "\n"), text.data);
		if (t->profile)
			agents->recording->harvest.profile->threads[t->profile - 1].name =
				profile_string(agents->recording->harvest.profile, t->name);
	}
	err_free(e);
	buf_free(&text);
}

static void note_failure(struct agents *agents, int error)
{
	if (error == ESRCH) /* it has ended since */
		return;
	agents->recording->notes.unsampled_threads++;
	agents->recording->notes.unsampled_error = error;
}

/* Opens and enables; false where the thread is not sampled. */
static bool open_all(struct agents *agents, const struct process *p, pid_t tid, struct events *e)
{
	if (!prepare_all(agents, tid, sampling_is_split(agents, p), e)) {
		note_failure(agents, errno);
		return false;
	}
	if (!catches_signal(p->pid, tid)) {
		close_events(agents, e);
		return false;
	}
	if (e->once >= 0)
		ioctl(e->once, PERF_EVENT_IOC_REFRESH, 1);
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		ioctl(e->periodic[i], PERF_EVENT_IOC_ENABLE, 0);
	if (e->inside)
		inside_enable(e->inside);
	return true;
}

bool sampling_is_split(const struct agents *agents, const struct process *p)
{
	return agents->inside.rings && p->machine == native_machine;
}

bool sampling_is_whole(const struct agents *agents, const struct process *p,
		       const struct recording_event *event)
{
	return !event->user_only && !sampling_is_split(agents, p);
}

/* A counter of the CPU tells a few instructions late, in the kernel by then. */
bool sampling_interrupts(const struct agents *agents, const struct process *p,
			 const struct recording_event *event)
{
	if (agents->recording->options.timers)
		return agents->sampling.timers_interrupt || p->machine != native_machine;
	if (event->counter)
		return true;
	return sampling_is_whole(agents, p, event);
}

void sampling_open_early(struct agents *agents, struct process *p)
{
	if (!agents->recording->options.timers && !p->gone && !p->foreign)
		open_all(agents, p, p->pid, &p->agent->early);
}

void sampling_close_early(struct agents *agents, struct process *p)
{
	close_events(agents, &p->agent->early);
}

void sampling_open(struct agents *agents, struct thread *t)
{
	struct process *p = t->process;
	if (p->gone || p->foreign) {
		agents->recording->notes.unsampled_threads += p->foreign;
		return;
	}
	if (p->agent->early.open && t->tid == p->pid) {
		t->events = p->agent->early;
		p->agent->early.open = false;
	} else if (!agents->recording->options.timers) {
		open_all(agents, p, t->tid, &t->events);
	}
	if (t->events.open && t->events.inside)
		inside_adopt(agents, t->events.inside, p->agent->arena, t->chunk);
	read_name(agents, t);
}

void sampling_close(struct agents *agents, struct thread *t)
{
	close_events(agents, &t->events);
}

void sampling_tally(const struct agents *agents, struct tally *tallies)
{
	memcpy(tallies, agents->sampling.tallies, sizeof agents->sampling.tallies);
	for (const struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++)
			tally_events(agents, &a->threads[i].events, tallies);
	for (const struct process *p = agents->recording->processes; p; p = p->next)
		tally_events(agents, &p->agent->early, tallies);
}

/* ---- periods ---- */

/* The two do not run in step either: what comes a moment after a signal would find the kernel at work for that,
   each time. */
static void change_period(struct agents *agents, struct thread *t, size_t event)
{
	bool weighed = !sampling_is_split(agents, t->process);
	uint64_t period = later_period(agents, agents->recording->options.events[event].period,
				       weighed);
	ioctl(t->events.periodic[event], PERF_EVENT_IOC_PERIOD, &period);
	if (t->events.inside)
		inside_change_period(t->events.inside, event,
				     later_period(agents,
						  agents->recording->options.events[event].period,
						  weighed));
}

static uint64_t samples_inside(const struct thread *t)
{
	return t->events.open && t->events.inside ? inside_samples(t->events.inside) : 0;
}

static bool attend(struct agents *agents, struct thread *t, struct arena_thread *r, uint64_t now)
{
	uint64_t samples = samples_inside(t);
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		samples += atomic_load_explicit(&r->samples[i], memory_order_relaxed);
	if (samples - t->samples < CHANGE_SAMPLES && now - t->attended_ns < NAME_NS)
		return false;
	t->attended_ns = now;
	read_name(agents, t);
	if (samples - t->samples < CHANGE_SAMPLES)
		return true;
	t->samples = samples;
	bool all = now - t->changed_ns >= CHANGE_COUNTED_NS;
	for (size_t i = 0; t->events.open && i < agents->recording->options.event_count; i++)
		if (all || (agents->recording->options.events[i].clock &&
			    !sampling_is_split(agents, t->process)))
			change_period(agents, t, i);
	if (all)
		t->changed_ns = now;
	return true;
}

static void renew_clock(struct agents *agents, struct thread *t)
{
	struct events fresh;
	close_events(agents, &t->events);
	if (open_all(agents, t->process, t->tid, &fresh)) {
		t->events = fresh;
		if (fresh.inside)
			inside_adopt(agents, fresh.inside, t->process->agent->arena, t->chunk);
	}
	t->clock_known = false;
	t->clock_renewed += t->clock_renewed < SILENT_MAX;
}

/* What was to come by chance within the first period has come, or will not. */
static void end_chance(struct events *e, uint64_t period)
{
	struct tally_reading now;
	if (e->once < 0 || !tally_read(e->periodic[0], &now) || now.count < 2 * period)
		return;
	close_one(&e->once);
	if (e->inside)
		inside_end_chance(e->inside);
}

/* A clock that goes on while no samples come: whatever the reason, with a new one they may. */
static void watch_clock(struct agents *agents, struct thread *t, const struct arena_thread *record)
{
	struct arena_thread *r = (struct arena_thread *)record;
	const struct recording_event *event = &agents->recording->options.events[0];
	struct events *e = &t->events;
	struct tally_reading now;
	uint64_t samples = atomic_load_explicit(&r->samples[0], memory_order_relaxed) +
			   samples_inside(t);
	if (!e->open || !event->clock)
		return;
	end_chance(e, event->period);
	if (samples != t->clock_samples || !t->clock_watched) {
		t->clock_samples = samples;
		t->clock_watched = true;
		t->clock_renewed = 0;
		t->clock_known = false;
		return;
	}
	if (!tally_read(e->periodic[0], &now))
		return;
	if (!t->clock_known || now.count < t->clock_count) {
		t->clock_known = true;
		t->clock_count = now.count;
	} else if (now.count - t->clock_count > SILENT_PERIODS * event->period
							<< t->clock_renewed) {
		renew_clock(agents, t);
	}
}

void sampling_tick(struct agents *agents)
{
	uint64_t now = now_ns(), busy = 0,
		 interval = agents->sampling.busy * (CHANGE_NS / CHANGES_PER_TICK);
	unsigned changes = 0;
	if (interval < CHANGE_NS * 9 / 10)
		interval = CHANGE_NS * 9 / 10;
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++) {
			struct thread *t = &a->threads[i];
			struct arena_thread *r = arena_record(a, t->chunk);
			watch_clock(agents, t, r);
			busy += now - t->attended_ns < 2 * interval;
			if (changes < CHANGES_PER_TICK && now - t->attended_ns >= interval)
				changes += attend(agents, t, r, now);
		}
	agents->sampling.busy = busy;
}

/* ---- what a signal does and costs ---- */

static void on_signal(int signal)
{
	(void)signal;
}

/* So that our signal comes here, and as it was before. */
struct hearing {
	struct sigaction action;
	sigset_t mask;
};

static bool hear(struct hearing *before)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, WIRE_SIGNAL);
	if (sigaction(WIRE_SIGNAL, &action, &before->action))
		return false;
	pthread_sigmask(SIG_UNBLOCK, &set, &before->mask);
	return true;
}

static void hear_no_more(const struct hearing *before)
{
	pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
	sigaction(WIRE_SIGNAL, &before->action, NULL);
}

/* The kernel looks at these timers in its own tick. Newer ones (5.9 on x86-64, later on aarch64) send the
   signal when the thread is about to go back to its own code, and nothing ends because of it. Older ones
   send it at once. What this one does is seen by a transfer that takes longer than a tick. */

#define PIECE (64u << 10)
#define PIECES 1024
#define TRANSFERS 8 /* some 5 ms each */

static bool is_cut_short(int zero, char *memory)
{
	struct iovec pieces[PIECES];
	for (size_t i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){memory, PIECE};
	return readv(zero, pieces, PIECES) != (ssize_t)PIECE * PIECES;
}

static bool do_timers_interrupt(void)
{
	const struct itimerspec when = {{0, 1000000}, {0, 1000000}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WIRE_SIGNAL};
	struct hearing before;
	timer_t timer;
	bool found = true; /* where nothing can be seen */
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *memory = malloc(PIECE);
	if (zero >= 0 && memory && hear(&before)) {
		if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer)) {
			timer_settime(timer, 0, &when, NULL);
			found = false;
			for (int i = 0; i < TRANSFERS && !found; i++)
				found = is_cut_short(zero, memory);
			timer_delete(timer);
		}
		hear_no_more(&before);
	}
	free(memory);
	if (zero >= 0)
		close(zero);
	return found;
}

void sampling_start(struct agents *agents)
{
	agents->sampling.timers_interrupt = agents->recording->options.timers &&
					    do_timers_interrupt();
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* As in a program whose own code and data fill the caches: between two samples of it, what the
   kernel needs for a signal goes out of them. */
#define CACHES (2u << 20)

static void fill_caches(volatile char *memory)
{
	for (size_t i = 0; memory && i < CACHES; i += 64)
		memory[i]++;
}

uint64_t sampling_delivery(void)
{
	enum { TRIES = 15 };
	uint64_t times[TRIES];
	char *memory = calloc(1, CACHES);
	struct hearing before;
	pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	if (!hear(&before)) {
		free(memory);
		return 0;
	}
	for (int i = 0; i < TRIES; i++) {
		fill_caches(memory);
		uint64_t start = now_ns();
		syscall(SYS_tgkill, pid, tid, WIRE_SIGNAL);
		times[i] = now_ns() - start;
	}
	hear_no_more(&before);
	free(memory);
	qsort(times, TRIES, sizeof *times, compare_times);
	return times[TRIES / 2];
}
