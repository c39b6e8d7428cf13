/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/contexts.h"
#include "profile/counted.h"
#include "profile/edges.h"
#include "profile/own.h"
#include "profile/timeline_file.h"

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

uint32_t map_find(const struct index_map *m, uint32_t old)
{
	const uint32_t *found;
	if (old < m->count && m->old[old] == old) /* then nothing before it is missing */
		return old;
	found = m->count ? bsearch(&old, m->old, m->count, sizeof old, compare_numbers) : NULL;
	if (found)
		return (uint32_t)(found - m->old);
	found = m->stand_in_count ? bsearch(&old, m->stand_ins, m->stand_in_count, sizeof old,
					    compare_numbers)
				  : NULL;
	return found ? (uint32_t)(m->count + (size_t)(found - m->stand_ins)) : INDEX_NONE;
}

/* The smallest index that the next row may have. */
static uint32_t map_next(const struct index_map *m)
{
	return m->count ? m->old[m->count - 1] + 1 : 0;
}

bool decode_map_push(struct decoder *d, struct index_map *m, uint32_t old)
{
	uint32_t *moved = own_grow(m->old, &m->room, m->count, sizeof *moved);
	if (!moved) {
		d->error = err_new("out of memory");
		return false;
	}
	m->old = moved;
	m->old[m->count++] = old;
	return true;
}

void decode_complain(struct decoder *d, unsigned type, const char *problem)
{
	if (!d->tables[type].problem)
		d->tables[type].problem = problem;
}

const char *decode_text(struct decoder *d, struct cursor *c)
{
	size_t size;
	const char *text = cursor_text(c, &size);
	text = own_string(d->p, text, size);
	if (!text && !d->error)
		d->error = err_new("out of memory");
	return text ? text : "";
}

static void read_field(struct decoder *d, struct cursor *c)
{
	const char *key = decode_text(d, c), *text = NULL;
	uint64_t number = 0;
	switch (cursor_number(c)) {
	case FORMAT_NUMBER:
		number = cursor_number(c);
		break;
	case FORMAT_TEXT:
		text = decode_text(d, c);
		break;
	default:
		c->bad = true;
	}
	for (size_t i = 0; i < format_field_count && !c->bad; i++) {
		const struct format_field *f = &format_fields[i];
		void *at = (char *)d->p + f->offset;
		if (strcmp(f->key, key) != 0 || (f->kind == FIELD_TEXT) != (text != NULL))
			continue;
		if (f->kind == FIELD_TEXT)
			*(const char **)at = text;
		else if (f->kind == FIELD_U64)
			*(uint64_t *)at = number;
		else if (f->kind == FIELD_U32)
			*(uint32_t *)at = (uint32_t)number;
		else
			*(bool *)at = number != 0;
	}
}

static void read_info(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 3);
	if (count > FORMAT_FIELDS_MAX || d->tables[FORMAT_INFO].got++)
		c->bad = true;
	for (size_t i = 0; i < count && !c->bad && !d->error; i++)
		read_field(d, c);
}

/* Each reads a row and adds it as the next one of its table. */

static void read_module(struct decoder *d, struct cursor *c)
{
	struct profile_module m = {0};
	uint32_t index, process;
	uint8_t kind;
	kind = (uint8_t)cursor_limited(c, PROFILE_KINDS - 1);
	m.kind = PROFILE_FILE; /* for now: the process of a JIT module may be missing as yet */
	m.path = decode_text(d, c);
	m.build_id = decode_text(d, c);
	process = cursor_limited(c, INDEX_NONE - 1);
	m.problem = decode_text(d, c);
	if (c->bad || d->error)
		return;
	d->error = profile_add_module(d->p, &m, &index);
	if (d->error)
		return;
	d->p->modules[index].kind = kind;
	d->p->modules[index].process = kind == PROFILE_JIT ? process : 0;
}

static void read_metric(struct decoder *d, struct cursor *c)
{
	struct profile_metric m = {0};
	uint32_t index;
	m.name = decode_text(d, c);
	m.unit = decode_text(d, c);
	m.period = cursor_number(c);
	m.user_only = cursor_limited(c, 1);
	if (d->p->metric_count >= PROFILE_METRIC_MAX)
		c->bad = true;
	if (!c->bad && !d->error)
		d->error = profile_add_metric(d->p, &m, &index);
}

/* Those of the metrics from `first` on, which files before version 1.2 have not. */
static void read_coverage(struct decoder *d, struct cursor *c, size_t first)
{
	for (size_t i = first; c->at < c->end && i < d->p->metric_count && !c->bad; i++) {
		struct coverage x = {cursor_number(c), 0};
		x.running_ns = cursor_number(c);
		if (!c->bad)
			d->p->metrics[i].coverage = x;
	}
}

static void read_process(struct decoder *d, struct cursor *c)
{
	struct profile_process x = {0};
	uint32_t index;
	x.pid = cursor_int(c);
	x.parent = cursor_int(c);
	x.name = decode_text(d, c);
	x.command = decode_text(d, c);
	x.rank = cursor_int(c);
	x.start_ns = cursor_number(c);
	x.end_ns = cursor_number(c);
	x.status = cursor_int(c);
	if (!c->bad && !d->error)
		d->error = profile_add_process(d->p, &x, &index);
}

/* Not profile_add_thread: the process may be missing as yet. */
static void read_thread(struct decoder *d, struct cursor *c)
{
	struct profile *p = d->p;
	struct profile_thread t = {0}, *moved;
	t.process = cursor_limited(c, INDEX_NONE - 1);
	t.tid = cursor_int(c);
	t.name = decode_text(d, c);
	t.start_ns = cursor_number(c);
	t.end_ns = cursor_number(c);
	t.cpu_ns = cursor_number(c);
	t.handler_ns = cursor_number(c);
	t.handled = cursor_number(c);
	if (c->bad || d->error)
		return;
	moved = own_grow(p->threads, &p->own->thread_room, p->thread_count, sizeof t);
	if (!moved) {
		d->error = err_new("out of memory");
		return;
	}
	p->threads = moved;
	p->threads[p->thread_count++] = t;
}

/* Those of the threads from `first` on, which files before version 1.3 have not. */
static void read_off_times(struct decoder *d, struct cursor *c, size_t first)
{
	for (size_t i = first; c->at < c->end && i < d->p->thread_count && !c->bad; i++) {
		uint64_t blocked = cursor_number(c), queued = cursor_number(c);
		if (c->bad)
			return;
		d->p->threads[i].blocked_ns = blocked;
		d->p->threads[i].queued_ns = queued;
	}
}

static void read_lost(struct decoder *d, struct cursor *c)
{
	const char *reason = decode_text(d, c);
	uint64_t count = cursor_number(c);
	if (d->tables[FORMAT_LOST].got >= PROFILE_LOST_MAX)
		c->bad = true;
	if (!c->bad && !d->error)
		d->error = profile_lose(d->p, reason, count);
}

/* Where a run of rows begins; false where it does not fit behind those that are there. */
static bool read_start(struct decoder *d, struct cursor *c, const struct index_map *m,
		       unsigned type, uint32_t *first)
{
	*first = cursor_limited(c, INDEX_NONE - 1);
	if (!c->bad && m && *first < map_next(m)) {
		decode_complain(d, type, "out of order");
		return false;
	}
	return !c->bad;
}

static void read_rows(struct decoder *d, struct cursor *c, unsigned type, struct index_map *m,
		      void (*read)(struct decoder *d, struct cursor *c))
{
	uint32_t first;
	size_t count;
	if (!read_start(d, c, m, type, &first))
		return;
	count = cursor_rows(c, 2);
	if (count > PROFILE_TABLE_MAX || first + (uint64_t)count > PROFILE_TABLE_MAX)
		c->bad = true;
	for (size_t i = 0; i < count && !c->bad; i++) {
		read(d, c);
		if (d->error || c->bad || (m && !decode_map_push(d, m, first + (uint32_t)i)))
			return;
		d->tables[type].got++;
	}
}

static void read_metrics(struct decoder *d, struct cursor *c)
{
	size_t first = d->p->metric_count;
	read_rows(d, c, FORMAT_METRICS, &d->metrics, read_metric);
	if (!c->bad && !d->error)
		read_coverage(d, c, first);
}

static void read_threads(struct decoder *d, struct cursor *c)
{
	size_t first = d->p->thread_count;
	read_rows(d, c, FORMAT_THREADS, &d->threads, read_thread);
	if (!c->bad && !d->error)
		read_off_times(d, c, first);
}

static void read_names(struct decoder *d, struct cursor *c)
{
	uint32_t old = cursor_limited(c, INDEX_NONE - 1);
	uint32_t module = map_find(&d->modules, old);
	size_t count = cursor_rows(c, 3);
	struct profile_name *names = calloc(count + 1, sizeof *names);
	const struct profile_module *m;
	uint64_t last = 0;
	if (!names)
		d->error = err_new("out of memory");
	for (size_t i = 0; names && i < count; i++) {
		if (__builtin_add_overflow(last, cursor_number(c), &names[i].start))
			c->bad = true;
		last = names[i].start;
	}
	for (size_t i = 0; names && i < count; i++)
		names[i].size = cursor_number(c);
	m = module == INDEX_NONE ? NULL : &d->p->modules[module];
	if (m && m->name_count && count && names &&
	    names[0].start < m->names[m->name_count - 1].start)
		decode_complain(d, FORMAT_NAMES, "out of order");
	else
		for (size_t i = 0; i < count && m && !c->bad && !d->error; i++) {
			names[i].name = decode_text(d, c);
			if (d->tables[FORMAT_NAMES].got >= PROFILE_TABLE_MAX)
				c->bad = true;
			if (c->bad || d->error)
				break;
			d->error = own_append_name(d->p, module, &names[i]);
			d->tables[FORMAT_NAMES].got++;
		}
	if (!m && !c->bad)
		decode_complain(d, FORMAT_NAMES, "their module is missing");
	free(names);
}

static struct profile_node *read_frames(struct cursor *c, size_t *count)
{
	struct profile_node *frames;
	uint64_t module = 0, address = 0;
	*count = cursor_rows(c, 3);
	frames = calloc(*count + 1, sizeof *frames);
	for (size_t i = 0; frames && i < *count && !c->bad; i++) {
		module += cursor_limited(c, INDEX_NONE - 1);
		if (module >= INDEX_NONE)
			c->bad = true;
		frames[i].module = (uint32_t)module;
	}
	for (size_t i = 0; frames && i < *count && !c->bad; i++)
		frames[i].kind = (uint8_t)cursor_limited(c, PROFILE_PARTIAL);
	for (size_t i = 0; frames && i < *count && !c->bad; i++) {
		address += (uint64_t)cursor_signed(c);
		frames[i].address = address;
	}
	return frames;
}

/* A node whose parent is missing is missing too. */
static void add_node(struct decoder *d, const struct profile_node *frame, uint32_t index,
		     uint32_t distance)
{
	struct profile_node n = *frame;
	n.parent = map_find(&d->nodes, index - distance);
	if (n.kind == PROFILE_ROOT || distance == 0 || distance > index ||
	    (n.kind == PROFILE_PARTIAL && n.parent != 0))
		decode_complain(d, FORMAT_NODES, "malformed");
	else if (n.parent != INDEX_NONE) {
		d->error = own_append_node(d->p, &n);
		if (!d->error && decode_map_push(d, &d->nodes, index))
			d->tables[FORMAT_NODES].got++;
	}
}

static void read_nodes(struct decoder *d, struct cursor *c)
{
	struct profile_node *frames = NULL;
	uint32_t first, *distances = NULL;
	size_t count, frame_count = 0;
	if (!read_start(d, c, &d->nodes, FORMAT_NODES, &first))
		return;
	count = cursor_rows(c, 2);
	if (first + (uint64_t)count > PROFILE_NODE_MAX)
		c->bad = true;
	frames = read_frames(c, &frame_count);
	distances = c->bad ? NULL : calloc(count + 1, sizeof *distances);
	for (size_t i = 0; distances && i < count; i++)
		distances[i] = cursor_limited(c, INDEX_NONE - 1);
	if (!frames || (!distances && !c->bad))
		d->error = err_new("out of memory");
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		uint64_t frame = cursor_number(c);
		if (frame >= frame_count)
			c->bad = true;
		if (!c->bad)
			add_node(d, &frames[frame], first + (uint32_t)i, distances[i]);
	}
	free(frames);
	free(distances);
}

static void read_column(struct cursor *c, struct profile_value *values, size_t count, int which)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t n = cursor_limited(c, INDEX_NONE - 1);
		if (which == 0)
			values[i].node = n;
		else if (which == 1)
			values[i].thread = n;
		else
			values[i].metric = n;
	}
}

static void add_value(struct decoder *d, struct profile_value v)
{
	struct profile *p = d->p;
	struct profile_value *moved;
	uint32_t node = map_find(&d->nodes, v.node);
	if (node == INDEX_NONE) {
		d->dropped = sum_add(d->dropped, v.count);
		decode_complain(d, FORMAT_VALUES, "their contexts are missing");
		return;
	}
	d->tables[FORMAT_VALUES].got++;
	if (p->value_count >= PROFILE_VALUE_MAX) {
		d->error = err_new("more than %u values", PROFILE_VALUE_MAX);
		return;
	}
	moved = own_grow(p->values, &p->own->value_room, p->value_count, sizeof v);
	if (!moved) {
		d->error = err_new("out of memory");
		return;
	}
	p->values = moved;
	v.node = node;
	p->values[p->value_count++] = v;
}

/* Whether it comes after the one before; they are in order through all sections. */
static bool is_next(struct decoder *d, const struct profile_value *v)
{
	const struct profile_value *last = &d->last;
	if (v->count == 0)
		return false;
	return last->count == 0 || last->node < v->node ||
	       (last->node == v->node && (last->thread < v->thread ||
					  (last->thread == v->thread && last->metric < v->metric)));
}

static void read_values(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 4);
	struct profile_value *values = calloc(count + 1, sizeof *values);
	uint64_t node = 0;
	if (!values) {
		d->error = err_new("out of memory");
		return;
	}
	for (int which = 0; which < 3; which++)
		read_column(c, values, count, which);
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		node += values[i].node; /* less than 2^32 each: no overflow in a section */
		values[i].node = node < INDEX_NONE ? (uint32_t)node : INDEX_NONE;
		values[i].count = cursor_number(c);
		if (!is_next(d, &values[i]))
			c->bad = true;
		if (!c->bad) {
			d->last = values[i];
			add_value(d, values[i]);
		}
	}
	free(values);
}

static void read_wake_columns(struct cursor *c, struct profile_wake *wakes, size_t count)
{
	uint64_t node = 0;
	for (size_t i = 0; i < count; i++) {
		node += cursor_limited(c, INDEX_NONE - 1);
		wakes[i].node = node < INDEX_NONE ? (uint32_t)node : INDEX_NONE;
	}
	for (size_t i = 0; i < count; i++)
		wakes[i].thread = cursor_limited(c, INDEX_NONE - 1);
	for (size_t i = 0; i < count; i++)
		wakes[i].metric = cursor_limited(c, INDEX_NONE - 1);
	for (size_t i = 0; i < count; i++)
		wakes[i].waker = cursor_limited(c, INDEX_NONE - 1);
	for (size_t i = 0; i < count; i++)
		wakes[i].count = cursor_number(c);
}

/* What a wake refers to besides its node may be missing as yet. */
static void read_wakes(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 6);
	struct profile_wake *wakes = calloc(count + 1, sizeof *wakes);
	if (!wakes) {
		d->error = err_new("out of memory");
		return;
	}
	read_wake_columns(c, wakes, count);
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		wakes[i].waited = cursor_number(c);
		c->bad |= !wakes[i].count || wakes[i].waited > wakes[i].count ||
			  d->tables[FORMAT_WAKES].got >= PROFILE_WAKE_MAX;
		if (c->bad)
			break;
		wakes[i].node = map_find(&d->nodes, wakes[i].node);
		if (wakes[i].node == INDEX_NONE) {
			decode_complain(d, FORMAT_WAKES, "their contexts are missing");
			continue;
		}
		d->tables[FORMAT_WAKES].got++;
		d->error = own_append_wake(d->p, &wakes[i]);
	}
	free(wakes);
}

static void read_end(struct decoder *d, struct cursor *c)
{
	uint64_t sections = cursor_number(c);
	size_t pairs = cursor_rows(c, 2);
	for (size_t i = 0; i < pairs; i++) {
		uint64_t type = cursor_number(c), total = cursor_number(c);
		if (type < FORMAT_TYPES && type != FORMAT_END && !c->bad)
			d->tables[type].total = total;
	}
	if (!c->bad && sections != d->sections.count - 1)
		decode_complain(d, FORMAT_END, "not all sections are there");
}

static void read_section(struct decoder *d, struct cursor *c, unsigned type)
{
	switch (type) {
	case FORMAT_INFO:
		return read_info(d, c);
	case FORMAT_MODULES:
		return read_rows(d, c, type, &d->modules, read_module);
	case FORMAT_NAMES:
		return read_names(d, c);
	case FORMAT_METRICS:
		return read_metrics(d, c);
	case FORMAT_PROCESSES:
		return read_rows(d, c, type, &d->processes, read_process);
	case FORMAT_THREADS:
		return read_threads(d, c);
	case FORMAT_NODES:
		return read_nodes(d, c);
	case FORMAT_VALUES:
		return read_values(d, c);
	case FORMAT_LOST:
		return read_rows(d, c, type, NULL, read_lost);
	case FORMAT_END:
		return read_end(d, c);
	case FORMAT_SPANS:
		return timeline_read(d, c);
	case FORMAT_WAKES:
		return read_wakes(d, c);
	case FORMAT_EDGES:
		return edges_read(d, c);
	case FORMAT_PATHS:
		return counted_read(d, c);
	case FORMAT_CONTEXTS:
		return contexts_read(d, c);
	}
}

static bool read_type(struct decoder *d, unsigned type)
{
	for (size_t i = 0; i < d->sections.count && !d->error; i++) {
		const struct section *s = &d->sections.items[i];
		const char *problem;
		struct cursor c;
		if (s->header.type != type)
			continue;
		problem = section_open(&d->sections, s, &c);
		if (!problem) {
			read_section(d, &c, type);
			problem = c.bad ? "malformed" : NULL;
		}
		if (problem)
			decode_complain(d, type, problem);
		if (d->sections.no_memory && !d->error)
			d->error = err_new("out of memory");
		cursor_close(&c);
	}
	return !d->error;
}

bool decode_tables(struct decoder *d)
{
	/* Their first rows are in every profile and in no file. */
	if (!decode_map_push(d, &d->modules, 0) || !decode_map_push(d, &d->nodes, 0))
		return false;
	for (unsigned type = 1; type < FORMAT_TYPES; type++)
		if (!read_type(d, type))
			return false;
	return true;
}

static void map_free(struct index_map *m)
{
	free(m->old);
	free(m->stand_ins);
}

void decode_free(struct decoder *d)
{
	sections_free(&d->sections);
	map_free(&d->modules);
	map_free(&d->metrics);
	map_free(&d->processes);
	map_free(&d->threads);
	map_free(&d->nodes);
	map_free(&d->contexts);
}
