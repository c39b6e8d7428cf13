/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing a module.
 *
 * The code is cut into regions of fixed size. In rounds, all regions are
 * traced in parallel, each by one thread, from the procedures known so far;
 * control that leaves a region is handed over between rounds, so the result
 * does not depend on the order in which threads ran. When no round brings
 * anything new, the perhaps-procedures that nothing has reached are added, and
 * last each region infers the state of the code that is left (flow/fill.c).
 *
 *    entries -> rounds -> hints -> rounds -> late targets of jump tables -> rounds -> fill -> rounds -> heads of regions -> rounds
 */
#include "flow/trace.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/parallel.h"
#include "flow/region.h"
#include "flow/returns.h"
#include "image/image.h"
#include "isa/insn.h"

#define REGION_SIZE (512 * 1024u)
#define MAX_ROUNDS 200
#define MAX_REGIONS 65536 /* then no more sections: each is compared with all */

struct trace {
	const struct isa *isa;
	struct region *regions; /* ascending, disjoint */
	size_t count;
	uint64_t *starts;
	size_t start_count;
	struct returns returns;
	bool first_round;               /* of the phase */
	void (*then)(struct region *r); /* what a region does in this phase after draining */
};

static struct region *find_region(const struct trace *t, uint64_t at)
{
	size_t found = FIRST_NOT(i, t->count, t->regions[i].end <= at);
	return found < t->count && at >= t->regions[found].start ? &t->regions[found] : NULL;
}

static bool add_span(struct trace *t, struct image *image, const struct trace_input *input,
		     uint64_t start, uint64_t size)
{
	size_t available;
	const uint8_t *bytes = image_bytes_at(image, start, &available);
	unsigned unit = t->isa->insn_min;
	if (!bytes)
		return true;
	if (size > available)
		size = available;
	size -= size % unit;
	uint64_t limit = start + size;
	for (uint64_t at = start; at < limit;) {
		uint64_t end = limit - at > REGION_SIZE ? at + REGION_SIZE : limit;
		struct region *grown = realloc(t->regions, (t->count + 1) * sizeof *grown);
		if (!grown)
			return false;
		t->regions = grown;
		struct region *r = &t->regions[t->count++];
		memset(r, 0, sizeof *r);
		r->isa = t->isa;
		r->input = input;
		r->returns = &t->returns;
		r->image = image;
		r->bytes = bytes + (at - start);
		r->start = r->branches.base = at;
		r->end = end;
		r->base = start;
		r->limit = limit;
		r->first = at == start;
		r->slots = calloc((end - at) / unit, sizeof *r->slots);
		if (!r->slots)
			return false;
		at = end;
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct region *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sections may claim to overlap; the first one keeps the bytes. */
static bool overlaps(const struct trace *t, uint64_t start, uint64_t size)
{
	for (size_t i = 0; i < t->count; i++)
		if (start < t->regions[i].end && t->regions[i].start < start + size)
			return true;
	return false;
}

static bool add_code(struct trace *t, struct image *image, const struct trace_input *input)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	size_t section_count = image_sections(image, &sections);
	size_t segment_count = image_segments(image, &segments);
	bool any = false;
	for (size_t i = 0; i < section_count && t->count < MAX_REGIONS; i++) {
		const struct image_section *s = &sections[i];
		if (!(s->flags & SHF_EXECINSTR) || !(s->flags & SHF_ALLOC) ||
		    s->type != SHT_PROGBITS)
			continue;
		if (s->address % t->isa->insn_min || s->address + s->size < s->address ||
		    overlaps(t, s->address, s->size))
			continue;
		any = true;
		if (!add_span(t, image, input, s->address, s->size))
			return false;
	}
	for (size_t i = 0; !any && i < segment_count; i++) {
		const struct image_segment *s = &segments[i];
		if (s->executable && s->address % t->isa->insn_min == 0 &&
		    !overlaps(t, s->address, s->file_size) &&
		    !add_span(t, image, input, s->address, s->file_size))
			return false;
	}
	if (t->count)
		qsort(t->regions, t->count, sizeof *t->regions, by_start);
	return true;
}

static void work_region(void *context, size_t index)
{
	struct trace *t = context;
	struct region *r = &t->regions[index];
	region_arrive(r);
	region_drain(r);
	if (t->first_round || r->stirred)
		t->then(r);
}

/* Hands over what left each region. Returns whether there was anything. */
static bool exchange(struct trace *t)
{
	bool any = false;
	for (size_t i = 0; i < t->count; i++) {
		struct region *from = &t->regions[i];
		for (size_t k = 0; k < from->call_count; k++) {
			struct region *to = find_region(t, from->calls[k]);
			if (!to || from->calls[k] % t->isa->insn_min ||
			    (*region_slot(to, from->calls[k], t->isa->insn_min) & SLOT_START))
				continue;
			if (region_grow(to, &to->incoming, &to->incoming_capacity,
					to->incoming_count, sizeof(uint64_t)))
				to->incoming[to->incoming_count++] = from->calls[k], any = true;
		}
		from->call_count = 0;
		for (size_t k = 0; k < from->edge_count; k++) {
			struct region *to = find_region(t, from->edges[k].to);
			if (!to)
				continue;
			if (region_grow(to, &to->arrivals, &to->arrival_capacity, to->arrival_count,
					sizeof *to->arrivals))
				to->arrivals[to->arrival_count++] = from->edges[k], any = true;
		}
		from->edge_count = 0;
	}
	return any;
}

static void run_rounds(struct trace *t, void (*then)(struct region *r))
{
	t->then = then;
	for (unsigned round = 0; round < MAX_ROUNDS; round++) {
		t->first_round = round == 0;
		parallel_for(t->count, work_region, t);
		if (!exchange(t))
			break;
	}
}

/* The last jump of a region from within a frame that no procedure's start follows; NULL: none. */
static const struct region_mark *last_switch(const struct region *r)
{
	const struct region_mark *last = NULL;
	for (size_t i = 0; i < r->switch_count; i++)
		if (!last || r->switches[i].at > last->at)
			last = &r->switches[i];
	for (size_t i = 0; last && i < r->start_count; i++)
		if (r->starts[i] > last->at)
			return NULL;
	return last;
}

/* A procedure with computed jumps may go on in the next region, where only they lead. */
static void carry_switches(struct trace *t)
{
	for (size_t i = 1; i < t->count; i++) {
		struct region *before = &t->regions[i - 1], *r = &t->regions[i];
		const struct region_mark *last = last_switch(before);
		if (r->first || !last ||
		    !region_grow(r, &r->switches, &r->switch_capacity, r->switch_count,
				 sizeof *r->switches))
			continue;
		uint32_t state = region_intern(r, &before->states[last->state]);
		r->switches[r->switch_count++] = (struct region_mark){r->start, state};
	}
}

static void add_entries(struct trace *t, const uint64_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct region *r = find_region(t, at[i]);
		if (r)
			region_start(r, at[i]);
	}
}

static bool start_between(const struct trace *t, uint64_t low, uint64_t high)
{
	size_t first = FIRST_NOT(i, t->start_count, t->starts[i] <= low);
	return first < t->start_count && t->starts[first] <= high;
}

/* Procedures that are only ever jumped to, by others that end with that: the jump leads into the
   range of another procedure, with the stack as at an entry, to where nothing else leads. */
static bool mark_tail_called(struct trace *t)
{
	unsigned unit = t->isa->insn_min;
	bool any = false;
	for (size_t i = 0; i < t->count; i++) {
		for (size_t k = 0; k < t->regions[i].tail_count; k++) {
			const struct region_jump *j = &t->regions[i].tails[k];
			struct region *r = j->to % unit ? NULL : find_region(t, j->to);
			uint32_t *slot = r ? region_slot(r, j->to, unit) : NULL;
			bool away = j->from < j->to ? start_between(t, j->from, j->to)
						    : start_between(t, j->to, j->from);
			if (!slot || !away || !(*slot & SLOT_STATE) ||
			    (*slot & (SLOT_START | SLOT_BRANCHED)))
				continue;
			if (!frame_is_entry(t->isa, &r->states[*slot & SLOT_STATE]))
				continue;
			*slot |= SLOT_START;
			any = region_grow(r, &r->starts, &r->start_capacity, r->start_count,
					  sizeof *r->starts);
			if (any)
				r->starts[r->start_count++] = j->to;
		}
	}
	return any;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Gathers what the regions noted, without what was refuted since. */
static bool collect_starts(struct trace *t)
{
	unsigned unit = t->isa->insn_min;
	size_t count = 0, kept = 0;
	for (size_t i = 0; i < t->count; i++)
		count += t->regions[i].start_count;
	uint64_t *starts = realloc(t->starts, (count ? count : 1) * sizeof *starts);
	if (!starts)
		return false;
	t->starts = starts;
	t->start_count = 0;
	for (size_t i = 0; i < t->count; i++) {
		const struct region *r = &t->regions[i];
		for (size_t k = 0; k < r->start_count; k++)
			if (*region_slot(r, r->starts[k], unit) & SLOT_START)
				starts[t->start_count++] = r->starts[k];
	}
	qsort(starts, t->start_count, sizeof *starts, by_value);
	for (size_t i = 0; i < t->start_count; i++)
		if (!kept || starts[kept - 1] != starts[i])
			starts[kept++] = starts[i];
	t->start_count = kept;
	return true;
}

static const uint8_t *code_at(const void *context, uint64_t address, size_t *size)
{
	return trace_bytes(context, address, size);
}

struct err *trace_run(struct image *image, const struct isa *isa, const struct trace_input *input,
		      struct trace **out)
{
	struct trace *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return err_new("out of memory");
	t->isa = isa;
	t->returns = (struct returns){
		.isa = isa,
		.bytes = code_at,
		.context = t,
		.noreturn = input->noreturn,
		.noreturn_count = input->noreturn_count,
		.slots = input->slots,
		.slot_count = input->slot_count,
	};
	bool good = returns_init(&t->returns) && add_code(t, image, input);
	if (good) {
		add_entries(t, input->entries, input->entry_count);
		run_rounds(t, region_drain);
		carry_switches(t);
		run_rounds(t, region_take_hints);
		run_rounds(t, region_take_late);
		run_rounds(t, region_fill);
		run_rounds(t, region_fill_head);
		good = good && collect_starts(t);
		while (good && mark_tail_called(t))
			good = collect_starts(t);
	}
	for (size_t i = 0; i < t->count; i++)
		good = good && !t->regions[i].failed;
	if (!good) {
		trace_free(t);
		return err_new("out of memory");
	}
	*out = t;
	return NULL;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++) {
		struct region *r = &t->regions[i];
		free(r->slots);
		branches_free(&r->branches);
		free(r->states);
		free(r->live);
		free(r->hash);
		free(r->todo);
		free(r->edges);
		free(r->calls);
		free(r->starts);
		free(r->tails);
		free(r->late);
		free(r->doubts);
		free(r->switches);
		free(r->incoming);
		free(r->arrivals);
	}
	returns_free(&t->returns);
	free(t->regions);
	free(t->starts);
	free(t);
}

void trace_each(const struct trace *t, bool gaps,
		void (*each)(void *context, const struct trace_point *place), void *context)
{
	unsigned unit = t->isa->insn_min;
	uint64_t covered = 0; /* an instruction may reach over into the next region */
	for (size_t i = 0; i < t->count; i++) {
		const struct region *r = &t->regions[i];
		struct trace_point p = {.fresh = true};
		for (uint64_t at = covered > r->start ? covered : r->start; at < r->end;) {
			uint32_t slot = *region_slot(r, at, unit);
			p.address = at;
			p.state_id = slot & SLOT_STATE;
			p.state = p.state_id ? &r->states[p.state_id] : NULL;
			p.start = slot & SLOT_START;
			p.length = (slot >> SLOT_LENGTH_SHIFT) * unit;
			if (!p.state) {
				uint64_t end = at + unit;
				while (end < r->end && !(*region_slot(r, end, unit) & SLOT_STATE))
					end += unit;
				p.length = (unsigned)(end - at);
			}
			if (p.state || gaps)
				each(context, &p);
			p.fresh = p.fresh && !p.state;
			at += p.length ? p.length : unit;
			covered = at;
		}
	}
}

const struct frame_state *trace_at(const struct trace *t, uint64_t address)
{
	struct region *r = find_region(t, address);
	if (!r || address % t->isa->insn_min)
		return NULL;
	uint32_t id = *region_slot(r, address, t->isa->insn_min) & SLOT_STATE;
	return id ? &r->states[id] : NULL;
}

size_t trace_starts(const struct trace *t, const uint64_t **out)
{
	*out = t->starts;
	return t->start_count;
}

const uint8_t *trace_bytes(const struct trace *t, uint64_t address, size_t *size)
{
	const struct region *r = find_region(t, address);
	*size = 0;
	if (!r)
		return NULL;
	*size = r->limit - address;
	return r->bytes + (address - r->start);
}
