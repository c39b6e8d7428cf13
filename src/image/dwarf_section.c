/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a file with DWARF, and the tables of abbreviations that were read from it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "image/dwarf_scopes.h"
#include "image/dwarf_unit.h"
#include "image/internal.h"

#define NOTE_MAX 300

void dwarf_note(struct dwarf_note *note, const char *format, ...)
{
	char *text = NULL, *none = NULL;
	va_list args;
	if (!note || atomic_load(&note->text))
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (!text)
		return;
	/* It may quote a file: no line end, no control character, no endless name. */
	if (strlen(text) > NOTE_MAX)
		text[NOTE_MAX] = 0;
	utf8_tame(text);
	if (!atomic_compare_exchange_strong(&note->text, &none, text))
		free(text);
}

void dwarf_file_init(struct dwarf_file *file, struct image *image, bool split,
		     struct dwarf_note *note)
{
	memset(file, 0, sizeof *file);
	file->image = image;
	file->split = split;
	file->note = note;
	pthread_mutex_init(&file->lock, NULL);
}

void dwarf_file_free(struct dwarf_file *file)
{
	for (size_t i = 0; i < file->abbrev_slots; i++)
		dwarf_abbrevs_free(file->abbrevs[i]);
	free(file->abbrevs);
	for (size_t i = 0; i < file->unit_count; i++)
		dwarf_scopes_free(atomic_load(&file->units[i].scopes));
	free(file->units);
	for (int i = 0; i < DWARF_SECTIONS; i++)
		free(file->owned[i]);
	pthread_mutex_destroy(&file->lock);
}

/* ---- sections ---- */

static const struct image_section *find_section(const struct dwarf_file *file,
						enum dwarf_section which)
{
	static const char *const names[] = {
		".debug_info",        ".debug_abbrev",  ".debug_str",      ".debug_line_str",
		".debug_str_offsets", ".debug_addr",    ".debug_ranges",   ".debug_rnglists",
		".debug_line",        ".debug_aranges", ".debug_cu_index",
	};
	char split[64];
	if (!file->image)
		return NULL;
	if (!file->split || which == DWARF_CU_INDEX)
		return image_section(file->image, names[which]);
	snprintf(split, sizeof split, "%s.dwo", names[which]);
	return image_section(file->image, split);
}

static void load(struct dwarf_file *file, enum dwarf_section which, bool copy)
{
	const struct image_section *section = find_section(file, which);
	struct dwarf_span *part = &file->parts[which];
	if (!section)
		return;
	if (copy)
		part->bytes = file->owned[which] = image_section_copy(file->image, section,
								      &part->size);
	else
		part->bytes = image_section_bytes(file->image, section, &part->size);
	if (!part->bytes && section->size && section->type != SHT_NOBITS)
		dwarf_note(file->note, "section %s cannot be read", section->name);
}

struct dwarf_span dwarf_section(struct dwarf_file *file, enum dwarf_section which)
{
	if (!atomic_load_explicit(&file->part_ready[which], memory_order_acquire)) {
		pthread_mutex_lock(&file->lock);
		if (!atomic_load_explicit(&file->part_ready[which], memory_order_relaxed)) {
			load(file, which, false);
			atomic_store_explicit(&file->part_ready[which], true, memory_order_release);
		}
		pthread_mutex_unlock(&file->lock);
	}
	return file->parts[which];
}

void dwarf_file_detach(struct dwarf_file *file)
{
	for (int i = 0; i < DWARF_SECTIONS; i++) {
		load(file, (enum dwarf_section)i, true);
		atomic_store(&file->part_ready[i], true);
	}
	file->image = NULL;
}

/* ---- abbreviations ---- */

static bool same_shape(struct dwarf_shape a, struct dwarf_shape b)
{
	return (a.version <= 2) == (b.version <= 2) && a.address_size == b.address_size &&
	       a.offset_size == b.offset_size;
}

static struct dwarf_abbrevs **abbrevs_slot(struct dwarf_abbrevs **slots, size_t count,
					   uint64_t offset, struct dwarf_shape shape)
{
	size_t at = (size_t)((offset * 0x9e3779b97f4a7c15ull) >> 32);
	for (;; at++) {
		struct dwarf_abbrevs **slot = &slots[at & (count - 1)];
		if (!*slot || ((*slot)->offset == offset && same_shape((*slot)->shape, shape)))
			return slot;
	}
}

static bool grow_slots(struct dwarf_file *file)
{
	size_t count = file->abbrev_slots ? file->abbrev_slots * 2 : 64;
	struct dwarf_abbrevs **slots;
	if (file->abbrev_count * 2 < file->abbrev_slots)
		return true;
	slots = calloc(count, sizeof(struct dwarf_abbrevs *));
	if (!slots)
		return false;
	for (size_t i = 0; i < file->abbrev_slots; i++) {
		struct dwarf_abbrevs *a = file->abbrevs[i];
		if (a)
			*abbrevs_slot(slots, count, a->offset, a->shape) = a;
	}
	free(file->abbrevs);
	file->abbrevs = slots;
	file->abbrev_slots = count;
	return true;
}

/* Several units may share a table. Tables that lie in each other are nobody's: without a bound on
   all that is read each unit could make one of the whole section. */
static struct dwarf_abbrevs *find_abbrevs(struct dwarf_unit *unit, struct dwarf_span section)
{
	struct dwarf_file *file = unit->file;
	struct dwarf_abbrevs **slot;
	if (!grow_slots(file))
		return NULL;
	slot = abbrevs_slot(file->abbrevs, file->abbrev_slots, unit->abbrev_offset, unit->shape);
	if (*slot)
		return *slot;
	if (file->abbrev_bytes > 4 * (uint64_t)section.size + 65536) {
		dwarf_note(file->note, "tables of abbreviations overlap");
		return NULL;
	}
	*slot = dwarf_abbrevs_read(section, unit->abbrev_offset, unit->shape, 0);
	if (*slot) {
		file->abbrev_count++;
		file->abbrev_bytes += (*slot)->bytes;
		if ((*slot)->broken)
			dwarf_note(file->note, "abbreviations of the unit at %#llx are broken",
				   (unsigned long long)unit->offset);
	}
	return *slot;
}

const struct dwarf_abbrevs *dwarf_unit_abbrevs(struct dwarf_unit *unit)
{
	struct dwarf_abbrevs *abbrevs = atomic_load(&unit->abbrevs);
	struct dwarf_span section;
	if (abbrevs)
		return abbrevs;
	section = dwarf_section(unit->file, DWARF_ABBREV);
	pthread_mutex_lock(&unit->file->lock);
	abbrevs = atomic_load(&unit->abbrevs);
	if (!abbrevs) {
		abbrevs = find_abbrevs(unit, section);
		atomic_store(&unit->abbrevs, abbrevs);
	}
	pthread_mutex_unlock(&unit->file->lock);
	return abbrevs;
}
