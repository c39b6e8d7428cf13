/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands that compare recordings have in common. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "compare/counts.h"
#include "compare/runs.h"
#include "compare/text.h"

struct comparing {
	/* options */
	int by; /* enum counts_by */
	const char *metric, *min_text;
	double min; /* per cent */
	uint64_t limit;
	bool no_inline, full_names, debuginfod, json, no_pager;
	/* what was read */
	struct runs runs;
	struct counts rows;
	struct buf notes; /* lines about reliability */
};

#define COMPARING_BY "function|loop|line|module"

/* A per cent from 0 to `most`; -1 to go on. `text` NULL leaves *out as it is. */
int comparing_percent(const char *command, const char *option, const char *text, double most,
		      double *out);

/* Reads the files and makes the rows. */
struct err *comparing_read(struct comparing *c, const char *const *paths, size_t count);
void comparing_free(struct comparing *c);

/* How text is to look on stdout. */
struct text_options comparing_text(const struct comparing *c);
/* Shows the notes and after them the text. */
struct err *comparing_show(const struct comparing *c, const struct buf *text);
