/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What could be done about functions that allocate (record -e alloc), in plain words. It is told for the program's own
 * code: what allocators, the C library and templates of the C++ library allocate is that of the function that has called
 * them. The page tells the same of places in what is selected (view/web/memory.js), by the same rules.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct buf;
struct err;
struct json;

#define MEMORY_HINTS_MAX 3u /* functions */

struct memory_hint {
	uint32_t scope;
	uint64_t calls; /* allocations */
	char *text;     /* sentences */
};

struct memory_hints {
	struct memory_hint all[MEMORY_HINTS_MAX]; /* the one with the most calls first */
	size_t count;
	bool recorded; /* there are allocations */
};

/* `threads`: which count; NULL: all. */
struct err *memory_hints_make(const struct attribution *attribution, const bool *threads,
			      struct memory_hints *out);
void memory_hints_free(struct memory_hints *hints);

/* Appends a paragraph for each, after an empty line. */
void memory_hints_print(const struct memory_hints *hints, const struct attribution *attribution,
			struct buf *out);
/* The member "hints" of the JSON object that is open: [{"name","file","text"}]; nothing if there are no
   allocations. */
void memory_hints_json(const struct memory_hints *hints, const struct attribution *attribution,
		       struct json *out);
/* The member "memoryRules" of the JSON object that is open: when a hint is given, and its words. */
void memory_rules_json(struct json *out);
