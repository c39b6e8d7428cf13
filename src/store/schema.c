/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables. Times are milliseconds since 1970; addresses are unsigned, and
 * stored as the signed numbers of the same bits.
 *
 * Narrow rows stand for what is few (epochs, events, images, processes, symbols,
 * sums); what is many is packed (store/pack.h): the counts and paths of a
 * segment, which is a span of time of one epoch, and the nodes of an epoch's
 * tree. `used` is when something was last sampled, to the hour: what nobody
 * refers to any more is older than all segments. Numbers are never given again
 * (AUTOINCREMENT): trees may refer to images that are gone.
 */
#include <stdio.h>

#include "base/err.h"
#include "store/internal.h"

static const char first[] =
	"CREATE TABLE epoch (id INTEGER PRIMARY KEY AUTOINCREMENT, start INTEGER NOT NULL, host TEXT NOT NULL,"
	" kernel TEXT NOT NULL, machine TEXT NOT NULL, cpu TEXT NOT NULL, version TEXT NOT NULL,"
	" note TEXT NOT NULL, cpus INTEGER NOT NULL, hz INTEGER NOT NULL,"
	" interval INTEGER NOT NULL, joined INTEGER NOT NULL, nodes INTEGER NOT NULL,"
	" compact INTEGER NOT NULL, continues INTEGER NOT NULL);"

	"CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, unit TEXT NOT NULL,"
	" period INTEGER NOT NULL, every INTEGER NOT NULL, user_only INTEGER NOT NULL,"
	" UNIQUE (name, unit, period, every, user_only));"

	"CREATE TABLE epoch_event (epoch INTEGER NOT NULL, position INTEGER NOT NULL,"
	" event INTEGER NOT NULL, PRIMARY KEY (epoch, position)) WITHOUT ROWID;"

	"CREATE TABLE image (id INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, path TEXT NOT NULL,"
	" build_id TEXT NOT NULL, process INTEGER NOT NULL, used INTEGER NOT NULL,"
	" UNIQUE (path, build_id, kind, process));"

	"CREATE INDEX image_process ON image (process) WHERE process <> 0;"

	"CREATE TABLE symbol (image INTEGER NOT NULL, start INTEGER NOT NULL,"
	" size INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (image, start)) WITHOUT ROWID;"

	"CREATE TABLE process (id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL,"
	" start INTEGER NOT NULL, name TEXT NOT NULL, user INTEGER NOT NULL,"
	" container TEXT NOT NULL, command TEXT NOT NULL, used INTEGER NOT NULL);"
	"CREATE INDEX process_pid ON process (pid, start, name);"

	"CREATE TABLE segment (id INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL,"
	" start INTEGER NOT NULL, end INTEGER NOT NULL, level INTEGER NOT NULL,"
	" intervals INTEGER NOT NULL, rows INTEGER NOT NULL, cpu_ns INTEGER NOT NULL,"
	" memory INTEGER NOT NULL, kernel_ns INTEGER NOT NULL, kernel_runs INTEGER NOT NULL,"
	" counts BLOB NOT NULL, paths BLOB NOT NULL);"
	"CREATE INDEX segment_start ON segment (start);"
	"CREATE INDEX segment_epoch ON segment (epoch, start);"
	"CREATE INDEX segment_level ON segment (level, start);"

	"CREATE TABLE total (segment INTEGER NOT NULL, event INTEGER NOT NULL,"
	" samples INTEGER NOT NULL, walked INTEGER NOT NULL, PRIMARY KEY (segment, event))"
	" WITHOUT ROWID;"

	"CREATE TABLE loss (segment INTEGER NOT NULL, kind INTEGER NOT NULL,"
	" reason TEXT NOT NULL, samples INTEGER NOT NULL, PRIMARY KEY (segment, kind, reason))"
	" WITHOUT ROWID;"

	"CREATE TABLE node (epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
	" count INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (epoch, first))"
	" WITHOUT ROWID;";

/* Where it is sent on: how far that is (store/unsent.h). One row, or none. */
static const char second[] = "CREATE TABLE fleet (source INTEGER NOT NULL, machine TEXT NOT NULL,"
			     " sent INTEGER NOT NULL, given_up INTEGER NOT NULL);";

/* Columns of counts and paths are packed in another way from here on; what is there stays as it is, and can be
   read. And of events that were not counted all of the time (store/covered.h), in nanoseconds; NULL: it
   was. */
static const char third[] = "ALTER TABLE total ADD COLUMN enabled INTEGER;"
			    "ALTER TABLE total ADD COLUMN running INTEGER;";

const struct schema_step schema_steps[STORE_VERSION] = {{first}, {second}, {third}};

/* A file that is somebody else's is left alone. */
static struct err *check_application(struct store *s, int64_t version)
{
	int64_t application, tables;
	struct err *e = sql_number(s, &application, 0, "PRAGMA application_id", "");
	if (!e)
		e = sql_number(s, &tables, 0, "SELECT count(*) FROM sqlite_master", "");
	if (e)
		return e;
	bool fresh = !application && !version && !tables && s->writes;
	if (application == STORE_APPLICATION || fresh)
		return NULL;
	s->trouble = STORE_DAMAGED;
	return err_new("%s: not a database of culprit", s->path);
}

static struct err *step(struct store *s, const struct schema_step *step, int64_t next)
{
	char mark[96];
	snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %lld",
		 STORE_APPLICATION, (long long)next);
	struct err *e = sql_run(s, step->sql);
	return e ? e : sql_run(s, mark);
}

static struct err *migrate(struct store *s, const struct schema_step *steps, int64_t count)
{
	int64_t version;
	struct err *e = sql_begin(s);
	if (e)
		return e;
	/* Somebody else may have done it meanwhile. */
	e = sql_number(s, &version, 0, "PRAGMA user_version", "");
	for (; !e && version < count; version++)
		e = step(s, &steps[version], version + 1);
	return sql_end(s, e);
}

struct err *schema_make(struct store *s, const struct schema_step *steps, int64_t count)
{
	int64_t version;
	struct err *e = sql_number(s, &version, 0, "PRAGMA user_version", "");
	if (!e)
		e = check_application(s, version);
	if (e || version == count)
		return e;
	if (version > count)
		return err_new("%s: written by a newer culprit (version %lld of the tables; this "
			       "one knows %lld): use that one",
			       s->path, (long long)version, (long long)count);
	if (s->writes)
		return err_context(migrate(s, steps, count), "cannot bring the tables up to date");
	return err_new("%s: written by an older culprit (version %lld of the tables): culprit db "
		       "prune or the daemon brings it up to date",
		       s->path, (long long)version);
}
