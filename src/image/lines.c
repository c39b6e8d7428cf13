/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which table has the rows of an address: that of the unit which has the
 * address (dwarf_module.h); where there are no units, .debug_line itself is
 * read from its start, table by table.
 *
 * Rows are made when first asked for and kept, a bounded number of them: then
 * those of other tables are dropped.
 */
#include "image/lines.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/dwarf_module.h"
#include "image/gotab.h"
#include "image/gotab_lines.h"
#include "image/image.h"
#include "image/lines_files.h"
#include "image/lines_table.h"

#define TABLE_SLOTS 4096
#define TABLES_MAX ((size_t)1 << 20)
#define ROWS_KEPT ((size_t)48 << 20) /* of all tables: 768 MB */

struct lines {
	struct image *image;
	struct dwarf_module *module;
	struct lines_files files;
	struct gotab *go;

	pthread_mutex_t lock;
	struct line_table *slots[TABLE_SLOTS]; /* by offset */
	struct line_table **tables;            /* the same, in the order in which they came */
	size_t table_count, table_room;
	size_t rows_kept, next_dropped;
	uint64_t bytes_read; /* of programs, each table counted once */

	pthread_mutex_t scan_lock; /* where there are no units: */
	atomic_bool scanned;
	struct dwarf_points points; /* from address to table */
};

struct err *lines_open(struct image *image, struct image *debug, struct lines **out)
{
	struct lines *l = calloc(1, sizeof *l);
	*out = l;
	if (!l)
		return err_new("%s: out of memory", image_path(image));
	l->image = image;
	l->module = dwarf_module_open(image, debug);
	l->go = gotab_open(image);
	lines_files_init(&l->files);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->scan_lock, NULL);
	if (l->module)
		return NULL;
	lines_close(l);
	*out = NULL;
	return err_new("%s: out of memory", image_path(image));
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->table_count; i++)
		line_table_free(l->tables[i]);
	free(l->tables);
	free(l->points.all);
	lines_files_free(&l->files);
	gotab_close(l->go);
	dwarf_module_close(l->module);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->scan_lock);
	free(l);
}

struct dwarf_module *lines_module(struct lines *l)
{
	return l->module;
}

struct lines_files *lines_paths(struct lines *l)
{
	return &l->files;
}

const struct gotab *lines_go(const struct lines *l)
{
	return l->go;
}

const char *lines_damage(const struct lines *l)
{
	return atomic_load(&dwarf_module_note(l->module)->text);
}

/* ---- files ---- */

const char *lines_file(const struct lines *l, uint32_t file)
{
	return lines_files_path(&l->files, file);
}

/* Appends "/text" without "./" in front, or just the text where nothing precedes it. */
static bool append(char *path, size_t *length, const char *text)
{
	size_t size;
	if (!text)
		return true;
	while (*length && text[0] == '.' && text[1] == '/') {
		for (text += 2; text[0] == '/'; text++)
			;
	}
	size = strnlen(text, PATH_MAX);
	if (*length + size + 2 > PATH_MAX)
		return false;
	if (size == 0 || (size == 1 && text[0] == '.' && *length))
		return true;
	if (text[0] == '/')
		*length = 0; /* absolute: what precedes it does not count */
	else if (*length && path[*length - 1] != '/')
		path[(*length)++] = '/';
	memcpy(path + *length, text, size);
	*length += size;
	return true;
}

/* From DWARF 5 on directory 0 is the unit's own, in the same words; others are relative to it. */
static bool join(const struct line_table *t, uint64_t directory, const char *name, char *path,
		 size_t *length)
{
	const char *first = t->directory_count ? t->directories[0] : NULL;
	bool same = first && t->directory && strncmp(first, t->directory, PATH_MAX) == 0;
	return append(path, length, t->directory) && (same || append(path, length, first)) &&
	       (directory == 0 || directory >= t->directory_count ||
		append(path, length, t->directories[directory])) &&
	       append(path, length, name) && *length > 0;
}

uint32_t lines_intern(struct line_table *t, uint64_t directory, const char *name)
{
	char path[PATH_MAX];
	size_t length = 0;
	if (!join(t, directory, name, path, &length))
		return 0;
	if (atomic_fetch_sub(&t->text_left, (int64_t)length) < (int64_t)length) {
		dwarf_note(t->file->note, "the files of the line table at %#llx have endless names",
			   (unsigned long long)t->offset);
		return 0;
	}
	return lines_files_number(&t->lines->files, path, length);
}

/* ---- tables ---- */

static struct line_table *add_table(struct lines *l, struct dwarf_file *file, uint64_t offset,
				    const char *directory, uint64_t *next)
{
	struct line_table **slot = &l->slots[offset / 8 % TABLE_SLOTS];
	struct line_table *t;
	if (!ARRAY_ROOM_BELOW(l->tables, l->table_count, l->table_room, TABLES_MAX))
		return NULL;
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->lines = l;
	t->file = file;
	t->offset = offset;
	t->directory = directory;
	pthread_mutex_init(&t->lock, NULL);
	line_table_read(t, next);
	t->next = *slot;
	*slot = t;
	l->tables[l->table_count++] = t;
	return t;
}

static struct line_table *find_table(struct lines *l, struct dwarf_unit *unit)
{
	struct line_table *t = l->slots[unit->lines / 8 % TABLE_SLOTS];
	uint64_t next;
	while (t && (t->offset != unit->lines || t->file != unit->file))
		t = t->next;
	return t ? t : add_table(l, unit->file, unit->lines, unit->directory, &next);
}

/* The unit's table, or NULL. Split units have the one of their skeleton. */
static struct line_table *unit_table(struct lines *l, struct dwarf_unit *unit)
{
	struct line_table *t;
	if (unit->skeleton)
		unit = unit->skeleton;
	t = atomic_load_explicit(&unit->line_table, memory_order_acquire);
	if (t || unit->lines == DWARF_NONE)
		return t;
	dwarf_section(unit->file, DWARF_LINE);
	pthread_mutex_lock(&l->lock);
	t = find_table(l, unit);
	atomic_store_explicit(&unit->line_table, t, memory_order_release);
	pthread_mutex_unlock(&l->lock);
	return t;
}

uint32_t lines_unit_file(struct lines *l, struct dwarf_unit *unit, uint64_t number)
{
	struct line_table *t = unit_table(l, unit);
	return t ? line_table_file(t, number) : 0;
}

/* Drops rows of tables that nobody is reading. */
static void make_room(struct lines *l, const struct line_table *but)
{
	for (size_t i = 0; i < l->table_count && l->rows_kept > ROWS_KEPT; i++) {
		struct line_table *t = l->tables[l->next_dropped++ % l->table_count];
		if (t == but || pthread_mutex_trylock(&t->lock) != 0)
			continue;
		if (t->has_rows) {
			l->rows_kept -= t->row_count;
			line_table_drop_rows(t);
		}
		pthread_mutex_unlock(&t->lock);
	}
}

/* The caller holds the table's lock. Tables that lie in each other would cost many times the
   section. */
static void need_rows(struct lines *l, struct line_table *t)
{
	struct dwarf_span section = dwarf_section(t->file, DWARF_LINE);
	bool allowed;
	if (t->has_rows)
		return;
	pthread_mutex_lock(&l->lock);
	if (!t->was_read)
		l->bytes_read += t->program.size;
	t->was_read = true;
	allowed = l->bytes_read <= 2 * (uint64_t)section.size;
	pthread_mutex_unlock(&l->lock);
	if (!allowed) {
		dwarf_note(t->file->note, "line tables overlap");
		t->has_rows = true;
		return;
	}
	line_table_make_rows(t);
	pthread_mutex_lock(&l->lock);
	l->rows_kept += t->row_count;
	make_room(l, t);
	pthread_mutex_unlock(&l->lock);
}

/* ---- without units ---- */

static void add_sequences(struct lines *l, struct line_table *t, struct dwarf_intervals *in)
{
	pthread_mutex_lock(&t->lock);
	need_rows(l, t);
	for (size_t i = 0; i < t->sequence_count; i++)
		dwarf_intervals_add(in, t->sequences[i].start, t->sequences[i].end,
				    (uint32_t)(l->table_count - 1), 0);
	pthread_mutex_unlock(&t->lock);
}

/* A broken table is not kept: it may be a mere four bytes. */
static void drop_last(struct lines *l)
{
	struct line_table *t = l->tables[--l->table_count];
	l->slots[t->offset / 8 % TABLE_SLOTS] = t->next;
	line_table_free(t);
}

/* Nobody else knows of any table yet: without units there are no others. */
static void scan_tables(struct lines *l)
{
	struct dwarf_file *file = dwarf_module_file(l->module);
	struct dwarf_span section = dwarf_section(file, DWARF_LINE);
	struct dwarf_intervals in = {0};
	uint64_t next;
	for (uint64_t at = 0; at < section.size; at = next) {
		struct line_table *t;
		t = add_table(l, file, at, NULL, &next);
		if (!t)
			break;
		if (t->good)
			add_sequences(l, t, &in);
		else
			drop_last(l);
		if (next <= at)
			break;
	}
	dwarf_points_make(&l->points, &in);
}

/* What says where an address belongs: units, or tables where there are none. */
static const struct dwarf_points *find_points(struct lines *l, bool *by_unit)
{
	*by_unit = dwarf_module_file(l->module)->unit_count > 0;
	if (*by_unit)
		return dwarf_module_points(l->module);
	if (!atomic_load_explicit(&l->scanned, memory_order_acquire)) {
		pthread_mutex_lock(&l->scan_lock);
		if (!atomic_load_explicit(&l->scanned, memory_order_relaxed))
			scan_tables(l);
		atomic_store_explicit(&l->scanned, true, memory_order_release);
		pthread_mutex_unlock(&l->scan_lock);
	}
	return &l->points;
}

static struct line_table *table_of(struct lines *l, uint32_t what, bool by_unit)
{
	struct line_table *t;
	if (what == POINT_NOTHING)
		return NULL;
	if (by_unit)
		return unit_table(l, &dwarf_module_file(l->module)->units[what]);
	pthread_mutex_lock(&l->lock);
	t = l->tables[what];
	pthread_mutex_unlock(&l->lock);
	return t;
}

/* ---- rows ---- */

struct found {
	struct line_row *rows;
	size_t count, room;
	bool failed;
};

static void add_row(struct found *f, const struct line_table *t, const struct line_sequence *s,
		    size_t at, uint64_t start, uint64_t end)
{
	const struct packed_row *p = &t->rows[s->first + at];
	uint64_t from = s->start + p->offset;
	uint64_t to = at + 1 < s->count ? s->start + p[1].offset : s->end;
	if (!ARRAY_ROOM(f->rows, f->count, f->room)) {
		f->failed = true;
		return;
	}
	f->rows[f->count++] = (struct line_row){
		.address = from > start ? from : start,
		.end = to < end ? to : end,
		.file = p->file,
		.line = p->line,
		.column = p->column,
		.statement = p->rest & 1,
		.discriminator = p->rest >> 1,
	};
}

/* The last row at or before `offset` of a sequence. */
static size_t row_before(const struct line_table *t, const struct line_sequence *s, uint64_t offset)
{
	size_t after = FIRST_NOT(i, s->count, t->rows[s->first + i].offset <= offset);
	return after ? after - 1 : 0;
}

/* The rows that the table has for [start, end). */
static void collect(struct found *f, const struct line_table *t, uint64_t start, uint64_t end)
{
	size_t found = FIRST_NOT(i, t->sequence_count, t->sequences[i].end <= start);
	for (; found < t->sequence_count && t->sequences[found].start < end && !f->failed;
	     found++) {
		const struct line_sequence *s = &t->sequences[found];
		size_t at = s->start < start ? row_before(t, s, start - s->start) : 0;
		for (; at < s->count && s->start + t->rows[s->first + at].offset < end; at++)
			add_row(f, t, s, at, start, end);
	}
}

struct err *lines_range(struct lines *l, uint64_t start, uint64_t end, struct line_row **rows,
			size_t *count)
{
	struct found f = {0};
	bool by_unit;
	const struct dwarf_points *points = find_points(l, &by_unit);
	size_t at = dwarf_points_before(points, start);
	for (at = at ? at - 1 : 0; at < points->count && points->all[at].start < end; at++) {
		uint64_t from = points->all[at].start, to = end;
		struct line_table *t = table_of(l, points->all[at].what, by_unit);
		if (at + 1 < points->count && points->all[at + 1].start < end)
			to = points->all[at + 1].start;
		from = from > start ? from : start;
		if (!t || from >= to)
			continue;
		pthread_mutex_lock(&t->lock);
		need_rows(l, t);
		collect(&f, t, from, to);
		pthread_mutex_unlock(&t->lock);
	}
	if (!f.count && !f.failed && l->go)
		f.failed = !gotab_rows(l->go, &l->files, start, end, &f.rows, &f.count);
	*rows = f.rows;
	*count = f.count;
	if (!f.failed)
		return NULL;
	free(f.rows);
	*rows = NULL;
	*count = 0;
	return err_new("%s: out of memory", image_path(l->image));
}
