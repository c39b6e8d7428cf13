/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/detours.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"

/* A branch to a call. */
struct detour {
	uint64_t call;
	uint64_t back; /* where the code goes on if it does not branch; 0: not known */
	uint32_t rule; /* of the CFI, at the branch */
};

struct finder {
	const struct analysis *analysis;
	const struct rows *cfi;
	struct rows *out;
	bool arm;
	size_t row; /* of cfi, at or before the place */
	struct detour *detours;
	size_t count, capacity;
	bool failed;
};

static void decode(const struct finder *f, uint64_t address, struct insn *insn)
{
	size_t size;
	const uint8_t *code = trace_bytes(f->analysis->trace, address, &size);
	if (code)
		f->analysis->isa->decode(code, size, address, insn);
	else
		*insn = (struct insn){.kind = INSN_BAD, .length = 1};
}

/* Is it a conditional branch? To decode all instructions would take long. */
static bool may_branch(const struct finder *f, const uint8_t *code)
{
	if (f->arm)
		return code[3] == 0x54;
	return (code[0] & 0xf0) == 0x70 || (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

static void add_detour(struct finder *f, uint64_t call, uint64_t back, uint32_t rule)
{
	struct insn insn;
	if (!trace_at(f->analysis->trace, call))
		return;
	decode(f, call, &insn);
	if (insn.kind != INSN_CALL)
		return;
	if (f->count == f->capacity) {
		size_t wanted = f->capacity ? 2 * f->capacity : 256;
		struct detour *grown = realloc(f->detours, wanted * sizeof *grown);
		if (!grown) {
			f->failed = true;
			return;
		}
		f->detours = grown;
		f->capacity = wanted;
	}
	f->detours[f->count++] = (struct detour){call, back, rule};
}

#define HANDLER 16 /* bytes that OCaml pushes */

/* OCaml on aarch64 pushes a handler: str x26,[sp,#-16]!; str x16,[sp,#8]. The CFI says so one instruction
   late. */
static void add_pushed(const struct finder *f, uint64_t address, const uint8_t *code, size_t size)
{
	static const uint32_t push[2] = {0xf81f0ffa, 0xf90007f0};
	if (size < sizeof push || memcmp(code, push, sizeof push))
		return;
	struct recipe deeper = f->cfi->rules[rows_find(f->cfi, address + 4)];
	deeper.cfa_offset += HANDLER;
	if (rows_find(f->cfi, address) == rows_find(f->cfi, address + 4) &&
	    !memcmp(&deeper, &f->cfi->rules[rows_find(f->cfi, address + 8)], sizeof deeper))
		rows_add(f->out, address + 4, address + 8, rows_rule(f->out, &deeper));
}

/* A branch leads to a call, or over a jump that does. */
static void find_detour(void *context, const struct trace_point *p)
{
	struct finder *f = context;
	struct insn branch, jump;
	size_t size;
	const uint8_t *code = trace_bytes(f->analysis->trace, p->address, &size);
	if (!code || size < 4)
		return;
	if (f->arm)
		add_pushed(f, p->address, code, size);
	if (!may_branch(f, code))
		return;
	uint32_t rule = rows_follow(f->cfi, &f->row, p->address);
	if (f->cfi->rules[rule].cfa == RECIPE_NONE)
		return;
	decode(f, p->address, &branch);
	if (branch.kind != INSN_BRANCH)
		return;
	uint64_t next = p->address + branch.length;
	add_detour(f, branch.target, next, rule);
	decode(f, next, &jump);
	if (jump.kind == INSN_JUMP)
		add_detour(f, jump.target, branch.target, rule);
}

static int compare_detours(const void *a, const void *b)
{
	const struct detour *x = a, *y = b;
	return x->call < y->call ? -1 : x->call > y->call;
}

#define INSN_LONGEST 15

/* Is there no way to `call` from the instruction before it, nor from other procedures? Those that call the
   same, one after another, do not return. */
static bool stands_alone(const struct finder *f, const struct insn *call, const struct recipe *said)
{
	const struct isa *isa = f->analysis->isa;
	const unsigned least = isa->insn_min;
	if (said->cfa != RECIPE_REG ||
	    (said->cfa_reg == isa->sp && said->cfa_offset == isa->call_pushes))
		return false;
	for (unsigned back = least; back <= (f->arm ? least : INSN_LONGEST); back += least) {
		uint64_t before = call->address - back;
		struct insn insn;
		if (!trace_at(f->analysis->trace, before))
			continue;
		decode(f, before, &insn);
		if (insn.length == back)
			return insn.kind == INSN_JUMP || insn.kind == INSN_JUMP_INDIRECT ||
			       insn.kind == INSN_RETURN || insn.kind == INSN_TRAP ||
			       (insn.kind == INSN_CALL && insn.target == call->target);
	}
	return false;
}

/* The branches to one call. */
static void add_rows(const struct finder *f, const struct detour *first, size_t count)
{
	struct recipe lost = {.cfa = RECIPE_COMPLEX, .source = RECIPE_FROM_SHAPE};
	struct insn call, jump;
	bool same = true, wrong = false;
	uint32_t said = rows_find(f->cfi, first->call);
	for (size_t i = 0; i < count; i++) {
		same = same && first[i].rule == first->rule;
		wrong = wrong || first[i].rule != said;
	}
	if (!wrong || f->cfi->rules[said].cfa == RECIPE_NONE)
		return;
	decode(f, first->call, &call);
	uint64_t end = first->call + call.length;
	decode(f, end, &jump);
	if (jump.kind == INSN_JUMP && jump.target == first->back &&
	    rows_find(f->cfi, jump.target) == first->rule)
		end += jump.length;
	else if (!stands_alone(f, &call, &f->cfi->rules[said]))
		return;
	const struct recipe *recipe = same ? &f->cfi->rules[first->rule] : &lost;
	rows_add(f->out, first->call, end, rows_rule(f->out, recipe));
}

void detours_add(const struct analysis *analysis, const struct rows *cfi, struct rows *out)
{
	struct finder f = {.analysis = analysis,
			   .cfi = cfi,
			   .out = out,
			   .arm = analysis->isa->elf_machine == EM_AARCH64};
	trace_each(analysis->trace, false, find_detour, &f);
	if (f.count)
		qsort(f.detours, f.count, sizeof *f.detours, compare_detours);
	for (size_t i = 0, next; i < f.count; i = next) {
		for (next = i + 1; next < f.count && f.detours[next].call == f.detours[i].call;)
			next++;
		add_rows(&f, f.detours + i, next - i);
	}
	out->failed |= f.failed;
	free(f.detours);
}
