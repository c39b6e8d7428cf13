/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph_build.h"
#include "image/image.h"

bool build_grow(struct build *b, void *array, size_t *capacity, size_t count, size_t element)
{
	if (count < *capacity)
		return true;
	size_t wanted = *capacity ? *capacity * 2 : 32;
	void **pointer = array;
	void *grown = realloc(*pointer, wanted * element);
	if (!grown) {
		b->failed = true;
		return false;
	}
	*pointer = grown;
	*capacity = wanted;
	return true;
}

struct span *build_span(const struct build *b, uint64_t at)
{
	size_t found = FIRST_NOT(i, b->span_count, b->spans[i].end <= at);
	return found < b->span_count && at >= b->spans[found].start ? &b->spans[found] : NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool add_span(struct build *b, struct graph_part part)
{
	unsigned unit = b->isa->insn_min;
	struct span *s = &b->spans[b->span_count];
	size_t size;
	if (part.start % unit || part.end <= part.start)
		return true;
	s->bytes = image_bytes_at(b->in->image, part.start, &size);
	if (!s->bytes)
		return true;
	if (size > part.end - part.start)
		size = part.end - part.start;
	size -= size % unit;
	if (!size)
		return true;
	s->start = part.start;
	s->end = part.start + size;
	b->span_count++;
	return true;
}

/* Parts may claim to overlap; the first keeps the bytes. */
static bool take_parts(struct build *b)
{
	unsigned unit = b->isa->insn_min;
	size_t kept = 0;
	b->spans = calloc(b->in->part_count ? b->in->part_count : 1, sizeof *b->spans);
	if (!b->spans)
		return false;
	for (size_t i = 0; i < b->in->part_count; i++)
		add_span(b, b->in->parts[i]);
	qsort(b->spans, b->span_count, sizeof *b->spans, by_start);
	for (size_t i = 0; i < b->span_count; i++) {
		struct span s = b->spans[i];
		uint64_t free_from = kept ? b->spans[kept - 1].end : 0;
		if (s.start < free_from) {
			if (s.end <= free_from)
				continue;
			s.bytes += free_from - s.start;
			s.start = free_from;
		}
		s.slots = calloc((s.end - s.start) / unit, 1);
		if (!s.slots)
			return b->span_count = kept, false;
		b->spans[kept++] = s;
	}
	b->span_count = kept;
	return true;
}

static void release(struct build *b)
{
	for (size_t i = 0; i < b->span_count; i++)
		free(b->spans[i].slots);
	free(b->spans);
	free(b->todo);
	free(b->leaves);
	free(b->targets);
	build_forget_paths(b);
}

struct err *graph_build(const struct graph_input *in, struct graph *out)
{
	struct build b = {.in = in, .isa = in->isa, .graph = out};
	memset(out, 0, sizeof *out);
	out->entry = GRAPH_NONE;
	b.failed = !take_parts(&b);
	if (!b.failed && in->part_count) {
		build_follow(&b, in->parts[0].start);
		build_switches(&b);
		build_gaps(&b);
		build_switches(&b);
		build_blocks(&b);
		build_tail_calls(&b);
	}
	release(&b);
	if (!b.failed)
		return NULL;
	graph_free(out);
	return err_new("out of memory");
}

void graph_free(struct graph *graph)
{
	free(graph->blocks);
	free(graph->edges);
	free(graph->tables);
	memset(graph, 0, sizeof *graph);
	graph->entry = GRAPH_NONE;
}

uint32_t graph_find(const struct graph *graph, uint64_t address)
{
	size_t found = FIRST_NOT(i, graph->block_count, graph->blocks[i].end <= address);
	return found < graph->block_count && address >= graph->blocks[found].start ? (uint32_t)found
										   : GRAPH_NONE;
}

bool graph_returns(const struct graph *graph)
{
	for (size_t i = 0; i < graph->block_count; i++) {
		const struct graph_block *b = &graph->blocks[i];
		/* A branch out of the procedure may be one into a part of it that is not known. */
		if (b->reached && (b->ends == GRAPH_RETURNS || b->ends == GRAPH_TAIL_CALLS ||
				   b->ends == GRAPH_UNRESOLVED || b->ends == GRAPH_BAD ||
				   (b->ends == GRAPH_BRANCHES && b->count < 2)))
			return true;
	}
	return graph->truncated;
}
