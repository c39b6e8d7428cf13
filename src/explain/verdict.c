/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: what an iteration takes, what the code asks for, and what would be won without the worst loss. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/annotate.h"
#include "base/buf.h"
#include "base/path.h"
#include "explain/internal.h"
#include "explain/machine.h"

/* The causes that something could be done about, in what was not lost by chance. */
static bool is_loss(enum cause cause)
{
	return cause != CAUSE_EXECUTION;
}

static void name_loop(const struct function *f, struct explain_loop *l)
{
	const struct annotation *a = f->annotation;
	l->address = f->graph.blocks[f->loops.loops[l->loop].header].start;
	for (size_t i = 0; i < a->item_count; i++)
		if (a->items[i].kind == ANNOTATE_LOOP && a->items[i].header == l->address) {
			l->file = a->items[i].file;
			l->line = a->items[i].line;
			return;
		}
	for (size_t i = 0; i < a->insn_count; i++)
		if (a->insns[i].address == l->address) {
			l->file = a->items[a->insns[i].line].file;
			l->line = a->items[a->insns[i].line].line;
		}
}

/* Which instruction is to blame for most of a cause. */
static void find_blame(const struct function *f, struct explain_loop *l)
{
	double *blame = calloc(f->insn_count + 1, sizeof *blame), most = 0;
	l->by = GRAPH_NONE;
	for (size_t k = 0; blame && k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		if (i->block == GRAPH_NONE || f->loops.innermost[i->block] != l->loop)
			continue;
		if (i->why == l->cause)
			blame[k] += i->model * i->frequency;
		for (unsigned c = 0; i->stalls && c < i->culprit_count; c++)
			if (i->culprits[c].cause == l->cause)
				blame[i->culprits[c].by] += i->culprits[c].cycles.likely *
							    i->frequency;
	}
	for (uint32_t k = 0; blame && k < f->insn_count; k++)
		if (blame[k] > most) {
			most = blame[k];
			l->by = k;
		}
	free(blame);
}

/* Causes that are one and the same wait, whichever of them it is: no data, no code, a line of others. */
static bool is_same_wait(enum cause a, enum cause b)
{
	static const uint8_t kinds[CAUSES] = {
		[CAUSE_DCACHE] = 1, [CAUSE_DTLB] = 1, [CAUSE_ICACHE] = 2,
		[CAUSE_ITLB] = 2,   [CAUSE_LOCK] = 3, [CAUSE_SHARING] = 3,
	};
	return a == b || (kinds[a] && kinds[a] == kinds[b]);
}

/* What would not be lost if nothing waited for this: of what an instruction loses, the share of all causes that
   are the same wait, as is likely. */
static double lost_to(const struct function *f, const struct explain_loop *l, enum cause cause)
{
	double sum = 0, ranges = 0;
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		double these = 0, all = 0;
		if (!i->stalls || i->block == GRAPH_NONE || f->loops.innermost[i->block] != l->loop)
			continue;
		for (unsigned c = 0; c < i->culprit_count; c++) {
			const struct culprit *x = &i->culprits[c];
			bool same = is_same_wait((enum cause)x->cause, cause);
			all += x->cycles.likely;
			these += same ? x->cycles.likely : 0;
			ranges += x->cause == cause ? x->cycles.likely * i->frequency : 0;
		}
		sum += all > 0 ? i->lost * i->frequency * these / all : 0;
	}
	/* and what the code itself asks for, which is no range */
	return sum + fmax(0, l->causes.of[cause].likely - ranges);
}

/* Whether the loop has an atomic operation that reads and writes. Done by three instructions instead, the next one still
   waits for the store of the one before. */
static bool is_atomic(const struct function *f, const struct explain_loop *l)
{
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		if (i->block != GRAPH_NONE && f->loops.innermost[i->block] == l->loop &&
		    i->operands.class == OPERANDS_ATOMIC && i->operands.load && i->operands.store)
			return true;
	}
	return false;
}

/* What an iteration takes at least, if it does not wait for this. */
static double floor_without(const struct function *f, const struct explain_loop *l,
			    enum cause cause)
{
	double least = fmax(1, l->width);
	switch (cause) {
	case CAUSE_DIVISION:
		return fmax(least, l->undivided);
	case CAUSE_LOCK:
		return is_atomic(f, l) ? fmax(least, f->machine->numbers.handed) : least;
	case CAUSE_PORTS:
		return fmax(least, l->chain);
	case CAUSE_DEPENDENCY:
		return fmax(least, l->ports);
	case CAUSE_FORWARD:
		return fmax(least, fmax(l->ports, l->forwarded));
	default:
		return fmax(least, fmax(l->ports, l->chain));
	}
}

static void judge_loop(const struct function *f, struct explain_loop *l)
{
	uint8_t order[CAUSES];
	unsigned count = causes_order(&l->causes, 0, order);
	l->cause = CAUSE_EXECUTION;
	for (unsigned i = 0; i < count && l->cause == CAUSE_EXECUTION; i++)
		if (is_loss((enum cause)order[i]))
			l->cause = order[i];
	l->lost = l->cause == CAUSE_EXECUTION ? 0 : lost_to(f, l, (enum cause)l->cause);
	l->faster = 1;
	if (l->cause == CAUSE_EXECUTION || l->own <= 0 || l->iterations <= 0)
		return;
	find_blame(f, l);
	double without = l->cycles - l->lost / l->iterations;
	without = fmax(without, floor_without(f, l, (enum cause)l->cause));
	if (without > 0 && without < l->cycles)
		l->faster = l->cycles / without;
}

void loops_measure(struct function *f)
{
	struct path path = {.insns = calloc(PATH_MAX_INSNS, sizeof *path.insns)};
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		uint32_t loop = i->block == GRAPH_NONE ? LOOP_NONE : f->loops.innermost[i->block];
		if (loop != LOOP_NONE)
			f->loop_list[loop].own += i->cycles + i->faults * f->cycles_per_sample;
	}
	for (uint32_t i = 0; i <= f->loops.count; i++)
		f->own->slowness[i] = 1;
	for (uint32_t i = 0; path.insns && i < f->loops.count; i++) {
		struct explain_loop *l = &f->loop_list[i];
		if (l->own <= 0 || !path_around(f, i, PATH_MAX_INSNS, &path))
			continue;
		l->ports = pipeline_steady(f, &path, PIPELINE_PORTS);
		l->chain = pipeline_steady(f, &path, PIPELINE_CHAIN);
		l->forwarded = pipeline_steady(f, &path, PIPELINE_FORWARDED);
		l->undivided = pipeline_steady(f, &path, PIPELINE_UNDIVIDED);
		l->width = (double)path.count / f->machine->numbers.width;
		f->own->slowness[i] = fmax(1, 1 / l->width); /* a jump back each cycle, no more */
	}
	free(path.insns);
}

void loops_explain(struct function *f)
{
	for (uint32_t i = 0; i < f->loops.count; i++) {
		struct explain_loop *l = &f->loop_list[i];
		l->loop = i;
		name_loop(f, l);
		l->iterations = f->frequency.blocks[f->loops.loops[i].header].executions;
		l->entries = loop_entries(f, i);
		l->cycles = l->iterations > 0 ? l->own / l->iterations : 0;
		judge_loop(f, l);
	}
}

/* ---- in words ---- */

static void put_cycles(struct buf *out, double cycles)
{
	if (cycles >= 9.95)
		buf_printf(out, "%.0f", cycles);
	else
		buf_printf(out, "%.1f", cycles);
}

/* "`ldr x3, [x3]`, line 80" */
static void put_insn(const struct function *f, uint32_t insn, struct buf *out)
{
	const struct annotation *a = f->annotation;
	uint32_t line = a->items[a->insns[insn].line].line;
	const char *text = function_text(f, insn);
	buf_puts(out, "`");
	buf_put_clean(out, text, strlen(text));
	buf_puts(out, "`");
	if (line)
		buf_printf(out, ", line %u", line);
}

static const char *verb_of(enum cause cause)
{
	switch (cause) {
	case CAUSE_DCACHE:
	case CAUSE_DTLB:
		return "wait for data";
	case CAUSE_ICACHE:
	case CAUSE_ITLB:
		return "wait for code";
	default:
		return "are lost";
	}
}

static void put_pattern(const struct function *f, const struct explain_loop *l, struct buf *out)
{
	if (l->by == GRAPH_NONE || (l->cause != CAUSE_DCACHE && l->cause != CAUSE_DTLB))
		return;
	int64_t stride = stride_of(f, l->by);
	const struct operands *o = &f->insns[l->by].operands;
	if (stride != INT64_MAX && stride)
		buf_printf(out, ", %lld bytes apart", (long long)(stride < 0 ? -stride : stride));
	else if (o->load && (o->writes & o->address))
		buf_puts(out, ", each address from the load before");
}

void loop_verdict(const struct function *f, const struct explain_loop *l, double whole,
		  struct buf *out)
{
	uint8_t order[CAUSES];
	unsigned count = causes_order(&l->causes, 0.1 * l->own, order);
	put_cycles(out, l->cycles);
	buf_puts(out, " cycles an iteration");
	if (l->width > 0) {
		buf_puts(out, "; ports need ");
		put_cycles(out, fmax(l->ports, l->width));
		buf_puts(out, ", the chain ");
		put_cycles(out, l->chain);
	}
	if (l->cause == CAUSE_EXECUTION || l->lost < 0.1 * l->own) {
		buf_puts(out, "; nothing is waited for");
		return;
	}
	buf_puts(out, "; ");
	put_cycles(out, l->lost / l->iterations);
	buf_printf(out, " %s: %s", verb_of((enum cause)l->cause),
		   cause_title((enum cause)l->cause));
	for (unsigned i = 0, shown = 0; i < count && shown < 1; i++)
		if (order[i] != l->cause && order[i] != CAUSE_EXECUTION &&
		    order[i] != CAUSE_UNEXPLAINED) {
			buf_printf(out, " or %s", cause_title((enum cause)order[i]));
			shown++;
		}
	if (l->by != GRAPH_NONE) {
		buf_puts(out, " at ");
		put_insn(f, l->by, out);
	}
	put_pattern(f, l, out);
	if (l->faster > 1.05 && whole > 0)
		buf_printf(out, "; without: loop x%.1f, program -%.0f%%", l->faster,
			   100 * l->own * (1 - 1 / l->faster) / whole);
}
