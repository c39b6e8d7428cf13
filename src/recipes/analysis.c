/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/builtins.h"
#include "flow/frame.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/rows.h"

static struct err *take_landings(struct image *image, struct analysis *a)
{
	struct cfi_landing *found;
	struct err *e = cfi_landings(image, &found, &a->landing_count);
	if (e || !a->landing_count)
		return e;
	a->landings = calloc(a->landing_count, sizeof *a->landings);
	for (size_t i = 0; a->landings && i < a->landing_count; i++)
		a->landings[i] = (struct trace_landing){found[i].start, found[i].end,
							found[i].landing_pad};
	free(found);
	return a->landings ? NULL : err_new("out of memory");
}

/* Where SP is after a call cannot be told in what V8's compiler made: callees take as many arguments off
   the stack as they were given. But as soon as they have frames, FP leads to them. */
static bool keeps_pointer(struct image *image, const struct isa *isa, const struct symbol *s)
{
	return s->size && builtin_keeps_pointer(builtin_kind(image, isa, s));
}

static struct err *take_pointers(struct image *image, const struct symbols *symbols,
				 struct analysis *a)
{
	const struct symbol *all;
	size_t count = symbols ? symbols_all(symbols, &all) : 0, wanted = 0;
	for (size_t i = 0; i < count; i++)
		wanted += keeps_pointer(image, a->isa, &all[i]);
	if (!wanted)
		return NULL;
	a->pointers = reallocarray(NULL, wanted, sizeof *a->pointers);
	for (size_t i = 0; a->pointers && i < count; i++)
		if (keeps_pointer(image, a->isa, &all[i]))
			a->pointers[a->pointer_count++] = (struct analysis_range){
				all[i].address, all[i].address + all[i].size};
	return a->pointers ? NULL : err_new("out of memory");
}

struct err *analysis_run(struct image *image, const struct symbols *symbols, struct analysis *out)
{
	memset(out, 0, sizeof *out);
	out->isa = isa_for_machine(image_machine(image));
	if (!out->isa)
		return err_new("%s: no analysis for this CPU", image_path(image));
	struct err *e = survey_take(image, out->isa, symbols, &out->survey);
	if (!e)
		e = take_landings(image, out);
	if (!e)
		e = take_pointers(image, symbols, out);
	if (!e) {
		out->input = (struct trace_input){
			.entries = out->survey.entries,
			.entry_count = out->survey.entry_count,
			.hints = out->survey.hints,
			.hint_count = out->survey.hint_count,
			.noreturn = out->survey.noreturn,
			.noreturn_count = out->survey.noreturn_count,
			.slots = out->survey.slots,
			.slot_count = out->survey.slot_count,
			.landings = out->landings,
			.landing_count = out->landing_count,
		};
		e = trace_run(image, out->isa, &out->input, &out->trace);
	}
	if (e)
		analysis_free(out);
	return e;
}

void analysis_free(struct analysis *a)
{
	trace_free(a->trace);
	survey_free(&a->survey);
	free(a->landings);
	free(a->pointers);
	memset(a, 0, sizeof *a);
}

struct row_writer {
	const struct isa *isa;
	const struct analysis_range *pointers, *pointers_end; /* those that are still to come */
	struct rows *rows;
	uint64_t start, end; /* the run under way */
	uint32_t rule;
	uint32_t *rule_of; /* by state id, of one region; 0: not yet known */
	size_t rule_capacity;
};

static uint32_t rule_of_state(struct row_writer *w, const struct trace_point *p)
{
	struct recipe recipe;
	if (p->state_id >= w->rule_capacity) {
		size_t wanted = (p->state_id + 1) * 2;
		uint32_t *grown = realloc(w->rule_of, wanted * sizeof *grown);
		if (!grown) {
			w->rows->failed = 1;
			return 0;
		}
		memset(grown + w->rule_capacity, 0, (wanted - w->rule_capacity) * sizeof *grown);
		w->rule_of = grown;
		w->rule_capacity = wanted;
	}
	if (!w->rule_of[p->state_id]) {
		frame_recipe(w->isa, p->state, &recipe);
		w->rule_of[p->state_id] = rows_rule(w->rows, &recipe) + 1;
	}
	return w->rule_of[p->state_id] - 1;
}

/* The same frame, found by FP, where that has been set up: it is saved then, beside the return address. */
static uint32_t by_pointer(struct row_writer *w, uint64_t address, uint32_t rule)
{
	while (w->pointers < w->pointers_end && w->pointers->end <= address)
		w->pointers++;
	if (w->pointers == w->pointers_end || address < w->pointers->start)
		return rule;
	struct recipe r = w->rows->rules[rule];
	if (r.cfa != RECIPE_REG || r.cfa_reg != w->isa->sp || r.fp != RECIPE_AT_CFA ||
	    r.fp_offset != -16 || r.ra != RECIPE_AT_CFA || r.ra_offset != -8)
		return rule;
	r.cfa_reg = w->isa->fp;
	r.cfa_offset = 16;
	r.cfa_vg = 0;
	return rows_rule(w->rows, &r);
}

static void flush(struct row_writer *w)
{
	if (w->rule && w->end > w->start)
		rows_add(w->rows, w->start, w->end, w->rule);
}

static void write_place(void *context, const struct trace_point *p)
{
	struct row_writer *w = context;
	if (p->fresh && w->rule_capacity)
		memset(w->rule_of, 0, w->rule_capacity * sizeof *w->rule_of);
	uint32_t rule = by_pointer(w, p->address, rule_of_state(w, p));
	if (rule != w->rule || p->address != w->end) {
		flush(w);
		w->start = p->address;
		w->rule = rule;
	}
	w->end = p->address + p->length;
}

void analysis_rows(const struct analysis *a, struct rows *rows)
{
	struct row_writer w = {.isa = a->isa,
			       .rows = rows,
			       .pointers = a->pointers,
			       .pointers_end = a->pointers ? a->pointers + a->pointer_count : NULL};
	trace_each(a->trace, false, write_place, &w);
	flush(&w);
	free(w.rule_of);
}
