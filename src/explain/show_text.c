/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "annotate/annotate.h"
#include "base/buf.h"
#include "base/path.h"
#include "explain/machine.h"
#include "explain/model.h"
#include "explain/program.h"
#include "profile/profile.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"
#define WORST 10
#define SHOWN_LEAST 0.005 /* of the cycles: a cause with less is not shown */

static const char *style(const struct explain_show *o, const char *sequence)
{
	return o->colour ? sequence : "";
}

static void put_head(const struct program *program, struct buf *out)
{
	const struct machine *m = &program->machine;
	char count[SUMMARY_COUNT_MAX];
	buf_printf(out, "%s samples of %s on ", summary_count(count, (uint64_t)program->samples),
		   program->profile->metrics[program->metric].name);
	buf_printf(out, "%s at %.2f GHz\n",
		   model_cpu(m->model) ? model_cpu(m->model) : model_name(m->model),
		   m->numbers.hz / 1e9);
}

/* ---- causes ---- */

static bool is_sure(const struct range *r, double all)
{
	return r->high - r->low < 0.01 * all;
}

static void put_cause(const struct explain_show *o, enum cause cause, const struct range *r,
		      double all, struct buf *out)
{
	double low = 100 * r->low / all, high = fmin(100, 100 * r->high / all);
	bool loss = cause != CAUSE_EXECUTION;
	buf_printf(out, "  %-26s ", cause_title(cause));
	if (loss && low + high > 20)
		buf_puts(out, style(o, YELLOW));
	if (is_sure(r, all))
		buf_printf(out, "%7.1f%%", (low + high) / 2);
	else
		buf_printf(out, "%7.1f%% to %5.1f%%", low, high);
	if (!is_sure(r, all) && cause != CAUSE_STOLEN)
		buf_printf(out, ", likely %.1f%%", 100 * r->likely / all);
	buf_printf(out, "%s\n", loss && low + high > 20 ? style(o, PLAIN) : "");
}

static void put_causes(const struct explain_show *o, const struct range_sum *sum, double all,
		       struct buf *out)
{
	uint8_t order[CAUSES];
	unsigned count = causes_order(sum, SHOWN_LEAST * all, order);
	buf_printf(out, "%scycles by cause%s\n", style(o, BOLD), style(o, PLAIN));
	for (unsigned i = 0; i < count; i++)
		put_cause(o, (enum cause)order[i], &sum->of[order[i]], all, out);
}

/* ---- loops ---- */

static void put_place(const char *file, uint32_t line, uint64_t address, struct buf *out)
{
	if (!line || !file) {
		buf_printf(out, "0x%" PRIx64, address);
		return;
	}
	const char *name = path_file(file);
	buf_put_clean(out, name, strlen(name));
	buf_printf(out, ":%" PRIu32, line);
}

static void put_name(const struct program *program, const struct program_function *f, size_t most,
		     struct buf *out)
{
	const char *file = path_file(program->profile->modules[f->module].path);
	if (f->name) {
		buf_put_cut(out, f->name, most);
		return;
	}
	buf_put_clean(out, file, strlen(file));
	buf_printf(out, "+0x%" PRIx64, f->start);
}

static void put_loop(const struct program *program, const struct program_loop *l,
		     const struct explain_show *o, bool named, struct buf *out)
{
	double all = program->samples * program->cycles_per_sample;
	buf_printf(out, "%5.1f%%  %s", 100 * l->loop->own / all, style(o, BOLD));
	if (named) {
		put_name(program, l->function, 60, out);
		buf_puts(out, ", ");
	}
	buf_puts(out, "loop at ");
	put_place(l->loop->file, l->loop->line, l->loop->address, out);
	buf_printf(out, "%s\n        ", style(o, PLAIN));
	loop_verdict(l->function->function, l->loop, all, out);
	buf_puts(out, "\n");
}

static void put_loops(const struct program *program, const struct explain_show *o, bool named,
		      struct buf *out)
{
	struct program_loop worst[WORST];
	size_t count = program_worst_loops(program, worst, WORST);
	if (!count)
		return;
	buf_printf(out, "\n%sloops that lose most%s (share of the program's cycles)\n",
		   style(o, BOLD), style(o, PLAIN));
	for (size_t i = 0; i < count; i++)
		put_loop(program, &worst[i], o, named, out);
}

void explain_show_program(const struct program *program, const struct explain_show *o,
			  struct buf *out)
{
	double all = program->explained * program->cycles_per_sample;
	put_head(program, out);
	buf_printf(out, "%zu function%s with %.1f%% of the samples", program->count,
		   program->count == 1 ? "" : "s", 100 * program->explained / program->samples);
	if (program->unread > 0.001 * program->samples)
		buf_printf(out, "; %.1f%% are in code that cannot be read",
			   100 * program->unread / program->samples);
	buf_puts(out, "\n\n");
	put_causes(o, &program->causes, all, out);
	put_loops(program, o, true, out);
}

/* ---- one function ---- */

struct loss {
	double cycles;
	uint32_t insn;
};

static int by_loss(const void *a, const void *b)
{
	double x = ((const struct loss *)a)->cycles, y = ((const struct loss *)b)->cycles;
	return x < y ? 1 : x > y ? -1 : 0;
}

static void put_reasons(const struct function *f, const struct explain_insn *i, struct buf *out)
{
	for (unsigned c = 0; c < i->culprit_count; c++) {
		const struct culprit *x = &i->culprits[c];
		buf_printf(out, "%s%s", c ? ", " : "", cause_title((enum cause)x->cause));
		if (x->cycles.high - x->cycles.low > 0.05 * i->lost)
			buf_printf(out, " %.1f to %.1f", x->cycles.low, x->cycles.high);
		else
			buf_printf(out, " %.1f", x->cycles.high);
		if (&f->insns[x->by] != i)
			buf_printf(out, " (0x%" PRIx64 ")", f->insns[x->by].address);
	}
}

static void put_insns(const struct function *f, const struct explain_show *o, struct buf *out)
{
	struct loss *all = calloc(f->insn_count + 1, sizeof *all);
	size_t count = 0;
	for (uint32_t i = 0; all && i < f->insn_count; i++)
		if (f->insns[i].stalls)
			all[count++] = (struct loss){f->insns[i].lost * f->insns[i].frequency, i};
	if (all)
		qsort(all, count, sizeof *all, by_loss);
	if (count)
		buf_printf(out, "\n%sinstructions that lose most%s\n", style(o, BOLD),
			   style(o, PLAIN));
	for (size_t n = 0; n < count && n < WORST; n++) {
		const struct explain_insn *i = &f->insns[all[n].insn];
		const char *text = function_text(f, all[n].insn);
		buf_printf(out, "%5.1f%%  %" PRIx64 "  ", 100 * all[n].cycles / f->cycles,
			   i->address);
		buf_put_clean(out, text, strlen(text));
		buf_printf(out, "\n        %.1f of its %.1f cycles: ", i->lost, i->cpi);
		put_reasons(f, i, out);
		buf_puts(out, "\n");
	}
	free(all);
}

/* Instructions that ran, and cycles, as the code asks for and as they were. */
static void put_cpi(const struct function *f, struct buf *out)
{
	double runs = 0, fixed = 0;
	for (size_t i = 0; i < f->insn_count; i++) {
		runs += f->insns[i].frequency;
		fixed += f->insns[i].fixed * f->insns[i].frequency;
	}
	if (runs > 0)
		buf_printf(out, "%.2f cycles an instruction; %.2f if nothing were waited for\n",
			   f->cycles / runs, fixed / runs);
	if (f->incomplete)
		buf_puts(out, "where some jumps go is not known: frequencies may be wrong\n");
}

void explain_show_function(const struct program *program, const struct explain_show *o,
			   struct buf *out)
{
	const struct program_function *p = &program->functions[0];
	char count[SUMMARY_COUNT_MAX];
	put_head(program, out);
	buf_puts(out, style(o, BOLD));
	put_name(program, p, 100, out);
	buf_printf(out, "%s: %s samples, %.1f%% of all\n", style(o, PLAIN),
		   summary_count(count, (uint64_t)p->function->samples),
		   100 * p->function->samples / program->samples);
	put_cpi(p->function, out);
	buf_puts(out, "\n");
	put_causes(o, &p->function->causes, p->function->cycles, out);
	put_loops(program, o, false, out);
	put_insns(p->function, o, out);
}

/* ---- beside instructions ---- */

void explain_put_titles(struct buf *out)
{
	buf_printf(out, "%11s %9s ", "executions", "cycles");
}

void explain_put_columns(const void *context, size_t insn, struct buf *out)
{
	const struct function *f = context;
	const struct explain_insn *i = &f->insns[insn];
	if (i->block == GRAPH_NONE || i->frequency <= 0)
		buf_printf(out, "%*s", EXPLAIN_COLUMNS, "");
	else if (i->cpi >= 0.05)
		buf_printf(out, "%11.3g %9.1f ", i->frequency, i->cpi);
	else
		buf_printf(out, "%11.3g %9s ", i->frequency, "");
}

void explain_put_bubbles(const void *context, size_t insn, void (*put)(void *to, const char *line),
			 void *to)
{
	const struct function *f = context;
	const struct explain_insn *i = &f->insns[insn];
	struct buf line = {0};
	if (i->stalls && i->lost >= 0.1) {
		buf_printf(&line, "%.1f cycles lost: ", i->lost);
		put_reasons(f, i, &line);
		put(to, buf_text(&line));
	}
	buf_clear(&line);
	if (i->fixed >= 1.5 && i->why != CAUSE_EXECUTION && i->fixed >= 0.3 * i->lost) {
		buf_printf(&line, "%.1f cycles: %s", i->fixed, cause_title((enum cause)i->why));
		put(to, buf_text(&line));
	}
	buf_free(&line);
}
