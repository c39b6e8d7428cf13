/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/shown.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "structure/structure.h"

void shown_free(struct shown *s)
{
	free(s->pieces);
	free(s->first);
	free(s->last);
	free(s->order);
	free(s->children);
	free(s->many);
}

/* Every scope covers what those inside of it cover. */
static bool add_pieces(struct shown *s)
{
	size_t capacity = 0;
	for (size_t i = 0; i < s->p->range_count; i++) {
		const struct structure_range *r = &s->p->ranges[i];
		for (uint32_t scope = r->scope;; scope = s->p->scopes[scope].parent) {
			struct shown_piece *last = s->last[scope] ? &s->pieces[s->last[scope]]
								  : NULL;
			if (last && last->end == r->start) {
				last->end = r->end;
			} else {
				if (!ARRAY_ROOM(s->pieces, s->piece_count + 1, capacity))
					return false;
				s->pieces[++s->piece_count] = (struct shown_piece){r->start, r->end,
										   0};
				if (s->last[scope])
					s->pieces[s->last[scope]].next = s->piece_count;
				else
					s->first[scope] = s->piece_count;
				s->last[scope] = s->piece_count;
			}
			if (!scope)
				break;
		}
	}
	return true;
}

static int by_parent_and_address(const void *a, const void *b, void *context)
{
	const struct shown *s = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t parent_x = s->p->scopes[x].parent, parent_y = s->p->scopes[y].parent;
	uint64_t at_x = s->first[x] ? s->pieces[s->first[x]].start : 0;
	uint64_t at_y = s->first[y] ? s->pieces[s->first[y]].start : 0;
	if (parent_x != parent_y)
		return parent_x < parent_y ? -1 : 1;
	if (at_x != at_y)
		return at_x < at_y ? -1 : 1;
	return x < y ? -1 : x > y;
}

struct err *shown_make(const struct structure_procedure *p, struct shown *s)
{
	size_t n = p->scope_count;
	memset(s, 0, sizeof *s);
	s->p = p;
	s->first = calloc(n, sizeof *s->first);
	s->last = calloc(n, sizeof *s->last);
	s->order = calloc(n, sizeof *s->order);
	s->children = calloc(n, sizeof *s->children);
	s->many = calloc(n, sizeof *s->many);
	if (!s->first || !s->last || !s->order || !s->children || !s->many || !add_pieces(s))
		return err_new("out of memory");
	for (uint32_t i = 1; i < n; i++)
		s->order[i] = i;
	qsort_r(s->order + 1, n - 1, sizeof *s->order, by_parent_and_address, s);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t parent = p->scopes[s->order[i]].parent;
		if (!s->many[parent]++)
			s->children[parent] = i;
	}
	return NULL;
}

/* The tree may be deep. */
void shown_walk(struct shown *s, shown_open *open, shown_close *close, void *context)
{
	uint32_t at = 0, *given = s->last; /* no longer needed as such */
	unsigned depth = 0;
	memset(given, 0, s->p->scope_count * sizeof *given);
	open(context, s, 0, 0);
	for (;;) {
		if (given[at] < s->many[at]) {
			at = s->order[s->children[at] + given[at]++];
			open(context, s, at, ++depth);
			continue;
		}
		close(context, s, at);
		if (!at)
			return;
		at = s->p->scopes[at].parent;
		depth--;
	}
}
