/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guilty until proven innocent: for each instruction that loses cycles, all causes that may be to blame, each
 * with the most that it can have cost; what cannot be is left out.
 *
 *   data cache   a load; not from the stack, a fixed address or one that stays the same; at most what the
 *                smallest cache costs that all of the loop's data fits into
 *   data TLB     a load; at most a page walk each time, or less often where the address moves by less than a
 *                page; and of addresses without a rule, not without the caches. Where each is in another page, and there are
 *                more of them than a TLB holds, it is the caches that have a limit: several lines come at once
 *   mispredict   shortly behind a branch; at most the rarer way, each time. What was measured for one is the least: what the
 *                CPU would have done ahead meanwhile is lost, too
 *   code         at the begin of a cache line, or where code comes from elsewhere; not if all code that runs
 *                fits into the cache
 *   stores       a store
 *   sharing      an access that several threads do at once, to an address that stays, or that is written
 *   forwarding   a load of bytes that several stores before it wrote, or one that wrote only a part
 *   page faults  what the kernel was seen to do for them: known
 *
 * Each cause then has a range: at least what no other can explain, at most what it can.
 */
#include <math.h>
#include <stdlib.h>

#include "explain/internal.h"
#include "explain/machine.h"
#include "isa/insn.h"

#define CODE_LINE 64
#define CODE_PAGE 4096
#define CODE_CACHE (48 << 10) /* bytes of code that fit anywhere */
#define CODE_PAGES 48         /* and pages */
#define PAGE 4096.0
#define LINE 64.0
#define TLB_PAGES 1500 /* that fit into the larger TLB */
#define MISSES_AT_ONCE \
	10.0 /* lines that any CPU waits for at the same time, where their addresses are known before */
#define TLB_SECOND 4.0    /* cycles until that one has answered; four of five loads ask it */
#define FEW_RUNS_OFF 3.0  /* times that something runs more often than estimated, at most */
#define GUESS_AT_MOST 1.5 /* times what a wrong guess costs where it was measured */
#define BRANCH_REACH 24   /* instructions behind a branch that a wrong guess holds up */
#define SLICE_REACH 24    /* instructions before, in which a slow load is looked for */
#define STORE_REACH 24    /* the same for a store that a load takes its value from */

struct suspect {
	uint8_t cause;
	uint32_t by;
	double most;  /* cycles of one execution */
	double usual; /* the same, if code ran as often as estimated */
};

struct suspects {
	struct suspect all[CAUSES];
	unsigned count;
};

/* Cycles that branches can still be blamed for, by block that ends with one. */
struct investigation {
	struct function *f;
	double *budget;
	double *usual; /* the share of it that is usual */
};

static void accuse_likely(struct suspects *s, enum cause cause, uint32_t by, double most,
			  double usual)
{
	if (most <= 0 || s->count >= CAUSES)
		return;
	usual = fmin(most, usual);
	for (unsigned i = 0; i < s->count; i++)
		if (s->all[i].cause == cause) {
			s->all[i].most = fmax(s->all[i].most, most);
			s->all[i].usual = fmax(s->all[i].usual, usual);
			return;
		}
	s->all[s->count++] = (struct suspect){(uint8_t)cause, by, most, usual};
}

static void accuse(struct suspects *s, enum cause cause, uint32_t by, double most)
{
	accuse_likely(s, cause, by, most, most);
}

/* ---- the way here ---- */

/* Goes back from an instruction, on the way that it is mostly come to. */
struct way {
	const struct function *f;
	uint32_t block, insn; /* insn: the one that comes next is before it */
};

static bool go_back(struct way *w, uint32_t *out)
{
	const struct function_private *p = w->f->own;
	for (unsigned hops = 0; w->block != GRAPH_NONE && hops < 8; hops++) {
		if (w->insn > p->first[w->block]) {
			*out = --w->insn;
			return true;
		}
		w->block = p->before[w->block];
		if (w->block == GRAPH_NONE)
			break;
		w->insn = p->first[w->block] + p->count[w->block];
	}
	return false;
}

static bool is_call(const struct explain_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT || i->kind == INSN_SYSCALL;
}

/* ---- loads ---- */

/* The constant that a register has everywhere: one instruction sets it (mov x4, #0x1040). */
static bool constant_of(const struct function *f, uint8_t reg, int64_t *out)
{
	bool found = false;
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct operands *o = &f->insns[k].operands;
		if (!(o->writes >> reg & 1))
			continue;
		if (found || !function_constant(f, k, out))
			return false;
		found = true;
	}
	return found;
}

static bool is_inside(const struct function *f, uint32_t loop, uint32_t outer)
{
	while (loop != LOOP_NONE && loop != outer)
		loop = f->loops.loops[loop].parent;
	return loop == outer;
}

/* What a register is stepped with in each iteration of its loop. INT64_MAX: not known; 0: it stays. */
static int64_t step_of(const struct function *f, uint32_t loop, uint8_t reg)
{
	int64_t sum = 0;
	if (reg >= OPERANDS_VECTOR)
		return INT64_MAX;
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		const struct operands *o = &i->operands;
		if (i->block == GRAPH_NONE || !is_inside(f, f->loops.innermost[i->block], loop))
			continue;
		if (is_call(i))
			return INT64_MAX;
		if (!(o->writes >> reg & 1))
			continue;
		if (f->loops.innermost[i->block] != loop)
			return INT64_MAX;
		int64_t by = 0;
		if (o->base_moves && o->base == reg)
			by = o->step;
		else if (!o->adds || o->sum != reg || o->addend != reg)
			return INT64_MAX;
		else if (o->stepper == INSN_NO_REG)
			by = o->added;
		else if (!constant_of(f, o->stepper, &by))
			return INT64_MAX;
		sum += by;
	}
	return sum;
}

int64_t stride_of(const struct function *f, uint32_t insn)
{
	const struct explain_insn *i = &f->insns[insn];
	uint32_t loop = i->block == GRAPH_NONE ? LOOP_NONE : f->loops.innermost[i->block];
	int64_t sum = 0;
	if (loop == LOOP_NONE)
		return INT64_MAX;
	for (uint64_t set = i->operands.address; set; set &= set - 1) {
		int64_t step = step_of(f, loop, (uint8_t)__builtin_ctzll(set));
		if (step == INT64_MAX)
			return step;
		if (set & (set - 1) && step) /* scaled by what is not known here */
			return INT64_MAX;
		sum += step;
	}
	return sum;
}

uint32_t forwarding_blocker(const struct function *f, uint32_t insn)
{
	const struct operands *load = &f->insns[insn].operands;
	struct way way = {f, f->insns[insn].block, insn};
	uint32_t at;
	if (!load->plain_offset || load->base >= OPERANDS_VECTOR || !load->size)
		return GRAPH_NONE;
	for (unsigned i = 0; i < STORE_REACH && go_back(&way, &at); i++) {
		const struct operands *o = &f->insns[at].operands;
		if (is_call(&f->insns[at]))
			break;
		bool same = o->store && o->plain_offset && o->base == load->base && !o->base_moves;
		if (same && o->offset < load->offset + load->size &&
		    load->offset < o->offset + o->size) {
			bool whole = o->offset <= load->offset &&
				     load->offset + load->size <= o->offset + o->size;
			return whole ? GRAPH_NONE : at;
		}
		if (o->writes >> load->base & 1)
			break;
	}
	return GRAPH_NONE;
}

static double count_entries(const struct function *f, uint32_t loop, bool least)
{
	uint32_t header = f->loops.loops[loop].header;
	double in = 0;
	for (uint32_t i = f->own->come_first[header]; i < f->own->come_first[header + 1]; i++) {
		const struct graph_edge *e = &f->graph.edges[f->own->come[i]];
		uint32_t from = f->loops.innermost[e->from];
		while (from != LOOP_NONE && from != loop)
			from = f->loops.loops[from].parent;
		if (from != loop)
			in += least ? f->frequency.edges[f->own->come[i]].low
				    : f->frequency.edges[f->own->come[i]].executions;
	}
	if (f->graph.entry == header)
		in += least ? f->frequency.entries.low : f->frequency.entries.executions;
	return in;
}

double loop_entries(const struct function *f, uint32_t loop)
{
	return count_entries(f, loop, false);
}

static double loop_entries_least(const struct function *f, uint32_t loop)
{
	return count_entries(f, loop, true);
}

/* Iterations for each time that the loop of an instruction is come to: estimated, and at most. */
static double trips_of(const struct function *f, uint32_t insn)
{
	uint32_t loop = f->loops.innermost[f->insns[insn].block];
	double all = f->frequency.blocks[f->loops.loops[loop].header].executions;
	return all / fmax(1, loop_entries(f, loop));
}

static double trips_at_most(const struct function *f, uint32_t insn)
{
	uint32_t loop = f->loops.innermost[f->insns[insn].block];
	double all = f->frequency.blocks[f->loops.loops[loop].header].executions;
	return all / fmax(1, loop_entries_least(f, loop));
}

/* How many instructions an iteration of a loop has, about. */
static double length_of(const struct function *f, uint32_t loop)
{
	double length = 0;
	for (size_t b = 0; b < f->graph.block_count; b++)
		if (is_inside(f, f->loops.innermost[b], loop))
			length += f->own->count[b];
	return length;
}

/* The most that caches can cost a load whose address moves evenly, through so many bytes. The addresses do not wait for each
   other: what the second cache takes is hidden by as many iterations as are in flight. */
static double cache_at_most(const struct function *f, uint32_t insn, double bytes)
{
	const struct calibration *c = &f->machine->numbers;
	if (bytes <= c->l1_size)
		return 1;
	if (bytes <= c->l2_size)
		return 2 + c->l2 * length_of(f, f->loops.innermost[f->insns[insn].block]) /
				   f->machine->window;
	return INFINITY;
}

/* What caches and TLBs can cost a load whose address moves by so many bytes in each of so many iterations. */
static void limit_walk(const struct function *f, uint32_t by, double apart, double trips,
		       double lost, double *cache, double *walk)
{
	const struct calibration *c = &f->machine->numbers;
	*walk = (c->walk + c->l2) * fmin(1, apart / PAGE);
	if (trips * fmin(1, apart / PAGE) < 32)
		*walk = fmin(*walk, c->l2 / 2);
	*cache = cache_at_most(f, by, trips * fmin(apart, LINE));
	if (apart >= PAGE && trips > TLB_PAGES) { /* each is a miss */
		*walk = lost;
		*cache = fmin(*cache, c->dram / MISSES_AT_ONCE);
	}
}

/* The most that page walks can cost a load whose addresses follow no rule. Where data has more pages than a TLB
   holds, it has far more lines than the caches hold that are as fast: who misses the one misses the other. */
static double walks_at_most(const struct calibration *c, double lost)
{
	double near = TLB_SECOND / (TLB_SECOND + fmax(1, c->l2 - c->l1));
	double far = c->walk / (c->walk + fmax(1, c->l3 - c->l1));
	return fmin(c->walk + c->l2, lost * fmax(near, far));
}

/* Whether its address is one that other threads may write to, too: it stays where it is while the loop runs, or
   is that of a table that the loop writes; and other threads run the same code. */
static bool may_be_shared(const struct function *f, uint32_t insn, int64_t stride)
{
	const struct explain_insn *i = &f->insns[insn];
	if (!i->shared || i->operands.stack || (stride && stride != INT64_MAX))
		return false;
	if (i->operands.fixed || i->operands.store || !stride)
		return true;
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct operands *o = &f->insns[k].operands;
		if (o->store && !o->stack && f->insns[k].block != GRAPH_NONE &&
		    f->loops.innermost[f->insns[k].block] == f->loops.innermost[i->block] &&
		    o->base == i->operands.base)
			return true;
	}
	return false;
}

static void suspect_load(const struct function *f, uint32_t by, double lost, struct suspects *s)
{
	const struct calibration *c = &f->machine->numbers;
	const struct operands *o = &f->insns[by].operands;
	uint32_t store = forwarding_blocker(f, by);
	if (store != GRAPH_NONE) {
		accuse(s, CAUSE_FORWARD, store, fmax(3 * c->forward, 20));
		return;
	}
	int64_t stride = o->stack || o->fixed ? 0 : stride_of(f, by);
	if (may_be_shared(f, by, stride))
		accuse(s, CAUSE_SHARING, by, lost);
	if (o->stack || o->fixed)
		return;
	if (!stride) { /* only the first time */
		double trips = trips_of(f, by);
		accuse(s, CAUSE_DCACHE, by, fmin(lost, c->dram / trips));
		accuse(s, CAUSE_DTLB, by, fmin(lost, c->walk / trips));
		return;
	}
	if (stride == INT64_MAX) {
		accuse(s, CAUSE_DCACHE, by, lost);
		accuse(s, CAUSE_DTLB, by, fmin(walks_at_most(c, lost), lost));
		return;
	}
	double apart = fabs((double)stride), cache, walk, usual_cache, usual_walk;
	limit_walk(f, by, apart, trips_at_most(f, by), lost, &cache, &walk);
	limit_walk(f, by, apart, trips_of(f, by), lost, &usual_cache, &usual_walk);
	accuse_likely(s, CAUSE_DCACHE, by, fmin(cache, lost), usual_cache);
	accuse_likely(s, CAUSE_DTLB, by, fmin(walk, lost), usual_walk);
}

static void suspect_store(const struct function *f, uint32_t by, double lost, struct suspects *s)
{
	int64_t stride = f->insns[by].operands.fixed ? 0 : stride_of(f, by);
	if (may_be_shared(f, by, stride))
		accuse(s, CAUSE_SHARING, by, lost);
	if (stride) /* else it is the same line each time */
		accuse(s, CAUSE_STORE, by, lost);
}

static void suspect_lock(const struct function *f, uint32_t by, double lost, struct suspects *s)
{
	accuse(s, CAUSE_LOCK, by, lost);
	if (f->insns[by].operands.class == OPERANDS_ATOMIC &&
	    may_be_shared(f, by, f->insns[by].operands.fixed ? 0 : stride_of(f, by)))
		accuse(s, CAUSE_SHARING, by, lost);
}

/* A load whose value this one needs, if it is not far before. */
static uint32_t slow_load_for(const struct function *f, uint32_t insn)
{
	struct way way = {f, f->insns[insn].block, insn};
	uint64_t wanted = f->insns[insn].operands.reads | f->insns[insn].operands.address;
	bool flags = f->insns[insn].operands.reads_flags;
	uint32_t at;
	for (unsigned i = 0; i < SLICE_REACH && go_back(&way, &at); i++) {
		const struct operands *o = &f->insns[at].operands;
		if (is_call(&f->insns[at]))
			break;
		if (!(o->writes & wanted) && !(flags && o->writes_flags))
			continue;
		if (o->load && !o->stack && !o->fixed)
			return at;
		wanted = (wanted & ~o->writes) | o->reads | o->address;
		flags = (flags && !o->writes_flags) || o->reads_flags;
	}
	return GRAPH_NONE;
}

/* What holds up all that comes behind it, also what needs nothing of it: a full buffer of stores, a lock. */
static void suspect_before(const struct function *f, uint32_t insn, double lost, struct suspects *s)
{
	struct way way = {f, f->insns[insn].block, insn};
	uint32_t at;
	for (unsigned i = 0; i < SLICE_REACH && go_back(&way, &at); i++) {
		const struct operands *o = &f->insns[at].operands;
		if (o->class == OPERANDS_ATOMIC || o->class == OPERANDS_FENCE) {
			suspect_lock(f, at, lost, s);
			return;
		}
		if (o->store && !o->stack) {
			suspect_store(f, at, lost, s);
			return;
		}
		if (is_call(&f->insns[at]))
			return;
	}
}

/* Where the buffer of stores is full, no more instructions come in, from the group on that the next store is in. Those before
   the store wait with it. */
static void suspect_behind(const struct function *f, uint32_t insn, double lost, struct suspects *s)
{
	uint32_t end = f->own->first[f->insns[insn].block] + f->own->count[f->insns[insn].block];
	uint32_t width = (uint32_t)ceil(f->machine->numbers.width);
	for (uint32_t k = insn + 1; k < end && k <= insn + width; k++) {
		const struct operands *o = &f->insns[k].operands;
		if (o->class != OPERANDS_PLAIN || is_call(&f->insns[k]))
			return;
		if (o->store && !o->stack && !f->insns[k].operands.fixed && stride_of(f, k)) {
			accuse(s, CAUSE_STORE, k, lost);
			return;
		}
	}
}

/* ---- branches ---- */

/* How many times a way was gone at most, as sure as that is. Of one without samples hardly anything is known, but it was not
   gone often. */
static double runs_at_most(const struct frequency *q)
{
	return fmin(q->high, FEW_RUNS_OFF * q->executions);
}

/* How many times the rarer ways of a block's end were gone: estimated, or at most. */
static double rarer_ways(const struct function *f, uint32_t block, bool at_most)
{
	const struct graph_block *b = &f->graph.blocks[block];
	double all = 0, sum = 0, most = 0;
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		const struct frequency *q = &f->frequency.edges[i];
		double runs = at_most ? runs_at_most(q) : q->executions;
		all += q->executions;
		sum += runs;
		most = fmax(most, runs);
	}
	return fmin(sum - most, b->count ? all - all / b->count : 0);
}

static bool is_guessed(const struct graph_block *b)
{
	return b->ends == GRAPH_BRANCHES || b->ends == GRAPH_SWITCHES ||
	       b->ends == GRAPH_UNRESOLVED;
}

/* All branches from which this instruction may be come to within reach have a part in it. */
static void suspect_branches(const struct investigation *v, uint32_t insn, struct suspects *s)
{
	const struct function *f = v->f;
	uint32_t block = f->insns[insn].block, best = GRAPH_NONE;
	double most = 0;
	unsigned distance = insn - f->own->first[block];
	for (unsigned hops = 0; hops < 4 && distance < BRANCH_REACH; hops++) {
		for (uint32_t i = f->own->come_first[block]; i < f->own->come_first[block + 1];
		     i++) {
			uint32_t from = f->graph.edges[f->own->come[i]].from;
			if (is_guessed(&f->graph.blocks[from]) && f->own->count[from] &&
			    v->budget[from] > most) {
				most = v->budget[from];
				best = from;
			}
		}
		block = f->own->before[block];
		if (block == GRAPH_NONE)
			break;
		distance += f->own->count[block];
	}
	if (best != GRAPH_NONE)
		accuse_likely(s, CAUSE_MISPREDICT, f->own->first[best] + f->own->count[best] - 1,
			      most / f->insns[insn].frequency,
			      most * v->usual[best] / f->insns[insn].frequency);
}

/* ---- code ---- */

/* Whether all that comes right before is in the same line. */
static bool is_in_line(const struct function *f, uint32_t insn, uint64_t line)
{
	const struct explain_insn *i = &f->insns[insn];
	uint64_t here = i->address / line;
	if (insn > f->own->first[i->block])
		return f->insns[insn - 1].address / line == here && !is_call(&f->insns[insn - 1]);
	for (uint32_t k = f->own->come_first[i->block]; k < f->own->come_first[i->block + 1]; k++) {
		const struct graph_edge *e = &f->graph.edges[f->own->come[k]];
		if (f->graph.blocks[e->from].last / line != here &&
		    f->frequency.edges[f->own->come[k]].executions > 0.05 * i->frequency)
			return false;
	}
	return i->block != f->graph.entry;
}

/* The instruction at the begin of a line or page that this one comes with: itself, or one right before it. GRAPH_NONE: there
   is none. Where code comes late, samples may fall on any of the group that comes first. */
static uint32_t begins_at(const struct function *f, uint32_t insn, uint64_t line)
{
	uint32_t first = f->own->first[f->insns[insn].block];
	uint32_t group = (uint32_t)ceil(f->machine->numbers.width);
	for (uint32_t at = insn; insn - at < group; at--) {
		if (!is_in_line(f, at, line))
			return at;
		if (at == first)
			break;
	}
	return GRAPH_NONE;
}

static void suspect_code(const struct function *f, uint32_t insn, struct suspects *s)
{
	const struct calibration *c = &f->machine->numbers;
	double bytes = f->own->hot_lines * CODE_LINE;
	uint32_t line = bytes < CODE_CACHE ? GRAPH_NONE : begins_at(f, insn, CODE_LINE);
	if (line == GRAPH_NONE)
		return;
	bytes += f->own->unseen_lines * CODE_LINE; /* it comes from where all of it fits */
	accuse(s, CAUSE_ICACHE, line, bytes < c->l2_size / 2 ? 2 * c->l2 : c->dram);
	uint32_t page = f->own->hot_pages > CODE_PAGES ? begins_at(f, insn, CODE_PAGE) : GRAPH_NONE;
	if (page != GRAPH_NONE)
		accuse(s, CAUSE_ITLB, page,
		       f->own->hot_pages < TLB_PAGES / 2 ? TLB_SECOND : c->walk + c->l2);
}

/* ---- the verdict ---- */

/* Whether those that are suspected can have cost most of it. */
static bool explain_loss(const struct explain_insn *i, const struct suspects *s)
{
	double sum = 0;
	for (unsigned k = 0; k < s->count; k++)
		sum += s->all[k].most;
	return sum > 0.5 * i->lost;
}

static void suspect_all(const struct investigation *v, uint32_t insn, struct suspects *s)
{
	const struct function *f = v->f;
	const struct explain_insn *i = &f->insns[insn];
	const struct operands *o = &i->operands;
	double lost = i->lost_range.high;
	if (o->class == OPERANDS_ATOMIC || o->class == OPERANDS_FENCE) {
		suspect_lock(f, insn, lost, s);
		return;
	}
	if (o->class == OPERANDS_DIVIDE)
		accuse(s, CAUSE_DIVISION, insn, lost);
	if (o->load)
		suspect_load(f, insn, lost, s);
	if (o->store && !o->stack)
		suspect_store(f, insn, lost, s);
	suspect_branches(v, insn, s);
	suspect_code(f, insn, s);
	if (explain_loss(i, s))
		return;
	uint32_t load = slow_load_for(f, insn);
	if (load != GRAPH_NONE)
		suspect_load(f, load, lost, s);
	if (!explain_loss(i, s))
		suspect_before(f, insn, lost, s);
	if (!explain_loss(i, s))
		suspect_behind(f, insn, lost, s);
}

static void add_culprit(struct explain_insn *i, const struct culprit *culprit)
{
	if (i->culprit_count < CULPRITS_MAX && culprit->cycles.high > 0)
		i->culprits[i->culprit_count++] = *culprit;
}

/* What one suspect can have cost of these cycles, if the others can have cost that much: at least the rest, at
   most all. */
static struct range blame(struct range lost, double most, double others)
{
	double high = fmin(most, lost.high);
	return (struct range){fmin(high, fmax(0, lost.low - others)), high, 0};
}

/* What each has likely cost of what was likely lost: first, the middle of what it can have cost usually; then the rest is for
   those that can have cost more. */
static void share_out(const struct explain_insn *i, const struct suspects *s, double out[CAUSES])
{
	double all = 0, sum = 0, rooms = 0;
	for (unsigned k = 0; k < s->count; k++)
		all += fmin(s->all[k].usual, i->lost);
	for (unsigned k = 0; k < s->count; k++) {
		double usual = fmin(s->all[k].usual, i->lost);
		out[k] = (fmax(0, i->lost - (all - usual)) + usual) / 2;
		sum += out[k];
		rooms += fmin(s->all[k].most, i->lost) - usual;
	}
	double rest = fmax(0, i->lost - sum), part = rooms > 0 ? fmin(1, rest / rooms) : 0;
	for (unsigned k = 0; k < s->count; k++) {
		double room = fmin(s->all[k].most, i->lost) - fmin(s->all[k].usual, i->lost);
		out[k] = sum > i->lost ? out[k] * i->lost / sum : out[k] + part * room;
	}
}

static double between(const struct range *r, double value)
{
	return fmax(r->low, fmin(r->high, value));
}

static void sort_culprits(struct explain_insn *i)
{
	for (unsigned k = 1; k < i->culprit_count; k++)
		for (unsigned n = k; n; n--) {
			struct culprit *a = &i->culprits[n - 1], *b = &i->culprits[n], other = *a;
			if (a->cycles.likely >= b->cycles.likely)
				break;
			*a = *b;
			*b = other;
		}
}

static void judge(struct investigation *v, uint32_t insn)
{
	struct function *f = v->f;
	struct explain_insn *i = &f->insns[insn];
	struct suspects s = {0};
	double all = 0, likely[CAUSES];
	suspect_all(v, insn, &s);
	share_out(i, &s, likely);
	for (unsigned k = 0; k < s.count; k++)
		all += fmin(s.all[k].most, i->lost);
	for (unsigned k = 0; k < s.count; k++) {
		double most = s.all[k].most, others = all - fmin(most, i->lost);
		struct culprit culprit = {
			.cause = s.all[k].cause,
			.by = s.all[k].by,
			.cycles = blame(i->lost_range, most, others),
			.part = blame(i->lost_part, most, others),
		};
		culprit.cycles.likely = between(&culprit.cycles, likely[k]);
		culprit.part.likely = between(&culprit.part, likely[k]);
		add_culprit(i, &culprit);
		if (culprit.cause == CAUSE_MISPREDICT) {
			uint32_t block = f->insns[culprit.by].block;
			v->budget[block] = fmax(0, v->budget[block] -
							   fmin(most, i->lost) * i->frequency);
		}
	}
	if (i->lost > all) {
		double rest = i->lost - all;
		struct culprit culprit = {
			.cause = CAUSE_UNEXPLAINED,
			.by = insn,
			.cycles = {fmin(rest, fmax(0, i->lost_range.low - all)), rest, rest},
			.part = {fmin(rest, fmax(0, i->lost_part.low - all)), rest, rest},
		};
		add_culprit(i, &culprit);
	}
	sort_culprits(i);
}

static void add_range(struct range_sum *sum, enum cause cause, struct range r, double times)
{
	sum->of[cause].low += times * r.low;
	sum->of[cause].high += times * r.high;
	sum->of[cause].likely += times * r.likely;
}

/* What is known is no range. */
static struct range known(double cycles)
{
	return (struct range){cycles, cycles, cycles};
}

/* What the code of a loop asks for beyond doing its instructions one after the other, by cause. CPUs finish
   instructions in groups: those cycles are seen at others than the ones that need them. */
struct asked {
	double by[CAUSES], all;
	double fixed; /* cycles that are not lost */
	double plain; /* of these, at most: what the instructions take one after the other */
};

static size_t group_of(const struct function *f, const struct explain_insn *i)
{
	uint32_t loop = i->block == GRAPH_NONE ? LOOP_NONE : f->loops.innermost[i->block];
	return loop == LOOP_NONE ? f->loops.count : loop;
}

static double fixed_of(const struct explain_insn *i)
{
	return i->stalls ? i->fixed * i->frequency : i->cycles;
}

static void ask(const struct function *f, struct asked *groups)
{
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		struct asked *g = &groups[group_of(f, i)];
		double more = fmax(0, i->model - 1 / f->machine->numbers.width) * i->frequency;
		double chain = i->why == CAUSE_FORWARD
				       ? fmax(0, more - f->machine->numbers.forward * i->frequency)
				       : 0;
		g->by[i->why] += more - chain;
		g->by[CAUSE_DEPENDENCY] += chain;
		g->all += more;
		g->fixed += fixed_of(i);
		g->plain += i->frequency * f->own->slowness[group_of(f, i)] /
			    f->machine->numbers.width;
	}
}

/* Of what a chain takes, the ports would need a part anyway. */
static void ask_ports(const struct function *f, struct asked *groups)
{
	for (size_t i = 0; i < f->loops.count; i++) {
		const struct explain_loop *l = &f->loop_list[i];
		double runs = f->frequency.blocks[f->loops.loops[i].header].executions;
		double both = fmin(l->ports, l->chain) - fmax(1, l->width);
		double part = fmin(groups[i].by[CAUSE_DEPENDENCY], fmax(0, both) * runs);
		groups[i].by[CAUSE_DEPENDENCY] -= part;
		groups[i].by[CAUSE_PORTS] += part;
	}
}

static void sum_insn(const struct explain_insn *i, const struct asked *asked, struct range_sum *sum)
{
	double runs = i->frequency, fixed = fixed_of(i), plain = fixed;
	if (asked->all > 0 && asked->plain < asked->fixed)
		plain *= asked->plain / asked->fixed;
	add_range(sum, CAUSE_EXECUTION, known(plain), 1);
	for (unsigned c = 0; c < CAUSES && asked->all > 0; c++) {
		double part = (fixed - plain) * asked->by[c] / asked->all;
		add_range(sum, (enum cause)c, known(part), 1);
	}
	for (unsigned c = 0; i->stalls && c < i->culprit_count; c++)
		add_range(sum, (enum cause)i->culprits[c].cause, i->culprits[c].part, runs);
}

/* Chance: the samples of a sum vary by the root of their number. */
static void widen_sum(const struct function *f, double cycles, struct range_sum *sum)
{
	for (unsigned c = 0; c < CAUSES; c++) {
		struct range *r = &sum->of[c];
		double noise = 2 * sqrt(r->high * f->cycles_per_sample);
		if (c == CAUSE_EXECUTION || c == CAUSE_PAGE_FAULT || r->high - r->low < noise)
			continue;
		r->low = fmax(0, r->low - noise);
		r->high = fmin(cycles, r->high + noise);
	}
}

static void sum_up(struct function *f)
{
	struct asked *groups = calloc(f->loops.count + 1, sizeof *groups);
	if (groups)
		ask(f, groups);
	if (groups)
		ask_ports(f, groups);
	for (size_t k = 0; groups && k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		size_t group = group_of(f, i);
		sum_insn(i, &groups[group], &f->causes);
		if (group < f->loops.count)
			sum_insn(i, &groups[group], &f->loop_list[group].causes);
	}
	widen_sum(f, f->cycles, &f->causes);
	for (size_t i = 0; i < f->loops.count; i++)
		widen_sum(f, f->loop_list[i].own, &f->loop_list[i].causes);
	free(groups);
}

static int by_loss(const void *a, const void *b, void *context)
{
	const struct function *f = context;
	const struct explain_insn *x = &f->insns[*(const uint32_t *)a],
				  *y = &f->insns[*(const uint32_t *)b];
	double left = x->lost * x->frequency, right = y->lost * y->frequency;
	return left < right ? 1 : left > right ? -1 : x->address < y->address ? -1 : 1;
}

/* Page faults are known, not suspected: they add to what an instruction loses. */
static void add_faults(struct function *f)
{
	for (uint32_t k = 0; k < f->insn_count; k++) {
		struct explain_insn *i = &f->insns[k];
		double cycles = i->faults * f->cycles_per_sample;
		if (cycles <= 0)
			continue;
		if (i->frequency <= 0) {
			add_range(&f->causes, CAUSE_PAGE_FAULT, known(cycles), 1);
			continue;
		}
		double each = cycles / i->frequency;
		if (!i->stalls) {
			i->fixed = i->cpi;
			i->lost = i->culprit_count = 0;
			i->lost_range = i->lost_part = (struct range){0};
		}
		i->stalls = true;
		i->cycles += cycles;
		i->cpi += each;
		i->lost += each;
		i->lost_range.low += each;
		i->lost_range.high += each;
		add_culprit(i, &(struct culprit){CAUSE_PAGE_FAULT, known(each), known(each), k});
		sort_culprits(i);
	}
}

void culprits_find(struct function *f)
{
	struct investigation v = {.f = f,
				  .budget = calloc(f->graph.block_count + 1, sizeof *v.budget),
				  .usual = calloc(f->graph.block_count + 1, sizeof *v.usual)};
	uint32_t *order = calloc(f->insn_count + 1, sizeof *order);
	size_t count = 0;
	for (uint32_t i = 0; order && i < f->insn_count; i++)
		if (f->insns[i].stalls)
			order[count++] = i;
	if (order)
		qsort_r(order, count, sizeof *order, by_loss, f);
	bool good = v.budget && v.usual;
	for (uint32_t b = 0; good && b < f->graph.block_count; b++) {
		double runs = rarer_ways(f, b, true), cycles = f->machine->numbers.mispredict;
		v.budget[b] = runs * GUESS_AT_MOST * cycles;
		v.usual[b] = runs > 0 ? rarer_ways(f, b, false) / (runs * GUESS_AT_MOST) : 0;
	}
	for (size_t i = 0; good && i < count; i++)
		judge(&v, order[i]);
	add_faults(f);
	sum_up(f);
	free(v.budget);
	free(v.usual);
	free(order);
}
