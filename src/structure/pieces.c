/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "image/lines.h"
#include "structure/control.h"
#include "base/array.h"

/* ---- overlapping spans ---- */

struct sweep {
	const struct piece_span *spans;
	uint32_t *by_start; /* indices, ascending by start */
	uint32_t *heap;     /* those that have begun, the innermost on top */
	size_t heap_count;
	struct piece_span *out;
	size_t count, capacity;
};

static bool is_above(const struct sweep *s, uint32_t a, uint32_t b)
{
	const struct piece_span *x = &s->spans[a], *y = &s->spans[b];
	if (x->depth != y->depth)
		return x->depth > y->depth;
	return x->start != y->start ? x->start > y->start : a < b;
}

static void heap_push(struct sweep *s, uint32_t index)
{
	size_t at = s->heap_count++;
	for (; at && is_above(s, index, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		s->heap[at] = s->heap[(at - 1) / 2];
	s->heap[at] = index;
}

static void heap_pop(struct sweep *s)
{
	uint32_t moved = s->heap[--s->heap_count];
	size_t at = 0;
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= s->heap_count)
			break;
		if (child + 1 < s->heap_count && is_above(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (!is_above(s, s->heap[child], moved))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = moved;
}

static bool emit(struct sweep *s, uint64_t start, uint64_t end, uint32_t index)
{
	const struct piece_span *span = &s->spans[index];
	struct piece_span *last = s->count ? &s->out[s->count - 1] : NULL;
	if (start >= end)
		return true;
	if (last && last->end == start && last->context == span->context) {
		last->end = end;
		return true;
	}
	if (!ARRAY_ROOM(s->out, s->count, s->capacity))
		return false;
	s->out[s->count++] = (struct piece_span){start, end, span->context, span->depth};
	return true;
}

static int by_start(const void *a, const void *b, void *context)
{
	const struct piece_span *spans = context;
	uint64_t x = spans[*(const uint32_t *)a].start, y = spans[*(const uint32_t *)b].start;
	return x < y ? -1 : x > y;
}

/* Goes from place to place where a span begins or the innermost ends. */
static bool sweep_run(struct sweep *s, size_t count)
{
	uint64_t at = 0;
	size_t next = 0;
	while (next < count || s->heap_count) {
		uint64_t until;
		while (s->heap_count && s->spans[s->heap[0]].end <= at)
			heap_pop(s);
		if (!s->heap_count) {
			if (next == count)
				break;
			at = s->spans[s->by_start[next]].start;
		}
		while (next < count && s->spans[s->by_start[next]].start <= at)
			heap_push(s, s->by_start[next++]);
		while (s->heap_count && s->spans[s->heap[0]].end <= at)
			heap_pop(s);
		if (!s->heap_count)
			continue;
		until = s->spans[s->heap[0]].end;
		if (next < count && s->spans[s->by_start[next]].start < until)
			until = s->spans[s->by_start[next]].start;
		if (!emit(s, at, until, s->heap[0]))
			return false;
		at = until;
	}
	return true;
}

bool spans_flatten(const struct piece_span *spans, size_t count, struct piece_span **out,
		   size_t *out_count)
{
	struct sweep s = {.spans = spans};
	bool good;
	s.by_start = calloc(count + 1, sizeof *s.by_start);
	s.heap = calloc(count + 1, sizeof *s.heap);
	good = s.by_start && s.heap;
	for (size_t i = 0; good && i < count; i++)
		s.by_start[i] = (uint32_t)i;
	if (good && count)
		qsort_r(s.by_start, count, sizeof *s.by_start, by_start, (void *)(uintptr_t)spans);
	good = good && sweep_run(&s, count);
	free(s.by_start);
	free(s.heap);
	if (!good) {
		free(s.out);
		s.out = NULL;
		s.count = 0;
	}
	*out = s.out;
	*out_count = s.count;
	return good;
}

/* ---- cutting ---- */

struct cutter {
	const struct pieces_input *in;
	struct piece_span *spans; /* flat */
	size_t span_count;
	size_t row, block, span; /* the first that may still matter */
	bool columns;            /* the last row with a line has a column */
	struct weave_piece *out;
	size_t count, capacity;
};

/* Moves `until` down to where this interval begins or ends; true where it has `at`. */
static bool holds(uint64_t start, uint64_t end, uint64_t at, uint64_t *until)
{
	if (at < start) {
		if (start < *until)
			*until = start;
		return false;
	}
	if (end < *until)
		*until = end;
	return true;
}

static bool same(const struct weave_piece *a, const struct weave_piece *b)
{
	return a->end == b->start && (a->known || !b->leads) && a->file == b->file &&
	       a->line == b->line && a->context == b->context && a->loop == b->loop;
}

static bool put(struct cutter *c, struct weave_piece piece)
{
	struct weave_piece *last = c->count ? &c->out[c->count - 1] : NULL;
	if (last && same(last, &piece)) {
		last->end = piece.end;
		last->control |= piece.control;
		return true;
	}
	if (!ARRAY_ROOM(c->out, c->count, c->capacity))
		return false;
	c->out[c->count++] = piece;
	return true;
}

static void pass_row(struct cutter *c)
{
	const struct line_row *row = &c->in->rows[c->row++];
	if (row->line)
		c->columns = row->column != 0;
}

/* Code that comes from nowhere keeps the file and the column of what stands before it, only the line
   becomes 0. Without column, the file was meant. */
static bool is_placed(const struct cutter *c, const struct line_row *row, uint64_t at)
{
	return !row->line && row->file && !row->column && c->columns && row->address == at;
}

static bool cut_part(struct cutter *c, struct piece_part part)
{
	const struct pieces_input *in = c->in;
	const struct control *code = in->code;
	for (uint64_t at = part.start; at < part.end;) {
		struct weave_piece p = {.start = at, .loop = WEAVE_NONE};
		uint64_t until = part.end;
		while (c->row < in->row_count && in->rows[c->row].end <= at)
			pass_row(c);
		while (c->block < code->block_count && code->blocks[c->block].end <= at)
			c->block++;
		while (c->span < c->span_count && c->spans[c->span].end <= at)
			c->span++;
		if (c->row < in->row_count &&
		    holds(in->rows[c->row].address, in->rows[c->row].end, at, &until)) {
			p.file = in->rows[c->row].file;
			p.line = in->rows[c->row].file ? in->rows[c->row].line : 0;
			p.known = p.line != 0;
			p.placed = is_placed(c, &in->rows[c->row], at);
		}
		if (c->span < c->span_count &&
		    holds(c->spans[c->span].start, c->spans[c->span].end, at, &until))
			p.context = c->spans[c->span].context;
		if (c->block < code->block_count) {
			const struct control_block *b = &code->blocks[c->block];
			if (holds(b->start, b->end, at, &until)) {
				p.loop = b->loop;
				p.leads = b->start == at;
				p.follows = !p.leads ||
					    (c->block && b[-1].end == at && b[-1].falls);
				p.control = b->control && b->last >= at && b->last < until;
			}
		}
		p.end = at = until;
		if (!put(c, p))
			return false;
	}
	return true;
}

bool pieces_cut(const struct pieces_input *input, struct weave_piece **out, size_t *count)
{
	struct cutter c = {.in = input};
	bool good = spans_flatten(input->spans, input->span_count, &c.spans, &c.span_count);
	for (size_t i = 0; good && i < input->part_count; i++)
		good = cut_part(&c, input->parts[i]);
	free(c.spans);
	if (!good) {
		free(c.out);
		c.out = NULL;
		c.count = 0;
	}
	*out = c.out;
	*count = c.count;
	return good;
}
