/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The head of an HTTP/1.1 request, as much of it as view/serve.c needs. Foreign
 * bytes: whatever is not exactly as it should be is refused.
 */
#include <stdbool.h>
#include <stddef.h>

#define REQUEST_MAX 8192 /* bytes of a head */

struct request {
	const char *path, *host, *match; /* match: If-None-Match; in `bytes`, not ended by a 0 */
	size_t path_size, host_size, match_size;
	bool close;  /* the client wants no more than this answer */
	size_t size; /* of the head */
};

/* 200 where a whole request to GET something is there; 0 where more has to come; else the status that
   refuses it. Hosts are as sent; a request without one is refused. */
int request_parse(const char *bytes, size_t size, struct request *out);
