/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of an epoch in the file: pieces of consecutive nodes, as they came; small ones are
   joined later. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/internal.h"

#define PIECE_NODES 16384 /* a piece becomes no larger by joining */
#define PIECES_LEFT 16    /* so many small pieces may be there */

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
	for (size_t i = 0; good && i < count; i++)
		good = calltree_child(out, &nodes[i]) == (uint64_t)first + i;
	free(nodes);
	return good ? NULL : damaged(s, epoch);
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
	sqlite3_finalize(rows);
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

struct err *trees_append(struct store *s, int64_t epoch, const struct calltree *tree,
			 uint32_t first, int level)
{
	struct err *e = write_pieces(s, epoch, tree, first, level);
	if (e || first == tree->count)
		return e;
	return sql_do(s, "UPDATE epoch SET nodes = ? WHERE id = ?", "dd", (int64_t)tree->count - 1,
		      epoch);
}

/* Joining */

/* The newest epoch gets a small piece with each interval. */
struct err *trees_find(struct store *s, int64_t *epoch)
{
	char sql[400];
	snprintf(sql, sizeof sql,
		 "SELECT epoch FROM node GROUP BY epoch HAVING count(*) - (sum(count) + %d) / %d >="
		 " CASE epoch WHEN (SELECT max(id) FROM epoch) THEN %d ELSE 1 END LIMIT 1",
		 PIECE_NODES - 1, PIECE_NODES, PIECES_LEFT);
	return sql_number(s, epoch, 0, sql, "");
}

struct err *trees_tidy(struct store *s, int64_t epoch)
{
	struct calltree tree = {0};
	int64_t first;
	struct err *e = sql_number(s, &first, 1,
				   "SELECT min(first) FROM node WHERE epoch = ? AND count < ?",
				   "dd", epoch, (int64_t)PIECE_NODES);
	if (!e)
		e = trees_read(s, epoch, &tree);
	if (!e && (first < 1 || first > tree.count))
		e = damaged(s, epoch);
	if (!e)
		e = sql_do(s, "DELETE FROM node WHERE epoch = ? AND first >= ?", "dd", epoch,
			   first);
	if (!e)
		e = write_pieces(s, epoch, &tree, (uint32_t)first, LEVEL_SMALL);
	calltree_free(&tree);
	return e;
}
