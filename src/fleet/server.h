/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ClickHouse server that keeps the samples of many hosts, by its address:
 *
 *    http://HOST[:PORT][/DATABASE]      port 8123 (https: 8443), database "culprit" by default
 *
 * Who we are for it is not in the address, so that it is in no list of
 * processes and in no log: $CULPRIT_DB_USER and $CULPRIT_DB_PASSWORD say it, or
 * a file that only its owner may read, with lines "user = …" and "password = …".
 */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct server;

#define SERVER_ANSWER_MAX ((size_t)1 << 20) /* bytes of an answer that is small by its nature */
#define SERVER_ROWS_MAX \
	((size_t)256 << 20) /* of one with rows; STORE_MEMORY_ROWS_MAX of them fit */

/* Is this the address of a server, not the name of a file? */
bool server_is_address(const char *text);

struct server_trust {
	const char *credentials; /* such a file; NULL: $CULPRIT_DB_CREDENTIALS, if that is set */
	const char *
		ca; /* a file with certificates of those who sign a server's; NULL: $CULPRIT_DB_CA, if that is set,
			   else those of the system */
};

/* `trust` may be NULL. Nothing is asked yet. */
struct err *server_open(const char *address, const struct server_trust *trust, struct server **out);
void server_close(struct server *server); /* NULL is fine */

/* The address as people may see it. */
const char *server_name(const struct server *server);
/* The name of its database, quoted for SQL. */
const char *server_database(const struct server *server);
/* Gives up what it is at when the descriptor gets readable; and how long it may say nothing. */
void server_set_patience(struct server *server, int stop, int silent_ms);

/* Asks it something; *answer is replaced by what it says, in the format that the question asks for.
   An answer that is longer than SERVER_ANSWER_MAX is an error. */
struct err *server_ask(struct server *server, const char *sql, struct buf *answer);
/* The same where many rows are the answer: SERVER_ROWS_MAX. */
struct err *server_ask_rows(struct server *server, const char *sql, struct buf *answer);
/* As many for a question of somebody else: the server itself refuses to do more than read. Names of
   tables are those of its database. */
struct err *server_ask_reading(struct server *server, const char *sql, struct buf *answer);
/* "INSERT INTO … FORMAT …" with what is to be inserted. */
struct err *server_insert(struct server *server, const char *sql, const void *bytes, size_t size);

/* Appends a text as SQL has it, in quotes. */
void server_quote(struct buf *out, const char *text);

/* Makes database, tables and views where they are not there. */
struct err *server_prepare(struct server *server);
/* Whether they are there, as this version knows them. */
struct err *server_check(struct server *server);
