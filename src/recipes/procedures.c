/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/procedures.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/rows.h"

bool procedures_is_stub(const struct image *image, uint64_t address)
{
	const struct image_section *sections;
	size_t count = image_sections(image, &sections);
	for (size_t i = 0; i < count; i++)
		if (address >= sections[i].address &&
		    address - sections[i].address < sections[i].size &&
		    !strncmp(sections[i].name, ".plt", 4))
			return true;
	return false;
}

/* "name.cold", "name.cold.2": a part of `name` that was moved away. */
static bool is_part(const char *name)
{
	const char *dot = strstr(name, ".cold");
	return dot && (dot[5] == 0 || dot[5] == '.');
}

struct err *procedures_from_symbols(const struct image *image, const struct symbols *symbols,
				    struct procedures *out)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	out->count = 0;
	out->ranges = calloc(count ? count : 1, sizeof *out->ranges);
	if (!out->ranges)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++)
		if (all[i].size && !is_part(all[i].name) &&
		    !procedures_is_stub(image, all[i].address))
			out->ranges[out->count++] = (struct cfi_range){
				all[i].address, all[i].address + all[i].size};
	return NULL;
}

static bool is_entry(const struct isa *isa, const struct recipe *r)
{
	bool ra = isa->call_pushes
			  ? r->ra == RECIPE_AT_CFA && r->ra_offset == -(int32_t)isa->call_pushes
			  : r->ra == RECIPE_SAME;
	if (r->cfa == RECIPE_ROOT)
		return true;
	return r->cfa == RECIPE_REG && r->cfa_reg == isa->sp && r->cfa_offset == isa->call_pushes &&
	       ra && r->fp == RECIPE_SAME;
}

struct err *procedures_from_cfi(struct image *image, struct image *debug, const struct rows *cfi,
				struct procedures *out)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct err *e = cfi_ranges(image, debug, &out->ranges, &out->count);
	size_t kept = 0;
	if (e || !isa)
		return e;
	for (size_t i = 0; i < out->count; i++) {
		const struct cfi_range *r = &out->ranges[i];
		if (kept && out->ranges[kept - 1].start == r->start)
			continue;
		if (is_entry(isa, &cfi->rules[rows_find(cfi, r->start)]) &&
		    !procedures_is_stub(image, r->start))
			out->ranges[kept++] = *r;
	}
	out->count = kept;
	return NULL;
}

void procedures_free(struct procedures *procedures)
{
	free(procedures->ranges);
	memset(procedures, 0, sizeof *procedures);
}

/* Does a symbol without size stand exactly there? */
static bool is_label(const struct symbols *known, uint64_t address)
{
	const struct symbol *all;
	size_t count = known ? symbols_all(known, &all) : 0;
	size_t found = FIRST_NOT(i, count, all[i].address < address);
	return found < count && all[found].address == address && !all[found].size;
}

void procedures_compare(const struct image *image, const struct procedures *truth,
			const struct symbols *known, const uint64_t *starts, size_t count,
			struct procedures_match *out)
{
	uint64_t reach = 0; /* how far the procedures before this start go */
	size_t next = 0;
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < count; i++) {
		for (; next < truth->count && truth->ranges[next].start < starts[i]; next++)
			if (truth->ranges[next].end > reach)
				reach = truth->ranges[next].end;
		if (next < truth->count && truth->ranges[next].start == starts[i])
			out->found++;
		else if (procedures_is_stub(image, starts[i]) || is_label(known, starts[i]))
			continue;
		else if (starts[i] < reach)
			out->malignant++;
		else
			out->benign++;
	}
	out->missed = truth->count - out->found;
}
