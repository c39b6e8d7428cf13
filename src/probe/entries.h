/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions by the source line on which they begin. choose.c uses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct probe_module;

struct entry_line { /* what somebody has written: "parse.c:120" */
	const char *file;
	size_t length;
	uint32_t line;
};

/* Whether the text is a source line. "a::b" is none. */
bool entry_line_parse(const char *text, struct entry_line *out);
/* Sets where a function of the module begins that begins on this line, or on one of the next; 0: none does. *before is raised to the last line
   until there on which one begins, which *name then names; that is the module's. */
struct err *entry_line_find(struct probe_module *module, const struct entry_line *at,
			    uint64_t *address, uint32_t *before, const char **name);
