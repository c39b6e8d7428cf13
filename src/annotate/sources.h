/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The text of source files, found by the paths that debug information has for
 * them: by the maps of paths that the user gave, as the path is, then below
 * folders of sources. Paths and texts are foreign: only regular files of a
 * bearable size are read, and what would move a terminal's cursor is not passed
 * on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct sources;
struct source_text;

struct sources_options {
	const char *const *maps; /* "FROM=TO": a path that begins with FROM is looked for at TO */
	size_t map_count;
	/* Of a path a/b/c.c: DIR/a/b/c.c, else DIR/b/c.c, else DIR/c.c, in the first DIR with any. */
	const char *const *dirs;
	size_t dir_count;
	const char *directory; /* what relative paths are also looked for in; NULL: none */
	const char *binary;    /* of which the sources are: newer ones may differ; NULL: none */
};

/* What `options` points to must outlive the result. */
struct err *sources_open(const struct sources_options *options, struct sources **out);
void sources_close(struct sources *sources); /* NULL is fine */

/* The text of a file, owned by `sources`; NULL where it is not found or cannot be used. */
const struct source_text *sources_find(struct sources *sources, const char *path);
/* The same for text that only goes with something else: sources_notes does not tell of it. */
const struct source_text *sources_glance(struct sources *sources, const char *path);

/* Lines count from 1. NULL where there is none; else without the line's end, *size bytes. */
const char *source_line(const struct source_text *text, uint32_t line, size_t *size);
uint32_t source_line_count(const struct source_text *text);

/* Appends a line for each way in which files were not found, or may not be the right ones, each
   file named once. Returns how many. */
unsigned sources_notes(const struct sources *sources, struct buf *out);

/* Appends foreign text for a terminal: tabs become spaces, as if it began in a column that is a
   multiple of 8; UTF-8 stays; what is not printable becomes "?". At most `columns` are used (0: any
   number), the last one for "…" where it was cut. Returns how many columns it took. */
size_t source_put_clean(struct buf *out, const char *text, size_t size, size_t columns);
