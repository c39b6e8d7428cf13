/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit record`: everything that can go wrong before the command starts is
 * looked at before it does. From then on the command comes first: whatever
 * happens to the recording, it runs to its end, and its exit status is ours.
 */
#include "cmd/cmd.h"

#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file_limit.h"
#include "base/path.h"
#include "cmd/output.h"
#include "collect/events.h"
#include "collect/kernel/kernel.h"
#include "collect/live.h"
#include "collect/session.h"
#include "collect/target.h"
#include "process/reach.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME "culprit: "
#define SECOND_NS 1000000000ull
#define TICK_MS 100
#define FIRST_SAVE_NS (2 * SECOND_NS)
#define SAVE_EVERY_NS (30 * SECOND_NS)
#define SAY_NS (SECOND_NS / 2) /* after which people want to know what we wait for */
#define DEPTH_MAX 65535u

enum { UNWIND_AUTO, UNWIND_CFI, UNWIND_ANALYSIS, UNWIND_FP };
enum { COLLECTOR_AUTO, COLLECTOR_AGENT, COLLECTOR_KERNEL };

struct options {
	struct arg_list events, pids;
	uint64_t hz, max_depth;
	const char *output, *duration;
	int unwind, collector;
	bool collapse, quiet, timeline, all;
	double seconds; /* of `duration`; 0: to the command's end */
	char **command; /* NULL: processes that are there already */
};

struct recorder {
	const struct options *options;
	struct recording_options wanted;
	struct session *session; /* NULL once sampling has ended */
	struct target target;
	struct live *live; /* who looks at it meanwhile; NULL: nobody can */
	struct output output;
	struct profile *profile;
	unsigned living; /* processes that go on after the command */
	uint64_t start_ns, save_ns, interval_ns;
	uint64_t over_ns; /* when only unwind tables were left to wait for */
	bool said;        /* that we do */
	bool stopped;     /* somebody has asked us to */
	char why_timers[400], agent[PATH_MAX];
	struct buf notes;    /* a line each */
	struct err *problem; /* what ended sampling, or kept the profile from its place */
};

/* Keeps the first of several problems. */
static void remember(struct recorder *r, struct err *e)
{
	if (r->problem)
		err_free(e);
	else
		r->problem = e;
}

/* Events */

static struct err *choose_events(struct recorder *r)
{
	struct recording_options *s = &r->wanted;
	const struct arg_list *names = &r->options->events;
	size_t i, k;

	if (!names->count) {
		s->event_count = 1;
		return event_default(r->options->hz, &s->events[0], &s->timers, r->why_timers,
				     sizeof(r->why_timers));
	}
	if (names->count > ARENA_METRICS_MAX)
		return err_new("%zu events: at most %d at once", names->count, ARENA_METRICS_MAX);
	for (i = 0; i < names->count; i++) {
		struct err *e = event_parse(names->values[i], r->options->hz, &s->events[i]);

		if (e)
			return e;
		for (k = 0; k < i; k++)
			if (event_same(&s->events[i], &s->events[k]))
				return err_new("event '%s' is given twice", s->events[i].name);
	}
	s->event_count = names->count;
	return NULL;
}

/* The agent */

/* Whether every user can reach the file: the command may become another one. */
static bool is_open_to_all(const char *path, char *closed, size_t size)
{
	struct stat info;
	const char *slash;

	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(closed, size, "%.*s", (int)(slash - path), path);
		if (!stat(closed, &info) && !(info.st_mode & S_IXOTH))
			return false;
	}
	snprintf(closed, size, "%s", path);
	return !stat(path, &info) && info.st_mode & S_IROTH;
}

static bool set_agent(struct recorder *r, const char *directory, const char *place)
{
	char path[PATH_MAX * 2];

	snprintf(path, sizeof(path), "%s%s%s/libculprit-agent.so", directory, *place ? "/" : "",
		 place);
	return realpath(path, r->agent) && !access(r->agent, R_OK);
}

static struct err *find_agent(struct recorder *r)
{
	/* From the directory of the program: in the build, and installed. */
	static const char *const places[] = {"../agent", ("../" CULPRIT_LIBDIR "/culprit")};
	const char *given = getenv("CULPRIT_AGENT");
	char self[PATH_MAX], *slash;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (given && *given) {
		if (!realpath(given, r->agent) || access(r->agent, R_OK))
			return err_errno("CULPRIT_AGENT: %s", given);
		return NULL;
	}
	self[length > 0 ? length : 0] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (set_agent(r, self, places[i]))
			return NULL;
	return err_new(
		"libculprit-agent.so is neither in %s/%s nor where the build has it: install "
		"culprit again, or set CULPRIT_AGENT to its path",
		self, places[1]);
}

static void check_agent(struct recorder *r)
{
	char closed[PATH_MAX];

	if (!geteuid() && !is_open_to_all(r->agent, closed, sizeof(closed)))
		buf_printf(
			&r->notes,
			"other users cannot read %s: programs that are started after a change of "
			"user are not sampled, and the dynamic linker complains; chmod o+rx "
			"allows it\n",
			closed);
}

/* The profile */

/* What the collector cannot know of what was run. */
static void describe(struct recorder *r, struct profile *p)
{
	struct buf text = {0};
	char **word;
	size_t i;

	for (word = r->options->command; word && *word; word++)
		buf_printf(&text, "%s%s", word == r->options->command ? "" : " ", *word);
	if (r->options->all && !r->options->command)
		buf_puts(&text, "(the whole machine)");
	for (i = 0; i < r->options->pids.count; i++)
		buf_printf(&text, "%s%s", i ? ", " : "process ", r->options->pids.values[i]);
	p->command = profile_string(p, buf_text(&text));
	p->version = profile_string(p, CULPRIT_VERSION);
	if (r->why_timers[0]) {
		buf_clear(&text);
		buf_printf(&text, "%s%s%s", p->note ? p->note : "", p->note && *p->note ? "; " : "",
			   r->why_timers);
		p->note = profile_string(p, buf_text(&text));
	}
	buf_free(&text);
}

/* What there is so far, so that nothing is lost if we are killed. A full disk may have room
   again at the end, so failing is no reason to stop. */
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

/* Somebody looks at the recording. */
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

/* The command's exit status belongs to the last program that its process ran. */
static void set_status(struct recorder *r)
{
	struct profile *p = r->profile;
	size_t i;

	for (i = r->target.ended ? p->process_count : 0; i > 0; i--) {
		if (p->processes[i - 1].pid == r->target.pid) {
			p->processes[i - 1].status = r->target.status;
			return;
		}
	}
}

/* For those who measure what a recording costs. */
static void print_traffic(const struct recorder *r)
{
	struct recording_state state;

	if (!getenv("CULPRIT_TRAFFIC"))
		return;
	session_status(r->session, &state);
	fprintf(stderr,
		"%s%" PRIu64 " records of %" PRIu64 " bytes in all, %" PRIu64
		" of them copies of stacks\n",
		NAME, state.records, state.record_bytes, state.copies);
}

static void stop_sampling(struct recorder *r)
{
	print_traffic(r);
	struct err *e = session_finish(r->session, &r->profile, &r->living);

	session_close(r->session);
	r->session = NULL;
	if (!e) {
		r->profile->complete = true;
		describe(r, r->profile);
		set_status(r);
		e = output_save_last(&r->output, r->profile);
	}
	remember(r, e);
	live_close(r->live);
	r->live = NULL;
}

/* While the command runs */

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
	} else if (now_ns() >= r->save_ns) {
		save_meanwhile(r);
	} else if (live_wanted(r->live)) {
		show_meanwhile(r);
	}
}

/* When -d is over; 0: never. */
static uint64_t end_of(const struct recorder *r)
{
	double seconds = r->options->seconds;

	return seconds > 0 ? r->start_ns + (uint64_t)(seconds * 1e9) : 0;
}

static void say_what_waits(struct recorder *r, const char *what)
{
	r->said = true;
	if (!r->options->quiet)
		fprintf(stderr,
			NAME "sampling is over; the unwind table of %s is being made, once. Ctrl-C "
			     "ends the wait: paths through it are partial then\n",
			path_file(what));
}

/* While unwind tables are made: the command's terminal and end are looked after, and when there is nothing else
   to wait for, people are told, and may have it otherwise. */
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
	if (!r->said && now_ns() - r->over_ns >= SAY_NS)
		say_what_waits(r, what);
	return true;
}

static void run(struct recorder *r)
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

static struct err *start(struct recorder *r)
{
	char **environment = session_environment(r->session, environ);
	struct err *e;

	if (!environment)
		return err_new("out of memory");
	start_clock(r);
	e = target_start(&r->target, r->options->command, environment, prepare_child, r);
	free(environment);
	return e;
}

/* Processes that are there already */

static struct err *attach(struct recorder *r)
{
	const struct arg_list *pids = &r->options->pids;
	struct err *e = NULL;
	size_t i;

	start_clock(r);
	for (i = 0; i < pids->count && !e; i++)
		e = session_attach(r->session, (pid_t)strtol(pids->values[i], NULL, 10));
	return e;
}

/* Until they have ended, the time is over, or somebody says so (Ctrl-C). */
static void run_attached(struct recorder *r)
{
	uint64_t end_ns = end_of(r);

	while (r->session) {
		struct pollfd ready[] = {
			{.fd = r->target.signals, .events = POLLIN},
			{.fd = session_fd(r->session), .events = POLLIN},
			{.fd = live_fd(r->live), .events = POLLIN},
		};
		struct recording_state state;

		if (poll(ready, 3, wait_ms(r, end_ns)) < 0 && errno != EINTR)
			break;
		attend(r, end_ns);
		if (r->session)
			session_status(r->session, &state);
		if (r->session &&
		    (ready[0].revents || r->stopped || (!state.live && !r->options->all)))
			stop_sampling(r);
	}
	if (r->session)
		stop_sampling(r);
}

/* At the end */

static void note_unreached(struct recorder *r)
{
	struct reach_account account = reach_take_account();

	if (account.late)
		buf_printf(
			&r->notes,
			"no answer %u time%s, the last for %s: nothing of its user, or of its directory, was read "
			"for a while\n",
			account.late, account.late == 1 ? "" : "s", account.newest);
}

static void note_processes(struct recorder *r)
{
	if (r->options->all)
		return;
	if (r->living && r->options->command)
		buf_printf(&r->notes, "%u process%s of it %s on, no longer sampled\n", r->living,
			   r->living == 1 ? "" : "es", r->living == 1 ? "lives" : "live");
	if (!r->profile->process_count && r->options->command)
		buf_puts(
			&r->notes,
			"no process could be sampled: each one started others at once that cannot be "
			"preloaded, or cleared its environment\n");
}

static void print_metrics(const struct recorder *r, struct buf *out)
{
	const struct profile *p = r->profile;
	char count[SUMMARY_COUNT_MAX], every[SUMMARY_COUNT_MAX];
	size_t i;

	for (i = 1; i < p->metric_count && i < r->wanted.event_count; i++) {
		const struct recording_event *event = &r->wanted.events[i];

		buf_printf(out, "%*s%s samples of %s", (int)strlen(NAME), "",
			   summary_count(count, profile_samples(p, (uint32_t)i)),
			   p->metrics[i].name);
		if (event->hz)
			buf_printf(out, " at %" PRIu64 " Hz\n", event->hz);
		else
			buf_printf(out, ", one for %s %s\n", summary_count(every, event->period),
				   event->unit);
	}
}

static void print_notes(const char *lines, struct buf *out)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		buf_printf(out, "%*s%.*s\n", (int)strlen(NAME), "", (int)length, lines);
		lines += length + (lines[length] == '\n');
	}
}

static void print_summary(struct recorder *r)
{
	struct summary summary;
	struct buf text = {0};

	summary_make(r->profile, 0, &summary);
	note_processes(r);
	note_unreached(r);
	summary_warn(&summary, r->profile, &r->notes);
	summary_print(&summary, NAME, &text);
	print_metrics(r, &text);
	print_notes(buf_text(&r->notes), &text);
	if (!r->problem)
		summary_print_file(NAME, r->options->output, output_size(&r->output), &text);
	fputs(buf_text(&text), stderr);
	buf_free(&text);
}

static int finish(struct recorder *r)
{
	int status = CMD_OK;

	fflush(stdout);
	if (r->profile && !r->options->quiet)
		print_summary(r);
	if (r->problem)
		status = cmd_fail("record", r->problem);
	r->problem = NULL;
	target_release(&r->target);
	return status == CMD_OK && r->options->command ? target_exit(&r->target) : status;
}

/* The whole */

static void fill_session(struct recorder *r)
{
	const struct options *o = r->options;
	struct recording_options *s = &r->wanted;

	s->hz = s->events[0].hz;
	s->unwind = o->unwind == UNWIND_FP ? RECIPES_AUTO : (enum recipes_mode)o->unwind;
	s->frame_pointers = o->unwind == UNWIND_FP;
	s->collapse = o->collapse;
	s->timeline = o->timeline;
	s->max_depth = (uint32_t)o->max_depth;
	s->agent = r->agent;
	s->whole = o->all;
	s->wait_on = wait_on;
	s->wait_context = r;
}

static struct err *choose_collector(struct recorder *r)
{
	char why[400];
	bool can = kernel_can(why, sizeof(why));

	if (r->options->all && (!can || r->options->collector == COLLECTOR_AGENT))
		return err_new("-a: %s",
			       can ? "the whole machine is sampled by the kernel alone, and "
				     "--collector=agent says no"
				   : why);
	if (r->options->collector == COLLECTOR_KERNEL && !can)
		return err_new("--collector=kernel: %s", why);
	if (!r->options->command && (!can || r->options->collector == COLLECTOR_AGENT))
		return err_new("-p: a running process is sampled by the kernel alone%s%s",
			       can ? "" : ": ", can ? ", and --collector=agent says no" : why);
	r->wanted.kernel = can && r->options->collector != COLLECTOR_AGENT;
	if (!r->options->command) /* whoever started it */
		r->wanted.reacher = "/proc/self/exe";
	return NULL;
}

static struct err *prepare_agent(struct recorder *r)
{
	struct err *e = find_agent(r);

	if (!e)
		check_agent(r);
	return e;
}

static struct err *look_before(struct recorder *r)
{
	const struct options *o = r->options;
	struct err *e = choose_collector(r);

	if (!e && o->command)
		e = target_check(o->command[0], !r->wanted.kernel);
	if (!e)
		e = choose_events(r);
	if (!e)
		e = output_open(&r->output, o->output);
	if (!e && !r->wanted.kernel)
		e = prepare_agent(r);
	return e;
}

/* A kernel that seemed willing, and is not after all. */
static struct err *open_with_agent(struct recorder *r, struct err *why)
{
	struct err *e = target_check(r->options->command[0], true);

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
	struct err *e;

	fill_session(r);
	e = session_open(&r->wanted, &r->session);
	if (e && r->wanted.kernel && r->options->collector == COLLECTOR_AUTO &&
	    r->options->command && !r->options->all)
		e = open_with_agent(r, e);
	return e;
}

static struct err *begin(struct recorder *r)
{
	struct err *e = target_prepare(&r->target);

	if (e)
		return e;
	e = open_session(r);
	if (!e) /* it can be recorded without being looked at */
		err_free(live_open(r->output.path, &r->live));
	if (!e)
		e = r->options->command ? start(r) : attach(r);
	if (e)
		target_release(&r->target);
	return e;
}

static int record(const struct options *o)
{
	struct recorder r = {.options = o, .target.signals = -1};
	struct err *e;
	int status;

	file_limit_ignore(); /* the command is not to be left alone for that */
	e = look_before(&r);
	if (!e)
		e = begin(&r);
	if (e) {
		status = cmd_fail("record", e);
	} else {
		if (o->command)
			run(&r);
		else
			run_attached(&r);
		status = finish(&r);
	}
	session_close(r.session);
	live_close(r.live);
	profile_free(r.profile);
	output_close(&r.output);
	buf_free(&r.notes);
	return status;
}

static bool read_seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out) && *out > 0 && *out < 1e9;
}

/* From the environment where no option says. */
static int default_collector(struct options *o)
{
	static const char *const names[] = {"auto", "agent", "kernel"};
	const char *given = getenv("CULPRIT_COLLECTOR");
	int i;

	for (i = 0; given && *given && o->collector == COLLECTOR_AUTO; i++) {
		if (i == (int)(sizeof(names) / sizeof(names[0])))
			return cmd_misused(
				"record", "CULPRIT_COLLECTOR is auto, agent or kernel, not '%.64s'",
				given);
		if (!strcmp(given, names[i])) {
			o->collector = i;
			break;
		}
	}
	return -1;
}

static bool is_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	return end != text && !*end && number > 0 && number <= INT_MAX;
}

static int check_options(struct options *o, const struct args *args)
{
	size_t i;

	if (!args->count && !o->pids.count && !o->all)
		return cmd_misused("record", "which command?");
	if (o->all && o->pids.count)
		return cmd_misused("record", "either -a or -p, not both");
	if (args->count && o->pids.count)
		return cmd_misused("record", "either a command or -p, not both");
	for (i = 0; i < o->pids.count; i++)
		if (!is_number(o->pids.values[i]))
			return cmd_misused("record",
					   "-p needs the number of a process, not '%.64s'",
					   o->pids.values[i]);
	if (o->max_depth > DEPTH_MAX)
		return cmd_misused("record", "--max-depth is at most %u", DEPTH_MAX);
	if (o->duration && !read_seconds(o->duration, &o->seconds))
		return cmd_misused("record", "-d needs a number of seconds, not '%.64s'",
				   o->duration);
	if (!*o->output || !strcmp(o->output, "-"))
		return cmd_misused("record", "-o needs the name of a file");
	o->command = args->count ? args->operands : NULL;
	return -1;
}

int cmd_record(int argc, char **argv)
{
	struct options o = {.hz = 1000, .output = "culprit.prof"};
	const struct arg options[] = {
		{'e', "event", "EVENT[@RATE]", "what to sample; may be given several times",
		 ARG_LIST, &o.events},
		{'F', "frequency", "HZ", "samples per second of CPU time and thread (1000)",
		 ARG_U64, &o.hz},
		{'o', "output", "FILE", "the profile (culprit.prof); an older one becomes FILE.old",
		 ARG_STRING, &o.output},
		{'p', "pid", "PID", "a process that runs already; may be given several times",
		 ARG_LIST, &o.pids},
		{'a', "all", NULL, "the whole machine: every process, and the kernel", ARG_FLAG,
		 &o.all},
		{'d', "duration", "SECONDS", "sample so long; the command goes on", ARG_STRING,
		 &o.duration},
		{0, "unwind", "auto|cfi|analysis|fp", "where the recipes for walking come from",
		 ARG_CHOICE, &o.unwind},
		{0, "timeline", NULL, "also which context each thread was in over time", ARG_FLAG,
		 &o.timeline},
		{0, "collapse-recursion", NULL, "one frame for all of a recursion", ARG_FLAG,
		 &o.collapse},
		{0, "max-depth", "FRAMES", "at most so many frames of a path", ARG_U64,
		 &o.max_depth},
		{0, "collector", "auto|agent|kernel", "who samples", ARG_CHOICE, &o.collector},
		{'q', "quiet", NULL, "no summary", ARG_FLAG, &o.quiet},
		{0},
	};
	struct args args = {
		.command = "record",
		.usage =
			"[options] [--] COMMAND [ARGUMENTS] | [options] -p PID | [options] -a [COMMAND]",
		.summary =
			"Samples call paths of a command, with all its threads and child processes, "
			"into a profile.",
		.options = options,
		.examples = "  culprit record ./app input\n"
			    "  culprit record -F 10000 -e cpu-clock -e page-faults -- make -j8\n"
			    "  culprit record -a -d 10\n",
		.stop_at_operand = true,
	};
	int status = cmd_parse(&args, argc, argv);

	if (status < 0)
		status = check_options(&o, &args);
	if (status < 0)
		status = default_collector(&o);
	return status >= 0 ? status : record(&o);
}
