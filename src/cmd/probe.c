/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit probe`: its options, the table while it goes on, and what people are told at the end. */
#include "analyze/modules.h"
#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/outcome.h"
#include "cmd/probe_left.h"
#include "cmd/probe_live.h"
#include "collect/events.h"
#include "collect/kernel/kernel.h"
#include "collect/recorder.h"
#include "harvest/probes.h"
#include "probe/changed.h"
#include "probe/choose.h"
#include "probe/metrics.h"
#include "probe/modules.h"
#include "probe/patchable.h"
#include "probe/show.h"
#include "profile/profile.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "culprit: "
#define REDRAW_NS 1000000000ull
#define DEFAULT_PATHS 10
#define DEFAULT_SLOWEST 10
#define NOT_TOLD UINT64_MAX
#define DEFAULT_BUDGET 5 /* per cent */
#define JUMPS_NAMED 5
#define TRAPS_NAMED 0.2 /* part of the time of calls */

#define UPROBES_BECAUSE "the kernel counts (--engine=uprobe): %s\n"

enum { ENGINE_AUTO, ENGINE_PATCH, ENGINE_UPROBE };

struct probe {
	struct recorder_options recorder;
	struct args args; /* its operands are the functions */
	bool children;
	int json; /* as of OPTION_JSON_TREE */
	int engine;
	size_t at_start; /* modules that are in memory from the start; others come later */
	/* Why not the other engine, if it was left to us; "": there is nothing to say. */
	char why_uprobes[400];
	char why_no_patches[400]; /* what a culprit probe has left that was killed; "": nothing */
	bool may_change;          /* patches were chosen for it, and uprobes would do, too */
	uint64_t limit, slowest, budget;
	struct arg_list metrics;
	struct probe_modules modules;
	struct probes probes;
	struct probe_live live;
	bool draws; /* the table is on a terminal */
	FILE *out;
	size_t drawn; /* lines of the table on the terminal */
	uint64_t drawn_ns;
};

/* ---- which functions ---- */

static pid_t *read_pids(const struct arg_list *list)
{
	pid_t *pids = calloc(list->count + 1, sizeof *pids);
	for (size_t i = 0; pids && i < list->count; i++)
		pids[i] = (pid_t)strtol(list->values[i], NULL, 10);
	return pids;
}

static struct err *find_program(struct probe *p)
{
	struct buf path = {0};
	struct err *e = target_check(p->recorder.command[0], TARGET_RUN);
	if (!e)
		e = target_find(p->recorder.command[0], &path);
	if (!e)
		e = probe_modules_of_program(&p->modules, path.data);
	buf_free(&path);
	return e;
}

static struct err *find_modules(struct probe *p)
{
	const struct arg_list *list = &p->recorder.pids;
	struct err *e = p->recorder.command ? find_program(p) : NULL;
	pid_t *pids = read_pids(list);
	if (!e && !pids)
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < list->count; i++)
		e = probe_modules_of_process(&p->modules, pids[i]);
	size_t at_start = p->modules.count;
	/* Files that no process has in memory yet may be given with the functions. */
	for (int i = 0; !e && i < p->args.count; i++) {
		const char *text = p->args.operands[i], *mark = strchr(text, '!');
		char *file = mark ? strndup(text, (size_t)(mark - text)) : NULL;
		size_t index;
		if (file && strchr(file, '/'))
			err_free(probe_modules_add_file(&p->modules, file, &index));
		free(file);
	}
	p->at_start = at_start;
	if (!e && !p->children)
		probe_modules_find_shared(&p->modules, pids, list->count);
	free(pids);
	return e;
}

static struct err *choose(struct probe *p)
{
	struct err *e = find_modules(p);
	for (int i = 0; i < p->args.count && !e; i++)
		e = probe_choose(&p->modules, p->args.operands[i], &p->probes);
	return e ? e : probe_mark_exceptions(&p->modules, &p->probes);
}

/* ---- which engine ---- */

/* Returns the first function that the agent cannot probe; NULL: it can probe all. */
static const struct probe_function *find_unpatched(const struct probes *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->functions[i].unpatched && p->functions[i].state != PROBE_REFUSED)
			return &p->functions[i];
	return NULL;
}

/* The agent sees all ends, whichever way a function ends. But there are functions that it cannot probe. */
static void use_patches(struct probe *p)
{
	p->recorder.collector = COLLECTOR_AGENT;
	p->probes.patched = true;
	probe_use_patches(&p->probes, 0);
}

/* Whether the agent can come into the program, or the processes. */
static struct err *check_programs(const struct probe *p)
{
	if (*p->why_no_patches)
		return err_new("%s", p->why_no_patches);
	return p->recorder.command ? target_check(p->recorder.command[0], TARGET_SAMPLED)
				   : recorder_check_probes(&p->recorder);
}

/* Nobody else may count in these processes. */
static struct err *clear_processes(struct probe *p)
{
	struct err *e = NULL;
	for (size_t i = 0; i < p->recorder.pids.count && !e; i++)
		e = probe_left_clear((pid_t)strtol(p->recorder.pids.values[i], NULL, 10),
				     p->why_no_patches, sizeof p->why_no_patches);
	return e;
}

/* Without what follows from that. */
static void say_why_uprobes(struct probe *p, const char *why)
{
	const char *advice = strstr(why, ": --engine=uprobe ");
	snprintf(p->why_uprobes, sizeof p->why_uprobes, "%.*s",
		 (int)(advice ? (size_t)(advice - why) : strlen(why)), why);
}

static struct err *choose_engine(struct probe *p)
{
	char why[400];
	bool measures = p->probes.metric_count; /* only the kernel can do that */
	if (p->engine == ENGINE_UPROBE || *p->why_uprobes)
		return NULL;
	if (measures && p->engine == ENGINE_PATCH)
		return err_new("--metric needs --engine=uprobe");
	bool can = kernel_can_sample(why, sizeof why);
	if (measures && !can)
		return err_new(
			"--metric needs the kernel: %s. Without --metric, the program counts "
			"its calls itself",
			why);
	if (measures) {
		snprintf(p->why_uprobes, sizeof p->why_uprobes, "--metric needs that");
		return NULL;
	}
	probe_judge_patches(&p->probes, &p->modules, p->at_start);
	struct err *e = check_programs(p);
	if (p->engine == ENGINE_PATCH) {
		use_patches(p);
		return e;
	}
	const struct probe_function *f = e ? NULL : find_unpatched(&p->probes);
	if (e && can)
		say_why_uprobes(p, err_text(e));
	else if (f && can)
		snprintf(p->why_uprobes, sizeof p->why_uprobes, "%s: %s", f->name, f->unpatched);
	else
		use_patches(p);
	p->may_change = can && p->probes.patched && !p->recorder.command;
	if (!can)
		return e;
	err_free(e);
	return NULL;
}

/* Where the code was changed by somebody else, a probe of the kernel would crash the process. */
static struct err *refuse_changed(struct probe *p)
{
	struct err *e = NULL;
	for (size_t i = 0; i < p->recorder.pids.count && !e; i++)
		e = probe_refuse_changed(&p->probes, 0,
					 (pid_t)strtol(p->recorder.pids.values[i], NULL, 10));
	return e;
}

/* Before anything is started: if none of them can be probed, the first one says why. */
static struct err *check_any(const struct probe *p)
{
	for (size_t i = 0; i < p->probes.count; i++)
		if (p->probes.functions[i].state != PROBE_REFUSED)
			return NULL;
	const struct probe_function *f = &p->probes.functions[0];
	return err_new("%s (%s): %s", f->name, path_file(f->module), f->reason ? f->reason : "");
}

/* ---- what is measured ---- */

static struct err *add_event(const char *text, struct probe_metric *out)
{
	struct recording_event event;
	struct err *e = event_parse(text, 0, &event);
	if (e)
		return err_context(
			e, "--metric: calls, wall, cpu, blocked, arg:N, return, or an event");
	if (!event_is_sampled(&event))
		return err_new("--metric %s: this event is not counted by the kernel", text);
	*out = (struct probe_metric){.kind = PROBE_EVENT,
				     .type = event.type,
				     .config = event.config,
				     .config1 = event.config1,
				     .config2 = event.config2,
				     .user_only = event.user_only};
	snprintf(out->name, sizeof out->name, "%.47s", event.name);
	snprintf(out->unit, sizeof out->unit, "%s", event.unit);
	return NULL;
}

static struct err *choose_metrics(struct probe *p)
{
	struct probes *to = &p->probes;
	struct err *e = NULL;
	bool others = !p->metrics.count;
	for (size_t i = 0; i < p->metrics.count && !e; i++) {
		const char *text = p->metrics.values[i];
		struct probe_metric metric;
		bool known;
		others |= strcmp(text, "calls") != 0;
		if (!strcmp(text, "calls") || !strcmp(text, "wall"))
			continue;
		e = probe_metric_parse(text, &metric, &known);
		if (!e && !known)
			e = add_event(text, &metric);
		for (size_t k = 0; k < to->metric_count && !e; k++)
			if (!strcmp(to->metrics[k].name, metric.name))
				e = err_new("--metric %s is given twice", text);
		if (!e && to->metric_count == PROBE_METRICS)
			e = err_new("--metric: at most %u beside calls and wall", PROBE_METRICS);
		if (!e)
			to->metrics[to->metric_count++] = metric;
	}
	to->only_calls = !others;
	to->slowest = p->slowest == NOT_TOLD ? DEFAULT_SLOWEST : (uint32_t)p->slowest;
	if (to->only_calls)
		to->slowest = 0;
	to->budget = (double)p->budget / 100;
	return e;
}

/* If only calls are wanted, their ends are not looked for. */
static void leave_out_ends(struct probes *p, size_t first)
{
	for (size_t i = first; p->only_calls && i < p->count; i++)
		probes_refuse(&p->functions[i], PROBE_COUNTING, "--metric calls");
}

/* ---- while it goes on ---- */

/* Answers others, and draws the table. */
static void attend(void *context)
{
	struct probe *p = context;
	struct buf table = {0};
	probe_live_serve(&p->live);
	if (!p->draws || now_ns() - p->drawn_ns < REDRAW_NS)
		return;
	p->drawn_ns = now_ns();
	probe_live_refresh(&p->live);
	if (p->drawn)
		buf_printf(&table, "\033[%zuA\033[J", p->drawn);
	p->drawn = probe_show_functions(&p->probes, &table);
	fputs(buf_text(&table), p->out);
	fflush(p->out);
	buf_free(&table);
}

static void say_what_waits(const struct recorder_options *o, const char *file)
{
	(void)o;
	fprintf(stderr, NAME "waiting for the unwind table of %s, which is made only once\n",
		path_file(file));
}

static void say_nothing(const struct recorder_options *o, const char *file)
{
	(void)o;
	(void)file;
}

/* ---- the end ---- */

/* Says which functions jump to others as their last act, whose time is not in theirs. */
static void note_jumps(const struct probe *p, struct recorder *r)
{
	size_t count = 0;
	for (size_t i = 0; i < p->probes.count; i++) {
		const struct probe_function *f = &p->probes.functions[i];
		if (f->state != PROBE_ON || !f->jumps || !f->sums.calls)
			continue;
		if (++count <= JUMPS_NAMED)
			buf_printf(&r->notes, "%s%s", count > 1 ? ", " : "", f->name);
	}
	if (count > JUMPS_NAMED)
		buf_printf(&r->notes, " and %zu more", count - JUMPS_NAMED);
	if (count)
		buf_printf(
			&r->notes,
			": may end by a jump to another function, whose time is then left out\n");
}

/* What is left of the traps in the times of calls. Says so where it is not little of them. */
static void note_traps(const struct probe *p, struct recorder *r)
{
	const struct probes *all = &p->probes;
	char text[TERM_UNIT_MAX];
	for (size_t i = 0; i < all->count; i++) {
		const struct probe_function *f = &all->functions[i];
		double traps = (double)f->sums.returned * (double)all->trap_ns;
		if (f->state == PROBE_REFUSED || traps <= TRAPS_NAMED * (double)f->sums.ns)
			continue;
		buf_printf(
			&r->notes,
			"to stop at a probe takes %s here, and the time of each call has about as "
			"much of that in it: %s (--engine=patch takes a fraction)\n",
			term_time(text, (double)all->trap_ns / 1e9), f->name);
		return;
	}
}

static void note_limits(struct probe *p, struct recorder *r)
{
	const char *file = NULL;
	for (size_t i = 0; i < p->probes.count; i++)
		if (!p->probes.functions[i].everywhere)
			file = p->probes.functions[i].module;
	if (file && r->profile->process_count > (p->recorder.command ? 1 : p->recorder.pids.count))
		buf_printf(
			&r->notes,
			"calls in child processes are not counted in %s, which other processes use, too: "
			"--children counts them, and slows the others down meanwhile\n",
			path_file(file));
	note_jumps(p, r);
	note_traps(p, r);
	if (*p->why_uprobes && (p->json || p->recorder.command)) /* else it was said at once */
		buf_printf(&r->notes, UPROBES_BECAUSE, p->why_uprobes);
	if (p->probes.untimed)
		buf_printf(&r->notes, "%" PRIu64 " calls are not timed: too many at once\n",
			   p->probes.untimed);
}

static struct err *print_json(struct probe *p, struct recorder *r, struct modules *modules)
{
	struct json j = json_to_file(p->out);
	struct summary summary;
	summary_make(r->profile, 0, &summary);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "file", r->problem ? NULL : p->recorder.output);
	json_key(&j, "summary");
	json_begin_object(&j);
	summary_json(&summary, r->profile, buf_text(&r->notes), &j);
	json_end_object(&j);
	struct err *e = probe_show_json(&p->probes, r->profile, modules, p->json == JSON_ROWS, &j);
	json_end_object(&j);
	json_newline(&j);
	return e;
}

static struct err *print_text(struct probe *p, struct recorder *r, struct modules *modules)
{
	struct summary summary;
	struct buf out = {0};
	summary_make(r->profile, 0, &summary);
	if (p->drawn)
		buf_printf(&out, "\033[%zuA\033[J", p->drawn);
	summary_print(&summary, NAME, &out);
	outcome_put_notes(buf_text(&r->notes), NAME, &out);
	probe_show_functions(&p->probes, &out);
	probe_show_paths(&p->probes, r->profile, modules, p->limit, &out);
	struct err *e = probe_show_more(&p->probes, r->profile, modules, &out);
	if (p->recorder.output && !r->problem)
		summary_print_file(NAME, p->recorder.output, output_size(&r->output), &out);
	fputs(buf_text(&out), p->out);
	buf_free(&out);
	return e;
}

static struct err *tell(struct probe *p, struct recorder *r)
{
	struct modules *modules = NULL;
	struct summary summary;
	struct err *e = modules_open(r->profile, false, &modules);
	if (e)
		return e;
	summary_make(r->profile, 0, &summary);
	note_limits(p, r);
	summary_warn(&summary, r->profile, &r->notes);
	if (p->json)
		e = print_json(p, r, modules);
	else
		e = print_text(p, r, modules);
	fflush(p->out);
	modules_close(modules);
	return e;
}

static int finish(struct probe *p, struct recorder *r)
{
	fflush(stdout);
	struct err *e = r->profile ? tell(p, r) : NULL;
	int status = CMD_OK;
	if (r->problem) {
		status = cmd_fail("probe", r->problem);
		err_free(e);
	} else if (e) {
		status = cmd_fail("probe", e);
	} else {
		status = cmd_finish("probe", CMD_OK);
	}
	r->problem = NULL;
	target_release(&r->target);
	return status == CMD_OK && p->recorder.command ? target_exit(&r->target) : status;
}

/* A process goes on as before. So people want to know from when on its calls are counted. */
static void say_ready(const struct probe *p)
{
	size_t on = 0;
	for (size_t i = 0; i < p->probes.count; i++)
		on += p->probes.functions[i].state != PROBE_REFUSED;
	if (*p->why_uprobes && !p->recorder.command)
		fprintf(stderr, NAME UPROBES_BECAUSE, p->why_uprobes);
	if (!p->recorder.command)
		fprintf(stderr, NAME "counting the calls of %zu function%s%s\n", on,
			on == 1 ? "" : "s", p->recorder.seconds > 0 ? "" : "; Ctrl-C ends it");
}

/* Others may change what is probed, by the number of one of the processes. */
static void let_ask(struct probe *p, struct recorder *r)
{
	const struct arg_list *list = &p->recorder.pids;
	p->live = (struct probe_live){.probes = &p->probes,
				      .recorder = r,
				      .pids = read_pids(list),
				      .pid_count = list->count,
				      .children = p->children,
				      .fixed = p->recorder.command && p->probes.patched,
				      .limit = p->limit};
	if (p->live.pids && p->recorder.command)
		p->live.pids[p->live.pid_count++] = r->target.pid;
	if (p->live.pids)
		probe_live_open(&p->live);
}

/* Chooses the functions and who counts. */
static struct err *prepare(struct probe *p)
{
	struct err *e = choose_metrics(p);
	if (!e)
		e = choose(p);
	if (!e)
		e = clear_processes(p);
	if (!e)
		e = choose_engine(p);
	if (!e && !p->probes.patched)
		e = refuse_changed(p);
	if (!e)
		e = check_any(p);
	leave_out_ends(&p->probes, 0);
	probe_modules_free(&p->modules);
	return e;
}

/* What could be seen only in the process: the agent cannot come in, or a function cannot be changed there that was not refused
   before. NULL: neither. */
static const char *why_not_there(const struct probe *p, const struct err *e, const bool *refused)
{
	if (e)
		return err_text(e);
	for (size_t i = 0; i < p->probes.count; i++)
		if (p->probes.functions[i].state == PROBE_REFUSED && !refused[i])
			return p->probes.functions[i].reason;
	return NULL;
}

/* Begins anew. */
static void change_engine(struct probe *p, const char *why)
{
	say_why_uprobes(p, why);
	probes_free(&p->probes);
	p->probes = (struct probes){0};
	p->recorder.collector = COLLECTOR_KERNEL;
	p->may_change = false;
}

static struct err *open_recorder(struct probe *p, struct recorder *r)
{
	bool *refused = calloc(p->probes.count + 1, sizeof *refused);
	for (size_t i = 0; refused && i < p->probes.count; i++)
		refused[i] = p->probes.functions[i].state == PROBE_REFUSED;
	struct err *e = recorder_open(r, &p->recorder);
	const char *why = p->may_change && refused ? why_not_there(p, e, refused) : NULL;
	free(refused);
	if (!why)
		return e;
	change_engine(p, why);
	err_free(e);
	recorder_close(r);
	*r = (struct recorder){.options = &p->recorder, .target.signals = -1};
	e = prepare(p);
	return e ? e : recorder_open(r, &p->recorder);
}

static int run(struct probe *p)
{
	struct recorder r;
	p->recorder.probes = &p->probes;
	struct err *e = prepare(p);
	if (e)
		return cmd_fail("probe", e);
	/* With a command, JSON goes to standard error, too: there it is alone. */
	p->recorder.say_what_waits = p->json && p->recorder.command ? say_nothing : say_what_waits;
	p->out = p->recorder.command ? stderr : stdout;
	p->draws = !p->json && !p->recorder.command && term_is_tty(STDOUT_FILENO);
	p->recorder.meanwhile = attend;
	p->recorder.meanwhile_context = p;
	e = open_recorder(p, &r);
	if (!e && !p->recorder.command)
		e = check_any(p);
	int status;
	if (e) {
		status = cmd_fail("probe", e);
	} else {
		let_ask(p, &r);
		say_ready(p);
		recorder_run(&r);
		probe_live_close(&p->live);
		status = finish(p, &r);
	}
	recorder_close(&r);
	return status;
}

/* ---- the command ---- */

static bool read_seconds(const char *text, double *out)
{
	char *end;
	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out) && *out > 0 && *out < 1e9;
}

static bool is_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	return end != text && !*end && number > 0 && number <= INT_MAX;
}

static int check(struct probe *p, const char *duration)
{
	struct recorder_options *o = &p->recorder;
	if (!o->pids.count && !o->command)
		return cmd_misused("probe", "of which process? -p PID, or a command after --");
	if (o->pids.count && o->command)
		return cmd_misused("probe", "either a command or -p, not both");
	if (!p->args.count)
		return cmd_misused("probe", "which functions?");
	for (size_t i = 0; i < o->pids.count; i++)
		if (!is_number(o->pids.values[i]))
			return cmd_misused("probe", "-p needs the number of a process, not '%.64s'",
					   o->pids.values[i]);
	if (duration && !read_seconds(duration, &o->seconds))
		return cmd_misused("probe", "-d needs a number of seconds, not '%.64s'", duration);
	if (p->slowest != NOT_TOLD && p->slowest > PROBE_SLOWEST_MAX)
		return cmd_misused("probe", "--slowest: at most %u", PROBE_SLOWEST_MAX);
	if (p->budget > 100)
		return cmd_misused("probe", "--budget needs a number of per cent, from 0 to 100");
	if (o->output && (!*o->output || !strcmp(o->output, "-")))
		return cmd_misused("probe", "-o needs the name of a file");
	return -1;
}

int cmd_probe(int argc, char **argv)
{
	struct probe p = {.limit = DEFAULT_PATHS,
			  .slowest = NOT_TOLD,
			  .budget = DEFAULT_BUDGET,
			  .recorder = {.hz = 1000,
				       .version = CULPRIT_VERSION,
				       .libdir = CULPRIT_LIBDIR,
				       .collector = COLLECTOR_KERNEL}};
	const char *duration = NULL;
	int own = argc;
	const struct arg options[] = {
		{'p', "pid", "PID", "a process that runs; may be given several times", ARG_LIST,
		 &p.recorder.pids},
		{'d', "duration", "SECONDS", "count for this time; a command runs on", ARG_STRING,
		 &duration},
		{'o', "output", "FILE", "also write a profile, for report, view and others",
		 ARG_STRING, &p.recorder.output},
		{0, "children", NULL,
		 "also count in child processes, of libraries that others use, too", ARG_FLAG,
		 &p.children},
		{0, "engine", "auto|patch|uprobe",
		 "patch: the program counts, 10 times faster; uprobe: the kernel does", ARG_CHOICE,
		 &p.engine},
		{0, "metric", "METRIC",
		 "as root: also measure cpu, blocked, arg:N, return or an event; repeatable",
		 ARG_LIST, &p.metrics},
		{0, "slowest", "N", "keep the N slowest calls of each function (10)", ARG_U64,
		 &p.slowest},
		{0, "budget", "PERCENT",
		 "if probes take more of the time, only count the costliest (5); 0: no limit",
		 ARG_U64, &p.budget},
		{0, "limit", "N", "show N call paths (10); 0: all", ARG_U64, &p.limit},
		OPTION_JSON_TREE(p.json),
		{0},
	};
	p.args = (struct args){
		.command = "probe",
		.usage =
			"[options] -p PID FUNCTION... | [options] FUNCTION... -- COMMAND [ARGUMENTS] |\n"
			"       culprit probe add|remove|list|show -p PID [FUNCTION...]",
		.summary = "Counts and times every call of chosen functions, by call path.",
		.options = options,
		.examples = "  culprit probe -p 4711 -d 10 handle_request 'parse_*'\n"
			    "  culprit probe shop::find libc!malloc -- ./app input\n"
			    "  culprit probe -o run.prof ./plugin.so!render -- ./app\n",
	};
	if (argc > 1 && probe_live_is_command(argv[1]))
		return probe_live_ask(argc, argv);
	for (int i = 1; i < own; i++)
		if (!strcmp(argv[i], "--"))
			own = i;
	if (own + 1 < argc)
		p.recorder.command = argv + own + 1;
	argv[own] = NULL; /* the command is none of our operands */
	int status = cmd_parse(&p.args, own, argv);
	if (status < 0)
		status = check(&p, duration);
	if (status < 0)
		status = run(&p);
	probes_free(&p.probes);
	return status;
}
