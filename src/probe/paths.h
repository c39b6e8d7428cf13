/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A call path for people: its functions, the innermost first. show.c and findings.c use it. */
#include <stdint.h>

struct buf;
struct json;
struct modules;
struct profile;

/* Returns the short name of a frame; the caller frees it. NULL: it is none, or there is no memory. */
char *path_frame(const struct profile *profile, struct modules *modules, uint32_t node);
/* Returns the name of the function that has called the innermost; the caller frees it. NULL: nobody has. */
char *path_caller(const struct profile *profile, struct modules *modules, uint32_t node);
/* Appends the path in one line. */
void path_print(const struct profile *profile, struct modules *modules, uint32_t node,
		struct buf *out);
/* Writes "frames" into the object that is open. */
void path_json(const struct profile *profile, struct modules *modules, uint32_t node,
	       struct json *out);
