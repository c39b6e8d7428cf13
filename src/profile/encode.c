/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as the bytes of its file. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/contexts.h"
#include "profile/counted.h"
#include "profile/edges.h"
#include "profile/format.h"
#include "profile/own.h"
#include "profile/timeline_file.h"

#define LEVEL 7

struct encoder {
	const struct profile *p;
	struct buf *out;
	struct buf raw, packed;
	ZSTD_CCtx *zstd;
	uint64_t sections;
	uint64_t totals[FORMAT_TYPES]; /* rows */
};

/* Compresses where that is of use; then the section is written and `raw` is empty again. */
static void put_section(struct encoder *e, enum format_type type)
{
	struct format_section s = {.type = type, .stored = e->raw.size, .raw = e->raw.size};
	const char *bytes = buf_text(&e->raw);
	size_t bound = ZSTD_compressBound(e->raw.size), size;
	uint8_t header[FORMAT_SECTION_SIZE];
	buf_clear(&e->packed);
	if (buf_reserve(&e->packed, bound)) {
		size = ZSTD_compressCCtx(e->zstd, e->packed.data, bound, bytes, e->raw.size, LEVEL);
		if (!ZSTD_isError(size) && size < e->raw.size &&
		    format_may_inflate(size, e->raw.size)) {
			s.flags = FORMAT_ZSTD;
			s.stored = size;
			bytes = e->packed.data;
		}
	}
	s.checksum = format_checksum(bytes, s.stored);
	format_put_section(header, &s);
	buf_append(e->out, header, sizeof header);
	buf_append(e->out, bytes, s.stored);
	if (e->raw.failed)
		e->out->failed = true;
	buf_clear(&e->raw);
	e->sections++;
}

static void put_info(struct encoder *e)
{
	format_put_number(&e->raw, format_field_count);
	for (size_t i = 0; i < format_field_count; i++) {
		const struct format_field *f = &format_fields[i];
		const void *at = (const char *)e->p + f->offset;
		format_put_text(&e->raw, f->key);
		format_put_number(&e->raw, f->kind == FIELD_TEXT ? FORMAT_TEXT : FORMAT_NUMBER);
		switch (f->kind) {
		case FIELD_TEXT:
			format_put_text(&e->raw, *(const char *const *)at);
			break;
		case FIELD_U64:
			format_put_number(&e->raw, *(const uint64_t *)at);
			break;
		case FIELD_U32:
			format_put_number(&e->raw, *(const uint32_t *)at);
			break;
		case FIELD_BOOL:
			format_put_number(&e->raw, *(const bool *)at);
			break;
		}
	}
	put_section(e, FORMAT_INFO);
	e->totals[FORMAT_INFO] = 1;
}

static void put_module(struct buf *b, const struct profile *p, size_t i)
{
	const struct profile_module *m = &p->modules[i];
	format_put_number(b, m->kind);
	format_put_text(b, m->path);
	format_put_text(b, m->build_id);
	format_put_number(b, m->process);
	format_put_text(b, m->problem);
}

static void put_metric(struct buf *b, const struct profile *p, size_t i)
{
	const struct profile_metric *m = &p->metrics[i];
	format_put_text(b, m->name);
	format_put_text(b, m->unit);
	format_put_number(b, m->period);
	format_put_number(b, m->user_only);
}

/* Behind all rows of a section: since version 1.2. */
static void put_coverage(struct buf *b, const struct profile *p, size_t i)
{
	format_put_number(b, p->metrics[i].coverage.enabled_ns);
	format_put_number(b, p->metrics[i].coverage.running_ns);
}

static void put_process(struct buf *b, const struct profile *p, size_t i)
{
	const struct profile_process *x = &p->processes[i];
	format_put_signed(b, x->pid);
	format_put_signed(b, x->parent);
	format_put_text(b, x->name);
	format_put_text(b, x->command);
	format_put_signed(b, x->rank);
	format_put_number(b, x->start_ns);
	format_put_number(b, x->end_ns);
	format_put_signed(b, x->status);
}

static void put_thread(struct buf *b, const struct profile *p, size_t i)
{
	const struct profile_thread *t = &p->threads[i];
	format_put_number(b, t->process);
	format_put_signed(b, t->tid);
	format_put_text(b, t->name);
	format_put_number(b, t->start_ns);
	format_put_number(b, t->end_ns);
	format_put_number(b, t->cpu_ns);
	format_put_number(b, t->handler_ns);
	format_put_number(b, t->handled);
}

/* Behind all rows of a section: since version 1.3. */
static void put_off_times(struct buf *b, const struct profile *p, size_t i)
{
	format_put_number(b, p->threads[i].blocked_ns);
	format_put_number(b, p->threads[i].queued_ns);
}

static void put_lost(struct buf *b, const struct profile *p, size_t i)
{
	format_put_text(b, p->lost[i].reason);
	format_put_number(b, p->lost[i].count);
}

typedef void put_row(struct buf *b, const struct profile *p, size_t i);

/* Rows [first, end) of a table, one after another, in sections of a bearable size. What `more` puts
   (NULL: nothing) comes behind them. */
static void put_rows(struct encoder *e, enum format_type type, size_t first, size_t end,
		     put_row *put, put_row *more)
{
	struct buf rows = {0};
	e->totals[type] = end - first;
	while (first < end && !rows.failed) {
		size_t n = 0;
		buf_clear(&rows);
		while (first + n < end && n < FORMAT_ROWS && rows.size < FORMAT_ROW_BYTES)
			put(&rows, e->p, first + n++);
		for (size_t i = 0; more && i < n; i++)
			more(&rows, e->p, first + i);
		format_put_number(&e->raw, first);
		format_put_number(&e->raw, n);
		buf_append(&e->raw, buf_text(&rows), rows.size);
		put_section(e, type);
		first += n;
	}
	e->out->failed |= rows.failed;
	buf_free(&rows);
}

static void put_name_columns(struct buf *b, const struct profile_name *names, size_t count)
{
	uint64_t last = 0;
	for (size_t i = 0; i < count; i++) {
		format_put_number(b, names[i].start - last);
		last = names[i].start;
	}
	for (size_t i = 0; i < count; i++)
		format_put_number(b, names[i].size);
	for (size_t i = 0; i < count; i++)
		format_put_text(b, names[i].name);
}

/* As many as fit in one section. */
static size_t name_run(const struct profile_name *names, size_t count)
{
	size_t n = 0, bytes = 0;
	while (n < count && n < FORMAT_ROWS && bytes < FORMAT_ROW_BYTES)
		bytes += strlen(names[n++].name);
	return n;
}

static void put_names(struct encoder *e)
{
	for (size_t i = 0; i < e->p->module_count; i++) {
		const struct profile_module *m = &e->p->modules[i];
		for (size_t first = 0, n; first < m->name_count; first += n) {
			n = name_run(m->names + first, m->name_count - first);
			format_put_number(&e->raw, i);
			format_put_number(&e->raw, n);
			put_name_columns(&e->raw, m->names + first, n);
			put_section(e, FORMAT_NAMES);
		}
		e->totals[FORMAT_NAMES] += m->name_count;
	}
}

static int compare_frames(const void *a, const void *b)
{
	const struct profile_node *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* The different frames of some nodes, in order; returns how many. */
static size_t list_frames(struct profile_node *frames, const struct profile_node *nodes,
			  size_t count)
{
	size_t kept = 0;
	memcpy(frames, nodes, count * sizeof *frames);
	qsort(frames, count, sizeof *frames, compare_frames);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_frames(&frames[kept - 1], &frames[i]) != 0)
			frames[kept++] = frames[i];
	return kept;
}

static void put_frames(struct buf *b, const struct profile_node *frames, size_t count)
{
	const struct profile_node none = {0}, *last = &none;
	for (size_t i = 0; i < count; i++) {
		format_put_number(b, frames[i].module - last->module);
		last = &frames[i];
	}
	for (size_t i = 0; i < count; i++)
		format_put_number(b, frames[i].kind);
	last = &none;
	for (size_t i = 0; i < count; i++) {
		format_put_signed(b, (int64_t)(frames[i].address - last->address));
		last = &frames[i];
	}
}

static void put_node_run(struct encoder *e, size_t first, size_t n, struct profile_node *frames)
{
	const struct profile_node *nodes = e->p->nodes + first;
	size_t frame_count = list_frames(frames, nodes, n);
	format_put_number(&e->raw, first);
	format_put_number(&e->raw, n);
	format_put_number(&e->raw, frame_count);
	put_frames(&e->raw, frames, frame_count);
	for (size_t i = 0; i < n; i++)
		format_put_number(&e->raw, first + i - nodes[i].parent);
	for (size_t i = 0; i < n; i++) {
		const struct profile_node *at = bsearch(&nodes[i], frames, frame_count,
							sizeof *frames, compare_frames);
		format_put_number(&e->raw, (uint64_t)(at - frames));
	}
	put_section(e, FORMAT_NODES);
}

static void put_nodes(struct encoder *e)
{
	struct profile_node *frames = malloc(FORMAT_ROWS * sizeof *frames);
	if (!frames)
		e->out->failed = true;
	for (size_t first = 1, n; frames && first < e->p->node_count; first += n) {
		n = e->p->node_count - first;
		if (n > FORMAT_ROWS)
			n = FORMAT_ROWS;
		put_node_run(e, first, n, frames);
	}
	e->totals[FORMAT_NODES] = e->p->node_count - 1;
	free(frames);
}

static void put_values(struct encoder *e)
{
	const struct profile_value *v = e->p->values;
	for (size_t left = e->p->value_count, n; left; left -= n, v += n) {
		n = left < FORMAT_ROWS ? left : FORMAT_ROWS;
		format_put_number(&e->raw, n);
		for (size_t i = 0; i < n; i++)
			format_put_number(&e->raw, v[i].node - (i ? v[i - 1].node : 0));
		for (size_t i = 0; i < n; i++)
			format_put_number(&e->raw, v[i].thread);
		for (size_t i = 0; i < n; i++)
			format_put_number(&e->raw, v[i].metric);
		for (size_t i = 0; i < n; i++)
			format_put_number(&e->raw, v[i].count);
		put_section(e, FORMAT_VALUES);
	}
	e->totals[FORMAT_VALUES] = e->p->value_count;
}

static void put_spans(struct encoder *e)
{
	const struct profile_span *spans = e->p->spans;
	for (size_t left = e->p->span_count, n; left; left -= n, spans += n) {
		n = left < FORMAT_ROWS ? left : FORMAT_ROWS;
		timeline_put(&e->raw, spans, n, e->p->coarse_us);
		put_section(e, FORMAT_SPANS);
	}
	e->totals[FORMAT_SPANS] = e->p->span_count;
}

static void put_wake_columns(struct buf *raw, const struct profile_wake *wakes, size_t count)
{
	format_put_number(raw, count);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].node - (i ? wakes[i - 1].node : 0));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].thread);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].metric);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].waker);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].count);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, wakes[i].waited);
}

static void put_wakes(struct encoder *e)
{
	const struct profile_wake *wakes = e->p->wakes;
	for (size_t left = e->p->wake_count, n; left; left -= n, wakes += n) {
		n = left < FORMAT_ROWS ? left : FORMAT_ROWS;
		put_wake_columns(&e->raw, wakes, n);
		put_section(e, FORMAT_WAKES);
	}
	e->totals[FORMAT_WAKES] = e->p->wake_count;
}

static void put_edges(struct encoder *e)
{
	const struct profile_edge *edges = e->p->edges;
	for (size_t left = e->p->edge_count, n; left; left -= n, edges += n) {
		n = left < FORMAT_ROWS ? left : FORMAT_ROWS;
		edges_put(&e->raw, edges, n);
		put_section(e, FORMAT_EDGES);
	}
	e->totals[FORMAT_EDGES] = e->p->edge_count;
}

static void put_counted(struct encoder *e)
{
	const struct profile_counted *functions = e->p->counted;
	for (size_t left = e->p->counted_count, n; left && !e->raw.failed;
	     left -= n, functions += n) {
		n = counted_put(&e->raw, functions, left);
		put_section(e, FORMAT_PATHS);
	}
	e->totals[FORMAT_PATHS] = e->p->counted_count;
}

static void put_contexts(struct encoder *e)
{
	const struct profile *p = e->p;
	for (size_t at = 0; at < p->context_count && !e->raw.failed;) {
		at += contexts_put(&e->raw, &p->contexts[at], at, p->context_count - at);
		put_section(e, FORMAT_CONTEXTS);
	}
	e->totals[FORMAT_CONTEXTS] = p->context_count;
}

static void put_end(struct encoder *e)
{
	format_put_number(&e->raw, e->sections);
	format_put_number(&e->raw, FORMAT_TYPES - 2);
	for (unsigned type = 1; type < FORMAT_TYPES; type++) {
		if (type == FORMAT_END)
			continue;
		format_put_number(&e->raw, type);
		format_put_number(&e->raw, e->totals[type]);
	}
	put_section(e, FORMAT_END);
}

static void put_all(struct encoder *e)
{
	uint8_t header[FORMAT_HEADER_SIZE];
	format_put_header(header);
	buf_append(e->out, header, sizeof header);
	put_info(e);
	put_rows(e, FORMAT_MODULES, 1, e->p->module_count, put_module, NULL);
	put_names(e);
	put_rows(e, FORMAT_METRICS, 0, e->p->metric_count, put_metric, put_coverage);
	put_rows(e, FORMAT_PROCESSES, 0, e->p->process_count, put_process, NULL);
	put_rows(e, FORMAT_THREADS, 0, e->p->thread_count, put_thread, put_off_times);
	put_nodes(e);
	put_values(e);
	put_rows(e, FORMAT_LOST, 0, e->p->lost_count, put_lost, NULL);
	put_spans(e);
	put_wakes(e);
	put_edges(e);
	put_counted(e);
	put_contexts(e);
	put_end(e);
}

struct err *profile_pack(const struct profile *p, struct buf *out)
{
	struct encoder encoder = {.p = p, .out = out, .zstd = ZSTD_createCCtx()};
	/* What the profile says stays the same: the values only come in order. */
	struct err *e = profile_settle((struct profile *)(uintptr_t)p);
	if (!e && !encoder.zstd)
		e = err_new("out of memory");
	if (!e) {
		put_all(&encoder);
		if (out->failed)
			e = err_new("out of memory");
	}
	buf_free(&encoder.raw);
	buf_free(&encoder.packed);
	ZSTD_freeCCtx(encoder.zstd);
	return e;
}
