/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/view_diff.h"

#include <stdlib.h>

#include "base/err.h"

static void put_side(const struct comparing_files *f, size_t from, size_t to, struct buf *out)
{
	buf_puts(out, f->paths[from]);
	if (to - from > 1)
		buf_printf(out, " and %zu more", to - from - 1);
}

struct err *view_diff_read(struct view_diff *d, struct buf *notes)
{
	const struct comparing_files *f = &d->files;
	struct err *e = comparing_check(f, "record");
	if (!e)
		e = runs_read(f->paths, f->count, NULL, &d->runs);
	if (e)
		return e;
	runs_notes(&d->runs, notes);
	put_side(f, 0, f->old_count, &d->title);
	buf_puts(&d->title, " → ");
	put_side(f, f->old_count, f->count, &d->title);
	return NULL;
}

struct err *view_diff_match(struct view_diff *d, struct modules *modules,
			    const struct attribution *attribution, struct buf *notes)
{
	d->list = calloc(d->runs.count + 1, sizeof *d->list);
	if (!d->list)
		return err_new("out of memory");
	for (size_t i = 0; i < d->runs.count; i++)
		d->list[i] = (struct comparison_run){d->runs.all[i].path, d->runs.all[i].samples,
						     d->runs.all[i].periods,
						     d->runs.all[i].period_count};
	struct err *e = matches_make(&d->runs, d->files.old_count, modules, attribution,
				     &d->matches, notes);
	d->comparison = (struct comparison){
		.runs = d->list,
		.count = d->runs.count,
		.old_count = d->files.old_count,
		.of_thread = d->runs.of_thread,
		.same = d->matches.same,
		.names = d->matches.names,
		.whole = d->matches.whole,
		.alpha = COMPARING_ALPHA,
		.noise = COMPARING_NOISE / 100,
		.min = COMPARING_MIN / 100,
	};
	return e;
}

void view_diff_free(struct view_diff *d)
{
	matches_free(&d->matches);
	runs_free(&d->runs);
	free(d->list);
	free(d->files.paths);
	buf_free(&d->title);
}
