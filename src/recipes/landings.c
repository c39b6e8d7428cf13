/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exception tables (.gcc_except_table, "LSDA") of C++, Rust and others: per
 * procedure a list of call sites, each with where a throw from it goes on.
 *
 *     LPStart encoding [LPStart]   what landing pads count from, else the procedure
 *     types' encoding [offset]     not needed here
 *     call sites' encoding, size   then: start, length, landing pad or 0, action
 */
#include "recipes/cfi.h"
#include <stdlib.h>
#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/landings.h"

/* Where no section says how large the tables are. */
#define TABLES_SIZE_DEFAULT (16u << 20)
#define SITE_SIZE_MIN 4

static bool landing_push(struct landings *landings, struct cfi_landing landing)
{
	if (!ARRAY_ROOM(landings->items, landings->count, landings->capacity)) {
		landings->out_of_memory = true;
		return false;
	}
	landings->items[landings->count++] = landing;
	return true;
}

/* Reads the table's head and leaves the cursor at the call sites. */
static bool table_head(struct cursor *cursor, const struct cfi_bases *bases, uint64_t *pads_base,
		       uint8_t *encoding)
{
	uint8_t start_encoding = cursor_u8(cursor), types_encoding;
	struct cursor sites;
	*pads_base = bases->function;
	if (start_encoding != CFI_POINTER_OMITTED)
		*pads_base = cfi_pointer(cursor, start_encoding, bases);
	types_encoding = cursor_u8(cursor);
	if (types_encoding != CFI_POINTER_OMITTED)
		cursor_uleb(cursor);
	*encoding = cursor_u8(cursor);
	sites = cursor_block(cursor, cursor_uleb(cursor));
	if (cursor->bad || sites.bad || *encoding & 0xf0)
		return false;
	*cursor = sites;
	return true;
}

static bool site_is_valid(const struct landings *landings, const struct cfi_entry *entry,
			  const struct cfi_landing *site)
{
	return site->start >= entry->start && site->end > site->start && site->end <= entry->end &&
	       cfi_is_code(landings->segments, landings->segment_count, site->landing_pad,
			   site->landing_pad + 1);
}

void landings_read_table(struct landings *landings, const struct cfi_entry *entry,
			 const uint8_t *bytes, size_t size)
{
	struct cursor cursor = {bytes, bytes + size, false};
	struct cfi_bases bases = {.bytes = bytes, .address = entry->lsda, .function = entry->start};
	uint64_t pads_base;
	uint8_t encoding;
	if (!table_head(&cursor, &bases, &pads_base, &encoding))
		return;
	while (cursor_left(&cursor) && landings->sites_left) {
		uint64_t start = cfi_pointer(&cursor, encoding, &bases);
		uint64_t length = cfi_pointer(&cursor, encoding, &bases);
		uint64_t pad = cfi_pointer(&cursor, encoding, &bases);
		struct cfi_landing site = {entry->start + start, entry->start + start + length,
					   pads_base + pad};
		cursor_uleb(&cursor); /* action */
		landings->sites_left--;
		if (cursor.bad)
			return;
		if (pad && site_is_valid(landings, entry, &site) && !landing_push(landings, site))
			return;
	}
}

static bool take_landings(void *context, const struct cfi_entry *entry)
{
	struct landings *landings = context;
	const uint8_t *bytes;
	size_t size;
	if (!entry->lsda)
		return true;
	bytes = image_bytes_at(landings->image, entry->lsda, &size);
	if (bytes)
		landings_read_table(landings, entry, bytes, size);
	return !landings->out_of_memory && landings->sites_left;
}

static int landing_compare(const void *left, const void *right)
{
	const struct cfi_landing *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->landing_pad < b->landing_pad ? -1 : a->landing_pad > b->landing_pad;
}

void landings_sort(struct landings *landings)
{
	for (size_t i = 1; i < landings->count; i++) {
		if (landing_compare(&landings->items[i - 1], &landings->items[i]) > 0) {
			qsort(landings->items, landings->count, sizeof *landings->items,
			      landing_compare);
			return;
		}
	}
}

static bool landings_collect(struct landings *landings, const struct cfi_section *section)
{
	struct cfi_stats stats = {0};
	struct cfi_machine machine;
	struct rows rows;
	bool done;
	rows_init(&rows);
	cfi_machine_init(&machine, &rows, &stats);
	done = cfi_each_entry(section, &machine, take_landings, landings) &&
	       !landings->out_of_memory;
	cfi_machine_free(&machine);
	rows_free(&rows);
	return done;
}

struct err *cfi_landings(struct image *image, struct cfi_landing **out, size_t *count)
{
	const struct image_section *frames = image_section(image, ".eh_frame");
	const struct image_section *tables = image_section(image, ".gcc_except_table");
	struct landings landings = {.image = image};
	struct cfi_section section;
	*out = NULL;
	*count = 0;
	if (!frames || !cfi_section_init(&section, image))
		return NULL;
	section.bytes = image_section_bytes(image, frames, &section.size);
	section.address = frames->address;
	section.is_eh = true;
	if (!section.bytes)
		return NULL;
	landings.segments = section.segments;
	landings.segment_count = section.segment_count;
	landings.sites_left = TABLES_SIZE_DEFAULT / SITE_SIZE_MIN;
	if (tables && tables->size / SITE_SIZE_MIN > landings.sites_left)
		landings.sites_left = tables->size / SITE_SIZE_MIN;
	if (!landings_collect(&landings, &section)) {
		free(landings.items);
		return err_new("%s: out of memory while reading exception tables",
			       image_path(image));
	}
	landings_sort(&landings);
	*out = landings.items;
	*count = landings.count;
	return NULL;
}
