/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of switches. A copy has new ones, with the way to each case.
 *
 * Compilers make two jumps of one, with the same table. Each of the jumps needs ways of its own, as each has another sum. But
 * the instruction that takes the address of the table may be the same for both. So they share one new table and its ways, which
 * are made for the first jump: before it, and before the others, the sum goes to a register that is free at all of them, with
 * something added, so that the same ways fit.
 */
#include "copies/writer.h"

#include "flow/tables.h"
#include "image/image.h"
#include "isa/insn.h"

#define ALIGNMENT 8 /* of tables */

static const char same_table[] = "two switches have the same table";

struct table *writer_table_at(struct writer *w, uint64_t address)
{
	for (size_t i = 0; i < w->table_count; i++)
		if (w->tables[i].owner == i && w->tables[i].of->table == address)
			return &w->tables[i];
	return NULL;
}

/* ---- what is in a table ---- */

/* Where an entry of a table leads in the function; 0: it is not there. */
static uint64_t address_of(const struct writer *w, const struct graph_table *t, uint32_t index)
{
	const struct jump_table table = {.table = t->table,
					 .base = t->base,
					 .entry_size = t->entry_size,
					 .shift = t->shift,
					 .is_signed = t->is_signed};
	size_t size = 0;
	const uint8_t *bytes = image_bytes_at(w->in->image,
					      t->table + (uint64_t)index * t->entry_size, &size);
	return bytes && size >= t->entry_size ? tables_target(&table, bytes) : 0;
}

/* The same as a block; GRAPH_NONE: it leads to none. */
static uint32_t target_of(const struct writer *w, const struct graph_table *t, uint32_t index)
{
	uint64_t address = address_of(w, t, index);
	uint32_t block = graph_find(w->in->graph, address);
	if (block == GRAPH_NONE || w->in->graph->blocks[block].start != address)
		return GRAPH_NONE;
	return block;
}

/* The edge of a switch to a block; UINT32_MAX: none. */
static uint32_t edge_to(const struct graph *g, uint32_t from, uint32_t to)
{
	const struct graph_block *b = &g->blocks[from];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (g->edges[i].to == to && g->edges[i].kind != EDGE_LANDING)
			return i;
	return UINT32_MAX;
}

/* Whether the way of an entry is known: then it leads into the copy. */
static bool is_known(const struct writer *w, const struct table *t, uint32_t index)
{
	uint32_t to = index < t->of->entries ? target_of(w, t->of, index) : GRAPH_NONE;
	return to != GRAPH_NONE && edge_to(w->in->graph, t->block, to) != UINT32_MAX;
}

/* If it is not known for sure how long a table is, what follows may belong to it, as long as it looks like entries. These
   lead where they did. */
static uint32_t count_entries(const struct writer *w, const struct graph_table *t)
{
	uint32_t count = t->entries, most = count + WRITE_TABLE_SPARE;
	while (!t->exact && count < most && image_is_code(w->in->image, address_of(w, t, count)))
		count++;
	return count;
}

static const char *check_table(struct writer *w, struct table *t)
{
	const char *refused = w->cpu->check_table(w, t);
	if (!t->of->exact && t->of->entry_size != 4)
		return "how long the table of a switch is, is not known for sure";
	for (uint32_t i = 0; i < t->of->entries && t->of->exact && !refused; i++)
		if (!is_known(w, t, i))
			refused = WRITE_NO_TABLE;
	t->entries = count_entries(w, t->of);
	return refused;
}

/* ---- switches that share one ---- */

static struct table *table_of(const struct writer *w, uint32_t block)
{
	for (size_t i = 0; i < w->table_count; i++)
		if (w->tables[i].block == block)
			return &w->tables[i];
	return NULL;
}

uint32_t switches_owner(const struct writer *w, uint32_t block)
{
	const struct table *t = table_of(w, block);
	return t ? w->tables[t->owner].block : block;
}

const struct sums_block *switches_behind(const struct writer *w, uint32_t block)
{
	const struct table *t = table_of(w, block);
	return t && t->behind.varies ? &t->behind : &w->in->sums->blocks[block];
}

static uint32_t count_ways(const struct graph *g, uint32_t block)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < g->blocks[block].count; i++)
		count += g->edges[g->blocks[block].first + i].kind != EDGE_LANDING;
	return count;
}

/* Whether they go to the same blocks, where the same is needed, and end the same paths. */
static bool have_same_ways(const struct writer *w, const struct table *a, const struct table *b)
{
	const struct graph *g = w->in->graph;
	const struct numbering_edge *edges = w->in->sums->numbering.edges;
	const struct graph_block *from = &g->blocks[a->block];
	if (a->of->entry_size != b->of->entry_size || a->of->entries != b->of->entries ||
	    a->entries != b->entries || count_ways(g, a->block) != count_ways(g, b->block))
		return false;
	for (uint32_t i = from->first; i < from->first + from->count; i++) {
		uint32_t k = edge_to(g, b->block, g->edges[i].to);
		if (g->edges[i].kind != EDGE_LANDING &&
		    (k == UINT32_MAX || edges[i].cut != edges[k].cut ||
		     (edges[i].cut && edges[i].set != edges[k].set)))
			return false;
	}
	return true;
}

/* What must be added to the sum of a switch, so that the ways of the other one fit. False: there is no such number. */
static bool find_difference(const struct writer *w, const struct table *t,
			    const struct table *owner, int64_t *out)
{
	const struct graph *g = w->in->graph;
	const struct sums *sums = w->in->sums;
	const struct graph_block *from = &g->blocks[t->block];
	bool known = false;
	*out = 0;
	for (uint32_t i = from->first; i < from->first + from->count; i++) {
		uint32_t to = g->edges[i].to;
		bool matters = sums->numbering.edges[i].cut || sums->blocks[to].varies;
		if (g->edges[i].kind == EDGE_LANDING || !matters)
			continue;
		int64_t more = sums->numbering.edges[i].add -
			       sums->numbering.edges[edge_to(g, owner->block, to)].add;
		if (known && more != *out)
			return false;
		*out = more;
		known = true;
	}
	return true;
}

/* Registers that a switch leaves alone, with that of its sum. */
static uint32_t free_at(const struct writer *w, uint32_t block)
{
	const struct live *l = w->in->live;
	uint32_t jump = l->first[block + 1] - 1;
	return w->use.all & ~(l->insns[jump].use.reads | l->insns[jump].live | l->after[block]);
}

/* All switches with this table take the register for their sums: that of one of them, or any. */
static bool share_register(struct writer *w, size_t owner)
{
	uint32_t set = UINT32_MAX, wanted = 0;
	for (size_t i = owner; i < w->table_count; i++) {
		if (w->tables[i].owner != owner)
			continue;
		const struct sums_block *b = &w->in->sums->blocks[w->tables[i].block];
		set &= free_at(w, w->tables[i].block);
		wanted |= b->varies ? 1u << b->out : 0;
	}
	if (!set)
		return false;
	uint8_t reg = (uint8_t)__builtin_ctz(set & wanted ? set & wanted : set);
	for (size_t i = owner; i < w->table_count; i++)
		if (w->tables[i].owner == owner)
			w->tables[i].behind = (struct sums_block){
				.varies = true, .in = reg, .out = reg, .value = w->tables[i].more};
	return true;
}

/* Finds the switch whose new table is also for this one. Returns why there is none, though there must be. */
static const char *find_owner(struct writer *w, size_t which)
{
	struct table *t = &w->tables[which];
	t->owner = which;
	for (size_t i = 0; w->cpu->use->shares_tables && i < which; i++)
		if (w->tables[i].owner == i && w->tables[i].of->table == t->of->table) {
			if (!have_same_ways(w, t, &w->tables[i]) ||
			    !find_difference(w, t, &w->tables[i], &t->more))
				return same_table;
			t->owner = i;
		}
	return NULL;
}

/* ---- for writer.c ---- */

void switches_take(struct writer *w)
{
	const struct graph *g = w->in->graph;
	uint64_t at = w->in->tables;
	for (size_t i = 0; i < g->table_count && !w->refused; i++) {
		size_t which = w->table_count;
		struct table *t = &w->tables[which];
		*t = (struct table){
			.of = &g->tables[i], .to = at, .block = graph_find(g, g->tables[i].jump)};
		if (t->block == GRAPH_NONE || !g->blocks[t->block].reached)
			continue;
		w->table_count++;
		w->refused = check_table(w, t);
		if (!w->refused)
			w->refused = find_owner(w, which);
		if (t->owner == which)
			at += ((uint64_t)t->entries * t->size + ALIGNMENT - 1) &
			      ~(uint64_t)(ALIGNMENT - 1);
		else if (!w->refused && !share_register(w, t->owner))
			w->refused = "too few registers are free";
	}
}

/* Where the way to a block begins, from a switch. */
static uint32_t way_to(const struct writer *w, uint32_t from, uint32_t to)
{
	const struct graph_block *b = &w->in->graph->blocks[from];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (w->in->graph->edges[i].to == to && w->stubs[i] != UINT32_MAX)
			return w->stubs[i];
	return w->labels[to];
}

static void put_table(struct writer *w, const struct table *t, struct buf *out)
{
	for (uint32_t i = 0; i < t->entries; i++) {
		uint64_t to = is_known(w, t, i)
				      ? w->in->address + way_to(w, t->block, target_of(w, t->of, i))
				      : address_of(w, t->of, i);
		uint64_t word = t->size == 4 ? to - t->to : to + w->in->bias;
		buf_append(out, &word, t->size);
	}
	while (out->size % ALIGNMENT)
		buf_append(out, "", 1);
}

void switches_put(struct writer *w, struct buf *out)
{
	for (size_t k = 0; k < w->table_count && !w->refused; k++) {
		if (w->tables[k].owner != k)
			continue;
		if (!w->tables[k].used)
			w->refused = "where the table of a switch is used was not found";
		put_table(w, &w->tables[k], out);
	}
	w->failed |= out->failed;
}
