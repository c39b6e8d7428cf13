/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db query`: samples as plain rows for other programs, and SQL. */
#include "cmd/db_rows.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/user.h"
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

struct options {
	struct db_choice c;
	const char *sql;
	bool json;
};

/* A value between tabs: what would end it becomes a question mark. */
static void put_value(const char *text)
{
	struct buf clean = {0};
	buf_put_clean(&clean, text, strlen(text));
	fputs(buf_text(&clean), stdout);
	buf_free(&clean);
}

/* ---- SQL ---- */

struct printer {
	bool json;
	struct json j;
	bool begun;
};

static struct err *put_names(struct printer *p, int columns, const char *const *names)
{
	if (p->json) {
		json_begin_object(&p->j);
		json_key(&p->j, "culprit");
		json_u64(&p->j, 1);
		json_key(&p->j, "columns");
		json_begin_array(&p->j);
		for (int i = 0; i < columns; i++)
			json_string(&p->j, names[i]);
		json_end_array(&p->j);
		json_key(&p->j, "rows");
		json_begin_array(&p->j);
		p->begun = true;
		return NULL;
	}
	for (int i = 0; i < columns; i++) {
		if (i)
			putchar('\t');
		put_value(names[i]);
	}
	putchar('\n');
	return NULL;
}

static void put_cell_json(struct json *j, const struct read_cell *c)
{
	if (c->kind == READ_NULL)
		json_null(j);
	else if (c->kind == READ_INTEGER)
		json_i64(j, c->integer);
	else if (c->kind == READ_REAL)
		json_double(j, c->real);
	else
		json_string(j, c->text);
}

static struct err *put_sql_row(void *context, int columns, const char *const *names,
			       const struct read_cell *cells)
{
	struct printer *p = context;
	if (!cells)
		return put_names(p, columns, names);
	if (p->json)
		json_begin_array(&p->j);
	for (int i = 0; i < columns; i++) {
		if (p->json) {
			put_cell_json(&p->j, &cells[i]);
			continue;
		}
		if (i)
			putchar('\t');
		put_value(cells[i].text);
	}
	if (p->json)
		json_end_array(&p->j);
	else
		putchar('\n');
	return NULL;
}

static struct err *run_sql(const struct options *o)
{
	struct printer p = {.json = o->json, .j = json_to_file(stdout)};
	struct err *e = db_sql(o->c.file, o->sql, put_sql_row, &p);
	if (p.begun) {
		json_end_array(&p.j);
		json_end_object(&p.j);
		json_newline(&p.j);
	}
	return e;
}

/* ---- rows ---- */

static void put_rows(const struct read_samples *x, const struct read_sums *rows)
{
	char user[USER_NAME_MAX];
	printf("process\tpid\tuser\tcontainer\timage\tprocedure");
	for (size_t i = 0; i < x->event_count; i++) {
		putchar('\t');
		put_value(x->events[i].name);
	}
	putchar('\n');
	for (size_t i = 0; i < rows->count; i++) {
		const struct read_sum *row = &rows->items[i];
		const struct read_process *p = &x->processes[row->process];
		put_value(p->name);
		printf("\t%d\t%s\t", p->pid, p->id ? user_name(user, p->user) : "");
		put_value(p->container);
		putchar('\t');
		put_value(row->detail);
		putchar('\t');
		put_value(row->name);
		for (size_t k = 0; k < x->event_count; k++)
			printf("\t%llu", (unsigned long long)row->counts[k]);
		putchar('\n');
	}
}

static void put_rows_json(const struct options *o, const struct read_samples *x,
			  const struct read_sums *rows)
{
	struct json j = json_to_file(stdout);
	db_head_json(o->c.file, x, rows, &j);
	json_key(&j, "rows");
	json_begin_array(&j);
	for (size_t i = 0; i < rows->count; i++) {
		const struct read_sum *row = &rows->items[i];
		const struct read_process *p = &x->processes[row->process];
		json_begin_object(&j);
		json_put_string(&j, "process", p->name);
		json_key(&j, "pid");
		json_i64(&j, p->pid);
		json_put_u64(&j, "user", p->user);
		json_put_string(&j, "container", p->container);
		json_put_string(&j, "image", row->detail);
		json_put_string(&j, "procedure", row->name);
		db_samples_json(x, row, &j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_newline(&j);
}

static struct err *run_rows(const struct options *o)
{
	struct store *store;
	struct read_samples x = {0};
	struct read_sums rows = {0};
	struct err *e = db_open(o->c.file, &o->c.read, false, &store);
	if (!e)
		e = read_samples(store, &o->c.read, &x);
	if (!e)
		e = db_nothing(o->c.file, &x);
	if (!e)
		e = read_sums_make(&x, READ_BY_ALL, 0, &rows);
	if (!e && o->json)
		put_rows_json(o, &x, &rows);
	else if (!e)
		put_rows(&x, &rows);
	read_sums_free(&rows);
	read_samples_free(&x);
	store_close(store);
	return e;
}

static int query(const struct options *o)
{
	struct err *e = o->sql ? run_sql(o) : run_rows(o);
	return e ? cmd_fail("db query", e) : cmd_finish("db query", CMD_OK);
}

int db_query(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		DB_CHOICE_OPTIONS(o.c),
		{0, "sql", "SELECT", "run this on the views that the manual page describes",
		 ARG_STRING, &o.sql},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "db query",
		.usage = "[options] [SPAN] | --sql SELECT",
		.summary = "Prints samples as rows between tabs: process, user, container, image, "
			   "procedure.",
		.options = options,
		.examples = "  culprit db query --image=libc --procedure='^mem' yesterday\n"
			    "  culprit db query --sql 'SELECT image, sum(samples) FROM procedures "
			    "GROUP BY 1 ORDER BY 2 DESC'\n",
	};
	db_keep_spans(argc, argv);
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (o.sql && (args.count || o.c.host || o.c.epoch || o.c.image_text || o.c.procedure_text ||
		      o.c.process || o.c.user_text || o.c.container))
		return cmd_misused("db query", "--sql takes no span and no option that chooses "
					       "samples: put that into the SELECT");
	status = db_choose("db query", &o.c, &args);
	if (status < 0)
		status = query(&o);
	db_choice_free(&o.c);
	return status;
}
