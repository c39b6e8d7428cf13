/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `culprit view --diff`: recordings before and after as what the page compares. */
#include <stdbool.h>

#include "cmd/comparing.h"
#include "compare/matches.h"
#include "view/comparison.h"

struct attribution;

struct view_diff {
	bool wanted; /* --diff */
	struct comparing_files files;
	struct runs runs; /* the profile of all is in it */
	struct matches matches;
	struct comparison_run *list;
	struct comparison comparison;
	struct buf title;
};

/* Reads the files. Lines about what makes them hard to compare are appended. */
struct err *view_diff_read(struct view_diff *diff, struct buf *notes);
/* Makes the comparison, for the attribution of the profile of all. */
struct err *view_diff_match(struct view_diff *diff, struct modules *modules,
			    const struct attribution *attribution, struct buf *notes);
void view_diff_free(struct view_diff *diff);
