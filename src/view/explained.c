/* SPDX-License-Identifier: Apache-2.0 */
#include "view/explained.h"

#include <stdlib.h>

#include "analyze/strings.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "explain/program.h"
#include "profile/profile.h"
#include "view/code.h"

#define NUMBER_MAX 9e15 /* what the page can count exactly */
#define HUNDREDTHS 100

const char *const explained_columns[EXPLAINED_COLUMNS] = {
	"flow.function", "flow.blocks",  "flow.edges",  "flow.entry",     "flow.incomplete",
	"block.address", "block.size",   "block.count", "block.low",      "block.high",
	"block.sure",    "block.length", "block.lines", "blockline.file", "blockline.line",
	"edge.from",     "edge.to",      "edge.count",  "edge.kind",      "cost.insn",
	"cost.count",    "cost.cycles",  "cost.lost",   "blame.cost",     "blame.cause",
	"blame.low",     "blame.high",   "blame.by",    "verdict.block",  "verdict.text",
};

struct maker {
	const struct program *program;
	const struct code *code;
	struct strings *strings;
	struct explained *out;
	/* of the function at hand */
	const struct function *f;
	size_t first, count; /* its instructions in `code` */
};

void explained_put(struct explained *x, enum explained_column column, uint64_t number)
{
	struct explained_numbers *n = &x->columns[column];
	if (ARRAY_ROOM(n->all, n->count, n->room))
		n->all[n->count++] = number;
	else
		x->failed = true;
}

static void put(struct maker *m, enum explained_column column, uint64_t number)
{
	explained_put(m->out, column, number);
}

static void put_real(struct maker *m, enum explained_column column, double number)
{
	put(m, column, number > NUMBER_MAX ? (uint64_t)NUMBER_MAX : (uint64_t)(number + 0.5));
}

/* ---- the function ---- */

/* The number of a function in `code`; its count where it is not there. */
static uint32_t find_function(const struct maker *m, const struct program_function *p)
{
	uint32_t i = 0;
	while (i < m->code->function_count && (m->code->functions[i].module != p->module ||
					       m->code->functions[i].start != p->start))
		i++;
	return i;
}

/* The place of an instruction in `code`; SIZE_MAX: it is not there. */
static size_t find_insn(const struct maker *m, uint64_t address)
{
	const struct code_insn *all = m->code->insns + m->first;
	size_t at = FIRST_NOT(i, m->count, all[i].address < address);
	return at < m->count && all[at].address == address ? m->first + at : SIZE_MAX;
}

static void put_graph(struct maker *m)
{
	const struct graph *g = &m->f->graph;
	for (size_t i = 0; i < g->block_count; i++) {
		const struct frequency *q = &m->f->frequency.blocks[i];
		put(m, BLOCK_ADDRESS, g->blocks[i].start);
		put(m, BLOCK_SIZE, g->blocks[i].end - g->blocks[i].start);
		put_real(m, BLOCK_COUNT, q->executions);
		put_real(m, BLOCK_LOW, q->low);
		put_real(m, BLOCK_HIGH, q->high);
		put(m, BLOCK_SURE, q->confidence);
		put(m, BLOCK_LENGTH, 0);
		put(m, BLOCK_LINES, 0);
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		put(m, EDGE_FROM, g->edges[i].from);
		put(m, EDGE_TO, g->edges[i].to);
		put_real(m, EDGE_COUNT, m->f->frequency.edges[i].executions);
		put(m, EDGE_KIND, g->edges[i].kind);
	}
}

static void put_blames(struct maker *m, const struct explain_insn *i, size_t cost)
{
	for (unsigned c = 0; i->stalls && c < i->culprit_count; c++) {
		const struct culprit *culprit = &i->culprits[c];
		size_t by = find_insn(m, m->f->insns[culprit->by].address);
		put(m, BLAME_COST, cost);
		put(m, BLAME_CAUSE, culprit->cause);
		put_real(m, BLAME_LOW, culprit->cycles.low * HUNDREDTHS);
		put_real(m, BLAME_HIGH, culprit->cycles.high * HUNDREDTHS);
		put(m, BLAME_BY, by == SIZE_MAX ? 0 : by + 1);
	}
}

static void put_costs(struct maker *m)
{
	for (size_t i = 0; i < m->f->insn_count; i++) {
		const struct explain_insn *insn = &m->f->insns[i];
		size_t at = find_insn(m, insn->address);
		if (at == SIZE_MAX || insn->block == GRAPH_NONE)
			continue;
		size_t cost = m->out->columns[COST_INSN].count;
		put(m, COST_INSN, at);
		put_real(m, COST_COUNT, insn->frequency);
		put_real(m, COST_CYCLES, insn->cpi * HUNDREDTHS);
		put_real(m, COST_LOST, insn->stalls ? insn->lost * HUNDREDTHS : 0);
		put_blames(m, insn, cost);
	}
}

static void put_verdicts(struct maker *m, size_t first_block)
{
	double whole = m->program->samples * m->program->cycles_per_sample;
	for (size_t i = 0; i < m->f->loops.count; i++) {
		const struct explain_loop *l = &m->f->loop_list[i];
		uint32_t block = graph_find(&m->f->graph, l->address);
		struct buf text = {0};
		if (l->own <= 0 || block == GRAPH_NONE)
			continue;
		loop_verdict(m->f, l, whole, &text);
		put(m, VERDICT_BLOCK, first_block + block);
		put(m, VERDICT_TEXT, strings_add(m->strings, buf_text(&text)));
		m->out->failed |= text.failed;
		buf_free(&text);
	}
}

static void put_function(struct maker *m, uint32_t number)
{
	const struct graph *g = &m->f->graph;
	size_t first_block = m->out->columns[BLOCK_ADDRESS].count;
	m->first = FIRST_NOT(i, m->code->count, m->code->insns[i].function < number);
	m->count = FIRST_NOT(i, m->code->count, m->code->insns[i].function <= number) - m->first;
	put(m, EXPLAINED_FUNCTION, number);
	put(m, EXPLAINED_BLOCKS, g->block_count);
	put(m, EXPLAINED_EDGES, g->edge_count);
	put(m, EXPLAINED_ENTRY, g->entry);
	put(m, EXPLAINED_INCOMPLETE, m->f->incomplete);
	put_graph(m);
	put_costs(m);
	put_verdicts(m, first_block);
}

void explained_program(const struct profile *profile, struct modules *modules, struct program *out)
{
	struct program_options options = {0};
	for (; options.metric < profile->metric_count; options.metric++) {
		struct err *e = program_open(profile, &options, out);
		if (!e) {
			err_free(program_explain(out, modules, &options));
			return;
		}
		err_free(e);
	}
}

struct err *explained_make(const struct program *program, const struct code *code,
			   struct strings *strings, struct explained *out)
{
	struct maker m = {.program = program, .code = code, .strings = strings, .out = out};
	*out = (struct explained){0};
	for (size_t i = 0; program && i < program->count; i++) {
		uint32_t number = find_function(&m, &program->functions[i]);
		m.f = program->functions[i].function;
		if (number < code->function_count)
			put_function(&m, number);
	}
	return out->failed ? err_new("out of memory") : NULL;
}

void explained_free(struct explained *e)
{
	for (size_t i = 0; i < EXPLAINED_COLUMNS; i++)
		free(e->columns[i].all);
	*e = (struct explained){0};
}
