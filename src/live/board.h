/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a recording has come to, as rows: samples since it began ("all"), and
 * those since the profile before ("now"). Whatever was found out about modules is
 * kept from one profile to the next (struct board_maker).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/scopes.h"

struct err;
struct profile;

enum board_by { BOARD_FUNCTION, BOARD_LOOP, BOARD_LINE, BOARD_MODULE, BOARD_THREAD };

struct board_wish {
	enum board_by by;
	uint32_t metric;
	bool path;         /* the hot path of a row, too */
	uint64_t selected; /* that row's id */
};

struct board_row {
	uint64_t id; /* the same for the same thing on every board */
	enum scope_kind kind;
	const char *name;   /* whole, as JSON has it */
	const char *label;  /* short, for people */
	const char *where;  /* file, line, module: what follows the label; "" */
	const char *module; /* its path; "" */
	const char *file;   /* "" */
	int line;
	uint64_t now_self, now_total, all_self, all_total;
};

struct board_step { /* of the hot path, outermost first */
	const char *label;
	bool selected; /* it is the row that was asked for */
	uint64_t now_total, all_total;
};

struct board {
	struct board_wish wish;
	struct board_row *rows; /* in no order */
	size_t count;
	struct board_step *steps;
	size_t step_count;
	/* the recording */
	const char *command, *metric, *unit;
	uint64_t period; /* what a sample stands for */
	double counted;  /* in what share of the time the event was; 1: always */
	size_t metric_count;
	double seconds, interval; /* interval 0: there is no profile before */
	uint64_t now_samples, all_samples, all_partial, lost;
	size_t processes, threads;
	bool rough;               /* inlined functions and loops are still to be looked for */
	struct text_block *texts; /* memory of the strings */
};

void board_free(struct board *board); /* NULL is fine */

struct board_maker;
struct err *board_maker_new(struct board_maker **out);
void board_maker_free(struct board_maker *maker); /* NULL is fine */

/* Goes on with a newer profile, which becomes the maker's. `fresh`: what was counted before it is of no
   interest. */
struct err *board_maker_take(struct board_maker *maker, struct profile *profile, bool fresh);
/* The board of the newest profile. `rough`: only with what is known at once. */
struct err *board_make(struct board_maker *maker, const struct board_wish *wish, bool rough,
		       struct board **out);
