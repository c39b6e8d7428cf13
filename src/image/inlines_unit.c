/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a unit that have code. */
#include "image/inlines_unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/dwarf_names.h"
#include "image/dwarf_value.h"

struct listing {
	struct inline_unit *out;
	struct dwarf_intervals intervals;
	struct dwarf_ranges ranges;
	bool failed;
};

static void add_function(struct listing *x, uint64_t offset, uint32_t depth)
{
	struct inline_unit *out = x->out;
	uint64_t start = UINT64_MAX;
	if (!ARRAY_ROOM_BELOW(out->functions, out->count, out->room, UINT32_MAX)) {
		x->failed = true;
		return;
	}
	for (size_t i = 0; i < x->ranges.count && !x->failed; i++) {
		const struct inline_range *r = &x->ranges.all[i];
		start = r->start < start ? r->start : start;
		x->failed = !dwarf_intervals_add(&x->intervals, r->start, r->end,
						 (uint32_t)out->count, depth);
	}
	out->functions[out->count++] = (struct inline_function){offset, start};
}

static void list_functions(struct listing *x, struct dwarf_walk *walk)
{
	const uint32_t code = 1u << WANT_LOW | 1u << WANT_RANGES;
	const struct dwarf_abbrev *abbrev;
	struct dwarf_die die;
	uint32_t depth;
	while (!x->failed && (abbrev = dwarf_walk_next(walk, &depth))) {
		if (abbrev->kind == DWARF_BARREN) {
			dwarf_walk_pass_tree(walk, abbrev);
			continue;
		}
		x->out->records |= abbrev->kind == DWARF_INLINED;
		if (abbrev->kind != DWARF_FUNCTION || !(abbrev->wanted & code)) {
			dwarf_walk_pass(walk, abbrev);
			continue;
		}
		dwarf_walk_read(walk, abbrev, &die);
		if (walk->c.bad)
			continue;
		x->ranges.count = 0;
		dwarf_ranges_of(walk->unit, &die, &x->ranges);
		if (x->ranges.count)
			add_function(x, die.offset, depth);
	}
}

/* A unit into which nothing was inlined does not show whether its compiler would say so. */
static bool is_recorder(const char *producer)
{
	static const char *const known[] = {
		"GNU C",  "GNU Fortran", "GNU Ada",        "GNU D", "GNU GIMPLE",
		"GNU Go", "GNU Rust",    "GNU Modula",     "clang", "LLVM",
		"rustc",  "flang",       "Go cmd/compile", "ifx",   "ldc"};
	for (size_t i = 0; producer && i < sizeof known / sizeof known[0]; i++)
		if (strstr(producer, known[i]))
			return true;
	return false;
}

/* Each list belongs to one function, so all that are read have no more entries than their
   sections have bytes: unless the lists are shared, to make much out of little. */
static uint64_t ranges_left(struct dwarf_file *file)
{
	int64_t most = 65536 + 2 * (int64_t)(dwarf_section(file, DWARF_RANGES).size +
					     dwarf_section(file, DWARF_RNGLISTS).size);
	int64_t left = most - atomic_load(&file->ranges_read);
	return left > 0 ? (uint64_t)left : 0;
}

void inline_unit_read(struct inline_unit *out, struct dwarf_module *module, struct dwarf_unit *unit)
{
	struct listing x = {.out = out};
	struct dwarf_walk walk;
	struct dwarf_file *file;
	uint64_t left;
	*out = (struct inline_unit){.unit = dwarf_module_full_unit(module, unit)};
	if (!out->unit)
		return;
	unit = out->unit;
	dwarf_module_code(module, &x.ranges.code_start, &x.ranges.code_end);
	file = unit->shape.version >= 5 ? unit->file : unit->skeleton->file;
	left = x.ranges.budget = ranges_left(file);
	if (dwarf_walk_start(&walk, unit, unit->die))
		list_functions(&x, &walk);
	atomic_fetch_add(&file->ranges_read, (int64_t)(left - x.ranges.budget));
	out->records |= is_recorder(unit->producer ? unit->producer : unit->skeleton->producer);
	free(x.ranges.all);
	if (!dwarf_points_make(&out->points, &x.intervals) || x.failed || x.ranges.exceeded)
		dwarf_note(unit->file->note, "functions of the unit at %#llx have too many ranges",
			   (unsigned long long)unit->offset);
}

void inline_unit_free(struct inline_unit *u)
{
	free(u->functions);
	free(u->points.all);
}
