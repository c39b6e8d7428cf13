/* SPDX-License-Identifier: Apache-2.0 */
/* From numbers of the database to what they stand for. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "profile/process_name.h"
#include "profile/profile.h"
#include "store/reading.h"

struct number_slot {
	uint64_t number; /* + 1; 0: free */
	uint32_t place;
};

static struct number_slot *find(const struct number_map *m, uint64_t number)
{
	size_t at = (size_t)hash_number(HASH_START, number) & (m->room - 1);
	while (m->slots[at].number && m->slots[at].number != number + 1)
		at = (at + 1) & (m->room - 1);
	return &m->slots[at];
}

static bool grow(struct number_map *m)
{
	struct number_map old = *m;
	m->room = old.room ? old.room * 2 : 64;
	m->slots = calloc(m->room, sizeof *m->slots);
	if (!m->slots) {
		*m = old;
		return false;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].number)
			*find(m, old.slots[i].number - 1) = old.slots[i];
	free(old.slots);
	return true;
}

/* The slot of a number, with *is_new where it is to be filled; NULL without memory. */
static struct number_slot *slot_of(struct number_map *m, uint64_t number, size_t place,
				   bool *is_new)
{
	if (m->count * 2 >= m->room && !grow(m))
		return NULL;
	struct number_slot *slot = find(m, number);
	*is_new = !slot->number;
	if (*is_new) {
		*slot = (struct number_slot){number + 1, (uint32_t)place};
		m->count++;
	}
	return slot;
}

static void *room_for(void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	return reallocarray(items, count ? count * 2 : 1, size);
}

struct err *names_open(struct names *n, struct store *s)
{
	uint32_t place;
	*n = (struct names){.store = s};
	struct err *e = profile_new(&n->strings);
	if (!e)
		e = names_image(n, 0, &place);
	return e ? e : names_process(n, 0, &place);
}

void names_close(struct names *n)
{
	for (size_t i = 0; i < n->image_count; i++)
		free(n->images[i].symbols);
	free(n->images);
	free(n->processes);
	free(n->events);
	free(n->image_map.slots);
	free(n->process_map.slots);
	free(n->event_map.slots);
	profile_free(n->strings);
	*n = (struct names){0};
}

/* ---- images ---- */

static int compare_symbols(const void *a, const void *b)
{
	const struct store_symbol *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct err *read_symbols(struct names *n, struct read_image *m)
{
	sqlite3_stmt *r;
	bool row = true;
	struct err *e = sql_prepare(
		n->store, &r, "SELECT start, size, name FROM symbol WHERE image = ?", "d", m->id);
	while (!e) {
		e = sql_step(n->store, r, &row);
		if (e || !row)
			break;
		struct store_symbol *moved = room_for(m->symbols, m->symbol_count, sizeof *moved);
		if (!moved) {
			e = err_new("out of memory");
			break;
		}
		m->symbols = moved;
		m->symbols[m->symbol_count++] = (struct store_symbol){
			.start = (uint64_t)sqlite3_column_int64(r, 0),
			.size = (uint64_t)sqlite3_column_int64(r, 1),
			.name = profile_string(n->strings, sql_text(r, 2))};
	}
	sql_done(n->store, r);
	if (m->symbol_count)
		qsort(m->symbols, m->symbol_count, sizeof *m->symbols, compare_symbols);
	return e;
}

static struct err *read_image(struct names *n, struct read_image *m)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(n->store, &r,
				    "SELECT kind, path, build_id, process FROM image WHERE id = ?",
				    "d", m->id);
	if (!e)
		e = sql_step(n->store, r, &row);
	m->path = m->id ? "(no longer known)" : "";
	m->build_id = "";
	if (!e && row) {
		int64_t kind = sqlite3_column_int64(r, 0);
		m->kind = kind < 0 || kind >= PROFILE_KINDS ? PROFILE_NONE : (uint8_t)kind;
		m->path = profile_string(n->strings, sql_text(r, 1));
		m->build_id = profile_string(n->strings, sql_text(r, 2));
		m->process = sqlite3_column_int64(r, 3);
	}
	sql_done(n->store, r);
	return e || !row ? e : read_symbols(n, m);
}

struct err *names_image(struct names *n, uint64_t id, uint32_t *place)
{
	bool is_new = false;
	struct number_slot *slot = slot_of(&n->image_map, id, n->image_count, &is_new);
	struct read_image *moved = slot && is_new
					   ? room_for(n->images, n->image_count, sizeof *moved)
					   : n->images;
	if (!slot || !moved)
		return err_new("out of memory");
	*place = slot->place;
	n->images = moved;
	if (!is_new)
		return NULL;
	struct read_image *m = &n->images[n->image_count++];
	*m = (struct read_image){.id = (int64_t)id};
	return read_image(n, m);
}

/* ---- processes ---- */

static struct err *read_process(struct names *n, struct read_process *p)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(n->store, &r,
				    "SELECT pid, start, name, user, container, command"
				    " FROM process WHERE id = ?",
				    "d", p->id);
	if (!e)
		e = sql_step(n->store, r, &row);
	p->name = "(not known)";
	p->command = p->container = "";
	if (!e && row) {
		p->pid = (int32_t)sqlite3_column_int64(r, 0);
		p->start_ms = sqlite3_column_int64(r, 1);
		p->name = profile_string(n->strings, sql_text(r, 2));
		p->user = (uint32_t)sqlite3_column_int64(r, 3);
		p->container = profile_string(n->strings, sql_text(r, 4));
		p->command = profile_string(n->strings, sql_text(r, 5));
	}
	sql_done(n->store, r);
	return e;
}

struct err *names_process(struct names *n, uint64_t id, uint32_t *place)
{
	bool is_new = false;
	struct number_slot *slot = slot_of(&n->process_map, id, n->process_count, &is_new);
	struct read_process *moved = slot && is_new ? room_for(n->processes, n->process_count,
							       sizeof *moved)
						    : n->processes;
	if (!slot || !moved)
		return err_new("out of memory");
	*place = slot->place;
	n->processes = moved;
	if (!is_new)
		return NULL;
	struct read_process *p = &n->processes[n->process_count++];
	*p = (struct read_process){.id = (int64_t)id};
	return read_process(n, p);
}

/* ---- events ---- */

static struct err *read_event(struct names *n, int64_t id, struct store_event *v)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(n->store, &r,
				    "SELECT name, unit, period, every, user_only FROM event"
				    " WHERE id = ?",
				    "d", id);
	if (!e)
		e = sql_step(n->store, r, &row);
	*v = (struct store_event){"(not known)", "", 1, 0, false};
	if (!e && row)
		*v = (struct store_event){profile_string(n->strings, sql_text(r, 0)),
					  profile_string(n->strings, sql_text(r, 1)),
					  (uint64_t)sqlite3_column_int64(r, 2),
					  (uint64_t)sqlite3_column_int64(r, 3),
					  sqlite3_column_int64(r, 4) != 0};
	sql_done(n->store, r);
	return e;
}

struct err *names_event(struct names *n, uint64_t id, uint32_t *place)
{
	bool is_new = false;
	struct number_slot *slot = slot_of(&n->event_map, id, n->event_count, &is_new);
	struct store_event *moved = slot && is_new
					    ? room_for(n->events, n->event_count, sizeof *moved)
					    : n->events;
	if (!slot || !moved)
		return err_new("out of memory");
	*place = slot->place;
	n->events = moved;
	if (!is_new)
		return NULL;
	return read_event(n, (int64_t)id, &n->events[n->event_count++]);
}

/* ---- what is chosen ---- */

static bool is_number(const char *text, int64_t *number)
{
	char *end;
	*number = strtoll(text, &end, 10);
	return *text && !*end;
}

bool read_wants_process(const struct read_choice *c, const struct read_process *p)
{
	int64_t pid;
	if (c->process &&
	    (is_number(c->process, &pid) ? pid != p->pid
					 : !process_name_is(p->name, p->command, c->process)))
		return false;
	if (c->container && strncmp(c->container, p->container, strlen(c->container)) != 0)
		return false;
	return c->user < 0 || (p->id && c->user == (int64_t)p->user);
}

/* The remembered answer for a place, with room made for it; NULL without memory. */
static signed char *answer(signed char **list, size_t *room, size_t place)
{
	if (place >= *room) {
		size_t wider = (place + 1) * 2;
		signed char *moved = realloc(*list, wider);
		if (!moved)
			return NULL;
		memset(moved + *room, 0, wider - *room);
		*list = moved;
		*room = wider;
	}
	return &(*list)[place];
}

static bool matches(const regex_t *pattern, const char *text)
{
	return !pattern || !regexec(pattern, text, 0, NULL, 0);
}

bool wanted_sample(struct wanted *w, const struct names *n, uint32_t process, uint32_t image,
		   uint64_t address)
{
	const struct read_choice *c = w->choice;
	signed char *p = answer(&w->processes, &w->process_room, process);
	signed char *i = answer(&w->images, &w->image_room, image);
	if (p && !*p)
		*p = read_wants_process(c, &n->processes[process]) ? 1 : -1;
	if (i && !*i)
		*i = matches(c->image, n->images[image].path) ? 1 : -1;
	if (!p || !i || *p < 0 || *i < 0)
		return false;
	if (!c->procedure)
		return true;
	const struct store_symbol *y = read_symbol(&n->images[image], address);
	return y && matches(c->procedure, y->name);
}

void wanted_free(struct wanted *w)
{
	free(w->images);
	free(w->processes);
}

const struct store_symbol *read_symbol_before(const struct read_image *m, uint64_t address)
{
	size_t after = FIRST_NOT(i, m->symbol_count, m->symbols[i].start <= address);
	return after ? &m->symbols[after - 1] : NULL;
}

static bool reaches(const struct store_symbol *y, uint64_t address)
{
	return address - y->start < y->size || (!y->size && address == y->start);
}

/* A function may lie in another one. Code that is made at run time may lie where another function was. */
const struct store_symbol *read_symbol(const struct read_image *m, uint64_t address)
{
	const struct store_symbol *y = read_symbol_before(m, address);
	size_t more = m->kind == PROFILE_JIT ? 0 : READ_NESTING;
	for (; y && !reaches(y, address); y--)
		if (!more-- || y == m->symbols)
			return NULL;
	return y;
}
