/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db prune` and `culprit db check`: looking after the file. */
#include "cmd/db.h"

#include "base/err.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "fleet/fetch.h"
#include "fleet/server.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STEPS 16 /* between looks at the progress */

static uint64_t file_size(const char *path)
{
	struct stat st;
	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

/* Numbers with a unit; -1 to go on. */
struct unit {
	const char *name;
	uint64_t factor;
};

static int read_amount(const char *option, const char *text, const struct unit *units,
		       const char *example, uint64_t *out)
{
	char *end;
	if (!text)
		return -1;
	uint64_t number = strtoull(text, &end, 10);
	for (; units->name; units++)
		if (isdigit((unsigned char)*text) && !strcasecmp(end, units->name) &&
		    !__builtin_mul_overflow(number, units->factor, out))
			return -1;
	return cmd_misused("db prune", "--%s takes a number with its unit, such as %s, not '%s'",
			   option, example, text);
}

static const struct unit times[] = {{"s", 1},         {"m", 60},          {"h", 3600}, {"d", 86400},
				    {"w", 7 * 86400}, {"y", 365 * 86400}, {0}};
static const struct unit sizes[] = {
	{"", 1},         {"k", 1000},       {"kB", 1000},       {"M", 1000000},
	{"MB", 1000000}, {"G", 1000000000}, {"GB", 1000000000}, {0}};

struct options {
	const char *file, *keep, *size;
	bool quiet;
	struct store_policy policy;
};

static struct err *prune(const struct options *o, struct store_tidied *tidied)
{
	struct term_progress progress;
	struct store *store;
	struct err *e = store_open(o->file, STORE_WRITE, &store);
	if (e)
		return e;
	tidied->more = true;
	term_progress_start(&progress, "culprit: merging and removing");
	while (!e && tidied->more) {
		e = store_tidy(store, &o->policy, db_now_ms(), STEPS, tidied);
		term_progress_update(&progress, tidied->steps, 0);
	}
	term_progress_end(&progress);
	store_close(store);
	return e;
}

static int run_prune(const struct options *o)
{
	char before[TERM_UNIT_MAX], after[TERM_UNIT_MAX];
	struct store_tidied tidied = {0};
	uint64_t size = file_size(o->file);
	struct err *e = prune(o, &tidied);
	if (e)
		return cmd_fail("db prune", e);
	if (!o->quiet)
		printf("%llu spans merged into others, %llu removed, %llu epochs joined; "
		       "%s, before %s\n",
		       (unsigned long long)tidied.merged, (unsigned long long)tidied.removed,
		       (unsigned long long)tidied.joined, term_size(after, file_size(o->file)),
		       term_size(before, size));
	return cmd_finish("db prune", CMD_OK);
}

/* Of a server only days can be removed; how large that may be is its own matter. */
static int prune_server(const struct options *o)
{
	struct server *server;
	uint64_t days = 0;
	if (o->size)
		return cmd_misused("db prune", "--max-size is for database files; --keep=TIME says "
					       "what a server keeps");
	struct err *e = server_open(o->file, NULL, &server);
	if (!e)
		e = fetch_prune(server, db_now_ms() - (int64_t)o->policy.keep_s * 1000, &days);
	server_close(server);
	if (e)
		return cmd_fail("db prune", e);
	if (!o->quiet)
		printf("%llu days removed\n", (unsigned long long)days);
	return cmd_finish("db prune", CMD_OK);
}

int db_prune(int argc, char **argv)
{
	struct options o = {.policy = store_policy};
	const struct arg options[] = {
		DB_FILE_OPTION(o.file),
		{0, "keep", "TIME", "remove what is older, such as 30d or 52w; 400d unless told",
		 ARG_STRING, &o.keep},
		{0, "max-size", "SIZE",
		 "remove the oldest until the file is smaller; 200M unless told", ARG_STRING,
		 &o.size},
		{'q', "quiet", NULL, "say nothing", ARG_FLAG, &o.quiet},
		{0},
	};
	struct args args = {
		.command = "db prune",
		.usage = "[options]",
		.summary = "Merges old spans of time into coarser ones and removes what is too old "
			   "or too much, as the daemon does by itself.",
		.options = options,
		.examples = "  culprit db prune --keep=90d --max-size=50M\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("db prune", "what is '%s'?", args.operands[0]);
	status = read_amount("keep", o.keep, times, "30d", &o.policy.keep_s);
	if (status < 0)
		status = read_amount("max-size", o.size, sizes, "50M", &o.policy.max_bytes);
	if (status >= 0)
		return status;
	if (!o.file)
		o.file = store_default_path();
	return server_is_address(o.file) ? prune_server(&o) : run_prune(&o);
}

/* Checking */

int db_check(int argc, char **argv)
{
	const char *file = NULL;
	struct store *store = NULL;
	const struct arg options[] = {DB_FILE_OPTION(file), {0}};
	struct args args = {
		.command = "db check",
		.usage = "[options]",
		.summary = "Checks whether the database is sound: its pages, and all that is "
			   "packed in it.",
		.options = options,
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("db check", "what is '%s'?", args.operands[0]);
	if (!file)
		file = store_default_path();
	struct err *e = server_is_address(file)
				? err_new("check is for database files, not for servers: --db=FILE")
				: NULL;
	if (!e)
		e = store_open(file, STORE_READ, &store);
	if (!e)
		e = store_check(store);
	store_close(store);
	if (e)
		return cmd_fail("db check", e);
	printf("%s is sound\n", file);
	return cmd_finish("db check", CMD_OK);
}
