/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was counted of paths, as text and as JSON. */
#include <stdint.h>

struct buf;
struct err;
struct json;
struct path_result;

struct path_show {
	uint64_t limit; /* paths of a function; 0: all, of all functions */
	const char *
		name; /* begins the first line, as "culprit: "; as many spaces begin those that belong to it */
	const char *notes; /* lines that come after those; NULL: none */
};

/* Appends what does not add up, and a summary. */
struct err *path_show_summary(const struct path_result *result, const struct path_show *show,
			      struct buf *out);
/* Appends what does not add up, a summary, the functions, and the paths of the costliest ones. */
struct err *path_show_text(const struct path_result *result, const struct path_show *show,
			   struct buf *out);
/* Writes "functions" and "checks" into the object that is open. */
struct err *path_show_json(const struct path_result *result, const struct path_show *show,
			   struct json *out);
