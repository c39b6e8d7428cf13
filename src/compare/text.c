/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/shorten.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/term.h"
#include "base/utf8.h"
#include "compare/counts.h"

#define NAME_LEAST 24 /* columns that a name is not cut below */

void text_harmless(const char *text, struct buf *out)
{
	buf_put_clean(out, text, strlen(text));
}

/* At most `max` columns (0: all), the last of which says that there was more. */
static void put_cut(const char *text, size_t max, struct buf *out)
{
	size_t at = 0;
	if (!max || utf8_count(text) <= max) {
		text_harmless(text, out);
		return;
	}
	for (size_t column = 0; text[at]; at++)
		if (utf8_begins(text[at]) && ++column == max)
			break;
	buf_put_clean(out, text, at);
	buf_puts(out, "…");
}

static void shorten(const struct text_options *o, const char *name, struct buf *out)
{
	if (o->full_names)
		buf_puts(out, name);
	else
		name_shorten(name, out);
}

void text_row(const struct row *row, const struct text_options *o, size_t left, struct buf *out)
{
	struct buf name = {0}, rest = {0};
	if (row->function)
		buf_puts(&name, row->name);
	else
		shorten(o, row->name, &name);
	if (row->function) {
		buf_puts(&rest, "  in ");
		shorten(o, row->function, &rest);
	} else if (row->file) {
		buf_printf(&rest, row->line ? "  %s:%d" : "  %s", path_file(row->file), row->line);
	}
	if (row->module && strcmp(row->module, row->name) != 0)
		buf_printf(&rest, "  (%s)", row->module);
	size_t behind = utf8_count(buf_text(&rest)), max = 0;
	if (o->width && utf8_count(buf_text(&name)) + behind > left) {
		if (left < behind + NAME_LEAST) {
			buf_clear(&rest);
			behind = 0;
		}
		max = left > behind + NAME_LEAST ? left - behind : NAME_LEAST;
	}
	put_cut(buf_text(&name), max, out);
	text_harmless(buf_text(&rest), out);
	out->failed |= name.failed || rest.failed;
	buf_free(&name);
	buf_free(&rest);
}

const char *text_cost(char out[TEXT_COST_MAX], double cost, const char *unit)
{
	char time[TERM_UNIT_MAX];
	if (!strcmp(unit, "ns"))
		snprintf(out, TEXT_COST_MAX, "%s", term_time(time, cost / 1e9));
	else if (!strcmp(unit, "bytes") && cost >= 0)
		snprintf(out, TEXT_COST_MAX, "%s", term_size(time, (uint64_t)(cost + 0.5)));
	else
		snprintf(out, TEXT_COST_MAX, fabs(cost) < 1e7 ? "%.0f" : "%.4g", cost);
	return out;
}

const char *text_ratio(char out[TEXT_RATIO_MAX], double ratio)
{
	if (!isfinite(ratio))
		snprintf(out, TEXT_RATIO_MAX, "any");
	else if (ratio >= 10)
		snprintf(out, TEXT_RATIO_MAX, "x%.*f", ratio < 100 ? 1 : 0, fmin(ratio, 1e9));
	else
		snprintf(out, TEXT_RATIO_MAX, "%+.1f%%", 100 * (ratio - 1));
	return out;
}

const char *text_change(char out[TEXT_RATIO_MAX], double ratio)
{
	if (ratio == 1 || fabs(ratio - 1) >= 0.0005)
		return text_ratio(out, ratio);
	snprintf(out, TEXT_RATIO_MAX, "%+.1g%%", 100 * (ratio - 1));
	return out;
}

static void put_member(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

void text_row_json(const struct row *row, struct json *j)
{
	put_member(j, "name", row->name);
	put_member(j, "kind", row->kind);
	put_member(j, "module", row->module);
	if (row->function)
		put_member(j, "function", row->function);
	put_member(j, "file", row->file);
	json_key(j, "line");
	if (row->line)
		json_i64(j, row->line);
	else
		json_null(j);
}

void text_notes_json(const char *notes, struct json *j)
{
	json_key(j, "notes");
	json_begin_array(j);
	while (*notes) {
		size_t length = strcspn(notes, "\n");
		struct buf line = {0};
		buf_append(&line, notes, length);
		json_string(j, buf_text(&line));
		buf_free(&line);
		notes += length + (notes[length] == '\n');
	}
	json_end_array(j);
}
