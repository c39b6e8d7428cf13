/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By source lines. What was inlined stands below the line that calls it, further
 * to the right; loops are drawn at the left of the text that they repeat:
 *
 *     total     self  samples
 *                               12  double solve(…)
 *    98.00%                    ╭ loop at app.c:14
 *    98.00%    2.00%       20  │ 14      for (i = 0; i < n; i++)
 *    96.00%    1.00%       10  │ 15              sum += find(x[i]);
 *    95.00%                    │     ↳ find  find.h:5 (inlined)
 *    95.00%   95.00%      950  │       7  return table[key];
 *
 * A context (the function, or one that was inlined) is drawn in blocks, one for
 * each file that its lines come from.
 */
#include "annotate/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/draw.h"
#include "annotate/sources.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"

#define DEPTH_MAX 48     /* of inlining that is drawn */
#define LEVELS_MAX 6     /* loops in each other that are drawn in one context */
#define SHORT_GAP 2      /* lines that are not worth an ellipsis */
#define INLINED_AROUND 1 /* lines around what has samples, in inlined code */
#define INLINED_INDENT 2 /* columns */
#define NO_LEVEL UINT32_MAX
#define BACK_MAX 4096 /* instructions looked at to find who may have called */

struct view {
	struct drawing d;
	uint32_t *order; /* lines by context, file, number; loops by context; then contexts */
	uint32_t *first, *many;            /* of each context: its lines in `order` */
	uint32_t *first_loop, *many_loops; /* and its loops */
	uint32_t *child, *next;            /* of lines and contexts: contexts inlined there */
	uint64_t *weight;                  /* of lines: what is drawn at or below it */
	uint32_t *level;                   /* of loops: in how many of the same context they are */
	struct buf prefix;                 /* before the rows of this context */
	size_t prefix_columns;
	size_t hidden; /* contexts with samples that are not drawn */
};

struct block { /* lines of one file in one context */
	uint32_t context;
	const char *file;
	const struct source_text *text;
	const uint32_t *lines; /* items, ascending */
	size_t count;
	uint32_t low, high; /* drawn at most */
	uint64_t around;
	unsigned levels, digits;
	size_t indent;   /* columns that all of its text is indented by */
	uint32_t before; /* the last line that was drawn; 0: none yet */
};

/* ---- the order of things ---- */

static int compare_text(const char *a, const char *b)
{
	return a == b ? 0 : !a ? 1 : !b ? -1 : strcmp(a, b);
}

static int compare_lines(const struct annotation *a, const struct annotate_item *x,
			 const struct annotate_item *y)
{
	const char *main = a->items[x->context].file; /* its own file comes first */
	int mine = compare_text(x->file, main) != 0, yours = compare_text(y->file, main) != 0;
	if (mine != yours)
		return mine - yours;
	int order = compare_text(x->file, y->file);
	return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static int by_place(const void *a, const void *b, void *context)
{
	static const int ranks[] = {
		[ANNOTATE_LINE] = 0, [ANNOTATE_LOOP] = 1, [ANNOTATE_CONTEXT] = 2};
	const struct annotation *an = context;
	const struct annotate_item *x = &an->items[*(const uint32_t *)a];
	const struct annotate_item *y = &an->items[*(const uint32_t *)b];
	if (x->kind != y->kind)
		return ranks[x->kind] - ranks[y->kind];
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	int order = x->kind == ANNOTATE_LINE   ? compare_lines(an, x, y)
		    : x->address != y->address ? x->address < y->address ? -1 : 1
					       : 0;
	return order ? order : x < y ? -1 : x > y;
}

static void order_items(struct view *v)
{
	const struct annotation *a = v->d.a;
	for (uint32_t i = 0; i < a->item_count; i++)
		v->order[i] = i;
	qsort_r(v->order, a->item_count, sizeof *v->order, by_place, (void *)a);
	for (uint32_t i = 0; i < a->item_count; i++) {
		const struct annotate_item *item = &a->items[v->order[i]];
		if (item->kind == ANNOTATE_LINE && !v->many[item->context]++)
			v->first[item->context] = i;
		if (item->kind == ANNOTATE_LOOP && !v->many_loops[item->context]++)
			v->first_loop[item->context] = i;
	}
}

/* Where nobody says what called inlined code it is drawn below the line before it. */
static uint32_t caller_of(const struct view *v, uint32_t context)
{
	const struct annotation *a = v->d.a;
	const struct annotate_item *c = &a->items[context];
	if (a->items[c->parent].kind == ANNOTATE_LINE)
		return c->parent;
	size_t found = FIRST_NOT(i, a->insn_count, a->insns[i].address < c->address);
	for (unsigned i = 0; found > 0 && i < BACK_MAX; i++) {
		const struct annotate_item *line = &a->items[a->insns[--found].line];
		if (line->context == c->parent && line->line)
			return a->insns[found].line;
	}
	return c->parent;
}

/* `order` ends with the contexts, by address: from the last to the first each goes to the front. */
static void hang_contexts(struct view *v)
{
	const struct annotation *a = v->d.a;
	for (size_t i = 0; i < a->item_count; i++) {
		v->child[i] = v->next[i] = ANNOTATE_NONE;
		v->weight[i] = annotate_total(a, (uint32_t)i, v->d.o->metric);
	}
	for (size_t i = a->item_count; i-- > 0;) {
		uint32_t context = v->order[i];
		if (a->items[context].kind != ANNOTATE_CONTEXT || !context)
			continue;
		uint32_t at = caller_of(v, context);
		v->next[context] = v->child[at];
		v->child[at] = context;
		if (a->items[context].parent != at && v->weight[at] < v->weight[context])
			v->weight[at] = v->weight[context];
	}
}

static void find_levels(struct view *v)
{
	const struct annotation *a = v->d.a;
	for (size_t i = 0; i < a->item_count; i++) {
		const struct annotate_item *loop = &a->items[i];
		uint32_t up = loop->parent;
		if (loop->kind != ANNOTATE_LOOP || up == ANNOTATE_NONE)
			continue;
		if (a->items[up].context == loop->context)
			v->level[i] = v->level[up] + 1;
	}
}

static bool prepare(struct view *v)
{
	uint32_t **arrays[] = {&v->order,      &v->first, &v->many, &v->first_loop,
			       &v->many_loops, &v->child, &v->next, &v->level};
	bool good = true;
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		*arrays[i] = calloc(v->d.a->item_count, sizeof **arrays[i]);
		good &= *arrays[i] != NULL;
	}
	v->weight = calloc(v->d.a->item_count, sizeof *v->weight);
	if (!good || !v->weight)
		return false;
	order_items(v);
	hang_contexts(v);
	find_levels(v);
	return true;
}

static void view_free(struct view *v)
{
	free(v->order);
	free(v->first);
	free(v->many);
	free(v->first_loop);
	free(v->many_loops);
	free(v->child);
	free(v->next);
	free(v->level);
	free(v->weight);
	buf_free(&v->prefix);
}

/* ---- loops ---- */

/* The loop number `index` of the block's context, or NULL where it is not drawn in this block. */
static const struct annotate_item *drawn_loop(const struct view *v, const struct block *b,
					      uint32_t index, uint32_t *item)
{
	*item = v->order[v->first_loop[b->context] + index];
	const struct annotate_item *l = &v->d.a->items[*item];
	bool drawn = l->line && v->level[*item] < LEVELS_MAX && !compare_text(l->file, b->file) &&
		     (v->d.o->context == ANNOTATE_ALL ||
		      draw_is_hot(&v->d, annotate_total(v->d.a, *item, v->d.o->metric)));
	return drawn ? l : NULL;
}

/* Which levels have a loop around this line, a bit each. */
static unsigned levels_at(const struct view *v, const struct block *b, uint32_t line)
{
	unsigned levels = 0;
	for (uint32_t i = 0, item; b->levels && i < v->many_loops[b->context]; i++) {
		const struct annotate_item *l = drawn_loop(v, b, i, &item);
		if (l && l->line <= line && line <= l->last_line)
			levels |= 1u << v->level[item];
	}
	return levels;
}

static void put_levels(struct view *v, const struct block *b, unsigned levels, unsigned opens)
{
	buf_puts(v->d.out, draw_style(&v->d, DRAW_YELLOW));
	for (unsigned i = 0; i < b->levels && (opens == NO_LEVEL || i <= opens); i++)
		buf_puts(v->d.out, opens == i ? "╭ " : levels & 1u << i ? "│ " : "  ");
	buf_puts(v->d.out, draw_style(&v->d, DRAW_PLAIN));
}

static void put_loop(struct view *v, const struct block *b, uint32_t line, uint32_t item)
{
	const struct annotate_item *l = &v->d.a->items[item];
	unsigned level = v->level[item];
	draw_total(&v->d, annotate_total(v->d.a, item, v->d.o->metric));
	buf_puts(v->d.out, buf_text(&v->prefix));
	put_levels(v, b, levels_at(v, b, line) & ((1u << level) - 1), level);
	buf_printf(v->d.out, "%sloop at ", draw_style(&v->d, DRAW_YELLOW));
	draw_place(&v->d, l->file, l->line);
	buf_printf(v->d.out, "%s\n", draw_style(&v->d, DRAW_PLAIN));
}

/* A heading for each loop that begins after the line drawn before, the outermost first. */
static void put_loops(struct view *v, const struct block *b, uint32_t line)
{
	for (unsigned level = 0; level < b->levels; level++)
		for (uint32_t i = 0, item; i < v->many_loops[b->context]; i++) {
			const struct annotate_item *l = drawn_loop(v, b, i, &item);
			if (l && v->level[item] == level && l->line <= line &&
			    l->line > b->before && line <= l->last_line)
				put_loop(v, b, line, item);
		}
}

/* ---- lines ---- */

static void put_text(struct view *v, const struct block *b, uint32_t line)
{
	struct buf clean = {0};
	size_t size, used = DRAW_MARGIN + v->prefix_columns + 2 * b->levels + b->digits + 2;
	const char *text = b->text ? source_line(b->text, line, &size) : NULL;
	if (!text)
		return;
	source_put_clean(&clean, text, size, 0);
	size_t skip = strspn(buf_text(&clean), " ");
	if (skip > b->indent)
		skip = b->indent;
	if (clean.size > skip) {
		buf_puts(v->d.out, "  ");
		draw_text(&v->d, clean.data + skip, clean.size - skip, used);
	}
	buf_free(&clean);
}

static void put_row(struct view *v, struct block *b, uint32_t line, uint32_t item)
{
	if (item == ANNOTATE_NONE)
		draw_blank(&v->d);
	else
		draw_numbers(&v->d, annotate_total(v->d.a, item, v->d.o->metric),
			     annotate_self(v->d.a, item, v->d.o->metric));
	buf_puts(v->d.out, buf_text(&v->prefix));
	put_levels(v, b, levels_at(v, b, line), NO_LEVEL);
	buf_printf(v->d.out, "%s%*" PRIu32 "%s", draw_style(&v->d, DRAW_DIM), (int)b->digits, line,
		   draw_style(&v->d, DRAW_PLAIN));
	put_text(v, b, line);
	buf_puts(v->d.out, "\n");
}

static void put_gap(struct view *v, const struct block *b, uint32_t line)
{
	draw_blank(&v->d);
	buf_puts(v->d.out, buf_text(&v->prefix));
	put_levels(v, b, levels_at(v, b, line - 1) & levels_at(v, b, b->before + 1), NO_LEVEL);
	buf_printf(v->d.out, "%s%*s%s\n", draw_style(&v->d, DRAW_DIM), (int)b->digits + 2, "…",
		   draw_style(&v->d, DRAW_PLAIN));
}

static void draw_context(struct view *v, uint32_t context, unsigned depth);

static void cut_prefix(struct view *v, size_t size, size_t columns)
{
	v->prefix.size = size;
	if (v->prefix.data)
		v->prefix.data[size] = 0;
	v->prefix_columns = columns;
}

/* What was inlined at an item, each below a heading. */
static void draw_inlined(struct view *v, uint32_t item, unsigned levels, unsigned level_count,
			 size_t columns, unsigned depth)
{
	size_t size = v->prefix.size, wide = v->prefix_columns;
	for (unsigned i = 0; i < level_count; i++)
		buf_puts(&v->prefix, levels & 1u << i ? "│ " : "  ");
	for (size_t i = 0; i < columns; i++)
		buf_puts(&v->prefix, " ");
	v->prefix_columns += 2 * level_count + columns;
	size_t inner = v->prefix.size;
	for (uint32_t c = v->child[item]; c != ANNOTATE_NONE; c = v->next[c]) {
		uint64_t total = annotate_total(v->d.a, c, v->d.o->metric);
		const struct annotate_item *i = &v->d.a->items[c];
		if (!draw_is_hot(&v->d, total) || depth >= DEPTH_MAX || v->prefix.failed) {
			v->hidden += total > 0;
			continue;
		}
		draw_total(&v->d, total);
		buf_printf(v->d.out, "%s%s↳ ", buf_text(&v->prefix), draw_style(&v->d, DRAW_CYAN));
		draw_name(&v->d, i->name, v->d.o->width);
		buf_puts(v->d.out, "  ");
		draw_place(&v->d, i->file, i->line);
		buf_printf(v->d.out, " (inlined)%s\n", draw_style(&v->d, DRAW_PLAIN));
		buf_puts(&v->prefix, "  ");
		v->prefix_columns += 2;
		draw_context(v, c, depth + 1);
		cut_prefix(v, inner, wide + 2 * level_count + columns);
	}
	cut_prefix(v, size, wide);
}

/* The item of a line; ANNOTATE_NONE where it has none. */
static uint32_t item_at(const struct view *v, const struct block *b, uint32_t line)
{
	size_t found = FIRST_NOT(i, b->count, v->d.a->items[b->lines[i]].line < line);
	return found < b->count && v->d.a->items[b->lines[found]].line == line ? b->lines[found]
									       : ANNOTATE_NONE;
}

static void draw_line(struct view *v, struct block *b, uint32_t line, unsigned depth)
{
	uint32_t item = item_at(v, b, line);
	if (b->before && line > b->before + 1 && b->text)
		put_gap(v, b, line);
	put_loops(v, b, line);
	put_row(v, b, line, item);
	b->before = line;
	if (item != ANNOTATE_NONE && v->child[item] != ANNOTATE_NONE)
		draw_inlined(v, item, levels_at(v, b, line), b->levels, INLINED_INDENT, depth);
}

/* ---- blocks ---- */

static bool is_wanted(const struct view *v, const struct block *b, uint32_t item)
{
	return v->d.a->items[item].line &&
	       (draw_is_hot(&v->d, v->weight[item]) ||
		(b->around == ANNOTATE_ALL && v->d.a->items[item].has_code));
}

static unsigned digits_of(uint32_t number)
{
	unsigned digits = 1;
	while (number /= 10)
		digits++;
	return digits;
}

/* The text of inlined code begins at the left, whatever it is indented by. */
static size_t find_indent(const struct view *v, const struct block *b)
{
	size_t indent = SIZE_MAX;
	for (size_t i = 0; b->context && b->text && i < b->count; i++) {
		size_t size;
		const char *text = is_wanted(v, b, b->lines[i])
					   ? source_line(b->text, v->d.a->items[b->lines[i]].line,
							 &size)
					   : NULL;
		if (!text)
			continue;
		struct buf clean = {0};
		source_put_clean(&clean, text, size, 0);
		size_t spaces = strspn(buf_text(&clean), " ");
		if (spaces < indent)
			indent = spaces;
		buf_free(&clean);
	}
	return indent == SIZE_MAX ? 0 : indent;
}

/* The function is drawn whole, from its first line to its last. */
static bool is_bounded(const struct view *v, const struct block *b)
{
	const struct annotate_item *c = &v->d.a->items[b->context];
	return !b->context && b->text && c->line && !compare_text(b->file, c->file);
}

static void find_bounds(const struct view *v, struct block *b)
{
	const struct annotate_item *c = &v->d.a->items[b->context];
	for (size_t i = 0; i < b->count; i++) {
		uint32_t line = v->d.a->items[b->lines[i]].line;
		if (!is_wanted(v, b, b->lines[i]))
			continue;
		if (!b->low || line < b->low)
			b->low = line;
		if (line > b->high)
			b->high = line;
	}
	if (is_bounded(v, b)) {
		b->low = b->low && b->low < c->line ? b->low : c->line;
		b->high = b->high > c->last_line ? b->high : c->last_line;
	}
	if (b->text && b->high > source_line_count(b->text))
		b->high = source_line_count(b->text);
}

static void start_block(const struct view *v, struct block *b)
{
	b->around = v->d.o->context;
	if (b->context && b->around != ANNOTATE_ALL && b->around > INLINED_AROUND)
		b->around = INLINED_AROUND;
	find_bounds(v, b);
	b->digits = digits_of(b->high);
	b->indent = find_indent(v, b);
	for (uint32_t i = 0, item; i < v->many_loops[b->context]; i++)
		if (drawn_loop(v, b, i, &item) && v->level[item] + 1 > b->levels)
			b->levels = v->level[item] + 1;
}

/* The lines before `line` that are near enough to it, or to the one that was drawn last. */
static void draw_between(struct view *v, struct block *b, uint32_t line, unsigned depth)
{
	uint32_t from = b->before ? b->before + 1 : b->low;
	if (!b->text || line <= from)
		return;
	uint64_t gap = line - from, after = b->before ? b->around : 0;
	bool all = b->around == ANNOTATE_ALL || gap <= after + b->around + SHORT_GAP;
	for (uint32_t at = from; at < line; at++)
		if (all || at - from < after || line - at <= b->around)
			draw_line(v, b, at, depth);
		else
			at = (uint32_t)(line - b->around - 1);
}

static void draw_block(struct view *v, struct block *b, unsigned depth)
{
	bool bounded = is_bounded(v, b);
	start_block(v, b);
	if (bounded && b->low && b->low <= b->high)
		draw_line(v, b, b->low, depth);
	for (size_t i = 0; i < b->count; i++) {
		uint32_t line = v->d.a->items[b->lines[i]].line;
		if (!is_wanted(v, b, b->lines[i]) || line <= b->before)
			continue;
		draw_between(v, b, line, depth);
		draw_line(v, b, line, depth);
	}
	if (bounded && b->before && b->before < b->high) {
		draw_between(v, b, b->high, depth);
		draw_line(v, b, b->high, depth);
	}
}

/* ---- contexts ---- */

/* Samples of instructions that come from no line. */
static void draw_unknown(struct view *v, uint32_t item)
{
	uint64_t total = annotate_total(v->d.a, item, v->d.o->metric);
	if (!draw_is_hot(&v->d, total))
		return;
	draw_numbers(&v->d, total, annotate_self(v->d.a, item, v->d.o->metric));
	buf_printf(v->d.out, "%s%s(no line known)%s\n", buf_text(&v->prefix),
		   draw_style(&v->d, DRAW_DIM), draw_style(&v->d, DRAW_PLAIN));
}

static void draw_file(struct view *v, const char *file)
{
	draw_blank(&v->d);
	buf_printf(v->d.out, "%s%sin ", buf_text(&v->prefix), draw_style(&v->d, DRAW_DIM));
	draw_place(&v->d, file, 0);
	buf_printf(v->d.out, ":%s\n", draw_style(&v->d, DRAW_PLAIN));
}

static bool has_wanted(const struct view *v, const struct block *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (is_wanted(v, b, b->lines[i]))
			return true;
	return false;
}

static void draw_context(struct view *v, uint32_t context, unsigned depth)
{
	const struct annotation *a = v->d.a;
	const uint32_t *lines = v->order + v->first[context];
	size_t count = v->many[context];
	for (size_t i = 0, end; i < count; i = end) {
		const char *file = a->items[lines[i]].file;
		for (end = i + 1; end < count && !compare_text(a->items[lines[end]].file, file);)
			end++;
		struct block b = {
			.context = context, .file = file, .lines = lines + i, .count = end - i};
		if (!a->items[lines[i]].line) {
			draw_unknown(v, lines[i]);
			continue;
		}
		b.text = has_wanted(v, &b) ? sources_find(v->d.o->sources, file) : NULL;
		if (compare_text(file, a->items[context].file) && has_wanted(v, &b))
			draw_file(v, file);
		draw_block(v, &b, depth);
	}
	draw_inlined(v, context, 0, 0, 0, depth);
}

struct err *annotate_show_source(const struct annotation *a, const struct annotate_show *o,
				 struct buf *out)
{
	struct view v = {0};
	draw_start(&v.d, a, o, out);
	bool good = prepare(&v);
	if (good) {
		draw_title(&v.d);
		draw_context(&v, 0, 0);
		if (v.hidden)
			buf_printf(out,
				   "\nless than %g%%: %zu more inlined functions; --min 0 "
				   "shows all\n",
				   100 * o->min, v.hidden);
	}
	good &= !v.prefix.failed;
	view_free(&v);
	return good ? NULL : err_new("out of memory");
}
