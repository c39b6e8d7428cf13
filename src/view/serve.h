/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small web server for one user's browser on the same machine: on 127.0.0.1
 * alone, everything behind a random token in the path, and only for requests
 * that mean this host (a name that an attacker has made point here is another one).
 * Clients are bounded in number, bytes and time.
 *
 *     serve_open(0, &s);
 *     puts(serve_url(s));
 *     for (;;) { poll(serve_fd(s), …, SERVE_TICK_MS); serve_handle(s, find, context); }
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct serve;

#define SERVE_TICK_MS 1000 /* serve_handle is to be called that often, too */

/* Bytes that are kept as long as somebody is still being sent them. */
struct serve_body;
/* Takes the bytes over; NULL without memory. The first reference is the caller's. */
struct serve_body *serve_body_new(struct buf *bytes);
void serve_body_drop(struct serve_body *body); /* NULL is fine */

struct serve_answer {
	struct serve_body *body; /* NULL: there is no such thing */
	const char *type;        /* "text/html; charset=utf-8" */
	uint64_t version;        /* sent as its ETag; 0: none. Who has it already gets no bytes */
	const char *state;       /* sent as Culprit-State; NULL: not sent */
};
/* What is at a name ("", "data"); the body stays the finder's. */
typedef void serve_find(void *context, const char *name, struct serve_answer *out);

/* Port 0: any that is free. */
struct err *serve_open(uint16_t port, struct serve **out);
void serve_close(struct serve *serve); /* NULL is fine */
/* "http://127.0.0.1:40123/0123456789abcdef0123456789abcdef/" */
const char *serve_url(const struct serve *serve);
/* An address for the arguments of a program that opens it, which every user can read: it has a pass instead of the
   token, which leads to that one for so long, and only connections of our own user. Not used up at once, since some
   programs look at an address before they hand it to a browser. "" without random numbers. */
const char *serve_pass(struct serve *serve, uint64_t ms);
int serve_fd(const struct serve *serve);
void serve_handle(struct serve *serve, serve_find *find, void *context);
