/* SPDX-License-Identifier: Apache-2.0 */
/* One procedure: loops, lines and inlined code put together. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/clock.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "structure/aliens.h"
#include "structure/internal.h"
#include "structure/pieces.h"

/* A block costs about that much, all in all; measured, with room. */
#define NS_PER_BLOCK 2000
#define BUDGET_NS 1000000000u
#define DEPTH_MAX 200 /* of inlining */

struct job {
	struct structure *s;
	uint32_t procedure;
	uint64_t budget_ns, deadline_ns;
	struct control code;
	struct piece_part *parts; /* ascending */
	size_t part_count;
	struct line_row *rows;
	size_t row_count;
	bool described; /* DWARF has it */
	bool lines_only;
	struct inline_procedure dwarf;
	struct weave_context *contexts;
	size_t context_count;
	struct piece_span *spans;
	size_t span_count;
	struct weave_piece *pieces;
	size_t piece_count;
	struct weave weave;
};

static struct err *no_memory(void)
{
	return err_new("out of memory");
}

/* ---- what is known ---- */

static int by_start(const void *a, const void *b)
{
	const struct piece_part *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool take_parts(struct job *j)
{
	const struct extents *x = &j->s->extents;
	const struct extents_procedure *p = &x->procedures[j->procedure];
	j->parts = calloc(p->count + 1, sizeof *j->parts);
	if (!j->parts)
		return false;
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part = &x->parts[x->by_procedure[p->first + i]];
		j->parts[j->part_count++] = (struct piece_part){part->start, part->end};
	}
	qsort(j->parts, j->part_count, sizeof *j->parts, by_start);
	return true;
}

static struct err *take_rows(struct job *j)
{
	for (size_t i = 0; i < j->part_count; i++) {
		struct line_row *rows, *grown;
		size_t count;
		struct err *e = lines_range(j->s->lines, j->parts[i].start, j->parts[i].end, &rows,
					    &count);
		if (e)
			return e;
		if (!j->row_count) {
			free(j->rows);
			j->rows = rows;
			j->row_count = count;
			continue;
		}
		grown = realloc(j->rows, (j->row_count + count + 1) * sizeof *grown);
		if (grown) {
			j->rows = grown;
			if (count)
				memcpy(grown + j->row_count, rows, count * sizeof *rows);
			j->row_count += count;
		}
		free(rows);
		if (!grown)
			return no_memory();
	}
	return NULL;
}

/* The contexts as DWARF has them. */
static bool take_scopes(struct job *j)
{
	const struct inline_procedure *d = &j->dwarf;
	uint32_t *context_of = calloc(d->scope_count + 1, sizeof *context_of);
	j->contexts = calloc(d->scope_count + 1, sizeof *j->contexts);
	j->spans = calloc(d->range_count + 1, sizeof *j->spans);
	if (!context_of || !j->contexts || !j->spans) {
		free(context_of);
		return false;
	}
	for (size_t i = 0; i < d->scope_count; i++) {
		const struct inline_scope *scope = &d->scopes[i];
		if (scope->depth > DEPTH_MAX || scope->own) {
			context_of[i] = context_of[scope->parent];
			continue;
		}
		context_of[i] = (uint32_t)j->context_count;
		j->contexts[j->context_count++] = (struct weave_context){
			.parent = i ? context_of[scope->parent] : 0,
			.call_file = scope->call_file,
			.call_line = scope->call_line,
			.file = scope->file,
			.line = scope->line,
			.name = scope->name,
		};
		for (uint32_t k = 0; i && k < scope->count; k++) {
			const struct inline_range *r = &d->ranges[scope->first + k];
			if (r->end > r->start)
				j->spans[j->span_count++] = (struct piece_span){
					r->start, r->end, context_of[i], scope->depth};
		}
	}
	free(context_of);
	return true;
}

/* The pushes at the entry are the procedure's own. */
static void keep_entry(struct job *j)
{
	const struct line_row *row = j->rows, *end = j->rows + j->row_count;
	uint64_t start = extents_start(&j->s->extents, j->procedure), until;
	while (row < end && row->end <= start)
		row++;
	until = inline_procedure_opening(&j->dwarf, row, (size_t)(end - row));
	for (size_t i = 0; until && i < j->piece_count; i++)
		if (j->pieces[i].start >= start && j->pieces[i].end <= until)
			j->pieces[i].context = 0;
}

static bool cut(struct job *j)
{
	struct pieces_input input = {
		.parts = j->parts,
		.part_count = j->part_count,
		.rows = j->rows,
		.row_count = j->row_count,
		.code = &j->code,
		.spans = j->spans,
		.span_count = j->span_count,
	};
	return pieces_cut(&input, &j->pieces, &j->piece_count);
}

/* The contexts as the lines tell. */
static struct err *guess_scopes(struct job *j)
{
	const struct descriptors *descriptors;
	uint32_t file = j->described ? j->dwarf.scopes[0].file : 0;
	uint32_t line = j->described ? j->dwarf.scopes[0].line : 0;
	struct err *e = structure_descriptors(j->s, &descriptors);
	if (e)
		return e;
	if (!aliens_mark(descriptors, file, line, j->pieces, j->piece_count, &j->contexts,
			 &j->context_count))
		return no_memory();
	return NULL;
}

static struct err *take_contexts(struct job *j)
{
	struct err *e = inlines_find(j->s->inlines, extents_start(&j->s->extents, j->procedure),
				     &j->dwarf, &j->described);
	if (e)
		return e;
	if (j->described && !j->dwarf.scope_count) {
		inline_procedure_free(&j->dwarf);
		j->described = false;
	}
	j->lines_only = j->row_count && (j->s->options.source != STRUCTURE_AUTO || !j->described ||
					 !j->dwarf.records_inlining);
	if (!j->lines_only && j->described && !take_scopes(j))
		return no_memory();
	if (!cut(j))
		return no_memory();
	if (j->lines_only)
		return guess_scopes(j);
	if (j->described && j->row_count)
		keep_entry(j);
	if (!j->contexts) {
		j->contexts = calloc(1, sizeof *j->contexts);
		j->context_count = 1;
	}
	return j->contexts ? NULL : no_memory();
}

/* ---- the result ---- */

static void fill_scope(const struct job *j, uint32_t n, struct structure_scope *out)
{
	const struct weave_node *node = &j->weave.nodes[n];
	const struct weave_context *c = node->type <= WEAVE_INLINE ? &j->contexts[node->id] : NULL;
	static const uint8_t types[] = {STRUCTURE_PROCEDURE, STRUCTURE_INLINE, STRUCTURE_LOOP,
					STRUCTURE_LINE};
	*out = (struct structure_scope){.type = types[node->type], .parent = node->parent};
	if (c) {
		out->name = c->name;
		out->file = lines_file(j->s->lines, c->file);
		out->line = out->last_line = c->line;
		out->call_file = lines_file(j->s->lines, c->call_file);
		out->call_line = c->call_line;
		out->guessed = node->type == WEAVE_INLINE && j->lines_only;
		return;
	}
	out->file = lines_file(j->s->lines, node->file);
	out->line = node->line;
	out->last_line = node->last_line;
	if (node->type == WEAVE_LOOP) {
		out->header = j->code.loops[node->id].header;
		out->irreducible = j->code.loops[node->id].irreducible;
	}
}

static void name_procedure(const struct job *j, struct structure_scope *scope)
{
	const char *symbol = j->s->extents.procedures[j->procedure].name;
	if (symbol)
		scope->name = symbol;
	else if (j->described)
		scope->name = j->dwarf.scopes[0].name;
	if (j->described) {
		scope->file = lines_file(j->s->lines, j->dwarf.scopes[0].file);
		scope->line = scope->last_line = j->dwarf.scopes[0].line;
	}
}

/* A procedure goes as far as its own lines do, an inlined one too. */
static bool stretch_contexts(const struct job *j, struct structure_procedure *p)
{
	uint32_t *context = calloc(j->weave.count + 1, sizeof *context); /* the node around */
	if (!context)
		return false;
	for (uint32_t n = 1; n < j->weave.count; n++) {
		const struct weave_node *node = &j->weave.nodes[n];
		struct structure_scope *scope;
		context[n] = node->type == WEAVE_INLINE ? n : context[node->parent];
		if (node->type != WEAVE_LINE)
			continue;
		scope = &p->scopes[context[n]];
		if (!scope->file && !context[n]) {
			scope->file = p->scopes[n].file;
			scope->line = scope->last_line = node->line;
		}
		if (scope->file == p->scopes[n].file && node->line > scope->last_line)
			scope->last_line = node->line;
	}
	free(context);
	return true;
}

static struct structure_procedure *make_result(const struct job *j)
{
	struct structure_procedure *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->scopes = calloc(j->weave.count, sizeof *p->scopes);
	p->ranges = calloc(j->piece_count + 1, sizeof *p->ranges);
	if (!p->scopes || !p->ranges) {
		structure_procedure_free(p);
		return NULL;
	}
	p->start = extents_start(&j->s->extents, j->procedure);
	p->unresolved = j->code.unresolved;
	p->over_budget = j->code.truncated;
	p->lines_only = j->lines_only;
	for (uint32_t n = 0; n < j->weave.count; n++)
		fill_scope(j, n, &p->scopes[p->scope_count++]);
	name_procedure(j, &p->scopes[0]);
	if (!stretch_contexts(j, p)) {
		structure_procedure_free(p);
		return NULL;
	}
	for (size_t i = 0; i < j->piece_count; i++) {
		struct structure_range *last = p->range_count ? &p->ranges[p->range_count - 1]
							      : NULL;
		const struct weave_piece *piece = &j->pieces[i];
		if (last && last->end == piece->start && last->scope == j->weave.of_piece[i])
			last->end = piece->end;
		else
			p->ranges[p->range_count++] = (struct structure_range){
				piece->start, piece->end, j->weave.of_piece[i]};
	}
	return p;
}

static struct err *weave(struct job *j, struct structure_procedure **out)
{
	struct weave_input input = {
		.pieces = j->pieces,
		.piece_count = j->piece_count,
		.contexts = j->contexts,
		.context_count = j->context_count,
		.loops = j->code.loops,
		.loop_count = j->code.loop_count,
		.flat = j->lines_only,
		.deadline_ns = j->deadline_ns,
	};
	if (!weave_build(&input, &j->weave) || !weave_normalize(&input, &j->weave))
		return no_memory();
	*out = make_result(j);
	return *out ? NULL : no_memory();
}

struct err *structure_analyze(struct structure *s, uint32_t procedure,
			      struct structure_procedure **out)
{
	struct job j = {.s = s, .procedure = procedure};
	uint64_t max_blocks;
	struct err *e;
	*out = NULL;
	j.budget_ns = s->options.budget_ns ? s->options.budget_ns : BUDGET_NS;
	j.deadline_ns = now_ns() + j.budget_ns;
	max_blocks = j.budget_ns / NS_PER_BLOCK + 1;
	e = control_read(&s->control, &s->extents, procedure,
			 max_blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)max_blocks, &j.code);
	if (!e && !take_parts(&j))
		e = no_memory();
	if (!e)
		e = take_rows(&j);
	if (!e)
		e = take_contexts(&j);
	if (!e)
		e = weave(&j, out);
	weave_free(&j.weave);
	free(j.pieces);
	free(j.spans);
	free(j.contexts);
	if (j.described)
		inline_procedure_free(&j.dwarf);
	free(j.rows);
	free(j.parts);
	control_free(&j.code);
	return e;
}
