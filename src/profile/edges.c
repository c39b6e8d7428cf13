/* SPDX-License-Identifier: Apache-2.0 */
/* Edges are appended as they come. They are ordered, each key once, when a reader asks, and when the array is full. */
#include "profile/edges.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sum.h"
#include "profile/decode.h"
#include "profile/format.h"
#include "profile/own.h"

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
	const struct profile_edge *x = a, *y = b;
	int order = by_number(x->begin_module, y->begin_module);
	if (!order)
		order = by_number(x->begin, y->begin);
	if (!order)
		order = by_number(x->module, y->module);
	if (!order)
		order = by_number(x->from, y->from);
	return order ? order : by_number(x->to, y->to);
}

void own_settle_edges(struct profile *p)
{
	size_t kept = 0;
	if (p->edge_count)
		qsort(p->edges, p->edge_count, sizeof *p->edges, compare);
	for (size_t i = 0; i < p->edge_count; i++) {
		struct profile_edge *last = kept ? &p->edges[kept - 1] : NULL;
		if (last && !compare(last, &p->edges[i]))
			last->count = sum_add(last->count, p->edges[i].count);
		else
			p->edges[kept++] = p->edges[i];
	}
	p->edge_count = kept;
}

struct err *own_append_edge(struct profile *p, const struct profile_edge *edge)
{
	if (p->edge_count == p->own->edge_room) {
		own_settle_edges(p);
		if (p->edge_count >= PROFILE_EDGE_MAX)
			return NULL; /* there are enough of them */
		size_t filled = p->edge_count > p->own->edge_room / 2 ? p->own->edge_room : 0;
		void *moved = own_grow(p->edges, &p->own->edge_room, filled, sizeof *edge);
		if (!moved)
			return err_new("out of memory");
		p->edges = moved;
	}
	p->edges[p->edge_count++] = *edge;
	return NULL;
}

struct err *profile_edge(struct profile *p, const struct profile_edge *edge)
{
	if (edge->begin_module >= p->module_count || edge->module >= p->module_count)
		return err_new("no such edge: modules %u and %u", edge->begin_module, edge->module);
	return edge->count ? own_append_edge(p, edge) : NULL;
}

/* ---- the file ---- */

void edges_put(struct buf *raw, const struct profile_edge *edges, size_t count)
{
	format_put_number(raw, count);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, edges[i].begin_module - (i ? edges[i - 1].begin_module : 0));
	for (size_t i = 0; i < count; i++)
		format_put_signed(raw, (int64_t)(edges[i].begin - (i ? edges[i - 1].begin : 0)));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, edges[i].module);
	for (size_t i = 0; i < count; i++)
		format_put_signed(raw, (int64_t)(edges[i].from - (i ? edges[i - 1].from : 0)));
	for (size_t i = 0; i < count; i++)
		format_put_signed(raw, (int64_t)(edges[i].to - edges[i].from));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, edges[i].count);
}

static void read_columns(struct cursor *c, struct profile_edge *edges, size_t count)
{
	uint64_t module = 0;
	for (size_t i = 0; i < count; i++) {
		module += cursor_limited(c, INDEX_NONE - 1);
		c->bad |= module >= INDEX_NONE;
		edges[i].begin_module = (uint32_t)module;
	}
	for (size_t i = 0; i < count; i++)
		edges[i].begin = (i ? edges[i - 1].begin : 0) + (uint64_t)cursor_signed(c);
	for (size_t i = 0; i < count; i++)
		edges[i].module = cursor_limited(c, INDEX_NONE - 1);
	for (size_t i = 0; i < count; i++)
		edges[i].from = (i ? edges[i - 1].from : 0) + (uint64_t)cursor_signed(c);
	for (size_t i = 0; i < count; i++)
		edges[i].to = edges[i].from + (uint64_t)cursor_signed(c);
}

/* The modules may be missing as yet. */
void edges_read(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 6);
	struct profile_edge *edges = calloc(count + 1, sizeof *edges);
	if (!edges) {
		d->error = err_new("out of memory");
		return;
	}
	read_columns(c, edges, count);
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		edges[i].count = cursor_number(c);
		c->bad |= !edges[i].count || d->tables[FORMAT_EDGES].got >= PROFILE_EDGE_MAX;
		if (c->bad)
			break;
		d->tables[FORMAT_EDGES].got++;
		d->error = own_append_edge(d->p, &edges[i]);
	}
	free(edges);
}
