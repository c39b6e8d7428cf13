/* SPDX-License-Identifier: Apache-2.0 */
/* SQL for those who want it, run by the server on the views of fleet/schema.c. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "fleet/server.h"

#define COLUMNS_MAX 1024

/* An answer in TabSeparatedWithNamesAndTypes: lines of cells, whose escapes are taken out in place. */
struct table {
	char *at, *end;
	int columns;
	const char *names[COLUMNS_MAX];
	enum read_cell_kind kinds[COLUMNS_MAX];
	struct read_cell cells[COLUMNS_MAX];
};

static char unescaped(char c)
{
	static const char from[] = "btnrf0", to[] = "\b\t\n\r\f";
	const char *found = c ? strchr(from, c) : NULL;
	return found ? to[found - from] : c; /* \0 would end the text: it does */
}

static char null[] = ""; /* the cell that says nothing, by its address */

/* The next cell of the line; *last where the line ends with it. NULL where there is none. */
static char *next_cell(struct table *t, bool *last)
{
	char *cell = t->at, *out = t->at;
	bool says_nothing = t->end - t->at > 2 && !strncmp(cell, "\\N", 2) &&
			    (cell[2] == '\t' || cell[2] == '\n');
	while (t->at < t->end && *t->at != '\t' && *t->at != '\n') {
		if (*t->at == '\\' && t->at + 1 < t->end) {
			t->at++;
			*out++ = unescaped(*t->at++);
		} else {
			*out++ = *t->at++;
		}
	}
	if (t->at >= t->end)
		return NULL;
	*last = *t->at++ == '\n';
	*out = 0;
	return says_nothing ? null : cell;
}

static enum read_cell_kind kind_of(const char *type)
{
	if (!strncmp(type, "Nullable(", 9))
		type += 9;
	if (!strncmp(type, "Float", 5))
		return READ_REAL;
	return !strncmp(type, "Int", 3) || !strncmp(type, "UInt", 4) ? READ_INTEGER : READ_TEXT;
}

/* A line with as many cells as there are columns; the first one says how many that are. */
static bool next_line(struct table *t, char **cells)
{
	bool last = false;
	int count = 0;
	while (!last && count < COLUMNS_MAX) {
		cells[count] = next_cell(t, &last);
		if (!cells[count++])
			return false;
	}
	if (!t->columns)
		t->columns = count;
	return last && count == t->columns;
}

/* Whole numbers above 2^63 are negative, as in a file. */
static void fill(struct read_cell *cell, enum read_cell_kind kind, const char *text)
{
	*cell = (struct read_cell){.kind = text == null ? READ_NULL : kind, .text = text};
	if (text == null || kind == READ_TEXT)
		return;
	if (kind == READ_INTEGER)
		cell->integer = *text == '-' ? strtoll(text, NULL, 10)
					     : (int64_t)strtoull(text, NULL, 10);
	else
		cell->real = strtod(text, NULL);
}

static struct err *each_row(struct table *t, char **cells, read_row *row, void *context)
{
	if (!next_line(t, cells))
		return err_new("the answer makes no sense");
	for (int i = 0; i < t->columns; i++)
		t->names[i] = cells[i];
	if (!next_line(t, cells))
		return err_new("the answer makes no sense");
	for (int i = 0; i < t->columns; i++)
		t->kinds[i] = kind_of(cells[i]);
	struct err *e = row(context, t->columns, t->names, NULL);
	while (!e && t->at < t->end) {
		if (!next_line(t, cells))
			return err_new("the answer is cut short");
		for (int i = 0; i < t->columns; i++)
			fill(&t->cells[i], t->kinds[i], cells[i]);
		e = row(context, t->columns, t->names, t->cells);
	}
	return e;
}

struct err *fetch_table(struct buf *answer, read_row *row, void *context)
{
	struct table *t = calloc(1, sizeof *t);
	char **cells = calloc(COLUMNS_MAX, sizeof *cells);
	struct err *e = t && cells ? NULL : err_new("out of memory");
	if (!e) {
		t->at = answer->data;
		t->end = answer->data ? answer->data + answer->size : NULL;
		e = each_row(t, cells, row, context);
	}
	free(t);
	free(cells);
	return e;
}

/* One statement, to which the format is added. */
static struct err *prepare(const char *sql, struct buf *out)
{
	sql += strspn(sql, " \t\r\n");
	size_t size = strlen(sql);
	while (size && strchr(" \t\r\n;", sql[size - 1]))
		size--;
	if (strncasecmp(sql, "SELECT", 6) != 0 && strncasecmp(sql, "WITH", 4) != 0)
		return err_new("--sql only reads: it takes a SELECT");
	buf_append(out, sql, size);
	buf_puts(out, "\nFORMAT TabSeparatedWithNamesAndTypes");
	return out->failed ? err_new("out of memory") : NULL;
}

struct err *fetch_sql(struct server *s, const char *sql, read_row *row, void *context)
{
	struct buf question = {0}, answer = {0};
	struct err *e = prepare(sql, &question);
	if (!e)
		e = server_check(s);
	if (!e)
		e = server_ask_reading(s, buf_text(&question), &answer);
	if (!e)
		e = err_context(fetch_table(&answer, row, context), "%s", server_name(s));
	buf_free(&question);
	buf_free(&answer);
	return e;
}
