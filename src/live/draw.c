/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   culprit top  culprit.prof  recording 12.3 s  ./app input
 *   cpu-clock  now 1 020/s, 102% of a CPU   so far 12 345, 3 processes, 12 threads
 *      self   total      CPU  so far                 function
 *     62.1%   80.2%    63.3%   55.3%  ██████▒▒       solve  app.c:12  (app)
 *
 * Narrow terminals lose columns from the right to the left: where a row is
 * from, the bar, what was so far, the rate, the total.
 */
#include "live/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/term.h"
#include "base/utf8.h"

#define BAR_MAX 20
#define NAME_LEAST 24 /* columns that a name shall have before others get any */
#define OTHER_LINES 4 /* two of head, titles, the last line */
#define PATH_LINES 8  /* of the hot path, at most half of the terminal */

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"

/* A line that is being written: what does not fit is left out. */
struct line {
	const struct picture *p;
	struct buf *out;
	unsigned used;
};

double share_of(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

const char *rate_text(const struct board *t, uint64_t samples, char *out, size_t size)
{
	double per_second = t->interval > 0 ? (double)samples / t->interval : 0;
	out[0] = 0;
	if (!(t->interval > 0))
		return out;
	if (!strcmp(t->unit, "ns")) {
		snprintf(out, size, "%.1f%%", per_second * (double)t->period / 1e7);
	} else {
		char count[SUMMARY_COUNT_MAX];
		double events = per_second * (double)t->period;
		summary_count(count, events < 1e18 ? (uint64_t)(events + 0.5) : 0);
		snprintf(out, size, "%s/s", count);
	}
	return out;
}

const char *by_title(enum board_by by)
{
	static const char *const titles[] = {"function", "loop", "line", "module", "thread"};
	return titles[by];
}

/* Texts are foreign: only what a terminal shows as one letter gets there. */

static void put_letter(struct line *l, const char *text, size_t size)
{
	unsigned char c = (unsigned char)text[0];
	bool strange = c < 0x20 || c == 0x7f || (c >= 0x80 && !l->p->utf8) ||
		       (c == 0xc2 && size > 1 && (unsigned char)text[1] < 0xa0);
	buf_append(l->out, strange ? "?" : text, strange ? 1 : size);
	l->used++;
}

/* Cut at the right edge. */
static void put(struct line *l, const char *text)
{
	while (*text && l->used < l->p->width) {
		size_t size = 1;
		while (text[size] && !utf8_begins(text[size]))
			size++;
		put_letter(l, text, size);
		text += size;
	}
}

static void put_style(struct line *l, const char *sequence)
{
	if (l->p->colour)
		buf_puts(l->out, sequence);
}

static void put_styled(struct line *l, const char *style, const char *text)
{
	put_style(l, style);
	put(l, text);
	put_style(l, PLAIN);
}

/* A name that is too long is cut in its middle: both ends tell more. */
static void put_name(struct line *l, const char *name, size_t room)
{
	size_t wide = utf8_count(name), at = 0;
	const char *dots = l->p->utf8 ? "…" : "~";
	size_t front = wide > room && room ? (room - 1) / 2 : wide;
	size_t skipped = wide > room && room ? wide - room + 1 : 0;
	for (const char *c = name; *c; at++) {
		size_t size = 1;
		char letter[8];
		while (c[size] && !utf8_begins(c[size]))
			size++;
		if (at == front && skipped)
			put(l, dots);
		if ((at < front || at >= front + skipped) && size < sizeof letter) {
			memcpy(letter, c, size);
			letter[size] = 0;
			put(l, letter);
		}
		c += size;
	}
}

static void end_line(struct line *l)
{
	buf_puts(l->out, "\n");
	l->used = 0;
}

/* ---- the recording ---- */

static void put_head(struct line *l)
{
	const struct picture *p = l->p;
	char time[TERM_UNIT_MAX];
	put_styled(l, BOLD, "culprit top");
	put(l, "  ");
	put(l, p->title);
	put(l, "  ");
	put_styled(l, p->warned ? YELLOW : GREEN, p->state);
	if (p->board) {
		put(l, " ");
		put(l, term_time(time, p->board->seconds));
		put(l, "  ");
		put_styled(l, DIM, p->board->command);
	}
	end_line(l);
}

static void put_sums(struct line *l)
{
	const struct board *t = l->p->board;
	char count[SUMMARY_COUNT_MAX], rate[64], text[256];
	if (!t) {
		end_line(l);
		return;
	}
	put(l, t->metric);
	if (t->counted > 0 && t->counted < 1) {
		char share[48];
		snprintf(share, sizeof share, " (counted %.0f%% of the time)", 100 * t->counted);
		put(l, share);
	}
	if (t->interval > 0) {
		snprintf(text, sizeof text, "  now %.0f samples/s, ",
			 (double)t->now_samples / t->interval);
		put(l, text);
		put(l, rate_text(t, t->now_samples, rate, sizeof rate));
		put(l, strcmp(t->unit, "ns") ? "" : " of a CPU");
	}
	snprintf(text, sizeof text, "   so far %s samples, %zu process%s, %zu thread%s",
		 summary_count(count, t->all_samples), t->processes, t->processes == 1 ? "" : "es",
		 t->threads, t->threads == 1 ? "" : "s");
	put(l, text);
	if (t->lost || t->all_partial * 100 > t->all_samples) {
		snprintf(text, sizeof text, "   %s lost", summary_count(count, t->lost));
		put_styled(l, YELLOW, t->lost ? text : "");
		snprintf(text, sizeof text, "   %.1f%% partial",
			 share_of(t->all_partial, t->all_samples));
		put_styled(l, YELLOW, t->all_partial * 100 > t->all_samples ? text : "");
	}
	end_line(l);
}

/* ---- rows ---- */

struct layout {
	bool total, rate, far;
	unsigned bar; /* columns; 0: none */
};

static struct layout lay_out(const struct picture *p)
{
	unsigned left = p->width > NAME_LEAST ? p->width - NAME_LEAST : 0;
	struct layout y = {.total = left >= 17, .rate = left >= 27, .far = left >= 35};
	if (left >= 44)
		y.bar = left - 37 < BAR_MAX ? left - 37 : BAR_MAX;
	return y;
}

static void put_titles(struct line *l, struct layout y)
{
	const struct board *t = l->p->board;
	const struct order *o = l->p->order;
	char text[128];
	put_style(l, DIM);
	snprintf(text, sizeof text, " %6s%s", o->by_total ? "self" : "SELF", "");
	put(l, text);
	snprintf(text, sizeof text, " %7s", o->by_total ? "TOTAL" : "total");
	put(l, y.total ? text : "");
	snprintf(text, sizeof text, " %9s", t && strcmp(t->unit, "ns") ? "rate" : "CPU");
	put(l, y.rate ? text : "");
	snprintf(text, sizeof text, " %7s", o->by_all ? "SO FAR" : "so far");
	put(l, y.far ? text : "");
	snprintf(text, sizeof text, "  %*s%s", y.bar ? (int)y.bar + 1 : 0, "",
		 by_title(t ? t->wish.by : BOARD_FUNCTION));
	put(l, text);
	put_style(l, PLAIN);
	end_line(l);
}

/* What a function takes itself in full, what it calls in a lighter shade. */
static void put_bar(struct line *l, double self, double total, unsigned width)
{
	static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned eighths = (unsigned)(self / 100 * width * 8 + 0.5);
	unsigned all = (unsigned)(total / 100 * width + 0.5), at = 0;
	eighths = eighths > width * 8 ? width * 8 : eighths;
	all = all > width ? width : all;
	if (!l->p->utf8)
		eighths = (eighths + 4) / 8 * 8;
	put_style(l, self >= 5 ? RED : self >= 1 ? YELLOW : "");
	for (; at < eighths / 8; at++)
		put(l, l->p->utf8 ? "█" : "#");
	if (eighths % 8) {
		put(l, parts[eighths % 8]);
		at++;
	}
	put_style(l, PLAIN);
	put_style(l, DIM);
	for (; at < all; at++)
		put(l, l->p->utf8 ? "░" : "-");
	put_style(l, PLAIN);
	for (; at < width + 1; at++)
		put(l, " ");
}

static void put_row(struct line *l, const struct board_row *r, struct layout y, bool selected)
{
	const struct board *t = l->p->board;
	bool now = t->interval > 0;
	double self = now ? share_of(r->now_self, t->now_samples)
			  : share_of(r->all_self, t->all_samples);
	double total = now ? share_of(r->now_total, t->now_samples)
			   : share_of(r->all_total, t->all_samples);
	char text[96], rate[64];
	put_style(l, self >= 5 ? RED : self >= 1 ? YELLOW : "");
	snprintf(text, sizeof text, "%6.1f%%", self);
	put(l, text);
	put_style(l, PLAIN);
	snprintf(text, sizeof text, " %6.1f%%", total);
	put(l, y.total ? text : "");
	snprintf(text, sizeof text, " %9s", rate_text(t, r->now_self, rate, sizeof rate));
	put(l, y.rate ? text : "");
	snprintf(text, sizeof text, " %6.1f%%",
		 share_of(l->p->order->by_total ? r->all_total : r->all_self, t->all_samples));
	put(l, y.far ? text : "");
	put(l, "  ");
	if (y.bar)
		put_bar(l, self, total, y.bar);
	put_style(l, selected ? REVERSE : BOLD);
	if (selected && !l->p->colour)
		put(l, ">");
	size_t room = l->p->width > l->used ? l->p->width - l->used : 0;
	size_t behind = utf8_count(r->where) + 2;
	bool fits = *r->where && utf8_count(r->label) + behind <= room;
	put_name(l, r->label, room);
	put_style(l, PLAIN);
	if (fits) {
		put(l, "  ");
		put_styled(l, DIM, r->where);
	}
	end_line(l);
}

/* ---- the hot path ---- */

static size_t path_lines(const struct picture *p)
{
	size_t most = p->height > OTHER_LINES ? p->height - OTHER_LINES : 0;
	if (!p->path || !p->board)
		return 0;
	most = most < p->height / 2 ? most : p->height / 2;
	return most < PATH_LINES + 1 ? most : PATH_LINES + 1;
}

/* Where there are too many steps, those around the selected one are shown. */
static void put_path(struct line *l, size_t room)
{
	const struct board *t = l->p->board;
	size_t count = t->step_count, shown = room ? room - 1 : 0, at = 0;
	for (size_t i = 0; i < count; i++)
		if (t->steps[i].selected)
			at = i;
	size_t last = at + shown / 3 < count ? at + shown / 3 + 1 : count;
	size_t first = last > shown ? last - shown : 0;
	if (first + shown > count)
		shown = count - first;
	if (room) {
		put_styled(l, DIM, count ? "hot path" : "hot path: none has been seen yet");
		put_styled(l, DIM, first ? l->p->utf8 ? "  …" : "  ..." : "");
		end_line(l);
	}
	for (size_t i = first; i < first + shown; i++) {
		const struct board_step *s = &t->steps[i];
		char text[64];
		bool now = t->interval > 0;
		snprintf(text, sizeof text, "%6.1f%%  %*s",
			 now ? share_of(s->now_total, t->now_samples)
			     : share_of(s->all_total, t->all_samples),
			 (int)(i - first) * (l->p->width > 60 ? 2 : 1), "");
		put(l, text);
		put_styled(l, s->selected ? BOLD : "", s->label);
		end_line(l);
	}
	for (size_t i = shown + 1; i < room; i++)
		end_line(l);
}

/* ---- help ---- */

static void put_help(struct line *l, size_t room)
{
	static const char *const texts[] = {
		"f functions   l loops   n lines   m modules   t threads",
		"s order by self, by total      a order by now, by so far",
		"up down page-up page-down home end   select a row",
		"enter  the hot path of the row       /  filter by a regular expression",
		"space  pause, go on                  e  the next event",
		"+ -  longer, shorter intervals       q  quit",
		"",
		"self: samples in the function itself; total: with all that it called",
		"(shares of the last interval). CPU: of one CPU, in the function itself.",
		"so far: share since the recording began.",
	};
	size_t count = sizeof texts / sizeof *texts;
	for (size_t i = 0; i < room; i++) {
		if (i < count) {
			put(l, "  ");
			put(l, texts[i]);
		}
		end_line(l);
	}
}

/* ---- the whole ---- */

size_t draw_room(const struct picture *p)
{
	size_t taken = OTHER_LINES + path_lines(p);
	return p->height > taken ? p->height - taken : 0;
}

static void put_last(struct line *l)
{
	const struct picture *p = l->p;
	if (p->message)
		put_styled(l, BOLD, p->message);
	else
		put_styled(
			l, DIM,
			"q quit  ? help  f l n m t rows  s a order  enter path  / filter  space pause");
	end_line(l);
}

void draw_picture(const struct picture *p, struct buf *out)
{
	struct line l = {.p = p, .out = out};
	struct layout y = lay_out(p);
	size_t room = draw_room(p), path = path_lines(p), lines = 0;
	if (p->height >= 3)
		put_head(&l);
	if (p->height >= 4) {
		put_sums(&l);
		put_titles(&l, y);
	}
	if (p->help) {
		put_help(&l, room + path);
	} else {
		for (size_t i = p->first; i < p->row_count && lines < room; i++, lines++)
			put_row(&l, p->rows[i], y, i == p->selected);
		for (; lines < room; lines++)
			end_line(&l);
		if (path)
			put_path(&l, path);
	}
	if (p->height >= 2)
		put_last(&l);
}
