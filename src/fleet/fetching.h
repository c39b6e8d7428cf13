/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files that fetch have in common. */
#include "base/buf.h"
#include "fleet/fetch.h"
#include "fleet/rowbinary.h"

/* Spans that count, each once: see fleet/schema.c. `where` chooses among them, or is "". */
void fetch_put_named(struct buf *sql, struct server *server, const char *where);
/* Asks for rows; an error of memory in the question is told, too. Frees the question. */
struct err *fetch_rows(struct server *server, struct buf *sql, struct buf *answer,
		       struct rowbinary *rows);
/* Frees the answer; an error where it made no sense. */
struct err *fetch_end(struct server *server, struct err *e, struct buf *answer,
		      const struct rowbinary *rows);

/* What the server calls an epoch. */
struct fetched_key {
	uint64_t source, epoch;
};
/* All epochs, with what they are called. */
struct err *fetch_all_epochs(struct server *server, struct read_epochs *out,
			     struct fetched_key **keys);
struct err *fetch_read_epoch(struct rowbinary *rows, struct profile *strings,
			     struct read_epoch *out, struct fetched_key *key);
/* Each row of an answer in TabSeparatedWithNamesAndTypes, which it changes. */
struct err *fetch_table(struct buf *answer, read_row *row, void *context);
/* Room for one more. */
void *fetch_room(void *items, size_t count, size_t size);
/* Three lists of the same length, appended: kinds, reasons, samples. */
struct err *fetch_losses(struct rowbinary *rows, struct profile *strings, struct store_loss **list,
			 size_t *count);

/* Three lists of a span: samples, and how much of the time they were counted. Added to those of its
   epoch (NULL: nobody's), of which there were `before` samples of each event. */
void fetch_coverage(struct rowbinary *rows, struct read_epoch *epoch, uint64_t *before);

struct fetched_count {
	uint32_t epoch;         /* place */
	struct store_count row; /* numbers are places + 1 in the arrays of all; 0: none */
};
struct fetched_path {
	uint32_t epoch;
	struct store_path row;
};
struct fetched_span {
	uint32_t epoch;
	struct store_interval row;
};

/* What a choice has, of all epochs. */
struct fetched {
	struct read_epochs epochs;
	struct fetched_key *keys;
	struct profile *strings; /* = epochs.strings */
	struct store_image *images;
	struct store_process *processes;
	struct store_symbol *symbols;
	struct store_node *nodes; /* parents come first */
	struct fetched_count *counts;
	struct fetched_path *paths;
	struct fetched_span *spans;
	size_t image_count, process_count, symbol_count, node_count, count_count, path_count,
		span_count;
};
/* Puts it into a store, epoch by epoch; orders the arrays of `f` by epoch. */
struct err *fetched_add(struct fetched *f, struct store *store);
