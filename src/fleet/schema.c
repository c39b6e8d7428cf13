/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables on a server: those of the database file, for many hosts.
 *
 * A span is sent in pieces, so none of its rows counts before all are there. They
 * carry the number of the attempt that brought them, their *batch*; at last a row
 * of sent_spans names span and batch. Where an answer got lost, the span comes
 * again in another batch, and it may be that both are named in the end: the
 * smaller one counts then, everywhere. Rows of batches that nobody names are
 * left over from attempts that failed.
 *
 *    source   one database file, whose numbers of spans, epochs, images and processes these are
 *    tree     one numbering of nodes: that of one sender for a while
 *    day      of the span that rows belong to, or that named them first: a day can be
 *             dropped from all tables, and the others still have all that they need
 *
 * Views have the names and columns that the views of the file have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "fleet/rowbinary.h"
#include "fleet/server.h"

#define VERSION 2

/* In each, @ is the database. */
static const char *const tables[] = {
	"CREATE TABLE IF NOT EXISTS @.sent_spans (day Date, source UInt64, span UInt64, batch UInt64,"
	" host String, epoch UInt64, start_ms Int64, end_ms Int64, intervals UInt64, cpu_ns UInt64,"
	" memory UInt64, kernel_ns UInt64, kernel_runs UInt64, epoch_start_ms Int64, kernel String,"
	" machine String, cpu String, version String, note String, cpus UInt32, hz UInt64,"
	" event Array(String), unit Array(String), period Array(UInt64), every Array(UInt64),"
	" user_only Array(UInt8), samples Array(UInt64), walked Array(UInt64),"
	" loss_kind Array(UInt8), loss_reason Array(String), loss_samples Array(UInt64))"
	" ENGINE = MergeTree PARTITION BY day ORDER BY (source, span, batch)",

	"CREATE TABLE IF NOT EXISTS @.sent_counts (day Date, source UInt64, span UInt64,"
	" batch UInt64, host String, epoch UInt64, start_ms Int64, end_ms Int64, process UInt64,"
	" image UInt64, event UInt8, address UInt64, samples UInt64, event_name String,"
	" image_path String, procedure String, process_name String)"
	" ENGINE = MergeTree PARTITION BY day ORDER BY (batch, span, image, address)",

	"CREATE TABLE IF NOT EXISTS @.sent_paths (day Date, source UInt64, span UInt64,"
	" batch UInt64, host String, epoch UInt64, start_ms Int64, end_ms Int64, tree UInt64,"
	" node UInt32, process UInt64, event UInt8, samples UInt64)"
	" ENGINE = MergeTree PARTITION BY day ORDER BY (batch, span, node)",

	"CREATE TABLE IF NOT EXISTS @.sent_nodes (day Date, source UInt64, tree UInt64, node UInt32,"
	" parent UInt32, image UInt64, kind UInt8, address UInt64)"
	" ENGINE = ReplacingMergeTree PARTITION BY day ORDER BY (tree, node)",

	"CREATE TABLE IF NOT EXISTS @.sent_images (day Date, source UInt64, image UInt64,"
	" kind UInt8, path String, build_id String, process UInt64)"
	" ENGINE = ReplacingMergeTree PARTITION BY day ORDER BY (source, image)",

	"CREATE TABLE IF NOT EXISTS @.sent_symbols (day Date, source UInt64, image UInt64,"
	" start UInt64, size UInt64, name String, span UInt64)"
	" ENGINE = ReplacingMergeTree(span) PARTITION BY day ORDER BY (source, image, start)",

	"CREATE TABLE IF NOT EXISTS @.sent_processes (day Date, source UInt64, process UInt64,"
	" pid Int32, start_ms Int64, name String, user UInt32, container String, command String)"
	" ENGINE = ReplacingMergeTree PARTITION BY day ORDER BY (source, process)",
};

/* What version 2 added. The lists are empty where all events of a span were counted all of the time. */
static const char *const second[] = {
	"DROP TABLE IF EXISTS @.totals",
	"ALTER TABLE @.sent_spans ADD COLUMN enabled Array(UInt64), ADD COLUMN running Array(UInt64)",
};

#define NAMED \
	" WHERE (batch, span) IN (SELECT min(batch), span FROM @.sent_spans GROUP BY source, span)"
#define SPAN "source, host, span, start_ms / 1000 AS start, end_ms / 1000 AS `end`"
#define KIND(kind, words) "transform(" kind ", " words ", 'none') AS kind"

static const char *const views[] = {
	"epochs AS SELECT source, epoch, min(epoch_start_ms) / 1000 AS start,"
	" max(end_ms) / 1000 AS `end`, any(host) AS host, any(kernel) AS kernel,"
	" any(machine) AS machine, any(cpu) AS cpu, any(cpus) AS cpus, any(hz) AS hz,"
	" any(version) AS version, any(note) AS note FROM @.sent_spans GROUP BY source, epoch",

	"spans AS SELECT " SPAN ", epoch, intervals, cpu_ns, memory, kernel_ns, kernel_runs"
	" FROM @.sent_spans" NAMED,

	"totals AS SELECT " SPAN ", name, unit, period, every, samples, walked,"
	" if(due > 0, had / due, 1) AS counted FROM (SELECT source,"
	" host, span, start_ms, end_ms, name, unit, period, every, samples, walked, due, had"
	" FROM @.sent_spans ARRAY JOIN event AS name, unit, period, every, samples, walked,"
	" arrayResize(enabled, length(event)) AS due, arrayResize(running, length(event)) AS had" NAMED
	")",

	"losses AS SELECT " SPAN ", " KIND(
		"kind",
		"[0, 1], ['lost', 'unknown']") ", reason, samples"
					       " FROM (SELECT source, host, span, start_ms, end_ms, kind, reason, samples"
					       " FROM @.sent_spans ARRAY JOIN loss_kind AS kind, loss_reason AS reason,"
					       " loss_samples AS samples" NAMED ")",

	"images AS SELECT source, image, any(path) AS path, any(build_id) AS build_id, " KIND(
		"any(kind)",
		"[1, 2, 3, 4], ['file', 'vdso', 'jit', 'kernel']") ", any(process) AS process FROM @.sent_images GROUP BY source, image",

	"symbols AS SELECT source, image, start, argMax(size, span) AS size,"
	" argMax(name, span) AS name"
	" FROM @.sent_symbols GROUP BY source, image, start",

	"processes AS SELECT source, process, any(pid) AS pid, any(start_ms) / 1000 AS start,"
	" any(name) AS name, any(user) AS user, any(container) AS container,"
	" any(command) AS command FROM @.sent_processes GROUP BY source, process",

	"counts AS SELECT " SPAN ", process, image, event_name AS event, address, samples"
	" FROM @.sent_counts" NAMED,

	"procedures AS SELECT " SPAN ", process, process_name AS name, event_name AS event,"
	" image_path AS image, procedure, samples FROM @.sent_counts" NAMED,

	"paths AS SELECT " SPAN ", epoch, tree, node, process, event, samples"
	" FROM @.sent_paths" NAMED,

	"nodes AS SELECT source, tree, node, any(parent) AS parent, any(image) AS image, " KIND(
		"any(kind)",
		"[1, 2, 3], ['call', 'exact', 'partial']") ", any(address) AS address FROM @.sent_nodes GROUP BY source, tree, node",
};

/* With the name of the database put in. */
static struct err *run(struct server *s, const char *before, const char *sql)
{
	struct buf text = {0}, answer = {0};
	buf_puts(&text, before);
	for (; *sql; sql++) {
		if (*sql == '@')
			buf_puts(&text, server_database(s));
		else
			buf_append(&text, sql, 1);
	}
	struct err *e = text.failed ? err_new("out of memory")
				    : server_ask(s, buf_text(&text), &answer);
	buf_free(&text);
	buf_free(&answer);
	return e;
}

static struct err *make_views(struct server *s)
{
	struct err *e = NULL;
	struct buf before = {0};
	buf_printf(&before, "CREATE VIEW IF NOT EXISTS %s.", server_database(s));
	for (size_t i = 0; !e && i < sizeof views / sizeof *views; i++)
		e = run(s, buf_text(&before), views[i]);
	buf_free(&before);
	return e;
}

/* A number from one of the server's own tables: what `before` asks for, of the database, where `after`. */
static struct err *ask_number(struct server *s, const char *before, const char *after,
			      uint64_t *out)
{
	struct buf sql = {0}, answer = {0};
	*out = 0;
	buf_printf(&sql, "%s WHERE database = '", before);
	buf_append(&sql, server_database(s) + 1, strlen(server_database(s)) - 2);
	buf_printf(&sql, "' AND %s FORMAT RowBinary", after);
	struct err *e = sql.failed ? err_new("out of memory")
				   : server_ask(s, buf_text(&sql), &answer);
	struct rowbinary rows = rowbinary_read(&answer);
	if (!e && rowbinary_more(&rows))
		*out = rowbinary_get(&rows, 8);
	buf_free(&sql);
	buf_free(&answer);
	return e;
}

/* The version of what is there; 0: nothing. */
static struct err *find_version(struct server *s, uint64_t *version)
{
	return ask_number(s,
			  "SELECT toUInt64(max(toUInt64(substring(name, 14)))) FROM system.tables",
			  "name LIKE 'sent_version_%'", version);
}

/* Also where somebody began that and did not come to its end. */
static struct err *make_second(struct server *s)
{
	uint64_t there;
	struct err *e = ask_number(s, "SELECT toUInt64(count()) FROM system.columns",
				   "table = 'sent_spans' AND name = 'running'", &there);
	for (size_t i = 0; !e && !there && i < sizeof second / sizeof *second; i++)
		e = run(s, "", second[i]);
	return e;
}

/* The version of its tables, 0 if there are none; an error if it is newer than ours. */
static struct err *known_version(struct server *s, uint64_t *version)
{
	struct err *e = find_version(s, version);
	if (e || *version <= VERSION)
		return e;
	return err_new("%s: made by a newer culprit (version %llu of the tables; this one knows "
		       "%d): use that one",
		       server_name(s), (unsigned long long)*version, VERSION);
}

struct err *server_check(struct server *s)
{
	uint64_t version;
	struct err *e = known_version(s, &version);
	if (e || version == VERSION)
		return e;
	if (version)
		return err_new(
			"%s: made by an older culprit (version %llu of the tables): a daemon "
			"with the setting 'fleet' brings it up to date",
			server_name(s), (unsigned long long)version);
	return err_new("%s: there is no database of culprit: a daemon with the setting 'fleet' "
		       "makes it",
		       server_name(s));
}

/* The mark of the version is made last: where it is, all is there, and who may only insert is not
   asked to make anything. */
struct err *server_prepare(struct server *s)
{
	char mark[128];
	uint64_t version;
	struct err *e = known_version(s, &version);
	if (e || version == VERSION)
		return e;
	e = run(s, "CREATE DATABASE IF NOT EXISTS ", "@");
	for (size_t i = 0; !e && i < sizeof tables / sizeof *tables; i++)
		e = run(s, "", tables[i]);
	if (!e)
		e = make_second(s);
	if (!e)
		e = make_views(s);
	snprintf(mark, sizeof mark,
		 "CREATE VIEW IF NOT EXISTS @.sent_version_%d AS SELECT %d AS"
		 " version",
		 VERSION, VERSION);
	if (!e)
		e = run(s, "", mark);
	return err_context(e, "cannot make the tables");
}
