/* SPDX-License-Identifier: Apache-2.0 */
#include "view/timeline.h"

#include <stdbool.h>
#include <stdlib.h>

#include "analyze/attribution.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/contexts.h"
#include "view/lines.h"

const char *const timeline_columns[TIMELINE_COLUMNS] = {
	[TIMELINE_ROW] = "span.row",           [TIMELINE_START] = "span.start",
	[TIMELINE_DURATION] = "span.duration", [TIMELINE_SAMPLES] = "span.samples",
	[TIMELINE_METRIC] = "span.metric",     [TIMELINE_WAKER] = "span.waker",
};

struct err *timeline_make(const struct attribution *a, const struct contexts *c,
			  const struct lines *lines, struct timeline *out)
{
	const struct profile *p = a->profile;
	*out = (struct timeline){0};
	if (!p->span_count)
		return NULL;
	uint32_t *numbers = contexts_number(c);
	out->all = calloc(p->span_count, sizeof *out->all);
	for (size_t i = 0; numbers && out->all && i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		const struct profile_value value = {s->node, s->thread, s->metric, 0};
		const struct context_row *row = contexts_find(c, a, lines, &value);
		if (!row) {
			out->unplaced += s->samples;
			continue;
		}
		out->all[out->count++] = (struct timeline_span){
			numbers[row - c->rows],
			s->thread,
			s->metric,
			s->samples,
			s->waker,
			s->start_us,
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
	case TIMELINE_METRIC:
		return s->metric;
	default:
		return s->waker;
	}
}
