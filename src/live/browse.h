/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What somebody looks at in the terminal: keys change it, a picture is drawn
 * of it (live/draw.h). What is selected stays so when a newer board comes.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/draw.h"
#include "live/board.h"

#define BROWSE_TEXT_MAX 200

struct browse {
	struct board_wish wish;
	struct order order;
	bool paused, help, path, quit;
	double interval; /* seconds */
	bool typing;     /* a filter */
	char typed[BROWSE_TEXT_MAX], filter[BROWSE_TEXT_MAX];
	regex_t regex;
	bool has_regex;
	char message[BROWSE_TEXT_MAX + 64]; /* for the last line; "": none */
	char last[BROWSE_TEXT_MAX + 128];   /* what the picture shows there */
	struct board *board;                /* NULL: none yet */
	const struct board_row **rows;
	size_t row_count, selected, first;
	bool moved;    /* somebody has selected something */
	bool rewished; /* the wish has changed; whoever passes it on unsets this */
};

void browse_free(struct browse *browse);
/* The board becomes its own. */
void browse_take(struct browse *browse, struct board *board);
/* `room`: rows that are shown at once. */
void browse_key(struct browse *browse, int key, size_t room);
/* Sets the filter; what is wrong with it, or NULL ("" is none). */
struct err *browse_filter(struct browse *browse, const char *text);
/* Keeps the selected row in sight and fills in what the picture shows. */
void browse_picture(struct browse *browse, struct picture *picture);
