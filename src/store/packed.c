/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed rows as tables for SQL: functions that give a table, each of one
 * argument, the number of a segment or epoch. SQLite calls such things virtual
 * tables; a row is unpacked when it is asked for, nothing is copied.
 */
#include <stdlib.h>

#include "base/err.h"
#include "store/internal.h"

enum kind { COUNTS, PATHS, NODES };

static const struct {
	const char *name, *columns;
	int argument; /* column of the hidden one */
} tables[] = {
	{"packed_counts",
	 "CREATE TABLE x (process INTEGER, image INTEGER, event INTEGER, address INTEGER,"
	 " samples INTEGER, segment HIDDEN)",
	 5},
	{"packed_paths",
	 "CREATE TABLE x (node INTEGER, process INTEGER, event INTEGER, samples INTEGER,"
	 " segment HIDDEN)",
	 4},
	{"packed_nodes",
	 "CREATE TABLE x (node INTEGER, parent INTEGER, image INTEGER, kind INTEGER,"
	 " address INTEGER, epoch HIDDEN)",
	 5},
};

struct table {
	sqlite3_vtab base;
	struct store *store;
	enum kind kind;
};

struct cursor_of {
	sqlite3_vtab_cursor base;
	int64_t argument;
	size_t at, count;
	struct segment segment;
	struct calltree tree;
};

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
		   char **error)
{
	enum kind kind = COUNTS;
	(void)error;
	for (size_t i = 0; argc && i < sizeof tables / sizeof *tables; i++)
		if (!sqlite3_stricmp(argv[0], tables[i].name))
			kind = (enum kind)i;
	struct table *t = sqlite3_malloc(sizeof *t);
	if (!t)
		return SQLITE_NOMEM;
	*t = (struct table){.store = aux, .kind = kind};
	int failed = sqlite3_declare_vtab(db, tables[kind].columns);
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*out = &t->base;
	return failed;
}

static int disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* Only with its argument does the table have rows at all. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	int hidden = tables[((struct table *)base)->kind].argument;
	for (int i = 0; i < info->nConstraint; i++) {
		if (info->aConstraint[i].iColumn != hidden ||
		    info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (!info->aConstraint[i].usable)
			return SQLITE_CONSTRAINT;
		info->aConstraintUsage[i].argvIndex = 1;
		info->aConstraintUsage[i].omit = 1;
		info->idxNum = 1;
		info->estimatedCost = 1000;
		info->estimatedRows = 1000;
		return SQLITE_OK;
	}
	info->estimatedCost = 1e12;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct cursor_of *c = calloc(1, sizeof *c);
	(void)base;
	*out = &c->base;
	return c ? SQLITE_OK : SQLITE_NOMEM;
}

static void empty(struct cursor_of *c)
{
	segment_free(&c->segment);
	calltree_free(&c->tree);
	c->count = c->at = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor_of *c = (struct cursor_of *)base;
	empty(c);
	free(c);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int with, const char *text, int argc,
		  sqlite3_value **argv)
{
	struct cursor_of *c = (struct cursor_of *)base;
	struct table *t = (struct table *)base->pVtab;
	(void)text;
	empty(c);
	if (!with || argc < 1)
		return SQLITE_OK;
	c->argument = sqlite3_value_int64(argv[0]);
	struct err *e = t->kind == NODES
				? trees_read(t->store, c->argument, &c->tree)
				: segment_read(t->store, c->argument, SEGMENT_ALL, &c->segment);
	if (e) {
		sqlite3_free(base->pVtab->zErrMsg);
		base->pVtab->zErrMsg = sqlite3_mprintf("%s", err_text(e));
		err_free(e);
		return SQLITE_ERROR;
	}
	c->count = t->kind == COUNTS  ? c->segment.count_count
		   : t->kind == PATHS ? c->segment.path_count
				      : c->tree.count;
	c->at = t->kind == NODES; /* the root is nobody's */
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	((struct cursor_of *)base)->at++;
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
	struct cursor_of *c = (struct cursor_of *)base;
	return c->at >= c->count;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number)
{
	const struct cursor_of *c = (struct cursor_of *)base;
	const struct table *t = (struct table *)base->pVtab;
	uint64_t value = (uint64_t)c->argument;
	if (t->kind == COUNTS && number < 5) {
		const struct pack_count *x = &c->segment.counts[c->at];
		const uint64_t all[] = {x->process, x->image, x->event, x->address, x->count};
		value = all[number];
	} else if (t->kind == PATHS && number < 4) {
		const struct pack_path *x = &c->segment.paths[c->at];
		const uint64_t all[] = {x->node, x->process, x->event, x->count};
		value = all[number];
	} else if (t->kind == NODES && number < 5) {
		const struct pack_node *x = &c->tree.nodes[c->at];
		const uint64_t all[] = {c->at, x->parent, x->image, x->kind, x->address};
		value = all[number];
	}
	sqlite3_result_int64(out, (int64_t)value);
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = (sqlite3_int64)((struct cursor_of *)base)->at;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.xConnect = connect,
	.xBestIndex = best_index,
	.xDisconnect = disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = at_end,
	.xColumn = column,
	.xRowid = row_id,
};

struct err *packed_register(struct store *s)
{
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (sqlite3_create_module(s->db, tables[i].name, &module, s) != SQLITE_OK)
			return sql_error(s, "read");
	return NULL;
}
