/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of `culprit db` and profiles named db: read from: a file, or a server by its address. */
#include "base/err.h"
#include "cmd/db.h"
#include "fleet/fetch.h"
#include "fleet/server.h"

#include <stdlib.h>
#include <string.h>

struct err *db_open(const char *file, const struct read_choice *choice, bool paths,
		    struct store **out)
{
	struct server *server;
	*out = NULL;
	if (!server_is_address(file))
		return store_open(file, STORE_READ, out);
	struct err *e = server_open(file, NULL, &server);
	if (!e)
		e = fetch_store(server, choice, paths, out);
	server_close(server);
	return e;
}

/* Of a file as of a server. */
static void keep_host(struct read_epochs *x, const char *host)
{
	size_t kept = 0;
	for (size_t i = 0; i < x->count; i++) {
		if (!strcmp(x->items[i].host, host)) {
			x->items[kept++] = x->items[i];
			continue;
		}
		free(x->items[i].totals);
		free(x->items[i].losses);
	}
	x->count = kept;
}

/* Opens one of the two. */
static struct err *open_either(const char *file, struct server **server, struct store **store)
{
	*server = NULL;
	*store = NULL;
	return server_is_address(file) ? server_open(file, NULL, server)
				       : store_open(file, STORE_READ, store);
}

struct err *db_epochs(const char *file, const char *host, struct read_epochs *out)
{
	struct server *server;
	struct store *store;
	struct err *e = open_either(file, &server, &store);
	if (!e)
		e = server ? fetch_epochs(server, out) : read_epochs(store, out);
	if (!e && host)
		keep_host(out, host);
	server_close(server);
	store_close(store);
	return e;
}

struct err *db_sql(const char *file, const char *sql, read_row *row, void *context)
{
	struct server *server;
	struct store *store;
	struct err *e = open_either(file, &server, &store);
	if (!e)
		e = server ? fetch_sql(server, sql, row, context)
			   : read_sql(store, sql, row, context);
	server_close(server);
	store_close(store);
	return e;
}
