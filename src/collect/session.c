/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file_limit.h"
#include "collect/events.h"
#include "collect/internal.h"
#include "collect/kernel.h"
#include "collect/sampler.h"
#include "safe/ticks.h"

#define WAIT_MS 100 /* between two questions whether tables are waited for */
#define HANDLED_AT_ONCE 256
#define CALIBRATE_NS 5000000ull
#define MISSING_NOTED 0.05 /* of the samples of an event */
#define MISSING_OF 200     /* where there should be so many */
#define UNWIND_POINTERS 3  /* after enum recipes_mode */

uint64_t session_since(const struct session *s, uint64_t ns)
{
	return ns > s->start_ns ? ns - s->start_ns : 0;
}

void session_set_tick(struct session *s, uint64_t ns)
{
	struct itimerspec when = {
		.it_interval = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
	when.it_value = when.it_interval;
	timerfd_settime(s->timer, 0, &when, NULL);
}

/* ---- opening ---- */

static struct err *no_memory(void)
{
	return err_new("out of memory");
}

static bool raise_limit(struct session *s)
{
	if (getrlimit(RLIMIT_NOFILE, &s->files))
		return false;
	struct rlimit more = {s->files.rlim_max, s->files.rlim_max};
	return more.rlim_cur != s->files.rlim_cur && !setrlimit(RLIMIT_NOFILE, &more);
}

static void restore_limits(struct session *s)
{
	if (s->files_raised)
		setrlimit(RLIMIT_NOFILE, &s->files);
}

void session_child(struct session *s)
{
	restore_limits(s);
	file_limit_restore();
	s->sampler->join(s);
}

struct err *session_watch(struct session *s, int fd, enum watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? err_errno("cannot watch descriptors")
		       : NULL;
}

static struct err *make_loop(struct session *s)
{
	s->socket_watch = WATCH_SOCKET;
	s->timer_watch = WATCH_TIMER;
	s->bell_watch = WATCH_BELL;
	s->kernel_watch = WATCH_KERNEL;
	s->inside_watch = WATCH_INSIDE;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->timer < 0)
		return err_errno("cannot make an event loop");
	session_set_tick(s, SESSION_TICK_NS);
	struct err *e = session_watch(s, s->timer, &s->timer_watch);
	if (!e)
		e = session_watch(s, s->bell.ring, &s->bell_watch);
	return e;
}

void session_describe(struct session *s)
{
	struct profile *p = s->harvest.profile;
	struct utsname system;
	char *directory = getcwd(NULL, 0);
	if (!uname(&system)) {
		p->host = profile_string(p, system.nodename);
		p->kernel = profile_string(p, system.release);
		p->machine = profile_string(p, system.machine);
	}
	p->directory = profile_string(p, directory ? directory : "");
	free(directory);
	p->start_time = (uint64_t)time(NULL);
	p->hz = s->options.hz;
	p->unwind = s->options.frame_pointers ? UNWIND_POINTERS : (uint32_t)s->options.unwind;
	p->delivery_ns = s->sampler->delivery();
}

/* While tables are made: new threads do not wait for that, and samples to walk are put aside. The
   rest is done afterwards. */
static bool greet_until(void *context, int until, const char *what)
{
	struct session *s = context;
	const struct session_options *o = &s->options;
	bool rung = false, done = true;
	for (;;) {
		struct pollfd ready[] = {
			{until, POLLIN, 0}, {s->bell.ring, POLLIN, 0}, {inside_fd(s), POLLIN, 0}};
		if (poll(ready, 3, o->wait_on ? WAIT_MS : -1) < 0 && errno != EINTR)
			break;
		if (ready[0].revents)
			break;
		if (o->wait_on && !o->wait_on(o->wait_context, what)) {
			done = false;
			break;
		}
		if (ready[2].revents)
			inside_hear(s);
		if (!ready[1].revents)
			continue;
		rung = true;
		bell_hear(&s->bell);
		for (struct arena *a = s->arenas; a; a = a->next)
			arena_greet(s, a);
	}
	if (rung)
		bell_ring_again(&s->bell);
	return done;
}

static struct err *open_all(struct session *s)
{
	struct err *e = library_open(s->options.unwind, !s->options.frame_pointers,
				     s->options.agent, &s->library);
	if (!e)
		e = bell_open(&s->bell);
	if (!e)
		e = make_loop(s);
	if (!e)
		e = harvest_begin(s, &s->harvest);
	if (!e)
		library_set_meanwhile(s->library, greet_until, s);
	if (!e)
		e = s->sampler->open(s);
	if (!e)
		session_describe(s);
	return e;
}

struct err *session_open(const struct session_options *options, struct session **out)
{
	struct session *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return no_memory();
	s->options = *options;
	s->sampler = s->options.kernel ? &sampler_kernel : &sampler_agents;
	s->epoll = s->listener = s->timer = s->lock = -1;
	s->bell.fd = s->bell.ring = -1;
	s->start_ns = now_ns();
	s->start_ticks = ticks_now();
	s->boot_ms = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000) -
		     (int64_t)(clock_ns(CLOCK_BOOTTIME) / 1000000);
	if (getrandom(&s->random, sizeof s->random, GRND_NONBLOCK) != sizeof s->random)
		s->random = s->start_ticks;
	s->random |= 1;
	s->options.agent = strdup(options->agent ? options->agent : "");
	s->timers_interrupt = s->options.timers && sampling_timers_interrupt();
	if (s->options.timers && s->options.event_count > 1)
		s->options.event_count = 1;
	file_limit_ignore();
	bell_hurry();
	s->files_raised = raise_limit(s);
	struct err *e = !s->options.agent ? no_memory() : NULL;
	if (!e && (!s->options.event_count || s->options.event_count > ARENA_METRICS_MAX))
		e = err_new("between 1 and %d events can be recorded at once", ARENA_METRICS_MAX);
	if (!e)
		e = open_all(s);
	if (e) {
		session_close(s);
		return e;
	}
	*out = s;
	return NULL;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	s->sampler->close(s);
	for (struct arena *a = s->arenas; a; a = a->next)
		atomic_store(&a->header->stop, 1);
	while (s->harvest.profile && s->arenas)
		arena_close(s, s->arenas);
	door_close(s);
	bell_close(&s->bell);
	inside_stop(s);
	close_one(&s->epoll);
	close_one(&s->timer);
	library_close(s->library);
	times_close(s);
	harvest_end(&s->harvest);
	restore_limits(s);
	free(s->preload);
	free(s->notes.refused_why);
	free((char *)s->options.agent);
	free(s);
}

/* ---- the loop ---- */

int session_fd(const struct session *s)
{
	return s->epoll;
}

/* Looking takes longer the more there is to look at: then it is done more rarely. Waiting for
   tables and walking are no looking. */
static void on_bell(struct session *s)
{
	uint64_t start = own_cpu_ns() - s->walking_ns;
	bell_hear(&s->bell);
	for (struct arena *a = s->arenas; a; a = a->next)
		if (atomic_load(&a->header->changes) != a->changes)
			arena_scan(s, a);
	uint64_t pause = (own_cpu_ns() - s->walking_ns - start) * 2 / 1000;
	atomic_store(&s->bell.pause_us, pause > 100 ? (uint32_t)pause : 100);
}

/* Those that we could get no descriptor of. */
static void find_ended(struct session *s)
{
	for (struct arena *a = s->arenas; a; a = a->next)
		for (struct process *p = a->processes, *next; p; p = next) {
			next = p->next;
			if (!a->kernel && p->pidfd < 0 && !p->foreign && !process_is_alive(p))
				process_end(s, p);
		}
}

static void on_tick(struct session *s)
{
	uint64_t expired, now = now_ns();
	while (read(s->timer, &expired, sizeof expired) < 0 && errno == EINTR)
		;
	s->sampler->tick(s);
	for (struct arena *a = s->arenas; a; a = a->next)
		arena_scan(s, a);
	times_take_all(s);
	find_ended(s);
	arena_sweep(s);
	process_tick(s, now);
	talk_hang_up(s, false);
}

static void handle(struct session *s, enum watch *watch)
{
	switch (*watch) {
	case WATCH_SOCKET:
		talk_accept(s);
		break;
	case WATCH_CLIENT:
		talk_hear(s, (struct client *)watch);
		break;
	case WATCH_TIMER:
		on_tick(s);
		break;
	case WATCH_BELL:
		on_bell(s);
		break;
	case WATCH_PROCESS:
		process_end(s, (struct process *)watch);
		break;
	case WATCH_KERNEL:
		kernel_drain(s, false);
		break;
	case WATCH_INSIDE:
		inside_hear(s);
		unwalked_walk(s);
		break;
	}
}

/* One at a time: what is done for one may free what the next one is about. */
struct err *session_handle(struct session *s)
{
	struct epoll_event event;
	for (int i = 0; i < HANDLED_AT_ONCE; i++) {
		int count = epoll_wait(s->epoll, &event, 1, 0);
		if (count < 0 && errno != EINTR)
			return err_errno("cannot wait for events");
		if (count <= 0)
			break;
		handle(s, event.data.ptr);
	}
	return NULL;
}

struct err *session_attach(struct session *s, pid_t pid)
{
	return s->sampler->attach(s, pid);
}

/* ---- what there is so far ---- */

static void add_state(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		      void *context)
{
	struct session_state *out = context;
	(void)s;
	(void)chunk;
	out->samples += atomic_load(&r->weights[0]);
	out->lost += atomic_load(&r->lost);
	out->partial += harvest_count_partial(a, r);
}

void session_status(struct session *s, struct session_state *out)
{
	*out = (struct session_state){.samples = s->samples,
				      .partial = s->partial,
				      .lost = s->lost,
				      .processes = s->process_count,
				      .threads = s->thread_count,
				      .elapsed_ns = now_ns() - s->start_ns};
	s->sampler->status(s, out);
	for (struct arena *a = s->arenas; a; a = a->next) {
		for (const struct process *p = a->processes; p; p = p->next)
			out->live++;
		for (int i = 0; i < ARENA_LOST_KINDS; i++)
			out->lost += atomic_load(&a->header->lost[i]) - a->lost[i];
		arena_each(s, a, NULL, add_state, out);
	}
}

static void note_error(struct buf *note, unsigned count, const char *what, const char *why)
{
	if (count)
		buf_printf(note, "%s%u %s%s%s", note->size ? "; " : "", count, what,
			   why && *why ? ": " : "", why ? why : "");
}

/* A signal is one, however many samples it stands for: those of the clock have a weight, others are gone. */
static void note_missing(struct session *s, const struct profile *p, struct buf *note)
{
	for (uint32_t i = 0; s->sampler->merges && i < s->options.event_count; i++) {
		const struct session_event *event = &s->options.events[i];
		uint64_t samples = profile_samples(p, i);
		double missing = 1 - (double)samples / (double)(s->due[i] ? s->due[i] : 1);
		/* A clock of user code goes on within the kernel, and nobody samples it there. */
		if ((event->clock && (i == 0 || event->user_only)) || s->due[i] < MISSING_OF ||
		    missing < MISSING_NOTED)
			continue;
		buf_printf(
			note,
			"%sabout %.0f%% of the samples of %s are missing: they came while another "
			"was on its way to the thread; --collector=kernel has all",
			note->size ? "; " : "", 100 * missing, event->name);
	}
}

static void write_note(struct session *s, struct profile *p)
{
	struct buf note = {0};
	const char *why = s->notes.unsampled_error ? event_refused(s->notes.unsampled_error)
						   : "processes in a namespace of their own";
	note_error(&note, s->notes.unsampled_threads, "threads could not be sampled", why);
	note_error(&note, s->notes.refused_processes, "processes could not be looked at",
		   s->notes.refused_why);
	if (s->notes.go_programs)
		buf_printf(&note,
			   "%s%s was not sampled: it is a Go program, whose runtime takes all "
			   "signals for itself",
			   note.size ? "; " : "", s->notes.go_name);
	note_error(&note, s->notes.restricted_programs,
		   "programs were sampled only until they restricted their system calls (seccomp)",
		   "--collector=kernel samples all");
	note_error(&note, s->notes.outside_threads,
		   "threads were not sampled while the kernel worked for them",
		   "there is too little memory that perf may keep (kernel.perf_event_mlock_kb, "
		   "ulimit -l), or too few files (ulimit -n)");
	note_error(&note, s->notes.lost_maps,
		   "records of what programs map were lost, because the collector came late",
		   "paths of programs that have ended may be partial");
	if (s->notes.nameless_kernel)
		buf_printf(&note, "%s%s", note.size ? "; " : "", s->notes.nameless_kernel);
	note_missing(s, p, &note);
	note_error(&note, s->notes.damaged_trees, "trees were damaged by the program", NULL);
	note_error(&note, s->notes.unkept, "threads or samples could not be kept", "out of memory");
	p->note = profile_string(p, buf_text(&note));
	buf_free(&note);
}

/* Ticks of the handler become nanoseconds. */
static void convert_ticks(const struct session *s, struct profile *p)
{
	uint64_t ns = now_ns() - s->start_ns;
	if (ns < CALIBRATE_NS) {
		struct timespec rest = {0, (long)CALIBRATE_NS};
		nanosleep(&rest, NULL);
		ns = now_ns() - s->start_ns;
	}
	if (!s->sampler->in_ticks)
		return;
	double rate = (double)ns / (double)(ticks_now() - s->start_ticks);
	for (size_t i = 0; i < p->thread_count; i++)
		p->threads[i].handler_ns = (uint64_t)((double)p->threads[i].handler_ns * rate +
						      0.5);
}

void session_complete(struct session *s, struct profile *p, bool complete)
{
	p->duration_ns = now_ns() - s->start_ns;
	p->complete = complete;
	convert_ticks(s, p);
	write_note(s, p);
}

void session_cover(struct session *s, struct profile *p, bool anew)
{
	struct tally tallies[ARENA_METRICS_MAX];
	memcpy(tallies, s->tallies, sizeof tallies);
	s->sampler->tally(s, tallies, anew);
	for (size_t i = 0; i < s->options.event_count && i < p->metric_count; i++) {
		p->metrics[i].coverage = tallies[i].coverage;
		s->due[i] = tallies[i].count / (p->metrics[i].period ? p->metrics[i].period : 1);
	}
	if (anew)
		memset(s->tallies, 0, sizeof s->tallies);
}

static void copy_live(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		      void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	if (t)
		harvest_record(s, context, t->process, t, a, r, false);
}

static struct err *copy_harvested(struct session *s, struct harvest *copy)
{
	const struct profile *from = s->harvest.profile;
	uint32_t index;
	struct err *e = NULL;
	/* Processes keep their places in the copy, so all of them must have one. */
	for (struct arena *a = s->arenas; a && !e; a = a->next)
		for (struct process *p = a->processes; p && !e; p = p->next)
			if (p->profile || !s->options.whole)
				e = process_keep(s, p, &index);
	*copy = (struct harvest){0};
	copy->modules = calloc(WIRE_MODULE_MAX, sizeof *copy->modules);
	if (!e)
		e = copy->modules ? profile_new(&copy->profile) : no_memory();
	if (!e)
		e = profile_merge(copy->profile, from);
	return e;
}

/* Threads go on between the looks at their time lines and at their trees. */
static void count_untimed(struct profile *p)
{
	uint64_t timed = 0, counted = profile_samples(p, 0);
	for (size_t i = 0; i < p->span_count; i++)
		timed += p->spans[i].metric ? 0 : p->spans[i].samples;
	if (counted > timed + p->untimed)
		p->untimed = counted - timed;
}

struct err *session_snapshot(struct session *s, struct profile **out)
{
	struct harvest copy;
	s->sampler->name(s);
	times_take_all(s);
	struct err *e = copy_harvested(s, &copy);
	*out = NULL;
	for (struct arena *a = s->arenas; a && !e; a = a->next) {
		arena_each(s, a, NULL, copy_live, &copy);
		harvest_lost(s, &copy, a, false);
		for (const struct process *p = a->processes; p; p = p->next)
			if (p->unnamed_code)
				harvest_name_code(&copy, p);
	}
	if (!e && s->options.timeline)
		count_untimed(copy.profile);
	if (!e) {
		session_cover(s, copy.profile, false);
		session_complete(s, copy.profile, false);
		*out = copy.profile;
		copy.profile = NULL;
	}
	harvest_end(&copy);
	return e;
}

struct err *session_finish(struct session *s, struct profile **out, unsigned *still_running)
{
	unsigned running = 0;
	struct err *e = session_handle(s);
	s->sampler->stop(s);
	for (struct arena *a = s->arenas; a; a = a->next) {
		arena_scan(s, a);
		atomic_store(&a->header->stop, 1);
		for (const struct process *p = a->processes; p; p = p->next)
			running += !p->foreign && process_is_alive(p);
	}
	while (s->arenas)
		arena_close(s, s->arenas);
	door_close(s);
	session_cover(s, s->harvest.profile, false);
	session_complete(s, s->harvest.profile, true);
	*out = s->harvest.profile;
	s->harvest.profile = NULL;
	if (still_running)
		*still_running = running;
	return e;
}
