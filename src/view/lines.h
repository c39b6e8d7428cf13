/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The source lines of a recording. Line 0 is "not known". Each has `self`, the
 * samples in its own instructions, and `total`, those in what it called, too;
 * in recursion a sample counts once.
 */
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct err;
struct modules;
struct profile;
struct strings;

struct view_line {
	uint32_t file; /* its text */
	uint32_t line;
};

struct lines {
	struct view_line *all;
	size_t count, room;
	size_t metric_count;
	uint64_t *self, *total; /* [line * metric_count + metric] */
	uint32_t *of_node;      /* of the profile: where its own samples are */
	struct lookup by_place;
};

/* The modules must have been asked about the profile's nodes (modules_prepare). */
struct err *lines_make(const struct profile *profile, const struct modules *modules,
		       struct strings *strings, struct lines *out);
void lines_free(struct lines *lines);

/* The number of a line; 0: it has none. */
uint32_t lines_find(const struct lines *lines, struct strings *strings, const char *file, int line);
