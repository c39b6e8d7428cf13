/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's side of the database: epochs begin, intervals go in, old ones are
 * tidied. Only one writer has a database; a file beside it is locked meanwhile.
 * Where the disk is full or somebody else writes for long, one interval is kept
 * until it can be added; what comes meanwhile must stay where it is. A database that
 * is found damaged is put aside under another name, one that was removed or moved is
 * gone, and another one begins in its place; nothing is written into what is not ours.
 */
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct err;
struct interval;
struct writer;

/* Makes the database where there is none, and the folder that it is in. */
struct err *writer_open(const char *path, struct writer **out);
void writer_close(struct writer *writer); /* NULL is fine */

/* From now on intervals are of another epoch; its attributes are kept for when one is full. On an
   error the one before goes on. */
struct err *writer_begin(struct writer *writer, const struct store_epoch *epoch);
int64_t writer_epoch(const struct writer *writer);
/* When what is stored ends; INT64_MIN: nothing is. */
struct err *writer_newest(struct writer *writer, int64_t *end_ms);

enum writer_result {
	WRITER_STORED,
	WRITER_WAITS, /* no room, or busy: the interval is kept, try writer_retry later */
	WRITER_BROKEN /* damaged, and cannot be put aside: nothing more can be done */
};

/* Takes the interval, with its times set. There must be none that waits. */
enum writer_result writer_add(struct writer *writer, struct interval *interval);
bool writer_waits(const struct writer *writer);
enum writer_result writer_retry(struct writer *writer);
/* Why it waits, or is broken; "" where all is well. */
const char *writer_problem(const struct writer *writer);
/* WRITER_BROKEN was said, or would be. */
bool writer_is_broken(const struct writer *writer);
/* What has happened to the database since this was asked last, NULL: nothing. The caller frees it. */
char *writer_news(struct writer *writer);
/* Samples that had to be given up meanwhile: they are in the next interval as lost. */
void writer_lose(struct writer *writer, uint64_t samples);
/* Of those, and the one that waits: what nobody will hear of when the writer is closed now. */
uint64_t writer_unsaved(const struct writer *writer);

/* Spans wait to be sent to a server from now on, or they do not any more (store/unsent.h). */
struct unsent_state;
struct err *writer_send_begin(struct writer *writer, const char *machine, struct unsent_state *out);
struct err *writer_send_note(struct writer *writer, const struct unsent_state *state);
struct err *writer_send_end(struct writer *writer);

/* One small step of what is due. *more: there may be another. */
struct err *writer_tidy(struct writer *writer, const struct store_policy *policy, int64_t now_ms,
			bool *more);
