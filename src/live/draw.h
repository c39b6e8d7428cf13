/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A board (live/board.h) as lines of text: as many as the terminal has, with
 * what is selected; or plain for a pipe.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/board.h"

struct buf;
struct json;

/* How rows are ordered and which are shown. */
struct order {
	bool by_total;         /* else by self */
	bool by_all;           /* since the beginning, else in the last interval */
	const regex_t *filter; /* of names; NULL: none */
};

/* The rows that are shown, in order: malloc'ed, NULL without memory. */
const struct board_row **order_rows(const struct board *board, const struct order *order,
				    size_t *count);

struct picture {
	unsigned width, height;
	bool colour, utf8;
	const struct board *board; /* NULL: there is none yet */
	const struct board_row *const *rows;
	size_t row_count;
	size_t selected, first; /* the row that is selected, and the uppermost that is shown */
	const struct order *order;
	const char *title;   /* what is looked at */
	const char *state;   /* "recording", "ended", … */
	bool warned;         /* the state is none to be glad of */
	const char *message; /* the last line; NULL: what the keys are */
	bool help, path;     /* shown instead of rows; below rows */
};

/* Appends exactly height lines. */
void draw_picture(const struct picture *picture, struct buf *out);
/* How many rows of the board there is room for. */
size_t draw_room(const struct picture *picture);

/* For pipes: the recording in a line, titles, rows (at most `limit`; 0: all), an empty line. */
void print_board(const struct board *board, const struct order *order, const char *state,
		 uint64_t limit, struct buf *out);
/* One object (doc/culprit-top.1.md). */
void print_json(const struct board *board, const struct order *order, const char *state,
		uint64_t limit, struct json *out);

/* What the columns of a row have: per cent of the interval or of all. */
double share_of(uint64_t part, uint64_t whole);
/* "83.1%" of a CPU for clocks, "1 234/s" for others, in the last interval; "" where there is none. */
const char *rate_text(const struct board *board, uint64_t samples, char *out, size_t size);
const char *by_title(enum board_by by);
