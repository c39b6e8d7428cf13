/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mostly all of a switch's dispatch stands in a row before the jump: compare, branch away, load from
 * the table, jump. But the compare may stand elsewhere and jump to the rest, and the table's address
 * may have been taken long before, outside of a loop. Whatever must have happened before the
 * jump happens on every way from the procedure's entry to it. So any such way will do: it is built
 * backwards, run by run, until the isa is content with it.
 *
 *    run 1            run 0
 *    ...              mov ...          <- nothing falls into this
 *    cmp $5, %eax     jmp *(%rdx)
 *    jbe run 0
 */
#include "flow/tables.h"

#include <string.h>

#include "flow/branches.h"
#include "isa/insn.h"

#define STRAIGHT 256u /* bytes that are looked at first */
#define AROUND 4096u  /* where branches are searched, either way */
#define MAX_RUNS 64
#define MAX_DEPTH 200
#define MAX_PATH 8192u /* bytes */
#define MAX_ASKED 8    /* ways that the isa is asked about */
#define MAX_SOURCES 32 /* branches to one place that are tried */
#define MAX_ENTRIES 4096u
#define LONGEST_INSN 15

struct path {
	const struct tables_code *code;
	struct code_run runs[MAX_RUNS]; /* the last `count` are in use */
	size_t count, size;
	const struct branches *branches;
	uint64_t low, high; /* the code that is searched */
	size_t next_size;   /* ask when the way is so long */
	unsigned asked;
	bool found;
	uint8_t seen[2 * AROUND / 8]; /* a bit for each address from `low` on that was searched */
};

static void decode(const struct tables_code *c, uint64_t at, struct insn *insn)
{
	c->isa->decode(c->bytes + (at - c->start), c->end - at, at, insn);
}

static bool is_on_path(const struct path *p, uint64_t at)
{
	for (size_t i = MAX_RUNS - p->count; i < MAX_RUNS; i++)
		if (at - p->runs[i].address < p->runs[i].size)
			return true;
	return false;
}

/* The instruction that runs into `at`; `at` itself where there is none. */
static uint64_t step_back(const struct path *p, uint64_t at, uint8_t *kind)
{
	const struct tables_code *c = p->code;
	unsigned unit = c->isa->insn_min, most = unit > 1 ? unit : LONGEST_INSN;
	struct insn insn;
	for (unsigned back = unit; back <= most && back <= at - c->start; back += unit) {
		if (c->length(c->context, at - back) != back)
			continue;
		decode(c, at - back, &insn);
		*kind = insn.kind;
		return insn.kind == INSN_JUMP || insn.kind == INSN_JUMP_INDIRECT ||
				       insn.kind == INSN_RETURN || insn.kind == INSN_TRAP ||
				       insn.kind == INSN_BAD || is_on_path(p, at - back)
			       ? at
			       : at - back;
	}
	return at;
}

/* Lets the first run begin earlier. */
static void lengthen(struct path *p, uint64_t at)
{
	struct code_run *run = &p->runs[MAX_RUNS - p->count];
	uint64_t more = run->address - at;
	p->size += more;
	run->code -= more;
	run->size += more;
	run->address = at;
}

static bool begin_run(struct path *p, uint64_t at, unsigned length)
{
	if (p->count == MAX_RUNS || length == 0 || length > p->code->end - at)
		return false;
	p->count++;
	p->runs[MAX_RUNS - p->count] = (struct code_run){
		.code = p->code->bytes + (at - p->code->start),
		.size = length,
		.address = at,
	};
	p->size += length;
	return true;
}

/* The branches of the code that is searched. */
static bool find_branches(const struct path *p, struct branches *out)
{
	const struct tables_code *c = p->code;
	struct insn insn;
	for (uint64_t at = p->low; at < p->high;) {
		if (!c->length(c->context, at)) {
			at += c->isa->insn_min;
			continue;
		}
		decode(c, at, &insn);
		if ((insn.kind == INSN_BRANCH || insn.kind == INSN_JUMP) &&
		    !branches_add(out, at, insn.target))
			return false;
		at += insn.length;
	}
	return true;
}

/* Asks the isa. A table with an exact count is better than one without. */
static bool ask(struct path *p, struct jump_table *out)
{
	struct jump_table found;
	p->asked++;
	if (!p->code->isa->find_jump_table(p->runs + MAX_RUNS - p->count, p->count, &found))
		return false;
	if (!p->found || found.exact || !out->count)
		*out = found;
	p->found = true;
	return found.exact;
}

static bool was_seen(struct path *p, uint64_t at)
{
	uint8_t *byte = &p->seen[(at - p->low) / 8], bit = (uint8_t)(1u << (at - p->low) % 8);
	bool before = *byte & bit;
	*byte |= bit;
	return before;
}

static bool explore(struct path *p, unsigned depth, struct jump_table *out);

/* Comes to the first run by the branches to it from [low, high), the last one first. */
static bool explore_branches(struct path *p, unsigned depth, uint64_t low, uint64_t high,
			     struct jump_table *out)
{
	uint64_t sources[MAX_SOURCES], to = p->runs[MAX_RUNS - p->count].address;
	size_t count = branches_to(p->branches, to, sources, MAX_SOURCES), size = p->size;
	for (size_t i = count; i-- > 0;) {
		uint64_t from = sources[i];
		if (from < low || from >= high || was_seen(p, from) ||
		    !begin_run(p, from, p->code->length(p->code->context, from)))
			continue;
		if (explore(p, depth + 1, out))
			return true;
		p->count--;
		p->size = size;
	}
	return false;
}

static bool explore_straight(struct path *p, unsigned depth, uint64_t before,
			     struct jump_table *out)
{
	struct code_run kept = p->runs[MAX_RUNS - p->count];
	size_t size = p->size;
	if (before < p->low || was_seen(p, before))
		return false;
	lengthen(p, before);
	if (explore(p, depth + 1, out))
		return true;
	p->runs[MAX_RUNS - p->count] = kept;
	p->size = size;
	return false;
}

/* Makes the way longer, at its begin, until the isa knows all it wants. Where several ways meet, the
   one that runs straight comes first, unless it comes from a call that others jump over, which
   may not return; then those from before; those from behind last, for they are likely loops. */
static bool explore(struct path *p, unsigned depth, struct jump_table *out)
{
	uint64_t at = p->runs[MAX_RUNS - p->count].address, before = at;
	uint8_t kind = INSN_OTHER;
	for (;;) {
		before = step_back(p, at, &kind);
		if (before == at || before < p->low || branches_any(p->branches, at) ||
		    p->size >= MAX_PATH)
			break;
		was_seen(p, before);
		lengthen(p, before);
		at = before;
	}
	if (p->size >= p->next_size || before == at) {
		p->next_size = p->size + p->size / 4;
		if (ask(p, out))
			return true;
	}
	if (p->size >= MAX_PATH || depth >= MAX_DEPTH || p->asked >= MAX_ASKED)
		return false;
	bool call = kind == INSN_CALL;
	return (!call && before != at && explore_straight(p, depth, before, out)) ||
	       explore_branches(p, depth, p->low, at, out) ||
	       (call && before != at && explore_straight(p, depth, before, out)) ||
	       explore_branches(p, depth, at, p->high, out);
}

/* Where the code right before the jump does not tell. */
static void search(struct path *p, uint64_t jump, struct jump_table *out)
{
	const struct tables_code *c = p->code;
	p->low = jump - c->start > AROUND ? jump - AROUND : c->start;
	p->high = c->end - jump > AROUND ? jump + AROUND : c->end;
	struct branches found = {.base = p->low};
	p->branches = c->branches ? c->branches : &found;
	if (c->branches || find_branches(p, &found))
		explore(p, 0, out);
	branches_free(&found);
}

bool tables_find(const struct tables_code *code, uint64_t jump, struct jump_table *out)
{
	struct path p;
	uint8_t kind;
	memset(&p, 0, sizeof p);
	p.code = code;
	if (jump < code->start || jump >= code->end || jump % code->isa->insn_min ||
	    !begin_run(&p, jump, code->length(code->context, jump)))
		return false;
	struct code_run last = p.runs[MAX_RUNS - 1];
	for (uint64_t at = jump, before; p.size < STRAIGHT; at = before) {
		before = step_back(&p, at, &kind);
		if (before == at)
			break;
		lengthen(&p, before);
	}
	if (!ask(&p, out) && !code->nearby) {
		p.runs[MAX_RUNS - 1] = last;
		p.size = last.size;
		search(&p, jump, out);
	}
	return p.found;
}

uint64_t tables_target(const struct jump_table *t, const uint8_t *entry)
{
	uint64_t n = 0;
	unsigned unused = 64 - t->entry_size * 8u;
	memcpy(&n, entry, t->entry_size);
	if (t->is_signed)
		n = (uint64_t)((int64_t)(n << unused) >> unused);
	return t->base + (n << t->shift);
}

size_t tables_targets(const struct jump_table *t,
		      const uint8_t *(*data)(const void *context, uint64_t address, size_t *size),
		      const void *context, uint64_t low, uint64_t high, unsigned align,
		      uint64_t *out, size_t max)
{
	size_t size, count = 0;
	const uint8_t *bytes = data(context, t->table, &size);
	if (!bytes || t->count == 0 || (!t->exact && t->entry_size < 4))
		return 0;
	for (uint64_t i = 0; i < t->count; i++) {
		uint64_t target;
		bool there = i < MAX_ENTRIES && size / t->entry_size > i;
		if (there)
			target = tables_target(t, bytes + i * t->entry_size);
		if (!there || target < low || target >= high || target % align) {
			if (t->exact)
				return 0;
			break;
		}
		if (count && out[count - 1] == target)
			continue;
		if (count == max)
			return 0;
		out[count++] = target;
	}
	return count;
}
