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

#include <stdlib.h>
#include <string.h>

#include "isa/insn.h"

#define STRAIGHT 256u    /* bytes that are looked at first */
#define AROUND 12288u    /* where branches to the run are searched, either way */
#define MAX_RUNS 24
#define MAX_PATH 8192u   /* bytes */
#define MAX_ENTRIES 4096u
#define LONGEST_INSN 15

struct branch {
	uint64_t from, to;
};

struct path {
	const struct tables_code *code;
	struct code_run runs[MAX_RUNS]; /* the last `count` are in use */
	size_t count, size;
	struct branch *branches; /* by target, then source */
	size_t branch_count;
	bool over_calls; /* a call that others jump over may not return: come from those */
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

/* The last branch to `to` from before it, else the first from behind; `to`: none. What is behind is
   likely the end of a loop, or on the way already. */
static uint64_t find_source(const struct path *p, uint64_t to)
{
	size_t low = 0, high = p->branch_count;
	uint64_t best = to;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (p->branches[middle].to < to)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < p->branch_count && p->branches[low].to == to; low++) {
		uint64_t from = p->branches[low].from;
		if (!is_on_path(p, from) && (from < to || best == to))
			best = from;
	}
	return best;
}

static bool falls_through(const struct path *p, uint64_t at)
{
	struct insn insn;
	decode(p->code, at, &insn);
	if (p->over_calls && insn.kind == INSN_CALL &&
	    find_source(p, at + insn.length) < at + insn.length)
		return false;
	return insn.kind != INSN_JUMP && insn.kind != INSN_JUMP_INDIRECT && insn.kind != INSN_RETURN &&
	       insn.kind != INSN_TRAP && insn.kind != INSN_BAD;
}

/* The instruction that runs into `at`; `at` itself where there is none. */
static uint64_t step_back(const struct path *p, uint64_t at)
{
	const struct tables_code *c = p->code;
	unsigned unit = c->isa->insn_min, most = unit > 1 ? unit : LONGEST_INSN;
	for (unsigned back = unit; back <= most && back <= at - c->start; back += unit)
		if (c->length(c->context, at - back) == back)
			return falls_through(p, at - back) && !is_on_path(p, at - back) ? at - back : at;
	return at;
}

/* Lengthens the first run at its begin, until it has `size` bytes. True: there was something. */
static bool lengthen(struct path *p, size_t size)
{
	struct code_run *run = &p->runs[MAX_RUNS - p->count];
	uint64_t at = run->address, end = at + run->size;
	while (end - at < size) {
		uint64_t before = step_back(p, at);
		if (before == at)
			break;
		at = before;
	}
	bool any = at != run->address;
	p->size += run->address - at;
	run->code -= run->address - at;
	run->size += run->address - at;
	run->address = at;
	return any;
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

static int by_target(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool find_branches(struct path *p, uint64_t jump)
{
	const struct tables_code *c = p->code;
	uint64_t low = jump - c->start > AROUND ? jump - AROUND : c->start;
	uint64_t high = c->end - jump > AROUND ? jump + AROUND : c->end;
	size_t room = 0;
	struct insn insn;
	low -= low % c->isa->insn_min;
	for (uint64_t at = low; at < high;) {
		if (!c->length(c->context, at)) {
			at += c->isa->insn_min;
			continue;
		}
		decode(c, at, &insn);
		if (insn.kind == INSN_BRANCH || insn.kind == INSN_JUMP) {
			if (p->branch_count == room) {
				struct branch *grown = realloc(p->branches, (room = room * 2 + 64) * sizeof *grown);
				if (!grown)
					return false;
				p->branches = grown;
			}
			p->branches[p->branch_count++] = (struct branch){at, insn.target};
		}
		at += insn.length;
	}
	if (p->branch_count)
		qsort(p->branches, p->branch_count, sizeof *p->branches, by_target);
	return true;
}

/* Puts a run before the first one that ends in a branch to it. */
static bool prepend(struct path *p)
{
	uint64_t to = p->runs[MAX_RUNS - p->count].address, from = find_source(p, to);
	return from != to && begin_run(p, from, p->code->length(p->code->context, from));
}

static bool ask(const struct path *p, struct jump_table *out)
{
	struct jump_table found;
	if (!p->code->isa->find_jump_table(p->runs + MAX_RUNS - p->count, p->count, &found))
		return false;
	*out = found;
	return true;
}

/* Makes the way longer until the isa knows all it wants. */
static bool search(struct path *p, struct jump_table *out)
{
	bool found = false;
	size_t asked = 0;
	while (p->size < MAX_PATH) {
		if (!lengthen(p, p->size < 1024 ? 1024 : MAX_PATH) && !prepend(p))
			break;
		if (p->size < asked + asked / 4)
			continue;
		asked = p->size;
		if (ask(p, out)) {
			found = true;
			if (out->exact)
				return true;
		}
	}
	return (asked != p->size && ask(p, out)) || found;
}

static bool restart(struct path *p, uint64_t jump)
{
	p->count = p->size = 0;
	return begin_run(p, jump, p->code->length(p->code->context, jump));
}

bool tables_find(const struct tables_code *code, uint64_t jump, struct jump_table *out)
{
	struct path p = {.code = code};
	struct jump_table other;
	if (jump < code->start || jump >= code->end || !restart(&p, jump))
		return false;
	lengthen(&p, STRAIGHT);
	bool found = ask(&p, out);
	if (found && out->exact)
		return true;
	if (find_branches(&p, jump)) {
		found |= search(&p, out);
		p.over_calls = true;
		if (!(found && out->exact) && restart(&p, jump) && search(&p, &other) &&
		    (!found || other.exact)) {
			*out = other;
			found = true;
		}
	}
	free(p.branches);
	return found;
}

void tables_limit(struct jump_table *table, const uint64_t *starts, size_t count)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (starts[middle] <= table->table)
			low = middle + 1;
		else
			high = middle;
	}
	if (table->exact || low == count || table->entry_size == 0)
		return;
	uint64_t most = (starts[low] - table->table) / table->entry_size;
	if (table->count == 0 || table->count > most)
		table->count = most;
}

static uint64_t read_target(const struct jump_table *t, const uint8_t *entry)
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
		      const void *context, uint64_t low, uint64_t high, unsigned align, uint64_t *out,
		      size_t max)
{
	size_t size, count = 0;
	const uint8_t *bytes = data(context, t->table, &size);
	if (!bytes || t->count == 0 || (!t->exact && t->entry_size < 4))
		return 0;
	for (uint64_t i = 0; i < t->count; i++) {
		uint64_t target;
		bool there = i < MAX_ENTRIES && size / t->entry_size > i;
		if (there)
			target = read_target(t, bytes + i * t->entry_size);
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
