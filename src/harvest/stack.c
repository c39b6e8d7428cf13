/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/stack.h"

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

static enum walk_end step(struct walk *w, const struct code_kinds *code,
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

/* Whether our own signal interrupted the frame: what it called is no part of the program. */
static bool is_ours(const struct walk *w, const struct walk_reader *reader)
{
	uint64_t number;
	return reader->word(reader->context, w->signal_sp + w->cpu->signal_info, &number) &&
	       (uint32_t)number == WIRE_SIGNAL;
}

/* `pointer`: the first step is made by the frame pointer, whatever the recipe says. */
static enum walk_end walk(struct walk w, bool pointer, const struct stack_code *in,
			  const struct walk_reader *reader, uint64_t *keys, uint32_t max,
			  uint32_t *count)
{
	const struct walk_space *space = &in->space;
	const struct code_kinds code = {
		.at = code_at,
		.context = space,
		.modules = space,
		.top = has_flag(space, WIRE_MODULE_TOP),
		.fresh = in->fresh,
		.task = in->task,
	};
	enum walk_end end;
	size_t hosts = 0;
	*count = 0;
	do {
		if (*count && hosts < in->host_count && in->hosts[hosts] < w.sp) {
			keys[*count - 1] |= CCT_HOST;
			hosts++;
		}
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
		if (end == WALK_ON && w.exact && in->in_kernel && is_ours(&w, reader))
			*count = 0;
	} while (end == WALK_ON);
	bool sure = !in->late || !*in->late || (w.recipe && w.recipe->cfa == RECIPE_ROOT);
	return end == WALK_COMPLETE && !sure ? WALK_BAD_MEMORY : end;
}

/* While the kernel makes or removes a signal frame, some registers are those of the program and some
   those of the handler. The next two functions find out. */

/* Whether the thread is in sigreturn. The PC is behind that system call, where other code begins, but
   the call itself leads to the signal frame. */
static bool is_returning(const struct stack_code *code, const struct walk *w)
{
	const struct walk_module *m = walk_find_module(&code->space, w->pc - 1);
	const struct recipe *r = m && code->in_kernel ? table_find(&m->table, w->pc - 1 - m->bias)
						      : NULL;
	return r && r->cfa == RECIPE_SIGNAL && r->cfa_add != RECIPE_RETURNED;
}

/* Whether the kernel makes a signal frame: SP is at the new frame already, but the PC is still where the
   signal came. The frame does not begin with a return address. */
static bool is_leaving(const struct stack_code *code, const struct walk *w,
		       const struct walk_reader *reader)
{
	uint64_t pc;
	return code->in_kernel &&
	       reader->word(reader->context, w->sp + w->cpu->call_pushes + w->cpu->signal_pc,
			    &pc) &&
	       pc == w->pc;
}

static bool is_nowhere(enum walk_end end)
{
	return end == WALK_BAD_MEMORY || end == WALK_NO_MODULE || end == WALK_BAD_FRAME;
}

static enum walk_end stand_for_kernel(uint64_t *keys, uint32_t *count)
{
	keys[0] = cct_key(false, CCT_KERNEL, 0);
	*count = 1;
	return WALK_COMPLETE;
}

enum walk_end stack_walk(const struct stack_code *code, uint16_t machine, const uint64_t *registers,
			 uint64_t pc, const struct walk_reader *reader, uint64_t *keys,
			 uint32_t max, uint32_t *count)
{
	struct walk w;
	walk_begin(&w, unwind_cpu_for(machine), registers, pc);
	w.g = code->g;
	if (is_leaving(code, &w, reader))
		return stand_for_kernel(keys, count);
	bool returning = is_returning(code, &w);
	w.exact = !returning;
	enum walk_end end = walk(w, false, code, reader, keys, max, count);
	if (returning && is_nowhere(end))
		return stand_for_kernel(keys, count);
	if (end == WALK_COMPLETE || end == WALK_TOO_DEEP ||
	    !has_flag(&code->space, WIRE_MODULE_JIT))
		return end;
	/* Assembly of a run-time compiler that no analysis understood: it keeps frame pointers. */
	if (walk(w, true, code, reader, keys, max, count) == WALK_COMPLETE)
		return WALK_COMPLETE;
	return walk(w, false, code, reader, keys, max, count);
}
