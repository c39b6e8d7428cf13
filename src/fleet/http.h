/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One question to a server over http or https, and its answer, by libcurl. Proxies are those of the environment
 * (http_proxy, https_proxy, no_proxy). What a server says is foreign: answers are bounded, and redirections are not
 * followed. Nothing waits for ever: each step has its time, all of them together have one, what moves has a least
 * pace, and a descriptor can end all of it.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define HTTP_HEAD_MAX 16384    /* bytes of an answer that are not its body */
#define HTTP_REFUSAL_MAX 65536 /* bytes that are read of why something is refused */

/* The least of a request or an answer that must have moved, once it moves: anything slower is given up. */
#define HTTP_PACE_BYTES 32768
#define HTTP_PACE_MS 30000

#define HTTP_HEADERS_MAX 4

struct http_request {
	const char *url;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; NULL: no more */
	const void *body;                      /* NULL: GET, else POST */
	size_t body_size;
	const char *ca; /* file with the certificates to trust; NULL: those of the system */
	int connect_ms, silent_ms; /* how long it may take; how long nothing may come or go */
	int64_t total_ms;          /* how long all of it may take, however busy it looks */
	int stop;                  /* a descriptor that gets readable to give up; -1: none */
};

/* Start with {.body_max = …}; free `body`. */
struct http_answer {
	size_t body_max; /* a longer one is an error; of one that is no 200 the rest is left alone */
	int status;
	struct buf body;
};

/* Sends it and reads the answer, whatever its status is. */
struct err *http_ask(const struct http_request *request, struct http_answer *answer);

/* Appends the text as it stands in a URL after "name=". */
void http_escape(struct buf *out, const char *text);
