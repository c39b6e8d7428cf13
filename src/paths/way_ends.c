/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/way_ends.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "flow/graph.h"
#include "paths/numbering.h"
#include "paths/ways.h"

struct err *way_ends_open(const struct numbering *n, const struct ways *outer,
			  const struct ways *inner, struct way_ends *out)
{
	const struct graph *g = n->graph;
	*out = (struct way_ends){.numbering = n,
				 .outer = outer,
				 .inner = inner,
				 .loop_of = calloc(g->block_count + 1, sizeof *out->loop_of),
				 .caught = calloc(g->block_count + 1, sizeof *out->caught),
				 .cut = calloc(g->block_count + 1, sizeof *out->cut)};
	struct err *e = out->loop_of && out->caught && out->cut ? loops_find(g, &out->loops)
								: err_new("out of memory");
	if (e) {
		way_ends_close(out);
		return e;
	}
	for (size_t i = 0; i < g->block_count; i++)
		out->loop_of[i] = LOOP_NONE;
	for (size_t i = 0; i < out->loops.count; i++)
		out->loop_of[out->loops.loops[i].header] = (uint32_t)i;
	for (size_t i = 0; i < g->edge_count; i++) {
		uint32_t to = g->edges[i].to;
		bool landing = g->edges[i].kind == EDGE_LANDING;
		out->caught[to] |= landing;
		out->cut[to] |= n->edges[i].cut && !landing;
	}
	return NULL;
}

void way_ends_close(struct way_ends *ends)
{
	loops_free(&ends->loops);
	free(ends->loop_of);
	free(ends->caught);
	free(ends->cut);
	*ends = (struct way_ends){0};
}

/* Whether a block is in the loop that another one is the header of. */
static bool is_inside(const struct way_ends *ends, uint32_t block, uint32_t header)
{
	uint32_t loop = ends->loops.innermost[block], wanted = ends->loop_of[header];
	while (loop != LOOP_NONE && loop != wanted)
		loop = ends->loops.loops[loop].parent;
	return wanted != LOOP_NONE && loop == wanted;
}

static uint32_t first_rank(const struct ways *w, uint32_t block)
{
	return w->first[block] < w->first[block + 1] ? w->ranks[w->first[block]] : UINT32_MAX;
}

static void put_block(const struct way_ends *ends, uint32_t block, struct buf *out)
{
	const struct numbering *n = ends->numbering;
	uint32_t rank = first_rank(ends->outer, block);
	size_t same = 0; /* places where paths start that have this name */
	for (size_t i = 0; i < n->start_count; i++)
		same += first_rank(ends->outer, n->starts[i].block) == rank;
	ways_print_block(same > 1 ? ends->inner : ends->outer, block, out);
}

void way_ends_print_start(const struct way_ends *ends, const struct numbering_path *path,
			  struct buf *out)
{
	uint32_t block = path->blocks[0];
	bool entry = block == ends->numbering->graph->entry;
	if (entry && !ends->cut[block] && !ends->caught[block])
		return;
	if (entry)
		buf_puts(out, "start or ");
	if (ends->caught[block])
		buf_puts(out, ends->cut[block] ? "caught or " : "caught: ");
	if (!ends->cut[block])
		return;
	buf_puts(out, ends->loop_of[block] == LOOP_NONE ? "from " : "loop ");
	put_block(ends, block, out);
	buf_puts(out, ": ");
}

static const char *leaves_how(const struct graph_block *b)
{
	switch (b->ends) {
	case GRAPH_RETURNS:
		return ", returns";
	case GRAPH_TAIL_CALLS:
	case GRAPH_BRANCHES:
		return ", ends in another function";
	case GRAPH_STOPS:
		return ", calls what never returns";
	default:
		return ", leaves";
	}
}

void way_ends_print_end(const struct way_ends *ends, const struct numbering_path *path,
			struct buf *out)
{
	const struct graph *g = ends->numbering->graph;
	uint32_t first = path->blocks[0], last = path->blocks[path->count - 1];
	bool looped = first != g->entry || ends->cut[first];
	bool left = ends->loop_of[first] != LOOP_NONE && looped && !is_inside(ends, last, first);
	if (path->edge == NUMBERING_OUT) {
		buf_puts(out, left ? ", leaves the loop" : "");
		buf_puts(out, leaves_how(&g->blocks[last]));
		return;
	}
	uint32_t to = g->edges[path->edge].to;
	bool header = ends->loop_of[to] != LOOP_NONE, round = is_inside(ends, last, to);
	if (g->edges[path->edge].kind == EDGE_LANDING) {
		buf_puts(out, ", the call throws, caught at ");
		put_block(ends, to, out);
		return;
	}
	if (to == first && round) {
		buf_puts(out, ", goes round");
		return;
	}
	if (left && first != to)
		buf_puts(out, ", leaves the loop");
	buf_puts(out, round ? ", goes round loop " : header ? ", enters loop " : ", goes on at ");
	put_block(ends, to, out);
}
