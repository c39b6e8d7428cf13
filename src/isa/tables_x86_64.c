/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jump tables of x86-64:
 *
 *    cmp $n, %eax; ja default; lea table(%rip), %rdx
 *    movslq (%rdx,%rax,4), %rax; add %rdx, %rax; jmp *%rax
 *
 * and, where code has a fixed address, jmp *table(,%rax,8).
 */
#include "isa/tables_cpu.h"

#include <Zydis/Zydis.h>

#include "isa/insn_x86_64.h"
#include "isa/tables.h"

struct step {
	struct eval *e;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t next;
};

static uint8_t register_of(ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
		return INSN_NO_REG;
	return dwarf_reg[full - ZYDIS_REGISTER_RAX];
}

static bool is_high_byte(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

static struct value read_register(struct eval *e, ZydisRegister reg)
{
	uint8_t n = register_of(reg);
	return n == INSN_NO_REG || is_high_byte(reg) ? eval_fresh(e, UINT64_MAX) : e->regs[n];
}

static struct value memory_address(struct step *s, const ZydisDecodedOperand *op)
{
	struct eval *e = s->e;
	struct value at = eval_constant(e, 0);
	if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS)
		return eval_fresh(e, UINT64_MAX);
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		at = eval_constant(e, s->next);
	else if (op->mem.base != ZYDIS_REGISTER_NONE)
		at = read_register(e, op->mem.base);
	if (op->mem.disp.has_displacement)
		at = eval_plus(e, at, op->mem.disp.value);
	if (op->mem.index != ZYDIS_REGISTER_NONE) {
		struct value index = read_register(e, op->mem.index);
		unsigned shift = op->mem.scale > 1 ? (unsigned)__builtin_ctz(op->mem.scale) : 0;
		if (at.kind == VALUE_CONST)
			index = shift ? eval_number(e, index) : eval_index(e, index);
		at = eval_sum(e, at, eval_shift_left(e, index, shift), 64);
	}
	return at;
}

static struct value read_operand(struct step *s, const ZydisDecodedOperand *op, bool is_signed)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return read_register(s->e, op->reg.value);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return eval_constant(s->e, op->imm.value.u);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		if (op->size > 64 || op->size < 8)
			break;
		return eval_load(s->e, memory_address(s, op), op->size / 8, is_signed);
	default:
		break;
	}
	return eval_fresh(s->e, UINT64_MAX);
}

static void write_operand(struct step *s, const ZydisDecodedOperand *op, struct value v)
{
	uint8_t n;
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		eval_store(s->e, memory_address(s, op), v);
		return;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	n = register_of(op->reg.value);
	if (n != INSN_NO_REG)
		s->e->regs[n] = is_high_byte(op->reg.value) ? eval_fresh(s->e, UINT64_MAX) : v;
}

/* The compare that `cmp` makes, seen from its left or, where only that is a constant, right side. */
static void compare(struct step *s)
{
	struct value left = read_operand(s, &s->ops[0], false),
		     right = read_operand(s, &s->ops[1], false);
	unsigned width = s->ops[0].size;
	if (right.kind != VALUE_CONST) {
		s->e->compared = false;
		return;
	}
	if (width < 64)
		right.constant &= (UINT64_C(1) << width) - 1;
	eval_compare(s->e, left, right.constant, 0);
}

static enum eval_condition condition_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
	case ZYDIS_MNEMONIC_CMOVNBE:
		return EVAL_ABOVE;
	case ZYDIS_MNEMONIC_JNB:
	case ZYDIS_MNEMONIC_CMOVNB:
		return EVAL_ABOVE_OR_EQUAL;
	case ZYDIS_MNEMONIC_JB:
	case ZYDIS_MNEMONIC_CMOVB:
		return EVAL_BELOW;
	case ZYDIS_MNEMONIC_JBE:
	case ZYDIS_MNEMONIC_CMOVBE:
		return EVAL_BELOW_OR_EQUAL;
	case ZYDIS_MNEMONIC_JNLE:
		return EVAL_GREATER;
	case ZYDIS_MNEMONIC_JNL:
		return EVAL_GREATER_OR_EQUAL;
	case ZYDIS_MNEMONIC_JL:
		return EVAL_LESS;
	case ZYDIS_MNEMONIC_JLE:
		return EVAL_LESS_OR_EQUAL;
	default:
		return EVAL_NEVER_BOUND;
	}
}

static bool same_unknown(struct value a, struct value b)
{
	return a.kind == VALUE_UNKNOWN && b.kind == VALUE_UNKNOWN && a.id == b.id && a.add == b.add;
}

/* The smaller of an unknown and a constant: cmp $n, %eax; cmovae %ecx (n), %eax. */
static struct value conditional_move(struct step *s)
{
	struct eval *e = s->e;
	struct value dst = read_operand(s, &s->ops[0], false),
		     src = read_operand(s, &s->ops[1], false);
	enum eval_condition c = condition_of(s->in.mnemonic);
	bool above = c == EVAL_ABOVE || c == EVAL_ABOVE_OR_EQUAL;
	bool below = c == EVAL_BELOW || c == EVAL_BELOW_OR_EQUAL;
	struct value clamp = above ? src : dst, kept = above ? dst : src;
	if (!e->compared || !(above || below) || clamp.kind != VALUE_CONST ||
	    !same_unknown(kept, e->left) || e->right == 0 || e->right > UINT32_MAX / 2 ||
	    clamp.constant > e->right + 1)
		return eval_fresh(e, UINT64_MAX);
	uint64_t max = c == EVAL_ABOVE || c == EVAL_BELOW_OR_EQUAL ? e->right : e->right - 1;
	struct value v = eval_fresh(e, UINT64_MAX);
	eval_compare(e, v, clamp.constant > max ? clamp.constant : max, 0);
	eval_holds(e, EVAL_BELOW_OR_EQUAL);
	e->compared = false;
	return v;
}

static bool subtract(struct step *s)
{
	struct value left = read_operand(s, &s->ops[0], false),
		     right = read_operand(s, &s->ops[1], false);
	if (right.kind != VALUE_CONST)
		return false;
	compare(s);
	write_operand(s, &s->ops[0], eval_plus(s->e, left, (int64_t)(0 - right.constant)));
	return true;
}

static bool clear_or_fail(struct step *s)
{
	if (s->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    s->ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    s->ops[0].reg.value != s->ops[1].reg.value)
		return false;
	write_operand(s, &s->ops[0], eval_constant(s->e, 0));
	return true;
}

/* The instructions that matter, in more detail than struct insn has. False: not one of them. */
static bool apply_known(struct step *s)
{
	struct eval *e = s->e;
	const ZydisDecodedOperand *dst = &s->ops[0], *src = &s->ops[1];
	bool is_signed = s->in.mnemonic == ZYDIS_MNEMONIC_MOVSX ||
			 s->in.mnemonic == ZYDIS_MNEMONIC_MOVSXD;
	struct value v;
	switch (s->in.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (src->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    register_of(src->reg.value) == INSN_NO_REG)
			return false;
		write_operand(s, dst, read_operand(s, src, false));
		return true;
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		v = read_operand(s, src, is_signed);
		if (src->type == ZYDIS_OPERAND_TYPE_REGISTER)
			v = eval_extend(e, v, src->size / 8, is_signed);
		write_operand(s, dst, v);
		return true;
	case ZYDIS_MNEMONIC_CDQE:
		e->regs[RAX] = eval_extend(e, e->regs[RAX], 4, true);
		return true;
	case ZYDIS_MNEMONIC_LEA:
		write_operand(s, dst, memory_address(s, src));
		return true;
	case ZYDIS_MNEMONIC_ADD:
		v = eval_sum(e, read_operand(s, dst, false), read_operand(s, src, false),
			     dst->size);
		write_operand(s, dst, v);
		return true;
	case ZYDIS_MNEMONIC_SUB:
		return subtract(s) || clear_or_fail(s);
	case ZYDIS_MNEMONIC_XOR:
		return clear_or_fail(s);
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		v = read_operand(s, dst, false);
		write_operand(s, dst,
			      eval_plus(e, v, s->in.mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1));
		return true;
	case ZYDIS_MNEMONIC_AND:
		if (src->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		v = read_operand(s, dst, false);
		write_operand(s, dst, eval_and(e, v, src->imm.value.u));
		return true;
	case ZYDIS_MNEMONIC_SHR:
		if (src->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		v = read_operand(s, dst, false);
		write_operand(s, dst, eval_shift_right(e, v, src->imm.value.u & 63, dst->size));
		return true;
	case ZYDIS_MNEMONIC_SHL:
		if (src->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		v = read_operand(s, dst, false);
		write_operand(s, dst, eval_shift_left(e, v, src->imm.value.u & 63));
		return true;
	case ZYDIS_MNEMONIC_CMOVNBE:
	case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVB:
	case ZYDIS_MNEMONIC_CMOVBE:
		write_operand(s, dst, conditional_move(s));
		return true;
	default:
		return false;
	}
}

static void apply(struct step *s, const struct insn *insn)
{
	const ZydisAccessedFlags *flags = s->in.cpu_flags;
	if (s->in.mnemonic == ZYDIS_MNEMONIC_CMP) {
		compare(s);
		return;
	}
	if (s->in.mnemonic != ZYDIS_MNEMONIC_SUB && flags &&
	    ((flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
	     (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_ZF)))
		s->e->compared = false;
	if (!apply_known(s))
		eval_apply(s->e, insn);
}

static bool run_through(struct step *s, const ZydisDecoder *decoder, const struct code_run *run,
			const struct code_run *then, struct value *target)
{
	struct insn insn;
	if (run->meets)
		eval_meet(s->e);
	for (size_t at = 0; at < run->size; at += insn.length) {
		isa_x86_64.decode(run->code + at, run->size - at, run->address + at, &insn);
		if (insn.kind == INSN_BAD || insn.length == 0 ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, run->code + at, run->size - at,
							 &s->in, s->ops)))
			return false;
		s->next = run->address + at + insn.length;
		bool last = at + insn.length >= run->size;
		if (insn.kind == INSN_JUMP_INDIRECT) {
			*target = read_operand(s, &s->ops[0], false);
			return last;
		}
		if (insn.kind == INSN_BRANCH) {
			enum eval_condition c = condition_of(s->in.mnemonic);
			bool taken = last && then && insn.target == then->address;
			eval_holds(s->e, taken ? c : eval_negated(c));
		}
		apply(s, &insn);
	}
	return then != NULL;
}

bool x86_find_jump_table(const struct code_run *runs, size_t count, struct jump_table *out)
{
	struct eval e;
	struct step s = {.e = &e};
	struct value target = {.kind = VALUE_UNKNOWN};
	ZydisDecoder decoder;
	if (!count || !ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
						     ZYDIS_STACK_WIDTH_64)))
		return false;
	eval_init(&e, &isa_x86_64);
	for (size_t i = 0; i < count; i++)
		if (!run_through(&s, &decoder, &runs[i], i + 1 < count ? &runs[i + 1] : NULL,
				 &target))
			return false;
	return eval_table(&e, target, out);
}
