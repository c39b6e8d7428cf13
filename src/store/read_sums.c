/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read_sums.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/user.h"
#include "store/read.h"

#include <stdlib.h>
#include <string.h>

#define NO_SYMBOL "(no symbol)"

struct builder {
	const struct read_samples *x;
	enum read_by by;
	struct read_sums *out;
	size_t room;
	uint32_t *slots; /* rows + 1 by hash */
	size_t slot_room;
};

/* ---- names ---- */

static const char *keep(struct read_sums *rows, char *text)
{
	char **moved = text ? reallocarray(rows->texts, rows->text_count + 1, sizeof *moved) : NULL;
	if (!moved) {
		free(text);
		return "";
	}
	rows->texts = moved;
	return rows->texts[rows->text_count++] = text;
}

static const char *process_name(struct read_sums *rows, const struct read_process *p)
{
	struct buf text = {0};
	buf_printf(&text, p->pid ? "%s (%d)" : "%s", p->name, p->pid);
	return keep(rows, buf_take(&text));
}

static const char *name_user(struct read_sums *rows, const struct read_process *p)
{
	char text[USER_NAME_MAX];
	return p->id ? keep(rows, strdup(user_name(text, p->user))) : "(not known)";
}

static const char *image_name(const struct read_image *m)
{
	return *m->path ? m->path : "(unknown)";
}

/* What a sample's row is told from others by: the key; and the name of a new row. Equal texts are
   equal pointers, as the strings of a store's samples are kept once. */
static void make_key(const struct builder *b, const struct read_count *c, struct read_sum *row)
{
	const struct read_image *m = &b->x->images[c->image];
	const struct read_process *p = &b->x->processes[c->process];
	const struct store_symbol *y = NULL;
	*row = (struct read_sum){.detail = "", .process = c->process};
	switch (b->by) {
	case READ_BY_ALL:
	case READ_BY_PROCEDURE:
		y = read_symbol(m, c->address);
		row->name = y ? y->name : c->image ? NO_SYMBOL : "(unknown)";
		row->detail = m->path;
		row->key[0] = (uintptr_t)(y ? y->name : NULL);
		row->key[1] = (uintptr_t)m->path;
		row->key[2] = b->by == READ_BY_ALL ? (uint64_t)c->process + 1 : 0;
		break;
	case READ_BY_IMAGE:
		row->key[0] = (uintptr_t)m->path;
		break;
	case READ_BY_PROCESS:
		row->key[0] = c->process;
		break;
	case READ_BY_USER:
		row->key[0] = p->id ? (uint64_t)p->user + 1 : 0;
		break;
	case READ_BY_CONTAINER:
		row->key[0] = (uintptr_t)p->container;
		break;
	case READ_BY_HOST:
		row->key[0] = c->host;
		break;
	}
}

static void make_name(struct builder *b, const struct read_count *c, struct read_sum *row)
{
	const struct read_process *p = &b->x->processes[c->process];
	if (b->by == READ_BY_IMAGE)
		row->name = image_name(&b->x->images[c->image]);
	else if (b->by == READ_BY_PROCESS)
		row->name = process_name(b->out, p);
	else if (b->by == READ_BY_USER)
		row->name = name_user(b->out, p);
	else if (b->by == READ_BY_CONTAINER)
		row->name = *p->container ? p->container : "(none)";
	else if (b->by == READ_BY_HOST)
		row->name = b->x->hosts[c->host];
}

/* ---- rows ---- */

static size_t slot_of(const struct builder *b, const uint64_t key[3])
{
	uint64_t hash = hash_number(hash_number(hash_number(HASH_START, key[0]), key[1]), key[2]);
	size_t at = (size_t)hash & (b->slot_room - 1);
	while (b->slots[at] &&
	       memcmp(b->out->items[b->slots[at] - 1].key, key, sizeof b->out->items->key) != 0)
		at = (at + 1) & (b->slot_room - 1);
	return at;
}

static bool grow(struct builder *b)
{
	size_t room = b->room ? b->room * 2 : 256;
	struct read_sum *items = reallocarray(b->out->items, room, sizeof *items);
	if (items)
		b->out->items = items;
	uint32_t *slots = items ? calloc(room * 2, sizeof *slots) : NULL;
	if (!slots)
		return false;
	free(b->slots);
	b->slots = slots;
	b->slot_room = room * 2;
	b->room = room;
	for (size_t i = 0; i < b->out->count; i++)
		b->slots[slot_of(b, items[i].key)] = (uint32_t)i + 1;
	return true;
}

/* The place of the row of a sample; SIZE_MAX without memory. */
static size_t find_row(struct builder *b, const struct read_count *c)
{
	struct read_sum row;
	if (b->out->count == b->room && !grow(b))
		return SIZE_MAX;
	make_key(b, c, &row);
	size_t at = slot_of(b, row.key);
	if (!b->slots[at]) {
		make_name(b, c, &row);
		b->out->items[b->out->count++] = row;
		b->slots[at] = (uint32_t)b->out->count;
	}
	return b->slots[at] - 1;
}

static __thread size_t sort_event;

static int compare(const void *a, const void *b)
{
	const struct read_sum *x = a, *y = b;
	if (x->counts[sort_event] != y->counts[sort_event])
		return x->counts[sort_event] > y->counts[sort_event] ? -1 : 1;
	int order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->detail, y->detail);
	return order ? order : x->process < y->process ? -1 : x->process > y->process;
}

/* Counts of all rows lie in one block, made when it is known how many rows there are. */
static bool count_rows(struct builder *b, const size_t *places)
{
	size_t events = b->x->event_count;
	struct read_sums *out = b->out;
	out->counts = calloc(out->count * events + 1, sizeof *out->counts);
	out->totals = calloc(events + 1, sizeof *out->totals);
	if (!out->counts || !out->totals)
		return false;
	for (size_t i = 0; i < out->count; i++)
		out->items[i].counts = out->counts + i * events;
	for (size_t i = 0; i < b->x->count_count; i++) {
		const struct read_count *c = &b->x->counts[i];
		out->items[places[i]].counts[c->event] += c->count;
		out->totals[c->event] += c->count;
	}
	return true;
}

struct err *read_sums_make(const struct read_samples *x, enum read_by by, size_t event,
			   struct read_sums *out)
{
	struct builder b = {.x = x, .by = by, .out = out};
	size_t *places = calloc(x->count_count + 1, sizeof *places);
	bool good = places != NULL;
	*out = (struct read_sums){0};
	for (size_t i = 0; good && i < x->count_count; i++) {
		places[i] = find_row(&b, &x->counts[i]);
		good = places[i] != SIZE_MAX;
	}
	good = good && count_rows(&b, places);
	free(places);
	free(b.slots);
	if (!good)
		return err_new("out of memory");
	sort_event = event;
	if (out->count)
		qsort(out->items, out->count, sizeof *out->items, compare);
	return NULL;
}

void read_sums_free(struct read_sums *rows)
{
	for (size_t i = 0; i < rows->text_count; i++)
		free(rows->texts[i]);
	free(rows->texts);
	free(rows->items);
	free(rows->counts);
	free(rows->totals);
}
