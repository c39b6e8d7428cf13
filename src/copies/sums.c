/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/graph.h"
#include "isa/insn.h"

#define ROUNDS_MAX 64u
#define PATHS_MOST 1024u /* with the same start */
#define PATHS_ALL (1u << 18)
#define SUM_MOST (1 << 27) /* what fits into the places of instructions, with room */

struct maker {
	const struct graph *graph;
	const struct live *live;
	const struct use_cpu *cpu;
	const double *weights;
	struct sums *out;
	bool *cuts, *pressed;
	bool more_cuts;  /* than in the round before, for switches that share a table */
	uint32_t *order; /* blocks: one comes after all from which an uncut edge leads to it */
	size_t order_count;
	int64_t *least, *most; /* by block: what may still be added to the sum behind it */
};

static bool is_call(const struct live_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT;
}

static bool leads_on(const struct maker *m, uint32_t edge)
{
	return !m->out->numbering.edges[edge].cut;
}

/* ---- the order ---- */

static bool visit_all(struct maker *m, uint8_t *state, uint32_t *stack, uint32_t *next)
{
	const struct graph *g = m->graph;
	size_t at = g->block_count;
	for (size_t root = 0; root < g->block_count; root++) {
		size_t depth = 0;
		if (!g->blocks[root].reached || state[root])
			continue;
		stack[depth++] = (uint32_t)root;
		state[root] = 1;
		while (depth) {
			uint32_t b = stack[depth - 1];
			if (next[b] == g->blocks[b].count) {
				m->order[--at] = b;
				depth--;
				continue;
			}
			uint32_t edge = g->blocks[b].first + next[b]++, to = g->edges[edge].to;
			if (leads_on(m, edge) && !state[to]) {
				state[to] = 1;
				stack[depth++] = to;
			}
		}
	}
	m->order_count = g->block_count - at;
	memmove(m->order, m->order + at, m->order_count * sizeof *m->order);
	return true;
}

static bool find_order(struct maker *m)
{
	size_t blocks = m->graph->block_count;
	uint8_t *state = calloc(blocks + 1, 1);
	uint32_t *stack = calloc(blocks + 1, sizeof *stack);
	uint32_t *next = calloc(blocks + 1, sizeof *next);
	bool good = state && stack && next && visit_all(m, state, stack, next);
	free(state);
	free(stack);
	free(next);
	return good;
}

/* ---- which sums are known ---- */

static void meet(struct sums_block *b, bool *seen, bool varies, int64_t value)
{
	if (*seen && (varies || b->value != value))
		b->varies = true;
	if (!*seen)
		*b = (struct sums_block){.varies = varies, .value = value};
	*seen = true;
}

static void find_values(struct maker *m, bool *seen)
{
	const struct graph *g = m->graph;
	const struct numbering *n = &m->out->numbering;
	struct sums_block *blocks = m->out->blocks;
	memset(seen, 0, g->block_count * sizeof *seen);
	meet(&blocks[g->entry], &seen[g->entry], false, n->starts[0].set);
	for (size_t i = 0; i < g->edge_count; i++) /* what is set, wherever it comes from */
		if (n->edges[i].cut && g->blocks[g->edges[i].from].reached)
			meet(&blocks[g->edges[i].to], &seen[g->edges[i].to], false,
			     n->edges[i].set);
	for (size_t k = 0; k < m->order_count; k++) {
		uint32_t from = m->order[k];
		const struct graph_block *b = &g->blocks[from];
		for (uint32_t i = b->first; i < b->first + b->count; i++)
			if (leads_on(m, i))
				meet(&blocks[g->edges[i].to], &seen[g->edges[i].to],
				     blocks[from].varies, blocks[from].value + n->edges[i].add);
	}
}

/* ---- registers ---- */

static uint32_t touched(const struct live_insn *i)
{
	return i->live | i->use.reads | i->use.writes;
}

/* Registers that are free from instruction `first` to right before `end`. */
static uint32_t free_between(const struct maker *m, uint32_t first, uint32_t end, uint32_t after)
{
	uint32_t busy = after;
	for (uint32_t k = first; k < end; k++)
		busy |= touched(&m->live->insns[k]);
	return m->cpu->all & ~busy;
}

static uint32_t live_after(const struct maker *m, uint32_t block, uint32_t insn)
{
	return insn + 1 < m->live->first[block + 1] ? m->live->insns[insn + 1].live
						    : m->live->after[block];
}

static uint8_t flags_after(const struct maker *m, uint32_t block, uint32_t insn)
{
	return insn + 1 < m->live->first[block + 1] ? m->live->insns[insn + 1].flags
						    : m->live->flags_after[block];
}

/* Registers that calls may change come first: they are free more often. */
static uint8_t pick(const struct maker *m, uint32_t set, uint8_t wanted)
{
	static const uint8_t high_first = 31;
	if (wanted != SUMS_NONE && set >> wanted & 1)
		return wanted;
	for (int kept = 0; kept < 2; kept++)
		for (int r = high_first; r >= 0; r--)
			if (set >> r & 1 && (m->cpu->kept >> r & 1) == (uint32_t)kept)
				return (uint8_t)r;
	return SUMS_NONE;
}

/* The same for several; 0: there are too few. */
static uint32_t pick_some(const struct maker *m, uint32_t set, unsigned count)
{
	uint32_t out = 0;
	for (; count; count--) {
		uint8_t reg = pick(m, set & ~out, SUMS_NONE);
		if (reg == SUMS_NONE)
			return 0;
		out |= 1u << reg;
	}
	return out;
}

/* Finds the first and the last call after which the block goes on. */
static bool find_calls(const struct maker *m, uint32_t block, uint32_t *first, uint32_t *last)
{
	const struct live *l = m->live;
	bool stops = m->graph->blocks[block].ends == GRAPH_STOPS;
	uint32_t end = l->first[block + 1] - (stops && l->first[block + 1] > l->first[block]);
	*first = *last = SUMS_NO_CALL;
	for (uint32_t k = l->first[block]; k < end; k++)
		if (is_call(&l->insns[k])) {
			*first = *first == SUMS_NO_CALL ? k : *first;
			*last = k;
		}
	return *first != SUMS_NO_CALL;
}

/* Adds up how SP moves from before the first call to behind the last one. False: that is not known; or SP is higher at
   another call than at the first, where the sum is kept: who is called there would take that for gone. */
static bool add_sp_moves(const struct maker *m, struct sums_block *b)
{
	b->sp_moves = 0;
	for (uint32_t k = b->save; k <= b->restore; k++) {
		bool higher = b->sp_moves > 0 && is_call(&m->live->insns[k]);
		if (m->live->insns[k].sets_sp || higher)
			return false;
		b->sp_moves += m->live->insns[k].sp_moves;
	}
	return true;
}

/* Finds registers for a block with calls. */
static bool place_around_calls(const struct maker *m, uint32_t block, uint8_t wanted)
{
	const struct live *l = m->live;
	struct sums_block *b = &m->out->blocks[block];
	const struct live_insn *save = &l->insns[b->save];
	uint32_t behind = live_after(m, block, b->restore);
	uint32_t in = free_between(m, l->first[block], b->save, save->live);
	uint32_t out = free_between(m, b->restore + 1, l->first[block + 1],
				    behind | l->after[block]);
	b->in = pick(m, in, wanted);
	b->out = pick(m, out, b->in);
	if (b->in == SUMS_NONE || b->out == SUMS_NONE)
		return false;
	bool flags = save->flags || flags_after(m, block, b->restore);
	b->save_free = pick_some(m, m->cpu->all & ~save->live & ~(1u << b->in), m->cpu->to_keep);
	b->restore_free = pick_some(m, m->cpu->all & ~behind & ~(1u << b->out), m->cpu->to_keep);
	return (b->save_free || m->cpu->keeps_on_stack) && b->restore_free &&
	       !(flags && m->cpu->changes_flags) && add_sp_moves(m, b);
}

static bool place_block(const struct maker *m, uint32_t block, uint8_t wanted)
{
	const struct live *l = m->live;
	struct sums_block *b = &m->out->blocks[block];
	if (find_calls(m, block, &b->save, &b->restore))
		return place_around_calls(m, block, wanted);
	uint32_t set = free_between(m, l->first[block], l->first[block + 1], l->after[block]);
	b->in = b->out = pick(m, set, wanted);
	return b->in != SUMS_NONE;
}

/* Finds registers that are free where an exception comes in. */
static void place_landing(const struct maker *m, uint32_t block)
{
	struct sums_block *b = &m->out->blocks[block];
	b->landing_free = 0;
	b->landing_sum = SUMS_NONE;
	if (!m->graph->blocks[block].landing)
		return;
	uint32_t set = m->cpu->all & ~live_at_landing(m->live, m->cpu, block);
	b->landing_free = pick_some(m, set, m->cpu->to_keep);
	if (b->landing_free)
		b->landing_sum = pick(m, set & ~b->landing_free, SUMS_NONE);
}

/* ---- where paths can end ---- */

static bool take_highest(uint32_t set, unsigned count, uint32_t *out)
{
	for (*out = 0; count && set; count--) {
		uint32_t highest = 1u << (31 - __builtin_clz(set));
		*out |= highest;
		set &= ~highest;
	}
	return !count;
}

/* `sum`: the register that has the sum; SUMS_NONE: there is none. */
static bool find_counting(const struct use_cpu *cpu, uint8_t flags, uint32_t busy, uint8_t sum,
			  uint32_t *out)
{
	unsigned count = flags & USE_OTHERS ? cpu->to_count_slowly : cpu->to_count;
	if (sum != SUMS_NONE) {
		busy |= 1u << sum;
		count -= cpu->uses_sum;
	}
	return take_highest(cpu->all & ~busy, count, out);
}

/* Registers and flags that are live where a path ends. */
static void find_busy(const struct graph *graph, const struct live *live, uint32_t block,
		      uint32_t edge, uint8_t *flags, uint32_t *busy)
{
	const struct graph_block *b = &graph->blocks[block];
	uint32_t end = live->first[block + 1];
	if (edge != SUMS_LEAVES) {
		*flags = live_flags_at_block(live, graph->edges[edge].to);
		*busy = live_at_block(live, graph->edges[edge].to);
	} else if (b->ends == GRAPH_BRANCHES || end == live->first[block]) {
		*flags = live->flags_after[block];
		*busy = live->after[block];
	} else {
		*flags = live->insns[end - 1].flags;
		*busy = live->insns[end - 1].live;
	}
}

uint32_t sums_free_registers(const struct graph *graph, const struct live *live,
			     const struct use_cpu *cpu, const struct sums_block *sum,
			     uint32_t block, uint32_t edge)
{
	uint32_t busy;
	uint8_t flags;
	find_busy(graph, live, block, edge, &flags, &busy);
	return cpu->all & ~busy & ~(sum->varies ? 1u << sum->out : 0);
}

bool sums_counting_registers(const struct graph *graph, const struct live *live,
			     const struct use_cpu *cpu, const struct sums_block *sum,
			     uint32_t block, uint32_t edge, uint32_t *out)
{
	uint32_t busy;
	uint8_t flags;
	find_busy(graph, live, block, edge, &flags, &busy);
	return find_counting(cpu, flags, busy, sum->varies ? sum->out : SUMS_NONE, out);
}

static bool can_count(const struct maker *m, uint32_t block, uint32_t edge)
{
	uint32_t set;
	if (edge != SUMS_LEAVES && m->graph->edges[edge].kind == EDGE_LANDING)
		return m->out->blocks[m->graph->edges[edge].to].landing_sum != SUMS_NONE;
	return sums_counting_registers(m->graph, m->live, m->cpu, &m->out->blocks[block], block,
				       edge, &set);
}

/* Whether no path can end at an edge, because neither the flags nor a register is free there. */
static bool is_barred(const struct maker *m, uint32_t edge)
{
	const struct graph_edge *e = &m->graph->edges[edge];
	return e->kind != EDGE_LANDING && !can_count(m, e->from, edge);
}

/* Cuts all ways to a block, so its sum is known. Instead of a way that no path can end at, the ways to where it comes from
   are cut. */
static void press(struct maker *m, uint32_t block)
{
	const struct graph *g = m->graph;
	if (m->pressed[block])
		return;
	m->pressed[block] = true;
	m->out->pressed++;
	for (uint32_t i = 0; i < g->edge_count; i++) {
		if (g->edges[i].to != block)
			continue;
		if (is_barred(m, i))
			press(m, g->edges[i].from);
		else
			m->cuts[i] = true;
	}
}

/* Finds places for all sums. Returns whether there is one for each; else more ways are cut now. */
static bool place_all(struct maker *m, uint8_t *wanted)
{
	const struct graph *g = m->graph;
	bool all = true;
	memset(wanted, SUMS_NONE, g->block_count);
	for (size_t k = 0; k < m->order_count; k++) {
		uint32_t block = m->order[k];
		const struct graph_block *b = &g->blocks[block];
		struct sums_block *s = &m->out->blocks[block];
		s->in = s->out = SUMS_NONE;
		s->save = s->restore = SUMS_NO_CALL;
		if (s->varies && !place_block(m, block, wanted[block])) {
			press(m, block);
			all = false;
		}
		place_landing(m, block);
		for (uint32_t i = b->first; i < b->first + b->count; i++)
			if (leads_on(m, i) && wanted[g->edges[i].to] == SUMS_NONE)
				wanted[g->edges[i].to] = s->out;
	}
	return all;
}

/* ---- sums that are lost ---- */

static void add_way(const struct maker *m, uint32_t block, int64_t least, int64_t most, bool *any)
{
	m->least[block] = *any && m->least[block] < least ? m->least[block] : least;
	m->most[block] = *any && m->most[block] > most ? m->most[block] : most;
	*any = true;
}

/* A sum that is lost becomes one that leads behind all numbers of paths, whatever is still added. */
static bool find_lost(struct maker *m)
{
	const struct graph *g = m->graph;
	const struct numbering *n = &m->out->numbering;
	int64_t widest = 0;
	for (size_t k = m->order_count; k-- > 0;) {
		uint32_t block = m->order[k];
		const struct graph_block *b = &g->blocks[block];
		bool any = false;
		if (numbering_leaves(g, block))
			add_way(m, block, n->leave[block], n->leave[block], &any);
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			int64_t add = n->edges[i].add;
			uint32_t to = g->edges[i].to;
			if (n->edges[i].thrown)
				continue;
			if (n->edges[i].cut)
				add_way(m, block, add, add, &any);
			else
				add_way(m, block, add + m->least[to], add + m->most[to], &any);
		}
		m->out->blocks[block].lost = (int64_t)n->path_count - m->least[block];
		if (m->most[block] - m->least[block] > widest)
			widest = m->most[block] - m->least[block];
		if (llabs(m->least[block]) > SUM_MOST || llabs(m->most[block]) > SUM_MOST)
			return false;
	}
	m->out->words = n->path_count + (uint64_t)widest + 1;
	return m->out->words < SUM_MOST;
}

/* ---- whether it can be counted ---- */

/* Whether more or less than one of the paths that start at the entry may end for a call of the function. */
static bool may_differ(const struct maker *m)
{
	const struct graph *g = m->graph;
	for (size_t i = 0; i < m->live->insn_count; i++)
		if (is_call(&m->live->insns[i]))
			return true;
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].to == g->entry)
			return true;
	return false;
}

/* Calls are counted without a look at the flags. */
static bool can_count_entry(const struct maker *m)
{
	uint32_t entry = m->graph->entry;
	m->out->counts_calls = may_differ(m);
	if (!m->out->counts_calls)
		return true;
	uint8_t flags = live_flags_at_block(m->live, entry);
	return !(m->cpu->changes_flags && flags & USE_OTHERS) &&
	       find_counting(m->cpu, 0, live_at_block(m->live, entry), SUMS_NONE,
			     &m->out->entry_free);
}

/* Whether a path can be counted where it ends. If not, it may be if its sum is known, and needs no register. */
static bool settle_end(struct maker *m, uint32_t block, uint32_t edge)
{
	if (can_count(m, block, edge))
		return true;
	if (m->out->blocks[block].varies)
		press(m, block);
	return false;
}

/* The same for all paths. */
static bool settle_ends(struct maker *m)
{
	const struct graph *g = m->graph;
	const struct numbering *n = &m->out->numbering;
	bool all = true;
	for (uint32_t i = 0; i < g->edge_count; i++)
		if (n->edges[i].cut && !n->edges[i].thrown && g->blocks[g->edges[i].from].reached)
			all &= settle_end(m, g->edges[i].from, i);
	for (uint32_t b = 0; b < g->block_count; b++)
		if (g->blocks[b].reached && numbering_leaves(g, b))
			all &= settle_end(m, b, SUMS_LEAVES);
	return all;
}

static struct err *make_numbers(struct maker *m)
{
	struct numbering_input input = {
		.graph = m->graph, .weights = m->weights, .cuts = m->cuts, .most = PATHS_MOST};
	for (;; input.most /= 8) {
		struct err *e = numbering_make(&input, &m->out->numbering);
		if (e || m->out->numbering.path_count <= PATHS_ALL || input.most < 8)
			return e;
		numbering_free(&m->out->numbering);
	}
}

/* Where one of two switches that share a table ends a path on the way to a block, the other one must, too. Returns whether it
   is so; else more ways are cut now. */
static bool have_same_cuts(struct maker *m, uint32_t a, uint32_t b)
{
	const struct graph *g = m->graph;
	const struct numbering_edge *edges = m->out->numbering.edges;
	bool same = true;
	for (uint32_t i = g->blocks[a].first; i < g->blocks[a].first + g->blocks[a].count; i++)
		for (uint32_t k = g->blocks[b].first; k < g->blocks[b].first + g->blocks[b].count;
		     k++)
			if (g->edges[i].to == g->edges[k].to && g->edges[i].kind != EDGE_LANDING &&
			    g->edges[k].kind != EDGE_LANDING && edges[i].cut != edges[k].cut)
				same = !(m->cuts[i] = m->cuts[k] = true);
	return same;
}

static bool share_cuts(struct maker *m)
{
	const struct graph *g = m->graph;
	bool same = true;
	for (size_t i = 0; m->cpu->shares_tables && i < g->table_count; i++)
		for (size_t k = 0; k < i; k++) {
			uint32_t a = graph_find(g, g->tables[i].jump),
				 b = graph_find(g, g->tables[k].jump);
			if (g->tables[i].table == g->tables[k].table && a != GRAPH_NONE &&
			    b != GRAPH_NONE)
				same &= have_same_cuts(m, a, b);
		}
	m->more_cuts |= !same;
	return same;
}

static const char no_place[] = "too few registers are free";
static const char no_cuts[] = "two switches have the same table";
static const char no_count[] = "flags and registers are needed where a path ends";

/* Sets why the sums cannot be kept so; NULL: they can. */
static struct err *make_round(struct maker *m, bool *seen, uint8_t *wanted)
{
	numbering_free(&m->out->numbering);
	struct err *e = make_numbers(m);
	if (e)
		return e;
	if (!share_cuts(m)) {
		m->out->refused = no_cuts;
		return NULL;
	}
	if (!find_order(m))
		return err_new("out of memory");
	find_values(m, seen);
	m->out->refused = !place_all(m, wanted) ? no_place : !settle_ends(m) ? no_count : NULL;
	return NULL;
}

/* Round by round, until all is well, or nothing more can be cut. */
static struct err *make_rounds(struct maker *m)
{
	size_t blocks = m->graph->block_count, before;
	bool *seen = calloc(blocks + 1, sizeof *seen);
	uint8_t *wanted = calloc(blocks + 1, 1);
	struct err *e = seen && wanted ? NULL : err_new("out of memory");
	for (unsigned i = 0; i < ROUNDS_MAX && !e; i++) {
		before = m->out->pressed;
		m->more_cuts = false;
		e = make_round(m, seen, wanted);
		if (!m->out->refused || (m->out->pressed == before && !m->more_cuts))
			break;
	}
	free(seen);
	free(wanted);
	return e;
}

static struct err *make_all(struct maker *m)
{
	struct err *e = make_rounds(m);
	if (e || m->out->refused)
		return e;
	if (m->out->numbering.path_count > PATHS_ALL || !find_lost(m))
		m->out->refused = "it has too many paths";
	else if (!can_count_entry(m))
		m->out->refused = no_count;
	return NULL;
}

struct err *sums_make(const struct graph *graph, const struct live *live, const struct use_cpu *cpu,
		      const double *weights, struct sums *out)
{
	size_t blocks = graph->block_count;
	struct maker m = {.graph = graph, .live = live, .cpu = cpu, .weights = weights, .out = out};
	*out = (struct sums){0};
	out->blocks = calloc(blocks + 1, sizeof *out->blocks);
	m.cuts = calloc(graph->edge_count + 1, sizeof *m.cuts);
	m.pressed = calloc(blocks + 1, sizeof *m.pressed);
	m.order = calloc(blocks + 1, sizeof *m.order);
	m.least = calloc(blocks + 1, sizeof *m.least);
	m.most = calloc(blocks + 1, sizeof *m.most);
	struct err *e = out->blocks && m.cuts && m.pressed && m.order && m.least && m.most
				? make_all(&m)
				: err_new("out of memory");
	free(m.cuts);
	free(m.pressed);
	free(m.order);
	free(m.least);
	free(m.most);
	if (e)
		sums_free(out);
	return e;
}

void sums_free(struct sums *s)
{
	numbering_free(&s->numbering);
	free(s->blocks);
	*s = (struct sums){0};
}
