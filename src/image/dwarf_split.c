/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_split.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/dwarf_names.h"
#include "image/dwarf_scopes.h"
#include "image/dwarf_unit.h"
#include "image/internal.h"

#define COLUMNS_MAX 16
#define PROBES_MAX 1024       /* in the index of a package, whose table is never nearly full */
#define HEADERS_MAX (1 << 22) /* of units in .dwo files, each skeleton looked for among them */

struct split_file { /* a .dwo file that was looked for */
	struct split_file *next;
	char *path;
	bool loaded;
	struct dwarf_file file;
};

struct split_unit { /* that was asked for */
	struct split_unit *next;
	const struct dwarf_unit *skeleton;
	bool found;
	struct dwarf_unit unit;
};

#define BUCKETS 1024

struct dwarf_split {
	char *program, *debug;
	struct dwarf_note *note;
	bool package_sought, has_package;
	struct dwarf_file package;
	struct split_file *files[BUCKETS];
	struct split_unit *units[BUCKETS];
	unsigned headers; /* that were read */
};

struct dwarf_split *dwarf_split_new(const char *program, const char *debug, struct dwarf_note *note)
{
	struct dwarf_split *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->note = note;
	s->program = strdup(program);
	s->debug = strdup(debug);
	if (!s->program || !s->debug) {
		dwarf_split_free(s);
		return NULL;
	}
	return s;
}

void dwarf_split_free(struct dwarf_split *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (s->files[i]) {
			struct split_file *next = s->files[i]->next;
			if (s->files[i]->loaded)
				dwarf_file_free(&s->files[i]->file);
			free(s->files[i]->path);
			free(s->files[i]);
			s->files[i] = next;
		}
		while (s->units[i]) {
			struct split_unit *next = s->units[i]->next;
			dwarf_scopes_free(atomic_load(&s->units[i]->unit.scopes));
			free(s->units[i]);
			s->units[i] = next;
		}
	}
	if (s->has_package)
		dwarf_file_free(&s->package);
	free(s->program);
	free(s->debug);
	free(s);
}

/* Copies the sections of a file, so that thousands of them need not stay open. */
static bool load_file(struct dwarf_file *file, const char *path, struct dwarf_note *note)
{
	struct image *image;
	struct err *e = image_open_shared_debug(path, &image);
	if (e) {
		err_free(e);
		return false;
	}
	dwarf_file_init(file, image, true, note);
	dwarf_file_detach(file);
	image_close(image);
	return true;
}

/* What a split unit gets from its skeleton, and its own DIE. */
static void finish_unit(struct dwarf_unit *unit, struct dwarf_unit *skeleton)
{
	unit->skeleton = skeleton;
	dwarf_read_root(unit);
	if (!unit->directory)
		unit->directory = skeleton->directory;
	unit->split_name = NULL;
}

/* ---- packages ---- */

static void seek_package(struct dwarf_split *s)
{
	char path[PATH_MAX];
	s->package_sought = true;
	if (snprintf(path, sizeof path, "%s.dwp", s->program) < (int)sizeof path)
		s->has_package = load_file(&s->package, path, s->note);
	if (!s->has_package && snprintf(path, sizeof path, "%s.dwp", s->debug) < (int)sizeof path)
		s->has_package = load_file(&s->package, path, s->note);
}

struct package_index {
	struct dwarf_span span;
	uint32_t version, columns, units, slots;
	uint64_t table, offsets; /* in the section */
};

static uint64_t word(const struct package_index *x, uint64_t at, size_t size)
{
	struct dwarf_cursor c = dwarf_cursor_at(x->span, at);
	return dwarf_take(&c, size);
}

static bool read_index(struct package_index *x, struct dwarf_span span)
{
	uint64_t needed;
	x->span = span;
	x->version = (uint32_t)word(x, 0, 4); /* two bytes and padding in DWARF 5 */
	x->columns = (uint32_t)word(x, 4, 4);
	x->units = (uint32_t)word(x, 8, 4);
	x->slots = (uint32_t)word(x, 12, 4);
	if ((x->version != 2 && x->version != 5) || x->columns > COLUMNS_MAX || x->slots == 0 ||
	    (x->slots & (x->slots - 1)))
		return false;
	x->table = 16 + 12 * (uint64_t)x->slots;
	x->offsets = x->table + 4 * (uint64_t)x->columns;
	needed = x->offsets + 8 * (uint64_t)x->columns * x->units;
	return needed <= span.size;
}

/* The row of a unit, from 1; 0: not there. */
static uint32_t find_row(const struct package_index *x, uint64_t id)
{
	uint32_t mask = x->slots - 1, slot = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;
	for (uint32_t i = 0; i < x->slots && i < PROBES_MAX; i++, slot = (slot + step) & mask) {
		uint32_t row = (uint32_t)word(x, 16 + 8 * (uint64_t)x->slots + 4 * (uint64_t)slot,
					      4);
		if (row == 0)
			return 0;
		if (word(x, 16 + 8 * (uint64_t)slot, 8) == id)
			return row <= x->units ? row : 0;
	}
	return 0;
}

/* Where the unit's part of a section is; false: it has none. */
static bool find_part(const struct package_index *x, uint32_t row, uint32_t which, uint64_t *start)
{
	for (uint32_t i = 0; i < x->columns; i++) {
		if (word(x, x->table + 4 * (uint64_t)i, 4) != which)
			continue;
		*start = word(x, x->offsets + 4 * ((uint64_t)(row - 1) * x->columns + i), 4);
		return true;
	}
	return false;
}

static bool find_in_package(struct dwarf_split *s, struct dwarf_unit *skeleton,
			    struct dwarf_unit *out)
{
	struct package_index x;
	uint64_t start, next;
	uint32_t row;
	if (!s->package_sought)
		seek_package(s);
	if (!s->has_package || !read_index(&x, dwarf_section(&s->package, DWARF_CU_INDEX)))
		return false;
	row = find_row(&x, skeleton->split_id);
	if (!row || !find_part(&x, row, DW_SECT_INFO, &start) ||
	    !dwarf_read_header(&s->package, start, out, &next))
		return false;
	if (find_part(&x, row, DW_SECT_ABBREV, &start))
		out->abbrev_offset += start;
	if (find_part(&x, row, DW_SECT_STR_OFFSETS, &start))
		out->strings_base = start + (out->shape.version < 5        ? 0
					     : out->shape.offset_size == 8 ? 16
									   : 8);
	if (x.version == 5 && find_part(&x, row, DW_SECT_RNGLISTS, &start))
		out->ranges_start = start;
	finish_unit(out, skeleton);
	return out->has_root && out->split_id == skeleton->split_id;
}

/* ---- .dwo files ---- */

static bool find_in_file(struct dwarf_split *s, struct dwarf_file *file,
			 struct dwarf_unit *skeleton, struct dwarf_unit *out)
{
	uint64_t at = 0, next;
	for (; s->headers++ < HEADERS_MAX && dwarf_read_header(file, at, out, &next); at = next) {
		if (out->type != DW_UT_split_type && out->type != DW_UT_type) {
			finish_unit(out, skeleton);
			if (out->has_root && out->split_id == skeleton->split_id)
				return true;
		}
		if (next <= at)
			break;
	}
	return false;
}

/* The file with this path, read once; NULL: it cannot be. */
static struct dwarf_file *file_at(struct dwarf_split *s, const char *path)
{
	struct split_file **bucket, *file;
	size_t hash = 5381;
	for (const char *c = path; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	bucket = &s->files[hash % BUCKETS];
	for (file = *bucket; file; file = file->next)
		if (strcmp(file->path, path) == 0)
			return file->loaded ? &file->file : NULL;
	file = calloc(1, sizeof *file);
	if (!file)
		return NULL;
	file->path = strdup(path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	file->loaded = load_file(&file->file, path, s->note);
	file->next = *bucket;
	*bucket = file;
	return file->loaded ? &file->file : NULL;
}

static bool try_path(struct dwarf_split *s, const char *path, struct dwarf_unit *skeleton,
		     struct dwarf_unit *out)
{
	struct dwarf_file *file = file_at(s, path);
	return file && find_in_file(s, file, skeleton, out);
}

/* Where the compiler wrote it; else beside the program, as after a move of the whole folder. */
static bool find_beside(struct dwarf_split *s, struct dwarf_unit *skeleton, struct dwarf_unit *out)
{
	const char *name = skeleton->split_name, *base;
	char path[PATH_MAX], own[PATH_MAX];
	if (name[0] == '/' || !skeleton->directory) {
		if (try_path(s, name, skeleton, out))
			return true;
	} else if (snprintf(path, sizeof path, "%s/%s", skeleton->directory, name) <
			   (int)sizeof path &&
		   try_path(s, path, skeleton, out)) {
		return true;
	}
	if (!realpath(s->program, own))
		return false;
	*strrchr(own, '/') = 0;
	if (name[0] != '/' && snprintf(path, sizeof path, "%s/%s", own, name) < (int)sizeof path &&
	    try_path(s, path, skeleton, out))
		return true;
	base = strrchr(name, '/');
	return base && snprintf(path, sizeof path, "%s%s", own, base) < (int)sizeof path &&
	       try_path(s, path, skeleton, out);
}

struct dwarf_unit *dwarf_split_find(struct dwarf_split *s, struct dwarf_unit *skeleton)
{
	struct split_unit **bucket = &s->units[skeleton->offset / 16 % BUCKETS], *u;
	for (u = *bucket; u; u = u->next)
		if (u->skeleton == skeleton)
			return u->found ? &u->unit : NULL;
	u = calloc(1, sizeof *u);
	if (!u || !skeleton->split_name) {
		free(u);
		return NULL;
	}
	u->skeleton = skeleton;
	u->found = find_in_package(s, skeleton, &u->unit) || find_beside(s, skeleton, &u->unit);
	if (!u->found)
		dwarf_note(s->note, "%s, which holds a unit's debug information, is missing",
			   skeleton->split_name);
	u->next = *bucket;
	*bucket = u;
	return u->found ? &u->unit : NULL;
}
