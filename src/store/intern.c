/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "profile/profile.h"
#include "store/internal.h"

#define COMMAND_MAX 200 /* bytes of a command line that are kept */
#define NAME_MAX_KEPT 1000
#define KNOWN_MAX 131072 /* functions: those that are met again are looked for in the file */

/* ---- functions that are known to be in the file ---- */

struct known_slot {
	int64_t image; /* 0: free */
	uint64_t start;
};

static struct known_slot *known_find(const struct known *k, int64_t image, uint64_t start)
{
	size_t at = (size_t)hash_number(hash_number(HASH_START, (uint64_t)image), start);
	for (at &= k->room - 1; k->slots[at].image; at = (at + 1) & (k->room - 1))
		if (k->slots[at].image == image && k->slots[at].start == start)
			break;
	return &k->slots[at];
}

static bool known_grow(struct known *k)
{
	struct known old = *k;
	k->room = old.room ? old.room * 2 : 1024;
	k->slots = calloc(k->room, sizeof *k->slots);
	if (!k->slots) {
		*k = old;
		return false;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].image)
			*known_find(k, old.slots[i].image, old.slots[i].start) = old.slots[i];
	free(old.slots);
	return true;
}

/* Was it there before? */
static bool known_note(struct known *k, int64_t image, uint64_t start)
{
	if (k->count == KNOWN_MAX) {
		free(k->slots);
		*k = (struct known){0};
	}
	if (k->count * 2 >= k->room && !known_grow(k))
		return false;
	struct known_slot *slot = known_find(k, image, start);
	if (slot->image)
		return true;
	*slot = (struct known_slot){image, start};
	k->count++;
	return false;
}

void intern_forget(struct store *s)
{
	free(s->symbols.slots);
	s->symbols = (struct known){0};
	s->tree_epoch = 0;
	s->events.epoch = 0;
}

struct err *intern_refresh(struct store *s)
{
	int64_t version;
	struct err *e = sql_number(s, &version, 0, "PRAGMA data_version", "");
	if (!e && version != s->seen_version)
		intern_forget(s);
	s->seen_version = version;
	return e;
}

/* Rows by what they are: found, or made. `used` is set forward once an hour. */

struct finder {
	sqlite3_stmt *find, *insert, *touch;
	int64_t hour;
};

static struct err *finder_open(struct store *s, struct finder *f, const char *find,
			       const char *insert, const char *touch, int64_t now_ms)
{
	f->hour = now_ms / STORE_USED_MS * STORE_USED_MS;
	struct err *e = sql_prepare(s, &f->find, find, "");
	if (!e)
		e = sql_prepare(s, &f->insert, insert, "");
	return e ? e : sql_prepare(s, &f->touch, touch, "");
}

static void finder_close(struct store *s, struct finder *f)
{
	sql_done(s, f->find);
	sql_done(s, f->insert);
	sql_done(s, f->touch);
}

static struct err *run_once(struct store *s, sqlite3_stmt *statement)
{
	bool row;
	struct err *e = sql_step(s, statement, &row);
	sqlite3_reset(statement);
	return e;
}

/* After the key was bound to `find`; the same and `used` to `insert`. */
static struct err *finder_get(struct store *s, struct finder *f, int64_t *id)
{
	int64_t used = 0;
	bool row;
	struct err *e = sql_step(s, f->find, &row);
	if (row) {
		*id = sqlite3_column_int64(f->find, 0);
		used = sqlite3_column_int64(f->find, 1);
	}
	sqlite3_reset(f->find);
	if (e)
		return e;
	if (!row) {
		e = run_once(s, f->insert);
		*id = sqlite3_last_insert_rowid(s->db);
	} else if (used < f->hour) {
		sqlite3_bind_int64(f->touch, 1, f->hour);
		sqlite3_bind_int64(f->touch, 2, *id);
		e = run_once(s, f->touch);
	}
	return e;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text, size_t most)
{
	size_t size = strnlen(text, most);
	while (size == most && size && (text[size] & 0xc0) == 0x80) /* not within a letter */
		size--;
	sqlite3_bind_text(statement, at, text, (int)size, SQLITE_TRANSIENT);
}

/* ---- processes ---- */

static struct err *open_processes(struct store *s, struct finder *f, int64_t now_ms)
{
	return finder_open(s, f,
			   "SELECT id, used FROM process WHERE pid = ? AND start = ? AND name = ?"
			   " AND user = ? AND container = ?",
			   "INSERT INTO process (pid, start, name, user, container, command, used)"
			   " VALUES (?, ?, ?, ?, ?, ?, ?)",
			   "UPDATE process SET used = ? WHERE id = ?", now_ms);
}

static struct err *get_process(struct store *s, struct finder *f, const struct store_process *p,
			       int64_t *id)
{
	sqlite3_stmt *both[] = {f->find, f->insert};
	for (size_t i = 0; i < 2; i++) {
		sqlite3_bind_int64(both[i], 1, p->pid);
		sqlite3_bind_int64(both[i], 2, p->pid ? p->start_ms : 0);
		bind_text(both[i], 3, p->name, NAME_MAX_KEPT);
		sqlite3_bind_int64(both[i], 4, p->user);
		bind_text(both[i], 5, p->container, NAME_MAX_KEPT);
	}
	bind_text(f->insert, 6, p->pid ? p->command : "", COMMAND_MAX);
	sqlite3_bind_int64(f->insert, 7, f->hour);
	return finder_get(s, f, id);
}

static struct err *intern_processes(struct store *s, const struct store_interval *v, int64_t *ids)
{
	struct finder f = {0};
	struct err *e = open_processes(s, &f, v->end_ms);
	for (size_t i = 0; !e && i < v->process_count; i++)
		e = get_process(s, &f, &v->processes[i], &ids[i + 1]);
	finder_close(s, &f);
	return e;
}

struct err *intern_group(struct store *s, int64_t process, int64_t *group)
{
	struct store_process p = {.command = ""};
	struct finder f = {0};
	sqlite3_stmt *row;
	bool found = false;
	*group = process;
	if (!process)
		return NULL;
	struct err *e = sql_prepare(
		s, &row, "SELECT pid, name, user, container, used FROM process WHERE id = ?", "d",
		process);
	if (!e)
		e = sql_step(s, row, &found);
	if (!e && found && sqlite3_column_int64(row, 0)) {
		p.name = sql_text(row, 1);
		p.user = (uint32_t)sqlite3_column_int64(row, 2);
		p.container = sql_text(row, 3);
		e = open_processes(s, &f, sqlite3_column_int64(row, 4));
		if (!e)
			e = get_process(s, &f, &p, group);
	}
	finder_close(s, &f);
	sql_done(s, row);
	return e;
}

/* ---- images and their functions ---- */

static struct err *intern_images(struct store *s, const struct store_interval *v,
				 const int64_t *processes, int64_t *ids)
{
	struct finder f = {0};
	struct err *e = finder_open(
		s, &f,
		"SELECT id, used FROM image WHERE path = ? AND build_id = ? AND kind = ?"
		" AND process = ?",
		"INSERT INTO image (path, build_id, kind, process, used) VALUES (?, ?, ?, ?, ?)",
		"UPDATE image SET used = ? WHERE id = ?", v->end_ms);
	for (size_t i = 0; !e && i < v->image_count; i++) {
		const struct store_image *m = &v->images[i];
		sqlite3_stmt *both[] = {f.find, f.insert};
		for (size_t k = 0; k < 2; k++) {
			bind_text(both[k], 1, m->path, PROFILE_STRING_MAX);
			bind_text(both[k], 2, m->build_id, NAME_MAX_KEPT);
			sqlite3_bind_int64(both[k], 3, m->kind);
			sqlite3_bind_int64(both[k], 4,
					   m->kind == PROFILE_JIT ? processes[m->process] : 0);
		}
		sqlite3_bind_int64(f.insert, 5, f.hour);
		e = finder_get(s, &f, &ids[i + 1]);
		if (!e && (ids[i + 1] < 1 || ids[i + 1] > PACK_IMAGE_MAX)) {
			s->trouble = STORE_DAMAGED;
			e = err_new("%s: the numbers of images are damaged", s->path);
		}
	}
	finder_close(s, &f);
	return e;
}

/* Code made at run time may change its name; that of a file does not. */
static struct err *intern_symbols(struct store *s, const struct store_interval *v,
				  const int64_t *images)
{
	sqlite3_stmt *insert;
	struct err *e = sql_prepare(
		s, &insert,
		"INSERT INTO symbol (image, start, size, name) VALUES (?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET size = excluded.size, name = excluded.name"
		" WHERE name <> excluded.name OR size <> excluded.size",
		"");
	for (size_t i = 0; !e && i < v->symbol_count; i++) {
		const struct store_symbol *y = &v->symbols[i];
		bool made = v->images[y->image - 1].kind == PROFILE_JIT;
		if (!made && known_note(&s->symbols, images[y->image], y->start))
			continue;
		sqlite3_bind_int64(insert, 1, images[y->image]);
		sqlite3_bind_int64(insert, 2, (int64_t)y->start);
		sqlite3_bind_int64(insert, 3, (int64_t)y->size);
		bind_text(insert, 4, y->name, NAME_MAX_KEPT);
		e = run_once(s, insert);
	}
	sql_done(s, insert);
	return e;
}

struct err *intern_all(struct store *s, const struct store_interval *v, struct numbers *out)
{
	out->images = calloc(v->image_count + 1, sizeof *out->images);
	out->processes = calloc(v->process_count + 1, sizeof *out->processes);
	if (!out->images || !out->processes)
		return err_new("out of memory");
	struct err *e = intern_processes(s, v, out->processes);
	if (!e)
		e = intern_images(s, v, out->processes, out->images);
	return e ? e : intern_symbols(s, v, out->images);
}

/* ---- events ---- */

struct err *intern_event(struct store *s, const struct store_event *v, int64_t *id)
{
	struct err *e = sql_do(s,
			       "INSERT OR IGNORE INTO event (name, unit, period, every, user_only)"
			       " VALUES (?, ?, ?, ?, ?)",
			       "ssuud", v->name, v->unit, v->period, v->every,
			       (int64_t)v->user_only);
	if (e)
		return e;
	return sql_number(s, id, 0,
			  "SELECT id FROM event WHERE name = ? AND unit = ? AND period = ?"
			  " AND every = ? AND user_only = ?",
			  "ssuud", v->name, v->unit, v->period, v->every, (int64_t)v->user_only);
}
