/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By instructions, with a heading where the source line changes, and loops at
 * the left edge:
 *
 *     total     self  samples
 *                              app.c:13  sum = 0;
 *                                     78c  mov x0, #0x0
 *    98.00%                   ╭ loop at app.c:14
 *                             │ find.h:7  return table[key];  (find, inlined)
 *    98.00%   98.00%      980 │ .L1   790  ldr x1, [x0], #8
 */
#include "annotate/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/draw.h"
#include "annotate/targets.h"
#include "analyze/modules.h"
#include "annotate/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "isa/text.h"

#define LEVELS_MAX 6    /* loops in each other that are drawn */
#define LINE_COLUMNS 60 /* of source in a heading */
#define NAMES_MAX 3     /* inlined functions named in a heading */
#define NAME_COLUMNS 40
#define SHORT_GAP 2 /* instructions that are not worth an ellipsis */
#define BYTES_SHOWN 8
#define MNEMONIC 7

struct listing {
	struct drawing d;
	struct text *text;
	struct targets *targets;
	struct image *image;
	unsigned levels, address_digits, label_columns;
	uint32_t line;              /* item of the row before */
	uint32_t chain[LEVELS_MAX]; /* loops of the row before, outermost first */
	unsigned depth;
	bool *opened; /* of each item: a loop that had its heading */
};

static uint64_t insn_total(const struct listing *l, size_t i)
{
	return annotate_insn_total(l->d.a, i, l->d.o->metric);
}

/* The columns that others have more, of a row without an instruction. */
static void put_no_more(struct listing *l)
{
	if (l->d.o->more)
		buf_printf(l->d.out, "%*s", (int)l->d.o->more->columns, "");
}

static void put_more(struct listing *l, size_t insn)
{
	if (l->d.o->more)
		l->d.o->more->put_columns(l->d.o->more->context, insn, l->d.out);
}

/* ---- loops ---- */

static unsigned loop_chain(const struct listing *l, uint32_t loop, uint32_t out[LEVELS_MAX])
{
	const struct annotation *a = l->d.a;
	unsigned depth = 0;
	for (; loop != ANNOTATE_NONE; loop = a->items[loop].parent) {
		uint32_t level = a->items[loop].depth;
		if (level >= LEVELS_MAX)
			continue;
		out[level] = loop;
		if (level + 1 > depth)
			depth = level + 1;
	}
	return depth;
}

static void put_bars(struct listing *l, unsigned depth, bool opens)
{
	buf_puts(l->d.out, draw_style(&l->d, DRAW_YELLOW));
	for (unsigned i = 0; i < l->levels && (!opens || i < depth); i++)
		buf_puts(l->d.out, opens && i + 1 == depth ? "╭ " : i < depth ? "│ " : "  ");
	buf_puts(l->d.out, draw_style(&l->d, DRAW_PLAIN));
}

static void put_loop(struct listing *l, uint32_t loop, unsigned depth)
{
	const struct annotate_item *i = &l->d.a->items[loop];
	draw_total(&l->d, annotate_total(l->d.a, loop, l->d.o->metric));
	put_no_more(l);
	put_bars(l, depth, true);
	buf_printf(l->d.out, "%sloop at ", draw_style(&l->d, DRAW_YELLOW));
	if (i->line)
		draw_place(&l->d, i->file, i->line);
	else
		buf_printf(l->d.out, "0x%" PRIx64, i->header);
	buf_printf(l->d.out, "%s%s\n", l->opened[loop] ? ", again" : "",
		   draw_style(&l->d, DRAW_PLAIN));
	l->opened[loop] = true;
}

static void enter_loops(struct listing *l, uint32_t loop)
{
	uint32_t chain[LEVELS_MAX];
	unsigned depth = loop_chain(l, loop, chain), same = 0;
	while (same < depth && same < l->depth && chain[same] == l->chain[same])
		same++;
	for (unsigned i = same; i < depth; i++)
		put_loop(l, chain[i], i + 1);
	if (depth != l->depth || same < depth)
		l->line = ANNOTATE_NONE; /* the heading is of use again */
	memcpy(l->chain, chain, depth * sizeof *chain);
	l->depth = depth;
}

/* ---- source lines ---- */

/* "(find < solve_all, inlined)": the innermost first. */
static void put_inlined(struct listing *l, uint32_t context)
{
	const struct annotation *a = l->d.a;
	unsigned count = 0;
	if (!context)
		return;
	buf_puts(l->d.out, "  (");
	for (uint32_t at = context; at; at = a->items[at].parent) {
		if (a->items[at].kind != ANNOTATE_CONTEXT)
			continue;
		if (count++ >= NAMES_MAX) {
			buf_puts(l->d.out, " < …");
			break;
		}
		buf_puts(l->d.out, count > 1 ? " < " : "");
		draw_name(&l->d, a->items[at].name, l->d.o->full_names ? 0 : NAME_COLUMNS);
	}
	buf_puts(l->d.out, ", inlined)");
}

/* All lines of a function are shown, but nobody misses the text of those without samples. */
static const struct source_text *source_of(const struct listing *l, uint32_t item)
{
	const char *file = l->d.a->items[item].file;
	return annotate_total(l->d.a, item, l->d.o->metric) ? sources_find(l->d.o->sources, file)
							    : sources_glance(l->d.o->sources, file);
}

static void put_line(struct listing *l, uint32_t item)
{
	const struct annotate_item *i = &l->d.a->items[item];
	size_t size = 0;
	if (item == l->line || (!i->line && !i->context))
		return;
	const struct source_text *text = i->line ? source_of(l, item) : NULL;
	const char *words = text ? source_line(text, i->line, &size) : NULL;
	draw_blank(&l->d);
	put_no_more(l);
	put_bars(l, l->depth, false);
	buf_puts(l->d.out, draw_style(&l->d, DRAW_CYAN));
	draw_place(&l->d, i->file, i->line);
	while (size && (*words == ' ' || *words == '\t'))
		words++, size--;
	if (size) {
		buf_puts(l->d.out, "  ");
		source_put_clean(l->d.out, words, size, LINE_COLUMNS);
	}
	put_inlined(l, i->context);
	buf_printf(l->d.out, "%s\n", draw_style(&l->d, DRAW_PLAIN));
}

/* ---- instructions ---- */

static void put_bytes(struct listing *l, const uint8_t *code, size_t size)
{
	for (size_t i = 0; i < BYTES_SHOWN; i++)
		if (i + 1 == BYTES_SHOWN && size > BYTES_SHOWN)
			buf_puts(l->d.out, "… ");
		else if (i < size)
			buf_printf(l->d.out, "%02x ", code[i]);
		else
			buf_puts(l->d.out, "   ");
	buf_puts(l->d.out, " ");
}

static void put_words(struct listing *l, size_t index, size_t used)
{
	const struct annotate_insn *i = &l->d.a->insns[index];
	size_t size = 0;
	const uint8_t *code = image_bytes_at(l->image, i->address, &size);
	struct insn insn;
	if (!code)
		return;
	l->d.a->isa->decode(code, size, i->address, &insn);
	if (l->d.o->bytes)
		put_bytes(l, code, i->length < size ? i->length : size);
	const char *target = i->target ? targets_name(l->targets, i->target) : NULL;
	const char *text = text_insn(l->text, code, size, &insn, target);
	struct buf words = {0};
	int length = (int)strcspn(text, " ");
	if (text[length])
		buf_printf(&words, "%-*.*s%s", MNEMONIC, length, text, text + length);
	else
		buf_puts(&words, text);
	const char *import = targets_import(l->targets, &insn);
	if (import)
		buf_printf(&words, "  # %s", import);
	draw_text(&l->d, buf_text(&words), words.size, used);
	buf_free(&words);
}

static void put_above(void *to, const char *line)
{
	struct listing *l = to;
	draw_blank(&l->d);
	put_no_more(l);
	put_bars(l, l->depth, false);
	buf_printf(l->d.out, "%*s %s* %s%s\n", (int)(l->label_columns + l->address_digits), "",
		   draw_style(&l->d, DRAW_YELLOW), line, draw_style(&l->d, DRAW_PLAIN));
}

static void put_insn(struct listing *l, size_t index)
{
	const struct annotate_insn *i = &l->d.a->insns[index];
	char label[24] = "";
	enter_loops(l, i->loop);
	put_line(l, i->line);
	l->line = i->line;
	if (l->d.o->more)
		l->d.o->more->put_above(l->d.o->more->context, index, put_above, l);
	draw_numbers(&l->d, insn_total(l, index),
		     annotate_insn_self(l->d.a, index, l->d.o->metric));
	put_more(l, index);
	put_bars(l, l->depth, false);
	if (targets_label(l->targets, (uint32_t)index))
		snprintf(label, sizeof label, ".L%" PRIu32,
			 targets_label(l->targets, (uint32_t)index));
	buf_printf(l->d.out, "%-*s %s%*" PRIx64 "%s  ", (int)l->label_columns, label,
		   draw_style(&l->d, DRAW_DIM), (int)l->address_digits, i->address,
		   draw_style(&l->d, DRAW_PLAIN));
	put_words(l, index,
		  DRAW_MARGIN + (l->d.o->more ? l->d.o->more->columns : 0) + 2 * l->levels +
			  l->label_columns + l->address_digits + 3 +
			  (l->d.o->bytes ? 3 * BYTES_SHOWN + 1 : 0));
	buf_puts(l->d.out, "\n");
}

/* ---- which ones ---- */

static void put_gap(struct listing *l, size_t from, size_t to)
{
	uint64_t self = 0;
	if (to - from <= SHORT_GAP) {
		while (from < to)
			put_insn(l, from++);
		return;
	}
	for (size_t i = from; i < to; i++)
		self += annotate_insn_self(l->d.a, i, l->d.o->metric);
	draw_blank(&l->d);
	put_no_more(l);
	buf_printf(l->d.out, "%s… %zu instruction%s", draw_style(&l->d, DRAW_DIM), to - from,
		   to - from == 1 ? "" : "s");
	if (self)
		buf_printf(l->d.out, ", %.2f%%", 100 * (double)self / (double)l->d.base);
	buf_printf(l->d.out, "%s\n", draw_style(&l->d, DRAW_PLAIN));
	l->line = ANNOTATE_NONE;
	l->depth = 0;
}

/* The next instruction from `at` on that has samples enough; the count where there is none. */
static size_t next_hot(const struct listing *l, size_t at)
{
	while (at < l->d.a->insn_count && !draw_is_hot(&l->d, insn_total(l, at)))
		at++;
	return at;
}

static void put_insns(struct listing *l)
{
	size_t count = l->d.a->insn_count, gap = 0, hot = next_hot(l, 0);
	uint64_t around = l->d.o->context, left = 1; /* the first is always drawn */
	for (size_t at = 0; at < count; at++) {
		if (at == hot) {
			left = around == ANNOTATE_ALL ? around : around + 1;
			hot = next_hot(l, at + 1);
		}
		bool near = around == ANNOTATE_ALL || left > 0 ||
			    (hot < count && hot - at <= around);
		if (left)
			left--;
		if (!near)
			continue;
		put_gap(l, gap, at);
		put_insn(l, at);
		gap = at + 1;
	}
	put_gap(l, gap, count);
}

static void measure(struct listing *l)
{
	const struct annotation *a = l->d.a;
	char text[32];
	uint32_t labels = 0;
	for (size_t i = 0; i < a->insn_count; i++) {
		uint32_t loop = a->insns[i].loop;
		unsigned levels = loop == ANNOTATE_NONE ? 0 : a->items[loop].depth + 1;
		if (levels > l->levels)
			l->levels = levels < LEVELS_MAX ? levels : LEVELS_MAX;
		labels += a->insns[i].is_target;
	}
	uint64_t last = a->insn_count ? a->insns[a->insn_count - 1].address : 0;
	l->address_digits = (unsigned)snprintf(text, sizeof text, "%" PRIx64, last);
	l->label_columns = labels ? (unsigned)snprintf(text, sizeof text, ".L%" PRIu32, labels) : 0;
}

struct err *annotate_show_asm(const struct annotation *a, const struct annotate_show *o,
			      struct buf *out)
{
	struct listing l = {.line = ANNOTATE_NONE, .image = modules_image(a->modules, a->module)};
	draw_start(&l.d, a, o, out);
	l.opened = calloc(a->item_count + 1, sizeof *l.opened);
	struct err *e = l.opened ? text_open(a->isa, &l.text) : err_new("out of memory");
	if (!e)
		e = targets_open(a, &l.targets);
	if (!e) {
		measure(&l);
		draw_title(&l.d);
		put_insns(&l);
	}
	targets_close(l.targets);
	text_close(l.text);
	free(l.opened);
	return e;
}
