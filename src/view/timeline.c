/* SPDX-License-Identifier: Apache-2.0 */
#include "view/timeline.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "view/contexts.h"
#include "view/lines.h"

const char *const timeline_columns[TIMELINE_COLUMNS] = {
	[TIMELINE_ROW] = "span.row",           [TIMELINE_START] = "span.start",
	[TIMELINE_DURATION] = "span.duration", [TIMELINE_SAMPLES] = "span.samples",
	[TIMELINE_METRIC] = "span.metric",
};

static bool same_place(const struct context_row *a, const struct context_row *b)
{
	return a->node == b->node && a->thread == b->thread && a->line == b->line;
}

/* The numbers of rows as they are packed: those of one place, by metric, are one. */
static uint32_t *number_rows(const struct contexts *c)
{
	uint32_t *numbers = calloc(c->row_count + 1, sizeof *numbers);
	for (size_t i = 1; numbers && i < c->row_count; i++)
		numbers[i] = numbers[i - 1] + !same_place(&c->rows[i - 1], &c->rows[i]);
	return numbers;
}

static int compare_place(const void *a, const void *b)
{
	const struct context_row *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static const struct context_row *find_row(const struct profile_span *s, const struct contexts *c,
					  const struct lines *lines)
{
	const struct context_row wanted = {
		.node = c->of_node[s->node], .thread = s->thread, .line = lines->of_node[s->node]};
	return c->row_count ? bsearch(&wanted, c->rows, c->row_count, sizeof wanted, compare_place)
			    : NULL;
}

struct err *timeline_make(const struct profile *p, const struct contexts *c,
			  const struct lines *lines, struct timeline *out)
{
	*out = (struct timeline){0};
	if (!p->span_count)
		return NULL;
	uint32_t *numbers = number_rows(c);
	out->all = calloc(p->span_count, sizeof *out->all);
	for (size_t i = 0; numbers && out->all && i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		const struct context_row *row = find_row(s, c, lines);
		if (!row) {
			out->unplaced += s->samples;
			continue;
		}
		out->all[out->count++] = (struct timeline_span){
			numbers[row - c->rows], s->thread, s->metric, s->samples, s->start_us,
			s->duration_us,
		};
	}
	bool failed = !numbers || !out->all;
	free(numbers);
	return failed ? err_new("out of memory") : NULL;
}

void timeline_free(struct timeline *t)
{
	free(t->all);
	*t = (struct timeline){0};
}

static uint64_t distance(uint32_t from, uint32_t to)
{
	return to >= from ? 2 * (uint64_t)(to - from) : 2 * (uint64_t)(from - to) - 1;
}

uint64_t timeline_number(const struct timeline *t, size_t i, enum timeline_column column)
{
	const struct timeline_span *s = &t->all[i], *before = i ? s - 1 : NULL;
	switch (column) {
	case TIMELINE_ROW:
		return distance(before ? before->row : 0, s->row);
	case TIMELINE_START:
		return s->start_us - (before && before->thread == s->thread
					      ? before->start_us + before->duration_us
					      : 0);
	case TIMELINE_DURATION:
		return s->duration_us;
	case TIMELINE_SAMPLES:
		return s->samples;
	default:
		return s->metric;
	}
}
