/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder know of a store and nobody else does. */
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pack.h"
#include "store/store.h"
#include "store/calltree.h"

/* The file's marks: "CLPD", and which version of the schema it has. */
#define STORE_APPLICATION 0x434c5044
#define STORE_VERSION 3

/* Nodes that a tree in the file may have: folding adds to those that intervals may. */
#define TREE_NODES_MAX (4 * STORE_EPOCH_NODES_MAX)

/* When something was last sampled is noted to the hour, so that not each interval writes it. */
#define STORE_USED_MS INT64_C(3600000)

/* zstd levels: of an interval, which must cost little, and of what stays. */
#define LEVEL_QUICK 3
#define LEVEL_SMALL 19

/* The functions that the file has, so that nobody asks it for each in each interval. */
struct known {
	struct known_slot *slots; /* a power of two */
	size_t room, count;
};

struct watched_file {
	bool there;
	uint64_t device, inode, size;
	int64_t written_ns; /* when it was last written to */
};

struct watched { /* how the files looked after our last change: watch.c */
	bool noted;
	int64_t version; /* PRAGMA data_version */
	struct watched_file file, log;
};

#define KEPT_MAX 48
struct kept { /* statements for the next one who asks the same: sql.c */
	struct kept_item {
		uint64_t hash;
		sqlite3_stmt *statement;
	} items[KEPT_MAX];
	size_t count;
};

struct store {
	sqlite3 *db;
	struct kept kept;
	char *path;
	bool writes;
	uint32_t rows_max, nodes_max; /* of an interval; that adding may make of an epoch */
	enum store_trouble trouble;
	int64_t seen_version; /* PRAGMA data_version: others have changed the file where it differs */
	struct watched watched;
	/* What is known of the file, for who adds. */
	struct known symbols;
	struct calltree tree; /* of tree_epoch */
	int64_t tree_epoch;
	struct epoch_events {
		int64_t epoch, ids[STORE_EVENT_MAX];
		size_t count;
	} events;
};

/* sql.c. Statements: errors name the file. */

/* What SQLite says about the last call that failed, and notes the kind of trouble. */
struct err *sql_error(struct store *store, const char *doing);
struct err *sql_run(struct store *store, const char *sql); /* without results */
/* Prepares it and binds the values: d int64_t, u uint64_t, s const char *, b const struct buf * (it
   must stay), as `types` says. sql_done by the caller: it is kept for the next one who asks the
   same; NULL is fine. */
struct err *sql_prepare(struct store *store, sqlite3_stmt **out, const char *sql, const char *types,
			...);
void sql_done(struct store *store, sqlite3_stmt *statement);
void sql_forget(struct store *store); /* what is kept */
/* The next row; *row false at the end. */
struct err *sql_step(struct store *store, sqlite3_stmt *statement, bool *row);
/* Runs it to its end. */
struct err *sql_do(struct store *store, const char *sql, const char *types, ...);
/* The first column of the first row; `otherwise` where there is none. */
struct err *sql_number(struct store *store, int64_t *out, int64_t otherwise, const char *sql,
		       const char *types, ...);
/* A column as text, never NULL. */
const char *sql_text(sqlite3_stmt *statement, int column);

/* Begins to write, or ends it: undone where `e` is an error, which is returned. */
struct err *sql_begin(struct store *store);
struct err *sql_end(struct store *store, struct err *e);

/* watch.c: notes how the files look now. */
void watch_note(struct store *store);

/* ---- schema.c ---- */

struct schema_step { /* from the version before to the next */
	const char *sql;
};
/* Makes or migrates the tables: steps[i] leads from version i to i + 1. */
struct err *schema_make(struct store *store, const struct schema_step *steps, int64_t count);
extern const struct schema_step schema_steps[STORE_VERSION];

/* intern.c: the numbers in the database, made where it does not know them yet. */

struct numbers {
	int64_t *images, *processes; /* by number in the interval; malloc'ed */
};
struct err *intern_all(struct store *store, const struct store_interval *interval,
		       struct numbers *out);
/* The group that a process belongs to. */
struct err *intern_group(struct store *store, int64_t process, int64_t *group);
struct err *intern_event(struct store *store, const struct store_event *event, int64_t *id);
/* Forgets what was kept in memory; intern_refresh where another process has changed the file. */
void intern_forget(struct store *store);
struct err *intern_refresh(struct store *store);

/* trees.c: the tree of an epoch in the file. */

/* Reads it into store->tree. */
struct err *trees_load(struct store *store, int64_t epoch);
struct err *trees_read(struct store *store, int64_t epoch, struct calltree *out);
/* Writes the nodes from `first` on; those before are in the file. The first at little cost, for a tree to which
   more is added soon; the second as small as can be. */
struct err *trees_append(struct store *store, int64_t epoch, const struct calltree *tree,
			 uint32_t first);
struct err *trees_finish(struct store *store, int64_t epoch, const struct calltree *tree,
			 uint32_t first);

/* segments.c: the spans of time. */

struct segment {
	int64_t id, epoch, start_ms, end_ms, level, intervals;
	struct store_cost cost;
	struct pack_count *counts;
	size_t count_count;
	struct pack_path *paths;
	size_t path_count;
};
/* Reads one, with these of its rows. segment_free in any case. */
enum segment_rows { SEGMENT_COUNTS = 1, SEGMENT_PATHS = 2, SEGMENT_ALL = 3 };
struct err *segment_read(struct store *store, int64_t id, enum segment_rows rows,
			 struct segment *out);
void segment_free(struct segment *segment);
/* Writes it as a new one and sets its id: rows are settled; totals are made of them. */
struct err *segment_write(struct store *store, struct segment *segment, int level);
/* Packs its paths again, in the place of those that it had. */
struct err *segment_replace_paths(struct store *store, struct segment *segment);
struct err *segment_add_loss(struct store *store, int64_t segment, int kind, const char *reason,
			     uint64_t samples);
/* Its losses become another's. */
struct err *segment_move_losses(struct store *store, int64_t from, int64_t to);
struct err *segment_remove(struct store *store, int64_t id);

/* fold.c: what is rare in long spans, and what trees have too much. */

/* Folds the rows of a span that is to be written. */
struct err *fold_segment(struct store *store, struct segment *segment);
/* Takes nodes out of an epoch's tree that none of its spans refers to. */
struct err *fold_compact(struct store *store, int64_t epoch);

/* packed.c: what is packed as tables for SQL: packed_counts(segment), packed_paths(segment) and
   packed_nodes(epoch). */
struct err *packed_register(struct store *store);
