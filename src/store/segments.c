/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/internal.h"

static struct err *unpack(struct store *s, sqlite3_stmt *row, enum segment_rows rows,
			  struct segment *out)
{
	struct err *e = NULL;
	if (rows & SEGMENT_COUNTS)
		e = unpack_counts(sqlite3_column_blob(row, 9), (size_t)sqlite3_column_bytes(row, 9),
				  &out->counts, &out->count_count);
	if (!e && rows & SEGMENT_PATHS)
		e = unpack_paths(sqlite3_column_blob(row, 10),
				 (size_t)sqlite3_column_bytes(row, 10), &out->paths,
				 &out->path_count);
	if (!e)
		return NULL;
	s->trouble = STORE_DAMAGED;
	return err_context(e, "%s: span %lld", s->path, (long long)out->id);
}

struct err *segment_read(struct store *s, int64_t id, enum segment_rows rows, struct segment *out)
{
	const char *sql = "SELECT epoch, start, end, level, intervals, cpu_ns, memory, kernel_ns,"
			  " kernel_runs, counts, paths FROM segment WHERE id = ?";
	sqlite3_stmt *row;
	bool found = false;
	*out = (struct segment){.id = id};
	struct err *e = sql_prepare(s, &row, sql, "d", id);
	if (!e)
		e = sql_step(s, row, &found);
	if (!e && !found)
		e = err_new("%s: span %lld is gone", s->path, (long long)id);
	if (!e) {
		out->epoch = sqlite3_column_int64(row, 0);
		out->start_ms = sqlite3_column_int64(row, 1);
		out->end_ms = sqlite3_column_int64(row, 2);
		out->level = sqlite3_column_int64(row, 3);
		out->intervals = sqlite3_column_int64(row, 4);
		out->cost = (struct store_cost){(uint64_t)sqlite3_column_int64(row, 5),
						(uint64_t)sqlite3_column_int64(row, 6),
						(uint64_t)sqlite3_column_int64(row, 7),
						(uint64_t)sqlite3_column_int64(row, 8)};
	}
	if (!e)
		e = unpack(s, row, rows, out);
	sql_done(s, row);
	return e;
}

void segment_free(struct segment *x)
{
	free(x->counts);
	free(x->paths);
	x->counts = NULL;
	x->paths = NULL;
}

/* Sums by event. */
static struct err *add_total(struct store *s, int64_t segment, uint64_t event, uint64_t samples,
			     uint64_t walked)
{
	return sql_do(s,
		      "INSERT INTO total (segment, event, samples, walked) VALUES (?, ?, ?, ?)"
		      " ON CONFLICT DO UPDATE SET samples = samples + excluded.samples,"
		      " walked = walked + excluded.walked",
		      "duuu", segment, event, samples, walked);
}

static struct err *write_totals(struct store *s, const struct segment *x)
{
	uint64_t samples[STORE_EVENT_MAX] = {0}, walked[STORE_EVENT_MAX] = {0};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < x->count_count; i++) {
		uint64_t event = x->counts[i].event;
		if (event < STORE_EVENT_MAX)
			samples[event] += x->counts[i].count;
		else
			e = add_total(s, x->id, event, x->counts[i].count, 0);
	}
	for (size_t i = 0; !e && i < x->path_count; i++) {
		uint64_t event = x->paths[i].event;
		if (event < STORE_EVENT_MAX)
			walked[event] += x->paths[i].count;
		else
			e = add_total(s, x->id, event, 0, x->paths[i].count);
	}
	for (uint64_t i = 0; !e && i < STORE_EVENT_MAX; i++)
		if (samples[i] || walked[i])
			e = add_total(s, x->id, i, samples[i], walked[i]);
	return e;
}

struct err *segment_write(struct store *s, struct segment *x, int level)
{
	struct buf counts = {0}, paths = {0};
	struct err *e = pack_counts(x->counts, x->count_count, level, &counts);
	if (!e)
		e = pack_paths(x->paths, x->path_count, level, &paths);
	if (!e)
		e = sql_do(s,
			   "INSERT INTO segment (epoch, start, end, level, intervals, rows, cpu_ns,"
			   " memory, kernel_ns, kernel_runs, counts, paths)"
			   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			   "ddddduuuuubb", x->epoch, x->start_ms, x->end_ms, x->level, x->intervals,
			   (uint64_t)(x->count_count + x->path_count), x->cost.cpu_ns,
			   x->cost.memory, x->cost.kernel_ns, x->cost.kernel_runs, &counts, &paths);
	buf_free(&counts);
	buf_free(&paths);
	if (e)
		return e;
	x->id = sqlite3_last_insert_rowid(s->db);
	return write_totals(s, x);
}

struct err *segment_replace_paths(struct store *s, struct segment *x)
{
	struct buf paths = {0};
	x->path_count = pack_settle_paths(x->paths, x->path_count);
	struct err *e = pack_paths(x->paths, x->path_count, LEVEL_SMALL, &paths);
	if (!e)
		e = sql_do(s, "UPDATE segment SET paths = ?, rows = ? WHERE id = ?", "bud", &paths,
			   (uint64_t)(x->count_count + x->path_count), x->id);
	buf_free(&paths);
	return e;
}

struct err *segment_add_loss(struct store *s, int64_t segment, int kind, const char *reason,
			     uint64_t samples)
{
	if (!samples)
		return NULL;
	return sql_do(s,
		      "INSERT INTO loss (segment, kind, reason, samples) VALUES (?, ?, ?, ?)"
		      " ON CONFLICT DO UPDATE SET samples = samples + excluded.samples",
		      "ddsu", segment, (int64_t)kind, reason, samples);
}

struct err *segment_move_losses(struct store *s, int64_t from, int64_t to)
{
	return sql_do(s,
		      "INSERT INTO loss (segment, kind, reason, samples)"
		      " SELECT ?, kind, reason, samples FROM loss WHERE segment = ?"
		      " ON CONFLICT DO UPDATE SET samples = samples + excluded.samples",
		      "dd", to, from);
}

struct err *segment_remove(struct store *s, int64_t id)
{
	struct err *e = sql_do(s, "DELETE FROM segment WHERE id = ?", "d", id);
	if (!e)
		e = sql_do(s, "DELETE FROM total WHERE segment = ?", "d", id);
	return e ? e : sql_do(s, "DELETE FROM loss WHERE segment = ?", "d", id);
}
