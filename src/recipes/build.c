/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which source is believed where (RECIPES_AUTO), first to last:
 *
 *   1. known shapes: signal trampolines;
 *   2. the analysis, where CFI is provably wrong (recipes/corrections.h);
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

struct reader {
	struct analysis analysis;
	const struct rows *cfi;
	struct rows *corrections, *rest;
};

/* The two things that are read off an analysis; each writes to rows of its own. */
static void read_off(void *context, size_t index)
{
	struct reader *r = context;
	if (index == 0) {
		struct corrector c = {.analysis = &r->analysis, .out = r->corrections};
		corrections_each(&r->analysis, r->cfi, take_run, &c);
	} else {
		analysis_rows(&r->analysis, r->rest);
		if (r->cfi)
			rows_finish(r->rest);
	}
}

static struct err *add_analysis(struct image *image, const struct rows *cfi, struct rows *corrections,
				struct rows *rest)
{
	struct reader reader = {.cfi = cfi, .corrections = corrections, .rest = rest};
	struct symbols *symbols = NULL;
	struct err *e = symbols_read(image, NULL, &symbols);
	if (!e)
		e = analysis_run(image, symbols, &reader.analysis);
	if (!e) {
		if (cfi)
			parallel_for(2, read_off, &reader);
		else
			read_off(&reader, 1);
		analysis_free(&reader.analysis);
	}
	symbols_free(symbols);
	return e;
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
			rows_add(to, from->rows[i].address, from->rows[i + 1].address, rules[from->rows[i].rule]);
	free(rules);
	to->failed |= from->failed;
}

static struct err *auto_rows(struct image *image, struct image *debug, struct rows *rows)
{
	struct rows cfi, rest;
	struct cfi_stats stats = {0};
	rows_init(&cfi);
	rows_init(&rest);
	struct err *e = cfi_read(image, debug, &cfi, &stats);
	rows_finish(&cfi);
	if (!e)
		e = add_analysis(image, &cfi, rows, &rest);
	if (!e) {
		append_rows(rows, &cfi);
		append_rows(rows, &rest);
	}
	rows_free(&cfi);
	rows_free(&rest);
	return e;
}

struct err *recipes_rows(struct image *image, struct image *debug, enum recipes_mode mode, struct rows *rows)
{
	struct cfi_stats stats = {0};
	struct err *e = NULL;
	if (mode != RECIPES_CFI)
		shapes_add(image, rows);
	if (mode == RECIPES_AUTO)
		e = auto_rows(image, debug, rows);
	else if (mode == RECIPES_CFI)
		e = cfi_read(image, debug, rows, &stats);
	else
		e = add_analysis(image, NULL, NULL, rows);
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
				p->packed[p->count] = (uint32_t)(rows->rows[next].address - base) << TABLE_RULE_BITS | rule;
			p->count++;
		}
	}
	if (p->pages)
		p->pages[p->page_count] = p->count;
}

struct err *recipes_pack(const struct rows *rows, uint16_t machine, enum recipes_mode mode, const uint8_t *key,
			 void **bytes, size_t *size)
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
		.magic = TABLE_MAGIC, .version = TABLE_VERSION, .machine = machine, .mode = (uint16_t)mode,
		.start = start, .page_count = p.page_count, .row_count = p.count,
		.rule_count = (uint32_t)rows->rule_count,
		.checksum = table_checksum(out + sizeof *h, *size - sizeof *h),
	};
	memcpy(h->key, key, sizeof h->key);
	return NULL;
}
