/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db export`: a time as an ordinary profile; and profiles named db:. */
#include "cmd/db.h"
#include "cmd/db_profile.h"

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "profile/output.h"
#include "fleet/server.h"
#include "profile/profile.h"
#include "store/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "db:"
#define DEFAULT_OUTPUT "culprit.prof"

/* ---- db:FILE@SPAN, db:FILE, db:SPAN ---- */

static struct err *take_apart(const char *name, char **file, const char **span)
{
	const char *rest = name + strlen(PREFIX), *at = strrchr(rest, '@');
	bool is_file = !at && *rest && (server_is_address(rest) || !access(rest, F_OK));
	*span = at ? at + 1 : is_file ? "all" : rest;
	*file = at        ? strndup(rest, (size_t)(at - rest))
		: is_file ? strdup(rest)
			  : strdup(store_default_path());
	if (*file && !**file) { /* db:@SPAN */
		free(*file);
		*file = strdup(store_default_path());
	}
	return *file ? NULL : err_new("out of memory");
}

static struct err *read_db(const char *name, const struct profile_spare *spare,
			   struct profile **out)
{
	struct read_choice choice = {.user = -1};
	struct store *store = NULL;
	const char *span;
	char *file;
	*out = NULL;
	struct err *e = take_apart(name, &file, &span);
	if (!e)
		e = span_parse(span, db_now_ms(), &choice.from_ms, &choice.to_ms);
	if (!e)
		e = db_open(file, &choice, true, &store);
	if (!e)
		e = read_profile(store, &choice, spare, out);
	store_close(store);
	free(file);
	/* There might be a password in the address of a server, though it should not. */
	return err_context(e, "%s", server_is_address(name + strlen(PREFIX)) ? "db:" : name);
}

void db_profiles(void)
{
	profile_source(PREFIX, read_db);
}

/* ---- the command ---- */

struct options {
	struct db_choice c;
	const char *output;
	bool quiet;
};

static struct err *save(const struct options *o, const struct profile *p)
{
	struct output output = {0};
	struct summary summary;
	struct buf text = {0};
	struct err *e = output_open(&output, o->output);
	if (!e)
		e = output_save(&output, p);
	if (!e && !o->quiet) {
		summary_make(p, 0, &summary);
		summary_print(&summary, "culprit: ", &text);
		summary_print_file("culprit: ", o->output, output_size(&output), &text);
		fputs(buf_text(&text), stderr);
	}
	buf_free(&text);
	output_close(&output);
	return e;
}

static int export(const struct options *o)
{
	struct profile *p = NULL;
	struct store *store;
	struct err *e = db_open(o->c.file, &o->c.read, true, &store);
	if (!e)
		e = read_profile(store, &o->c.read, NULL, &p);
	if (!e)
		e = save(o, p);
	profile_free(p);
	store_close(store);
	return e ? cmd_fail("db export", e) : cmd_finish("db export", CMD_OK);
}

int db_export(int argc, char **argv)
{
	struct options o = {.output = DEFAULT_OUTPUT};
	const struct arg options[] = {
		{'o', "output", "FILE", "the profile; " DEFAULT_OUTPUT " by default", ARG_STRING,
		 &o.output},
		DB_CHOICE_OPTIONS(o.c),
		{'q', "quiet", NULL, "no summary", ARG_FLAG, &o.quiet},
		{0},
	};
	struct args args = {
		.command = "db export",
		.usage = "[options] [SPAN]",
		.summary = "Writes the samples of a time as a profile, for report, view, annotate, "
			   "diff and stats.",
		.options = options,
		.examples = "  culprit db export -o lunch.prof yesterday 12:00-13:00\n"
			    "  culprit report 'db:yesterday 12:00-13:00'\n",
	};
	db_keep_spans(argc, argv);
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	status = db_choose("db export", &o.c, &args);
	if (status < 0)
		status = export(&o);
	db_choice_free(&o.c);
	return status;
}
