/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/term.h"
#include "base/file_limit.h"
#include "base/steal.h"
#include "collect/events.h"
#include "collect/schedule.h"
#include "collect/loop.h"
#include "collect/sampler.h"
#include "collect/tally.h"
#include "harvest/entries.h"
#include "harvest/harvest.h"
#include "harvest/names.h"
#include "harvest/process.h"
#include "library/library.h"
#include "profile/profile.h"
#include "safe/ticks.h"

/* The least time in which the rate of ticks is measured. */
#define CALIBRATE_NS 5000000ull
#define CALIBRATE_SAMPLES 500 /* with fewer samples their cost is of no interest */
#define MISSING_NOTED 0.05 /* if a larger part of an event's samples is missing, a note says so */
#define MISSING_OF 200     /* but only if there should be so many samples */
#define UNWIND_POINTERS 3  /* the number after those of enum recipes_mode */
#define HELD_MANY 65536

struct session {
	struct recording recording;
	const struct sampler *sampler;
	void *self; /* of the sampler; NULL: it is not open */
	struct loop loop;
	struct watch tick;
	int timer;
	struct rlimit files;
	bool files_raised;
	uint64_t end_ns;                 /* when sampling ended; 0: it goes on */
	uint64_t stolen_ns;              /* by the host, before this began */
	uint64_t due[ARENA_METRICS_MAX]; /* samples that there should be, by what was counted */
};

/* ---- opening ---- */

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

static void on_tick(void *session)
{
	struct session *s = session;
	uint64_t expired;
	while (read(s->timer, &expired, sizeof expired) < 0 && errno == EINTR)
		;
	s->sampler->tick(s->self);
	process_describe_some(&s->recording, now_ns());
}

static struct err *start_ticking(struct session *s)
{
	const struct itimerspec when = {{0, SAMPLER_TICK_NS}, {0, SAMPLER_TICK_NS}};
	s->tick = (struct watch){on_tick, s};
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer < 0 || timerfd_settime(s->timer, 0, &when, NULL))
		return err_errno("cannot make a timer");
	return loop_watch(&s->loop, s->timer, &s->tick);
}

/* Adds what a profile says about itself, at its beginning. */
static void describe(struct session *s)
{
	struct profile *p = s->recording.harvest.profile;
	profile_set_origin(p);
	s->stolen_ns = steal_ns();
	p->hz = s->recording.options.hz;
	p->unwind = s->recording.options.frame_pointers ? UNWIND_POINTERS
							: (uint32_t)s->recording.options.unwind;
	if (!s->sampler->delivery_at_end)
		p->delivery_ns = s->sampler->delivery();
}

static struct err *open_recording(struct recording *r, const struct recording_options *options)
{
	struct err *e = recording_open(r, options);
	const struct recording_options *o = &r->options;
	if (!e)
		e = library_open(o->unwind, !o->frame_pointers, o->agent, &r->library);
	if (!e && (o->calls || o->probes))
		library_count_returns(r->library);
	return e ? e : harvest_begin(r, &r->harvest);
}

static void close_recording(struct recording *r)
{
	library_close(r->library);
	harvest_end(&r->harvest);
	recording_close(r);
}

struct err *session_open(const struct recording_options *options, struct session **out)
{
	struct session *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->sampler = options->kernel ? &sampler_kernel : &sampler_agents;
	s->loop.epoll = s->timer = -1;
	file_limit_ignore();
	schedule_soon();
	s->files_raised = raise_limit(s);
	struct err *e = open_recording(&s->recording, options);
	if (!e)
		e = loop_open(&s->loop);
	if (!e)
		e = start_ticking(s);
	if (!e)
		e = s->sampler->open(&s->recording, &s->loop, &s->self);
	if (e) {
		session_close(s);
		return e;
	}
	recording_begin(
		&s->recording); /* to get ready may take half a second, and is no part of it */
	describe(s);
	*out = s;
	return NULL;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	if (s->self)
		s->sampler->close(s->self);
	if (s->timer >= 0)
		close(s->timer);
	loop_close(&s->loop);
	close_recording(&s->recording);
	restore_limits(s);
	free(s);
}

/* ---- while it goes on ---- */

int session_fd(const struct session *s)
{
	return s->loop.epoll;
}

struct err *session_handle(struct session *s)
{
	return loop_run(&s->loop);
}

char **session_environment(struct session *s, char **environment)
{
	return s->sampler->environment(s->self, environment);
}

void session_child(struct session *s)
{
	restore_limits(s);
	file_limit_restore();
	s->sampler->join(s->self);
}

struct err *session_attach(struct session *s, pid_t pid)
{
	return s->sampler->attach(s->self, pid);
}

struct err *session_probe(struct session *s, pid_t pid)
{
	return s->sampler->probe ? s->sampler->probe(s->self, pid) : NULL;
}

struct err *session_probe_more(struct session *s, size_t first)
{
	return s->sampler->probe_more ? s->sampler->probe_more(s->self, first) : NULL;
}

void session_probe_less(struct session *s, uint32_t number)
{
	if (s->sampler->probe_less)
		s->sampler->probe_less(s->self, number);
}

void session_status(struct session *s, struct recording_state *out)
{
	const struct recording *r = &s->recording;
	*out = (struct recording_state){.samples = r->samples,
					.partial = r->partial,
					.lost = r->lost,
					.processes = r->process_count,
					.threads = r->thread_count};
	for (const struct process *p = r->processes; p; p = p->next)
		out->live++;
	s->sampler->status(s->self, out);
}

/* ---- what a profile says about itself, at its end ---- */

static void note_error(struct buf *note, unsigned count, const char *what, const char *why)
{
	if (count)
		buf_printf(note, "%s%u %s%s%s", note->size ? "; " : "", count, what,
			   why && *why ? ": " : "", why ? why : "");
}

/* Notes missing samples. Signals that come while another one is pending become one. For the clock, that
   one gets a weight; samples of other events are lost. */
static void note_missing(struct session *s, const struct profile *p, struct buf *note)
{
	for (uint32_t i = 0; s->sampler->merges && i < s->recording.options.event_count; i++) {
		const struct recording_event *event = &s->recording.options.events[i];
		uint64_t samples = profile_samples(p, i);
		double missing = 1 - (double)samples / (double)(s->due[i] ? s->due[i] : 1);
		/* A clock of user code also runs in the kernel, and nobody samples it there. */
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

/* Notes why calls were not counted. */
static void note_uncounted(uint32_t why, struct buf *note)
{
	if (why & ARENA_UNCOUNTED_SHADOW)
		buf_printf(note,
			   "%scalls are not counted: the CPU compares return addresses with a "
			   "shadow stack",
			   note->size ? "; " : "");
	if (why & ARENA_UNCOUNTED_UNWINDER)
		buf_printf(note,
			   "%scalls are not counted in programs with an unwinder of their own "
			   "(linked with -static-libgcc)",
			   note->size ? "; " : "");
	if (why & ARENA_UNCOUNTED_LEFT)
		buf_printf(note,
			   "%scalls are not all counted: the program left too many frames by ways "
			   "of its own",
			   note->size ? "; " : "");
}

static void write_note(struct session *s, struct profile *p)
{
	struct buf note = {0};
	char size[TERM_UNIT_MAX];
	const char *why = s->recording.notes.unsampled_error
				  ? event_refused(s->recording.notes.unsampled_error)
				  : "processes in a namespace of their own";
	note_error(&note, s->recording.notes.unsampled_threads, "threads could not be sampled",
		   why);
	note_error(&note, s->recording.notes.refused_processes, "processes could not be looked at",
		   s->recording.notes.refused_why);
	note_error(&note, s->recording.notes.changed_processes,
		   "processes keep memory of culprit until the next culprit probe -p",
		   s->recording.notes.changed_why);
	if (s->recording.notes.go_programs)
		buf_printf(&note,
			   "%s%s was not sampled: it is a Go program, whose runtime takes all "
			   "signals for itself",
			   note.size ? "; " : "", s->recording.notes.go_name);
	note_error(&note, s->recording.notes.restricted_programs,
		   "programs were sampled only until they restricted their system calls (seccomp)",
		   "--collector=kernel samples all");
	note_error(&note, s->recording.notes.own_code_threads,
		   "threads were not sampled while the kernel worked for them",
		   "there is too little memory that perf may keep (kernel.perf_event_mlock_kb, "
		   "ulimit -l), or too few files (ulimit -n)");
	note_error(&note, s->recording.notes.lost_maps,
		   "records of what programs map were lost, because the collector came late",
		   "paths of programs that have ended may be partial");
	if (s->recording.notes.unseen_io)
		buf_printf(&note,
			   "%swhat io_uring and io_submit read and write is not counted (%" PRIu64
			   " calls)",
			   note.size ? "; " : "", s->recording.notes.unseen_io);
	if (s->recording.notes.unseen_bytes)
		buf_printf(
			&note,
			"%sat least %s more were read and written in ways that the agent does not see, "
			"as fread and printf do (--collector=kernel sees them)",
			note.size ? "; " : "", term_size(size, s->recording.notes.unseen_bytes));
	note_uncounted(s->recording.notes.uncounted, &note);
	if (s->recording.notes.nameless_kernel)
		buf_printf(&note, "%s%s", note.size ? "; " : "",
			   s->recording.notes.nameless_kernel);
	if (*s->recording.notes.other_malloc) {
		buf_printf(&note, "%sallocations are missing: the program has its own malloc, in ",
			   note.size ? "; " : "");
		buf_put_clean(&note, s->recording.notes.other_malloc,
			      strlen(s->recording.notes.other_malloc));
	}
	note_missing(s, p, &note);
	note_error(&note, s->recording.notes.damaged_trees, "trees were damaged by the program",
		   NULL);
	note_error(&note, s->recording.notes.unkept, "threads or samples could not be kept",
		   "out of memory");
	p->note = profile_string(p, buf_text(&note));
	buf_free(&note);
}

static bool is_in_ticks(const struct session *s, uint32_t metric)
{
	const struct recording_options *o = &s->recording.options;
	return metric < o->event_count && o->events[metric].call == RECORDING_HEAP_LIFETIME;
}

/* Converts the times of handlers, and of memory, from ticks to nanoseconds. */
static void convert_ticks(const struct session *s, struct profile *p)
{
	uint64_t ns = now_ns() - s->recording.start_ns;
	if (!s->sampler->in_ticks)
		return;
	if (ns < CALIBRATE_NS) {
		struct timespec rest = {0, (long)CALIBRATE_NS};
		nanosleep(&rest, NULL);
		ns = now_ns() - s->recording.start_ns;
	}
	double rate = (double)ns / (double)(ticks_now() - s->recording.start_ticks);
	for (size_t i = 0; i < p->thread_count; i++)
		p->threads[i].handler_ns = (uint64_t)((double)p->threads[i].handler_ns * rate +
						      0.5);
	for (size_t i = 0; i < p->value_count; i++)
		if (is_in_ticks(s, p->values[i].metric))
			p->values[i].count = (uint64_t)((double)p->values[i].count * rate + 0.5);
}

static void complete(struct session *s, struct profile *p, bool complete)
{
	if (s->recording.options.calls)
		entries_take_counts(p, (uint32_t)s->recording.options.event_count);
	p->duration_ns = (s->end_ns ? s->end_ns : now_ns()) - s->recording.start_ns;
	uint64_t stolen = steal_ns();
	p->stolen_ns = stolen > s->stolen_ns ? stolen - s->stolen_ns : 0;
	p->complete = complete;
	convert_ticks(s, p);
	write_note(s, p);
}

/* Sets for how much of the time each event was counted. `anew`: the next profile counts from here. */
static void cover(struct session *s, struct profile *p, bool anew)
{
	struct tally tallies[ARENA_METRICS_MAX] = {0};
	s->sampler->tally(s->self, tallies, anew);
	for (size_t i = 0; i < s->recording.options.event_count && i < p->metric_count; i++) {
		p->metrics[i].coverage = tallies[i].coverage;
		s->due[i] = tallies[i].count / (p->metrics[i].period ? p->metrics[i].period : 1);
	}
}

static void name_code(struct session *s, struct harvest *h)
{
	for (const struct process *p = s->recording.processes; p; p = p->next)
		if (p->unnamed_code && p->profile)
			names_of_jit(h, p);
}

/* ---- snapshots ---- */

/* Threads go on between the looks at their time lines and at their trees. So some samples have no time. */
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
	*out = NULL;
	s->sampler->prepare(s->self, false);
	struct err *e = harvest_copy(&s->recording, &copy);
	if (!e) {
		s->sampler->copy(s->self, &copy);
		name_code(s, &copy);
		if (s->recording.options.timeline)
			count_untimed(copy.profile);
		cover(s, copy.profile, false);
		complete(s, copy.profile, false);
		*out = copy.profile;
		copy.profile = NULL;
	}
	harvest_end(&copy);
	return e;
}

/* ---- the end ---- */

static unsigned count_running(const struct recording *r)
{
	unsigned running = 0;
	for (const struct process *p = r->processes; p; p = p->next)
		running += !p->foreign && process_is_alive(p);
	return running;
}

struct err *session_finish(struct session *s, struct profile **out, unsigned *still_running)
{
	struct recording *r = &s->recording;
	struct err *e = session_handle(s);
	s->end_ns = now_ns();
	s->sampler->stop(s->self);
	s->sampler->prepare(s->self, true);
	if (still_running)
		*still_running = count_running(r);
	s->sampler->finish(s->self);
	if (s->sampler->delivery_at_end && r->samples >= CALIBRATE_SAMPLES)
		r->harvest.profile->delivery_ns = s->sampler->delivery();
	cover(s, r->harvest.profile, false);
	complete(s, r->harvest.profile, true);
	*out = r->harvest.profile;
	r->harvest.profile = NULL;
	return e;
}

/* ---- drains ----
 *
 * A recording that goes on for weeks is taken away in parts. The caller gets the harvest, and an empty one
 * takes its place. What outlives a drain is reset: threads and processes have no place in the new profile
 * yet. Frames that the sampler will not send again get new nodes when they are needed. Stacks that still
 * wait to be walked look up their threads again.
 */

size_t session_held(struct session *s)
{
	struct profile *p = s->recording.harvest.profile;
	if (p->value_count > HELD_MANY)
		err_free(profile_settle(p));
	return p->value_count > p->node_count ? p->value_count : p->node_count;
}

/* The caller has the profile; `fresh` takes its place. */
static void begin_anew(struct session *s, const struct harvest *fresh)
{
	struct recording *r = &s->recording;
	r->harvest.profile = NULL;
	harvest_end(&r->harvest);
	r->harvest = *fresh;
	r->start_ns = now_ns();
	describe(s);
	for (struct process *p = r->processes; p; p = p->next) {
		p->profile = p->more_threads = 0;
		p->unnamed_code = false;
	}
	s->sampler->restart(s->self);
	library_release_memory(r->library);
}

struct err *session_drain(struct session *s, bool last, struct session_drained *out)
{
	struct recording *r = &s->recording;
	struct harvest fresh;
	*out = (struct session_drained){0};
	if (last)
		s->sampler->stop(s->self);
	struct err *e = harvest_begin(r, &fresh);
	if (!e)
		s->sampler->take_all(s->self, &out->counted);
	if (!e)
		e = harvest_owners(&r->harvest, &out->processes);
	if (!e)
		e = profile_settle(r->harvest.profile);
	if (e) {
		harvest_end(&fresh);
		session_drained_free(out);
		return e;
	}
	s->sampler->prepare(s->self, true);
	name_code(s, &r->harvest);
	cover(s, r->harvest.profile, true);
	complete(s, r->harvest.profile, true);
	out->making = library_take_account(r->library);
	out->profile = r->harvest.profile;
	begin_anew(s, &fresh);
	return NULL;
}

void session_drained_free(struct session_drained *d)
{
	profile_free(d->profile);
	free(d->processes);
	*d = (struct session_drained){0};
}
