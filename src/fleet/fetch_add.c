/* SPDX-License-Identifier: Apache-2.0 */
/* What was fetched into a database in memory: each epoch gets what its own rows refer to. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "profile/profile.h"

/* Places of one epoch's own, by place in all; 0: not used. */
struct chosen {
	struct fetched *from;
	uint32_t *images, *processes, *nodes;
	struct store_image *image_list;
	struct store_process *process_list;
	struct store_symbol *symbol_list;
	struct store_node *node_list;
	struct store_count *counts;
	struct store_path *paths;
	struct store_interval rows;
	size_t count_at, path_at, span_at; /* how far we are in all */
};

/* ---- in order ---- */

#define BY_EPOCH(name, type, then)                           \
	static int name(const void *a, const void *b)        \
	{                                                    \
		const struct type *x = a, *y = b;            \
		if (x->epoch != y->epoch)                    \
			return x->epoch < y->epoch ? -1 : 1; \
		return then;                                 \
	}
BY_EPOCH(compare_counts, fetched_count, 0)
BY_EPOCH(compare_paths, fetched_path, 0)
BY_EPOCH(compare_spans, fetched_span,
	 (x->row.start_ms > y->row.start_ms) - (x->row.start_ms < y->row.start_ms))

static int compare_symbols(const void *a, const void *b)
{
	const struct store_symbol *x = a, *y = b;
	return x->image < y->image ? -1 : x->image > y->image;
}

static void put_in_order(struct fetched *f)
{
	if (f->count_count)
		qsort(f->counts, f->count_count, sizeof *f->counts, compare_counts);
	if (f->path_count)
		qsort(f->paths, f->path_count, sizeof *f->paths, compare_paths);
	if (f->span_count)
		qsort(f->spans, f->span_count, sizeof *f->spans, compare_spans);
	if (f->symbol_count)
		qsort(f->symbols, f->symbol_count, sizeof *f->symbols, compare_symbols);
}

/* ---- what an epoch uses ---- */

static uint32_t use_process(struct chosen *c, uint32_t place)
{
	if (place && !c->processes[place]) {
		c->process_list[c->rows.process_count++] = c->from->processes[place - 1];
		c->processes[place] = (uint32_t)c->rows.process_count;
	}
	return c->processes[place];
}

static uint32_t use_image(struct chosen *c, uint32_t place)
{
	if (place && !c->images[place]) {
		struct store_image m = c->from->images[place - 1];
		m.process = use_process(c, m.process);
		c->image_list[c->rows.image_count++] = m;
		c->images[place] = (uint32_t)c->rows.image_count;
	}
	return c->images[place];
}

static void choose_counts(struct chosen *c, uint32_t epoch)
{
	const struct fetched *f = c->from;
	size_t events = f->epochs.items[epoch].total_count;
	for (; c->count_at < f->count_count && f->counts[c->count_at].epoch == epoch;
	     c->count_at++) {
		struct store_count x = f->counts[c->count_at].row;
		x.process = use_process(c, x.process);
		x.image = use_image(c, x.image);
		if (x.event < events)
			c->counts[c->rows.count_count++] = x;
	}
}

static void choose_paths(struct chosen *c, uint32_t epoch)
{
	const struct fetched *f = c->from;
	size_t events = f->epochs.items[epoch].total_count, first = c->path_at;
	for (; c->path_at < f->path_count && f->paths[c->path_at].epoch == epoch; c->path_at++)
		for (uint32_t at = f->paths[c->path_at].row.node; at && !c->nodes[at];
		     at = f->nodes[at - 1].parent)
			c->nodes[at] = 1;
	if (first == c->path_at)
		return;
	for (size_t i = 0; i < f->node_count; i++) {
		struct store_node n = f->nodes[i];
		if (!c->nodes[i + 1])
			continue;
		n.parent = c->nodes[n.parent];
		n.image = use_image(c, n.image);
		c->node_list[c->rows.node_count++] = n;
		c->nodes[i + 1] = (uint32_t)c->rows.node_count;
	}
	for (size_t i = first; i < c->path_at; i++) {
		struct store_path x = f->paths[i].row;
		x.node = c->nodes[x.node];
		x.process = use_process(c, x.process);
		if (x.event < events)
			c->paths[c->rows.path_count++] = x;
	}
}

static void choose_symbols(struct chosen *c)
{
	const struct fetched *f = c->from;
	for (size_t i = 0; i < f->symbol_count; i++) {
		struct store_symbol y = f->symbols[i];
		y.image = c->images[y.image];
		if (y.image)
			c->symbol_list[c->rows.symbol_count++] = y;
	}
}

static void begin(struct chosen *c)
{
	const struct fetched *f = c->from;
	memset(c->images, 0, (f->image_count + 1) * sizeof *c->images);
	memset(c->processes, 0, (f->process_count + 1) * sizeof *c->processes);
	memset(c->nodes, 0, (f->node_count + 1) * sizeof *c->nodes);
	c->rows = (struct store_interval){.images = c->image_list,
					  .symbols = c->symbol_list,
					  .processes = c->process_list,
					  .nodes = c->node_list,
					  .counts = c->counts,
					  .paths = c->paths};
}

/* ---- adding ---- */

static struct err *add_spans(struct chosen *c, struct store *store, uint32_t epoch, int64_t id)
{
	const struct fetched *f = c->from;
	const struct read_epoch *its = &f->epochs.items[epoch];
	struct coverage coverage[STORE_EVENT_MAX];
	struct err *e = NULL;
	bool added;
	for (size_t i = 0; i < its->total_count; i++)
		coverage[i] = its->totals[i].coverage;
	c->rows.coverage = coverage; /* of all spans: so are the rows */
	c->rows.coverage_count = its->total_count;
	for (; !e && c->span_at < f->span_count && f->spans[c->span_at].epoch == epoch;
	     c->span_at++) {
		const struct store_interval *x = &f->spans[c->span_at].row;
		uint64_t number = c->rows.number + 1;
		if (c->rows.number) /* the first has all rows */
			c->rows = (struct store_interval){0};
		c->rows.number = number;
		c->rows.start_ms = x->start_ms;
		c->rows.end_ms = x->end_ms;
		c->rows.losses = x->losses;
		c->rows.loss_count = x->loss_count;
		c->rows.cost = x->cost;
		e = store_add(store, id, &c->rows, &added);
	}
	return e;
}

static struct err *add_epoch(struct chosen *c, struct store *store, uint32_t place)
{
	const struct read_epoch *x = &c->from->epochs.items[place];
	struct store_event events[STORE_EVENT_MAX];
	int64_t id;
	for (size_t i = 0; i < x->total_count; i++)
		events[i] = x->totals[i].event;
	struct store_epoch epoch = {x->host,     x->kernel, x->machine,     x->cpu,
				    x->version,  x->note,   x->cpus,        x->hz,
				    x->start_ms, events,    x->total_count, false};
	struct err *e = store_begin_epoch(store, &epoch, &id);
	bool any = c->span_at < c->from->span_count && c->from->spans[c->span_at].epoch == place;
	begin(c);
	if (!e && any) {
		choose_counts(c, place);
		choose_paths(c, place);
		choose_symbols(c);
		e = add_spans(c, store, place, id);
	}
	/* Rows of spans that came after we asked for spans. */
	while (c->count_at < c->from->count_count && c->from->counts[c->count_at].epoch == place)
		c->count_at++;
	while (c->path_at < c->from->path_count && c->from->paths[c->path_at].epoch == place)
		c->path_at++;
	return e;
}

struct err *fetched_add(struct fetched *f, struct store *store)
{
	struct chosen c = {
		.from = f,
		.images = calloc(f->image_count + 1, sizeof *c.images),
		.processes = calloc(f->process_count + 1, sizeof *c.processes),
		.nodes = calloc(f->node_count + 1, sizeof *c.nodes),
		.image_list = calloc(f->image_count + 1, sizeof *c.image_list),
		.process_list = calloc(f->process_count + 1, sizeof *c.process_list),
		.symbol_list = calloc(f->symbol_count + 1, sizeof *c.symbol_list),
		.node_list = calloc(f->node_count + 1, sizeof *c.node_list),
		.counts = calloc(f->count_count + 1, sizeof *c.counts),
		.paths = calloc(f->path_count + 1, sizeof *c.paths),
	};
	struct err *e = c.images && c.processes && c.nodes && c.image_list && c.process_list &&
					c.symbol_list && c.node_list && c.counts && c.paths
				? NULL
				: err_new("out of memory");
	put_in_order(f);
	for (size_t i = 0; !e && i < f->epochs.count; i++)
		e = add_epoch(&c, store, (uint32_t)i);
	free(c.images);
	free(c.processes);
	free(c.nodes);
	free(c.image_list);
	free(c.process_list);
	free(c.symbol_list);
	free(c.node_list);
	free(c.counts);
	free(c.paths);
	return e;
}
