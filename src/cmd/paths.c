/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit paths`: its options, the run, and what people are told at the end, or what is written to a profile. */
#include "base/args.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/outcome.h"
#include "collect/events.h"
#include "collect/paths/copier.h"
#include "collect/paths/counting.h"
#include "paths/hot.h"
#include "paths/result.h"
#include "paths/show.h"
#include "paths/stored.h"
#include "profile/output.h"
#include "profile/profile.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "culprit: "
#define DEFAULT_LIMIT 10
#define DEFAULT_HZ 1000
#define METRICS_MAX PROFILE_SAMPLED_MAX
#define DEFAULT_COVER 99 /* per cent */

struct paths {
	struct arg_list functions, modules;
	uint64_t limit;
	bool json, contexts;
	const char *output_path; /* NULL: the result is printed */
	struct output output;
	struct profile *profile;
	uint64_t begun_ns;
	regex_t patterns[ARG_LIST_MAX];
	size_t pattern_count;
	const char *hot_path, *cover_text; /* NULL: all functions; DEFAULT_COVER */
	double cover;                      /* per cent */
	struct path_choice choice;
	struct path_hot hot;
	struct arg_list metrics;
	uint64_t hz;
	const char *pid_text, *duration_text;
	struct recording_event events[METRICS_MAX];
	size_t event_count;
	struct copier *copier;
	struct counting counting;
	struct path_result result;
};

/* ---- the result ---- */

static struct err *collect(struct paths *p)
{
	struct err *e = NULL;
	for (size_t i = 0; i < p->event_count && !e; i++)
		if (path_result_metric(&p->result, p->events[i].name, p->events[i].unit) != i)
			e = err_new("out of memory");
	for (size_t i = 0; i < p->counting.program_count && !e; i++)
		e = copier_collect(p->copier, p->counting.programs[i], &p->result);
	path_contexts_settle(&p->result.contexts);
	if (!e)
		path_result_join(&p->result);
	return e;
}

static struct path_show how(const struct paths *p)
{
	return (struct path_show){
		.limit = p->limit, .name = NAME, .notes = buf_text(&p->counting.notes)};
}

/* A command's standard output is its own. */
static FILE *where(const struct paths *p)
{
	return p->counting.pid ? stdout : stderr;
}

static struct err *print_json(const struct paths *p)
{
	struct json j = json_to_file(where(p));
	const struct path_show show = how(p);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "notes", buf_text(&p->counting.notes));
	if (p->counting.pid) {
		json_put_u64(&j, "counted_ns", p->counting.counted_ns);
		json_put_u64(&j, "longest_stop_ns", p->counting.stop_ns);
	}
	struct err *e = path_show_json(&p->result, &show, &j);
	json_end_object(&j);
	json_newline(&j);
	return e;
}

static struct err *print_text(const struct paths *p)
{
	struct buf out = {0};
	const struct path_show show = how(p);
	struct err *e = path_show_text(&p->result, &show, &out);
	if (!e)
		fputs(buf_text(&out), where(p));
	buf_free(&out);
	return e;
}

/* ---- a profile ---- */

/* Its directory must be there before the command runs. */
static struct err *begin_profile(struct paths *p)
{
	if (!p->output_path)
		return NULL;
	struct err *e = output_open(&p->output, p->output_path);
	if (!e)
		e = profile_new(&p->profile);
	if (e)
		return e;
	profile_set_origin(p->profile);
	p->begun_ns = now_ns();
	return NULL;
}

/* Lines, without the newline at the end. */
static const char *keep_notes(struct profile *profile, const struct buf *notes)
{
	struct buf text = {0};
	if (notes->size)
		buf_append(&text, notes->data, notes->size - 1);
	const char *kept = profile_string(profile, buf_text(&text));
	buf_free(&text);
	return kept;
}

static void describe(const struct paths *p, struct profile *profile)
{
	struct buf text = {0};
	for (char **word = p->counting.command; word && *word; word++)
		buf_printf(&text, "%s%s", word == p->counting.command ? "" : " ", *word);
	profile->command = profile_string(profile, buf_text(&text));
	profile->version = profile_string(profile, CULPRIT_VERSION);
	profile->note = keep_notes(profile, &p->counting.notes);
	if (p->counting.pid)
		buf_printf(&text, "-p %d", (int)p->counting.pid);
	profile->duration_ns = now_ns() - p->begun_ns;
	profile->complete = true;
	buf_free(&text);
}

static struct err *print_summary(const struct paths *p)
{
	struct buf out = {0};
	const struct path_show show = how(p);
	struct err *e = path_show_summary(&p->result, &show, &out);
	if (!e) {
		outcome_put_paths_file(NAME, p->output_path, &p->output, &out);
		fputs(buf_text(&out), stderr);
	}
	buf_free(&out);
	return e;
}

static struct err *write_profile(struct paths *p)
{
	describe(p, p->profile);
	struct err *e = path_result_store(&p->result, p->profile);
	if (!e)
		e = output_save_last(&p->output, p->profile);
	return e ? e : print_summary(p);
}

/* ---- the end ---- */

static struct err *print(struct paths *p)
{
	return p->output_path ? write_profile(p) : p->json ? print_json(p) : print_text(p);
}

/* That nothing was meant is seen only when the program is there. */
static struct err *check_any(const struct paths *p)
{
	if (p->result.count)
		return NULL;
	if (p->hot_path)
		return err_new(
			"no function was counted: what ran has none of the %zu that %s chooses",
			p->hot.count, p->hot_path);
	return err_new(
		"no function was counted: %s%s%s",
		p->functions.count ? "none matches --functions" : "the program has none",
		p->modules.count ? " in these modules" : "",
		p->counting.program_count ? "" : " (or nothing could be loaded into the program)");
}

static int finish(struct paths *p)
{
	struct err *e = collect(p);
	if (!e)
		e = check_any(p);
	if (!e && p->hot_path)
		path_hot_tell(&p->hot, &p->result, &p->counting.notes);
	if (e)
		fputs(buf_text(&p->counting.notes), stderr);
	else
		e = print(p);
	return e ? cmd_fail("paths", e) : CMD_OK;
}

/* ---- the run ---- */

static struct err *choose(struct paths *p)
{
	p->choice = (struct path_choice){.functions = p->patterns,
					 .function_count = p->pattern_count,
					 .modules = p->modules.values,
					 .module_count = p->modules.count};
	struct err *e = p->hot_path ? path_hot_open(p->hot_path, p->cover, &p->choice, &p->hot)
				    : NULL;
	p->choice.places = p->hot.places;
	p->choice.place_count = p->hot.count;
	return e;
}

static struct err *parse_metrics(struct paths *p)
{
	for (; p->event_count < p->metrics.count; p->event_count++) {
		struct recording_event *event = &p->events[p->event_count];
		struct err *e = event_parse(p->metrics.values[p->event_count], p->hz, event);
		if (e)
			return e;
		if (!event_is_sampled(event))
			return err_new("--metric %s: only events that a CPU or the kernel counts "
				       "can be sampled of paths (culprit list)",
				       event->name);
		for (size_t i = 0; i < p->event_count; i++)
			if (event_same(&p->events[i], event))
				return err_new("--metric %s is given twice", event->name);
	}
	return NULL;
}

/* The process, which runs, counts from now on. */
static void say_begun(void *context)
{
	(void)context;
	fputs(NAME "counting\n", stderr);
}

static struct err *begin(struct paths *p)
{
	struct err *e = choose(p);
	if (!e)
		e = parse_metrics(p);
	if (!e)
		e = copier_open(&(struct copier_options){.choice = p->choice,
							 .metric_count = p->event_count,
							 .contexts = p->contexts},
				&p->copier);
	p->counting.events = p->events;
	p->counting.event_count = p->event_count;
	p->counting.sampled = copier_sample;
	p->counting.context = p->copier;
	return e ? e : begin_profile(p);
}

static int run(struct paths *p)
{
	struct err *e = begin(p);
	if (!e)
		e = counting_run(&p->counting);
	fflush(stdout);
	int status = e ? cmd_fail("paths", e) : finish(p);
	path_result_free(&p->result);
	profile_free(p->profile);
	output_close(&p->output);
	path_hot_close(&p->hot);
	counting_free(&p->counting);
	copier_close(p->copier);
	return status == CMD_OK && !p->counting.pid ? counting_exit(&p->counting) : status;
}

/* ---- the command ---- */

/* Reads the patterns; -1 to go on. */
static int read_patterns(struct paths *p)
{
	int status = -1;
	for (size_t i = 0; i < p->functions.count && status < 0; i++) {
		status = options_pattern("paths", "functions", p->functions.values[i],
					 &p->patterns[i]);
		p->pattern_count += status < 0;
	}
	return status;
}

/* -1 to go on. */
static int check_hot(struct paths *p)
{
	char *end;
	p->cover = DEFAULT_COVER;
	if (!p->hot_path)
		return p->cover_text ? cmd_misused("paths", "--cover is for --hot") : -1;
	if (p->cover_text) {
		p->cover = strtod(p->cover_text, &end);
		end += *end == '%';
		if (end == p->cover_text || *end || !(p->cover > 0 && p->cover <= 100))
			return cmd_misused("paths",
					   "--cover takes a per cent up to 100, not '%.64s'",
					   p->cover_text);
	}
	return options_profile("paths", p->hot_path);
}

static bool read_seconds(const char *text, uint64_t *ns)
{
	char *end;
	double seconds = strtod(text, &end);
	bool good = end != text && !*end && isfinite(seconds) && seconds > 0 && seconds < 1e9;
	*ns = good ? (uint64_t)(seconds * 1e9) : 0;
	return *ns;
}

static int check_process(struct paths *p)
{
	char *end;
	if (!p->pid_text)
		return p->duration_text ? cmd_misused("paths", "-d is for -p") : -1;
	if (p->contexts)
		return cmd_misused("paths",
				   "--context needs a command; it cannot be had with -p yet");
	long pid = strtol(p->pid_text, &end, 10);
	if (end == p->pid_text || *end || pid <= 0 || pid > INT_MAX)
		return cmd_misused("paths", "-p needs the number of a process, not '%.64s'",
				   p->pid_text);
	if (p->counting.command)
		return cmd_misused("paths", "-p or a command, not both");
	if (p->duration_text && !read_seconds(p->duration_text, &p->counting.duration_ns))
		return cmd_misused("paths", "-d needs a number of seconds, not '%.64s'",
				   p->duration_text);
	p->counting.pid = (pid_t)pid;
	return -1;
}

static int check(struct paths *p, const struct args *args)
{
	if (args->count)
		return cmd_misused("paths",
				   "unexpected argument '%.64s': the command stands after --",
				   args->operands[0]);
	int status = check_process(p);
	if (status >= 0)
		return status;
	if (!p->counting.command && !p->counting.pid)
		return cmd_misused("paths", "which command? It stands after --. Or -p PID");
	if (p->output_path && (!*p->output_path || !strcmp(p->output_path, "-")))
		return cmd_misused("paths", "-o needs the name of a file");
	if (p->metrics.count > METRICS_MAX)
		return cmd_misused("paths", "at most %u metrics can be sampled at once",
				   METRICS_MAX);
	if (p->hz && !p->metrics.count)
		return cmd_misused("paths", "-F is for --metric");
	p->hz = p->hz ? p->hz : DEFAULT_HZ;
	if (p->output_path && p->json)
		return cmd_misused("paths",
				   "-o or --json, not both: culprit report --by=path --json "
				   "prints what is in a file");
	for (size_t i = 0; i < p->modules.count; i++)
		if (!*p->modules.values[i])
			return cmd_misused("paths", "--module needs the name of a file");
	status = check_hot(p);
	return status < 0 ? read_patterns(p) : status;
}

int cmd_paths(int argc, char **argv)
{
	struct paths p = {
		.limit = DEFAULT_LIMIT,
		.counting = {.libdir = CULPRIT_LIBDIR, .make = copier_make, .begun = say_begun}};
	int own = 1;
	const struct arg options[] = {
		{0, "functions", "RE",
		 "only functions whose name matches; may be given several times", ARG_LIST,
		 &p.functions},
		{0, "module", "MODULE",
		 "functions of this file, by path or name (libm), instead of the program's; repeatable",
		 ARG_LIST, &p.modules},
		{0, "hot", "FILE", "only the functions that take the CPU time, by a profile",
		 ARG_STRING, &p.hot_path},
		{0, "cover", "PCT", "those with so much of the samples in the modules (99)",
		 ARG_STRING, &p.cover_text},
		{0, "metric", "EVENT[@RATE]",
		 "sample this, too, and say what of it is on which path; may be given several times",
		 ARG_LIST, &p.metrics},
		{'F', "frequency", "HZ", "samples per second of CPU time (1000)", ARG_U64, &p.hz},
		{'p', "pid", "PID", "a process that runs already", ARG_STRING, &p.pid_text},
		{'d', "duration", "SECONDS", "with -p: count for this time", ARG_STRING,
		 &p.duration_text},
		{0, "context", NULL, "count the paths of each calling context for itself", ARG_FLAG,
		 &p.contexts},
		{'o', "output", "FILE",
		 "write a profile, for culprit report --by=path; an older one becomes FILE.old",
		 ARG_STRING, &p.output_path},
		{0, "limit", "N", "show N paths of a function (10); 0: all", ARG_U64, &p.limit},
		{0, "json", NULL, "print JSON", ARG_FLAG, &p.json},
		{0},
	};
	struct args args = {
		.command = "paths",
		.usage = "[options] (-p PID | -- COMMAND [ARGUMENTS])",
		.summary =
			"Counts each path through the functions of a program: which ways the code goes, "
			"exactly.",
		.options = options,
		.examples =
			"  culprit paths -- ./app input\n"
			"  culprit paths --functions '^parse' -- ./app input\n"
			"  culprit paths --module libm --functions '^(sin|cos)$' -- ./app\n"
			"  culprit record ./app input && culprit paths --hot culprit.prof -- ./app input\n"
			"  culprit paths -o paths.prof -- ./app input\n"
			"  culprit paths -d 10 -p 4711\n"
			"  culprit paths --json --limit 0 -- ./app 2>paths.json\n",
	};
	while (own < argc && strcmp(argv[own], "--"))
		own++;
	if (own + 1 < argc)
		p.counting.command = argv + own + 1;
	if (own < argc)
		argv[own] = NULL; /* the command is none of our operands */
	int status = cmd_parse(&args, own, argv);
	if (status < 0)
		status = check(&p, &args);
	if (status < 0)
		status = run(&p);
	for (size_t i = 0; i < p.pattern_count; i++)
		regfree(&p.patterns[i]);
	return status;
}
