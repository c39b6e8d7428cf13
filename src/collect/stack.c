/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/stack.h"

#include "cct/cct.h"
#include "process/pointer.h"
#include "safe/wire.h"

static enum code_kind code_at(const void *context, uint64_t address)
{
	const struct walk_module *m = walk_find_module(context, address);
	if (!m)
		return CODE_NONE;
	if (m->table.page_count)
		return CODE_MODULE;
	return m->flags & WIRE_MODULE_BARE ? CODE_BARE : CODE_OTHER;
}

static bool has_flag(const struct walk_space *space, uint32_t flag)
{
	for (size_t i = 0; i < space->count; i++)
		if (space->modules[i].flags & flag)
			return true;
	return false;
}

static enum walk_end step(struct walk *w, const struct code_space *code,
			  const struct walk_reader *reader)
{
	const struct walk_space *space = code->modules;
	uint64_t at = w->pc - !w->exact;
	enum walk_end end = walk_step(w, space, reader);
	if ((end != WALK_NO_MODULE && end != WALK_NO_RECIPE) || code_at(space, at) == CODE_MODULE)
		return end;
	if (code->fresh && pointer_step_back(w, code, reader))
		return WALK_ON;
	if (code_at(space, at) == CODE_OTHER && pointer_step(w, code, reader))
		return WALK_ON;
	return end;
}

/* `pointer`: the first step is made by the frame pointer, whatever the recipe. */
static enum walk_end walk(struct walk w, bool pointer, const struct stack_code *in,
			  const struct walk_reader *reader, uint64_t *keys, uint32_t max,
			  uint32_t *count)
{
	const struct walk_space *space = &in->space;
	const struct code_space code = {
		.at = code_at,
		.context = space,
		.modules = space,
		.top = has_flag(space, WIRE_MODULE_TOP),
		.fresh = in->fresh,
		.task = in->task,
	};
	enum walk_end end;
	*count = 0;
	do {
		const struct walk_module *m = walk_find_module(space, w.pc - !w.exact);
		if (*count == max)
			return WALK_TOO_DEEP;
		if (!m || !(m->flags & WIRE_MODULE_AGENT))
			keys[(*count)++] = m && m->id ? cct_key(!w.exact, m->id, w.pc - m->bias)
						      : cct_key(!w.exact, 0, w.pc);
		if (pointer && w.exact)
			end = pointer_step(&w, &code, reader) ? WALK_ON : WALK_BAD_FRAME;
		else
			end = step(&w, &code, reader);
	} while (end == WALK_ON);
	return end;
}

enum walk_end stack_walk(const struct stack_code *code, uint16_t machine, const uint64_t *registers,
			 uint64_t pc, const struct walk_reader *reader, uint64_t *keys,
			 uint32_t max, uint32_t *count)
{
	struct walk w;
	walk_begin(&w, unwind_cpu_for(machine), registers, pc);
	w.g = code->g;
	enum walk_end end = walk(w, false, code, reader, keys, max, count);
	if (end == WALK_COMPLETE || end == WALK_TOO_DEEP ||
	    !has_flag(&code->space, WIRE_MODULE_JIT))
		return end;
	/* Assembly of a compiler at run time that no analysis understood: it keeps frame pointers. */
	if (walk(w, true, code, reader, keys, max, count) == WALK_COMPLETE)
		return WALK_COMPLETE;
	return walk(w, false, code, reader, keys, max, count);
}
