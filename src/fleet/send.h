/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sends spans of a database to a server, each of them whole or, for whoever
 * reads there, not at all, and none of them twice: see fleet/schema.c.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct sender;
struct server;
struct store;
struct unsent_span;

/* `source` is the database file's number (store/unsent.h). */
struct err *sender_open(struct server *server, uint64_t source, struct sender **out);
void sender_close(struct sender *sender); /* NULL is fine */

/* The day that a span is of; those of one call must be of the same. */
uint16_t sender_day(int64_t start_ms);

/* Sends those that the server has not got yet; after an error, send the same again. The first of them says that
   so many samples before it were given up. *count becomes less where the server has another span of the same source
   and number as the next one: the file has gone back in time, and must become another source. */
struct err *sender_send(struct sender *sender, struct store *store, const struct unsent_span *spans,
			size_t *count, uint64_t given_up);
