/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions whose paths were counted. They are appended as they come. They are ordered, each once, when a reader asks: those with
 * the same graph are the same function, and their counts are added up.
 */
#include "profile/counted.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sum.h"
#include "profile/decode.h"
#include "profile/format.h"
#include "profile/own.h"
#include "profile/sampled.h"

/* ---- the same function ---- */

static int compare(const void *a, const void *b)
{
	const struct profile_counted *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	int order = strcmp(x->reason, y->reason);
	if (order)
		return order;
	if (x->graph_size != y->graph_size)
		return x->graph_size < y->graph_size ? -1 : 1;
	return x->graph_size ? memcmp(x->graph, y->graph, x->graph_size) : 0;
}

bool own_join_paths(struct profile_path **into, size_t *into_count, const struct profile_path *from,
		    size_t from_count)
{
	size_t i = 0, k = 0, count = 0;
	struct profile_path *joined = calloc(*into_count + from_count + 1, sizeof *joined);
	if (!joined)
		return false;
	while (i < *into_count || k < from_count) {
		const struct profile_path *x = i < *into_count ? &(*into)[i] : NULL;
		const struct profile_path *y = k < from_count ? &from[k] : NULL;
		bool first = x && (!y || x->number <= y->number);
		bool second = y && (!x || y->number <= x->number);
		joined[count].number = first ? x->number : y->number;
		joined[count++].count = sum_add(first ? x->count : 0, second ? y->count : 0);
		i += first;
		k += second;
	}
	free(*into);
	*into = joined;
	*into_count = count;
	return true;
}

static bool is_same(const struct profile_counted *x, const struct profile_counted *y)
{
	return !compare(x, y) && sampled_may_join(x, y) &&
	       x->path_count + y->path_count <= PROFILE_PATH_MAX;
}

static void forget(struct profile_counted *f)
{
	free(f->graph);
	free(f->paths);
	sampled_free(f);
}

void own_free_counted(struct profile *p)
{
	for (size_t i = 0; i < p->counted_count; i++)
		forget(&p->counted[i]);
	free(p->counted);
}

struct err *own_settle_counted(struct profile *p)
{
	size_t kept = 0;
	struct err *e = NULL;
	if (p->counted_count == p->own->counted_settled)
		return NULL;
	qsort(p->counted, p->counted_count, sizeof *p->counted, compare);
	for (size_t i = 0; i < p->counted_count; i++) {
		struct profile_counted *f = &p->counted[i];
		struct profile_counted *last = kept ? &p->counted[kept - 1] : NULL;
		size_t paths = last ? last->path_count + f->path_count : 0;
		if (e || !last || !is_same(last, f)) {
			p->counted[kept++] = *f;
		} else if (sampled_join(last, f) && own_join_paths(&last->paths, &last->path_count,
								   f->paths, f->path_count)) {
			p->own->path_sum -= paths - last->path_count;
			last->entries = sum_add(last->entries, f->entries);
			last->unknown = sum_add(last->unknown, f->unknown);
			forget(f);
		} else {
			e = err_new("out of memory");
			p->counted[kept++] = *f;
		}
	}
	p->counted_count = kept;
	p->own->counted_settled = e ? 0 : kept;
	return e;
}

/* ---- one more ---- */

struct err *own_append_counted(struct profile *p, struct profile_counted *f)
{
	struct profile_counted *moved = NULL;
	if (own_keep(p, &f->name) && own_keep(p, &f->reason))
		moved = own_grow(p->counted, &p->own->counted_room, p->counted_count, sizeof *f);
	if (!moved) {
		forget(f);
		return err_new("out of memory");
	}
	p->counted = moved;
	p->counted[p->counted_count++] = *f;
	p->own->path_sum += f->path_count;
	return NULL;
}

static bool is_good(const struct profile *p, const struct profile_counted *f)
{
	bool refused = f->reason && *f->reason;
	bool good = f->module < p->module_count && refused == !f->graph_size &&
		    f->graph_size <= PROFILE_GRAPH_MAX && f->path_count <= PROFILE_PATH_MAX &&
		    !(refused && f->path_count) && p->counted_count < PROFILE_COUNTED_MAX &&
		    p->own->path_sum + f->path_count <= PROFILE_PATH_SUM_MAX;
	for (size_t i = 0; i < f->path_count && good; i++)
		good = f->paths[i].count && (!i || f->paths[i - 1].number < f->paths[i].number);
	return good && sampled_is_good(f);
}

struct err *profile_count_paths(struct profile *p, const struct profile_counted *function)
{
	struct profile_counted f = *function;
	if (!is_good(p, function))
		return err_new("the paths of '%s' cannot be stored", f.name ? f.name : "");
	f.graph = malloc(f.graph_size + 1);
	f.paths = calloc(f.path_count + 1, sizeof *f.paths);
	bool sampled = sampled_copy(p, function, &f);
	if (!f.graph || !f.paths || !sampled) {
		forget(&f);
		return err_new("out of memory");
	}
	if (f.graph_size)
		memcpy(f.graph, function->graph, f.graph_size);
	if (f.path_count)
		memcpy(f.paths, function->paths, f.path_count * sizeof *f.paths);
	return own_append_counted(p, &f);
}

/* ---- the file ---- */

static void put_function(struct buf *raw, const struct profile_counted *f)
{
	format_put_number(raw, f->module);
	format_put_number(raw, f->address);
	format_put_text(raw, f->name);
	format_put_text(raw, f->reason);
	format_put_number(raw, f->entries);
	format_put_number(raw, f->unknown);
	format_put_number(raw, f->graph_size);
	buf_append(raw, f->graph, f->graph_size);
	format_put_number(raw, f->path_count);
	for (size_t i = 0; i < f->path_count; i++)
		format_put_number(raw, f->paths[i].number - (i ? f->paths[i - 1].number : 0));
	for (size_t i = 0; i < f->path_count; i++)
		format_put_number(raw, f->paths[i].count);
}

size_t counted_put(struct buf *raw, const struct profile_counted *functions, size_t count)
{
	struct buf rows = {0}, sampled = {0};
	size_t n = 0, last = 0, sampled_rows = 0;
	/* A row may be large: there is no other one with it then. */
	while (n < count && n < FORMAT_ROWS && !rows.failed) {
		size_t before = rows.size, sampled_before = sampled.size;
		put_function(&rows, &functions[n]);
		size_t more = sampled_put(&sampled, &functions[n], n, &last);
		if (n && rows.size + sampled.size > FORMAT_ROW_BYTES) {
			rows.size = before;
			sampled.size = sampled_before;
			break;
		}
		sampled_rows += more;
		n++;
	}
	format_put_number(raw, n);
	buf_append(raw, buf_text(&rows), rows.size);
	if (sampled_rows) {
		format_put_number(raw, sampled_rows);
		buf_append(raw, buf_text(&sampled), sampled.size);
	}
	raw->failed |= rows.failed || sampled.failed;
	buf_free(&rows);
	buf_free(&sampled);
	return n;
}

static void take_graph(struct decoder *d, struct cursor *c, struct profile_counted *f)
{
	f->graph_size = cursor_rows(c, 1);
	c->bad |= f->graph_size > PROFILE_GRAPH_MAX;
	f->graph = c->bad ? NULL : malloc(f->graph_size + 1);
	if (!f->graph) {
		if (!c->bad && !d->error)
			d->error = err_new("out of memory");
		return;
	}
	memcpy(f->graph, c->at, f->graph_size);
	c->at += f->graph_size;
}

static void take_paths(struct decoder *d, struct cursor *c, struct profile_counted *f)
{
	uint64_t number = 0;
	f->path_count = cursor_rows(c, 2);
	c->bad |= f->path_count > PROFILE_PATH_MAX ||
		  d->p->own->path_sum + f->path_count > PROFILE_PATH_SUM_MAX;
	f->paths = c->bad ? NULL : calloc(f->path_count + 1, sizeof *f->paths);
	if (!f->paths) {
		if (!c->bad && !d->error)
			d->error = err_new("out of memory");
		return;
	}
	for (size_t i = 0; i < f->path_count; i++) {
		uint64_t more = cursor_number(c);
		c->bad |= (i && !more) || __builtin_add_overflow(number, more, &number);
		f->paths[i].number = number;
	}
	for (size_t i = 0; i < f->path_count; i++) {
		f->paths[i].count = cursor_number(c);
		c->bad |= !f->paths[i].count;
	}
}

static void read_function(struct decoder *d, struct cursor *c)
{
	struct profile_counted f = {.module = cursor_limited(c, INDEX_NONE - 1)};
	f.address = cursor_number(c);
	f.name = decode_text(d, c);
	f.reason = decode_text(d, c);
	f.entries = cursor_number(c);
	f.unknown = cursor_number(c);
	if (!c->bad && !d->error)
		take_graph(d, c, &f);
	if (!c->bad && !d->error)
		take_paths(d, c, &f);
	c->bad |= !*f.reason == !f.graph_size || (*f.reason && f.path_count) ||
		  d->tables[FORMAT_PATHS].got >= PROFILE_COUNTED_MAX;
	if (c->bad || d->error) {
		forget(&f);
		return;
	}
	d->error = own_append_counted(d->p, &f);
	d->tables[FORMAT_PATHS].got++;
}

void counted_read(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 8), first = d->p->counted_count;
	for (size_t i = 0; i < count && !c->bad && !d->error; i++)
		read_function(d, c);
	if (!c->bad && !d->error && c->at < c->end)
		sampled_read(d, c, first);
}
