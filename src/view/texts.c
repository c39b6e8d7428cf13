/* SPDX-License-Identifier: Apache-2.0 */
#include "view/texts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/strings.h"
#include "annotate/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "view/lines.h"

#define ROOM (3u << 20)      /* bytes of all texts */
#define FILES_MAX 2000       /* looked for */
#define WHOLE_MAX (96 << 10) /* bytes of a file that is shown as a whole */
#define AROUND 120           /* lines around one with samples, in larger ones */
#define LINE_MAX_BYTES 2000  /* longer ones are cut */

struct file {
	uint32_t text;      /* its path */
	double self, total; /* shares of all metrics */
};

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->text < y->text ? -1 : x->text > y->text;
}

/* Samples of all metrics count alike, whatever their number. */
static double weigh(const struct lines *l, const uint64_t *values, const double *sums)
{
	double sum = 0;
	for (size_t m = 0; m < l->metric_count; m++)
		sum += sums[m] > 0 ? (double)values[m] / sums[m] : 0;
	return sum;
}

/* The files with samples, hottest first. */
static struct file *list_files(const struct lines *l, const struct strings *strings, size_t *count)
{
	struct file *files = calloc(strings->count + 1, sizeof *files);
	double *sums = calloc(l->metric_count + 1, sizeof *sums);
	*count = 0;
	for (size_t i = 0; sums && i < l->count * l->metric_count; i++)
		sums[i % l->metric_count] += (double)l->self[i];
	for (size_t i = 1; files && sums && i < l->count; i++) {
		struct file *f = &files[l->all[i].file];
		f->self += weigh(l, l->self + i * l->metric_count, sums);
		f->total += weigh(l, l->total + i * l->metric_count, sums);
	}
	for (uint32_t i = 0; files && i < strings->count; i++)
		if (files[i].total > 0)
			files[(*count)++] = (struct file){i, files[i].self, files[i].total};
	free(sums);
	if (files)
		qsort(files, *count, sizeof *files, compare_files);
	return files;
}

/* ---- one file ---- */

static size_t size_of(const struct source_text *text)
{
	size_t sum = 0, size;
	for (uint32_t i = 1; i <= source_line_count(text); i++) {
		source_line(text, i, &size);
		sum += size + 1;
	}
	return sum;
}

/* Lines that are shown: all, or those near to samples. NULL without memory. */
static bool *choose_lines(const struct lines *l, uint32_t file, const struct source_text *text)
{
	uint32_t count = source_line_count(text);
	bool *shown = calloc((size_t)count + 2, sizeof *shown);
	bool whole = size_of(text) <= WHOLE_MAX;
	for (uint32_t i = 1; shown && whole && i <= count; i++)
		shown[i] = true;
	for (size_t i = 1; shown && !whole && i < l->count; i++) {
		uint32_t line = l->all[i].line;
		if (l->all[i].file != file || line > count)
			continue;
		uint32_t from = line > AROUND ? line - AROUND : 1;
		for (uint32_t n = from; n <= count && n <= line + AROUND; n++)
			shown[n] = true;
	}
	return shown;
}

static void put_line(struct buf *out, const char *text, size_t size)
{
	bool cut = size > LINE_MAX_BYTES;
	for (size_t i = 0; i < (cut ? LINE_MAX_BYTES : size); i++)
		buf_append(out, text[i] ? &text[i] : "?", 1);
	buf_puts(out, cut ? " …\n" : "\n");
}

/* Returns how many bytes it took. */
static size_t put_file(const struct source_text *text, const struct file *f, const bool *shown,
		       struct json *out)
{
	uint32_t count = source_line_count(text);
	size_t used = 0, size;
	json_begin_object(out);
	json_key(out, "file");
	json_u64(out, f->text);
	json_key(out, "lines");
	json_u64(out, count);
	json_key(out, "parts");
	json_begin_array(out);
	for (uint32_t i = 1; i <= count; i++) {
		struct buf part = {0};
		uint32_t first = i;
		for (; i <= count && shown[i]; i++) {
			const char *line = source_line(text, i, &size);
			put_line(&part, line, size);
		}
		if (part.size) {
			json_begin_array(out);
			json_u64(out, first);
			json_string(out, buf_text(&part));
			json_end_array(out);
		}
		used += part.size;
		buf_free(&part);
	}
	json_end_array(out);
	json_end_object(out);
	return used;
}

static size_t shown_size(const struct source_text *text, const bool *shown)
{
	size_t sum = 0, size;
	for (uint32_t i = 1; i <= source_line_count(text); i++)
		if (shown[i] && source_line(text, i, &size))
			sum += size + 1;
	return sum;
}

struct err *texts_json(const struct lines *l, const struct strings *strings,
		       struct sources *sources, struct json *out)
{
	size_t count, used = 0;
	struct file *files = list_files(l, strings, &count);
	struct err *e = files ? NULL : err_new("out of memory");
	json_begin_array(out);
	for (size_t i = 0; !e && i < count && i < FILES_MAX; i++) {
		const struct source_text *text = sources_find(sources,
							      strings_get(strings, files[i].text));
		if (!text)
			continue;
		bool *shown = choose_lines(l, files[i].text, text);
		if (!shown)
			e = err_new("out of memory");
		else if (used + shown_size(text, shown) <= ROOM)
			used += put_file(text, &files[i], shown, out);
		free(shown);
	}
	json_end_array(out);
	free(files);
	return e;
}
