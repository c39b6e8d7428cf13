/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .eh_frame and .debug_frame. Both are a list of entries, each with its length
 * in front: CIEs with what many procedures have in common, and FDEs, one per
 * contiguous piece of code, that point to their CIE:
 *
 *     length  id = 0    version, augmentation, alignments, ...  instructions   CIE
 *     length  -> CIE    start, size, augmentation data          instructions   FDE
 *
 * In .eh_frame a CIE's id is 0 and an FDE's pointer counts backward from
 * itself; in .debug_frame the id is all ones and the pointer counts from the
 * section's begin. CIEs are parsed when the first FDE asks for them.
 */
#include "recipes/cfi.h"
#include <elf.h>
#include <stdlib.h>
#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/cfi_section.h"
#include "recipes/sframe.h"

/* Real files have a handful of CIEs, or one per object file; their programs are some bytes. */
#define CIES_MAX (1u << 18)
#define CIE_PROGRAM_MAX 1024

struct cie {
	uint64_t offset;
	struct cursor cursor; /* after the id */
	struct cfi_common common;
	uint8_t lsda_encoding;
	bool has_data; /* augmentation 'z' */
	bool is_signal;
	bool is_bad;
};

/* CIEs by offset. They are allocated one by one: FDEs hold on to them. */
struct reader {
	const struct cfi_section *section;
	struct cfi_machine *machine;
	struct cie **slots; /* open addressing */
	size_t slot_count, cie_count;
	struct cie *last;
	bool out_of_memory;
};

struct entry {
	uint64_t id_offset; /* of the id or CIE pointer */
	uint64_t id;
	bool is_cie;
	bool is_wide;         /* 64-bit DWARF */
	struct cursor cursor; /* after the id */
};

static struct cfi_bases section_bases(const struct cfi_section *section)
{
	return (struct cfi_bases){.bytes = section->bytes,
				  .address = section->address,
				  .text = section->text_base,
				  .data = section->data_base};
}

bool cfi_is_code(const struct image_segment *segments, size_t count, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < count; i++) {
		const struct image_segment *segment = &segments[i];
		if (segment->executable && start >= segment->address && end >= start &&
		    end - segment->address <= segment->size)
			return true;
	}
	return count == 0;
}

/* Reads the head of the entry at `offset`. False where there is none: end, terminator, damage. */
static bool entry_read(const struct cfi_section *section, uint64_t offset, struct entry *entry)
{
	struct cursor cursor = {section->bytes, section->bytes + section->size, false};
	uint64_t length;
	if (!cursor_skip(&cursor, offset))
		return false;
	length = cursor_u32(&cursor);
	entry->is_wide = length == UINT32_MAX;
	if (entry->is_wide)
		length = cursor_u64(&cursor);
	else if (length >= 0xfffffff0)
		return false;
	if (!length || cursor.bad)
		return false;
	entry->cursor = cursor_block(&cursor, length);
	entry->id_offset = (uint64_t)(entry->cursor.at - section->bytes);
	/* In .eh_frame the id has 4 bytes after both forms of length. */
	if (entry->is_wide && !section->is_eh)
		entry->id = cursor_u64(&entry->cursor);
	else
		entry->id = cursor_u32(&entry->cursor);
	if (section->is_eh)
		entry->is_cie = entry->id == 0;
	else
		entry->is_cie = entry->id == (entry->is_wide ? UINT64_MAX : UINT32_MAX);
	return !entry->cursor.bad;
}

/* ---- CIEs ---- */

static bool cie_augmentation(struct cie *cie, const char *letters, struct cursor *data,
			     const struct cfi_bases *bases)
{
	uint8_t encoding;
	for (; *letters; letters++) {
		switch (*letters) {
		case 'L':
			cie->lsda_encoding = cursor_u8(data);
			break;
		case 'P':
			encoding = cursor_u8(data);
			if (encoding != CFI_POINTER_OMITTED)
				cfi_pointer(data, encoding, bases);
			break;
		case 'R':
			cie->common.pointer_encoding = cursor_u8(data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* aarch64: return addresses are signed with the B key */
		case 'G': /* aarch64: the stack is tagged */
			break;
		default:
			return false;
		}
	}
	return !data->bad;
}

static const char *read_string(struct cursor *cursor)
{
	const uint8_t *from = cursor->at, *zero = memchr(from, 0, cursor_left(cursor));
	if (!zero)
		return NULL;
	cursor->at = zero + 1;
	return (const char *)from;
}

static bool cie_parse(struct reader *reader, struct cie *cie, struct cursor cursor)
{
	struct cfi_bases bases = section_bases(reader->section);
	uint8_t version = cursor_u8(&cursor);
	const char *augmentation = read_string(&cursor);
	struct cursor data;
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return false;
	if (augmentation[0] == 'e' && augmentation[1] == 'h') { /* gcc 2 */
		cursor_u64(&cursor);
		augmentation += 2;
	}
	if (version == 4 && (cursor_u8(&cursor) != 8 || cursor_u8(&cursor) != 0))
		return false; /* size of addresses, of segment selectors */
	cie->common.code_align = cursor_uleb(&cursor);
	cie->common.data_align = cursor_sleb(&cursor);
	cie->common.columns[SLOT_RA] = version == 1 ? cursor_u8(&cursor) : cursor_uleb(&cursor);
	if (*augmentation == 'z') {
		cie->has_data = true;
		data = cursor_block(&cursor, cursor_uleb(&cursor));
		if (data.bad || !cie_augmentation(cie, augmentation + 1, &data, &bases))
			return false;
	} else if (*augmentation) {
		return false;
	}
	return !cursor.bad && cursor_left(&cursor) <= CIE_PROGRAM_MAX &&
	       cfi_machine_prepare(reader->machine, &cie->common, cursor);
}

static struct cie *cie_new(struct reader *reader, uint64_t offset)
{
	const struct isa *isa = reader->section->isa;
	struct cie *cie = calloc(1, sizeof *cie);
	struct entry entry;
	if (!cie)
		return NULL;
	cie->offset = offset;
	cie->lsda_encoding = CFI_POINTER_OMITTED;
	cie->common.isa = isa;
	cie->common.columns[SLOT_FP] = isa->fp;
	cie->common.columns[SLOT_SP] = isa->sp;
	cie->common.columns[SLOT_EXTRA] = isa->extra;
	cie->is_bad = !entry_read(reader->section, offset, &entry) || !entry.is_cie ||
		      !cie_parse(reader, cie, entry.cursor);
	if (!cie->is_bad)
		cie->cursor = entry.cursor;
	return cie;
}

static struct cie **cie_slot(const struct reader *reader, uint64_t offset)
{
	size_t mask = reader->slot_count - 1;
	size_t i = (offset * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;
	while (reader->slots[i] && reader->slots[i]->offset != offset)
		i = (i + 1) & mask;
	return &reader->slots[i];
}

static bool cie_slots_grow(struct reader *reader)
{
	struct cie **old = reader->slots;
	size_t old_count = reader->slot_count;
	reader->slot_count = old_count ? old_count * 2 : 64;
	reader->slots = calloc(reader->slot_count, sizeof *reader->slots);
	if (!reader->slots) {
		reader->slots = old;
		reader->slot_count = old_count;
		return false;
	}
	for (size_t i = 0; i < old_count; i++)
		if (old[i])
			*cie_slot(reader, old[i]->offset) = old[i];
	free(old);
	return true;
}

/* The CIE at `offset`, or NULL where there is no good one. */
static struct cie *cie_find(struct reader *reader, uint64_t offset)
{
	struct cie **slot;
	if (reader->last && reader->last->offset == offset)
		return reader->last->is_bad ? NULL : reader->last;
	if (reader->cie_count * 2 >= reader->slot_count && !cie_slots_grow(reader)) {
		reader->out_of_memory = true;
		return NULL;
	}
	slot = cie_slot(reader, offset);
	if (!*slot) {
		if (reader->cie_count == CIES_MAX)
			return NULL;
		*slot = cie_new(reader, offset);
		if (!*slot) {
			reader->out_of_memory = true;
			return NULL;
		}
		reader->cie_count++;
	}
	reader->last = *slot;
	return (*slot)->is_bad ? NULL : *slot;
}

/* ---- FDEs ---- */

static bool fde_cie_offset(const struct cfi_section *section, const struct entry *entry,
			   uint64_t *offset)
{
	if (!section->is_eh)
		*offset = entry->id;
	else if (entry->id > entry->id_offset)
		return false;
	else
		*offset = entry->id_offset - entry->id;
	return *offset < section->size;
}

static bool fde_range(const struct cfi_section *section, const struct cie *cie,
		      struct cursor *cursor, struct cfi_entry *out)
{
	struct cfi_bases bases = section_bases(section);
	uint8_t encoding = cie->common.pointer_encoding;
	uint64_t size;
	if (encoding & 0x80) /* a pointer to the start: nothing writes that */
		return false;
	out->start = cfi_pointer(cursor, encoding, &bases);
	size = cfi_pointer(cursor, encoding & 0x0f, &bases);
	return !cursor->bad && size && !__builtin_add_overflow(out->start, size, &out->end) &&
	       cfi_is_code(section->segments, section->segment_count, out->start, out->end);
}

static bool fde_data(const struct cfi_section *section, const struct cie *cie,
		     struct cursor *cursor, struct cfi_entry *out)
{
	struct cfi_bases bases = section_bases(section);
	struct cursor data;
	out->lsda = 0;
	if (!cie->has_data)
		return true;
	data = cursor_block(cursor, cursor_uleb(cursor));
	bases.function = out->start;
	if (!data.bad && cursor_left(&data) && cie->lsda_encoding != CFI_POINTER_OMITTED &&
	    !(cie->lsda_encoding & 0x80))
		out->lsda = cfi_pointer(&data, cie->lsda_encoding, &bases);
	return !data.bad;
}

/* Linkers put 0 (or -1) for code that they threw away into sections that are not loaded. */
static bool fde_is_dropped(const struct cfi_section *section, const struct cie *cie,
			   struct cursor cursor)
{
	struct cfi_bases bases = section_bases(section);
	uint64_t start = cfi_pointer(&cursor, cie->common.pointer_encoding, &bases);
	return !section->is_eh && (start <= 1 || start >= UINT64_MAX - 1);
}

enum fde_result { FDE_GOOD, FDE_BAD, FDE_DROPPED };

static enum fde_result fde_parse(struct reader *reader, struct entry *entry, struct cfi_entry *out)
{
	const struct cfi_section *section = reader->section;
	struct cie *cie;
	uint64_t offset;
	if (!fde_cie_offset(section, entry, &offset))
		return FDE_BAD;
	cie = cie_find(reader, offset);
	if (!cie)
		return FDE_BAD;
	if (fde_is_dropped(section, cie, entry->cursor))
		return FDE_DROPPED;
	if (!fde_range(section, cie, &entry->cursor, out) ||
	    !fde_data(section, cie, &entry->cursor, out))
		return FDE_BAD;
	out->is_signal = cie->is_signal;
	out->common = &cie->common;
	out->cie = cie->cursor;
	out->program = entry->cursor;
	out->bases = section_bases(section);
	out->bases.function = out->start;
	return FDE_GOOD;
}

static void reader_free(struct reader *reader)
{
	for (size_t i = 0; i < reader->slot_count; i++)
		free(reader->slots[i]);
	free(reader->slots);
}

/* Where no entry can be read: goes past an empty one. False where the section ends here. */
static bool skip_no_entry(const struct cfi_section *section, uint64_t *offset,
			  struct cfi_stats *stats)
{
	struct cursor rest = {section->bytes + *offset, section->bytes + section->size, false};
	if (cursor_u32(&rest) || rest.bad) {
		stats->bad_entries += cursor_left(&rest) > 0;
		return false;
	}
	*offset += 4;
	/* Length 0 ends .eh_frame. Where no section header told its size, other contents of its
	   segment follow. */
	return !section->is_eh;
}

bool cfi_each_entry(const struct cfi_section *section, struct cfi_machine *machine,
		    bool (*take)(void *context, const struct cfi_entry *entry), void *context)
{
	struct reader reader = {.section = section, .machine = machine};
	struct entry entry;
	uint64_t offset = 0;
	while (offset < section->size) {
		struct cfi_entry out = {0};
		enum fde_result result;
		if (!entry_read(section, offset, &entry)) {
			if (!skip_no_entry(section, &offset, machine->stats))
				break;
			continue;
		}
		offset = (uint64_t)(entry.cursor.end - section->bytes);
		if (entry.is_cie)
			continue;
		machine->stats->entries++;
		result = fde_parse(&reader, &entry, &out);
		machine->stats->bad_entries += result == FDE_BAD;
		if (reader.out_of_memory || (result == FDE_GOOD && !take(context, &out)))
			break;
	}
	reader_free(&reader);
	return !reader.out_of_memory;
}

/* ---- rows ---- */

static bool take_rows(void *context, const struct cfi_entry *entry)
{
	static const struct recipe signal = {.cfa = RECIPE_SIGNAL, .source = RECIPE_FROM_CFI};
	struct cfi_machine *machine = context;
	if (entry->is_signal)
		rows_add(machine->rows, entry->start, entry->end,
			 rows_rule(machine->rows, &signal));
	else if (!cfi_machine_run(machine, entry->common, entry->program, &entry->bases,
				  entry->start, entry->end))
		machine->stats->bad_entries++;
	return !machine->out_of_memory && !machine->rows->failed;
}

bool cfi_read_section(const struct cfi_section *section, struct rows *rows, struct cfi_stats *stats)
{
	struct cfi_machine machine;
	bool done;
	cfi_machine_init(&machine, rows, stats);
	if (section->budget)
		machine.budget = section->budget;
	done = cfi_each_entry(section, &machine, take_rows, &machine) && !machine.out_of_memory &&
	       !rows->failed;
	cfi_machine_free(&machine);
	return done;
}

static uint64_t address_of(const struct image *image, const char *name)
{
	const struct image_section *section = image_section(image, name);
	return section ? section->address : 0;
}

bool cfi_section_init(struct cfi_section *section, struct image *image)
{
	memset(section, 0, sizeof *section);
	section->isa = isa_for_machine(image_machine(image));
	section->segment_count = image_segments(image, &section->segments);
	section->text_base = address_of(image, ".text");
	section->data_base = address_of(image, ".got");
	if (!section->data_base)
		section->data_base = address_of(image, ".eh_frame_hdr");
	return section->isa != NULL;
}

/* Loads section `name` of `from`, that describes code of `image`. False where there is none. */
static bool section_load(struct cfi_section *section, struct image *image, struct image *from,
			 const char *name)
{
	const struct image_section *found = image_section(from, name);
	if (!found || !cfi_section_init(section, image))
		return false;
	section->bytes = image_section_bytes(from, found, &section->size);
	section->address = found->address;
	section->is_eh = strcmp(name, ".eh_frame") == 0;
	return section->bytes && section->size;
}

static struct err *out_of_memory(struct image *image)
{
	return err_new("%s: out of memory while reading unwind information", image_path(image));
}

struct err *cfi_read(struct image *image, struct image *debug, struct rows *rows,
		     struct cfi_stats *stats)
{
	struct cfi_section section;
	memset(stats, 0, sizeof *stats);
	if (debug && image_machine(debug) != image_machine(image))
		debug = NULL;
	if (section_load(&section, image, image, ".eh_frame") &&
	    !cfi_read_section(&section, rows, stats))
		return out_of_memory(image);
	if ((section_load(&section, image, image, ".debug_frame") ||
	     (debug && section_load(&section, image, debug, ".debug_frame"))) &&
	    !cfi_read_section(&section, rows, stats))
		return out_of_memory(image);
	if (section_load(&section, image, image, ".sframe") &&
	    !sframe_read_section(&section, rows, stats))
		return out_of_memory(image);
	return rows->failed ? out_of_memory(image) : NULL;
}

/* ---- ranges ---- */

struct ranges {
	struct cfi_range *items;
	size_t count, capacity;
	bool failed;
};

static bool take_range(void *context, const struct cfi_entry *entry)
{
	struct ranges *ranges = context;
	if (!ARRAY_ROOM(ranges->items, ranges->count, ranges->capacity)) {
		ranges->failed = true;
		return false;
	}
	ranges->items[ranges->count++] = (struct cfi_range){entry->start, entry->end};
	return true;
}

static int range_compare(const void *left, const void *right)
{
	const struct cfi_range *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* Adds the ranges of a section. */
static void ranges_read(const struct cfi_section *section, struct ranges *ranges)
{
	struct cfi_stats stats = {0};
	struct cfi_machine machine;
	struct rows unused;
	rows_init(&unused);
	cfi_machine_init(&machine, &unused, &stats);
	if (!cfi_each_entry(section, &machine, take_range, ranges))
		ranges->failed = true;
	cfi_machine_free(&machine);
	rows_free(&unused);
}

struct err *cfi_ranges(struct image *image, struct image *debug, struct cfi_range **out,
		       size_t *count)
{
	struct ranges ranges = {0};
	struct cfi_section section;
	if (debug && image_machine(debug) != image_machine(image))
		debug = NULL;
	if (section_load(&section, image, image, ".eh_frame"))
		ranges_read(&section, &ranges);
	if (section_load(&section, image, image, ".debug_frame") ||
	    (debug && section_load(&section, image, debug, ".debug_frame")))
		ranges_read(&section, &ranges);
	if (ranges.failed) {
		free(ranges.items);
		return out_of_memory(image);
	}
	if (ranges.count)
		qsort(ranges.items, ranges.count, sizeof *ranges.items, range_compare);
	*out = ranges.items;
	*count = ranges.count;
	return NULL;
}
