/* SPDX-License-Identifier: Apache-2.0 */
#include "live/top.h"

#include "base/args.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool read_seconds(const char *text, double *out)
{
	char *end;
	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out) && *out >= 0.1 && *out <= 3600;
}

static bool is_number(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	return end != text && !*end && number > 0 && number <= INT_MAX;
}

static int check(struct top_options *o, const struct args *args)
{
	o->interval = 1;
	if (o->interval_text && !read_seconds(o->interval_text, &o->interval))
		return cmd_misused("top", "-i needs seconds from 0.1 to 3600, not '%.64s'",
				   o->interval_text);
	if (args->count > 1)
		return cmd_misused("top", "one file at a time");
	if (args->count && o->pids.count)
		return cmd_misused("top", "either a file or -p, not both");
	if (o->output && !o->pids.count)
		return cmd_misused("top",
				   "-o needs -p: what culprit record writes is kept already");
	for (size_t i = 0; i < o->pids.count; i++)
		if (!is_number(o->pids.values[i]))
			return cmd_misused("top", "-p needs the number of a process, not '%.64s'",
					   o->pids.values[i]);
	if (!o->hz)
		return cmd_misused("top", "-F needs more than 0 samples per second");
	o->path = args->count ? args->operands[0] : DEFAULT_FILE;
	return -1;
}

static int run(const struct top_options *o)
{
	struct top_end end;
	struct err *e = top_check(o);
	if (e) {
		int status = cmd_misused("top", "--filter=%s", err_text(e));
		err_free(e);
		return status;
	}
	top_run(o, &end);
	int status = end.problem ? cmd_fail("top", end.problem) : cmd_finish("top", CMD_OK);
	if (end.died)
		status = 128 + end.died;
	if (end.busy) {
		fflush(stdout);
		_exit(status);
	}
	return status;
}

int cmd_top(int argc, char **argv)
{
	struct top_options o = {.hz = 1000, .out = stdout};
	const struct arg options[] = {
		{'p', "pid", "PID", "record and show this process; may be given several times",
		 ARG_LIST, &o.pids},
		{'i', "interval", "SECONDS", "update the table after this time (1)", ARG_STRING,
		 &o.interval_text},
		{'n', "count", "N", "without a terminal: end after N tables", ARG_U64, &o.count},
		{0, "by", "function|loop|line|module|thread", "what rows are", ARG_CHOICE, &o.by},
		{0, "sort", "self|total", "what orders them", ARG_CHOICE, &o.sort},
		{0, "so-far", NULL, "order by all since the beginning, not by the last interval",
		 ARG_FLAG, &o.so_far},
		{0, "metric", "M", "another event than the first, by name or number", ARG_STRING,
		 &o.metric},
		{0, "filter", "RE", "only rows whose name matches", ARG_STRING, &o.filter},
		{0, "limit", "N", "without a terminal: no more than N rows", ARG_U64, &o.limit},
		{'F', "frequency", "HZ", "with -p: samples per second and thread (1000)", ARG_U64,
		 &o.hz},
		{'o', "output", "FILE", "with -p: keep the recording", ARG_STRING, &o.output},
		{0, "json", NULL, "print a JSON object for each interval", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "top",
		.usage = "[options] [FILE | -p PID]",
		.summary = "Shows what a recording that goes on (to " DEFAULT_FILE
			   " by default), or a process, spends its time on now.",
		.options = options,
		.examples = "  culprit top\n"
			    "  culprit top -p 4711\n"
			    "  culprit top --json -n 3 run.prof\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status < 0)
		status = check(&o, &args);
	return status >= 0 ? status : run(&o);
}
