/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two views for people share: numbers at the left edge, names, colours. */
#include "annotate/annotate.h"
#include "annotate/show.h"

#define DRAW_RED "\033[31m"
#define DRAW_YELLOW "\033[33m"
#define DRAW_CYAN "\033[36m"
#define DRAW_BOLD "\033[1m"
#define DRAW_DIM "\033[2m"
#define DRAW_PLAIN "\033[0m"

#define DRAW_MARGIN 27 /* columns of the numbers */

struct drawing {
	const struct annotation *a;
	const struct annotate_show *o;
	struct buf *out;
	uint64_t base; /* samples that are 100 % */
};

void draw_start(struct drawing *d, const struct annotation *a, const struct annotate_show *o,
		struct buf *out);

/* The title of the whole, and the titles of the numbers. */
void draw_title(struct drawing *d);

/* The escape sequence, or "" without colour. */
const char *draw_style(const struct drawing *d, const char *sequence);

/* The numbers of a row: what is 0 is left blank. */
void draw_numbers(struct drawing *d, uint64_t total, uint64_t self);
/* Only a total, of a heading. */
void draw_total(struct drawing *d, uint64_t total);
void draw_blank(struct drawing *d);

/* Foreign text; at most up to the last column, of which `used` are taken. */
void draw_text(struct drawing *d, const char *text, size_t size, size_t used);
/* The name of a context, shortened unless full names are wanted. Returns its columns. */
size_t draw_name(struct drawing *d, const char *name, size_t columns);
/* "file.c:12"; without the line where it is 0. */
void draw_place(struct drawing *d, const char *file, uint32_t line);

bool draw_is_hot(const struct drawing *d, uint64_t total);
const char *draw_file_of(const char *path);
