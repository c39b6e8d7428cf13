/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree is drawn with guides. Only a fork takes room to the right: a child
 * without (visible) siblings stands right below its parent.
 *
 *     total    self      time
 *   100.00%   0.00%    10.0 s  (all)
 *   100.00%   0.00%    10.0 s  main  app.c:40  (app)
 *    60.00%  10.00%    6.00 s  ├─ solve  app.c:12  (app)
 *    50.00%  50.00%    5.00 s  │  inner  app.c:5  (app)
 *    40.00%  40.00%    4.00 s  └─ wait  app.c:30  (app)
 */
#include "analyze/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/brief.h"
#include "analyze/derived.h"
#include "analyze/shorten.h"
#include "analyze/scopes.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/term.h"
#include "base/utf8.h"
#include "profile/profile.h"

#define NUMBERS 29 /* columns before the names */
#define CALLS 11   /* columns for calls, if they were counted */
#define NO_CALLS UINT32_MAX
#define DERIVED 10      /* columns for a quotient, if there is one */
#define GUIDE 3         /* columns of a fork */
#define GUIDES_MAX 16   /* forks drawn; what lies further out is told by "…" */
#define NAME_LEAST 30   /* columns that a name is not cut below */
#define CHAIN_WIDTH 120 /* columns of a line with a chain, if nothing says how many there are */

enum fork { ALONE, BRANCH, LAST };

struct entry { /* still to be drawn */
	uint32_t node;
	size_t guides; /* bytes of guides that its parent's line is followed by */
	enum fork fork;
};

struct drawing {
	const struct tree *t;
	const struct profile *p;
	const struct show_options *o;
	struct buf *out;
	struct buf guides;
	struct entry *stack;
	size_t count, room;
	uint32_t calls; /* the metric that has a column beside the chosen one, or NO_CALLS */
	bool has_derived;
	struct derived derived;
};

static const char *style(const struct drawing *d, const char *sequence)
{
	return d->o->colour ? sequence : "";
}

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

/* ---- numbers ---- */

static double share(const struct drawing *d, uint64_t count)
{
	uint64_t whole = d->t->whole[d->o->metric];
	return whole ? 100 * (double)count / (double)whole : 0;
}

static bool is_size(const struct profile_metric *m)
{
	return !strcmp(m->unit, "bytes");
}

/* Samples as what they stand for: time where the metric is a clock. */
static const char *amount(const struct drawing *d, uint64_t count, char out[SUMMARY_COUNT_MAX])
{
	const struct profile_metric *m = &d->p->metrics[d->o->metric];
	if (!strcmp(m->unit, "ns")) {
		char time[TERM_UNIT_MAX];
		term_time(time, (double)count * (double)profile_period(d->p, d->o->metric) / 1e9);
		snprintf(out, SUMMARY_COUNT_MAX, "%s", time);
		return out;
	}
	if (is_size(m)) {
		char size[TERM_UNIT_MAX];
		snprintf(out, SUMMARY_COUNT_MAX, "%s", term_size(size, count * m->period));
		return out;
	}
	return summary_count(out, count);
}

/* What the column of amounts is called. */
static const char *amount_title(const struct profile *p, uint32_t metric)
{
	const struct profile_metric *m = &p->metrics[metric];
	if (!strcmp(m->unit, "ns"))
		return "time";
	if (is_size(m))
		return "size";
	bool calls = !strcmp(m->unit, "calls");
	return profile_sampled(p, metric) == metric && !calls ? "samples" : m->unit;
}

/* Returns the innermost function from `node` to `last`. */
static uint32_t innermost(const struct drawing *d, uint32_t node, uint32_t last)
{
	const struct tree *t = d->t;
	while (last != node && !scope_is_function(scopes_get(t->scopes, t->nodes[last].scope)))
		last = t->nodes[last].parent;
	return last;
}

/* Calls of the innermost function, if functions are counted; else those that the chosen metric is of. */
static void put_calls(const struct drawing *d, uint32_t node, uint32_t last)
{
	char text[SUMMARY_COUNT_MAX];
	bool functions = profile_sampled(d->p, d->calls) == d->calls &&
			 profile_sampled(d->p, d->o->metric) != d->calls;
	uint64_t calls = functions || d->o->flat
				 ? tree_self(d->t, innermost(d, node, last), d->calls)
				 : tree_total(d->t, node, d->calls);
	buf_printf(d->out, "%*s ", CALLS - 1, calls ? summary_count(text, calls) : "");
}

static void put_derived(const struct drawing *d, uint32_t node, uint32_t last)
{
	struct buf text = {0};
	double value;
	uint32_t of = d->derived.of_calls ? innermost(d, node, last) : node;
	if (derived_value(&d->derived, d->p, d->t, of, d->o->flat, &value))
		derived_print(&d->derived, value, &text);
	buf_printf(d->out, "%*s ", DERIVED - 1, buf_text(&text));
	buf_free(&text);
}

/* Of the nodes from `node` to `last`: all samples of the first, and those of the last alone. */
static void put_numbers(struct drawing *d, uint32_t node, uint32_t last)
{
	uint64_t self = tree_self(d->t, last, d->o->metric);
	double own = share(d, self), all = share(d, tree_total(d->t, node, d->o->metric));
	const char *colour = own >= 5 ? RED : own >= 1 ? YELLOW : "";
	char text[SUMMARY_COUNT_MAX];
	uint64_t shown = d->o->flat ? self : tree_total(d->t, node, d->o->metric);
	if (d->o->flat)
		buf_printf(d->out, "%s%7.2f%%%s %7.2f%%", style(d, colour), own, style(d, PLAIN),
			   all);
	else
		buf_printf(d->out, "%7.2f%% %s%7.2f%%%s", all, style(d, colour), own,
			   style(d, PLAIN));
	buf_printf(d->out, " %10s ", amount(d, shown, text));
	if (d->calls != NO_CALLS)
		put_calls(d, node, last);
	if (d->has_derived)
		put_derived(d, node, last);
}

/* ---- names ---- */

static void put_short(const struct drawing *d, const char *name, struct buf *out)
{
	if (d->o->full_names)
		buf_puts(out, name);
	else
		name_shorten(name, out);
}

/* "  in find (inlined) of solve  (app)", where the loop's own name does not say so. */
static void describe_loop(const struct drawing *d, const struct scope *s, struct buf *out)
{
	if (!d->o->functions || !s->module)
		return;
	const struct scope *function = scopes_get(d->t->scopes, s->function);
	bool said = !s->file && !function->nameless && !s->inlined;
	if (!said)
		buf_puts(out, "  in ");
	if (s->inlined) {
		const struct scope *inlined = scopes_get(d->t->scopes, s->inlined);
		put_short(d, inlined->name, out);
		buf_puts(out, inlined->guessed ? " (inlined?) of " : " (inlined) of ");
	}
	if (!said)
		put_short(d, function->name, out);
	buf_printf(out, "  (%s)", path_file(d->p->modules[s->module].path));
}

/* File, line, module: what follows a name. */
static void describe(const struct drawing *d, const struct scope *s, struct buf *out)
{
	if (s->kind == SCOPE_LOOP) {
		describe_loop(d, s, out);
		return;
	}
	if (s->file && s->kind == SCOPE_FILE)
		buf_printf(out, "  %s", s->file);
	else if (s->file)
		buf_printf(out, s->line ? "  %s:%d" : "  %s", path_file(s->file), s->line);
	if ((s->script && s->file) || s->object) /* the file is the module; the name says it all */
		return;
	if (s->module && s->kind != SCOPE_MODULE)
		buf_printf(out, "  (%s)", path_file(d->p->modules[s->module].path));
	else if (s->module && strcmp(s->name, d->p->modules[s->module].path) != 0)
		buf_printf(out, "  %s", d->p->modules[s->module].path);
	if (s->kind == SCOPE_INLINE)
		buf_puts(out, s->guessed ? " (inlined?)" : " (inlined)");
}

/* The name of a node's scope, as it is shown. */
static void name_node(const struct drawing *d, uint32_t node, struct buf *out)
{
	const struct tree_node *n = &d->t->nodes[node];
	const struct scope *s = scopes_get(d->t->scopes, n->scope);
	if (!scope_is_function(s)) {
		buf_puts(out, s->name);
		return;
	}
	put_short(d, s->name, out);
	if (n->folded)
		buf_printf(out, " x %" PRIu32, n->folded + 1);
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

/* The names of the nodes from `first` to the one before `last`. NULL without memory. */
static char **names_between(const struct drawing *d, uint32_t first, uint32_t last, size_t *count)
{
	*count = 0;
	for (uint32_t node = last; node != first; node = d->t->nodes[node].parent)
		++*count;
	char **names = calloc(*count + 1, sizeof *names);
	bool good = names;
	uint32_t node = d->t->nodes[last].parent;
	for (size_t i = *count; good && i-- > 0; node = d->t->nodes[node].parent) {
		struct buf name = {0};
		name_node(d, node, &name);
		names[i] = buf_take(&name);
		good = names[i];
	}
	if (good)
		return names;
	free_names(names, *count);
	return NULL;
}

/* Columns of a scope that is drawn in full. */
static size_t scope_columns(const struct drawing *d, uint32_t node)
{
	struct buf text = {0};
	name_node(d, node, &text);
	describe(d, scopes_get(d->t->scopes, d->t->nodes[node].scope), &text);
	size_t columns = utf8_count(buf_text(&text));
	buf_free(&text);
	return columns;
}

/* "main → solve → " of the nodes from `first` to the one before `last`, so that the line fits if possible. */
static size_t put_way(struct drawing *d, uint32_t first, uint32_t last, size_t used)
{
	size_t width = d->o->width ? d->o->width : CHAIN_WIDTH, count, columns = 0;
	size_t taken = used + scope_columns(d, last);
	char **names = names_between(d, first, last, &count);
	buf_puts(d->out, style(d, DIM));
	if (names)
		columns = brief_way((const char *const *)names, count,
				    width > taken ? width - taken : 0, d->out);
	buf_puts(d->out, style(d, PLAIN));
	d->out->failed |= !names;
	free_names(names, count);
	return columns;
}

static void put_scope(struct drawing *d, uint32_t node, size_t used)
{
	const struct scope *s = scopes_get(d->t->scopes, d->t->nodes[node].scope);
	struct buf rest = {0}, text = {0};
	name_node(d, node, &text);
	const char *name = text.failed ? s->name : buf_text(&text);
	describe(d, s, &rest);
	size_t behind = utf8_count(buf_text(&rest)), max = 0;
	size_t left = d->o->width > used ? d->o->width - used : 0;
	if (d->o->width && utf8_count(name) + behind > left) {
		if (left < behind + NAME_LEAST) {
			buf_clear(&rest);
			behind = 0;
		}
		max = left > behind + NAME_LEAST ? left - behind : NAME_LEAST;
	}
	buf_puts(d->out, style(d, s->kind == SCOPE_PARTIAL ? YELLOW : BOLD));
	buf_put_cut(d->out, name, max);
	buf_puts(d->out, style(d, PLAIN));
	if (rest.size) {
		buf_puts(d->out, style(d, DIM));
		buf_put_clean(d->out, rest.data, rest.size);
		buf_puts(d->out, style(d, PLAIN));
	}
	buf_free(&rest);
	buf_free(&text);
	buf_puts(d->out, "\n");
}

/* ---- guides ---- */

/* Draws the guides and returns how many columns they take. */
static size_t put_guides(struct drawing *d, enum fork fork)
{
	static const char *const marks[] = {[ALONE] = "", [BRANCH] = "├─ ", [LAST] = "└─ "};
	const char *text = buf_text(&d->guides);
	size_t wide = utf8_count(text), skipped = 0;
	if (wide > GUIDES_MAX * GUIDE) {
		skipped = utf8_at(text, wide - GUIDES_MAX * GUIDE);
		wide = GUIDES_MAX * GUIDE + 2;
		buf_puts(d->out, "… ");
	}
	buf_printf(d->out, "%s%s", text + skipped, marks[fork]);
	return wide + (fork == ALONE ? 0 : GUIDE);
}

static bool push(struct drawing *d, struct entry entry)
{
	if (!ARRAY_ROOM(d->stack, d->count, d->room))
		return false;
	d->stack[d->count++] = entry;
	return true;
}

/* The children in reverse order, so that the first is drawn first. */
static bool push_children(struct drawing *d, uint32_t node)
{
	size_t before = d->count, guides = d->guides.size;
	bool good = true;
	for (uint32_t c = tree_first(d->t, node); good && c != TREE_NONE; c = tree_next(d->t, c))
		good = push(d, (struct entry){c, guides, BRANCH});
	size_t count = d->count - before;
	if (count)
		d->stack[d->count - 1].fork = count == 1 ? ALONE : LAST;
	for (size_t i = 0; i < count / 2; i++) {
		struct entry swapped = d->stack[before + i];
		d->stack[before + i] = d->stack[d->count - 1 - i];
		d->stack[d->count - 1 - i] = swapped;
	}
	return good;
}

/* Draws the nodes from that of the entry to `last` on one line. */
static void draw_line(struct drawing *d, struct entry entry, uint32_t last)
{
	d->guides.size = entry.guides;
	if (d->guides.data)
		d->guides.data[entry.guides] = 0;
	put_numbers(d, entry.node, last);
	size_t used = NUMBERS + (d->calls != NO_CALLS ? CALLS : 0) + (d->has_derived ? DERIVED : 0);
	used += put_guides(d, entry.fork);
	if (last != entry.node)
		used += put_way(d, entry.node, last, used);
	put_scope(d, last, used);
	if (entry.fork != ALONE)
		buf_puts(&d->guides, entry.fork == LAST ? "   " : "│  ");
}

static size_t draw_tree(struct drawing *d)
{
	uint64_t rows = 0;
	size_t more = 0;
	bool good = push(d, (struct entry){0, 0, ALONE});
	while (good && d->count) {
		struct entry entry = d->stack[--d->count];
		uint32_t last = d->o->brief
					? brief_chain(d->t, d->o->metric, d->o->least, entry.node)
					: entry.node;
		if (d->o->limit && rows++ >= d->o->limit)
			more++;
		else
			draw_line(d, entry, last);
		good = push_children(d, last);
	}
	d->out->failed |= !good;
	return more;
}

static size_t draw_rows(struct drawing *d)
{
	uint64_t rows = 0;
	size_t more = 0;
	for (uint32_t i = tree_first(d->t, 0); i != TREE_NONE; i = tree_next(d->t, i)) {
		if (d->o->limit && rows++ >= d->o->limit)
			more++;
		else
			draw_line(d, (struct entry){i, 0, ALONE}, i);
	}
	return more;
}

/* Calls need no column beside calls. */
static uint32_t find_calls(const struct profile *p, uint32_t chosen)
{
	bool calls = chosen < p->metric_count && !strcmp(p->metrics[chosen].unit, "calls");
	for (uint32_t i = 0; !calls && i < p->metric_count; i++)
		if (i != chosen && !strcmp(p->metrics[i].unit, "calls"))
			return i;
	return NO_CALLS;
}

size_t show_text(const struct tree *t, const struct profile *p, const struct show_options *o,
		 struct buf *out)
{
	struct drawing d = {.t = t, .p = p, .o = o, .out = out, .calls = find_calls(p, o->metric)};
	d.has_derived = derived_choose(p, o->derived, o->metric, &d.derived);
	buf_printf(out, "%s%8s %8s %10s ", style(&d, DIM), o->flat ? "self" : "total",
		   o->flat ? "total" : "self", amount_title(p, o->metric));
	if (d.calls != NO_CALLS)
		buf_printf(out, "%*s ", CALLS - 1, "calls");
	if (d.has_derived)
		buf_printf(out, "%*s ", DERIVED - 1, d.derived.title);
	buf_printf(out, "%s\n", style(&d, PLAIN));
	size_t more = o->flat ? draw_rows(&d) : draw_tree(&d);
	free(d.stack);
	buf_free(&d.guides);
	return more;
}
