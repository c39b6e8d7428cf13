/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a thread. They are the collector's: the target holds no descriptor.
 *
 * A signal that comes while the kernel works for the thread ends that work: a wait returns EINTR, and a
 * transfer that has begun is shorter than asked for, whatever the handler's flags are. So each event is
 * opened twice:
 *
 *    in the thread's own code     a signal to the thread; it can only come there
 *    while the kernel works       no signal: registers and stack come to us, see unsignalled.c
 *
 * An event that the CPU counts takes a counter for each of the two. If the CPU has too few, all samples of
 * the event come to us, and one counter is enough.
 *
 * The signal's si_fd, which is the number of our descriptor, tells the event. The signal kills a program that
 * does not catch it. So we first open the event, in such a way that exec removes it. Then we check that the
 * thread catches the signal. Only then is the event enabled. So it is safe even if the thread runs another
 * program by then.
 *
 * If the first event is a clock, it is opened once more, in both kinds, for one sample by chance:
 *
 *    by chance  |----u---->|  stops                  u: a random part of a period
 *    periodic   |--------P'-------->|--------P'-------->|--------P'-------->|
 *
 * So threads shorter than a period have their fair share of samples, and we need not do anything in time to
 * keep a thread sampled. But longer threads have half a sample too many then. To make up for that, every
 * other thread leaves out the first tick of its period. Now and then the period is changed a little, so that
 * it never runs in step with what the program does.
 *
 * The numbers of the descriptors, modulo twice the number of events:
 *
 *    0 … count - 1     periodic events
 *    count             the first event's sample by chance
 *
 * In an emulator, the kernel cannot tell the program's own code from the emulator's, and signals go to the
 * emulator first. So there events are not opened twice, and a sample may come at any time (agent/waits.c).
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
#include "collect/agents/state.h"
#include "collect/agents/unsignalled.h"
#include "collect/events.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "process/registers.h"
#include "process/status.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define CHANGES_PER_TICK 20u /* of periods: each one disturbs a CPU */
#define CHANGE_NS 100000000ull
/* Samples between two changes at least, because each change starts a period again. */
#define CHANGE_SAMPLES 64u
#define NAME_NS 1000000000ull
/* Time between two changes, for events that are no clocks: each change loses half a period of them. */
#define CHANGE_COUNTED_NS 2000000000ull
#define SWING_LEAST 0.02 /* of a clock's rate, which no CPU clock weighs */
#define SWING_MOST 0.05
#define SILENT_PERIODS 20u /* without a sample: then the event is reopened */
#define SILENT_MAX 6u      /* doublings of that, if it did not help */
#define NUMBER_TRIES 64

/* ---- random numbers ---- */

static uint64_t random_below(struct agents *agents, uint64_t limit)
{
	uint64_t number = recording_random(agents->recording);
	return limit ? (number >> 11) % limit : 0;
}

/* A period with a small random change. If no clock weighs the samples, longer periods mean fewer samples;
   then the change is smaller. */
static uint64_t later_period(struct agents *agents, uint64_t period, bool weighed)
{
	uint64_t swing = period / (weighed ? 10 : 50);
	return period - swing + random_below(agents, 2 * swing + 1);
}

/* ---- numbers of descriptors ---- */

/* Moves the descriptor to a number that is `wanted` modulo twice the number of events. On errors it is
   closed, and the result is -1. */
static int renumber(struct agents *agents, int fd, int wanted)
{
	int count = (int)agents->recording->options.event_count * 2, error = EMFILE;
	int moved = fd % count == wanted ? fd : -1;
	for (int tries = 0, from = fd + 1; moved < 0 && tries < NUMBER_TRIES; tries++) {
		from += (wanted - from % count + count) % count;
		moved = fcntl(fd, F_DUPFD_CLOEXEC, from);
		error = errno == EINVAL ? EMFILE : errno; /* beyond the limit of descriptors */
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

/* Opens an event that is not enabled yet; -1 on errors, see errno. */
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

/* Adds the counts of a thread's events. A clock runs wherever the thread is, so each of its two events has
   counted everything; only one is added. */
static void tally_events(const struct agents *agents, const struct events *e, struct tally *tallies)
{
	for (size_t i = 0; e->open && i < agents->recording->options.event_count; i++) {
		tally_one(e->periodic[i], &tallies[i]);
		if (e->unsignalled && !agents->recording->options.events[i].clock)
			tally_one(unsignalled_event(e->unsignalled, i), &tallies[i]);
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
	unsignalled_close(agents, e->unsignalled);
	e->unsignalled = NULL;
	e->open = false;
}

/* Opens the events that bring no signal. */
static void prepare_unsignalled(struct agents *agents, pid_t tid, bool by_chance, bool whole,
				struct events *e)
{
	uint64_t periods[ARENA_METRICS_MAX];
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		periods[i] = later_period(agents, agents->recording->options.events[i].period,
					  false);
	e->unsignalled = unsignalled_open(
		agents, tid, periods,
		by_chance ? 1 + random_below(agents, agents->recording->options.events[0].period)
			  : 0,
		whole);
	agents->recording->notes.own_code_threads += !e->unsignalled && errno != ESRCH;
}

/* Opens all events of a thread, not enabled. `deaf`: no signal reaches it. On errors see errno. */
static bool prepare_all(struct agents *agents, pid_t tid, bool split, bool deaf, struct events *e)
{
	size_t count = agents->recording->options.event_count;
	const struct recording_event *first = &agents->recording->options.events[0];
	bool by_chance = first->clock && !first->user_only;
	*e = (struct events){.open = true, .once = -1};
	for (size_t i = 0; i < count; i++)
		e->periodic[i] = -1;
	if (split)
		prepare_unsignalled(agents, tid, by_chance, deaf, e);
	if (deaf) /* everything comes to us */
		return true;
	for (size_t i = 0; i < count; i++) {
		uint64_t period = agents->recording->options.events[i].period;
		if (!event_is_sampled(&agents->recording->options.events[i]) ||
		    (e->unsignalled && unsignalled_takes_all(agents, i)))
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
	if (by_chance) /* if this fails, we go on without it */
		e->once = prepare(agents, tid, 0, (int)count,
				  1 + random_below(agents, first->period), split);
	return true;
}

/* Whether our signal is in a set of the thread: "SigCgt" (caught), "SigBlk" (blocked). */
static bool has_signal(pid_t pid, pid_t tid, const char *set)
{
	char name[48], key[16];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/status", (int)tid);
	snprintf(key, sizeof key, "\n%s:", set);
	struct err *e = process_file(pid, name, &text);
	const char *line = e ? NULL : strstr(buf_text(&text), key);
	uint64_t signals = line ? strtoull(line + strlen(key), NULL, 16) : 0;
	err_free(e);
	buf_free(&text);
	return signals >> (WIRE_SIGNAL - 1) & 1;
}

/* An agent that came late cannot keep the program from blocking our signal. Nor can it hide that a signal ended a call, as
   one of a counter may (sampling_interrupts). So no signal is sent in these cases. */
static bool is_deaf(const struct agents *agents, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		if (agents->recording->options.events[i].counter)
			return true;
	return has_signal(pid, tid, "SigBlk");
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
	if (error == ESRCH) /* the thread has ended */
		return;
	agents->recording->notes.unsampled_threads++;
	agents->recording->notes.unsampled_error = error;
}

/* Opens and enables all events of a thread; false if it is not sampled. */
static bool open_all(struct agents *agents, const struct process *p, pid_t tid, struct events *e)
{
	bool deaf = p->agent->late && is_deaf(agents, p->pid, tid);
	if (!prepare_all(agents, tid, sampling_is_split(agents, p), deaf, e)) {
		note_failure(agents, errno);
		return false;
	}
	if (!has_signal(p->pid, tid, "SigCgt")) {
		close_events(agents, e);
		return false;
	}
	if (e->once >= 0)
		ioctl(e->once, PERF_EVENT_IOC_REFRESH, 1);
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		ioctl(e->periodic[i], PERF_EVENT_IOC_ENABLE, 0);
	if (e->unsignalled)
		unsignalled_enable(e->unsignalled);
	return true;
}

bool sampling_is_split(const struct agents *agents, const struct process *p)
{
	return agents->unsignalled.rings && p->machine == native_machine;
}

bool sampling_signals_bring_all(const struct agents *agents, const struct process *p,
				const struct recording_event *event)
{
	return !event->user_only && !sampling_is_split(agents, p);
}

/* A counter of the CPU signals a few instructions late: the thread may be in the kernel by then. */
bool sampling_interrupts(const struct agents *agents, const struct process *p,
			 const struct recording_event *event)
{
	if (agents->recording->options.timers)
		return agents->sampling.timers_interrupt || p->machine != native_machine;
	if (event->counter)
		return true;
	return sampling_signals_bring_all(agents, p, event);
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
	if (t->events.open && t->events.unsignalled)
		unsignalled_adopt(agents, t->events.unsignalled, p->agent->arena, t->chunk);
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

/* The period of a clock whose samples all have the same weight. Its rate is higher or lower by a random part,
   and then lower or higher by as much, so that there are as many samples in all. Each change begins a period
   anew, and half a period is lost; the rate makes up for that, too. `samples` is their number since the last
   change. */
static uint64_t swung_period(struct agents *agents, uint64_t period, bool back, float *swing,
			     uint64_t samples)
{
	double part = (double)random_below(agents, 1001) / 1000;
	double most = SWING_LEAST + part * (SWING_MOST - SWING_LEAST);
	if (back)
		*swing = -*swing;
	else
		*swing = (float)(random_below(agents, 2) ? most : -most);
	return (uint64_t)((double)period / (1 + *swing + 0.5 / (double)samples) + 0.5);
}

/* The two events get different periods. With the same one, the second would always come a moment after the
   first, while the kernel delivers its signal. */
static void change_period(struct agents *agents, struct thread *t, size_t event, uint64_t samples)
{
	const struct recording_event *e = &agents->recording->options.events[event];
	bool split = sampling_is_split(agents, t->process);
	uint64_t periods[2];
	for (size_t i = 0; i < 2; i++)
		periods[i] = split && e->clock ? swung_period(agents, e->period, t->swings_back,
							      &t->swings[i][event], samples)
					       : later_period(agents, e->period, !split);
	ioctl(t->events.periodic[event], PERF_EVENT_IOC_PERIOD, &periods[0]);
	if (t->events.unsignalled)
		unsignalled_change_period(t->events.unsignalled, event, periods[1]);
}

static uint64_t unsignalled_so_far(const struct thread *t)
{
	return t->events.open && t->events.unsignalled ? unsignalled_samples(t->events.unsignalled)
						       : 0;
}

/* Reads the thread's name again and changes its periods, if it had enough samples or it is time. Returns
   whether it was due. */
static bool attend(struct agents *agents, struct thread *t, struct arena_thread *r, uint64_t now)
{
	uint64_t samples = unsignalled_so_far(t);
	for (size_t i = 0; i < agents->recording->options.event_count; i++)
		if (event_is_sampled(&agents->recording->options.events[i]))
			samples += atomic_load_explicit(&r->samples[i], memory_order_relaxed);
	if (samples - t->samples < CHANGE_SAMPLES && now - t->attended_ns < NAME_NS)
		return false;
	t->attended_ns = now;
	read_name(agents, t);
	if (samples - t->samples < CHANGE_SAMPLES)
		return true;
	bool all = now - t->changed_ns >= CHANGE_COUNTED_NS;
	for (size_t i = 0; t->events.open && i < agents->recording->options.event_count; i++)
		if (all || agents->recording->options.events[i].clock)
			change_period(agents, t, i, samples - t->samples);
	t->samples = samples;
	t->swings_back = !t->swings_back;
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
		if (fresh.unsignalled)
			unsignalled_adopt(agents, fresh.unsignalled, t->process->agent->arena,
					  t->chunk);
	}
	t->clock_known = false;
	t->clock_renewed += t->clock_renewed < SILENT_MAX;
}

/* Closes the event for the sample by chance: it was due in the first period. */
static void end_chance(struct events *e, uint64_t period)
{
	struct tally_reading now;
	if (e->once < 0 || !tally_read(e->periodic[0], &now) || now.count < 2 * period)
		return;
	close_one(&e->once);
	if (e->unsignalled)
		unsignalled_end_chance(e->unsignalled);
}

/* Reopens a clock that runs on without samples. Whatever the reason is, that may help. */
static void reopen_silent_clock(struct agents *agents, struct thread *t,
				const struct arena_thread *record)
{
	struct arena_thread *r = (struct arena_thread *)record;
	const struct recording_event *event = &agents->recording->options.events[0];
	struct events *e = &t->events;
	struct tally_reading now;
	uint64_t samples = atomic_load_explicit(&r->samples[0], memory_order_relaxed) +
			   unsignalled_so_far(t);
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
			reopen_silent_clock(agents, t, r);
			busy += now - t->attended_ns < 2 * interval;
			if (changes < CHANGES_PER_TICK && now - t->attended_ns >= interval)
				changes += attend(agents, t, r, now);
		}
	agents->sampling.busy = busy;
}

/* ---- effects and cost of a signal ---- */

static void on_signal(int signal)
{
	(void)signal;
}

/* Lets our signal come to this process for a while, and keeps the former settings. */
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

/* The kernel checks POSIX timers in its own tick. Newer kernels (5.9 on x86-64, later on aarch64) send the
   signal when the thread returns to its own code, and then it interrupts nothing. Older kernels send it at
   once. To find out what this kernel does, a transfer is tried that takes longer than a tick. */

#define PIECE (64u << 10)
#define PIECES 1024
#define TRANSFERS 8 /* about 5 ms each */

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
	bool found = true; /* if it cannot be tried */
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

/* A busy program fills the caches with its own code and data. So between two samples, what the kernel
   needs for a signal is evicted. This has the same effect. */
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
