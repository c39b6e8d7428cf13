/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64, in two layers.
 *
 * The quick layer knows the legacy encodings that make up nearly all compiled code: the one-byte
 * opcode map and the 0F map. Two tables say, per opcode, how long the instruction is and which
 * general registers it writes; a few dozen opcodes that matter to frames or to control flow have
 * code of their own. Whatever it does not know for certain (other maps, VEX, EVEX, lock, odd
 * prefixes, encodings that might be invalid) goes to Zydis (insn_x86_64_zydis.c), that knows
 * everything but takes several times as long. A unit test holds the first layer against Zydis.
 *
 * A call's push and a return's pop of the return address are not reported as writes of rsp:
 * `call_pushes` tells the former, and after the latter there is nothing left to follow.
 */
#include "isa/insn_x86_64.h"

#include <elf.h>
#include <string.h>

#include "isa/references_cpu.h"
#include "isa/tables_cpu.h"

enum {
	OK = 1 << 0, /* the quick layer knows it */
	MODRM = 1 << 1,
	IMM8 = 1 << 2,
	IMMZ = 1 << 3,  /* 16 or 32 bits, by operand size */
	BYTE = 1 << 4,  /* register operands are bytes */
	W_RM = 1 << 5,  /* writes ModRM.rm */
	W_REG = 1 << 6, /* writes ModRM.reg */
	W_RAX = 1 << 7,
	W_RDX = 1 << 8,
	NO66 = 1 << 9,   /* means something else with an operand size prefix */
	MEM = 1 << 10,   /* exists with a memory operand only */
	GROUP = 1 << 11, /* ModRM.reg says more: group_flags() */
	/* Prefixes with which an SSE opcode exists; none of them: prefixes are no part of it. */
	P_NONE = 1 << 12,
	P_66 = 1 << 13,
	P_F3 = 1 << 14,
	P_F2 = 1 << 15,
	P_ALL = P_NONE | P_66 | P_F3 | P_F2,
};

/* clang-format off */
#define ALU(first, write) \
	[(first) + 0] = OK | MODRM | BYTE | ((write) ? W_RM : 0), \
	[(first) + 1] = OK | MODRM | ((write) ? W_RM : 0), \
	[(first) + 2] = OK | MODRM | BYTE | ((write) ? W_REG : 0), \
	[(first) + 3] = OK | MODRM | ((write) ? W_REG : 0), \
	[(first) + 4] = OK | IMM8 | ((write) ? W_RAX : 0), \
	[(first) + 5] = OK | IMMZ | ((write) ? W_RAX : 0)

static const uint16_t one_byte_map[256] = {
	ALU(0x00, 1), ALU(0x08, 1), ALU(0x10, 1), ALU(0x18, 1),
	ALU(0x20, 1), ALU(0x28, 1), ALU(0x30, 1), ALU(0x38, 0),
	[0x50 ... 0x5f] = OK | NO66,                        /* push, pop */
	[0x63] = OK | MODRM | W_REG,                        /* movslq */
	[0x68] = OK | IMMZ | NO66,                          /* push */
	[0x69] = OK | MODRM | IMMZ | W_REG,                 /* imul */
	[0x6a] = OK | IMM8 | NO66,                          /* push */
	[0x6b] = OK | MODRM | IMM8 | W_REG,                 /* imul */
	[0x70 ... 0x7f] = OK | IMM8 | NO66,                 /* jcc */
	[0x80] = OK | MODRM | IMM8 | W_RM | BYTE | GROUP,
	[0x81] = OK | MODRM | IMMZ | W_RM | GROUP,
	[0x83] = OK | MODRM | IMM8 | W_RM | GROUP,
	[0x84] = OK | MODRM, [0x85] = OK | MODRM,           /* test */
	[0x86] = OK | MODRM | BYTE | W_RM | W_REG,          /* xchg */
	[0x87] = OK | MODRM | W_RM | W_REG,
	[0x88] = OK | MODRM | BYTE | W_RM, [0x89] = OK | MODRM | W_RM,   /* mov */
	[0x8a] = OK | MODRM | BYTE | W_REG, [0x8b] = OK | MODRM | W_REG,
	[0x8d] = OK | MODRM | W_REG | MEM,                  /* lea */
	[0x8f] = OK | MODRM | NO66 | GROUP,                 /* pop */
	[0x90 ... 0x97] = OK,                               /* xchg with rax, nop */
	[0x98] = OK | W_RAX, [0x99] = OK | W_RDX,           /* cltq, cqto */
	[0x9c] = OK | NO66, [0x9d] = OK | NO66,             /* pushf, popf */
	[0x9e] = OK, [0x9f] = OK | W_RAX,                   /* sahf, lahf */
	[0xa8] = OK | IMM8, [0xa9] = OK | IMMZ,             /* test */
	[0xb0 ... 0xb7] = OK | IMM8 | BYTE,                 /* mov */
	[0xb8 ... 0xbf] = OK,                               /* mov; the size is peculiar */
	[0xc0] = OK | MODRM | IMM8 | W_RM | BYTE, [0xc1] = OK | MODRM | IMM8 | W_RM,
	[0xc2] = OK | NO66, [0xc3] = OK | NO66,             /* ret */
	[0xc6] = OK | MODRM | IMM8 | W_RM | BYTE | GROUP,   /* mov */
	[0xc7] = OK | MODRM | IMMZ | W_RM | GROUP,
	[0xc8] = OK | NO66, [0xc9] = OK | NO66,             /* enter, leave */
	[0xcc] = OK,                                        /* int3 */
	[0xd0] = OK | MODRM | W_RM | BYTE, [0xd1] = OK | MODRM | W_RM,   /* shifts */
	[0xd2] = OK | MODRM | W_RM | BYTE, [0xd3] = OK | MODRM | W_RM,
	[0xe8] = OK | IMMZ | NO66, [0xe9] = OK | IMMZ | NO66, [0xeb] = OK | IMM8 | NO66,
	[0xf4] = OK, [0xf5] = OK,                           /* hlt, cmc */
	[0xf6] = OK | MODRM | BYTE | GROUP, [0xf7] = OK | MODRM | GROUP,
	[0xf8 ... 0xf9] = OK, [0xfc ... 0xfd] = OK,         /* flags */
	[0xfe] = OK | MODRM | W_RM | BYTE | GROUP,
	[0xff] = OK | MODRM | GROUP,
};

#define SSE (OK | MODRM)

static const uint16_t map_0f[256] = {
	[0x05] = OK,                                        /* syscall */
	[0x0b] = OK,                                        /* ud2 */
	[0x10 ... 0x11] = SSE | P_ALL,
	[0x13] = SSE | MEM | P_NONE | P_66, [0x14 ... 0x15] = SSE | P_NONE | P_66,
	[0x17] = SSE | MEM | P_NONE | P_66,
	[0x1e] = OK | MODRM | P_F3 | GROUP,                 /* endbr64 */
	[0x1f] = OK | MODRM,                                /* nop */
	[0x28 ... 0x29] = SSE | P_NONE | P_66,
	[0x2a] = SSE | P_F3 | P_F2,
	[0x2b] = SSE | MEM | P_NONE | P_66,
	[0x2c ... 0x2d] = SSE | W_REG | P_F3 | P_F2,        /* cvttsd2si */
	[0x2e ... 0x2f] = SSE | P_NONE | P_66,
	[0x31] = OK | W_RAX | W_RDX,                        /* rdtsc */
	[0x40 ... 0x4f] = OK | MODRM | W_REG,               /* cmovcc */
	[0x51] = SSE | P_ALL,
	[0x52 ... 0x53] = SSE | P_NONE | P_F3,
	[0x54 ... 0x57] = SSE | P_NONE | P_66,
	[0x58 ... 0x5a] = SSE | P_ALL, [0x5b] = SSE | P_NONE | P_66 | P_F3,
	[0x5c ... 0x5f] = SSE | P_ALL,
	[0x60 ... 0x6b] = SSE | P_NONE | P_66,
	[0x6c ... 0x6d] = SSE | P_66, [0x6e] = SSE | P_NONE | P_66,
	[0x6f] = SSE | P_NONE | P_66 | P_F3,
	[0x70] = SSE | IMM8 | P_ALL,
	[0x74 ... 0x76] = SSE | P_NONE | P_66,
	[0x7e] = SSE | P_66 | P_F3 | GROUP,                 /* movd, movq */
	[0x7f] = SSE | P_NONE | P_66 | P_F3,
	[0x80 ... 0x8f] = OK | IMMZ | NO66,                 /* jcc */
	[0x90 ... 0x9f] = OK | MODRM | W_RM | BYTE,         /* setcc */
	[0xa2] = OK | W_RAX | W_RDX,                        /* cpuid */
	[0xa3] = OK | MODRM,                                /* bt */
	[0xa4] = OK | MODRM | IMM8 | W_RM, [0xa5] = OK | MODRM | W_RM,   /* shld */
	[0xab] = OK | MODRM | W_RM,                         /* bts */
	[0xac] = OK | MODRM | IMM8 | W_RM, [0xad] = OK | MODRM | W_RM,   /* shrd */
	[0xaf] = OK | MODRM | W_REG,                        /* imul */
	[0xb0] = OK | MODRM | W_RM | W_RAX | BYTE, [0xb1] = OK | MODRM | W_RM | W_RAX,
	[0xb3] = OK | MODRM | W_RM,                         /* btr */
	[0xb6 ... 0xb7] = OK | MODRM | W_REG,               /* movzx */
	[0xb8] = OK | MODRM | W_REG | P_F3,                 /* popcnt */
	[0xba] = OK | MODRM | IMM8 | GROUP,
	[0xbb] = OK | MODRM | W_RM,                         /* btc */
	[0xbc ... 0xbf] = OK | MODRM | W_REG,               /* bsf, bsr, movsx */
	[0xc0] = OK | MODRM | W_RM | W_REG | BYTE, [0xc1] = OK | MODRM | W_RM | W_REG,
	[0xc2] = SSE | IMM8 | P_ALL, [0xc6] = SSE | IMM8 | P_NONE | P_66,
	[0xc8 ... 0xcf] = OK,                               /* bswap */
	[0xd1 ... 0xd5] = SSE | P_NONE | P_66,
	[0xd8 ... 0xe5] = SSE | P_NONE | P_66, [0xe6] = SSE | P_66 | P_F3 | P_F2,
	[0xe7] = SSE | MEM | P_NONE | P_66, [0xe8 ... 0xef] = SSE | P_NONE | P_66,
	[0xf1 ... 0xf6] = SSE | P_NONE | P_66, [0xf8 ... 0xfe] = SSE | P_NONE | P_66,
};
/* clang-format on */

/* Prefixes, opcode and operands as they stand in the bytes. */
struct x86 {
	const uint8_t *at;
	uint8_t position;
	bool size16, segment, rip, index, wide;
	uint8_t rep, rex, map, opcode;
	uint8_t mod, reg, rm; /* encoding's numbers, extended by REX */
	uint8_t base;         /* encoding's number, or INSN_NO_REG */
	int32_t disp;
	int64_t imm;
};

/* Bytes that the quick layer may read: 6 prefixes, REX, 0F, opcode, ModRM, SIB, disp32, imm64. */
enum { QUICK_PREFIXES = 6, QUICK_BYTES = 23, LONGEST = 15 };

static int64_t read_signed(struct x86 *x, unsigned bytes)
{
	const uint8_t *p = x->at + x->position;
	int64_t value;
	int32_t v32;
	int16_t v16;
	x->position += bytes;
	switch (bytes) {
	case 1:
		return (int8_t)*p;
	case 2:
		memcpy(&v16, p, sizeof v16);
		return v16;
	case 4:
		memcpy(&v32, p, sizeof v32);
		return v32;
	default:
		memcpy(&value, p, sizeof value);
		return value;
	}
}

static bool read_prefixes(struct x86 *x)
{
	for (; x->position <= QUICK_PREFIXES; x->position++) {
		uint8_t byte = x->at[x->position];
		switch (byte) {
		case 0x66:
			x->size16 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			break; /* segments without a meaning, hints, notrack */
		case 0x64:
		case 0x65:
			x->segment = true;
			break;
		case 0xf2:
		case 0xf3:
			if (x->rep && x->rep != byte)
				return false;
			x->rep = byte;
			break;
		default:
			return true;
		}
	}
	return false;
}

static void read_opcode(struct x86 *x)
{
	if ((x->at[x->position] & 0xf0) == 0x40) {
		x->rex = x->at[x->position++];
		x->wide = x->rex & 8;
	}
	x->opcode = x->at[x->position++];
	if (x->opcode == 0x0f) {
		x->map = 1;
		x->opcode = x->at[x->position++];
	}
}

static void read_modrm(struct x86 *x)
{
	uint8_t byte = x->at[x->position++];
	x->mod = byte >> 6;
	x->reg = (byte >> 3 & 7) | (x->rex & 4) << 1;
	x->rm = (byte & 7) | (x->rex & 1) << 3;
	x->base = x->rm;
	if (x->mod == 3)
		return;
	if ((byte & 7) == 4) {
		uint8_t sib = x->at[x->position++];
		x->index = ((sib >> 3 & 7) | (x->rex & 2) << 2) != 4;
		x->base = (sib & 7) | (x->rex & 1) << 3;
		if (x->mod == 0 && (sib & 7) == 5) {
			x->base = INSN_NO_REG;
			x->disp = read_signed(x, 4);
		}
	} else if (x->mod == 0 && (byte & 7) == 5) {
		x->base = INSN_NO_REG;
		x->rip = true;
		x->disp = read_signed(x, 4);
	}
	if (x->mod)
		x->disp = read_signed(x, x->mod == 1 ? 1 : 4);
}

/* Flags of opcodes that ModRM.reg tells apart; 0 where they are better left to Zydis. */
static unsigned group_flags(const struct x86 *x, unsigned flags)
{
	unsigned sub = x->reg & 7;
	if (x->map == 1)
		switch (x->opcode) {
		case 0x1e:
			return x->mod == 3 && (x->reg & 7) == 7 && (x->rm & 7) == 2 ? flags : 0;
		case 0x7e:
			return x->rep == 0xf3 ? flags : x->rep ? 0 : flags | W_RM;
		default: /* 0xba */
			return sub < 4 ? 0 : sub == 4 ? flags : flags | W_RM;
		}
	switch (x->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return sub == 7 ? flags & ~W_RM : flags;
	case 0xf6:
	case 0xf7:
		if (sub < 2)
			return flags | (x->opcode == 0xf6 ? IMM8 : IMMZ);
		if (sub < 4)
			return flags | W_RM;
		return flags | W_RAX | (x->opcode == 0xf7 ? W_RDX : 0);
	case 0xfe:
		return sub < 2 ? flags : 0;
	case 0xff:
		if (sub < 2)
			return flags | W_RM;
		return (sub == 2 || sub == 4 || sub == 6) && !x->size16 ? flags : 0;
	default: /* 0x8f, 0xc6, 0xc7 */
		return sub == 0 ? flags : 0;
	}
}

static void read_immediate(struct x86 *x, unsigned flags)
{
	if (flags & IMM8)
		x->imm = read_signed(x, 1);
	else if (flags & IMMZ)
		x->imm = read_signed(x, x->size16 && !x->wide ? 2 : 4);
	else if (x->map)
		return;
	else if (x->opcode >= 0xb8 && x->opcode <= 0xbf)
		x->imm = read_signed(x, x->wide ? 8 : x->size16 ? 2 : 4);
	else if (x->opcode == 0xc2)
		x->imm = (uint16_t)read_signed(x, 2);
	else if (x->opcode == 0xc8) {
		x->imm = (uint16_t)read_signed(x, 2);
		x->imm |= (int64_t)(uint8_t)read_signed(x, 1) << 16; /* nesting level */
	}
}

/* Fills x from the bytes; returns the opcode's flags, 0 where Zydis has to look. */
static unsigned quick_read(struct x86 *x)
{
	unsigned flags, prefix;
	if (!read_prefixes(x))
		return 0;
	read_opcode(x);
	flags = x->map ? map_0f[x->opcode] : one_byte_map[x->opcode];
	if (!(flags & OK) || ((flags & NO66) && x->size16))
		return 0;
	if (flags & P_ALL) {
		prefix = x->rep == 0xf3 ? P_F3 : x->rep ? P_F2 : x->size16 ? P_66 : P_NONE;
		if (!(flags & prefix))
			return 0;
	}
	if (flags & MODRM) {
		read_modrm(x);
		if ((flags & MEM) && x->mod == 3)
			return 0;
		if ((flags & GROUP) && !(flags = group_flags(x, flags)))
			return 0;
	}
	read_immediate(x, flags);
	return flags;
}

static void mark_written(const struct x86 *x, struct insn *out, uint8_t reg, unsigned flags)
{
	if ((flags & BYTE) && !x->rex && reg >= 4)
		reg -= 4; /* ah, ch, dh, bh */
	out->writes |= 1u << dwarf_reg[reg];
}

/* Is the memory operand a register and a constant, so that it could be a slot of a frame? */
static bool is_plain_memory(const struct x86 *x)
{
	return x->mod != 3 && !x->index && !x->segment && x->base != INSN_NO_REG;
}

/* Puts `src` (or INSN_NO_REG: something unknown) into the memory operand. */
static void add_store(const struct x86 *x, struct insn *out, uint8_t src)
{
	if (is_plain_memory(x))
		add_effect(out, EFFECT_STORE, dwarf_reg[x->base], src, x->disp);
}

static void decode_push(struct insn *out, uint8_t src)
{
	if (src == RSP) { /* what is stored is rsp as it was before */
		add_effect(out, EFFECT_STORE, RSP, RSP, -8);
		add_effect(out, EFFECT_MOVE, RSP, RSP, -8);
		return;
	}
	add_effect(out, EFFECT_MOVE, RSP, RSP, -8);
	add_effect(out, EFFECT_STORE, RSP, src, 0);
}

static void decode_pop(struct insn *out, uint8_t dst)
{
	add_effect(out, EFFECT_LOAD, dst, RSP, 0);
	if (dst != RSP)
		add_effect(out, EFFECT_MOVE, RSP, RSP, 8);
}

static void decode_pop_memory(const struct x86 *x, struct insn *out)
{
	if (x->mod == 3) {
		decode_pop(out, dwarf_reg[x->rm]);
		return;
	}
	add_effect(out, EFFECT_MOVE, RSP, RSP, 8);
	add_store(x, out, INSN_NO_REG);
}

static void decode_enter(const struct x86 *x, struct insn *out)
{
	if (x->imm >> 16 & 31) { /* copies outer frames' pointers: no compiler does that */
		out->writes |= 1u << RSP | 1u << RBP;
		return;
	}
	add_effect(out, EFFECT_MOVE, RSP, RSP, -8);
	add_effect(out, EFFECT_STORE, RSP, RBP, 0);
	add_effect(out, EFFECT_MOVE, RBP, RSP, 0);
	add_effect(out, EFFECT_MOVE, RSP, RSP, -(x->imm & 0xffff));
}

static void decode_leave(struct insn *out)
{
	add_effect(out, EFFECT_MOVE, RSP, RBP, 0);
	add_effect(out, EFFECT_LOAD, RBP, RSP, 0);
	add_effect(out, EFFECT_MOVE, RSP, RSP, 8);
}

static void decode_lea(const struct x86 *x, struct insn *out)
{
	uint8_t dst = dwarf_reg[x->reg];
	if (!x->wide || x->index)
		out->writes |= 1u << dst;
	else if (x->rip)
		add_effect(out, EFFECT_CONST, dst, INSN_NO_REG, (int64_t)out->refers);
	else if (x->base == INSN_NO_REG)
		add_effect(out, EFFECT_CONST, dst, INSN_NO_REG, x->disp);
	else
		add_effect(out, EFFECT_MOVE, dst, dwarf_reg[x->base], x->disp);
}

static void jump_to(const struct x86 *x, struct insn *out, uint8_t kind)
{
	out->kind = kind;
	out->target = out->address + x->position + (uint64_t)x->imm;
}

static void jump_indirect(const struct x86 *x, struct insn *out, uint8_t kind)
{
	out->kind = kind;
	if (x->mod == 3) {
		out->reg = dwarf_reg[x->rm];
	} else if (x->rip && !x->segment) {
		out->target = out->refers;
		out->refers = 0;
	}
}

/* dst = dst op imm, for the 64-bit forms that frames are made with. */
static bool decode_immediate(struct insn *out, unsigned operation, uint8_t dst, int64_t imm)
{
	switch (operation) {
	case 0:
		add_effect(out, EFFECT_MOVE, dst, dst, imm);
		return true;
	case 4:
		add_effect(out, EFFECT_ALIGN, dst, dst, imm);
		return true;
	case 5:
		add_effect(out, EFFECT_MOVE, dst, dst, -imm);
		return true;
	default:
		return false;
	}
}

static bool decode_arithmetic(const struct x86 *x, struct insn *out, uint8_t op)
{
	bool to_reg = x->opcode & 2;
	uint8_t dst = dwarf_reg[to_reg ? x->reg : x->rm], src = dwarf_reg[to_reg ? x->rm : x->reg];
	if (x->mod != 3 || !x->wide)
		return false;
	add_effect(out, op, dst, dst, 0);
	out->effects[0].src2 = src;
	return true;
}

static bool decode_compare(const struct x86 *x, struct insn *out)
{
	uint8_t a = dwarf_reg[x->rm], b = dwarf_reg[x->reg];
	if (x->mod != 3 || !x->wide || (a != RSP && b != RSP))
		return false;
	add_effect(out, EFFECT_COMPARE, RSP, a == RSP ? b : a, 0);
	return true;
}

static bool decode_clear(const struct x86 *x, struct insn *out)
{
	if (x->mod != 3 || x->reg != x->rm || (x->size16 && !x->wide))
		return false;
	add_effect(out, EFFECT_CONST, dwarf_reg[x->rm], INSN_NO_REG, 0);
	return true;
}

static bool decode_move(const struct x86 *x, struct insn *out)
{
	uint8_t reg = dwarf_reg[x->reg];
	if (!x->wide)
		return false;
	if (x->opcode == 0x89) {
		if (x->mod == 3)
			add_effect(out, EFFECT_MOVE, dwarf_reg[x->rm], reg, 0);
		else
			add_store(x, out, reg);
		return true;
	}
	if (x->mod == 3)
		add_effect(out, EFFECT_MOVE, reg, dwarf_reg[x->rm], 0);
	else if (is_plain_memory(x))
		add_effect(out, EFFECT_LOAD, reg, dwarf_reg[x->base], x->disp);
	else
		return false;
	return true;
}

static bool decode_move_immediate(const struct x86 *x, struct insn *out, uint8_t reg)
{
	if (x->size16 && !x->wide)
		return false;
	add_effect(out, EFFECT_CONST, dwarf_reg[reg], INSN_NO_REG,
		   x->wide ? x->imm : (int64_t)(uint32_t)x->imm);
	return true;
}

static bool decode_group_ff(const struct x86 *x, struct insn *out)
{
	switch (x->reg & 7) {
	case 0:
	case 1:
		if (!x->wide || x->mod != 3)
			return false;
		return decode_immediate(out, 0, dwarf_reg[x->rm], x->reg & 1 ? -1 : 1);
	case 2:
		jump_indirect(x, out, INSN_CALL_INDIRECT);
		return true;
	case 4:
		jump_indirect(x, out, INSN_JUMP_INDIRECT);
		return true;
	default:
		decode_push(out, x->mod == 3 ? dwarf_reg[x->rm] : INSN_NO_REG);
		return true;
	}
}

/* nop, and exchanges with rax */
static void decode_exchange_rax(const struct x86 *x, struct insn *out)
{
	uint8_t reg = (x->opcode & 7) | (x->rex & 1) << 3;
	if (x->opcode == 0x90 && x->rep == 0xf3)
		return; /* pause */
	if (reg)
		out->writes |= 1u << RAX | 1u << dwarf_reg[reg];
	else
		out->kind = INSN_NOP;
}

/* Opcodes where the last three bits are a register, and others without ModRM. */
static bool decode_plain_opcode(const struct x86 *x, struct insn *out)
{
	uint8_t low = (x->opcode & 7) | (x->rex & 1) << 3;
	switch (x->opcode) {
	case 0x50 ... 0x57:
		decode_push(out, dwarf_reg[low]);
		return true;
	case 0x58 ... 0x5f:
		decode_pop(out, dwarf_reg[low]);
		return true;
	case 0x68:
	case 0x6a:
	case 0x9c:
		decode_push(out, INSN_NO_REG);
		return true;
	case 0x9d:
		add_effect(out, EFFECT_MOVE, RSP, RSP, 8);
		return true;
	case 0x90 ... 0x97:
		decode_exchange_rax(x, out);
		return true;
	case 0xb0 ... 0xb7:
		mark_written(x, out, low, BYTE);
		return true;
	case 0xb8 ... 0xbf:
		if (!decode_move_immediate(x, out, low))
			out->writes |= 1u << dwarf_reg[low];
		return true;
	case 0x05:
	case 0x25:
	case 0x2d:
		return x->wide && decode_immediate(out, x->opcode >> 3, RAX, x->imm);
	case 0xc8:
		decode_enter(x, out);
		return true;
	case 0xc9:
		decode_leave(out);
		return true;
	default:
		return false;
	}
}

static bool decode_flow(const struct x86 *x, struct insn *out)
{
	switch (x->opcode) {
	case 0x70 ... 0x7f:
		jump_to(x, out, INSN_BRANCH);
		return true;
	case 0xe8:
		jump_to(x, out, INSN_CALL);
		return true;
	case 0xe9:
	case 0xeb:
		jump_to(x, out, INSN_JUMP);
		return true;
	case 0xc2:
	case 0xc3:
		out->kind = INSN_RETURN;
		return true;
	case 0xcc:
	case 0xf4:
		out->kind = INSN_TRAP;
		return true;
	default:
		return false;
	}
}

static bool decode_modrm_opcode(const struct x86 *x, struct insn *out)
{
	switch (x->opcode) {
	case 0x01:
	case 0x03:
		return decode_arithmetic(x, out, EFFECT_ADD);
	case 0x29:
	case 0x2b:
		return decode_arithmetic(x, out, EFFECT_SUB);
	case 0x31:
	case 0x33:
		return decode_clear(x, out);
	case 0x39:
	case 0x3b:
		return decode_compare(x, out);
	case 0x81:
	case 0x83:
		return x->wide && x->mod == 3 &&
		       decode_immediate(out, x->reg & 7, dwarf_reg[x->rm], x->imm);
	case 0x89:
	case 0x8b:
		return decode_move(x, out);
	case 0x8d:
		decode_lea(x, out);
		return true;
	case 0x8f:
		decode_pop_memory(x, out);
		return true;
	case 0xc7:
		return x->mod == 3 && decode_move_immediate(x, out, x->rm);
	case 0xff:
		return decode_group_ff(x, out);
	default:
		return false;
	}
}

static bool decode_map_0f(const struct x86 *x, struct insn *out)
{
	switch (x->opcode) {
	case 0x05:
		out->kind = INSN_SYSCALL;
		out->writes |= 1u << RAX | 1u << RCX | 1u << R11;
		return true;
	case 0x0b:
		out->kind = INSN_TRAP;
		return true;
	case 0x1f:
		out->kind = INSN_NOP;
		out->refers = 0;
		return true;
	case 0x80 ... 0x8f:
		jump_to(x, out, INSN_BRANCH);
		return true;
	case 0xa2:
		out->writes |= 1u << RBX | 1u << RCX;
		return false;
	case 0xc8 ... 0xcf:
		out->writes |= 1u << dwarf_reg[(x->opcode & 7) | (x->rex & 1) << 3];
		return true;
	default:
		return false;
	}
}

/* Effects and kind of what quick_read() read, then plain writes where nothing better is known. */
static void quick_decode(const struct x86 *x, unsigned flags, struct insn *out)
{
	bool done;
	if ((flags & MODRM) && x->mod != 3 && x->base != INSN_NO_REG)
		out->base = dwarf_reg[x->base];
	if (x->rip)
		out->refers = out->address + x->position + (uint64_t)(int64_t)x->disp;
	if (x->map)
		done = decode_map_0f(x, out);
	else if (flags & MODRM)
		done = decode_modrm_opcode(x, out);
	else
		done = decode_plain_opcode(x, out) || decode_flow(x, out);
	if (done)
		return;
	if (flags & W_RAX)
		out->writes |= 1u << RAX;
	if (flags & W_RDX)
		out->writes |= 1u << RDX;
	if (flags & W_REG)
		mark_written(x, out, x->reg, flags);
	if ((flags & W_RM) && x->mod == 3)
		mark_written(x, out, x->rm, flags);
	else if ((flags & W_RM) && x->wide && !(flags & BYTE))
		add_store(x, out, INSN_NO_REG);
}

static void x86_decode(const uint8_t *code, size_t size, uint64_t address, struct insn *out)
{
	uint8_t copy[QUICK_BYTES] = {0};
	struct x86 x = {.at = code};
	unsigned flags;
	out->address = address;
	out->target = out->refers = 0;
	out->writes = 0;
	out->kind = INSN_OTHER;
	out->reg = out->base = INSN_NO_REG;
	out->effect_count = 0;
	if (size < QUICK_BYTES) {
		if (size)
			memcpy(copy, code, size);
		x.at = copy;
	}
	if (size >= 2 && !code[0] && !code[1]) { /* nobody adds al to what rax points to: padding */
		out->length = 2;
		out->kind = INSN_TRAP;
		return;
	}
	flags = quick_read(&x);
	if (flags && x.position <= LONGEST && x.position <= size) {
		out->length = x.position;
		quick_decode(&x, flags, out);
	} else {
		x86_zydis_decode(code, size, out);
	}
}

static bool x86_is_prologue(const uint8_t *code, size_t size)
{
	static const struct {
		uint8_t length, bytes[4];
	} known[] = {
		{4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
		{4, {0x55, 0x48, 0x89, 0xe5}}, /* push %rbp; mov %rsp,%rbp */
		{4, {0x55, 0x48, 0x8b, 0xec}},
		{1, {0x55}},
		{2, {0x41, 0x54}}, /* push %r12 ... %r15 */
		{2, {0x41, 0x55}},
		{2, {0x41, 0x56}},
		{2, {0x41, 0x57}},
		{2, {0x53, 0x48}}, /* push %rbx and something 64-bit */
	};
	/* sub $n,%rsp keeps SP a multiple of 16. Eight alone is as often room for an argument. */
	if (size >= 4 && code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xec)
		return code[3] % 16 == 8 && !(code[1] == 0x83 && code[3] == 8);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (size >= known[i].length && !memcmp(code, known[i].bytes, known[i].length))
			return true;
	return false;
}

const struct isa isa_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.register_count = 16,
	.sp = RSP,
	.fp = RBP,
	.link = INSN_NO_REG,
	.extra = RBX,
	.insn_min = 1,
	.procedure_align = 16,
	.probe_size = RAX,
	.system_call = "\x0f\x05",
	.system_call_length = 2,
	.red_zone = 128,
	.call_pushes = 8,
	.call_clobbers = 1u << RAX | 1u << RCX | 1u << RDX | 1u << RSI | 1u << RDI | 0xfu << R8,
	.kept = 1u << RBX | 0xfu << 12, /* and r12 to r15 */
	.decode = x86_decode,
	.is_prologue = x86_is_prologue,
	.find_jump_table = x86_find_jump_table,
	.find_references = x86_find_references,
};
