/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db prune` and `culprit db check`: looking after the file. */
#include "cmd/db.h"

#include "base/amount.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "fleet/fetch.h"
#include "fleet/server.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define STEPS 16 /* between looks at the progress */

static uint64_t file_size(const char *path)
{
	struct stat st;
	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static struct json begin_json(const char *file)
{
	struct json j = json_to_file(stdout);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "database", file);
	return j;
}

static void end_json(struct json *j)
{
	json_end_object(j);
	json_newline(j);
}

/* -1 to go on. */
static int read_keep(const char *text, uint64_t *seconds)
{
	if (!text)
		return -1;
	bool right = amount_read(text, amount_times, seconds) && *seconds <= STORE_KEEP_MAX;
	if (right && !*seconds)
		return cmd_misused("db prune",
				   "--keep=%s would remove everything: remove the "
				   "database instead",
				   text);
	if (right && !isdigit((unsigned char)text[strlen(text) - 1]))
		return -1;
	return cmd_misused("db prune", "--keep takes a number with its unit, such as 30d, not '%s'",
			   text);
}

static int read_size(const char *text, uint64_t *bytes)
{
	if (!text || (amount_read(text, amount_sizes, bytes) && *bytes))
		return -1;
	return cmd_misused("db prune", "--max-size takes a size such as 50M, not '%s'", text);
}

struct options {
	const char *file, *keep, *size;
	bool quiet, json;
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

static void show_pruned(const struct options *o, const struct store_tidied *tidied, uint64_t before)
{
	char text[2][TERM_UNIT_MAX];
	uint64_t after = file_size(o->file);
	if (o->json) {
		struct json j = begin_json(o->file);
		json_put_u64(&j, "merged", tidied->merged);
		json_put_u64(&j, "removed", tidied->removed);
		json_put_u64(&j, "joined", tidied->joined);
		json_put_u64(&j, "bytes", after);
		json_put_u64(&j, "bytes_before", before);
		end_json(&j);
	} else if (!o->quiet) {
		printf("%llu spans merged into others, %llu removed, %llu epochs joined; "
		       "%s, before %s\n",
		       (unsigned long long)tidied->merged, (unsigned long long)tidied->removed,
		       (unsigned long long)tidied->joined, term_size(text[0], after),
		       term_size(text[1], before));
	}
}

static int run_prune(const struct options *o)
{
	struct store_tidied tidied = {0};
	uint64_t before = file_size(o->file);
	struct err *e = prune(o, &tidied);
	if (e)
		return cmd_fail("db prune", e);
	show_pruned(o, &tidied, before);
	return cmd_finish("db prune", CMD_OK);
}

static void show_days(const struct options *o, uint64_t days)
{
	if (o->json) {
		struct json j = begin_json(o->file);
		json_put_u64(&j, "days", days);
		end_json(&j);
	} else if (!o->quiet) {
		printf("%llu days removed\n", (unsigned long long)days);
	}
}

/* Of a server only days can be removed; how large that may be is its own matter. */
static int prune_server(const struct options *o)
{
	struct server *server;
	uint64_t days = 0;
	if (o->size || !o->keep)
		return cmd_misused("db prune", "on a server, --keep=TIME is needed, and --max-size "
					       "does not work");
	struct err *e = server_open(o->file, NULL, &server);
	if (!e)
		e = fetch_prune(server, db_now_ms() - (int64_t)o->policy.keep_s * 1000, &days);
	server_close(server);
	if (e)
		return cmd_fail("db prune", e);
	show_days(o, days);
	return cmd_finish("db prune", CMD_OK);
}

int db_prune(int argc, char **argv)
{
	struct options o = {.policy = store_policy};
	o.policy.keep_s = o.policy.max_bytes = 0;
	const struct arg options[] = {
		DB_FILE_OPTION(o.file),
		{0, "keep", "TIME", "remove what is older, such as 30d or 52w", ARG_STRING,
		 &o.keep},
		{0, "max-size", "SIZE", "remove the oldest until the file is smaller, such as 50M",
		 ARG_STRING, &o.size},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{'q', "quiet", NULL, "say nothing", ARG_FLAG, &o.quiet},
		{0},
	};
	struct args args = {
		.command = "db prune",
		.usage = "[options]",
		.summary =
			"Merges old spans of time into coarser ones, as the daemon does by itself, "
			"and removes what --keep and --max-size say.",
		.options = options,
		.examples = "  culprit db prune --keep=90d --max-size=50M\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("db prune", "unexpected argument '%s'", args.operands[0]);
	status = read_keep(o.keep, &o.policy.keep_s);
	if (status < 0)
		status = read_size(o.size, &o.policy.max_bytes);
	if (status >= 0)
		return status;
	if (!o.file)
		o.file = store_default_path();
	return server_is_address(o.file) ? prune_server(&o) : run_prune(&o);
}

/* ---- checking ---- */

static void show_sound(const char *file, bool json)
{
	if (json) {
		struct json j = begin_json(file);
		json_put_bool(&j, "sound", true);
		end_json(&j);
	} else {
		printf("%s is sound\n", file);
	}
}

int db_check(int argc, char **argv)
{
	const char *file = NULL;
	bool json = false;
	struct store *store = NULL;
	const struct arg options[] = {
		DB_FILE_OPTION(file),
		{0, "json", NULL, "print JSON", ARG_FLAG, &json},
		{0},
	};
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
		return cmd_misused("db check", "unexpected argument '%s'", args.operands[0]);
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
	show_sound(file, json);
	return cmd_finish("db check", CMD_OK);
}
