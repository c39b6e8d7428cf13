/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a line table: how its program is to be read, directories and files. */
#include "image/lines_table.h"

#include <stdlib.h>

#include "image/dwarf_module.h"
#include "image/dwarf_names.h"
#include "image/dwarf_value.h"

#define FORMATS_MAX 32

/* ---- files, DWARF 5 ---- */

struct entry_format {
	uint64_t what[FORMATS_MAX], form[FORMATS_MAX];
	size_t count;
};

static bool read_format(struct dwarf_cursor *c, struct entry_format *format)
{
	format->count = dwarf_take(c, 1);
	if (format->count > FORMATS_MAX)
		return false;
	for (size_t i = 0; i < format->count; i++) {
		format->what[i] = dwarf_take_uleb(c);
		format->form[i] = dwarf_take_uleb(c);
	}
	return !c->bad;
}

static void take_number(struct dwarf_cursor *c, uint64_t form, struct dwarf_shape shape,
			uint64_t *out)
{
	uint32_t size;
	enum dwarf_how how = dwarf_form_how(form, shape, &size);
	if (how == HOW_LEB)
		*out = dwarf_take_uleb(c);
	else if (how == HOW_FIXED && size <= 8)
		*out = dwarf_take(c, size);
	else
		dwarf_form_skip(c, form, shape);
}

static void take_text(struct line_table *t, struct dwarf_cursor *c, uint64_t form,
		      struct dwarf_shape shape, const char **out)
{
	/* Strings by index would need the unit: nobody writes them here. */
	struct dwarf_unit unit = {.file = t->file, .shape = shape, .strings_base = DWARF_NONE};
	struct dwarf_value value = {.form = (uint16_t)form};

	if (form == DW_FORM_string)
		value.raw = (uintptr_t)dwarf_take_string(c);
	else
		take_number(c, form, shape, &value.raw);
	*out = c->bad ? NULL : dwarf_string_of(&unit, value);
}

static void take_entry(struct line_table *t, struct dwarf_cursor *c,
		       const struct entry_format *format, struct line_file *out)
{
	struct dwarf_shape shape = {t->version, t->address_size, t->offset_size};
	for (size_t i = 0; i < format->count && !c->bad; i++) {
		if (format->what[i] == DW_LNCT_path)
			take_text(t, c, format->form[i], shape, &out->name);
		else if (format->what[i] == DW_LNCT_directory_index)
			take_number(c, format->form[i], shape, &out->directory);
		else
			dwarf_form_skip(c, format->form[i], shape);
	}
}

/* A table of entries takes at least a byte each. */
static bool read_count(struct dwarf_cursor *c, const struct entry_format *format, size_t *count)
{
	uint64_t said = dwarf_take_uleb(c);
	if (c->bad || said > dwarf_left(c) || (said && format->count == 0))
		return false;
	*count = said;
	return true;
}

static bool read_entries(struct line_table *t, struct dwarf_cursor *c)
{
	struct entry_format format;
	struct line_file entry;
	if (!read_format(c, &format) || !read_count(c, &format, &t->directory_count))
		return false;
	t->directories = calloc(t->directory_count + 1, sizeof *t->directories);
	for (size_t i = 0; t->directories && i < t->directory_count && !c->bad; i++) {
		entry = (struct line_file){0};
		take_entry(t, c, &format, &entry);
		t->directories[i] = entry.name;
	}
	if (!t->directories || !read_format(c, &format) || !read_count(c, &format, &t->file_count))
		return false;
	t->files = calloc(t->file_count + 1, sizeof *t->files);
	for (size_t i = 0; t->files && i < t->file_count && !c->bad; i++) {
		take_entry(t, c, &format, &t->files[i]);
		atomic_init(&t->files[i].number, LINE_FILE_UNKNOWN);
	}
	return t->files && !c->bad;
}

/* ---- files, before DWARF 5 ---- */

/* Counts strings up to an empty one; those of files have three numbers each. */
static bool count_strings(struct dwarf_cursor c, bool files, size_t *count)
{
	const char *text;
	*count = 0;
	while ((text = dwarf_take_string(&c)) && text[0]) {
		for (int i = 0; files && i < 3; i++)
			dwarf_take_uleb(&c);
		++*count;
	}
	return !c.bad;
}

/* Directory 0 is the unit's own, files count from 1: their places stay empty. */
static bool read_old_lists(struct line_table *t, struct dwarf_cursor *c)
{
	if (!count_strings(*c, false, &t->directory_count))
		return false;
	t->directory_count++;
	t->directories = calloc(t->directory_count, sizeof *t->directories);
	for (size_t i = 1; t->directories && i < t->directory_count; i++)
		t->directories[i] = dwarf_take_string(c);
	dwarf_skip(c, 1);
	if (!t->directories || !count_strings(*c, true, &t->file_count))
		return false;
	t->file_count++;
	t->files = calloc(t->file_count, sizeof *t->files);
	for (size_t i = 1; t->files && i < t->file_count; i++) {
		t->files[i].name = dwarf_take_string(c);
		t->files[i].directory = dwarf_take_uleb(c);
		dwarf_take_uleb(c); /* when it was changed */
		dwarf_take_uleb(c); /* its size */
		atomic_init(&t->files[i].number, LINE_FILE_UNKNOWN);
	}
	return t->files && !c->bad;
}

/* ---- the header ---- */

static bool read_fields(struct line_table *t, struct dwarf_cursor *c)
{
	const uint8_t *program;
	uint64_t length;
	t->version = (uint16_t)dwarf_take(c, 2);
	if (c->bad || t->version < 2 || t->version > 5)
		return false;
	t->address_size = 8;
	if (t->version >= 5) {
		t->address_size = (uint8_t)dwarf_take(c, 1);
		dwarf_skip(c, 1); /* size of segment selectors */
	}
	length = dwarf_take(c, t->offset_size);
	if (c->bad || length > dwarf_left(c))
		return false;
	program = c->at + length;
	t->program = (struct dwarf_span){program, (size_t)(c->end - program)};
	t->minimum = (uint8_t)dwarf_take(c, 1);
	if (t->version >= 4)
		dwarf_skip(c, 1); /* operations per instruction: 1 on our CPUs */
	t->statement = dwarf_take(c, 1) != 0;
	t->line_base = (int8_t)dwarf_take(c, 1);
	t->line_range = (uint8_t)dwarf_take(c, 1);
	t->opcode_base = (uint8_t)dwarf_take(c, 1);
	t->operands = c->at;
	if (!dwarf_skip(c, t->opcode_base ? t->opcode_base - 1u : 0) || c->at > program)
		return false;
	c->end = program;
	return t->line_range != 0 && t->opcode_base != 0;
}

void line_table_read(struct line_table *t, uint64_t *next)
{
	struct dwarf_span section = dwarf_section(t->file, DWARF_LINE);
	struct dwarf_cursor all = dwarf_cursor_at(section, t->offset), c;
	*next = 0;
	if (dwarf_take_unit(&all, &c, &t->offset_size)) {
		*next = (uint64_t)(all.at - section.bytes);
		atomic_init(&t->text_left, 65536 + 64 * (int64_t)(*next - t->offset));
		t->good = read_fields(t, &c) &&
			  (t->version >= 5 ? read_entries(t, &c) : read_old_lists(t, &c));
	}
	if (!t->good) {
		t->file_count = t->directory_count = 0;
		dwarf_note(t->file->note, "the line table at %#llx is broken",
			   (unsigned long long)t->offset);
	}
}

void line_table_free(struct line_table *t)
{
	if (!t)
		return;
	line_table_drop_rows(t);
	free(t->directories);
	free(t->files);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- paths ---- */

uint32_t line_table_file(struct line_table *t, uint64_t number)
{
	struct line_file *f;
	uint32_t known;
	if (number >= t->file_count)
		return 0;
	f = &t->files[number];
	known = atomic_load_explicit(&f->number, memory_order_acquire);
	if (known != LINE_FILE_UNKNOWN)
		return known;
	known = 0;
	if (f->name && f->name[0])
		known = lines_intern(t, f->directory, f->name);
	atomic_store_explicit(&f->number, known, memory_order_release);
	return known;
}
