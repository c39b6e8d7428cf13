/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What llvm-bolt -data reads, as perf2bolt writes it: a line for each pair of places that control went between by a jump
 * or call,
 *
 *     1 FUNCTION OFFSET 1 FUNCTION OFFSET MISPREDICTED COUNT
 *
 * with offsets in hexadecimal. A 0 instead of the first 1: came from elsewhere. llvm-bolt computes itself how often
 * code fell through. Local symbols are told apart by numbers behind their names, in the order of their addresses.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "base/err.h"
#include "base/hash.h"
#include "explain/program.h"
#include "export/executions_of.h"
#include "image/symbols.h"

struct bolt {
	struct executions *x;
	const struct function *f; /* at hand */
	struct lookup called;     /* address of a function -> its place in `calls` */
	double *calls;            /* of each function of the program: those that were told */
	uint32_t *numbers;        /* of each symbol: 0 of global ones */
};

/* ---- symbols ---- */

/* Of local symbols with one name the first is number 1. Different names with one hash only leave numbers out. */
static struct err *number_symbols(struct bolt *b)
{
	const struct symbol *all;
	size_t count = symbols_all(b->x->symbols, &all);
	struct lookup seen = {0};
	struct err *e = NULL;
	b->numbers = calloc(count + 1, sizeof *b->numbers);
	if (!b->numbers)
		return err_new("out of memory");
	for (size_t i = 0; !e && i < count; i++) {
		if (all[i].global)
			continue;
		uint64_t key = hash_text(0, all[i].name);
		uint32_t before = lookup_find(&seen, key);
		b->numbers[i] = before == LOOKUP_NONE ? 1 : before + 1;
		if (!lookup_put(&seen, key, b->numbers[i]))
			e = err_new("out of memory");
	}
	lookup_free(&seen);
	return e;
}

/* Prints " 1 NAME OFFSET"; false where no symbol covers the address. */
static bool print_place(const struct bolt *b, uint64_t address, const char *before)
{
	const struct symbol *all, *s = symbols_find(b->x->symbols, address);
	symbols_all(b->x->symbols, &all);
	if (!s || strchr(s->name, ' '))
		return false;
	uint32_t number = b->numbers[s - all];
	fprintf(b->x->out, "%s1 %s", before, s->name);
	if (number)
		fprintf(b->x->out, "/%" PRIu32, number);
	fprintf(b->x->out, " %" PRIx64, address - s->address);
	return true;
}

/* ---- lines ---- */

static void print_jump(struct bolt *b, uint64_t from, uint64_t to, double count)
{
	const struct symbol *s = symbols_find(b->x->symbols, to);
	if (executions_round(count) == 0 || !s || strchr(s->name, ' ') || !print_place(b, from, ""))
		return;
	print_place(b, to, " ");
	fprintf(b->x->out, " 0 %" PRIu64 "\n", executions_round(count));
}

static void print_call(void *context, size_t insn, uint64_t to, const char *symbol, double count)
{
	struct bolt *b = context;
	(void)symbol;
	if (!to)
		return;
	print_jump(b, b->f->insns[insn].address, to, count);
	uint32_t callee = lookup_find(&b->called, to);
	if (callee != LOOKUP_NONE)
		b->calls[callee] += count;
}

static void print_function(struct bolt *b)
{
	const struct graph *g = &b->f->graph;
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == EDGE_JUMP || g->edges[i].kind == EDGE_SWITCH)
			print_jump(b, g->blocks[g->edges[i].from].last,
				   g->blocks[g->edges[i].to].start,
				   b->f->frequency.edges[i].executions);
	executions_of_calls(b->x, b->f, print_call, b);
}

/* Calls that come from code without samples, or from other files. */
static void print_entries(struct bolt *b, size_t function)
{
	const struct program_function *p = &b->x->program->functions[function];
	double rest = p->function->frequency.entries.executions - b->calls[function];
	if (rest < 0.5)
		return;
	const struct symbol *s = symbols_find(b->x->symbols, p->start);
	if (!s || s->address != p->start || strchr(s->name, ' '))
		return;
	fputs("0 [unknown] 0", b->x->out);
	print_place(b, p->start, " ");
	fprintf(b->x->out, " 0 %" PRIu64 "\n", executions_round(rest));
}

static struct err *prepare(struct bolt *b)
{
	const struct program *program = b->x->program;
	b->calls = calloc(program->count + 1, sizeof *b->calls);
	if (!b->calls)
		return err_new("out of memory");
	for (size_t i = 0; i < program->count; i++)
		if (!lookup_put(&b->called, program->functions[i].start, (uint32_t)i))
			return err_new("out of memory");
	return number_symbols(b);
}

struct err *bolt_write(struct executions *x)
{
	struct bolt b = {.x = x};
	struct err *e = prepare(&b);
	for (size_t i = 0; !e && i < x->program->count; i++) {
		b.f = x->program->functions[i].function;
		print_function(&b);
	}
	for (size_t i = 0; !e && i < x->program->count; i++)
		print_entries(&b, i);
	lookup_free(&b.called);
	free(b.calls);
	free(b.numbers);
	return e;
}
