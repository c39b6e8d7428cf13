/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate/draw.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/shorten.h"
#include "annotate/sources.h"
#include "analyze/summary.h"
#include "base/buf.h"
#include "profile/profile.h"

#define HOT 10.0 /* per cent of the function in one row */
#define WARM 2.0
#define TEXT_LEAST 24 /* columns that text is not cut below */

void draw_start(struct drawing *d, const struct annotation *a, const struct annotate_show *o,
		struct buf *out)
{
	*d = (struct drawing){.a = a, .o = o, .out = out, .base = annotate_total(a, 0, o->metric)};
}

const char *draw_style(const struct drawing *d, const char *sequence)
{
	return d->o->colour ? sequence : "";
}

const char *draw_file_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static double share(uint64_t count, uint64_t whole)
{
	return whole ? 100 * (double)count / (double)whole : 0;
}

bool draw_is_hot(const struct drawing *d, uint64_t total)
{
	return total && (double)total >= d->o->min * (double)d->base;
}

static void put_share(struct drawing *d, uint64_t count, bool coloured)
{
	double part = share(count, d->base);
	const char *colour = !coloured      ? ""
			     : part >= HOT  ? DRAW_RED
			     : part >= WARM ? DRAW_YELLOW
					    : "";
	if (count)
		buf_printf(d->out, "%s%7.2f%%%s", draw_style(d, colour), part,
			   *colour ? draw_style(d, DRAW_PLAIN) : "");
	else
		buf_puts(d->out, "        ");
}

void draw_numbers(struct drawing *d, uint64_t total, uint64_t self)
{
	char text[SUMMARY_COUNT_MAX];
	put_share(d, total, false);
	buf_puts(d->out, " ");
	put_share(d, self, true);
	buf_printf(d->out, " %8s ", self ? summary_count(text, self) : "");
}

void draw_total(struct drawing *d, uint64_t total)
{
	put_share(d, total, false);
	buf_printf(d->out, "%*s", DRAW_MARGIN - 8, "");
}

void draw_blank(struct drawing *d)
{
	buf_printf(d->out, "%*s", DRAW_MARGIN, "");
}

void draw_text(struct drawing *d, const char *text, size_t size, size_t used)
{
	size_t columns = 0;
	if (d->o->width)
		columns = d->o->width > used + TEXT_LEAST ? d->o->width - used : TEXT_LEAST;
	source_put_clean(d->out, text, size, columns);
}

size_t draw_name(struct drawing *d, const char *name, size_t columns)
{
	struct buf shortened = {0};
	if (!d->o->full_names && name)
		name_shorten(name, &shortened);
	const char *shown = !name ? "?" : shortened.size ? buf_text(&shortened) : name;
	size_t wide = source_put_clean(d->out, shown, strlen(shown), columns);
	buf_free(&shortened);
	return wide;
}

void draw_place(struct drawing *d, const char *file, uint32_t line)
{
	const char *name = file ? draw_file_of(file) : "?";
	source_put_clean(d->out, name, strlen(name), 0);
	if (line)
		buf_printf(d->out, ":%" PRIu32, line);
}

/* solve(int)  app.c:12  (app): 60.00% of all samples, 20.00% its own; shares below are of its 600 */
void draw_title(struct drawing *d)
{
	const struct annotation *a = d->a;
	uint32_t m = d->o->metric;
	char count[SUMMARY_COUNT_MAX];
	const char *module = draw_file_of(a->profile->modules[a->module].path);
	buf_puts(d->out, draw_style(d, DRAW_BOLD));
	draw_name(d, a->items[0].name ? a->items[0].name : a->symbol, 0);
	buf_puts(d->out, draw_style(d, DRAW_PLAIN));
	if (a->items[0].file) {
		buf_puts(d->out, "  ");
		draw_place(d, a->items[0].file, a->items[0].line);
	}
	buf_puts(d->out, "  (");
	source_put_clean(d->out, module, strlen(module), 0);
	buf_printf(d->out, "+0x%" PRIx64 "): %.2f%% of all samples, %.2f%% its own\n", a->start,
		   share(annotate_total(a, 0, m), a->whole[m]),
		   share(annotate_self(a, 0, m), a->whole[m]));
	buf_printf(d->out, "per cents below are of its %s sample%s\n\n",
		   summary_count(count, d->base), d->base == 1 ? "" : "s");
	buf_printf(d->out, "%s%8s %8s %8s", draw_style(d, DRAW_DIM), "total", "self", "samples");
	if (d->o->more) {
		buf_puts(d->out, " ");
		d->o->more->put_titles(d->out);
	}
	buf_printf(d->out, "%s\n", draw_style(d, DRAW_PLAIN));
}
