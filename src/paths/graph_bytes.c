/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/graph_bytes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "paths/result.h"
#include "profile/sections.h"

#define BLOCK_BYTES 7u /* at least: a number in each column */
#define EDGE_BYTES 2u
#define LANDING 1u /* flags of blocks */
#define AGAIN 2u
#define CUT 4u /* a flag of edges; the kind is below it */

static_assert(GRAPH_FALLS == 0 && GRAPH_UNRESOLVED == 4 && GRAPH_BAD == 9 && EDGE_FALL == 0 &&
		      EDGE_LANDING == 3,
	      "files have these numbers");

/* ---- writing ---- */

static void put_blocks(const struct graph *g, const uint32_t *lengths, struct buf *out)
{
	const struct graph_block *b = g->blocks;
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, b[i].start - (i ? b[i - 1].end : 0));
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, b[i].end - b[i].start);
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, b[i].end - b[i].last);
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, lengths[i]);
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, b[i].ends);
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, (b[i].landing ? LANDING : 0) | (b[i].again ? AGAIN : 0));
	for (size_t i = 0; i < g->block_count; i++)
		format_put_number(out, b[i].count);
}

void graph_bytes_put(const struct path_function *f, const uint32_t *lengths, struct buf *out)
{
	const struct graph *g = &f->graph;
	const struct numbering *n = &f->numbering;
	format_put_number(out, g->block_count);
	format_put_number(out, g->entry);
	put_blocks(g, lengths, out);
	for (size_t i = 0; i < g->edge_count; i++)
		format_put_signed(out, (int64_t)g->edges[i].to - (int64_t)g->edges[i].from);
	for (size_t i = 0; i < g->edge_count; i++)
		format_put_number(out, g->edges[i].kind | (n->edges[i].cut ? CUT : 0));
	format_put_number(out, n->start_count);
	for (size_t i = 0; i < n->start_count; i++)
		format_put_number(out, n->starts[i].block);
}

/* ---- reading ---- */

struct reader {
	struct cursor c;
	struct graph *g;
	uint32_t *lengths;
	bool *cuts;
	uint32_t *starts;
	size_t start_count;
};

/* Blocks are ascending, have bytes, and do not overlap. */
static void read_places(struct reader *r)
{
	struct graph_block *b = r->g->blocks;
	size_t count = r->g->block_count;
	uint64_t end = 0;
	for (size_t i = 0; i < count; i++)
		b[i].start = cursor_number(&r->c);
	for (size_t i = 0; i < count; i++)
		b[i].end = cursor_number(&r->c);
	for (size_t i = 0; i < count; i++) {
		uint64_t back = cursor_number(&r->c), bytes = b[i].end;
		r->c.bad |= !back || back > bytes ||
			    __builtin_add_overflow(end, b[i].start, &b[i].start) ||
			    __builtin_add_overflow(b[i].start, bytes, &end);
		b[i].end = end;
		b[i].last = end - back;
	}
}

static void read_blocks(struct reader *r)
{
	struct graph *g = r->g;
	size_t edges = 0;
	read_places(r);
	for (size_t i = 0; i < g->block_count; i++)
		r->lengths[i] = cursor_limited(&r->c, UINT32_MAX);
	for (size_t i = 0; i < g->block_count; i++)
		g->blocks[i].ends = (uint8_t)cursor_limited(&r->c, GRAPH_BAD);
	for (size_t i = 0; i < g->block_count; i++) {
		uint32_t flags = cursor_limited(&r->c, LANDING | AGAIN);
		g->blocks[i].landing = flags & LANDING;
		g->blocks[i].again = flags & AGAIN;
	}
	for (size_t i = 0; i < g->block_count; i++) {
		size_t left = (size_t)(r->c.end - r->c.at);
		g->blocks[i].first = (uint32_t)edges;
		g->blocks[i].count = cursor_limited(&r->c, (uint32_t)left);
		edges += g->blocks[i].count;
		r->c.bad |= edges > left; /* so the sum stays small */
		if (r->c.bad)
			return;
	}
	g->edge_count = edges;
}

static void read_edges(struct reader *r)
{
	struct graph *g = r->g;
	size_t at = 0;
	for (uint32_t i = 0; i < g->block_count; i++)
		for (uint32_t k = 0; k < g->blocks[i].count; k++) {
			int64_t to = (int64_t)i, more = cursor_signed(&r->c);
			r->c.bad |= __builtin_add_overflow(to, more, &to) || to < 0 ||
				    (uint64_t)to >= g->block_count;
			g->edges[at++] = (struct graph_edge){i, r->c.bad ? 0 : (uint32_t)to, 0};
		}
	for (size_t i = 0; i < g->edge_count; i++) {
		uint32_t kind = cursor_limited(&r->c, CUT | EDGE_LANDING);
		g->edges[i].kind = (uint8_t)(kind & ~CUT);
		r->cuts[i] = kind & CUT;
	}
}

/* The first is the entry. */
static void read_starts(struct reader *r)
{
	for (size_t i = 0; i < r->start_count; i++) {
		r->starts[i] = cursor_limited(&r->c, (uint32_t)r->g->block_count - 1);
		r->c.bad |= !i && r->starts[i] != r->g->entry;
	}
}

/* False without memory; else c.bad says whether it is good. */
static bool read_graph(struct reader *r)
{
	struct graph *g = r->g;
	size_t count = cursor_rows(&r->c, BLOCK_BYTES);
	uint32_t entry = cursor_limited(&r->c, UINT32_MAX);
	if (!count || entry >= count || r->c.bad) {
		r->c.bad = true;
		return true;
	}
	g->entry = entry;
	g->blocks = calloc(count, sizeof *g->blocks);
	r->lengths = calloc(count, sizeof *r->lengths);
	if (!g->blocks || !r->lengths)
		return false;
	g->block_count = count;
	read_blocks(r);
	r->c.bad |= g->edge_count > (size_t)(r->c.end - r->c.at) / EDGE_BYTES;
	if (r->c.bad)
		return true;
	g->edges = calloc(g->edge_count + 1, sizeof *g->edges);
	r->cuts = calloc(g->edge_count + 1, sizeof *r->cuts);
	if (!g->edges || !r->cuts)
		return false;
	read_edges(r);
	r->start_count = cursor_rows(&r->c, 1);
	r->starts = calloc(r->start_count + 1, sizeof *r->starts);
	if (!r->starts)
		return false;
	read_starts(r);
	r->c.bad |= !r->start_count;
	return true;
}

struct err *graph_bytes_read(const uint8_t *bytes, size_t size, struct path_function *f)
{
	struct reader r = {.c = {.at = bytes, .end = bytes + size}, .g = &f->graph};
	struct err *e = NULL;
	if (!read_graph(&r))
		e = err_new("out of memory");
	else if (r.c.bad)
		e = err_new("its graph is malformed");
	else
		e = numbering_restore(&f->graph, r.cuts, r.starts, r.start_count, GRAPH_BYTES_PATHS,
				      &f->numbering);
	f->lengths = r.lengths;
	free(r.cuts);
	free(r.starts);
	return e;
}
