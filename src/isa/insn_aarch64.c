/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64, by the encoding groups of the architecture manual: bits 28:25 choose the group, and
 * within a group a few fields tell what is written. Only what frames and control flow need is
 * told apart; encodings that the manual leaves unallocated are INSN_BAD where that costs no more
 * than a look at the same fields. Vector instructions are taken as allocated.
 *
 * Loads and stores are in insn_aarch64_memory.c.
 */
#include "isa/insn_aarch64.h"

#include <elf.h>

#include "isa/references_cpu.h"
#include "isa/tables_cpu.h"

/* --- data processing, immediate --- */

static void decode_pc_relative(uint32_t word, struct insn *out)
{
	int64_t offset = signed_bits(word, 23, 5) * 4 | (int64_t)bits(word, 30, 29);
	out->refers = bit(word, 31) ? (out->address & ~(uint64_t)0xfff) + (uint64_t)offset * 4096
				    : out->address + (uint64_t)offset;
	set_const(out, rd(word), out->refers);
}

static void decode_add_immediate(uint32_t word, struct insn *out)
{
	int64_t imm = bits(word, 21, 10) << (bit(word, 22) ? 12 : 0);
	bool flags = bit(word, 29);
	if (flags && rd(word) == ZR)
		return; /* cmp, cmn */
	if (!bit(word, 31))
		write_sp(out, rd(word));
	else
		add_effect(out, EFFECT_MOVE, rd(word), rn(word), bit(word, 30) ? -imm : imm);
}

/* The mask that N:imms:immr stand for; 0 where they stand for none (no mask is 0). */
static uint64_t bitmask_immediate(uint32_t word)
{
	unsigned n = bit(word, 22), imms = bits(word, 15, 10), immr = bits(word, 21, 16);
	unsigned combined = n << 6 | (~imms & 63), size, ones, turn;
	uint64_t element;
	if (combined < 2)
		return 0;
	size = 1u << (31 - __builtin_clz(combined));
	ones = (imms & (size - 1)) + 1;
	turn = immr & (size - 1);
	if (ones == size)
		return 0;
	element = (UINT64_C(1) << ones) - 1;
	if (turn)
		element = element >> turn | element << (size - turn);
	if (size < 64)
		element &= (UINT64_C(1) << size) - 1;
	for (; size < 64; size *= 2)
		element |= element << size;
	return element;
}

static void decode_logical_immediate(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31);
	unsigned operation = bits(word, 30, 29);
	uint64_t mask = bitmask_immediate(word);
	if (!mask || (!wide && bit(word, 22)))
		bad(out);
	else if (operation == 3) /* ands, tst */
		write_x(out, rd(word));
	else if (operation == 0 && wide && rn(word) != ZR)
		add_effect(out, EFFECT_ALIGN, rd(word), rn(word), (int64_t)mask);
	else if (operation == 1 && rn(word) == ZR && rd(word) != SP)
		set_const(out, rd(word), wide ? mask : (uint32_t)mask);
	else
		write_sp(out, rd(word));
}

static void decode_move_wide(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31);
	unsigned shift = bits(word, 22, 21) * 16;
	uint64_t imm = bits(word, 20, 5);
	if (!wide && shift > 16) {
		bad(out);
		return;
	}
	switch (bits(word, 30, 29)) {
	case 0: /* movn */
		imm = ~(imm << shift);
		set_const(out, rd(word), wide ? imm : (uint32_t)imm);
		break;
	case 2: /* movz */
		set_const(out, rd(word), imm << shift);
		break;
	case 3: /* movk */
		if (!wide)
			write_x(out, rd(word));
		else if (rd(word) != ZR) {
			add_effect(out, EFFECT_INSERT, rd(word), rd(word), (int64_t)imm);
			out->effects[0].src2 = shift;
		}
		break;
	default:
		bad(out);
	}
}

static void decode_bitfield(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31), extract = bits(word, 25, 23) == 7;
	bool known = extract ? bits(word, 30, 29) == 0 && !bit(word, 21) : bits(word, 30, 29) != 3;
	if (!known || bit(word, 22) != wide ||
	    (!wide && (bit(word, 15) || (!extract && bit(word, 21)))))
		bad(out);
	else
		write_x(out, rd(word));
}

/* addg, subg; minimum and maximum with a constant */
static void decode_tag_immediate(uint32_t word, struct insn *out)
{
	if (bit(word, 22) && !bits(word, 30, 29) && !bits(word, 21, 20))
		write_x(out, rd(word));
	else if (!bit(word, 22) && bit(word, 31) && !bit(word, 29))
		write_sp(out, rd(word));
	else
		bad(out);
}

static void decode_immediate(uint32_t word, struct insn *out)
{
	switch (bits(word, 25, 23)) {
	case 0:
	case 1:
		decode_pc_relative(word, out);
		break;
	case 2:
		decode_add_immediate(word, out);
		break;
	case 3:
		decode_tag_immediate(word, out);
		break;
	case 4:
		decode_logical_immediate(word, out);
		break;
	case 5:
		decode_move_wide(word, out);
		break;
	default:
		decode_bitfield(word, out);
	}
}

/* --- branches, exceptions, system --- */

static void jump_to(struct insn *out, uint8_t kind, int64_t words)
{
	out->kind = kind;
	out->target = out->address + (uint64_t)words * 4;
}

static void decode_exception(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 23, 21), level = word & 3;
	if (bits(word, 4, 2)) {
		bad(out);
	} else if (operation == 0 && level) { /* svc, hvc, smc */
		out->kind = INSN_SYSCALL;
		out->writes = level == 1 ? 1u : 0x3ffff;
	} else if ((operation == 1 || operation == 2) && !level) { /* brk, hlt */
		out->kind = INSN_TRAP;
	} else if (operation == 5 && level) { /* dcps */
		out->kind = INSN_TRAP;
	} else if (operation != 3 || level) { /* tcancel */
		bad(out);
	}
}

static void decode_hint(uint32_t word, struct insn *out)
{
	unsigned hint = bits(word, 11, 5);
	switch (hint) {
	case 0:
		out->kind = INSN_NOP;
		break;
	case 7: /* xpaclri */
	case 24:
	case 25:
	case 26:
	case 27: /* paciaz, paciasp, pacibz, pacibsp */
	case 28:
	case 29:
	case 30:
	case 31: /* autiaz, ... */
		add_effect(out, EFFECT_SIGN, LR, LR, 0);
		break;
	case 8:
	case 10:
	case 12:
	case 14: /* pacia1716, pacib1716, autia1716, autib1716 */
		write_x(out, 17);
		break;
	default:
		break;
	}
}

static void decode_system(uint32_t word, struct insn *out)
{
	bool read = bit(word, 21);
	if ((word & 0xfffff01f) == 0xd503201f) {
		decode_hint(word, out);
	} else if (bit(word, 22)) { /* 128-bit registers: mrrs, msrr, sysp */
		if (read && bit(word, 20)) {
			write_x(out, rd(word));
			write_x(out, rd(word) | 1);
		}
	} else if (read) { /* mrs, sysl, tstart */
		write_x(out, rd(word));
	}
}

static void decode_branch_register(uint32_t word, struct insn *out)
{
	static const uint8_t kinds[16] = {
		[0] = INSN_JUMP_INDIRECT, [1] = INSN_CALL_INDIRECT, [2] = INSN_RETURN,
		[4] = INSN_RETURN,        [5] = INSN_RETURN, /* eret, drps */
		[8] = INSN_JUMP_INDIRECT, [9] = INSN_CALL_INDIRECT,
	};
	unsigned operation = bits(word, 24, 21), variant = bits(word, 15, 10);
	bool signed_pointer = variant == 2 || variant == 3, modifier = operation >= 8;
	out->kind = kinds[operation];
	if (!out->kind || bits(word, 20, 16) != 31 || (variant && !signed_pointer) ||
	    (modifier && !signed_pointer) || (!signed_pointer && rd(word)) ||
	    (signed_pointer && !modifier && rd(word) != 31) ||
	    ((operation == 4 || operation == 5) && rn(word) != 31)) {
		bad(out);
		return;
	}
	if (operation == 2)
		out->reg = signed_pointer ? LR : rn(word);
	else if (operation != 4 && operation != 5)
		out->reg = rn(word);
	if (out->reg == ZR) /* br xzr: an address of 0 */
		out->reg = INSN_NO_REG;
	if (out->kind == INSN_CALL_INDIRECT)
		write_x(out, LR);
}

static void decode_branch_1101010(uint32_t word, struct insn *out)
{
	if (bit(word, 25))
		decode_branch_register(word, out);
	else if (!bit(word, 24))
		decode_exception(word, out);
	else if (bits(word, 23, 23) == 0)
		decode_system(word, out);
	else
		bad(out);
}

static void decode_branch(uint32_t word, struct insn *out)
{
	switch (bits(word, 31, 29)) {
	case 0:
		jump_to(out, INSN_JUMP, signed_bits(word, 25, 0));
		break;
	case 4:
		jump_to(out, INSN_CALL, signed_bits(word, 25, 0));
		write_x(out, LR);
		break;
	case 1:
	case 5: /* cbz, tbz */
		jump_to(out, INSN_BRANCH,
			bit(word, 25) ? signed_bits(word, 18, 5) : signed_bits(word, 23, 5));
		out->reg = rd(word) == ZR ? INSN_NO_REG : rd(word);
		break;
	case 2:
		if (bits(word, 25, 24))
			bad(out);
		else
			jump_to(out, INSN_BRANCH, signed_bits(word, 23, 5));
		break;
	case 6:
		decode_branch_1101010(word, out);
		break;
	default:
		bad(out);
	}
}

/* --- data processing, registers --- */

static void decode_logical_register(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31);
	bool copies = bits(word, 30, 29) == 1 && !bit(word, 21) &&
		      rn(word) == ZR; /* orr with xzr */
	unsigned amount = bits(word, 15, 10);
	if (!wide && amount >= 32)
		bad(out);
	else if (copies && rm(word) == ZR)
		set_const(out, rd(word), 0);
	else if (copies && wide && !amount && rd(word) != ZR)
		add_effect(out, EFFECT_MOVE, rd(word), rm(word), 0);
	else
		write_x(out, rd(word));
}

/* dst = left +- right, where none of them is the zero register */
static void add_registers(struct insn *out, uint32_t word)
{
	add_effect2(out, bit(word, 30) ? EFFECT_SUB : EFFECT_ADD, rd(word), rn(word), rm(word));
}

static void decode_add_shifted(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31), subtract = bit(word, 30);
	unsigned amount = bits(word, 15, 10), shift = bits(word, 23, 22);
	if (shift == 3 || (!wide && amount >= 32))
		bad(out);
	else if (!wide || amount || rd(word) == ZR || (subtract && rn(word) == ZR))
		write_x(out, rd(word));
	else if (rm(word) == ZR && rn(word) == ZR)
		set_const(out, rd(word), 0);
	else if (rm(word) == ZR)
		add_effect(out, EFFECT_MOVE, rd(word), rn(word), 0);
	else if (rn(word) == ZR)
		add_effect(out, EFFECT_MOVE, rd(word), rm(word), 0);
	else
		add_registers(out, word);
}

static void decode_add_extended(uint32_t word, struct insn *out)
{
	bool wide = bit(word, 31), flags = bit(word, 29);
	unsigned amount = bits(word, 12, 10), extension = bits(word, 15, 13);
	if (bits(word, 23, 22) || amount > 4)
		bad(out);
	else if (flags && rd(word) == ZR) {
		if (wide && !amount && rn(word) == SP && bit(word, 30) && rm(word) != ZR)
			add_effect(out, EFFECT_COMPARE, SP, rm(word), 0);
	} else if (!wide || amount || (extension & 3) != 3)
		write_sp(out, rd(word));
	else if (rm(word) == ZR)
		add_effect(out, EFFECT_MOVE, rd(word), rn(word), 0);
	else
		add_registers(out, word);
}

static void decode_carry(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 15, 10);
	if (operation == 0) /* adc, sbc */
		write_x(out, rd(word));
	else if (operation >> 3 == 1) /* addpt, subpt */
		write_sp(out, rd(word));
	else if (!((operation & 31) == 1 && bits(word, 31, 29) == 5 && !bit(word, 4)) &&
		 (word & 0xffffbc1f) != 0x3a00080d) /* rmif, setf */
		bad(out);
}

static void decode_two_sources(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 15, 10);
	bool wide = bit(word, 31);
	if (bit(word, 29) && (operation || !wide)) {
		bad(out);                    /* only subps sets flags */
	} else if (operation == 4 && wide) { /* irg */
		write_sp(out, rd(word));
	} else if (operation == 2 || operation == 3 || (operation >= 8 && operation < 12) ||
		   (operation >= 16 && operation < 28) ||
		   (wide && (operation == 0 || operation == 5 || operation == 12))) {
		write_x(out, rd(word));
	} else {
		bad(out);
	}
}

static void decode_one_source(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 15, 10), group = bits(word, 20, 16);
	if (bit(word, 29)) {
		bad(out);
	} else if (group == 0) { /* rbit, rev, clz, cls, ctz, cnt, abs */
		if (operation > 8 || (operation == 3 && !bit(word, 31)))
			bad(out);
		else
			write_x(out, rd(word));
	} else if (group == 1 && bit(word, 31) && operation < 18 &&
		   (operation < 8 || rn(word) == 31)) { /* pointer authentication */
		if (rd(word) == LR)
			add_effect(out, EFFECT_SIGN, LR, LR, 0);
		else
			write_x(out, rd(word));
	} else {
		bad(out);
	}
}

static void decode_three_sources(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 23, 21);
	bool high = operation == 2 || operation == 6;
	if (bits(word, 30, 29) || operation == 4 || operation == 7 ||
	    (operation && !bit(word, 31)) || (high && bit(word, 15)))
		bad(out);
	else
		write_x(out, rd(word));
}

static void decode_register(uint32_t word, struct insn *out)
{
	if (!bit(word, 28)) {
		if (!bit(word, 24))
			decode_logical_register(word, out);
		else if (bit(word, 21))
			decode_add_extended(word, out);
		else
			decode_add_shifted(word, out);
		return;
	}
	if (bit(word, 24)) {
		decode_three_sources(word, out);
		return;
	}
	switch (bits(word, 24, 21)) {
	case 0:
		decode_carry(word, out);
		break;
	case 2: /* conditional compare */
		if (!bit(word, 29) || bit(word, 10) || bit(word, 4))
			bad(out);
		break;
	case 4: /* conditional select */
		if (bit(word, 29) || bit(word, 11))
			bad(out);
		else
			write_x(out, rd(word));
		break;
	case 6:
		if (bit(word, 30))
			decode_one_source(word, out);
		else
			decode_two_sources(word, out);
		break;
	default:
		bad(out);
	}
}

/* --- vectors --- */

/* Conversions and moves from a vector register to a general one */
static void decode_vector(uint32_t word, struct insn *out)
{
	unsigned operation = bits(word, 18, 16);
	if ((word & 0x7f20fc00) == 0x1e200000) {
		if (operation != 2 && operation != 3 && operation != 7) /* fcvt*, fmov */
			write_x(out, rd(word));
	} else if ((word & 0x7f3e0000) == 0x1e180000) { /* fcvtzs, fcvtzu to fixed point */
		write_x(out, rd(word));
	} else if ((word & 0xbfe0ec00) == 0x0e002c00) { /* smov, umov */
		write_x(out, rd(word));
	}
}

/* The scalable instructions that write a general register; some of the masks are wider than
   what is allocated today, on the safe side. */
static void decode_scalable(uint32_t word, struct insn *out)
{
	static const struct {
		uint32_t mask, value;
	} to_x[] = {
		{0xff30fc00, 0x0420e000}, /* cntb, cnth, cntw, cntd */
		{0xff30f800, 0x0430e000}, /* incb ... decd */
		{0xff20f000, 0x0420f000}, /* sqincb ... uqdecd */
		{0xfffff000, 0x04bf5000}, /* rdvl, rdsvl */
		{0xff2ee000, 0x0520a000}, /* lasta, lastb, clasta, clastb */
		{0xff38c000, 0x25208000}, /* cntp */
		{0xff38f800, 0x25288800}, /* incp, decp, sqincp ... */
	};
	if ((word & 0xffa0f000) == 0x04205000) { /* addvl, addpl */
		write_sp(out, rd(word));
		return;
	}
	for (size_t i = 0; i < sizeof to_x / sizeof to_x[0]; i++)
		if ((word & to_x[i].mask) == to_x[i].value) {
			write_x(out, rd(word));
			return;
		}
}

static void decode_reserved(uint32_t word, struct insn *out)
{
	if (bits(word, 31, 16) == 0)
		out->kind = INSN_TRAP; /* udf */
	else if (!bit(word, 31))
		bad(out); /* else matrix instructions, that write no general register */
}

static void decode_word(uint32_t word, struct insn *out)
{
	switch (bits(word, 28, 25)) {
	case 0:
		decode_reserved(word, out);
		break;
	case 2:
		decode_scalable(word, out);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		aarch64_decode_memory(word, out);
		break;
	case 5:
	case 13:
		decode_register(word, out);
		break;
	case 7:
	case 15:
		decode_vector(word, out);
		break;
	case 8:
	case 9:
		decode_immediate(word, out);
		break;
	case 10:
	case 11:
		decode_branch(word, out);
		break;
	default:
		bad(out);
	}
}

static uint32_t read_word(const uint8_t *code)
{
	return code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

static void aarch64_decode(const uint8_t *code, size_t size, uint64_t address, struct insn *out)
{
	out->address = address;
	out->target = out->refers = 0;
	out->writes = 0;
	out->kind = INSN_OTHER;
	out->reg = out->base = INSN_NO_REG;
	out->effect_count = 0;
	out->length = 4;
	if (size < 4) {
		out->length = size;
		out->kind = INSN_BAD;
		return;
	}
	decode_word(read_word(code), out);
}

/* mov xN, #size; [movk xN, …;] sub sp, sp, xN: a frame too large for one immediate. */
static bool is_large_frame(const uint8_t *code, size_t size)
{
	uint32_t reg = rd(read_word(code));
	for (size_t at = 4; at + 4 <= size && at <= 8; at += 4) {
		uint32_t word = read_word(code + at);
		if (word == (0xcb2063ff | reg << 16))
			return true;
		if ((word & 0xff80001f) != (0xf2800000 | reg))
			return false;
	}
	return false;
}

static bool aarch64_is_prologue(const uint8_t *code, size_t size)
{
	uint32_t word;
	if (size < 4)
		return false;
	word = read_word(code);
	switch (word) {
	case 0xd503233f: /* paciasp */
	case 0xd503237f: /* pacibsp */
	case 0xd503245f: /* bti c */
	case 0xd50324df: /* bti jc */
		return true;
	default:
		break;
	}
	if ((word & 0xff800000) == 0xd2800000) /* mov xN, #n */
		return is_large_frame(code, size);
	if ((word & 0xff8003ff) == 0xd10003ff) /* sub sp, sp, #n */
		return true;
	if ((word & 0xffe003e0) == 0xa9a003e0) /* stp xa, xb, [sp, #-n]! */
		return rd(word) >= 19 && rt2(word) >= 19;
	if ((word & 0xffe003e0) == 0x6da003e0) /* stp da, db, [sp, #-n]! */
		return true;
	if ((word & 0xfff00ff8) == 0xfc100fe8) /* str d8-d15, [sp, #-n]! */
		return true;
	if ((word & 0xfff00fe0) == 0xf8100fe0) /* str xa, [sp, #-n]! */
		return rd(word) >= 19 && rd(word) <= LR;
	return false;
}

const struct isa isa_aarch64 = {
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.register_count = 32,
	.sp = SP,
	.fp = FP,
	.link = LR,
	.extra = 19,
	.insn_min = 4,
	.procedure_align = 4,
	.probe_size = INSN_NO_REG,
	.system_call = "\x01\x00\x00\xd4", /* svc #0 */
	.system_call_length = 4,
	.red_zone = 8,
	.call_pushes = 0,
	.call_clobbers = 0x7ffff | 1u << LR,
	.kept = 0x3ffu << 19, /* x19 to x28 */
	.decode = aarch64_decode,
	.is_prologue = aarch64_is_prologue,
	.find_jump_table = aarch64_find_jump_table,
	.find_references = aarch64_find_references,
};
