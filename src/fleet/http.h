/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * As much of HTTP/1.1 as it takes to ask a server something and to read its
 * answer: one request, one connection. What a server says is foreign: heads and
 * bodies are bounded, and whatever is not as it should be is refused.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define HTTP_HEAD_MAX 16384    /* bytes of an answer before its body */
#define HTTP_REFUSAL_MAX 65536 /* bytes that are read of why something is refused */

/* The least of a request or an answer that must have moved, once it moves: anything slower is given up. */
#define HTTP_PACE_BYTES 32768
#define HTTP_PACE_MS 30000

/* An answer as it comes in. Start with {.body_max = …}. */
struct http_answer {
	size_t body_max; /* a longer one is an error; of one that is no 200 the rest is left alone */
	int status;
	struct buf body;
	/* How far it is */
	struct buf line;  /* one that has not ended yet */
	size_t head_size; /* bytes of lines, also of those between pieces of the body */
	enum http_state {
		HTTP_STATUS,
		HTTP_HEAD,
		HTTP_SIZED,   /* `left` bytes of body */
		HTTP_UNSIZED, /* body until the connection ends */
		HTTP_CHUNK,   /* a line with the size of a piece */
		HTTP_PIECE,   /* `left` bytes of it */
		HTTP_PIECE_END,
		HTTP_TRAILER,
		HTTP_WHOLE,
	} state;
	uint64_t left;
	bool chunked, sized;
};

/* The next bytes; what comes after the whole answer is left alone. */
struct err *http_feed(struct http_answer *answer, const char *bytes, size_t size);
/* The connection has ended: an error where the answer has not. */
struct err *http_end(struct http_answer *answer);
void http_answer_free(struct http_answer *answer);

struct http_request {
	const char *method; /* "POST" */
	const char *host, *port;
	const char *target;  /* "/?query=…" */
	const char *headers; /* lines that end in CR LF, or "" */
	const void *body;
	size_t body_size;
	int connect_ms, silent_ms; /* how long it may take; how long nothing may come or go */
	int64_t total_ms;          /* how long all of it may take, however busy it looks */
	int stop;                  /* a descriptor that gets readable to give up; -1: none */
};

/* Sends it and reads the answer, whatever its status is. */
struct err *http_ask(const struct http_request *request, struct http_answer *answer);
/* The same on a connection that is there. */
struct err *http_talk(int fd, const struct http_request *request, struct http_answer *answer);

/* Appends the text as it stands in a target after "name=". */
void http_escape(struct buf *out, const char *text);
