/* SPDX-License-Identifier: Apache-2.0 */
#include "process/pointer.h"

#include <errno.h>

#include "process/reach.h"
#include "unwind/step.h"

static bool is_code(const struct code_kinds *code, uint64_t address)
{
	return code->at(code->context, address) != CODE_NONE;
}

/* Looks at the next instructions of the first frame: whether it has a frame record yet (unwind/made.h). If
   the process is gone, its code cannot be read; then the frame most probably has one. False: the code
   cannot be read although the process is there. */
static bool look_at_code(const struct walk *w, pid_t task, enum made_frame *made)
{
	_Alignas(uint32_t) uint8_t code[MADE_BYTES] = {0};
	uint64_t room = 4096 - w->pc % 4096;
	*made = MADE_FRAME;
	if (!w->exact || task <= 0)
		return true;
	if (!reach_bytes(task, w->pc, code, room < sizeof code ? room : sizeof code))
		return errno == ESRCH; /* the process has ended meanwhile */
	*made = w->cpu->link == CPU_NO_REGISTER ? made_frame_x86_64(code)
						: made_frame_aarch64((const uint32_t *)code);
	return true;
}

bool pointer_step(struct walk *w, const struct code_kinds *code, const struct walk_reader *reader)
{
	struct walk caller = *w;
	enum made_frame made;
	if (!look_at_code(w, code->task, &made))
		return false;
	if (!step_unmade(&caller, made, reader->word, reader->context) &&
	    !step_pointer(&caller, reader->word, reader->context))
		return false;
	if (!is_code(code, caller.pc - 1))
		return false;
	const struct walk_module *m = walk_find_module(code->modules, caller.pc - 1);
	if (m && code->at(code->context, caller.pc - 1) == CODE_MODULE &&
	    !step_pointer_compiled(&caller, table_find(&m->table, caller.pc - 1 - m->bias),
				   code->top))
		return false;
	*w = caller;
	return true;
}

bool pointer_step_back(struct walk *w, const struct code_kinds *code,
		       const struct walk_reader *reader)
{
	const struct unwind_cpu *cpu = w->cpu;
	uint64_t ra;
	if (!w->exact || is_code(code, w->pc))
		return false;
	if (cpu->link == CPU_NO_REGISTER) {
		if (!reader->word(reader->context, w->sp, &ra))
			return false;
	} else if (w->registers) {
		ra = w->registers[cpu->link];
	} else if (!reader->word(reader->context, w->signal_sp + cpu->signal_registers[cpu->link],
				 &ra)) {
		return false;
	}
	ra &= cpu->address_bits;
	if (!ra || !is_code(code, ra - 1))
		return false;
	w->pc = ra;
	w->sp += cpu->call_pushes;
	w->registers = NULL;
	w->exact = false;
	return true;
}
