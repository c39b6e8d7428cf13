/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/recorder.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file_limit.h"
#include "collect/agent_path.h"
#include "collect/agents/attach.h"
#include "collect/events.h"
#include "collect/kernel/kernel.h"
#include "collect/live.h"
#include "collect/session.h"
#include "profile/profile.h"

#define SECOND_NS 1000000000ull
#define TICK_MS 100
#define FIRST_SAVE_NS (2 * SECOND_NS)
#define SAVE_EVERY_NS (30 * SECOND_NS)
#define SAY_NS (SECOND_NS / 2) /* after this time people want to know what we wait for */

/* Keeps the first of several problems. */
static void remember(struct recorder *r, struct err *e)
{
	if (r->problem)
		err_free(e);
	else
		r->problem = e;
}

/* ---- events ---- */

/* Whether the agent could sample instead of the kernel. It has no probes. */
static bool agent_would_do(const struct recorder *r)
{
	for (size_t i = 0; i < r->wanted.event_count; i++)
		if (r->wanted.events[i].probe)
			return false;
	return r->options->collector == COLLECTOR_AUTO && r->options->command && !r->options->all;
}

/* Whether an agent counts it when the program calls functions. */
static bool is_by_calls(const struct recording_event *event)
{
	return event->call || event->off || event->io;
}

/* Whether this event can be recorded, beside those that are chosen already. */
static struct err *check_event(const struct recorder *r, const struct recording_event *event)
{
	const struct recording_options *s = &r->wanted;
	char why[400];
	for (size_t i = 0; i < s->event_count; i++)
		if (event_same(event, &s->events[i]))
			return err_new("event '%s' is given twice", event->name);
	if (event->off && s->kernel && !kernel_can_see_waits(why, sizeof why))
		return err_new("event '%s': %s", event->name, why);
	if (is_by_calls(event) && r->options->calls)
		return err_new(
			"event '%s' and --calls need two different agents: give each a recording of "
			"its own",
			event->name);
	bool late = !r->options->command || r->options->all;
	if ((event->call && s->kernel) || (is_by_calls(event) && !s->kernel && late))
		return err_new(
			"event '%s': only the agent in a program sees its calls, and %s",
			event->name,
			late ? "that must be there from the program's start: give a command"
			     : "the sampler in the kernel was chosen by --collector=kernel or "
			       "another event");
	return NULL;
}

/* The agent samples if an event needs it. */
static void choose_agent(struct recorder *r, const struct recording_event *event)
{
	struct recording_options *s = &r->wanted;
	char why[400];
	bool unseen = event->off && s->kernel && !kernel_can_see_waits(why, sizeof why);
	if ((!event->call && !unseen) || !s->kernel || !agent_would_do(r))
		return;
	s->kernel = false;
}

static struct err *choose_events(struct recorder *r)
{
	struct recording_options *s = &r->wanted;
	const struct arg_list *names = &r->options->events;
	if (r->options->probes) {
		s->event_count = event_probes(r->options->probes, s->events);
		return NULL;
	}
	if (!names->count) {
		s->event_count = 1;
		return event_default(r->options->hz, &s->events[0], &s->timers, r->why_timers,
				     sizeof r->why_timers);
	}
	for (size_t i = 0; i < names->count; i++) {
		struct recording_event event, more[EVENT_COMPANIONS];
		struct err *e = event_parse(names->values[i], r->options->hz, &event);
		if (!e)
			choose_agent(r, &event);
		if (!e)
			e = check_event(r, &event);
		if (e)
			return e;
		size_t companions = event_companions(&event, more);
		if (s->event_count + 1 + companions + r->options->calls > ARENA_METRICS_MAX)
			return err_new(
				"at most %d metrics can be recorded at once, and '%s' has %zu: leave an "
				"event out",
				ARENA_METRICS_MAX - r->options->calls, names->values[i],
				companions + 1);
		s->events[s->event_count++] = event;
		for (size_t k = 0; k < companions; k++)
			s->events[s->event_count++] = more[k];
	}
	if (s->events[0].io && r->options->timeline)
		return err_new(
			"--timeline is of the samples of the first event, and io is counted, "
			"not sampled: give another one first (-e cpu-clock -e io)");
	return NULL;
}

/* ---- the agent ---- */

/* Whether every user can read the file: the command may change its user. */
static bool is_open_to_all(const char *path, char *closed, size_t size)
{
	struct stat info;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(closed, size, "%.*s", (int)(slash - path), path);
		if (!stat(closed, &info) && !(info.st_mode & S_IXOTH))
			return false;
	}
	snprintf(closed, size, "%s", path);
	return !stat(path, &info) && info.st_mode & S_IROTH;
}

#define LATE_PROBES "libculprit-probes-late.so"

/* Events that come by calls of the program need an agent that wraps these. */
static const char *agent_name(const struct recorder *r)
{
	bool any = false;
	for (size_t i = 0; i < r->wanted.event_count; i++) {
		if (r->wanted.events[i].call == RECORDING_MPI_CALLS)
			return "libculprit-mpi.so";
		if (r->wanted.events[i].probe)
			return r->options->command ? "libculprit-probes.so" : LATE_PROBES;
		any |= is_by_calls(&r->wanted.events[i]);
	}
	if (any)
		return "libculprit-events.so";
	if (!r->options->command)
		return AGENT_LATE;
	return r->options->calls ? "libculprit-agent-calls.so" : AGENT_USUAL;
}

struct err *recorder_check_probes(const struct recorder_options *options)
{
	struct recorder r = {.options = options};
	r.wanted.event_count = event_probes(options->probes, r.wanted.events);
	struct err *e = agent_path_find(agent_name(&r), options->libdir, r.agent);
	for (size_t i = 0; i < options->pids.count && !e; i++)
		e = attach_check((pid_t)strtol(options->pids.values[i], NULL, 10), r.agent);
	return e;
}

static void check_agent(struct recorder *r)
{
	char closed[PATH_MAX];
	if (!geteuid() && !is_open_to_all(r->agent, closed, sizeof closed))
		buf_printf(
			&r->notes,
			"other users cannot read %s: programs that are started after a change of "
			"user are not sampled, and the dynamic linker complains; chmod o+rx "
			"allows it\n",
			closed);
}

/* ---- the profile ---- */

/* Adds what the session cannot know: what was run, and by which version of culprit. */
static void describe(struct recorder *r, struct profile *p)
{
	struct buf text = {0};
	for (char **word = r->options->command; word && *word; word++)
		buf_printf(&text, "%s%s", word == r->options->command ? "" : " ", *word);
	if (r->options->all && !r->options->command)
		buf_puts(&text, "(the whole machine)");
	for (size_t i = 0; i < r->options->pids.count; i++)
		buf_printf(&text, "%s%s", i ? ", " : "process ", r->options->pids.values[i]);
	p->command = profile_string(p, buf_text(&text));
	p->version = profile_string(p, r->options->version);
	if (r->why_timers[0]) {
		buf_clear(&text);
		buf_printf(&text, "%s%s%s", p->note ? p->note : "", p->note && *p->note ? "; " : "",
			   r->why_timers);
		p->note = profile_string(p, buf_text(&text));
	}
	buf_free(&text);
}

/* Saves what there is so far, so that it is not lost if we are killed. A full disk may have room again
   at the end, so an error is no reason to stop. */
static void save_meanwhile(struct recorder *r)
{
	struct profile *profile = NULL;
	struct err *e = session_snapshot(r->session, &profile);
	if (!e) {
		profile->complete = false;
		describe(r, profile);
		e = output_save(&r->output, profile);
	}
	err_free(e);
	profile_free(profile);
	r->interval_ns = r->interval_ns * 2 < SAVE_EVERY_NS ? r->interval_ns * 2 : SAVE_EVERY_NS;
	r->save_ns = now_ns() + r->interval_ns;
}

/* Somebody looks at the recording: sends a snapshot. */
static void show_meanwhile(struct recorder *r)
{
	struct profile *profile = NULL;
	uint64_t start = own_cpu_ns();
	struct err *e = session_snapshot(r->session, &profile);
	if (!e)
		describe(r, profile);
	err_free(e);
	live_send(r->live, profile, own_cpu_ns() - start);
}

/* The exit status of the command belongs to the last program that its process ran. */
static void set_status(struct recorder *r)
{
	struct profile *p = r->profile;
	for (size_t i = r->target.ended ? p->process_count : 0; i > 0; i--) {
		if (p->processes[i - 1].pid == r->target.pid) {
			p->processes[i - 1].status = r->target.status;
			return;
		}
	}
}

static void stop_sampling(struct recorder *r)
{
	session_status(r->session, &r->state);
	struct err *e = session_finish(r->session, &r->profile, &r->living);
	session_close(r->session);
	r->session = NULL;
	if (!e) {
		r->profile->complete = true;
		describe(r, r->profile);
		set_status(r);
		if (r->options->output)
			e = output_save_last(&r->output, r->profile);
	}
	remember(r, e);
	live_close(r->live);
	r->live = NULL;
}

/* ---- while the command runs ---- */

static int wait_ms(const struct recorder *r, uint64_t end_ns)
{
	uint64_t now = now_ns();
	if (!r->session)
		return -1;
	if (!end_ns || end_ns > now + TICK_MS * 1000000ull)
		return TICK_MS;
	return end_ns > now ? (int)((end_ns - now) / 1000000) + 1 : 0;
}

static void attend(struct recorder *r, uint64_t end_ns)
{
	struct err *e = session_handle(r->session);
	if (e) {
		remember(r, err_context(e, "sampling ended early"));
		stop_sampling(r);
	} else if (end_ns && now_ns() >= end_ns) {
		stop_sampling(r);
	} else if (r->options->output && now_ns() >= r->save_ns) {
		save_meanwhile(r);
	} else if (live_wanted(r->live)) {
		show_meanwhile(r);
	}
	if (r->session && r->options->meanwhile)
		r->options->meanwhile(r->options->meanwhile_context);
}

/* Returns when the time of -d is over; 0: never. */
static uint64_t end_of(const struct recorder *r)
{
	double seconds = r->options->seconds;
	return seconds > 0 ? r->start_ns + (uint64_t)(seconds * 1e9) : 0;
}

/* Called while unwind tables are made. Signals and the end of the command are still handled. When there
   is nothing else to wait for, people are told, and can end the wait. */
static bool wait_on(void *context, const char *what)
{
	struct recorder *r = context;
	uint64_t end_ns = end_of(r);
	target_handle(&r->target);
	if (target_interrupted(&r->target)) {
		if (r->stopped || r->target.ended)
			return false;
		r->stopped = true;
	}
	if (!r->stopped && !r->target.ended && !(end_ns && now_ns() >= end_ns))
		return true;
	if (!r->over_ns)
		r->over_ns = now_ns();
	if (!r->said && now_ns() - r->over_ns >= SAY_NS) {
		r->said = true;
		r->options->say_what_waits(r->options, what);
	}
	return true;
}

static void run_command(struct recorder *r)
{
	uint64_t end_ns = end_of(r);
	while (!r->target.ended) {
		struct pollfd ready[] = {
			{.fd = r->target.signals, .events = POLLIN},
			{.fd = r->session ? session_fd(r->session) : -1, .events = POLLIN},
			{.fd = live_fd(r->live), .events = POLLIN},
		};
		if (poll(ready, 3, wait_ms(r, end_ns)) < 0 && errno != EINTR)
			break;
		target_handle(&r->target);
		if (r->session && !r->target.ended)
			attend(r, end_ns);
	}
	if (r->session)
		stop_sampling(r);
}

static void start_clock(struct recorder *r)
{
	r->start_ns = now_ns();
	r->interval_ns = FIRST_SAVE_NS;
	r->save_ns = r->start_ns + FIRST_SAVE_NS;
}

static void prepare_child(void *context)
{
	const struct recorder *r = context;
	session_child(r->session);
}

static void put_probes(void *context, pid_t pid)
{
	struct recorder *r = context;
	remember(r, session_probe(r->session, pid));
}

static struct err *start(struct recorder *r)
{
	char **environment = session_environment(r->session, environ);
	if (!environment)
		return err_new("out of memory");
	start_clock(r);
	const struct target_hooks hooks = {
		.in_child = prepare_child,
		.in_parent = r->options->probes ? put_probes : NULL,
		.context = r,
	};
	struct err *e = target_start(&r->target, r->options->command, environment, &hooks);
	free(environment);
	return e;
}

/* ---- processes that run already ---- */

static struct err *attach(struct recorder *r)
{
	const struct arg_list *pids = &r->options->pids;
	struct err *e = NULL;
	for (size_t i = 0; i < pids->count && !e; i++)
		e = session_attach(r->session, (pid_t)strtol(pids->values[i], NULL, 10));
	start_clock(r);
	return e;
}

/* Runs until they have ended, the time is over, or somebody presses Ctrl-C. */
static void run_attached(struct recorder *r)
{
	uint64_t end_ns = end_of(r);
	while (r->session) {
		struct pollfd ready[] = {
			{.fd = r->target.signals, .events = POLLIN},
			{.fd = session_fd(r->session), .events = POLLIN},
			{.fd = live_fd(r->live), .events = POLLIN},
		};
		if (poll(ready, 3, wait_ms(r, end_ns)) < 0 && errno != EINTR)
			break;
		attend(r, end_ns);
		struct recording_state state;
		if (r->session)
			session_status(r->session, &state);
		if (r->session && (target_interrupted(&r->target) || r->stopped ||
				   (!state.live && !r->options->all)))
			stop_sampling(r);
	}
	if (r->session)
		stop_sampling(r);
}

/* ---- opening, running, closing ---- */

static void fill_session(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct recording_options *s = &r->wanted;
	s->hz = s->events[0].hz;
	s->unwind = o->unwind == UNWIND_FP ? RECIPES_AUTO : (enum recipes_mode)o->unwind;
	s->frame_pointers = o->unwind == UNWIND_FP;
	s->collapse = o->collapse;
	s->timeline = o->timeline;
	s->calls = o->calls;
	s->follow = o->follow;
	s->kernel_frames = !o->no_kernel && !o->probes;
	s->probes = o->probes;
	s->max_depth = (uint32_t)o->max_depth;
	s->agent = r->agent;
	s->whole = o->all;
	s->wait_on = wait_on;
	s->wait_context = r;
}

/* Calls are counted and code is followed inside of the program: by the agent, which is there from the beginning. */
static struct err *choose_agent_for_calls(struct recorder *r)
{
	const char *option = r->options->calls ? "--calls" : "--follow";
	if (!r->options->command || r->options->all)
		return err_new("%s works in programs that it starts: give a command instead of %s",
			       option, r->options->all ? "-a" : "-p");
	if (r->options->collector == COLLECTOR_KERNEL)
		return err_new("%s needs the agent, which works inside of the program: leave out "
			       "--collector=kernel",
			       option);
	if (!r->options->calls)
		return NULL;
	if (r->options->unwind == UNWIND_ANALYSIS || r->options->unwind == UNWIND_FP)
		return err_new("--calls needs the unwind information of the program: leave out "
			       "--unwind=%s",
			       r->options->unwind == UNWIND_FP ? "fp" : "analysis");
	return NULL;
}

static struct err *choose_collector(struct recorder *r)
{
	char why[400];
	if (r->options->calls || r->options->follow)
		return choose_agent_for_calls(r);
	if (r->options->probes && r->options->collector == COLLECTOR_AGENT)
		return NULL;
	bool can = kernel_can_sample(why, sizeof why);
	if (r->options->probes && !can)
		return err_new("%s", why);
	if (r->options->all && (!can || r->options->collector == COLLECTOR_AGENT))
		return err_new(
			"-a: %s",
			can ? "only the sampler in the kernel can sample the whole machine: leave "
			      "out --collector=agent"
			    : why);
	if (r->options->collector == COLLECTOR_KERNEL && !can)
		return err_new("--collector=kernel: %s", why);
	if (!r->options->command && !can && r->options->probes)
		return err_new("%s", why);
	r->wanted.kernel = can && r->options->collector != COLLECTOR_AGENT;
	/* The sampled processes may belong to others, so a process of its own reaches for their files
	   and memory. */
	if (!r->options->command || r->options->all)
		r->wanted.reacher = "/proc/self/exe";
	return NULL;
}

static struct err *prepare_agent(struct recorder *r)
{
	struct err *e = agent_path_find(agent_name(r), r->options->libdir, r->agent);
	if (!e)
		check_agent(r);
	return e;
}

static struct err *look_before(struct recorder *r)
{
	const struct recorder_options *o = r->options;
	struct err *e = choose_collector(r);
	if (!e)
		e = choose_events(r);
	if (!e && o->command)
		e = target_check(o->command[0], r->wanted.kernel ? TARGET_RUN : TARGET_SAMPLED);
	if (!e && o->output)
		e = output_open(&r->output, o->output);
	if (!e && !r->wanted.kernel)
		e = prepare_agent(r);
	return e;
}

/* Falls back to the agent: the kernel seemed able to sample, but is not. */
static struct err *open_with_agent(struct recorder *r, struct err *why)
{
	struct err *e = target_check(r->options->command[0], TARGET_SAMPLED);
	buf_printf(&r->notes, "a library in the program sampled, not the kernel: %s\n",
		   err_text(why));
	err_free(why);
	r->wanted.kernel = false;
	if (!e)
		e = prepare_agent(r);
	return e ? e : session_open(&r->wanted, &r->session);
}

static struct err *open_session(struct recorder *r)
{
	fill_session(r);
	struct err *e = session_open(&r->wanted, &r->session);
	return e && r->wanted.kernel && agent_would_do(r) ? open_with_agent(r, e) : e;
}

static struct err *begin(struct recorder *r)
{
	struct err *e = target_prepare(&r->target);
	if (e)
		return e;
	e = open_session(r);
	if (!e && r->options->output) /* it can be recorded even if nobody can look at it */
		err_free(live_open(r->output.path, &r->live));
	if (!e)
		e = r->options->command ? start(r) : attach(r);
	if (e)
		target_release(&r->target);
	return e;
}

struct err *recorder_open(struct recorder *r, const struct recorder_options *options)
{
	*r = (struct recorder){.options = options, .target.signals = -1};
	file_limit_ignore(); /* we must not be killed while the command runs */
	struct err *e = look_before(r);
	return e ? e : begin(r);
}

void recorder_run(struct recorder *r)
{
	if (r->options->command)
		run_command(r);
	else
		run_attached(r);
}

void recorder_close(struct recorder *r)
{
	session_close(r->session);
	live_close(r->live);
	profile_free(r->profile);
	output_close(&r->output);
	buf_free(&r->notes);
}
