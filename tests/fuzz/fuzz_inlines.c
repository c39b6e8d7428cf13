/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Procedures and inlining. The input begins with the length of each debug
 * section (three bytes, little endian) but the last, which takes the rest.
 */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "elf_parts.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_info",     ".debug_abbrev",      ".debug_str",  ".debug_line",
	".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_ranges",
	".debug_rnglists", ".debug_aranges",
};
#define PARTS (sizeof(names) / sizeof(names[0]))

static void check(const struct inline_procedure *p)
{
	assert(p->scope_count > 0 && p->scopes[0].depth == 0);
	for (size_t i = 0; i < p->scope_count; i++) {
		const struct inline_scope *s = &p->scopes[i];

		assert(s->first + (size_t)s->count <= p->range_count && s->count > 0);
		assert(i == 0 || s->parent < i);
		assert(i == 0 || s->depth == p->scopes[s->parent].depth + 1);
		assert(!s->name || strlen(s->name) < 1u << 24);
		assert(!s->plain || strlen(s->plain) < 1u << 24);
		for (uint32_t k = 0; k < s->count; k++) {
			const struct inline_range *r = &p->ranges[s->first + k];

			assert(r->start < r->end && r->start >= ELF_ROOM_START);
			assert(k == 0 || r[-1].end < r->start);
		}
	}
}

static struct err *each(void *context, const struct inline_procedure *p)
{
	uint64_t *last = context, start = p->ranges[p->scopes[0].first].start;

	check(p);
	assert(start >= *last);
	*last = start;
	return NULL;
}

static void ask(struct inlines *inlines, uint64_t address)
{
	struct inline_procedure p;
	bool found, inside = false;
	struct err *e = inlines_find(inlines, address, &p, &found);

	assert(!e);
	if (!found)
		return;
	check(&p);
	for (uint32_t k = 0; k < p.scopes[0].count; k++)
		inside |= address >= p.ranges[p.scopes[0].first + k].start &&
			  address < p.ranges[p.scopes[0].first + k].end;
	assert(inside);
	inline_procedure_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_part parts[PARTS];
	const size_t head = 3 * (PARTS - 1);
	struct inlines *inlines;
	struct image *image;
	struct lines *lines;
	size_t at = head;
	uint64_t last = 0;
	struct err *e;

	if (size < head)
		return 0;
	for (size_t i = 0; i < PARTS; i++) {
		size_t length = size - at;

		if (i < PARTS - 1) {
			size_t said = data[3 * i] | (size_t)data[3 * i + 1] << 8 |
				      (size_t)data[3 * i + 2] << 16;
			length = said < length ? said : length;
		}
		parts[i] = (struct elf_part){names[i], data + at, length};
		at += length;
	}
	image = elf_sections(EM_X86_64, parts, PARTS);
	e = lines_open(image, NULL, &lines);
	assert(!e);
	e = inlines_open(image, NULL, lines, &inlines);
	assert(!e);
	for (uint64_t address = 0; address < ELF_ROOM_START + ELF_ROOM; address += 509)
		ask(inlines, address);
	ask(inlines, UINT64_MAX);
	e = inlines_each(inlines, each, &last);
	assert(!e);
	assert(!inlines_damage(inlines) || strlen(inlines_damage(inlines)) < 1000);
	inlines_close(inlines);
	lines_close(lines);
	image_close(image);
	return 0;
}
