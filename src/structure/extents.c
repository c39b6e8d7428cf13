/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/extents.h"

#include <elf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/parallel.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/cfi.h"
#include "recipes/procedures.h"
#include "recipes/rows.h"

enum source { BY_SYMBOL, BY_DWARF, BY_CFI, BY_LABEL, BY_CODE, BY_GAP };

struct span {
	uint64_t start, end; /* end 0: not known */
	const char *name;
	uint8_t source; /* enum source */
	bool part;      /* moved away from its procedure */
	uint32_t owner; /* of a part: the span with the entry; EXTENT_NONE: not yet known */
};

struct spans {
	struct image *image;
	const struct isa *isa;
	struct span *items;
	size_t count, capacity;
	bool failed;
};

static void add(struct spans *s, struct span span)
{
	if (!ARRAY_ROOM(s->items, s->count, s->capacity)) {
		s->failed = true;
		return;
	}
	s->items[s->count++] = span;
}

/* ".cold", ".cold.2": a part of what stands before it. NULL: is none. */
static const char *part_suffix(const char *name)
{
	const char *dot = strstr(name, ".cold");
	return dot && dot != name && (dot[5] == 0 || dot[5] == '.') ? dot : NULL;
}

/* ---- what the file says ---- */

static void add_symbols(struct spans *s, const struct symbols *symbols)
{
	const struct symbol *all;
	size_t count = symbols ? symbols_all(symbols, &all) : 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t end = all[i].address + all[i].size;
		if (!image_is_code(s->image, all[i].address) || end < all[i].address ||
		    procedures_is_stub(s->image, all[i].address))
			continue;
		add(s, (struct span){all[i].address, all[i].size ? end : 0, all[i].name,
				     all[i].size ? BY_SYMBOL : BY_LABEL,
				     part_suffix(all[i].name) != NULL, EXTENT_NONE});
	}
}

/* Entries that begin with something on the stack are parts of procedures. That is only asked of
   those that have no symbol, and costs time: so first it is found out whether there are any. */
static struct err *mark_parts(struct spans *s, struct image *debug, size_t from)
{
	struct procedures whole = {0};
	struct rows rows;
	struct cfi_stats stats;
	struct err *e;
	size_t next = 0;
	rows_init(&rows);
	e = cfi_read(s->image, debug, &rows, &stats);
	rows_finish(&rows);
	if (!e && rows.failed)
		e = err_new("out of memory");
	if (!e)
		e = procedures_from_cfi(s->image, debug, &rows, &whole);
	for (size_t i = from; !e && i < s->count; i++) {
		while (next < whole.count && whole.ranges[next].start < s->items[i].start)
			next++;
		s->items[i].part = next == whole.count ||
				   whole.ranges[next].start != s->items[i].start;
	}
	procedures_free(&whole);
	rows_free(&rows);
	return e;
}

static bool has_symbol(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *found = symbols ? symbols_find(symbols, address) : NULL;
	return found && (found->address == address ||
			 (found->size && address - found->address < found->size));
}

static struct err *add_cfi(struct spans *s, struct image *debug, const struct symbols *symbols)
{
	struct cfi_range *ranges = NULL;
	size_t count = 0, from = s->count;
	bool unnamed = false;
	struct err *e = cfi_ranges(s->image, debug, &ranges, &count);
	for (size_t i = 0; !e && i < count; i++) {
		if (ranges[i].end <= ranges[i].start || !image_is_code(s->image, ranges[i].start) ||
		    procedures_is_stub(s->image, ranges[i].start))
			continue;
		unnamed |= !has_symbol(symbols, ranges[i].start);
		add(s, (struct span){ranges[i].start, ranges[i].end, NULL, BY_CFI, false,
				     EXTENT_NONE});
	}
	free(ranges);
	if (!e && unnamed && s->isa)
		e = mark_parts(s, debug, from);
	return e;
}

static struct err *add_described(void *context, const struct inline_procedure *p)
{
	struct spans *s = context;
	uint64_t entry = p->scopes[0].count ? p->ranges[p->scopes[0].first].start : 0;
	for (uint32_t i = 0; i < p->scopes[0].count; i++) {
		const struct inline_range *r = &p->ranges[p->scopes[0].first + i];
		if (r->end > r->start && image_is_code(s->image, r->start))
			add(s, (struct span){r->start, r->end, i ? NULL : p->scopes[0].name,
					     BY_DWARF, r->start != entry, EXTENT_NONE});
	}
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int)x->source - (int)y->source;
}

/* One span for each place where something begins, with an end, none inside of another. */
static void join_spans(struct spans *s)
{
	size_t kept = 0;
	if (s->count)
		qsort(s->items, s->count, sizeof *s->items, by_start);
	for (size_t i = 0; i < s->count; i++) {
		struct span span = s->items[i], *last = kept ? &s->items[kept - 1] : NULL;
		if (last && last->start == span.start) {
			if (!last->name)
				last->name = span.name;
			if (last->source != BY_SYMBOL)
				last->part |= span.part;
			if (span.end > last->end && (!last->end || span.source == BY_CFI))
				last->end = span.end;
			continue;
		}
		/* What begins inside of something known is a label in it, unless the unwind
		   information or another symbol says that it goes beyond. */
		if (last && span.start < last->end &&
		    (span.source == BY_LABEL || span.source == BY_CODE || span.end <= last->end))
			continue;
		if (last && last->end > span.start)
			last->end = span.start;
		s->items[kept++] = span;
	}
	s->count = kept;
}

/* ---- what it does not say ---- */

/* Labels of unknown size, and the code between spans. */
struct gaps {
	struct spans *spans;
	uint64_t bytes;
	struct spans found;
};

/* Where code begins in [at, end): padding is skipped. `end`: nowhere. */
static uint64_t skip_padding(const struct spans *s, uint64_t at, uint64_t end)
{
	size_t size;
	const uint8_t *bytes = s->isa ? image_bytes_at(s->image, at, &size) : NULL;
	struct insn insn;
	while (bytes && at < end && size) {
		s->isa->decode(bytes, size, at, &insn);
		if (insn.kind != INSN_NOP && insn.kind != INSN_TRAP && insn.kind != INSN_BAD &&
		    !(bytes[0] == 0 && (size < 2 || bytes[1] == 0)))
			return at;
		if (insn.length > size)
			break;
		bytes += insn.length, size -= insn.length, at += insn.length;
	}
	return end;
}

static void add_gap(struct gaps *g, uint64_t start, uint64_t end)
{
	start = skip_padding(g->spans, start, end);
	if (start >= end)
		return;
	g->bytes += end - start;
	add(&g->found, (struct span){start, end, NULL, BY_GAP, false, EXTENT_NONE});
}

/* Code sections; a file without sections has its executable segments. */
static size_t code_areas(struct image *image, struct span **out)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	size_t count = image_sections(image, &sections), found = 0;
	size_t segment_count = image_segments(image, &segments);
	struct span *areas = calloc(count + segment_count + 1, sizeof *areas);
	*out = areas;
	for (size_t i = 0; areas && i < count; i++)
		if ((sections[i].flags & SHF_EXECINSTR) && sections[i].type == SHT_PROGBITS &&
		    sections[i].address && strncmp(sections[i].name, ".plt", 4) &&
		    sections[i].address + sections[i].size > sections[i].address)
			areas[found++] = (struct span){.start = sections[i].address,
						       .end = sections[i].address +
							      sections[i].size};
	for (size_t i = 0; areas && !found && !count && i < segment_count; i++)
		if (segments[i].executable && segments[i].file_size)
			areas[found++] = (struct span){.start = segments[i].address,
						       .end = segments[i].address +
							      segments[i].file_size};
	if (found)
		qsort(areas, found, sizeof *areas, by_start);
	return found;
}

static void find_gaps(struct spans *s, struct gaps *g)
{
	struct span *areas;
	size_t count = code_areas(s->image, &areas), next = 0;
	*g = (struct gaps){.spans = s, .found = {.image = s->image, .isa = s->isa}};
	for (size_t i = 0; i < count; i++) {
		uint64_t at = areas[i].start;
		while (next < s->count && s->items[next].start < areas[i].start)
			next++;
		for (; next < s->count && s->items[next].start < areas[i].end; next++) {
			struct span *span = &s->items[next];
			if (span->start > at)
				add_gap(g, at, span->start);
			if (!span->end) /* a label: up to what comes next */
				span->end = next + 1 < s->count &&
							    s->items[next + 1].start < areas[i].end
						    ? s->items[next + 1].start
						    : areas[i].end;
			if (span->end > areas[i].end)
				span->end = areas[i].end;
			at = span->end > at ? span->end : at;
		}
		if (at < areas[i].end)
			add_gap(g, at, areas[i].end);
	}
	s->failed |= g->found.failed || (count == 0 && !areas);
	free(areas);
}

/* Small gaps are taken as they are; where much is unknown the code is followed. */
#define GAP_BYTES_MAX (64u << 10)

static struct err *fill_gaps(struct spans *s, const struct symbols *symbols, uint64_t gap_bytes_max,
			     bool *gaps)
{
	struct gaps g;
	struct analysis analysis;
	const uint64_t *starts;
	size_t count, next = 0;
	struct err *e;
	find_gaps(s, &g);
	*gaps = gap_bytes_max && g.bytes > gap_bytes_max;
	if (*gaps) {
		free(g.found.items);
		return NULL;
	}
	if (g.bytes > GAP_BYTES_MAX && s->isa) {
		e = analysis_run(s->image, symbols, &analysis);
		if (e) {
			free(g.found.items);
			return e;
		}
		count = trace_starts(analysis.trace, &starts);
		for (size_t i = 0, n = g.found.count; i < n; i++) {
			const struct span gap = g.found.items[i];
			uint64_t from = gap.start;
			while (next < count && starts[next] <= gap.start)
				next++;
			for (; next < count && starts[next] < gap.end; from = starts[next++])
				add(s, (struct span){from, starts[next], NULL, BY_CODE, false,
						     EXTENT_NONE});
			add(s, (struct span){from, gap.end, NULL, BY_CODE, false, EXTENT_NONE});
		}
		analysis_free(&analysis);
	} else {
		for (size_t i = 0; i < g.found.count; i++)
			add(s, g.found.items[i]);
	}
	free(g.found.items);
	join_spans(s);
	return NULL;
}

/* ---- parts find their procedure ---- */

struct claims {
	struct spans *spans;
	uint32_t *parts; /* spans that look for their owner, ascending */
	size_t part_count;
	_Atomic uint32_t *owner; /* for each: the lowest span that jumps into it */
};

static uint32_t span_at(const struct spans *s, uint64_t address)
{
	size_t found = FIRST_NOT(i, s->count, s->items[i].end <= address);
	return found < s->count && s->items[found].start <= address ? (uint32_t)found : EXTENT_NONE;
}

static void claim(struct claims *c, uint32_t span, uint64_t target)
{
	const struct span *items = c->spans->items;
	size_t found = FIRST_NOT(i, c->part_count, items[c->parts[i]].end <= target);
	if (found == c->part_count || items[c->parts[found]].start > target)
		return;
	uint32_t before = atomic_load(&c->owner[found]);
	while (span < before && !atomic_compare_exchange_weak(&c->owner[found], &before, span))
		;
}

#define SPANS_PER_JOB 256

static void claim_by_jumps(void *context, size_t job)
{
	struct claims *c = context;
	const struct spans *s = c->spans;
	struct insn insn;
	for (size_t i = job * SPANS_PER_JOB; i < s->count && i < (job + 1) * SPANS_PER_JOB; i++) {
		uint64_t at = s->items[i].start, end = s->items[i].end;
		size_t size;
		const uint8_t *bytes = s->items[i].part ? NULL
							: image_bytes_at(s->image, at, &size);
		if (bytes && size > end - at)
			size = end - at;
		for (; bytes && size;
		     bytes += insn.length, size -= insn.length, at += insn.length) {
			s->isa->decode(bytes, size, at, &insn);
			if ((insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH) &&
			    (insn.target < s->items[i].start || insn.target >= end))
				claim(c, (uint32_t)i, insn.target);
			if (insn.length > size)
				break;
		}
	}
}

static struct err *claim_by_landings(struct claims *c)
{
	struct cfi_landing *landings = NULL;
	size_t count = 0;
	struct err *e = cfi_landings(c->spans->image, &landings, &count);
	for (size_t i = 0; !e && i < count; i++) {
		uint32_t from = span_at(c->spans, landings[i].start);
		if (from != EXTENT_NONE && !c->spans->items[from].part)
			claim(c, from, landings[i].landing_pad);
	}
	free(landings);
	return e;
}

struct named {
	const char *name;
	uint32_t span;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : x->span < y->span ? -1 : x->span > y->span;
}

/* "f.cold" belongs to "f", where there is only one of that name. */
static uint32_t owner_by_name(const struct named *named, size_t count, const char *part)
{
	size_t length = (size_t)(part_suffix(part) - part);
	size_t found = FIRST_NOT(i, count, strncmp(named[i].name, part, length) < 0);
	if (found == count || strncmp(named[found].name, part, length) || named[found].name[length])
		return EXTENT_NONE;
	if (found + 1 < count && !strcmp(named[found + 1].name, named[found].name))
		return EXTENT_NONE;
	return named[found].span;
}

static bool own_by_name(struct spans *s)
{
	struct named *named = calloc(s->count + 1, sizeof *named);
	size_t count = 0;
	if (!named)
		return false;
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].name && !s->items[i].part)
			named[count++] = (struct named){s->items[i].name, (uint32_t)i};
	if (count)
		qsort(named, count, sizeof *named, by_name);
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].part && s->items[i].name && part_suffix(s->items[i].name))
			s->items[i].owner = owner_by_name(named, count, s->items[i].name);
	free(named);
	return true;
}

/* By name, else by who jumps there or lets exceptions land there; else a part is on its own. */
static struct err *own_parts(struct spans *s)
{
	struct claims c = {.spans = s};
	struct err *e = NULL;
	if (!own_by_name(s))
		return err_new("out of memory");
	for (size_t i = 0; i < s->count; i++)
		c.part_count += s->items[i].part && s->items[i].owner == EXTENT_NONE;
	if (!c.part_count || !s->isa)
		return NULL;
	c.parts = calloc(c.part_count, sizeof *c.parts);
	c.owner = calloc(c.part_count, sizeof *c.owner);
	if (!c.parts || !c.owner)
		e = err_new("out of memory");
	for (size_t i = 0, n = 0; !e && i < s->count; i++)
		if (s->items[i].part && s->items[i].owner == EXTENT_NONE) {
			atomic_store(&c.owner[n], EXTENT_NONE);
			c.parts[n++] = (uint32_t)i;
		}
	if (!e)
		parallel_for((s->count + SPANS_PER_JOB - 1) / SPANS_PER_JOB, claim_by_jumps, &c);
	if (!e)
		e = claim_by_landings(&c);
	for (size_t i = 0; !e && i < c.part_count; i++)
		s->items[c.parts[i]].owner = atomic_load(&c.owner[i]);
	free(c.parts);
	free((void *)c.owner);
	return e;
}

/* ---- the result ---- */

bool extents_group(struct extents *x, const uint32_t *entry_of)
{
	x->by_procedure = calloc(x->part_count + 1, sizeof *x->by_procedure);
	if (!x->by_procedure)
		return false;
	for (size_t i = 0; i < x->part_count; i++)
		x->procedures[x->parts[i].procedure].count++;
	for (size_t i = 0, at = 0; i < x->procedure_count; i++) {
		x->procedures[i].first = (uint32_t)at;
		at += x->procedures[i].count;
		x->by_procedure[x->procedures[i].first] = entry_of[i];
		x->procedures[i].count = 1;
	}
	for (size_t i = 0; i < x->part_count; i++) {
		struct extents_procedure *p = &x->procedures[x->parts[i].procedure];
		if (entry_of[x->parts[i].procedure] != i)
			x->by_procedure[p->first + p->count++] = (uint32_t)i;
	}
	return true;
}

static struct err *finish(struct spans *s, struct extents *out)
{
	uint32_t *number = calloc(s->count + 1, sizeof *number);
	uint32_t *entry_of = calloc(s->count + 1, sizeof *entry_of);
	bool good;
	out->parts = calloc(s->count + 1, sizeof *out->parts);
	out->procedures = calloc(s->count + 1, sizeof *out->procedures);
	good = number && entry_of && out->parts && out->procedures;
	for (size_t i = 0; good && i < s->count; i++)
		if (s->items[i].owner == EXTENT_NONE) {
			entry_of[out->procedure_count] = (uint32_t)i;
			out->procedures[out->procedure_count].name = s->items[i].name;
			number[i] = (uint32_t)out->procedure_count++;
		}
	for (size_t i = 0; good && i < s->count; i++) {
		uint32_t owner = s->items[i].owner == EXTENT_NONE ? (uint32_t)i : s->items[i].owner;
		out->parts[i] = (struct extent){s->items[i].start, s->items[i].end, number[owner]};
	}
	out->part_count = good ? s->count : 0;
	good = good && extents_group(out, entry_of);
	free(number);
	free(entry_of);
	if (good)
		return NULL;
	extents_free(out);
	return err_new("out of memory");
}

struct err *extents_find(struct image *image, struct image *debug, const struct symbols *symbols,
			 struct inlines *inlines, uint64_t gap_bytes_max, struct extents *out)
{
	struct spans s = {.image = image, .isa = isa_for_machine(image_machine(image))};
	struct err *e = NULL;
	memset(out, 0, sizeof *out);
	add_symbols(&s, symbols);
	e = add_cfi(&s, debug, symbols);
	if (!e && inlines)
		e = inlines_each(inlines, add_described, &s);
	join_spans(&s);
	if (!e)
		e = fill_gaps(&s, symbols, gap_bytes_max, &out->gaps);
	if (!e && s.failed)
		e = err_new("out of memory");
	if (!e)
		e = own_parts(&s);
	if (!e)
		e = finish(&s, out);
	free(s.items);
	return e;
}

void extents_free(struct extents *x)
{
	free(x->parts);
	free(x->by_procedure);
	free(x->procedures);
	memset(x, 0, sizeof *x);
}

uint32_t extents_at(const struct extents *x, uint64_t address)
{
	size_t found = FIRST_NOT(i, x->part_count, x->parts[i].end <= address);
	return found < x->part_count && x->parts[found].start <= address ? x->parts[found].procedure
									 : EXTENT_NONE;
}

uint64_t extents_start(const struct extents *x, uint32_t procedure)
{
	return x->parts[x->by_procedure[x->procedures[procedure].first]].start;
}
