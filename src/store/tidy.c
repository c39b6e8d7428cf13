/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping it small, a step at a time. Each step is one transaction that touches
 * a bounded number of rows: first what is too old or too much goes, then fine
 * spans become coarser ones, then old epochs become one, then what nobody
 * refers to any more goes, and at last room is given back to the disk.
 *
 *    level 0   as it was added
 *    level n   all spans of an epoch that begin in the same `width_s` of levels[n - 1]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "profile/profile.h"
#include "store/covered.h"

#define MERGE_ROWS_MAX (1u << 20) /* spans stay apart where they would have more together */
#define REMOVED_AT_ONCE 16
#define MOVED_AT_ONCE 8
#define UNUSED_AT_ONCE 500
#define PAGES_AT_ONCE 64
#define PAGES_LEFT 64      /* free pages that are not worth giving back */
#define GROUP_WIDTH_S 3600 /* spans of this length know groups of processes only */
#define DAY_MS INT64_C(86400000)
#define JOINED_MS (7 * DAY_MS) /* an epoch becomes no longer by joining */
#define SPANS_AT_ONCE 4096     /* in one merge */

const struct store_policy store_policy = {
	.levels = {{600, 600}, {3600, 3600}, {8 * 86400, 86400}},
	.join_epochs_after_s = 15 * 86400,
	.keep_s = 400 * UINT64_C(86400),
	.max_bytes = UINT64_C(200) << 20,
};

/* Spans that a server is still to get stay as they are (store/unsent.h). */
#define FREE "(level > 0 OR id <= ifnull((SELECT sent FROM fleet), id))"

struct job {
	struct store *s;
	const struct store_policy *policy;
	int64_t now_ms;
	struct store_tidied *out;
	bool done; /* the step found something to do */
};

/* ---- removing ---- */

static struct err *remove_some(struct job *j, int64_t before_ms, int64_t limit)
{
	sqlite3_stmt *rows;
	int64_t ids[REMOVED_AT_ONCE];
	size_t count = 0;
	bool row = true;
	struct err *e = sql_prepare(j->s, &rows,
				    "SELECT id FROM segment WHERE end <= ? AND " FREE
				    " ORDER BY start LIMIT ?",
				    "dd", before_ms, limit);
	while (!e && row) {
		e = sql_step(j->s, rows, &row);
		if (!e && row && count < REMOVED_AT_ONCE)
			ids[count++] = sqlite3_column_int64(rows, 0);
	}
	sql_done(j->s, rows);
	for (size_t i = 0; !e && i < count; i++)
		e = segment_remove(j->s, ids[i]);
	j->out->removed += e ? 0 : count;
	j->done = count != 0;
	return e;
}

static struct err *remove_old(struct job *j)
{
	if (!j->policy->keep_s)
		return NULL;
	return remove_some(j, j->now_ms - (int64_t)j->policy->keep_s * 1000, REMOVED_AT_ONCE);
}

/* ---- merging spans ---- */

struct bucket {
	int64_t epoch, start_ms, end_ms, level;
	bool groups;
};

/* The oldest bucket that is old enough and has spans that are finer than the level. */
static struct err *find_bucket(struct job *j, struct bucket *b)
{
	for (int64_t level = 0; level < STORE_LEVELS; level++) {
		const struct store_level *x = &j->policy->levels[level];
		int64_t width = (int64_t)x->width_s * 1000, bucket;
		sqlite3_stmt *rows;
		bool row = false;
		if (!width)
			break;
		struct err *e = sql_prepare(
			j->s, &rows,
			"SELECT epoch, start / ?1 FROM segment WHERE level <= ?2 AND " FREE
			" AND (start / ?1 + 1) * ?1 + ?3 <= ?4 ORDER BY start LIMIT 1",
			"dddd", width, level, (int64_t)x->after_s * 1000, j->now_ms);
		if (!e)
			e = sql_step(j->s, rows, &row);
		if (!e && row) {
			bucket = sqlite3_column_int64(rows, 1);
			*b = (struct bucket){sqlite3_column_int64(rows, 0), bucket * width,
					     (bucket + 1) * width, level + 1,
					     x->width_s >= GROUP_WIDTH_S};
		}
		sql_done(j->s, rows);
		if (e || row)
			return e;
	}
	return NULL;
}

/* The spans to merge: at least one that is finer than the level, so that each step gets on. */
static struct err *list_bucket(struct job *j, const struct bucket *b, int64_t *spans, size_t *count)
{
	sqlite3_stmt *rows;
	int64_t sum = 0;
	bool row = true;
	*count = 0;
	struct err *e = sql_prepare(j->s, &rows,
				    "SELECT id, rows FROM segment WHERE epoch = ? AND start >= ?"
				    " AND start < ? AND level <= ? AND " FREE
				    " ORDER BY level, start",
				    "dddd", b->epoch, b->start_ms, b->end_ms, b->level);
	while (!e && *count < SPANS_AT_ONCE) {
		e = sql_step(j->s, rows, &row);
		if (e || !row)
			break;
		sum += sqlite3_column_int64(rows, 1);
		if (*count && sum > MERGE_ROWS_MAX)
			break;
		spans[(*count)++] = sqlite3_column_int64(rows, 0);
	}
	sql_done(j->s, rows);
	return e;
}

/* `into` gets the rows of `from`, unsettled. */
static struct err *append_rows(struct segment *into, const struct segment *from)
{
	size_t counts = into->count_count + from->count_count;
	size_t paths = into->path_count + from->path_count;
	struct pack_count *c = reallocarray(into->counts, counts + 1, sizeof *c);
	if (c)
		into->counts = c;
	struct pack_path *p = reallocarray(into->paths, paths + 1, sizeof *p);
	if (p)
		into->paths = p;
	if (!c || !p)
		return err_new("out of memory");
	for (size_t i = 0; i < from->count_count; i++)
		c[into->count_count++] = from->counts[i];
	for (size_t i = 0; i < from->path_count; i++)
		p[into->path_count++] = from->paths[i];
	return NULL;
}

static void append_facts(struct segment *into, const struct segment *from)
{
	if (!into->intervals || from->start_ms < into->start_ms)
		into->start_ms = from->start_ms;
	if (!into->intervals || from->end_ms > into->end_ms)
		into->end_ms = from->end_ms;
	into->intervals += from->intervals;
	into->cost.cpu_ns += from->cost.cpu_ns;
	into->cost.kernel_ns += from->cost.kernel_ns;
	into->cost.kernel_runs += from->cost.kernel_runs;
	if (from->cost.memory > into->cost.memory)
		into->cost.memory = from->cost.memory;
}

static void settle(struct segment *x)
{
	x->count_count = pack_settle_counts(x->counts, x->count_count);
	x->path_count = pack_settle_paths(x->paths, x->path_count);
}

/* ---- processes become groups ---- */

struct groups {
	struct group {
		uint64_t process, group; /* process 0: free; it is its own group */
	} * slots;                       /* a power of two */
	size_t count, room;
};

static struct group *group_slot(const struct groups *g, uint64_t process)
{
	size_t at = (size_t)hash_number(HASH_START, process) & (g->room - 1);
	while (g->slots[at].process && g->slots[at].process != process)
		at = (at + 1) & (g->room - 1);
	return &g->slots[at];
}

static bool grow_groups(struct groups *g)
{
	struct groups old = *g;
	g->room = old.room ? old.room * 2 : 256;
	g->slots = calloc(g->room, sizeof *g->slots);
	for (size_t i = 0; g->slots && i < old.room; i++)
		if (old.slots[i].process)
			*group_slot(g, old.slots[i].process) = old.slots[i];
	if (!g->slots)
		*g = old;
	else
		free(old.slots);
	return g->slots != old.slots;
}

static struct err *find_group(struct store *s, struct groups *g, uint64_t *process)
{
	int64_t made;
	if (!*process)
		return NULL;
	if (g->count * 2 >= g->room && !grow_groups(g))
		return err_new("out of memory");
	struct group *slot = group_slot(g, *process);
	if (!slot->process) {
		struct err *e = intern_group(s, (int64_t)*process, &made);
		if (e)
			return e;
		*slot = (struct group){*process, (uint64_t)made};
		g->count++;
	}
	*process = slot->group;
	return NULL;
}

static struct err *group_rows(struct store *s, struct groups *g, struct segment *x)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < x->count_count; i++)
		e = find_group(s, g, &x->counts[i].process);
	for (size_t i = 0; !e && i < x->path_count; i++)
		e = find_group(s, g, &x->paths[i].process);
	return e;
}

static struct err *merge_spans(struct job *j, const struct bucket *b, const int64_t *spans,
			       size_t count)
{
	struct segment sum = {.epoch = b->epoch, .level = b->level}, one;
	struct groups groups = {0};
	struct covered covered = {0};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < count; i++) {
		e = segment_read(j->s, spans[i], SEGMENT_ALL, &one);
		if (!e)
			e = covered_add(j->s, spans[i], &covered);
		if (!e && b->groups)
			e = group_rows(j->s, &groups, &one);
		if (!e)
			e = append_rows(&sum, &one);
		if (!e)
			append_facts(&sum, &one);
		segment_free(&one);
	}
	if (!e) {
		settle(&sum);
		if (b->groups)
			e = fold_segment(j->s, &sum);
	}
	if (!e)
		e = segment_write(j->s, &sum, b->groups ? LEVEL_SMALL : LEVEL_QUICK);
	if (!e)
		e = covered_write(j->s, sum.id, &covered);
	for (size_t i = 0; !e && i < count; i++) {
		e = segment_move_losses(j->s, spans[i], sum.id);
		if (!e)
			e = segment_remove(j->s, spans[i]);
	}
	segment_free(&sum);
	free(groups.slots);
	j->out->merged += e ? 0 : count - 1;
	j->done = true;
	return e;
}

static struct err *merge_bucket(struct job *j)
{
	struct bucket b = {0};
	size_t count = 0;
	struct err *e = find_bucket(j, &b);
	if (e || !b.level)
		return e;
	int64_t *spans = calloc(SPANS_AT_ONCE, sizeof *spans);
	if (!spans)
		return err_new("out of memory");
	e = list_bucket(j, &b, spans, &count);
	if (!e && count)
		e = merge_spans(j, &b, spans, count);
	free(spans);
	return e;
}

/* ---- joining epochs ---- */

/* Two neighbours that are alike, both of which ended long ago, or the second of which only began
   because the first one was full. The newest is left alone: somebody may add to it. */
static const char alike[] =
	"WITH span AS (SELECT epoch, min(start) AS start, max(end) AS end FROM segment"
	"  GROUP BY epoch),"
	" old AS (SELECT e.*, s.start AS first, s.end AS last,"
	"  (SELECT group_concat(event) FROM (SELECT event FROM epoch_event"
	"    WHERE epoch = e.id ORDER BY position)) AS events,"
	"  row_number() OVER (ORDER BY s.start) AS place"
	"  FROM epoch e JOIN span s ON s.epoch = e.id)"
	" SELECT a.id, b.id FROM old a JOIN old b ON b.place = a.place + 1"
	" WHERE a.host = b.host AND a.kernel = b.kernel AND a.machine = b.machine"
	" AND a.cpu = b.cpu AND a.cpus = b.cpus AND a.hz = b.hz AND a.note = b.note"
	" AND a.events IS b.events AND a.nodes + b.nodes <= ?1 AND b.last - a.first <= ?2"
	" AND ((b.continues AND a.compact AND b.compact) OR (a.last <= ?3 AND b.last <= ?3))"
	" AND b.id < (SELECT max(id) FROM epoch)"
	" AND a.id < (SELECT max(id) FROM epoch) ORDER BY a.first LIMIT 1";

/* The paths of the other tree in this one. */
static struct err *move_paths(struct calltree *into, const struct calltree *from, struct segment *x)
{
	uint32_t *to = calloc(from->count, sizeof *to);
	bool *wanted = calloc(from->count, sizeof *wanted);
	bool good = to && wanted;
	for (size_t i = 0; good && i < x->path_count; i++)
		if (x->paths[i].node < from->count)
			wanted[x->paths[i].node] = true;
	for (uint32_t i = from->count; good && i-- > 1;)
		wanted[from->nodes[i].parent] |= wanted[i];
	for (uint32_t i = 1; good && i < from->count; i++) {
		struct pack_node node = from->nodes[i];
		if (!wanted[i])
			continue;
		node.parent = to[node.parent];
		to[i] = calltree_child(into, &node);
		good = to[i] != UINT32_MAX;
	}
	for (size_t i = 0; good && i < x->path_count; i++) {
		uint64_t node = x->paths[i].node;
		x->paths[i].node = node < from->count ? to[node] : 0;
	}
	free(to);
	free(wanted);
	return good ? NULL : err_new("out of memory");
}

static struct err *move_span(struct job *j, int64_t id, int64_t epoch, struct calltree *into,
			     const struct calltree *from)
{
	struct segment x;
	struct covered covered = {0};
	int64_t old = id;
	struct err *e = segment_read(j->s, id, SEGMENT_ALL, &x);
	if (!e)
		e = move_paths(into, from, &x);
	if (!e)
		e = covered_add(j->s, old, &covered);
	if (!e) {
		settle(&x);
		x.epoch = epoch;
		x.level -= x.level > 1; /* so that it is merged with those that are there, and
					   never looks as if it had just been added */
		e = segment_write(j->s, &x, LEVEL_SMALL);
	}
	if (!e)
		e = covered_write(j->s, x.id, &covered);
	if (!e)
		e = segment_move_losses(j->s, old, x.id);
	if (!e)
		e = segment_remove(j->s, old);
	segment_free(&x);
	return e;
}

static struct err *remove_epoch(struct store *s, int64_t epoch)
{
	struct err *e = sql_do(s, "DELETE FROM epoch WHERE id = ?", "d", epoch);
	if (!e)
		e = sql_do(s, "DELETE FROM epoch_event WHERE epoch = ?", "d", epoch);
	return e ? e : sql_do(s, "DELETE FROM node WHERE epoch = ?", "d", epoch);
}

static struct err *join_two(struct job *j, int64_t first, int64_t second)
{
	struct calltree into = {0}, from = {0};
	int64_t id = 1;
	j->s->tree_epoch = 0; /* trees change */
	struct err *e = trees_read(j->s, first, &into);
	uint32_t before = into.count;
	if (!e)
		e = trees_read(j->s, second, &from);
	for (int i = 0; !e && id && i < MOVED_AT_ONCE; i++) {
		e = sql_number(j->s, &id, 0,
			       "SELECT id FROM segment WHERE epoch = ? ORDER BY start LIMIT 1", "d",
			       second);
		if (!e && id)
			e = move_span(j, id, first, &into, &from);
	}
	if (!e)
		e = trees_finish(j->s, first, &into, before);
	calltree_free(&into);
	calltree_free(&from);
	if (e || id)
		return e;
	e = sql_do(j->s,
		   "UPDATE epoch SET joined = joined + (SELECT joined FROM epoch WHERE id = ?)"
		   " WHERE id = ?",
		   "dd", second, first);
	j->out->joined++;
	return e ? e : remove_epoch(j->s, second);
}

static struct err *join_epochs(struct job *j)
{
	sqlite3_stmt *rows;
	bool row = false;
	int64_t first = 0, second = 0;
	int64_t after_ms = (int64_t)j->policy->join_epochs_after_s * 1000;
	struct err *e = sql_prepare(j->s, &rows, alike, "ddd", (int64_t)STORE_EPOCH_NODES_MAX,
				    JOINED_MS, after_ms ? j->now_ms - after_ms : 0);
	if (!e)
		e = sql_step(j->s, rows, &row);
	if (!e && row) {
		first = sqlite3_column_int64(rows, 0);
		second = sqlite3_column_int64(rows, 1);
	}
	sql_done(j->s, rows);
	j->done = !e && row;
	return j->done ? join_two(j, first, second) : e;
}

/* ---- what nobody refers to any more ---- */

static struct err *remove_empty_epochs(struct job *j)
{
	int64_t id;
	struct err *e = sql_number(j->s, &id, 0,
				   "SELECT id FROM epoch WHERE id < (SELECT max(id) FROM epoch) AND"
				   " NOT EXISTS (SELECT 1 FROM segment WHERE epoch = epoch.id)",
				   "");
	j->done = !e && id;
	return j->done ? remove_epoch(j->s, id) : e;
}

/* The first level whose spans know groups only, and nothing that is rare. */
static int64_t group_level(const struct store_policy *policy)
{
	int64_t level = 1;
	while (level <= STORE_LEVELS && policy->levels[level - 1].width_s < GROUP_WIDTH_S)
		level++;
	return level;
}

/* When the oldest span begins, and the oldest that knows processes. */
static struct err *find_oldest(struct job *j, int64_t *oldest, int64_t *fine)
{
	struct err *e = sql_number(j->s, oldest, j->now_ms, "SELECT min(start) FROM segment", "");
	if (!e)
		e = sql_number(j->s, fine, j->now_ms,
			       "SELECT min(start) FROM segment WHERE level < ?", "d",
			       group_level(j->policy));
	return e;
}

/* Processes that only coarse spans could refer to: those know groups. */
static struct err *remove_processes(struct job *j)
{
	int64_t oldest, fine;
	struct err *e = find_oldest(j, &oldest, &fine);
	if (!e)
		e = sql_do(j->s,
			   "DELETE FROM process WHERE id IN (SELECT id FROM process"
			   " WHERE used + ?1 < CASE WHEN pid THEN max(?2, ?3) ELSE ?2 END"
			   " AND NOT EXISTS (SELECT 1 FROM image WHERE image.process = process.id"
			   " AND image.process <> 0)"
			   " LIMIT ?4)",
			   "dddd", STORE_USED_MS, oldest, fine, (int64_t)UNUSED_AT_ONCE);
	j->done = !e && sqlite3_changes(j->s->db) > 0;
	return e;
}

/* Trees of epochs that are over, after their spans became coarse: folding left nodes behind. */
static struct err *compact_trees(struct job *j)
{
	int64_t id = 0;
	struct err *e = sql_number(
		j->s, &id, 0,
		"SELECT id FROM epoch e WHERE NOT compact AND id < (SELECT max(id) FROM epoch)"
		" AND (SELECT count(*) FROM segment WHERE epoch = e.id) BETWEEN 1 AND 400"
		" AND NOT EXISTS (SELECT 1 FROM segment WHERE epoch = e.id AND level < ?) LIMIT 1",
		"d", group_level(j->policy));
	j->done = !e && id;
	return j->done ? fold_compact(j->s, id) : e;
}

/* Code that was made at run time and belongs to one process goes as processes do. */
static struct err *remove_images(struct job *j)
{
	static const char unused[] =
		"WITH unused AS (SELECT id FROM image WHERE used + ?1 <"
		" CASE WHEN kind = ?4 AND (SELECT pid FROM process WHERE id = image.process)"
		" THEN max(?2, ?3) ELSE ?2 END LIMIT 8) ";
	static const char *const from[] = {"DELETE FROM symbol WHERE image IN unused",
					   "DELETE FROM image WHERE id IN unused"};
	int64_t oldest, fine;
	char sql[400];
	struct err *e = find_oldest(j, &oldest, &fine);
	for (size_t i = 0; !e && i < 2; i++) {
		snprintf(sql, sizeof sql, "%s%s", unused, from[i]);
		e = sql_do(j->s, sql, "dddd", STORE_USED_MS, oldest, fine, (int64_t)PROFILE_JIT);
	}
	j->done = !e && sqlite3_changes(j->s->db) > 0;
	return e;
}

/* What nobody refers to goes first: trees and names may be most of the file. The newest span stays, whatever its size. */
static struct err *remove_surplus(struct job *j)
{
	int64_t pages, free_pages, size, spans;
	if (!j->policy->max_bytes)
		return NULL;
	struct err *e = sql_number(j->s, &pages, 0, "PRAGMA page_count", "");
	if (!e)
		e = sql_number(j->s, &free_pages, 0, "PRAGMA freelist_count", "");
	if (!e)
		e = sql_number(j->s, &size, 0, "PRAGMA page_size", "");
	if (!e)
		e = sql_number(j->s, &spans, 0, "SELECT count(*) FROM segment", "");
	if (e || spans < 2 || (uint64_t)((pages - free_pages) * size) <= j->policy->max_bytes)
		return e;
	static struct err *(*const unused[])(struct job *) = {remove_empty_epochs, remove_images,
							      remove_processes};
	for (size_t i = 0; !e && !j->done && i < sizeof unused / sizeof *unused; i++)
		e = unused[i](j);
	return e || j->done ? e : remove_some(j, INT64_MAX, 1);
}

static struct err *give_back(struct job *j)
{
	int64_t pages;
	char sql[64];
	struct err *e = sql_number(j->s, &pages, 0, "PRAGMA freelist_count", "");
	if (e || pages <= PAGES_LEFT)
		return e;
	snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", PAGES_AT_ONCE);
	j->done = true;
	return sql_run(j->s, sql);
}

/* The steps, in the order in which they are tried. */
static struct err *(*const steps[])(struct job *) = {
	remove_old,    remove_surplus,   merge_bucket,  join_epochs, remove_empty_epochs,
	remove_images, remove_processes, compact_trees, give_back,
};

static struct err *do_step(struct job *j)
{
	struct err *e = sql_begin(j->s);
	if (e)
		return e;
	j->done = false;
	e = intern_refresh(j->s);
	for (size_t i = 0; !e && !j->done && i < sizeof steps / sizeof *steps; i++)
		e = steps[i](j);
	return sql_end(j->s, e);
}

/* Epochs that were put together or folded may take more than those that are written ever will. */
static void give_back_tree(struct store *s)
{
	if (s->tree.room <= STORE_EPOCH_NODES_MAX + 2)
		return;
	calltree_free(&s->tree);
	s->tree_epoch = 0;
}

struct err *store_tidy(struct store *s, const struct store_policy *policy, int64_t now_ms,
		       uint64_t most, struct store_tidied *tidied)
{
	struct job j = {s, policy, now_ms, tidied, true};
	s->trouble = STORE_FINE;
	tidied->more = true;
	struct err *e = NULL;
	for (uint64_t i = 0; !e && tidied->more && i < most; i++) {
		e = do_step(&j);
		tidied->more = e || j.done;
		tidied->steps += !e && j.done;
	}
	if (e)
		intern_forget(s); /* what was noted may have been undone */
	give_back_tree(s);
	return e;
}
