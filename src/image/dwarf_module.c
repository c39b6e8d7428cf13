/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_module.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/dwarf_names.h"
#include "image/dwarf_split.h"
#include "image/dwarf_value.h"
#include "image/internal.h"

struct dwarf_module {
	struct image *image;
	struct image *source; /* where the DWARF is: the image or its debug file */
	struct dwarf_note note;
	uint64_t code_start, code_end;

	pthread_mutex_t lock;
	atomic_bool ready; /* what follows does not change any more */
	struct dwarf_file file;
	struct dwarf_file shared;
	struct image *shared_image;
	struct dwarf_points points;

	pthread_mutex_t split_lock;
	struct dwarf_split *split; /* what is read of .dwo and .dwp files */
};

/* ---- where there is code ---- */

static void extend(struct dwarf_module *m, uint64_t address, uint64_t size)
{
	if (size == 0 || size > UINT64_MAX - address)
		return;
	if (address < m->code_start)
		m->code_start = address;
	if (address + size > m->code_end)
		m->code_end = address + size;
}

/* By sections where they are known: a segment may begin with the file's header, and functions
   that the linker dropped are said to lie at 0. */
static void find_code(struct dwarf_module *m)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
	const struct image_section *sections;
	const struct image_segment *segments;
	size_t count = image_sections(m->image, &sections);
	m->code_start = UINT64_MAX;
	m->code_end = 0;
	for (size_t i = 0; i < count; i++)
		if ((sections[i].flags & flags) == flags)
			extend(m, sections[i].address, sections[i].size);
	if (m->code_start < m->code_end)
		return;
	count = image_segments(m->image, &segments);
	for (size_t i = 0; i < count; i++)
		if (segments[i].executable)
			extend(m, segments[i].address, segments[i].size);
}

/* ---- what dwz moved out ---- */

/* The path in .gnu_debugaltlink or .debug_sup, and the identity that the file must have. */
static const char *shared_link(struct image *image, struct dwarf_span *id)
{
	const struct image_section *section = image_section(image, ".gnu_debugaltlink");
	struct dwarf_cursor c;
	struct dwarf_span span;
	const char *path;
	bool standard = !section;
	if (standard)
		section = image_section(image, ".debug_sup");
	if (!section)
		return NULL;
	span.bytes = image_section_bytes(image, section, &span.size);
	c = dwarf_cursor_at(span, standard ? 2 : 0);
	if (standard && dwarf_take(&c, 1) != 0)
		return NULL; /* it is such a file itself */
	path = dwarf_take_string(&c);
	id->size = standard ? dwarf_take_uleb(&c) : dwarf_left(&c);
	id->bytes = c.at;
	return c.bad || id->size > dwarf_left(&c) || !path[0] ? NULL : path;
}

static bool shared_path(struct image *image, const char *link, char *path, size_t room)
{
	char own[PATH_MAX];
	if (link[0] == '/')
		return snprintf(path, room, "%s", link) < (int)room;
	if (!realpath(image_path(image), own))
		return false;
	*strrchr(own, '/') = 0;
	return snprintf(path, room, "%s/%s", own, link) < (int)room;
}

#define TOP "/usr/lib/debug/" /* where packages put debug files */

/* Where the debug file is from packages that were unpacked elsewhere, so is the shared one. */
static bool shared_path_moved(struct image *image, const char *link, char *path, size_t room)
{
	char own[PATH_MAX], *found;
	if (strncmp(link, TOP, strlen(TOP)) != 0 || !realpath(image_path(image), own))
		return false;
	found = strstr(own, TOP);
	return found && snprintf(path, room, "%.*s%s", (int)(found - own), own, link) < (int)room;
}

/* The user may keep debug files elsewhere. */
static bool shared_path_in_root(const char *link, char *path, size_t room)
{
	return !strncmp(link, TOP, strlen(TOP)) &&
	       snprintf(path, room, "%s/%s", debug_root(), link + strlen(TOP)) < (int)room;
}

/* Debian and others keep it by its identity, too. */
static bool shared_path_by_id(struct dwarf_span id, char *path, size_t room)
{
	char name[2 * BUILD_ID_MAX + 1] = "";
	if (id.size < 2 || id.size > BUILD_ID_MAX)
		return false;
	for (size_t i = 1; i < id.size; i++)
		snprintf(name + 2 * (i - 1), 3, "%02x", id.bytes[i]);
	return snprintf(path, room, "%s/.build-id/%02x/%s.debug", debug_root(), id.bytes[0], name) <
	       (int)room;
}

static struct image *open_shared(const char *path, struct dwarf_span id)
{
	const struct image_section *sup;
	struct image *image;
	const uint8_t *own;
	struct err *e = image_open_shared_debug(path, &image);
	if (e) {
		err_free(e);
		return NULL;
	}
	if (image_build_id(image, &own) == id.size && memcmp(own, id.bytes, id.size) == 0)
		return image;
	sup = image_section(image, ".debug_sup");
	if (sup) {
		struct dwarf_span span;
		struct dwarf_cursor c;
		uint64_t size;
		span.bytes = image_section_bytes(image, sup, &span.size);
		c = dwarf_cursor_at(span, 3);
		dwarf_take_string(&c);
		size = dwarf_take_uleb(&c);
		if (!c.bad && size == id.size && size <= dwarf_left(&c) &&
		    memcmp(c.at, id.bytes, size) == 0)
			return image;
	}
	image_close(image);
	return NULL;
}

static void find_shared(struct dwarf_module *m)
{
	char path[PATH_MAX];
	struct dwarf_span id;
	const char *link = shared_link(m->source, &id);
	if (!link)
		return;
	if (shared_path(m->source, link, path, sizeof path))
		m->shared_image = open_shared(path, id);
	if (!m->shared_image && shared_path_moved(m->source, link, path, sizeof path))
		m->shared_image = open_shared(path, id);
	if (!m->shared_image && shared_path_in_root(link, path, sizeof path))
		m->shared_image = open_shared(path, id);
	if (!m->shared_image && shared_path_by_id(id, path, sizeof path))
		m->shared_image = open_shared(path, id);
	if (!m->shared_image) {
		dwarf_note(&m->note, "%s, which holds a part of its debug information, is missing",
			   link);
		return;
	}
	dwarf_file_init(&m->shared, m->shared_image, false, &m->note);
	dwarf_list_units(&m->shared);
	m->file.shared = &m->shared;
}

/* ---- which unit an address belongs to ---- */

struct indexing {
	struct dwarf_module *module;
	struct dwarf_intervals intervals;
	struct dwarf_ranges ranges; /* of one unit */
	bool failed;
};

static void add_intervals(struct indexing *x, uint32_t unit, uint32_t rank)
{
	for (size_t i = 0; i < x->ranges.count && !x->failed; i++)
		x->failed = !dwarf_intervals_add(&x->intervals, x->ranges.all[i].start,
						 x->ranges.all[i].end, unit, rank);
	x->ranges.count = 0;
}

/* One set of .debug_aranges: a header, then pairs of address and length. */
static void read_address_set(struct indexing *x, struct dwarf_cursor c, const uint8_t *start,
			     uint8_t offset_size)
{
	struct dwarf_unit *unit;
	uint64_t version = dwarf_take(&c, 2), offset = dwarf_take(&c, offset_size);
	uint64_t size = dwarf_take(&c, 1), segment = dwarf_take(&c, 1), address, length;
	if (c.bad || version != 2 || size != 8 || segment != 0)
		return;
	unit = dwarf_unit_at(&x->module->file, offset);
	if (!unit || unit->offset != offset || !unit->has_root)
		return;
	dwarf_skip(&c, (uint64_t) - (c.at - start) & 15); /* pairs are aligned to their size */
	while (dwarf_left(&c) >= 16) {
		address = dwarf_take(&c, 8);
		length = dwarf_take(&c, 8);
		if (address == 0 && length == 0)
			break;
		dwarf_ranges_add(&x->ranges, address, address + length);
	}
	if (x->ranges.count)
		unit->has_addresses = true;
	add_intervals(x, (uint32_t)(unit - x->module->file.units), 1);
}

/* Returns whether there is such a table. */
static bool read_address_table(struct indexing *x)
{
	struct dwarf_span span = dwarf_section(&x->module->file, DWARF_ARANGES);
	struct dwarf_cursor all = dwarf_cursor_at(span, 0), c;
	uint8_t offset_size;
	bool any = false;
	while (!all.bad && dwarf_left(&all) > 0) {
		const uint8_t *start = all.at;
		if (!dwarf_take_unit(&all, &c, &offset_size)) {
			dwarf_note(&x->module->note, ".debug_aranges is broken");
			break;
		}
		read_address_set(x, c, start, offset_size);
		any = true;
	}
	return any;
}

/* Where nobody says which addresses a unit has, its functions do. */
static void read_functions(struct indexing *x, struct dwarf_unit *unit)
{
	const struct dwarf_abbrev *abbrev;
	struct dwarf_walk walk;
	struct dwarf_die die;
	uint32_t depth;
	if (!dwarf_walk_start(&walk, unit, unit->die))
		return;
	while ((abbrev = dwarf_walk_next(&walk, &depth))) {
		if (abbrev->kind == DWARF_BARREN) {
			dwarf_walk_pass_tree(&walk, abbrev);
		} else if (abbrev->kind != DWARF_FUNCTION) {
			dwarf_walk_pass(&walk, abbrev);
		} else {
			dwarf_walk_read(&walk, abbrev, &die);
			if (!walk.c.bad)
				dwarf_ranges_of(unit, &die, &x->ranges);
		}
	}
}

static void read_unit_ranges(struct indexing *x, bool has_table)
{
	struct dwarf_file *file = &x->module->file;
	/* All lists together have no more entries than their sections have bytes. */
	x->ranges.budget = 65536 + 2 * (dwarf_section(file, DWARF_RANGES).size +
					dwarf_section(file, DWARF_RNGLISTS).size);
	for (size_t i = 0; i < file->unit_count && !x->failed; i++) {
		struct dwarf_unit *u = &file->units[i];
		if (!u->has_root)
			continue;
		if (u->has_ranges)
			dwarf_ranges_read(u, u->ranges, &x->ranges);
		else if (u->has_low && u->high)
			dwarf_ranges_add(&x->ranges, u->low, u->high);
		if (!u->has_ranges && !u->high && !u->has_addresses && !has_table &&
		    u->type == DW_UT_compile)
			read_functions(x, u);
		if (x->ranges.count)
			u->has_addresses = true;
		add_intervals(x, (uint32_t)i, 0);
		if (x->ranges.exceeded)
			dwarf_note(&x->module->note, "address ranges of its units are broken");
	}
}

static void make_index(struct dwarf_module *m)
{
	struct indexing x = {.module = m};
	bool has_table;
	x.ranges.code_start = m->code_start;
	x.ranges.code_end = m->code_end;
	has_table = read_address_table(&x);
	read_unit_ranges(&x, has_table);
	free(x.ranges.all);
	if (!dwarf_points_make(&m->points, &x.intervals) || x.failed)
		dwarf_note(&m->note, "its units have too many address ranges");
}

/* ---- open, ready, close ---- */

static bool has_section(const struct image *image, const char *name)
{
	const struct image_section *s = image ? image_section(image, name) : NULL;
	return s && s->size > 0 && s->type != SHT_NOBITS;
}

struct dwarf_module *dwarf_module_open(struct image *image, struct image *debug)
{
	struct dwarf_module *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->image = m->source = image;
	if (has_section(debug, ".debug_info") ||
	    (!has_section(image, ".debug_info") && has_section(debug, ".debug_line")))
		m->source = debug;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->split_lock, NULL);
	find_code(m);
	dwarf_file_init(&m->file, m->source, false, &m->note);
	return m;
}

void dwarf_module_close(struct dwarf_module *m)
{
	if (!m)
		return;
	dwarf_split_free(m->split);
	dwarf_file_free(&m->file);
	if (m->shared_image)
		dwarf_file_free(&m->shared);
	image_close(m->shared_image);
	free(m->points.all);
	free(atomic_load(&m->note.text));
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->split_lock);
	free(m);
}

static void make_ready(struct dwarf_module *m)
{
	if (atomic_load_explicit(&m->ready, memory_order_acquire))
		return;
	pthread_mutex_lock(&m->lock);
	if (!atomic_load_explicit(&m->ready, memory_order_relaxed)) {
		find_shared(m);
		dwarf_list_units(&m->file);
		make_index(m);
		atomic_store_explicit(&m->ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&m->lock);
}

struct dwarf_file *dwarf_module_file(struct dwarf_module *m)
{
	make_ready(m);
	return &m->file;
}

const struct dwarf_points *dwarf_module_points(struct dwarf_module *m)
{
	make_ready(m);
	return &m->points;
}

void dwarf_module_code(const struct dwarf_module *m, uint64_t *start, uint64_t *end)
{
	*start = m->code_start;
	*end = m->code_end;
}

struct dwarf_unit *dwarf_module_full_unit(struct dwarf_module *m, struct dwarf_unit *unit)
{
	struct dwarf_unit *full;
	if (unit->type != DW_UT_skeleton)
		return unit;
	pthread_mutex_lock(&m->split_lock);
	if (!m->split)
		m->split = dwarf_split_new(image_path(m->image), image_path(m->source), &m->note);
	full = m->split ? dwarf_split_find(m->split, unit) : NULL;
	pthread_mutex_unlock(&m->split_lock);
	return full;
}

struct dwarf_note *dwarf_module_note(struct dwarf_module *m)
{
	return &m->note;
}
