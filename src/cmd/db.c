/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db`: the database of continuous profiling. */
#include "cmd/db.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "store/span.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
} parts[] = {
	{"list", "its epochs: when, how many samples and losses, what collecting cost", db_list},
	{"show", "samples of a time by procedure, image, process, user, container or host",
	 db_show},
	{"query", "samples as plain rows; SQL", db_query},
	{"export", "a time as a profile for report, view, annotate, diff", db_export},
	{"epoch", "asks the daemon to begin a new epoch", db_epoch},
	{"prune", "merges and removes what is old", db_prune},
	{"check", "whether the file is sound", db_check},
};
#define PARTS (sizeof parts / sizeof *parts)

static int help(void)
{
	puts("usage: culprit db PART [options] [SPAN]\n"
	     "Shows and changes the database of continuous profiling, which culprit daemon writes.\n");
	for (size_t i = 0; i < PARTS; i++)
		printf("  %-8s %s\n", parts[i].name, parts[i].summary);
	puts("\n  -h, --help  show this text\n"
	     "\nculprit db PART -h shows the options of a part.\n"
	     "\nexamples:\n"
	     "  culprit db list\n"
	     "  culprit db show yesterday 14:00-15:00\n"
	     "  culprit db show --by=process -1h\n"
	     "  culprit report 'db:yesterday 14:00-15:00'\n"
	     "\nculprit help db shows the manual page.");
	return cmd_finish("db", CMD_OK);
}

int cmd_db(int argc, char **argv)
{
	if (argc < 2)
		return cmd_misused("db", "which part: list, show, query, export, epoch, prune or "
					 "check?");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return help();
	for (size_t i = 0; i < PARTS; i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].run(argc - 1, argv + 1);
	return cmd_misused("db", "unknown part '%.64s'", argv[1]);
}

/* ---- choosing ---- */

void db_keep_spans(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (argv[i][0] == '-' && isdigit((unsigned char)argv[i][1]))
			argv[i]++;
}

static int choose_user(const char *command, struct db_choice *c)
{
	char *end;
	c->read.user = -1;
	if (!c->user_text)
		return -1;
	const struct passwd *known = getpwnam(c->user_text);
	c->read.user = known ? (int64_t)known->pw_uid : strtoll(c->user_text, &end, 10);
	if (!known && (!*c->user_text || *end || c->read.user < 0))
		return cmd_misused(command, "there is no user '%s' here: give the number",
				   c->user_text);
	return -1;
}

static int choose_span(const char *command, struct db_choice *c, const struct args *args)
{
	struct buf words = {0};
	for (int i = 0; i < args->count; i++)
		buf_printf(&words, "%s%s", i ? " " : "", args->operands[i]);
	c->span = strdup(buf_text(&words));
	buf_free(&words);
	if (!c->span)
		return cmd_fail(command, err_new("out of memory"));
	struct err *e = span_parse(c->span, db_now_ms(), &c->read.from_ms, &c->read.to_ms);
	if (!e)
		return -1;
	cmd_fail(command, e);
	return CMD_USAGE;
}

int db_choose(const char *command, struct db_choice *c, const struct args *args)
{
	if (!c->file)
		c->file = store_default_path();
	c->read.host = c->host;
	c->read.process = c->process;
	c->read.container = c->container;
	c->read.epoch = (int64_t)c->epoch;
	int status = choose_user(command, c);
	if (status < 0)
		status = options_pattern(command, "image", c->image_text, &c->image);
	c->has_image = c->image_text && status < 0;
	if (status < 0)
		status = options_pattern(command, "procedure", c->procedure_text, &c->procedure);
	c->has_procedure = c->procedure_text && status < 0;
	c->read.image = c->has_image ? &c->image : NULL;
	c->read.procedure = c->has_procedure ? &c->procedure : NULL;
	return status < 0 ? choose_span(command, c, args) : status;
}

void db_choice_free(struct db_choice *c)
{
	if (c->has_image)
		regfree(&c->image);
	if (c->has_procedure)
		regfree(&c->procedure);
	free(c->span);
}

/* ---- words ---- */

struct err *db_page(struct buf *text, bool no_pager)
{
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(text), TERM_PLAIN);
	struct err *e = text->failed || out.failed ? err_new("out of memory")
						   : pager_show(&out, !no_pager);
	buf_free(text);
	buf_free(&out);
	return e;
}

void db_name(struct buf *out, const char *name)
{
	for (; *name; name++)
		buf_append(out, (unsigned char)*name < 0x20 || *name == 0x7f ? "?" : name, 1);
}

int64_t db_now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

const char *db_time(char out[DB_TIME_MAX], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	if (!localtime_r(&seconds, &tm) ||
	    !strftime(out, DB_TIME_MAX, tm.tm_sec ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M", &tm))
		snprintf(out, DB_TIME_MAX, "%lld s", (long long)seconds);
	return out;
}

const char *db_length(char out[DB_TIME_MAX], int64_t ms)
{
	double seconds = (double)ms / 1000;
	const char *unit = "s";
	if (seconds >= 2 * 86400) {
		seconds /= 86400;
		unit = "days";
	} else if (seconds >= 3600) {
		seconds /= 3600;
		unit = "h";
	} else if (seconds >= 60) {
		seconds /= 60;
		unit = "min";
	}
	snprintf(out, DB_TIME_MAX,
		 seconds - (double)(int64_t)seconds < 0.05 ? "%.0f %s" : "%.1f %s", seconds, unit);
	return out;
}

void db_coverage(const struct store_event *event, struct coverage c, const char *indent,
		 struct buf *out)
{
	struct buf line = {0};
	if (coverage_note(c, event->name, event->unit, event->period, &line))
		buf_printf(out, "%s%s", indent, buf_text(&line));
	buf_free(&line);
}

uint64_t db_losses(const struct store_loss *losses, size_t count, enum store_loss_kind kind)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += losses[i].kind == kind ? losses[i].samples : 0;
	return sum;
}

void db_losses_json(const struct store_loss *losses, size_t count, struct json *j)
{
	const char *const names[] = {"lost", "unknown"};
	for (int kind = STORE_LOST; kind <= STORE_UNKNOWN; kind++) {
		json_key(j, names[kind]);
		json_begin_object(j);
		for (size_t i = 0; i < count; i++)
			if ((int)losses[i].kind == kind) {
				json_key(j, losses[i].reason);
				json_u64(j, losses[i].samples);
			}
		json_end_object(j);
	}
}
