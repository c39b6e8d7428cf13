/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each instruction has a line, a discriminator, and the chain of functions that it was inlined by. LLVM packs
 * several numbers into a discriminator: only the first tells blocks apart, and the second says how many times
 * the compiler copied the block, which then ran as many times as often.
 */
#include "export/source_counts.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "annotate/annotate.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "explain/program.h"
#include "export/executions_of.h"
#include "image/dwarf_points.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/symbols.h"
#include "profile/profile.h"

#define LINE_MASK 0xffff

struct maker {
	struct executions *x;
	struct source_counts *out;
	struct lookup known; /* hashes of functions and sites */
	bool failed;
	/* of the function at hand */
	const struct function *f;
	struct inline_procedure procedure;
	struct dwarf_points points; /* scopes */
	uint32_t *of_scope;         /* `functions` */
	uint32_t *of_insn;          /* `sites` */
};

/* ---- discriminators, as LLVM packs them ---- */

/* A part: nothing (a bit 1), or a number of 5 bits, or one of 12. */
static uint32_t first_part(uint32_t packed)
{
	if (packed & 1)
		return 0;
	packed >>= 1;
	return packed & 0x20 ? (packed >> 1 & 0xfe0) | (packed & 0x1f) : packed & 0x1f;
}

static uint32_t after_first_part(uint32_t packed)
{
	return packed & 1 ? packed >> 1 : packed >> (packed & 0x40 ? 14 : 7);
}

/* How many times the code was copied. */
static uint32_t copies_of(uint32_t packed)
{
	uint32_t copies = first_part(after_first_part(packed));
	return copies ? copies : 1;
}

static uint32_t block_of(const struct maker *m, uint32_t discriminator)
{
	return m->x->format == EXPORT_LLVM_SAMPLE ? first_part(discriminator) : discriminator;
}

/* ---- tables ---- */

static uint32_t add_function(struct maker *m, uint32_t parent, struct source_place place,
			     const char *name)
{
	size_t size = executions_name_size(name);
	uint64_t key = hash_number(hash_number(hash_number(1, parent), place.line),
				   place.discriminator);
	for (size_t i = 0; i < size; i++)
		key = hash_number(key, (uint8_t)name[i]);
	uint32_t known = lookup_find(&m->known, key);
	if (known != LOOKUP_NONE)
		return known;
	if (!ARRAY_ROOM_BELOW(m->out->functions, m->out->function_count, m->out->function_room,
			      SOURCE_NONE) ||
	    !lookup_put(&m->known, key, (uint32_t)m->out->function_count)) {
		m->failed = true;
		return SOURCE_NONE;
	}
	m->out->functions[m->out->function_count] = (struct source_function){
		.number = (uint32_t)m->out->function_count,
		.parent = parent,
		.place = place,
		.name = name,
		.name_size = size};
	return (uint32_t)m->out->function_count++;
}

static uint32_t add_site(struct maker *m, uint32_t function, struct source_place place)
{
	uint64_t key = hash_number(hash_number(hash_number(2, function), place.line),
				   place.discriminator);
	uint32_t known = lookup_find(&m->known, key);
	if (known != LOOKUP_NONE)
		return known;
	if (!ARRAY_ROOM_BELOW(m->out->sites, m->out->site_count, m->out->site_room, SOURCE_NONE) ||
	    !lookup_put(&m->known, key, (uint32_t)m->out->site_count)) {
		m->failed = true;
		return SOURCE_NONE;
	}
	m->out->sites[m->out->site_count] = (struct source_site){
		.number = (uint32_t)m->out->site_count, .function = function, .place = place};
	return (uint32_t)m->out->site_count++;
}

/* ---- one function ---- */

static const char *name_of(const struct maker *m)
{
	const struct symbol *s = symbols_find(m->x->symbols, m->procedure.entry);
	return s && s->address == m->procedure.entry ? s->name : m->procedure.scopes[0].name;
}

static uint32_t function_of(struct maker *m, uint32_t scope)
{
	const struct inline_scope *s = &m->procedure.scopes[scope];
	if (!scope) {
		const char *name = name_of(m);
		return name ? add_function(m, SOURCE_NONE, (struct source_place){0}, name)
			    : SOURCE_NONE;
	}
	uint32_t parent = m->of_scope[s->parent];
	if (s->own || parent == SOURCE_NONE)
		return parent;
	struct source_place place = {
		(s->call_line - m->procedure.scopes[s->parent].line) & LINE_MASK,
		block_of(m, s->call_discriminator),
	};
	return s->name ? add_function(m, parent, place, s->name) : SOURCE_NONE;
}

static void place_scopes(struct maker *m)
{
	struct dwarf_intervals in = {0};
	for (uint32_t i = 0; i < m->procedure.scope_count; i++) {
		const struct inline_scope *s = &m->procedure.scopes[i];
		m->of_scope[i] = function_of(m, i);
		for (uint32_t k = s->first; k < s->first + s->count; k++)
			m->failed |= !dwarf_intervals_add(&in, m->procedure.ranges[k].start,
							  m->procedure.ranges[k].end, i, s->depth);
	}
	m->failed |= !dwarf_points_make(&m->points, &in);
}

static void place_insn(struct maker *m, size_t insn, const struct line_row *row)
{
	const struct explain_insn *i = &m->f->insns[insn];
	uint32_t scope = dwarf_points_find(&m->points, i->address);
	if (i->block == GRAPH_NONE || !row->line || scope == POINT_NOTHING ||
	    m->of_scope[scope] == SOURCE_NONE)
		return;
	uint32_t site = add_site(
		m, m->of_scope[scope],
		(struct source_place){(row->line - m->procedure.scopes[scope].line) & LINE_MASK,
				      block_of(m, row->discriminator)});
	if (site == SOURCE_NONE)
		return;
	m->of_insn[insn] = site;
	double count = i->frequency;
	if (m->x->format == EXPORT_LLVM_SAMPLE)
		count *= copies_of(row->discriminator);
	if (m->out->sites[site].count < count)
		m->out->sites[site].count = count;
}

/* Instructions that follow each other without a gap. Returns where the next ones begin. */
static size_t place_stretch(struct maker *m, size_t first)
{
	const struct explain_insn *insns = m->f->insns;
	size_t after = first + 1, count = 0, row = 0;
	while (after < m->f->insn_count &&
	       insns[after].address == insns[after - 1].address + insns[after - 1].length)
		after++;
	struct line_row *rows = NULL;
	err_free(lines_range(m->out->lines, insns[first].address,
			     insns[after - 1].address + insns[after - 1].length, &rows, &count));
	for (size_t i = first; i < after; i++) {
		while (row < count && rows[row].end <= insns[i].address)
			row++;
		if (row < count && rows[row].address <= insns[i].address)
			place_insn(m, i, &rows[row]);
	}
	free(rows);
	return after;
}

static void add_called(void *context, size_t insn, uint64_t to, const char *symbol, double count)
{
	struct maker *m = context;
	struct source_called c = {.site = m->of_insn[insn],
				  .name = symbol,
				  .name_size = executions_name_size(symbol),
				  .count = count};
	(void)to;
	if (c.site == SOURCE_NONE || executions_round(count) == 0)
		return;
	if (ARRAY_ROOM(m->out->called, m->out->called_count, m->out->called_room))
		m->out->called[m->out->called_count++] = c;
	else
		m->failed = true;
}

static void read_function(struct maker *m, uint64_t start)
{
	size_t scopes = m->procedure.scope_count, insns = m->f->insn_count;
	m->of_scope = calloc(scopes + 1, sizeof *m->of_scope);
	m->of_insn = malloc((insns + 1) * sizeof *m->of_insn);
	m->failed |= !m->of_scope || !m->of_insn;
	if (!m->failed) {
		memset(m->of_insn, 0xff, (insns + 1) * sizeof *m->of_insn);
		place_scopes(m);
		for (size_t i = 0; i < insns;)
			i = place_stretch(m, i);
		executions_of_calls(m->x, m->f, add_called, m);
		if (m->of_scope[0] != SOURCE_NONE && m->procedure.entry == start)
			m->out->functions[m->of_scope[0]].calls +=
				m->f->frequency.entries.executions;
	}
	free(m->points.all);
	m->points = (struct dwarf_points){0};
	free(m->of_scope);
	free(m->of_insn);
}

/* ---- order ---- */

static int by_numbers(const uint64_t *a, const uint64_t *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_site(const void *a, const void *b)
{
	const struct source_site *x = a, *y = b;
	return by_numbers((uint64_t[]){x->function, x->place.line, x->place.discriminator},
			  (uint64_t[]){y->function, y->place.line, y->place.discriminator}, 3);
}

/* Those of one site by name; the sums follow. */
static int by_callee(const void *a, const void *b)
{
	const struct source_called *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	size_t size = x->name_size < y->name_size ? x->name_size : y->name_size;
	int order = memcmp(x->name, y->name, size);
	return order ? order : (x->name_size > y->name_size) - (x->name_size < y->name_size);
}

static void join_called(struct source_counts *c)
{
	size_t kept = 0;
	if (c->called_count)
		qsort(c->called, c->called_count, sizeof *c->called, by_callee);
	for (size_t i = 0; i < c->called_count; i++) {
		if (kept && !by_callee(&c->called[kept - 1], &c->called[i]))
			c->called[kept - 1].count += c->called[i].count;
		else
			c->called[kept++] = c->called[i];
	}
	c->called_count = kept;
}

static int by_parent(const void *a, const void *b)
{
	const struct source_function *x = a, *y = b;
	return by_numbers((uint64_t[]){x->parent, x->place.line, x->place.discriminator, x->number},
			  (uint64_t[]){y->parent, y->place.line, y->place.discriminator, y->number},
			  4);
}

/* What is inlined comes behind what it is inlined into. */
static void sum_up(struct source_counts *c)
{
	for (size_t i = 0; i < c->site_count; i++)
		c->functions[c->sites[i].function].total += c->sites[i].count;
	for (size_t i = c->function_count; i-- > 0;)
		if (c->functions[i].parent != SOURCE_NONE)
			c->functions[c->functions[i].parent].total += c->functions[i].total;
}

static void finish(struct source_counts *c)
{
	sum_up(c);
	join_called(c);
	if (c->site_count)
		qsort(c->sites, c->site_count, sizeof *c->sites, by_site);
	if (c->function_count)
		qsort(c->functions, c->function_count, sizeof *c->functions, by_parent);
}

size_t source_counts_inlined(const struct source_counts *c, uint32_t function)
{
	return FIRST_NOT(i, c->function_count, c->functions[i].parent < function);
}

size_t source_counts_sites(const struct source_counts *c, uint32_t function)
{
	return FIRST_NOT(i, c->site_count, c->sites[i].function < function);
}

size_t source_counts_called(const struct source_counts *c, uint32_t site)
{
	return FIRST_NOT(i, c->called_count, c->called[i].site < site);
}

/* ---- all of it ---- */

static struct err *open_lines(struct maker *m)
{
	struct image *debug = modules_debug(m->x->modules, m->x->module);
	struct err *e = lines_open(m->x->image, debug, &m->out->lines);
	return e ? e : inlines_open(m->x->image, debug, m->out->lines, &m->out->inlines);
}

static struct err *add_functions(struct maker *m)
{
	const struct program *program = m->x->program;
	struct err *e = NULL;
	for (size_t i = 0; !e && i < program->count; i++) {
		bool found;
		m->f = program->functions[i].function;
		e = inlines_find(m->out->inlines, program->functions[i].start, &m->procedure,
				 &found);
		if (e || !found)
			continue;
		read_function(m, program->functions[i].start);
		inline_procedure_free(&m->procedure);
		if (m->failed)
			e = err_new("out of memory");
	}
	if (!e && !m->out->site_count)
		e = err_new("%s has no lines for its code: compile it with %s",
			    program->profile->modules[m->x->module].path,
			    m->x->format == EXPORT_LLVM_SAMPLE ? "-gmlt -fdebug-info-for-profiling"
							       : "-g1");
	return e;
}

struct err *source_counts_make(struct executions *x, struct source_counts *out)
{
	struct maker m = {.x = x, .out = out};
	*out = (struct source_counts){0};
	struct err *e = open_lines(&m);
	if (!e)
		e = add_functions(&m);
	if (!e)
		finish(out);
	else
		source_counts_free(out);
	lookup_free(&m.known);
	return e;
}

void source_counts_free(struct source_counts *c)
{
	inlines_close(c->inlines);
	lines_close(c->lines);
	free(c->functions);
	free(c->sites);
	free(c->called);
	*c = (struct source_counts){0};
}
