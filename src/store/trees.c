/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of an epoch in the file: pieces of consecutive nodes, as they came. What is new takes small pieces
 * at the end along when it, and those after them, have three times as many nodes. So a node is written again only a
 * few times, from memory, each time in a piece four times as large, until that is full and stays; and pieces
 * are few. The more nodes in one, the fewer bytes each takes: packed quickly, 65536 in one are as small as
 * 16384 with the best compression.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/internal.h"

#define PIECE_NODES 65536 /* a piece becomes no larger */
#define TAKEN_ALONG 3

static struct err *damaged(struct store *s, int64_t epoch)
{
	s->trouble = STORE_DAMAGED;
	return err_new("%s: the call paths of epoch %lld are damaged", s->path, (long long)epoch);
}

static struct err *read_piece(struct store *s, sqlite3_stmt *row, int64_t epoch,
			      struct calltree *out)
{
	struct pack_node *nodes;
	size_t count;
	int64_t first = sqlite3_column_int64(row, 0);
	struct err *e = unpack_nodes(sqlite3_column_blob(row, 2),
				     (size_t)sqlite3_column_bytes(row, 2), out->count, &nodes,
				     &count);
	if (e) {
		err_free(e);
		return damaged(s, epoch);
	}
	bool good = first == out->count && (int64_t)count == sqlite3_column_int64(row, 1) &&
		    out->count + count <= TREE_NODES_MAX;
	if (good && !calltree_append(out, nodes, count))
		e = err_new("out of memory");
	free(nodes);
	return good ? e : damaged(s, epoch);
}

struct err *trees_read(struct store *s, int64_t epoch, struct calltree *out)
{
	sqlite3_stmt *rows;
	bool row = true;
	if (!calltree_clear(out))
		return err_new("out of memory");
	struct err *e = sql_prepare(
		s, &rows, "SELECT first, count, data FROM node WHERE epoch = ? ORDER BY first", "d",
		epoch);
	while (!e) {
		e = sql_step(s, rows, &row);
		if (e || !row)
			break;
		e = read_piece(s, rows, epoch, out);
	}
	sql_done(s, rows);
	return e;
}

struct err *trees_load(struct store *s, int64_t epoch)
{
	s->tree_epoch = 0;
	struct err *e = trees_read(s, epoch, &s->tree);
	if (!e)
		s->tree_epoch = epoch;
	return e;
}

static struct err *write_piece(struct store *s, int64_t epoch, const struct pack_node *nodes,
			       uint32_t first, uint32_t count, int level)
{
	struct buf data = {0};
	struct err *e = pack_nodes(nodes, count, first, level, &data);
	if (!e)
		e = sql_do(s, "INSERT INTO node (epoch, first, count, data) VALUES (?, ?, ?, ?)",
			   "dddb", epoch, (int64_t)first, (int64_t)count, &data);
	buf_free(&data);
	return e;
}

static struct err *write_pieces(struct store *s, int64_t epoch, const struct calltree *tree,
				uint32_t first, int level)
{
	struct err *e = NULL;
	for (uint32_t at = first; !e && at < tree->count; at += PIECE_NODES) {
		uint32_t count = tree->count - at < PIECE_NODES ? tree->count - at : PIECE_NODES;
		e = write_piece(s, epoch, tree->nodes + at, at, count, level);
	}
	return e;
}

/* Where to write from: *first, or the first of the pieces at the end that are taken along; those are removed. */
static struct err *take_along(struct store *s, int64_t epoch, uint32_t end, uint32_t *first)
{
	sqlite3_stmt *rows;
	bool row = true;
	uint32_t from = *first;
	int64_t next = from;
	struct err *e = sql_prepare(
		s, &rows, "SELECT first, count FROM node WHERE epoch = ? ORDER BY first DESC", "d",
		epoch);
	while (!e) {
		e = sql_step(s, rows, &row);
		if (e || !row)
			break;
		int64_t at = sqlite3_column_int64(rows, 0), count = sqlite3_column_int64(rows, 1);
		if (count < 1 || count >= PIECE_NODES || at < 1 || at != next - count)
			break;
		if (count * TAKEN_ALONG <= (int64_t)end - next)
			from = (uint32_t)at;
		next = at;
	}
	sql_done(s, rows);
	if (!e && from < *first)
		e = sql_do(s, "DELETE FROM node WHERE epoch = ? AND first >= ?", "dd", epoch,
			   (int64_t)from);
	*first = from;
	return e;
}

static struct err *note_count(struct store *s, int64_t epoch, const struct calltree *tree)
{
	return sql_do(s, "UPDATE epoch SET nodes = ? WHERE id = ?", "dd", (int64_t)tree->count - 1,
		      epoch);
}

struct err *trees_append(struct store *s, int64_t epoch, const struct calltree *tree,
			 uint32_t first)
{
	if (first == tree->count)
		return NULL;
	struct err *e = take_along(s, epoch, tree->count, &first);
	if (!e)
		e = write_pieces(s, epoch, tree, first, LEVEL_QUICK);
	return e ? e : note_count(s, epoch, tree);
}

struct err *trees_finish(struct store *s, int64_t epoch, const struct calltree *tree,
			 uint32_t first)
{
	int64_t from;
	if (first == tree->count)
		return NULL;
	struct err *e = sql_number(s, &from, first,
				   "SELECT min(first) FROM node WHERE epoch = ? AND count < ?",
				   "dd", epoch, (int64_t)PIECE_NODES);
	if (!e && (from < 1 || from > first))
		e = damaged(s, epoch);
	if (!e)
		e = sql_do(s, "DELETE FROM node WHERE epoch = ? AND first >= ?", "dd", epoch, from);
	if (!e)
		e = write_pieces(s, epoch, tree, (uint32_t)from, LEVEL_SMALL);
	return e ? e : note_count(s, epoch, tree);
}
