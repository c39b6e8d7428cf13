/* SPDX-License-Identifier: Apache-2.0 */
/* Days that are over: each table has a part for each day, and what a day needs is in its own. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "fleet/server.h"
#include "profile/profile.h"

static struct err *drop(struct server *s, const char *table, const char *day)
{
	struct buf sql = {0}, answer = {0};
	buf_printf(&sql, "ALTER TABLE %s.`%s` DROP PARTITION ", server_database(s), table);
	server_quote(&sql, day);
	struct err *e = sql.failed ? err_new("out of memory")
				   : server_ask(s, buf_text(&sql), &answer);
	buf_free(&sql);
	buf_free(&answer);
	return e;
}

/* The tables and days before this one; spans first, so that nobody sees half a day. */
static struct err *list_days(struct server *s, const char *before, struct buf *answer,
			     struct rowbinary *rows)
{
	struct buf sql = {0};
	buf_puts(
		&sql,
		"SELECT DISTINCT table, partition FROM system.parts WHERE active AND database = '");
	buf_append(&sql, server_database(s) + 1, strlen(server_database(s)) - 2);
	buf_puts(&sql, "' AND table LIKE 'sent\\\\_%' AND partition < ");
	server_quote(&sql, before);
	buf_puts(&sql, " ORDER BY table != 'sent_spans', partition");
	return fetch_rows(s, &sql, answer, rows);
}

struct err *fetch_prune(struct server *s, int64_t before_ms, uint64_t *days)
{
	struct buf answer = {0};
	struct rowbinary rows = {0};
	struct profile *strings = NULL;
	time_t seconds = (time_t)(before_ms / 1000);
	struct tm tm;
	char before[32] = "";
	*days = 0;
	if (before_ms <= 0 || !gmtime_r(&seconds, &tm) ||
	    !strftime(before, sizeof before, "%Y-%m-%d", &tm))
		return NULL; /* nothing is that old */
	struct err *e = server_check(s);
	if (!e)
		e = profile_new(&strings);
	if (!e)
		e = list_days(s, before, &answer, &rows);
	while (!e && rowbinary_more(&rows)) {
		const char *table = rowbinary_text(&rows, strings);
		const char *day = rowbinary_text(&rows, strings);
		if (rows.damaged || strncmp(table, "sent_", 5) != 0 || strchr(table, '`'))
			rows.damaged = true;
		else
			e = drop(s, table, day);
		*days += !e && !rows.damaged && !strcmp(table, "sent_spans");
	}
	e = fetch_end(s, e, &answer, &rows);
	profile_free(strings);
	return e;
}
