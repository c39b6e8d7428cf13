/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which source is believed where (RECIPES_AUTO), first to last:
 *
 *   1. known shapes: signal trampolines; the entry of a program (recipes/roots.h);
 *   2. CFI of where they came from, for calls out of the way (recipes/detours.h); the analysis, where CFI
 *      is provably wrong (recipes/corrections.h); CFI without words that epilogues have popped
 *      (recipes/restored.h);
 *   3. CFI;
 *   4. the analysis.
 */
#include "recipes/build.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parallel.h"
#include "flow/frame.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/cfi.h"
#include "recipes/corrections.h"
#include "recipes/detours.h"
#include "recipes/restored.h"
#include "recipes/roots.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"
#include "unwind/table.h"

struct corrector {
	const struct analysis *analysis;
	struct rows *out;
};

/* The analysis' recipes of a run on which the CFI is wrong. */
static void take_run(void *context, enum correction why, uint64_t start, uint64_t end)
{
	struct corrector *c = context;
	struct recipe recipe;
	uint64_t at = start;
	(void)why;
	uint32_t rule = 0;
	while (at < end) {
		const struct frame_state *state = trace_at(c->analysis->trace, at);
		if (state) {
			frame_recipe(c->analysis->isa, state, &recipe);
			uint32_t next = rows_rule(c->out, &recipe);
			if (next != rule && rule)
				rows_add(c->out, start, at, rule);
			if (next != rule)
				start = at;
			rule = next;
		}
		at += c->analysis->isa->insn_min;
	}
	if (rule)
		rows_add(c->out, start, end, rule);
}

/* What is known about a module, source by source. */
struct sources {
	struct image *image, *debug;
	struct rows *shapes; /* what goes before everything else: takes the corrections, too */
	struct rows cfi, rest;
	struct analysis analysis;
	struct err *cfi_error, *analysis_error;
};

static struct err *analyse(struct image *image, struct analysis *analysis)
{
	struct symbols *symbols = NULL;
	struct err *e = symbols_read(image, NULL, &symbols);
	if (!e)
		e = analysis_run(image, symbols, analysis);
	symbols_free(symbols);
	return e;
}

/* The analysis takes most of the time, and parts of it one CPU only. */
static void read_source(void *context, size_t index)
{
	struct sources *s = context;
	struct cfi_stats stats = {0};
	if (index == 0) {
		s->analysis_error = analyse(s->image, &s->analysis);
		return;
	}
	shapes_add(s->image, s->shapes);
	s->cfi_error = cfi_read(s->image, s->debug, &s->cfi, &stats);
	rows_finish(&s->cfi);
}

/* The two things that are read off an analysis; each writes to rows of its own. */
static void read_off(void *context, size_t index)
{
	struct sources *s = context;
	if (index == 0) {
		struct corrector c = {.analysis = &s->analysis, .out = s->shapes};
		detours_add(&s->analysis, &s->cfi, s->shapes);
		corrections_each(&s->analysis, &s->cfi, take_run, &c);
		restored_add(&s->analysis, &s->cfi, s->shapes);
	} else {
		analysis_rows(&s->analysis, &s->rest);
		rows_finish(&s->rest);
	}
}

/* Appends finished rows as intervals. */
static void append_rows(struct rows *to, const struct rows *from)
{
	uint32_t *rules = calloc(from->rule_count ? from->rule_count : 1, sizeof *rules);
	if (!rules) {
		to->failed = 1;
		return;
	}
	for (size_t i = 1; i < from->rule_count; i++)
		rules[i] = rows_rule(to, &from->rules[i]);
	for (size_t i = 0; i + 1 < from->count; i++)
		if (from->rows[i].rule)
			rows_add(to, from->rows[i].address, from->rows[i + 1].address,
				 rules[from->rows[i].rule]);
	free(rules);
	to->failed |= from->failed;
}

static struct err *auto_rows(struct image *image, struct image *debug, struct rows *rows)
{
	struct sources s = {.image = image, .debug = debug, .shapes = rows};
	rows_init(&s.cfi);
	rows_init(&s.rest);
	parallel_for(2, read_source, &s);
	if (!s.cfi_error && !s.analysis_error) {
		roots_add(image, &s.analysis, rows);
		parallel_for(2, read_off, &s);
		append_rows(rows, &s.cfi);
		append_rows(rows, &s.rest);
		shapes_add_last(image, rows);
	}
	if (!s.analysis_error)
		analysis_free(&s.analysis);
	rows_free(&s.cfi);
	rows_free(&s.rest);
	if (s.cfi_error && s.analysis_error)
		err_free(s.analysis_error);
	return s.cfi_error ? s.cfi_error : s.analysis_error;
}

static struct err *analysis_alone(struct image *image, struct rows *rows)
{
	struct analysis analysis;
	struct err *e = analyse(image, &analysis);
	shapes_add(image, rows);
	if (!e) {
		roots_add(image, &analysis, rows);
		analysis_rows(&analysis, rows);
		shapes_add_last(image, rows);
		analysis_free(&analysis);
	}
	return e;
}

struct err *recipes_rows(struct image *image, struct image *debug, enum recipes_mode mode,
			 struct rows *rows)
{
	struct cfi_stats stats = {0};
	struct err *e;
	if (mode == RECIPES_AUTO)
		e = auto_rows(image, debug, rows);
	else if (mode == RECIPES_CFI)
		e = cfi_read(image, debug, rows, &stats);
	else
		e = analysis_alone(image, rows);
	if (e)
		return e;
	rows_finish(rows);
	return rows->failed ? err_new("out of memory") : NULL;
}

#define MAX_PAGES (1u << 24) /* 16 GiB of code */

struct packer {
	uint32_t *pages, *packed;
	uint32_t page_count, count;
};

/* Writes the rows page by page; with packed == NULL it only counts them. */
static void pack_rows(const struct rows *rows, uint64_t start, struct packer *p)
{
	size_t next = 0;
	uint32_t rule = 0;
	p->count = 0;
	for (uint32_t page = 0; page < p->page_count; page++) {
		uint64_t base = start + (uint64_t)page * TABLE_PAGE;
		if (p->pages)
			p->pages[page] = p->count;
		while (next < rows->count && rows->rows[next].address <= base)
			rule = rows->rows[next++].rule;
		if (p->packed)
			p->packed[p->count] = rule;
		p->count++;
		for (; next < rows->count && rows->rows[next].address < base + TABLE_PAGE; next++) {
			rule = rows->rows[next].rule;
			if (p->packed)
				p->packed[p->count] = (uint32_t)(rows->rows[next].address - base)
							      << TABLE_RULE_BITS |
						      rule;
			p->count++;
		}
	}
	if (p->pages)
		p->pages[p->page_count] = p->count;
}

struct err *recipes_pack(const struct rows *rows, uint16_t machine, enum recipes_mode mode,
			 const uint8_t *key, void **bytes, size_t *size)
{
	uint64_t start = rows->count ? rows->rows[0].address & ~(uint64_t)(TABLE_PAGE - 1) : 0;
	uint64_t end = rows->count ? rows->rows[rows->count - 1].address : 0;
	uint64_t pages = (end - start) / TABLE_PAGE + !!((end - start) % TABLE_PAGE);
	if (pages > MAX_PAGES || rows->rule_count > TABLE_RULE_MASK)
		return err_new("its code spans %llu MiB: too much for an unwind table",
			       (unsigned long long)(pages >> (20 - TABLE_PAGE_BITS)));
	struct packer p = {.page_count = (uint32_t)pages};
	pack_rows(rows, start, &p);
	size_t words = p.page_count + 1 + (size_t)p.count;
	words += words & 1;
	*size = sizeof(struct table_header) + words * 4 + rows->rule_count * sizeof(struct recipe);
	char *out = *bytes = calloc(1, *size);
	if (!out)
		return err_new("out of memory");
	p.pages = (uint32_t *)(out + sizeof(struct table_header));
	p.packed = p.pages + p.page_count + 1;
	pack_rows(rows, start, &p);
	memcpy(p.pages + words, rows->rules, rows->rule_count * sizeof(struct recipe));
	struct table_header *h = (struct table_header *)out;
	*h = (struct table_header){
		.magic = TABLE_MAGIC,
		.version = TABLE_VERSION,
		.machine = machine,
		.mode = (uint16_t)mode,
		.start = start,
		.page_count = p.page_count,
		.row_count = p.count,
		.rule_count = (uint32_t)rows->rule_count,
		.checksum = table_checksum(out + sizeof *h, *size - sizeof *h),
	};
	memcpy(h->key, key, sizeof h->key);
	return NULL;
}
