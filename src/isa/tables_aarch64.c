/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jump tables of aarch64. GCC:
 *
 *    cmp w0, #n; b.hi default; adrp x1, table; add x1, x1, :lo12:table
 *    ldrh w0, [x1, w0, uxtw #1]; adr x1, base; add x0, x1, w0, sxth #2; br x0
 *
 * LLVM takes entries as unsigned (add x10, x10, x11, lsl #2), or of 4 bytes from the table on.
 */
#include "isa/tables_cpu.h"

#include <string.h>

#include "isa/insn_aarch64.h"
#include "isa/tables.h"

#define ALWAYS 0

static struct value read_sp(const struct eval *e, unsigned reg)
{
	return e->regs[reg];
}

static struct value read_x(const struct eval *e, unsigned reg)
{
	return e->regs[reg == ZR ? EVAL_REGS - 1 : reg];
}

static void set_x(struct eval *e, unsigned reg, struct value v)
{
	if (reg != ZR)
		e->regs[reg] = v;
}

static void compare(struct eval *e, uint32_t w, struct value left, uint64_t right,
		    uint16_t otherwise)
{
	eval_compare(e, left, bit(w, 31) ? right : right & UINT32_MAX, otherwise);
}

static void add_immediate(struct eval *e, uint32_t w)
{
	uint64_t n = (uint64_t)bits(w, 21, 10) << (bit(w, 22) ? 12 : 0);
	struct value left = read_sp(e, rn(w));
	if (bit(w, 30))
		n = 0 - n;
	struct value v = eval_plus(e, left, (int64_t)n);
	if (!bit(w, 29)) {
		e->regs[rd(w)] = v;
		return;
	}
	compare(e, w, left, 0 - n, ALWAYS);
	set_x(e, rd(w), v);
}

/* Rm as the register forms of add, sub, ldr and str take it. */
static struct value extended(struct eval *e, unsigned reg, unsigned option, unsigned shift)
{
	struct value v = read_x(e, reg);
	if ((option & 3) != 3)
		v = eval_extend(e, v, 1u << (option & 3), option & 4);
	return eval_shift_left(e, v, shift);
}

static bool add_register(struct eval *e, uint32_t w)
{
	struct value left, right;
	if (bit(w, 21)) {
		left = read_sp(e, rn(w));
		right = extended(e, rm(w), bits(w, 15, 13), bits(w, 12, 10));
	} else if (bits(w, 23, 22) == 0) {
		left = read_x(e, rn(w));
		right = eval_shift_left(e, read_x(e, rm(w)), bits(w, 15, 10));
	} else {
		return false;
	}
	if (bit(w, 30) && right.kind != VALUE_CONST)
		return false;
	if (bit(w, 29) && bit(w, 30))
		compare(e, w, left, right.constant, ALWAYS);
	if (bit(w, 30))
		right.constant = 0 - right.constant;
	struct value v = eval_sum(e, left, right, bit(w, 31) ? 64 : 32);
	if (bit(w, 21) && !bit(w, 29))
		e->regs[rd(w)] = v;
	else
		set_x(e, rd(w), v);
	return true;
}

/* and with a mask of low bits, the only kind that bounds an index */
static bool and_immediate(struct eval *e, uint32_t w)
{
	unsigned imms = bits(w, 15, 10);
	bool whole = bit(w, 31) ? bit(w, 22) : !(imms & 32);
	if (bits(w, 21, 16) != 0 || !whole || imms >= 63)
		return false;
	struct value v = eval_and(e, read_x(e, rn(w)), (UINT64_C(2) << imms) - 1);
	if (bits(w, 30, 29) == 0)
		e->regs[rd(w)] = v;
	else
		set_x(e, rd(w), v);
	return true;
}

/* lsl, lsr, uxtb, uxth, sxtb, sxth, sxtw, ubfx, ubfiz, sbfiz */
static bool bitfield(struct eval *e, uint32_t w)
{
	unsigned immr = bits(w, 21, 16), imms = bits(w, 15, 10), width = bit(w, 31) ? 64 : 32;
	bool is_signed = bits(w, 30, 29) == 0;
	struct value v = read_x(e, rn(w));
	if (bits(w, 30, 29) == 1 || immr >= width || imms >= width)
		return false;
	if (immr == 0 || imms < immr) {
		unsigned kept = imms + 1;
		if (kept == 8 || kept == 16 || (kept == 32 && width == 64))
			v = eval_extend(e, v, kept / 8, is_signed);
		else if (kept + immr != width && kept != width)
			v = is_signed ? eval_fresh(e, UINT64_MAX)
				      : eval_and(e, v, (UINT64_C(1) << kept) - 1);
		v = immr ? eval_shift_left(e, v, width - immr) : v;
	} else if (is_signed) {
		return false;
	} else if (imms == width - 1) {
		v = eval_shift_right(e, v, immr, width);
	} else {
		v = eval_fresh(e, (UINT64_C(2) << (imms - immr)) - 1);
	}
	set_x(e, rd(w), v);
	return true;
}

static struct value indexed(struct eval *e, struct value at, uint32_t w, unsigned shift)
{
	unsigned option = bits(w, 15, 13);
	struct value index = read_x(e, rm(w));
	if (at.kind != VALUE_CONST)
		return eval_sum(e, at, extended(e, rm(w), option, shift), 64);
	if ((option & 3) != 3)
		index = eval_extend(e, index, 1u << (option & 3), option & 4);
	index = shift ? eval_number(e, index) : eval_index(e, index);
	return eval_sum(e, at, eval_shift_left(e, index, shift), 64);
}

/* Loads and stores of one register that leave the address register alone. */
static bool memory(struct eval *e, uint32_t w)
{
	unsigned log = bits(w, 31, 30), opc = bits(w, 23, 22);
	struct value at = read_sp(e, rn(w));
	if (bit(w, 24))
		at = eval_plus(e, at, (int64_t)bits(w, 21, 10) << log);
	else if (bit(w, 21) && bits(w, 11, 10) == 2)
		at = indexed(e, at, w, bit(w, 12) ? log : 0);
	else if (!bit(w, 21) && bits(w, 11, 10) == 0)
		at = eval_plus(e, at, signed_bits(w, 20, 12));
	else
		return false;
	if (log == 3 && opc >= 2)
		return true; /* prefetch */
	if (opc == 0)
		eval_store(e, at, read_x(e, rd(w)));
	else
		set_x(e, rd(w), eval_load(e, at, 1u << log, opc >= 2));
	return true;
}

static enum eval_condition condition_of(unsigned code)
{
	switch (code) {
	case 0x2: /* cs */
		return EVAL_ABOVE_OR_EQUAL;
	case 0x3: /* cc */
		return EVAL_BELOW;
	case 0x8: /* hi */
		return EVAL_ABOVE;
	case 0x9: /* ls */
		return EVAL_BELOW_OR_EQUAL;
	case 0xa:
		return EVAL_GREATER_OR_EQUAL;
	case 0xb:
		return EVAL_LESS;
	case 0xc:
		return EVAL_GREATER;
	case 0xd:
		return EVAL_LESS_OR_EQUAL;
	default:
		return EVAL_NEVER_BOUND;
	}
}

/* The conditions that flags set by hand make true. */
static uint16_t conditions_in(unsigned nzcv)
{
	bool n = nzcv & 8, z = nzcv & 4, c = nzcv & 2, v = nzcv & 1;
	unsigned all = 1u << EVAL_NEVER_BOUND;
	all |= (unsigned)(c && !z) << EVAL_ABOVE;
	all |= (unsigned)c << EVAL_ABOVE_OR_EQUAL;
	all |= (unsigned)!c << EVAL_BELOW;
	all |= (unsigned)(!c || z) << EVAL_BELOW_OR_EQUAL;
	all |= (unsigned)(!z && n == v) << EVAL_GREATER;
	all |= (unsigned)(n == v) << EVAL_GREATER_OR_EQUAL;
	all |= (unsigned)(n != v) << EVAL_LESS;
	all |= (unsigned)(z || n != v) << EVAL_LESS_OR_EQUAL;
	return (uint16_t)all;
}

static void conditional_compare(struct eval *e, uint32_t w)
{
	struct value right = bit(w, 11) ? eval_constant(e, rm(w)) : read_x(e, rm(w));
	e->compared = false;
	if (bit(w, 30) && right.kind == VALUE_CONST) /* ccmp, not ccmn */
		compare(e, w, read_x(e, rn(w)), right.constant, conditions_in(bits(w, 3, 0)));
}

/* The smaller of an unknown and a constant: cmp w8, #n; csel w8, w8, w9 (n), lo. */
static void select_register(struct eval *e, uint32_t w)
{
	struct value yes = read_x(e, rn(w)), no = read_x(e, rm(w)), v = eval_fresh(e, UINT64_MAX);
	enum eval_condition c = condition_of(bits(w, 15, 12));
	bool below = c == EVAL_BELOW || c == EVAL_BELOW_OR_EQUAL;
	struct value clamp = below ? no : yes, kept = below ? yes : no;
	uint64_t max = c == EVAL_ABOVE || c == EVAL_BELOW_OR_EQUAL ? e->right : e->right - 1;
	bool bounds = below || c == EVAL_ABOVE || c == EVAL_ABOVE_OR_EQUAL;
	if (bounds && e->compared && e->otherwise == ALWAYS && e->right &&
	    clamp.kind == VALUE_CONST && kept.kind == VALUE_UNKNOWN &&
	    e->left.kind == VALUE_UNKNOWN && kept.id == e->left.id && kept.add == e->left.add &&
	    clamp.constant <= e->right) {
		struct value left = e->left;
		uint64_t right = e->right;
		eval_compare(e, v, clamp.constant > max ? clamp.constant : max, ALWAYS);
		eval_holds(e, EVAL_BELOW_OR_EQUAL);
		eval_compare(e, left, right, ALWAYS);
	}
	set_x(e, rd(w), v);
}

/* Instructions that set flags and are not followed further. */
static bool loses_flags(uint32_t w)
{
	return (w & 0x7f800000) == 0x72000000 || /* ands immediate */
	       (w & 0x7f000000) == 0x6a000000 || /* ands, bics */
	       (w & 0x3fe00000) == 0x3a000000 || /* adcs, sbcs */
	       (w & 0xff20fc07) == 0x1e202000 || /* fcmp */
	       (w & 0xff200c00) == 0x1e200400 || /* fccmp */
	       (w & 0x3f200000) == 0x2b200000 || /* adds, subs extended */
	       (w & 0x3f200000) == 0x2b000000 || /* adds, subs shifted */
	       (w & 0xfffff000) == 0xd51b4000;   /* msr nzcv, among others */
}

/* The instructions that matter, in more detail than struct insn has. False: not one of them. */
static bool apply_known(struct eval *e, uint32_t w)
{
	if (loses_flags(w))
		e->compared = false;
	if (bits(w, 28, 23) == 0x22) {
		add_immediate(e, w);
		return true;
	}
	if (bits(w, 28, 24) == 0x0b)
		return add_register(e, w);
	if (bits(w, 28, 23) == 0x24 && (bits(w, 30, 29) == 0 || bits(w, 30, 29) == 3))
		return and_immediate(e, w);
	if (bits(w, 28, 23) == 0x26)
		return bitfield(e, w);
	if ((w & 0x7fe0ffe0) == 0x2a0003e0) { /* mov */
		set_x(e, rd(w), read_x(e, rm(w)));
		return true;
	}
	if ((w & 0x3e000000) == 0x38000000)
		return memory(e, w);
	if ((w & 0x3fe00410) == 0x3a400000) {
		conditional_compare(e, w);
		return true;
	}
	if ((w & 0x7fe00c00) == 0x1a800000) {
		select_register(e, w);
		return true;
	}
	return false;
}

static bool run_through(struct eval *e, const struct code_run *run, const struct code_run *then,
			struct value *target)
{
	struct insn insn;
	if (run->meets)
		eval_meet(e);
	for (size_t at = 0; at + 4 <= run->size; at += 4) {
		bool last = at + 8 > run->size;
		uint32_t w;
		memcpy(&w, run->code + at, sizeof w);
		isa_aarch64.decode(run->code + at, run->size - at, run->address + at, &insn);
		if (insn.kind == INSN_BAD)
			return false;
		if (insn.kind == INSN_JUMP_INDIRECT) {
			if (insn.reg >= 31)
				return false;
			*target = e->regs[insn.reg];
			return last;
		}
		if (insn.kind == INSN_BRANCH) {
			bool on_flags = (w & 0xff000010) == 0x54000000;
			enum eval_condition c = on_flags ? condition_of(bits(w, 3, 0))
							 : EVAL_NEVER_BOUND;
			bool taken = last && then && insn.target == then->address;
			eval_holds(e, taken ? c : eval_negated(c));
		}
		if (!apply_known(e, w))
			eval_apply(e, &insn);
	}
	return then != NULL;
}

bool aarch64_find_jump_table(const struct code_run *runs, size_t count, struct jump_table *out)
{
	struct eval e;
	struct value target = {.kind = VALUE_UNKNOWN};
	eval_init(&e, &isa_aarch64);
	for (size_t i = 0; i < count; i++)
		if (!run_through(&e, &runs[i], i + 1 < count ? &runs[i + 1] : NULL, &target))
			return false;
	return count && eval_table(&e, target, out);
}
