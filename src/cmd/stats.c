/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit stats`: how much the functions of several recordings vary. */
#include "cmd/cmd.h"
#include "cmd/comparing.h"

#include "base/args.h"
#include "base/err.h"
#include "base/json.h"
#include "compare/stats.h"

static struct err *print(const struct comparing *c, const struct stats *stats)
{
	struct text_options o = comparing_text(c);
	struct buf text = {0};
	if (c->json) {
		struct json j = json_to_file(stdout);
		comparing_json_begin(&j);
		stats_json(stats, &c->runs, c->limit, &j);
		comparing_json_end(c, &j);
		return NULL;
	}
	stats_text(stats, &c->runs, &o, &text);
	struct err *e = comparing_show(c, &text);
	buf_free(&text);
	return e;
}

static int run(struct comparing *c, const struct args *args)
{
	struct stats stats = {0};
	int status = comparing_percent("stats", "min", c->min_text, 100, &c->min);
	if (status >= 0)
		return status;
	if (args->count < 2)
		return cmd_misused("stats", "at least two profiles are needed");
	struct err *e = comparing_read(c, (const char *const *)args->operands, (size_t)args->count,
				       0);
	if (!e)
		e = stats_make(&c->runs, &c->rows, c->min / 100, &stats);
	if (!e)
		e = print(c, &stats);
	stats_free(&stats);
	comparing_free(c);
	return e ? cmd_fail("stats", e) : cmd_finish("stats", CMD_OK);
}

int cmd_stats(int argc, char **argv)
{
	struct comparing c = {.min = COMPARING_MIN};
	const struct arg options[] = {
		COMPARING_OPTIONS(c, COMPARING_BY, "leave out rows with less of all samples"),
		{0},
	};
	struct args args = {
		.command = "stats",
		.usage = "[options] FILE FILE...",
		.summary =
			"Shows how much each function varies over several recordings. What varies\n"
			"most, and by more than chance, comes first.",
		.options = options,
		.examples = "  culprit stats run1.prof run2.prof run3.prof run4.prof\n"
			    "  culprit stats --by=loop --limit 10 run*.prof\n",
	};
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&c, &args);
}
