/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where indirect jumps go.
 *
 * The code before the jump tells the table (flow/tables.h). Where that does not, or tells no bound, a
 * way from the entry is tried (graph_paths.c): what holds at the jump holds on any. Tables whose
 * index is compared with a bound are read first, for what they lead to says more about
 * the code.
 *
 * Compilers leave the compare out where the default of a switch cannot happen. How long such a table
 * is must be told from what is around it: it ends
 *  1. where something else begins that the module refers to (flow/references.h), such as
 *     the next table;
 *  2. where the index cannot reach, by its width;
 *  3. before the first entry that leads out of the procedure, or into the middle of an instruction.
 */
#include <stdlib.h>
#include <string.h>

#include "flow/graph_build.h"
#include "flow/references.h"
#include "flow/tables.h"
#include "image/image.h"

#define MAX_ROUNDS 32
/* What searches may cost in one procedure, in bytes of code looked at. */
#define MAX_COST (32u << 20)
#define COST_BEFORE 256u        /* of one that looks at the code before the jump … */
#define COST_AROUND (32u << 10) /* … and all around it */
#define COST_SKETCH 8u          /* of a sketch of the graph, for each block */
#define MAX_ENTRIES 65536u
#define LONGEST_INSN 15

struct reading { /* tables_find asks about one part */
	const struct build *b;
	const struct span *span;
};

static unsigned length_at(const void *context, uint64_t at)
{
	const struct reading *r = context;
	unsigned unit = r->b->isa->insn_min;
	if (at < r->span->start || at >= r->span->end || at % unit)
		return 0;
	return (*build_slot(r->b, r->span, at) & SLOT_LENGTH) * unit;
}

static bool is_better(const struct jump_table *a, const struct jump_table *than)
{
	return a->exact > than->exact || (!than->exact && a->count && !than->count);
}

/* By the code before the jump; then by a way from the entry; where there is none, by what leads to
   the jump nearby. */
static bool find_table(struct build *b, const struct leave *leave, struct jump_table *out)
{
	struct reading r = {b, build_span(b, leave->at)};
	struct tables_code code = {
		.isa = b->isa,
		.bytes = r.span->bytes,
		.start = r.span->start,
		.end = r.span->end,
		.length = length_at,
		.context = &r,
		.nearby = true,
	};
	struct jump_table other;
	if (b->cost >= MAX_COST)
		return false;
	b->cost += COST_BEFORE;
	bool found = tables_find(&code, leave->at, out);
	if (found && out->exact)
		return true;
	if (build_path_table(b, leave->at, &other)) {
		if (!found || is_better(&other, out))
			*out = other;
		return true;
	}
	code.nearby = false;
	b->cost += COST_AROUND;
	if (tables_find(&code, leave->at, &other) && (!found || is_better(&other, out))) {
		*out = other;
		found = true;
	}
	return found;
}

/* Does an instruction that was followed reach over this address? */
static bool is_inside_insn(const struct build *b, const struct span *s, uint64_t at)
{
	if (b->isa->insn_min != 1 || (*build_slot(b, s, at) & SLOT_LENGTH))
		return false;
	for (uint64_t back = 1; back < LONGEST_INSN && back <= at - s->start; back++) {
		unsigned length = *build_slot(b, s, at - back) & SLOT_LENGTH;
		if (length)
			return length > back;
	}
	return false;
}

static bool is_case(const struct build *b, uint64_t at)
{
	const struct span *s = at % b->isa->insn_min ? NULL : build_span(b, at);
	return s && !is_inside_insn(b, s, at);
}

/* Cases that cannot happen are sent to the end of the procedure, where nothing is. */
static bool is_end(const struct build *b, uint64_t at)
{
	const struct span *s = at ? build_span(b, at - 1) : NULL;
	return s && s->end == at;
}

static bool is_code(const struct build *b, uint64_t at)
{
	return at % b->isa->insn_min == 0 && image_is_code(b->in->image, at);
}

static bool read_entry(const struct build *b, const struct jump_table *t, uint64_t index,
		       uint64_t *target)
{
	uint64_t at = t->table + index * t->entry_size;
	size_t size;
	if (t->entry_size == 8 && b->in->references &&
	    references_word(b->in->references, at, target))
		return true;
	const uint8_t *bytes = image_bytes_at(b->in->image, at, &size);
	if (!bytes || size < t->entry_size)
		return false;
	*target = tables_target(t, bytes);
	return true;
}

/* How many entries there may be at most. */
static uint64_t bound(const struct build *b, const struct jump_table *t)
{
	uint64_t count = t->count && t->count < MAX_ENTRIES ? t->count : MAX_ENTRIES;
	if (t->exact)
		return t->count <= MAX_ENTRIES ? t->count : 0;
	if (!b->in->references)
		return 0;
	uint64_t next = references_next(b->in->references, t->table);
	uint64_t room = (next - t->table) / t->entry_size;
	return room < count ? room : count;
}

static bool take_target(struct build *b, size_t first, uint64_t target)
{
	if (b->target_count > first && b->targets[b->target_count - 1] == target)
		return true;
	if (!build_grow(b, &b->targets, &b->target_capacity, b->target_count, sizeof *b->targets))
		return false;
	b->targets[b->target_count++] = target;
	return true;
}

/* Takes the targets of a table. Returns how many entries it has; 0: it is none. Single entries may
   lead to code elsewhere: a part of the procedure that was moved away and is not known as such. */
static uint64_t read_targets(struct build *b, const struct jump_table *t)
{
	uint64_t count = bound(b, t), i, target, inside = 0, elsewhere = 0, entries = 0, held = 0;
	size_t first = b->target_count;
	for (i = 0; i < count && read_entry(b, t, i, &target); i++) {
		if (is_case(b, target)) {
			if (!take_target(b, first, target))
				break;
			inside++;
			held = elsewhere;
			entries = i + 1;
		} else if (is_end(b, target)) {
			entries = i + 1;
		} else if (is_code(b, target)) {
			elsewhere++;
		} else {
			break;
		}
	}
	if (t->exact)
		entries = i == count && inside ? count : 0;
	else if (inside < held)
		entries = 0;
	if (b->failed || !entries || !inside) {
		b->target_count = first;
		return 0;
	}
	return entries;
}

static bool read_switch(struct build *b, struct leave *leave, bool only_exact)
{
	struct jump_table table;
	uint32_t first = (uint32_t)b->target_count;
	if (!find_table(b, leave, &table))
		return false;
	leave->computed |= table.entry_size < 8;
	if (only_exact && !table.exact)
		return false;
	uint64_t count = read_targets(b, &table);
	if (!count || !build_grow(b, &b->graph->tables, &b->table_capacity, b->graph->table_count,
				  sizeof *b->graph->tables))
		return false;
	leave->first = first;
	leave->count = (uint32_t)(b->target_count - first);
	leave->ends = GRAPH_SWITCHES;
	b->graph->tables[b->graph->table_count++] = (struct graph_table){
		.jump = leave->at,
		.table = table.table,
		.base = table.base,
		.entries = (uint32_t)count,
		.entry_size = table.entry_size,
		.shift = table.shift,
		.is_signed = table.is_signed,
		.exact = table.exact,
	};
	for (uint32_t i = 0; i < leave->count; i++)
		build_leads(b, b->targets[first + i]);
	return true;
}

/* Reads what can be read now. Returns whether anything was. */
static bool read_switches(struct build *b, bool only_exact)
{
	bool any = false;
	for (size_t i = 0; i < b->leave_count && !b->failed; i++) {
		struct leave leave = b->leaves[i];
		if (leave.ends != GRAPH_UNRESOLVED)
			continue;
		any |= read_switch(b, &leave, only_exact);
		b->leaves[i] = leave;
		build_drain(b);
	}
	return any;
}

void build_switches(struct build *b)
{
	size_t leaves = 0;
	for (unsigned round = 0;
	     round < MAX_ROUNDS && b->leave_count != leaves && !b->failed && b->cost < MAX_COST;
	     round++) {
		leaves = b->leave_count;
		b->cost += leaves * COST_SKETCH;
		if (build_find_paths(b) && read_switches(b, true))
			continue;
		read_switches(b, false);
	}
	build_forget_paths(b);
}
