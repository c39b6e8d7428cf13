/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/lines.h"
#include "image/symbols.h"
#include "probe/modules.h"

/* The first instruction may be of the first statement. So many lines may be before it, from the name of the function on. */
#define HEAD_LINES 3

bool entry_line_parse(const char *text, struct entry_line *out)
{
	const char *colon = strrchr(text, ':');
	char *end;
	if (!colon || colon == text || colon[-1] == ':' || colon[1] < '1' || colon[1] > '9')
		return false;
	unsigned long line = strtoul(colon + 1, &end, 10);
	*out = (struct entry_line){text, (size_t)(colon - text), (uint32_t)line};
	return !*end && line <= UINT32_MAX;
}

/* Whether a path ends with what was written, at whole names. */
static bool is_file(const char *path, const struct entry_line *at)
{
	size_t length = path ? strlen(path) : 0;
	if (length < at->length || memcmp(path + length - at->length, at->file, at->length))
		return false;
	return length == at->length || path[length - at->length - 1] == '/' || *at->file == '/';
}

/* Returns the line on which the code at this address begins, if it is of the file; 0: it is not. */
static uint32_t line_at(struct lines *lines, uint64_t address, const struct entry_line *at)
{
	struct line_row *rows = NULL;
	size_t count = 0;
	struct err *e = lines_range(lines, address, address + 1, &rows, &count);
	uint32_t line = !e && count && is_file(lines_file(lines, rows[0].file), at) ? rows[0].line
										    : 0;
	err_free(e);
	free(rows);
	return line;
}

struct err *entry_line_find(struct probe_module *m, const struct entry_line *at, uint64_t *address,
			    uint32_t *before, const char **name)
{
	const struct symbol *all;
	struct lines *lines = NULL;
	struct err *e = probe_module_open(m);
	if (!e)
		e = lines_open(m->image, NULL, &lines);
	size_t count = e ? 0 : symbols_all(m->symbols, &all);
	uint32_t best = at->line + HEAD_LINES + 1;
	*address = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t line = line_at(lines, all[i].address, at);
		if (line >= at->line && line < best) {
			best = line;
			*address = all[i].address;
		}
		if (line > *before && line < at->line) {
			*before = line;
			*name = all[i].name;
		}
	}
	lines_close(lines);
	return e;
}
