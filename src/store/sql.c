/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "store/internal.h"

static enum store_trouble trouble_of(int code)
{
	if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS)
		return STORE_DAMAGED; /* a file was cut off */
	switch (code & 0xff) {
	case SQLITE_FULL:
	case SQLITE_IOERR: /* also quotas and limits */
		return STORE_FULL;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return STORE_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return STORE_DAMAGED;
	default:
		return STORE_OTHER;
	}
}

struct err *sql_error(struct store *s, const char *doing)
{
	s->trouble = trouble_of(sqlite3_extended_errcode(s->db));
	switch (s->trouble) {
	case STORE_FULL:
		return err_new("%s: cannot %s: %s: is the disk full?", s->path, doing,
			       sqlite3_errmsg(s->db));
	case STORE_BUSY:
		return err_new("%s: cannot %s: another process is writing: try again", s->path,
			       doing);
	case STORE_DAMAGED:
		return err_new("%s: cannot %s: the file is damaged or no database (%s): "
			       "culprit db check says more",
			       s->path, doing, sqlite3_errmsg(s->db));
	default:
		return err_new("%s: cannot %s: %s", s->path, doing, sqlite3_errmsg(s->db));
	}
}

static const char *doing(const struct store *s)
{
	return s->writes ? "write" : "read";
}

struct err *sql_run(struct store *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? NULL
								       : sql_error(s, doing(s));
}

static int bind(sqlite3_stmt *statement, const char *types, va_list args)
{
	int failed = SQLITE_OK;
	for (int i = 1; types[i - 1] && !failed; i++) {
		switch (types[i - 1]) {
		case 'd':
			failed = sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
			break;
		case 'u':
			failed = sqlite3_bind_int64(statement, i, (int64_t)va_arg(args, uint64_t));
			break;
		case 's':
			failed = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1,
						   SQLITE_TRANSIENT);
			break;
		default: {
			const struct buf *b = va_arg(args, const struct buf *);
			failed = b->size ? sqlite3_bind_blob64(statement, i, b->data, b->size,
							       SQLITE_STATIC)
					 : sqlite3_bind_zeroblob(statement, i, 0);
		}
		}
	}
	return failed;
}

/* Statements that were needed before: to read and plan one takes longer than to run it. In the order of
   their last use, the newest at the end; those in use are not among them. SQLite itself plans one
   anew where tables have changed. */

static sqlite3_stmt *kept_take(struct kept *k, const char *sql)
{
	uint64_t hash = hash_text(HASH_START, sql);
	for (size_t i = k->count; i-- > 0;) {
		sqlite3_stmt *found = k->items[i].statement;
		if (k->items[i].hash != hash || strcmp(sqlite3_sql(found), sql) != 0)
			continue;
		k->count--;
		memmove(&k->items[i], &k->items[i + 1], (k->count - i) * sizeof *k->items);
		return found;
	}
	return NULL;
}

void sql_done(struct store *s, sqlite3_stmt *statement)
{
	struct kept *k = &s->kept;
	if (!statement)
		return;
	sqlite3_reset(statement); /* its failure was told by sql_step */
	sqlite3_clear_bindings(statement);
	if (k->count == KEPT_MAX) {
		sqlite3_finalize(k->items[0].statement);
		k->count--;
		memmove(&k->items[0], &k->items[1], k->count * sizeof *k->items);
	}
	k->items[k->count++] = (struct kept_item){hash_text(HASH_START, sqlite3_sql(statement)),
						  statement};
}

void sql_forget(struct store *s)
{
	for (size_t i = 0; i < s->kept.count; i++)
		sqlite3_finalize(s->kept.items[i].statement);
	s->kept.count = 0;
}

static struct err *prepare(struct store *s, sqlite3_stmt **out, const char *sql, const char *types,
			   va_list args)
{
	*out = kept_take(&s->kept, sql);
	if ((!*out && sqlite3_prepare_v2(s->db, sql, -1, out, NULL) != SQLITE_OK) ||
	    bind(*out, types, args) != SQLITE_OK) {
		struct err *e = sql_error(s, doing(s));
		sqlite3_finalize(*out);
		*out = NULL;
		return e;
	}
	return NULL;
}

struct err *sql_prepare(struct store *s, sqlite3_stmt **out, const char *sql, const char *types,
			...)
{
	va_list args;
	va_start(args, types);
	struct err *e = prepare(s, out, sql, types, args);
	va_end(args);
	return e;
}

struct err *sql_step(struct store *s, sqlite3_stmt *statement, bool *row)
{
	int result = sqlite3_step(statement);
	*row = result == SQLITE_ROW;
	return result == SQLITE_ROW || result == SQLITE_DONE ? NULL : sql_error(s, doing(s));
}

struct err *sql_do(struct store *s, const char *sql, const char *types, ...)
{
	sqlite3_stmt *statement;
	bool row = true;
	va_list args;
	va_start(args, types);
	struct err *e = prepare(s, &statement, sql, types, args);
	va_end(args);
	while (!e && row)
		e = sql_step(s, statement, &row);
	sql_done(s, statement);
	return e;
}

struct err *sql_number(struct store *s, int64_t *out, int64_t otherwise, const char *sql,
		       const char *types, ...)
{
	sqlite3_stmt *statement;
	bool row = false;
	va_list args;
	va_start(args, types);
	struct err *e = prepare(s, &statement, sql, types, args);
	va_end(args);
	if (!e)
		e = sql_step(s, statement, &row);
	*out = otherwise;
	if (row && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		*out = sqlite3_column_int64(statement, 0);
	sql_done(s, statement);
	return e;
}

const char *sql_text(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	return text ? text : "";
}

struct err *sql_begin(struct store *s)
{
	return sql_do(s, "BEGIN IMMEDIATE", "");
}

struct err *sql_end(struct store *s, struct err *e)
{
	if (!e)
		e = sql_do(s, "COMMIT", "");
	if (e)
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	watch_note(s); /* what was undone may have been written, too */
	return e;
}
