/* SPDX-License-Identifier: Apache-2.0 */
/* SQL for those who want it: views that hide how things are stored. doc/culprit-db.1.md describes
   them. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/reading.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* Which procedure an address is of is as in read_symbol. */
static const char views[] =
	"CREATE TEMP VIEW epochs AS SELECT id AS epoch, start / 1000.0 AS start,"
	" (SELECT max(end) FROM main.segment s WHERE s.epoch = e.id) / 1000.0 AS end, host,"
	" kernel, machine, cpu, cpus, hz, version, note, joined FROM main.epoch e;"

	"CREATE TEMP VIEW events AS SELECT id AS event, name, unit, period, every, user_only"
	" FROM main.event;"

	"CREATE TEMP VIEW images AS SELECT id AS image, path, build_id,"
	" CASE kind WHEN 1 THEN 'file' WHEN 2 THEN 'vdso' WHEN 3 THEN 'jit' WHEN 4 THEN 'kernel'"
	" ELSE 'none' END AS kind, process FROM main.image;"

	"CREATE TEMP VIEW symbols AS SELECT image, start, size, name FROM main.symbol;"

	"CREATE TEMP VIEW processes AS SELECT id AS process, pid, start / 1000.0 AS start, name,"
	" user, container, command FROM main.process;"

	"CREATE TEMP VIEW spans AS SELECT id AS span, epoch, start / 1000.0 AS start,"
	" end / 1000.0 AS end, intervals, cpu_ns, memory, kernel_ns, kernel_runs"
	" FROM main.segment;"

	"CREATE TEMP VIEW totals AS SELECT segment AS span, event, samples, walked,"
	" CASE WHEN enabled > 0 THEN 1.0 * running / enabled ELSE 1.0 END AS counted"
	" FROM main.total;"

	"CREATE TEMP VIEW losses AS SELECT segment AS span,"
	" CASE kind WHEN 0 THEN 'lost' ELSE 'unknown' END AS kind, reason, samples"
	" FROM main.loss;"

	"CREATE TEMP VIEW counts AS SELECT s.id AS span, s.start / 1000.0 AS start,"
	" s.end / 1000.0 AS end, c.process, c.image, c.event, c.address, c.samples"
	" FROM main.segment s, packed_counts(s.id) c;"

	"CREATE TEMP VIEW paths AS SELECT s.id AS span, s.epoch, s.start / 1000.0 AS start,"
	" s.end / 1000.0 AS end, p.node, p.process, p.event, p.samples"
	" FROM main.segment s, packed_paths(s.id) p;"

	"CREATE TEMP VIEW nodes AS SELECT e.id AS epoch, n.node, n.parent, n.image,"
	" CASE n.kind WHEN 1 THEN 'call' WHEN 2 THEN 'exact' ELSE 'partial' END AS kind,"
	" n.address FROM main.epoch e, packed_nodes(e.id) n;"

	"CREATE TEMP VIEW procedures AS SELECT c.span, c.start, c.end, c.process, v.name AS event,"
	" i.path AS image, coalesce("
	"(SELECT CASE WHEN c.address < y.start + y.size THEN y.name END"
	" FROM main.symbol y WHERE y.image = c.image AND y.start <= c.address"
	" ORDER BY y.start DESC LIMIT 1), "
	"CASE WHEN i.kind <> 3 THEN (SELECT y.name FROM (SELECT start, size, name"
	" FROM main.symbol WHERE image = c.image AND start <= c.address ORDER BY start DESC"
	" LIMIT " TEXT(
		READ_NESTING) ") y WHERE c.address < y.start + y.size"
			      " ORDER BY y.start DESC LIMIT 1) END) AS procedure, c.samples FROM counts c"
			      " JOIN main.event v ON v.id = c.event LEFT JOIN main.image i ON i.id = c.image;";

/* So that they are there before only reading is allowed. */
static const char touch[] = "SELECT 1 FROM packed_counts(0) WHERE 0;"
			    "SELECT 1 FROM packed_paths(0) WHERE 0;"
			    "SELECT 1 FROM packed_nodes(0) WHERE 0;";

/* Reading, and nothing else. */
static int allow(void *context, int action, const char *a, const char *b, const char *database,
		 const char *trigger)
{
	(void)context;
	(void)a;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return b && !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

static struct err *prepare(struct store *s, const char *sql, sqlite3_stmt **out)
{
	const char *rest = NULL;
	sqlite3_set_authorizer(s->db, allow, NULL);
	int failed = sqlite3_prepare_v2(s->db, sql, -1, out, &rest);
	struct err *e = failed == SQLITE_AUTH
				? err_new("--sql only reads: %s", sqlite3_errmsg(s->db))
			: failed ? err_new("--sql: %s", sqlite3_errmsg(s->db))
				 : NULL;
	/* Unpacking reads tables, too, with statements of our own. */
	sqlite3_set_authorizer(s->db, NULL, NULL);
	if (!e && !*out)
		e = err_new("--sql: there is no statement");
	if (!e && rest[strspn(rest, " \t\r\n;")])
		e = err_new("--sql takes one statement");
	if (!e && !sqlite3_stmt_readonly(*out))
		e = err_new("--sql only reads");
	return e;
}

static void fill(sqlite3_stmt *row, int column, struct read_cell *cell)
{
	int type = sqlite3_column_type(row, column);
	*cell = (struct read_cell){
		.kind = type == SQLITE_NULL      ? READ_NULL
			: type == SQLITE_INTEGER ? READ_INTEGER
			: type == SQLITE_FLOAT   ? READ_REAL
						 : READ_TEXT,
		.integer = sqlite3_column_int64(row, column),
		.real = sqlite3_column_double(row, column),
	};
	cell->text = sql_text(row, column);
}

static struct err *each_row(struct store *s, sqlite3_stmt *rows, read_row *row, void *context)
{
	int columns = sqlite3_column_count(rows);
	const char **names = calloc((size_t)columns + 1, sizeof *names);
	struct read_cell *cells = calloc((size_t)columns + 1, sizeof *cells);
	bool more = true;
	struct err *e = names && cells ? NULL : err_new("out of memory");
	for (int i = 0; !e && i < columns; i++)
		names[i] = sqlite3_column_name(rows, i);
	if (!e)
		e = row(context, columns, names, NULL);
	while (!e) {
		int result = sqlite3_step(rows);
		more = result == SQLITE_ROW;
		if (!more && result != SQLITE_DONE)
			e = err_new("--sql: %s", sqlite3_errmsg(s->db));
		if (e || !more)
			break;
		for (int i = 0; i < columns; i++)
			fill(rows, i, &cells[i]);
		e = row(context, columns, names, cells);
	}
	free(names);
	free(cells);
	return e;
}

struct err *read_sql(struct store *s, const char *sql, read_row *row, void *context)
{
	sqlite3_stmt *rows = NULL;
	struct err *e = packed_register(s);
	if (!e)
		e = sql_run(s, views);
	if (!e)
		e = sql_run(s, touch);
	if (!e)
		e = prepare(s, sql, &rows);
	if (!e)
		e = each_row(s, rows, row, context);
	sqlite3_finalize(rows);
	return e;
}
