/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit record`: its options, and what people are told at the end. The command's exit status is ours. */
#include "cmd/cmd.h"
#include "cmd/outcome.h"

#include "analyze/summary.h"
#include "base/args.h"
#include "base/err.h"
#include "base/path.h"
#include "collect/recorder.h"
#include "process/reach.h"
#include "profile/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "culprit: "
#define DEPTH_MAX 65535u

struct telling { /* of what came of it */
	bool quiet, json;
};

static void say_what_waits(const struct recorder_options *o, const char *file)
{
	(void)o;
	fprintf(stderr,
		NAME
		"sampling is over; waiting for the unwind table of %s, which is made only once. "
		"Ctrl-C ends the wait: paths through it are then partial\n",
		path_file(file));
}

static void say_nothing(const struct recorder_options *o, const char *file)
{
	(void)o;
	(void)file;
}

/* For those who measure what a recording costs. */
static void print_traffic(const struct recorder *r)
{
	const struct recording_state *state = &r->state;
	if (getenv("CULPRIT_TRAFFIC"))
		fprintf(stderr,
			"%s%" PRIu64 " records of %" PRIu64 " bytes in all, %" PRIu64
			" of them copies of stacks\n",
			NAME, state->records, state->record_bytes, state->copies);
}

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
		buf_printf(&r->notes,
			   "%u process%s of the command still run%s, not sampled any more\n",
			   r->living, r->living == 1 ? "" : "es", r->living == 1 ? "s" : "");
	if (!r->profile->process_count && r->options->command)
		buf_puts(
			&r->notes,
			"no process could be sampled: the agent cannot be loaded into them, or they "
			"cleared their environment at once\n");
}

/* `bytes`: the metric alloc.bytes; the others follow it. */
static void print_heap(const struct profile *p, uint32_t bytes, struct buf *out)
{
	enum { CALLS = 1, LIVE, PEAK, TEMPORARY };
	char size[TERM_UNIT_MAX], count[SUMMARY_COUNT_MAX];
	uint64_t calls = profile_samples(p, bytes + CALLS);
	buf_printf(out, "%*s%s in %s allocation%s", (int)strlen(NAME), "",
		   term_size(size, profile_samples(p, bytes)), summary_count(count, calls),
		   calls == 1 ? "" : "s");
	buf_printf(out, ", %s of them temporary",
		   summary_count(count, profile_samples(p, bytes + TEMPORARY)));
	buf_printf(out, "; %s at the peak", term_size(size, profile_samples(p, bytes + PEAK)));
	buf_printf(out, ", %s not freed at the end\n",
		   term_size(size, profile_samples(p, bytes + LIVE)));
}

/* `ns`: the metric lock.ns; the waits are before it. */
static void print_locks(const struct profile *p, uint32_t ns, struct buf *out)
{
	char time[TERM_UNIT_MAX], count[SUMMARY_COUNT_MAX];
	buf_printf(out, "%*s%s of waiting in %s waits\n", (int)strlen(NAME), "",
		   term_time(time, (double)profile_samples(p, ns) / 1e9),
		   summary_count(count, profile_samples(p, ns - 1)));
}

/* `ns`: the metric mpi.ns; the calls are before it. */
static void print_mpi(const struct profile *p, uint32_t ns, struct buf *out)
{
	char time[TERM_UNIT_MAX], count[SUMMARY_COUNT_MAX];
	buf_printf(out, "%*s%s in %s calls of MPI\n", (int)strlen(NAME), "",
		   term_time(time, (double)profile_samples(p, ns) / 1e9),
		   summary_count(count, profile_samples(p, ns - 1)));
}

/* `bytes`: the metric io.bytes; the others follow it. */
static void print_io(const struct profile *p, uint32_t bytes, struct buf *out)
{
	enum { CALLS = 1, NS };
	char size[TERM_UNIT_MAX], time[TERM_UNIT_MAX], count[SUMMARY_COUNT_MAX];
	buf_printf(out, "%*s%s in %s calls that read or write", (int)strlen(NAME), "",
		   term_size(size, profile_samples(p, bytes)),
		   summary_count(count, profile_samples(p, bytes + CALLS)));
	buf_printf(out, ", which took %s\n",
		   term_time(time, (double)profile_samples(p, bytes + NS) / 1e9));
}

static void print_metrics(const struct recorder *r, struct buf *out)
{
	const struct profile *p = r->profile;
	char count[SUMMARY_COUNT_MAX], every[SUMMARY_COUNT_MAX];
	size_t i;
	for (i = 1; i < p->metric_count && i < r->wanted.event_count; i++) {
		const struct recording_event *event = &r->wanted.events[i];
		if (event->call == RECORDING_HEAP_BYTES)
			print_heap(p, (uint32_t)i, out);
		if (event->call == RECORDING_LOCK_NS)
			print_locks(p, (uint32_t)i, out);
		if (event->call == RECORDING_MPI_NS)
			print_mpi(p, (uint32_t)i, out);
		if (event->io == RECORDING_IO_BYTES)
			print_io(p, (uint32_t)i, out);
		if (event->call || event->io)
			continue;
		buf_printf(out, "%*s%s samples of %s", (int)strlen(NAME), "",
			   summary_count(count, profile_samples(p, (uint32_t)i)),
			   p->metrics[i].name);
		if (event->hz)
			buf_printf(out, " at %" PRIu64 " Hz\n", event->hz);
		else if (event->period == 1)
			buf_puts(out, ", one for each\n");
		else
			buf_printf(out, ", one for %s %s\n", summary_count(every, event->period),
				   event->unit);
	}
	if (r->wanted.calls && i < p->metric_count)
		buf_printf(out, "%*s%s calls of functions that samples met\n", (int)strlen(NAME),
			   "", summary_count(count, profile_samples(p, (uint32_t)i)));
}

static void print_trails(const struct profile *p, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX], ways[SUMMARY_COUNT_MAX];
	uint64_t trails = 0, edges = 0;
	for (size_t i = 0; i < p->edge_count; i++)
		*(p->edges[i].module ? &edges : &trails) += p->edges[i].count;
	buf_printf(out, "%*scode followed after %s samples, to %s branches\n", (int)strlen(NAME),
		   "", summary_count(count, trails), summary_count(ways, edges));
}

static void print_summary(const struct recorder *r)
{
	struct summary summary;
	struct buf text = {0};
	summary_make(r->profile, 0, &summary);
	summary_print(&summary, NAME, &text);
	print_metrics(r, &text);
	if (r->wanted.follow)
		print_trails(r->profile, &text);
	outcome_put_notes(buf_text(&r->notes), NAME, &text);
	if (!r->problem)
		summary_print_file(NAME, r->options->output, output_size(&r->output), &text);
	fputs(buf_text(&text), stderr);
	buf_free(&text);
}

/* A command has our standard output: what it writes there is its own. */
static void print_json(const struct recorder *r)
{
	const struct outcome outcome = {r->profile, r->options->output,
					r->problem ? NULL : &r->output, buf_text(&r->notes)};
	outcome_json(&outcome, r->options->command ? stderr : stdout);
}

static void tell(struct recorder *r, bool json)
{
	struct summary summary;
	summary_make(r->profile, 0, &summary);
	note_processes(r);
	note_unreached(r);
	summary_warn(&summary, r->profile, &r->notes);
	if (json)
		print_json(r);
	else
		print_summary(r);
}

static int finish(struct recorder *r, const struct telling *telling)
{
	int status = CMD_OK;
	fflush(stdout);
	print_traffic(r);
	if (r->profile && !telling->quiet)
		tell(r, telling->json);
	if (r->problem)
		status = cmd_fail("record", r->problem);
	else
		status = cmd_finish("record", status);
	r->problem = NULL;
	target_release(&r->target);
	return status == CMD_OK && r->options->command ? target_exit(&r->target) : status;
}

static int record(const struct recorder_options *o, const struct telling *telling)
{
	struct recorder r;
	struct err *e = recorder_open(&r, o);
	int status;
	if (e) {
		status = cmd_fail("record", e);
	} else {
		recorder_run(&r);
		status = finish(&r, telling);
	}
	recorder_close(&r);
	return status;
}

static bool read_seconds(const char *text, double *out)
{
	char *end;
	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out) && *out > 0 && *out < 1e9;
}

/* From the environment where no option says. */
static int default_collector(struct recorder_options *o)
{
	static const char *const names[] = {"auto", "agent", "kernel"};
	const char *given = getenv("CULPRIT_COLLECTOR");
	int i;
	for (i = 0; given && *given && o->collector == COLLECTOR_AUTO; i++) {
		if (i == (int)(sizeof names / sizeof names[0]))
			return cmd_misused(
				"record", "CULPRIT_COLLECTOR is auto, agent or kernel, not '%.64s'",
				given);
		if (!strcmp(given, names[i])) {
			o->collector = (enum recorder_collector)i;
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

static int check_options(struct recorder_options *o, const char *duration, const struct args *args)
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
	if (duration && !read_seconds(duration, &o->seconds))
		return cmd_misused("record", "-d needs a number of seconds, not '%.64s'", duration);
	if (!*o->output || !strcmp(o->output, "-"))
		return cmd_misused("record", "-o needs the name of a file");
	o->command = args->count ? args->operands : NULL;
	return -1;
}

int cmd_record(int argc, char **argv)
{
	struct recorder_options o = {.hz = 1000,
				     .output = "culprit.prof",
				     .version = CULPRIT_VERSION,
				     .libdir = CULPRIT_LIBDIR,
				     .say_what_waits = say_what_waits};
	const char *duration = NULL;
	int unwind = UNWIND_AUTO, collector = COLLECTOR_AUTO;
	struct telling telling = {0};
	const struct arg options[] = {
		{'e', "event", "EVENT[@RATE]", "what to sample; may be given several times",
		 ARG_LIST, &o.events},
		{'F', "frequency", "HZ", "samples per second of CPU time and thread (1000)",
		 ARG_U64, &o.hz},
		{'o', "output", "FILE", "the profile (culprit.prof); an older one becomes FILE.old",
		 ARG_STRING, &o.output},
		{'p', "pid", "PID", "a process that already runs; may be given several times",
		 ARG_LIST, &o.pids},
		{'a', "all", NULL, "the whole machine: every process, and the kernel", ARG_FLAG,
		 &o.all},
		{'d', "duration", "SECONDS", "sample for this time; the command runs on",
		 ARG_STRING, &duration},
		{0, "unwind", "auto|cfi|analysis|fp", "where the recipes for walking come from",
		 ARG_CHOICE, &unwind},
		{0, "timeline", NULL, "also which context each thread was in over time", ARG_FLAG,
		 &o.timeline},
		{0, "calls", NULL, "also count the calls in which samples came", ARG_FLAG,
		 &o.calls},
		{0, "follow", NULL,
		 "also which branches the code takes next, for explain and export", ARG_FLAG,
		 &o.follow},
		{0, "collapse-recursion", NULL, "count all levels of a recursion in one frame",
		 ARG_FLAG, &o.collapse},
		{0, "no-kernel", NULL, "leave out functions of the kernel", ARG_FLAG, &o.no_kernel},
		{0, "max-depth", "FRAMES", "cut paths at this number of frames (32768)", ARG_U64,
		 &o.max_depth},
		{0, "collector", "auto|agent|kernel",
		 "the sampler; auto: the kernel if allowed, else the agent", ARG_CHOICE,
		 &collector},
		{'q', "quiet", NULL, "no summary", ARG_FLAG, &telling.quiet},
		{0, "json", NULL, "the summary as JSON", ARG_FLAG, &telling.json},
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
	o.unwind = (enum recorder_unwind)unwind;
	o.collector = (enum recorder_collector)collector;
	if (telling.quiet)
		o.say_what_waits = say_nothing;
	if (status < 0)
		status = outcome_check("record", telling.json, telling.quiet);
	if (status < 0)
		status = check_options(&o, duration, &args);
	if (status < 0 && !o.calls && !o.follow)
		status = default_collector(&o);
	return status >= 0 ? status : record(&o, &telling);
}
