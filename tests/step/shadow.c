/* SPDX-License-Identifier: Apache-2.0 */
#include "step/shadow.h"

#include <stdlib.h>

/* No stack is larger. */
#define STACK_MAX (64ull << 20)
/* The kernel's frame is found within so many bytes of SP in the handler. */
#define SIGNAL_REACH 8192

struct system_calls {
	uint8_t reg; /* that holds the number */
	uint16_t sigreturn, map, unmap, protect;
};

static const struct system_calls *system_calls(const struct target *t)
{
	static const struct system_calls x86_64 = {0, 15, 9, 11, 10},
					 aarch64 = {8, 139, 222, 215, 226};
	return t->cpu->link == CPU_NO_REGISTER ? &x86_64 : &aarch64;
}

static uint64_t call_number(const struct target *t, const struct target_state *before)
{
	return before->registers[system_calls(t)->reg];
}

bool shadow_maps(const struct target *t, const struct insn *insn, const struct target_state *before)
{
	const struct system_calls *calls = system_calls(t);
	uint64_t n = call_number(t, before);
	return insn->kind == INSN_SYSCALL &&
	       (n == calls->map || n == calls->unmap || n == calls->protect);
}

void shadow_push(struct shadow *s, struct shadow_entry entry)
{
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 256;
		s->entries = reallocarray(s->entries, s->room, sizeof *s->entries);
		if (!s->entries)
			abort();
	}
	s->entries[s->count++] = entry;
}

/* Drops what lies below SP, or at it. */
static void drop(struct shadow *s, uint64_t sp)
{
	while (s->count && s->entries[s->count - 1].cfa <= sp)
		s->count--;
}

static bool is_near(uint64_t a, uint64_t b, uint64_t distance)
{
	return a - b <= distance || b - a <= distance;
}

/* A handler was entered: finds the frame that the kernel pushed. */
static bool apply_signal(struct shadow *s, const struct target *t,
			 const struct target_state *before)
{
	const struct unwind_cpu *cpu = t->cpu;
	uint64_t sp = t->now.registers[cpu->sp], back;
	for (uint64_t at = sp; at < sp + SIGNAL_REACH; at += 8) {
		uint64_t old_pc, old_sp;
		if (!target_word(t, at + cpu->signal_pc, &old_pc) ||
		    !target_word(t, at + cpu->signal_registers[cpu->sp], &old_sp))
			return false;
		if (old_sp != before->registers[cpu->sp] || !is_near(old_pc, before->pc, 16))
			continue;
		if (cpu->link != CPU_NO_REGISTER)
			back = t->now.registers[cpu->link];
		else if (!target_word(t, at - cpu->call_pushes, &back))
			return false;
		shadow_push(s, (struct shadow_entry){old_pc, old_sp, true});
		shadow_push(s, (struct shadow_entry){back, at, false});
		return true;
	}
	return false;
}

static enum shadow_change apply_sigreturn(struct shadow *s, const struct target *t)
{
	while (s->count && !s->entries[s->count - 1].signal)
		s->count--;
	if (!s->count)
		return SHADOW_LOST;
	const struct shadow_entry *e = &s->entries[--s->count];
	return e->address == t->now.pc && e->cfa == t->now.registers[t->cpu->sp] ? SHADOW_MOVED
										 : SHADOW_LOST;
}

/* The handler may go on on another stack than what it interrupted. */
static bool on_other_stack(const struct shadow *s, uint64_t sp)
{
	if (!s->count)
		return false;
	const struct shadow_entry *top = &s->entries[s->count - 1];
	return !top->signal && (top->cfa < sp || top->cfa - sp > STACK_MAX);
}

static enum shadow_change apply_call(struct shadow *s, const struct target *t,
				     const struct insn *insn, const struct target_state *before)
{
	uint64_t next = insn->address + insn->length, sp = before->registers[t->cpu->sp];
	if (insn->kind == INSN_CALL && insn->target == next) /* only asks for the PC */
		return SHADOW_SAME;
	if (on_other_stack(s, sp))
		return SHADOW_LOST;
	shadow_push(s, (struct shadow_entry){next, sp, false});
	return SHADOW_MOVED;
}

/* A return or an indirect jump. */
static enum shadow_change apply_transfer(struct shadow *s, const struct target *t,
					 const struct insn *insn)
{
	uint64_t pc = t->now.pc, sp = t->now.registers[t->cpu->sp];
	bool pushes = t->cpu->call_pushes, had = s->count;
	const struct shadow_entry *top = had ? &s->entries[s->count - 1] : NULL;
	bool returns = insn->kind == INSN_RETURN || (!pushes && insn->reg == t->cpu->link);
	/* Go's handlers make who was interrupted call something, which goes back there by itself. */
	if (top && pc == top->address &&
	    (sp == top->cfa || (returns && sp > top->cfa && pushes && !top->signal))) {
		s->count--;
		return SHADOW_MOVED;
	}
	if (top && !top->signal && pc + 1 == top->address && sp == top->cfa) {
		s->count--;
		return SHADOW_MOVED;
	}
	if (top && top->cfa < sp + pushes && !top->signal) {
		drop(s, sp);
		return !s->count || on_other_stack(s, sp) ? SHADOW_LOST : SHADOW_UNWOUND;
	}
	if (on_other_stack(s, sp))
		return SHADOW_LOST;
	if (!returns)
		return SHADOW_SAME; /* a tail call, or within the procedure */
	if (top && top->cfa == sp && insn->kind != INSN_RETURN) { /* longjmp to the caller itself */
		drop(s, sp);
		return SHADOW_UNWOUND;
	}
	return pushes ? SHADOW_SAME : SHADOW_WRONG; /* push and ret is a jump */
}

static const struct insn after_call = {.kind = INSN_JUMP_INDIRECT, .reg = INSN_NO_REG};

enum shadow_change shadow_apply(struct shadow *s, const struct target *t, const struct insn *insn,
				const struct target_state *before)
{
	if (t->delivered && t->now.pc != before->pc + insn->length && apply_signal(s, t, before))
		return SHADOW_MOVED;
	if (t->now.pc == before->pc) /* it was not executed: a system call before it ended late */
		return SHADOW_SAME;
	switch (insn->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return apply_call(s, t, insn, before);
	case INSN_RETURN:
	case INSN_JUMP_INDIRECT:
		return apply_transfer(s, t, insn);
	case INSN_SYSCALL:
		if (call_number(t, before) == system_calls(t)->sigreturn)
			return apply_sigreturn(s, t);
		/* An emulator may step on to the instruction after it, which is often a return. */
		return t->now.pc == before->pc + insn->length ? SHADOW_SAME
							      : apply_transfer(s, t, &after_call);
	default:
		return SHADOW_SAME;
	}
}
