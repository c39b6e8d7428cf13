/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts are appended as they come, each after its caller. When a reader asks, equal ones become one.
 */
#include "profile/contexts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sum.h"
#include "profile/decode.h"
#include "profile/format.h"
#include "profile/own.h"

void own_free_contexts(struct profile *p)
{
	for (size_t i = 0; i < p->context_count; i++)
		free(p->contexts[i].paths);
	free(p->contexts);
}

/* ---- one more ---- */

struct err *own_append_context(struct profile *p, struct profile_context *c)
{
	struct profile_context *moved = own_grow(p->contexts, &p->own->context_room,
						 p->context_count, sizeof *c);
	if (!moved) {
		free(c->paths);
		return err_new("out of memory");
	}
	p->contexts = moved;
	p->contexts[p->context_count++] = *c;
	p->own->path_sum += c->path_count;
	return NULL;
}

static bool is_good(const struct profile *p, const struct profile_context *c)
{
	bool good = c->module < p->module_count &&
		    c->parent < p->context_count + PROFILE_CONTEXT_FIRST &&
		    c->path_count <= PROFILE_PATH_MAX && p->context_count < PROFILE_CONTEXT_MAX &&
		    p->own->path_sum + c->path_count <= PROFILE_PATH_SUM_MAX;
	for (size_t i = 0; i < c->path_count && good; i++)
		good = c->paths[i].count && (!i || c->paths[i - 1].number < c->paths[i].number);
	return good;
}

struct err *profile_add_context(struct profile *p, const struct profile_context *context)
{
	struct profile_context c = *context;
	if (!is_good(p, context))
		return err_new("a calling context cannot be stored");
	c.paths = calloc(c.path_count + 1, sizeof *c.paths);
	if (!c.paths)
		return err_new("out of memory");
	if (c.path_count)
		memcpy(c.paths, context->paths, c.path_count * sizeof *c.paths);
	return own_append_context(p, &c);
}

/* ---- each once ---- */

/* Both lists of paths as one; without memory, false, and both stay. */
static bool join(struct profile_context *into, struct profile_context *from)
{
	if (!own_join_paths(&into->paths, &into->path_count, from->paths, from->path_count))
		return false;
	free(from->paths);
	from->paths = NULL;
	into->entries = sum_add(into->entries, from->entries);
	into->unknown = sum_add(into->unknown, from->unknown);
	return true;
}

static bool same(const struct profile_context *x, const struct profile_context *y)
{
	return x->parent == y->parent && x->module == y->module && x->address == y->address &&
	       x->site == y->site;
}

static uint64_t hash_of(const struct profile_context *c)
{
	return own_mix(own_mix(own_mix(c->address ^ (uint64_t)c->module << 40) + c->site) +
		       c->parent);
}

/* `to`: by index, what becomes of it. `table`: of those that stay, by hash. */
static bool settle(struct profile *p, uint32_t *to, uint32_t *table, size_t room)
{
	size_t kept = 0;
	for (size_t i = 0; i < p->context_count; i++) {
		struct profile_context c = p->contexts[i];
		c.parent = c.parent < PROFILE_CONTEXT_FIRST
				   ? c.parent
				   : to[c.parent - PROFILE_CONTEXT_FIRST] + PROFILE_CONTEXT_FIRST;
		size_t at = hash_of(&c) & (room - 1);
		while (table[at] != UINT32_MAX && !same(&p->contexts[table[at]], &c))
			at = (at + 1) & (room - 1);
		if (table[at] != UINT32_MAX) {
			size_t paths = p->contexts[table[at]].path_count + c.path_count;
			if (!join(&p->contexts[table[at]], &c))
				return false;
			p->own->path_sum -= paths - p->contexts[table[at]].path_count;
			to[i] = table[at];
			continue;
		}
		to[i] = table[at] = (uint32_t)kept;
		p->contexts[kept++] = c;
	}
	p->context_count = kept;
	return true;
}

struct err *own_settle_contexts(struct profile *p)
{
	size_t room = 64;
	if (p->context_count == p->own->contexts_settled)
		return NULL;
	while (room < 2 * p->context_count)
		room *= 2;
	uint32_t *to = calloc(p->context_count + 1, sizeof *to);
	uint32_t *table = malloc(room * sizeof *table);
	if (table)
		memset(table, 0xff, room * sizeof *table);
	bool good = to && table && settle(p, to, table, room);
	free(to);
	free(table);
	p->own->contexts_settled = good ? p->context_count : 0;
	return good ? NULL : err_new("out of memory");
}

/* ---- the file ---- */

static void put_one(struct buf *raw, const struct profile_context *c, size_t index)
{
	bool called = c->parent >= PROFILE_CONTEXT_FIRST;
	format_put_number(raw, called ? index + PROFILE_CONTEXT_FIRST - c->parent +
						(PROFILE_CONTEXT_FIRST - 1)
				      : c->parent);
	format_put_number(raw, c->module);
	format_put_number(raw, c->address);
	format_put_number(raw, c->site);
	format_put_number(raw, c->entries);
	format_put_number(raw, c->unknown);
	format_put_number(raw, c->path_count);
	for (size_t i = 0; i < c->path_count; i++)
		format_put_number(raw, c->paths[i].number - (i ? c->paths[i - 1].number : 0));
	for (size_t i = 0; i < c->path_count; i++)
		format_put_number(raw, c->paths[i].count);
}

size_t contexts_put(struct buf *raw, const struct profile_context *contexts, size_t first,
		    size_t count)
{
	struct buf rows = {0};
	size_t n = 0;
	while (n < count && n < FORMAT_ROWS && !rows.failed) {
		size_t before = rows.size;
		put_one(&rows, &contexts[n], first + n);
		if (n && rows.size > FORMAT_ROW_BYTES) {
			rows.size = before;
			break;
		}
		n++;
	}
	format_put_number(raw, n);
	format_put_number(raw, first);
	buf_append(raw, buf_text(&rows), rows.size);
	raw->failed |= rows.failed;
	buf_free(&rows);
	return n;
}

static void take_paths(struct decoder *d, struct cursor *c, struct profile_context *x)
{
	uint64_t number = 0;
	x->path_count = cursor_rows(c, 2);
	c->bad |= x->path_count > PROFILE_PATH_MAX ||
		  d->p->own->path_sum + x->path_count > PROFILE_PATH_SUM_MAX;
	x->paths = c->bad ? NULL : calloc(x->path_count + 1, sizeof *x->paths);
	if (!x->paths) {
		if (!c->bad && !d->error)
			d->error = err_new("out of memory");
		return;
	}
	for (size_t i = 0; i < x->path_count; i++) {
		uint64_t more = cursor_number(c);
		c->bad |= (i && !more) || __builtin_add_overflow(number, more, &number);
		x->paths[i].number = number;
	}
	for (size_t i = 0; i < x->path_count; i++) {
		x->paths[i].count = cursor_number(c);
		c->bad |= !x->paths[i].count;
	}
}

static void read_one(struct decoder *d, struct cursor *c, uint64_t index)
{
	struct profile_context x = {0};
	uint64_t back = cursor_number(c);
	c->bad |= back >= PROFILE_CONTEXT_FIRST && back - (PROFILE_CONTEXT_FIRST - 1) > index;
	if (back < PROFILE_CONTEXT_FIRST)
		x.parent = (uint32_t)back;
	else
		x.parent = (uint32_t)(index + PROFILE_CONTEXT_FIRST -
				      (back - (PROFILE_CONTEXT_FIRST - 1)));
	x.module = cursor_limited(c, INDEX_NONE - 1);
	x.address = cursor_number(c);
	x.site = cursor_number(c);
	x.entries = cursor_number(c);
	x.unknown = cursor_number(c);
	if (!c->bad)
		take_paths(d, c, &x);
	c->bad |= d->p->context_count >= PROFILE_CONTEXT_MAX;
	if (c->bad || d->error) {
		free(x.paths);
		return;
	}
	d->error = own_append_context(d->p, &x);
	if (!d->error && decode_map_push(d, &d->contexts, (uint32_t)index))
		d->tables[FORMAT_CONTEXTS].got++;
}

void contexts_read(struct decoder *d, struct cursor *c)
{
	size_t count = cursor_rows(c, 7);
	uint64_t first = cursor_limited(c, PROFILE_CONTEXT_MAX);
	c->bad |= first + count > PROFILE_CONTEXT_MAX ||
		  (d->contexts.count && first <= d->contexts.old[d->contexts.count - 1]);
	for (size_t i = 0; i < count && !c->bad && !d->error; i++)
		read_one(d, c, first + i);
}

void contexts_renumber(struct decoder *d)
{
	for (size_t i = 0; i < d->p->context_count; i++) {
		struct profile_context *x = &d->p->contexts[i];
		uint32_t module = map_find(&d->modules, x->module);
		x->module = module == INDEX_NONE ? 0 : module;
		if (x->parent < PROFILE_CONTEXT_FIRST)
			continue;
		uint32_t parent = map_find(&d->contexts, x->parent - PROFILE_CONTEXT_FIRST);
		x->parent = parent == INDEX_NONE ? PROFILE_CONTEXT_ASTRAY
						 : parent + PROFILE_CONTEXT_FIRST;
	}
}
