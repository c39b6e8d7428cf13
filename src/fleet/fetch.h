/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a server says, in the shapes that store/read.h has: so whatever shows a
 * database file shows a server, too.
 */
#include <stdbool.h>

#include "store/read.h"

struct server;

/* The epochs of all hosts, with their sums. They are numbered by when they began. */
struct err *fetch_epochs(struct server *server, struct read_epochs *out);

/* The samples of a choice as a database in memory, to be asked for the same choice: sums of each epoch, which the
   server makes, all of them in the first span of the epoch. Call paths only where they are wanted. */
struct err *fetch_store(struct server *server, const struct read_choice *choice, bool paths,
			struct store **out);

/* Lets the server run a SELECT on its views. */
struct err *fetch_sql(struct server *server, const char *sql, read_row *row, void *context);

/* Removes all days that were over before this time, for good; *days says how many. */
struct err *fetch_prune(struct server *server, int64_t before_ms, uint64_t *days);
