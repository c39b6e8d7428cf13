/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread begins that a program makes by itself, without the C library, as the leak checker of
 * LLVM does:
 *
 *    the system call that makes it
 *    a branch: who made it goes on elsewhere
 *    what to call is taken from the new stack    the thread begins here
 *    an indirect call
 *    the system call that ends it
 *
 * Unwind information there is of the one who made it, whose stack is another one. That something is popped behind the
 * first call tells it from a process that was forked: that one has its callers' frames.
 */
#include <stdbool.h>
#include <string.h>

#include "flow/returns.h"
#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define BEGIN_MAX 8u /* instructions up to the call */
#define END_MAX 4u   /* from there to the system call */

struct way { /* through code, instruction by instruction */
	const struct isa *isa;
	const uint8_t *code;
	size_t size;
	uint64_t at;
	struct insn insn;
};

static bool go_on(struct way *w)
{
	w->isa->decode(w->code, w->size, w->at, &w->insn);
	if (w->insn.kind == INSN_BAD || w->insn.length > w->size)
		return false;
	w->code += w->insn.length;
	w->size -= w->insn.length;
	w->at += w->insn.length;
	return true;
}

static bool pops(const struct way *w)
{
	for (unsigned i = 0; i < w->insn.effect_count; i++) {
		const struct effect *e = &w->insn.effects[i];
		if (e->op == EFFECT_MOVE && e->dst == w->isa->sp && e->src == w->isa->sp)
			return e->imm > 0;
	}
	return false;
}

/* Behind the system call up to behind the indirect call; *start is where it begins to pop. */
static bool find_call(struct way *w, uint64_t *start)
{
	*start = 0;
	for (unsigned i = 0; i < BEGIN_MAX; i++) {
		uint64_t at = w->at;
		if (!go_on(w))
			return false;
		if (w->insn.kind == INSN_CALL_INDIRECT)
			return *start != 0;
		if (w->insn.kind == INSN_BRANCH
			    ? *start != 0
			    : w->insn.kind != INSN_OTHER && w->insn.kind != INSN_NOP)
			return false;
		if (!*start && pops(w))
			*start = at;
	}
	return false;
}

static bool find_end(struct way *w)
{
	int64_t number = -1;
	for (unsigned i = 0; i < END_MAX && go_on(w); i++)
		if (syscall_ends(w->isa, &w->insn, &number))
			return true;
		else if (w->insn.kind != INSN_OTHER && w->insn.kind != INSN_NOP)
			return false;
	return false;
}

void shapes_add_threads(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
			struct rows *rows)
{
	const struct recipe root = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	size_t length = isa->system_call_length;
	const uint8_t *from = code, *found;
	while ((found = memmem(from, size - (size_t)(from - code), isa->system_call, length))) {
		size_t behind = (size_t)(found - code) + length;
		struct way w = {isa, code + behind, size - behind, address + behind, {0}};
		uint64_t start;
		from = found + 1;
		if ((address + behind) % isa->insn_min == 0 && find_call(&w, &start) &&
		    find_end(&w))
			rows_add(rows, start, w.at, rows_rule(rows, &root));
	}
}
