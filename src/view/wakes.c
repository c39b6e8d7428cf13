/* SPDX-License-Identifier: Apache-2.0 */
#include "view/wakes.h"

#include <stdlib.h>

#include "analyze/attribution.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/contexts.h"

static int compare(const void *a, const void *b)
{
	const struct view_wake *x = a, *y = b;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return (x->waker > y->waker) - (x->waker < y->waker);
}

/* Several nodes of the profile may be one row. */
static void join(struct view_wakes *w)
{
	size_t kept = 0;
	if (w->count)
		qsort(w->all, w->count, sizeof *w->all, compare);
	for (size_t i = 0; i < w->count; i++) {
		struct view_wake *last = kept ? &w->all[kept - 1] : NULL;
		if (!last || compare(last, &w->all[i])) {
			w->all[kept++] = w->all[i];
			continue;
		}
		last->count += w->all[i].count;
		last->waited += w->all[i].waited;
	}
	w->count = kept;
}

struct err *view_wakes_make(const struct attribution *a, const struct contexts *c,
			    const struct lines *lines, struct view_wakes *out)
{
	const struct profile *p = a->profile;
	uint32_t *numbers = contexts_number(c);
	*out = (struct view_wakes){.all = calloc(p->wake_count + 1, sizeof *out->all)};
	for (size_t i = 0; numbers && out->all && i < p->wake_count; i++) {
		const struct profile_wake *w = &p->wakes[i];
		const struct profile_value value = {w->node, w->thread, w->metric, 0};
		const struct context_row *row = contexts_find(c, a, lines, &value);
		if (row)
			out->all[out->count++] = (struct view_wake){
				numbers[row - c->rows], w->metric, w->waker, w->count, w->waited};
	}
	bool failed = !numbers || !out->all;
	free(numbers);
	if (failed)
		return err_new("out of memory");
	join(out);
	return NULL;
}

void view_wakes_free(struct view_wakes *w)
{
	free(w->all);
	*w = (struct view_wakes){0};
}
