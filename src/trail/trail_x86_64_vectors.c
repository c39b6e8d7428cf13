/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors and the old floating point: what their instructions do to others. That is memory that is stored, and general
 * registers and flags, which are not known afterwards.
 */
#include "trail/trail_x86_64.h"

enum {
	STORES = 1,      /* the vector */
	STORES_WORD = 2, /* 8 bytes, or less */
	INTO_REG = 4,    /* into general registers: reg; rm, if that is no memory; VEX.vvvv */
	INTO_RM = 8,
	INTO_VEX = 16,
	FLAGS = 32,
	NEEDS_VEX = 64, /* without it, it is something else */
	STRANGE = 128,
};

/* Opcodes that are not here do nothing to others. */
static const uint8_t after_0f[256] = {
	[0x11] = STORES,                /* movups, movss */
	[0x13] = STORES,                /* movlps */
	[0x17] = STORES,                /* movhps */
	[0x29] = STORES,                /* movaps */
	[0x2b] = STORES,                /* movntps */
	[0x2c ... 0x2d] = INTO_REG,     /* cvttss2si, cvtss2si */
	[0x2e ... 0x2f] = FLAGS,        /* ucomiss, comiss */
	[0x50] = INTO_REG,              /* movmskps */
	[0x78 ... 0x79] = STRANGE,      /* AVX-512 */
	[0x7e] = INTO_RM | STORES_WORD, /* movd, movq */
	[0x7f] = STORES,                /* movdqa, movdqu */
	[0x90] = NEEDS_VEX,             /* kmov */
	[0x91] = NEEDS_VEX | STORES_WORD,
	[0x92] = NEEDS_VEX,
	[0x93] = NEEDS_VEX | INTO_REG,
	[0x98 ... 0x99] = NEEDS_VEX | FLAGS, /* kortest, ktest */
	[0xc5] = INTO_REG,                   /* pextrw */
	[0xd6] = STORES,                     /* movq */
	[0xd7] = INTO_REG,                   /* pmovmskb */
	[0xe7] = STORES,                     /* movntdq */
	[0xf7] = STRANGE,                    /* maskmovdqu */
	[0xff] = STRANGE,
};
static const uint8_t after_0f_38[256] = {
	[0x0e ... 0x0f] = FLAGS,   /* vtestps, vtestpd */
	[0x17] = FLAGS,            /* ptest */
	[0x2e ... 0x2f] = STRANGE, /* vmaskmovps, vmaskmovpd: stores */
	[0x8e] = STRANGE,          /* vpmaskmov, the same */
	[0xe0 ... 0xef] = STRANGE,
	[0xf0 ... 0xf1] = INTO_REG,            /* crc32 */
	[0xf2] = NEEDS_VEX | FLAGS | INTO_REG, /* andn */
	[0xf3] = NEEDS_VEX | FLAGS | INTO_VEX, /* blsr, blsmsk, blsi */
	[0xf4] = STRANGE,
	[0xf5] = NEEDS_VEX | FLAGS | INTO_REG,            /* bzhi, pdep, pext */
	[0xf6] = NEEDS_VEX | FLAGS | INTO_REG | INTO_VEX, /* mulx */
	[0xf7] = NEEDS_VEX | FLAGS | INTO_REG,            /* bextr, shlx, shrx, sarx */
	[0xf8 ... 0xff] = STRANGE,
};
static const uint8_t after_0f_3a[256] = {
	[0x14 ... 0x17] = INTO_RM | STORES_WORD, /* pextrb to extractps */
	[0x19] = STORES,                         /* vextractf128 */
	[0x1d] = STORES,                         /* vcvtps2ph */
	[0x39] = STORES,                         /* vextracti128 */
	[0x60 ... 0x63] = FLAGS,                 /* pcmpestrm to pcmpistri; also into cx */
	[0xf0] = NEEDS_VEX | INTO_REG,           /* rorx */
};

static unsigned effects_of(const struct code *c, unsigned map, unsigned opcode)
{
	unsigned found = map == 1   ? after_0f[opcode]
			 : map == 2 ? after_0f_38[opcode]
				    : after_0f_3a[opcode];
	if (found & NEEDS_VEX && !c->has_vex)
		return STRANGE;
	if (map == 1 && opcode == 0x7e && c->repeats) /* the other way */
		return 0;
	if (map == 2 && (opcode == 0xf0 || opcode == 0xf1) && !c->repeats_not) /* movbe */
		return STRANGE;
	return found;
}

/* Whether a byte comes after the operands. */
static bool has_number(unsigned map, unsigned opcode)
{
	return map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
					 (opcode >= 0xc4 && opcode <= 0xc6)));
}

bool x86_vector(struct trail *t, struct code *c, unsigned map, unsigned opcode)
{
	bool number = has_number(map, opcode);
	if (c->has_vex && map == 1 && opcode == 0x77) /* vzeroupper has no operands */
		return true;
	x86_take_operands(t, c, number);
	if (number)
		x86_take(c);
	unsigned found = effects_of(c, map, opcode);
	if (found & STRANGE)
		return trail_stop(t, TRAIL_STRANGE);
	if (found & INTO_REG)
		x86_forget(t, c->reg);
	if (found & INTO_RM && c->mod == 3)
		x86_forget(t, c->rm);
	if (found & INTO_VEX)
		x86_forget(t, c->vex_register);
	if (map == 3 && found & FLAGS) /* strings */
		x86_forget(t, CX);
	if (found & FLAGS)
		t->unknown_flags |= ALL;
	if (found & STORES_WORD)
		return x86_write_vector(t, c, 8);
	return !(found & STORES) || x86_write_vector(t, c, c->vex_length ? 32 : 16);
}

bool x86_with_vex(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned map = 1, byte = x86_take(c);
	c->has_vex = c->has_rex = true;
	c->rex = byte & 0x80 ? 0 : 4;
	if (opcode == 0xc4) {
		map = byte & 31;
		c->rex |= (byte & 0x40 ? 0 : 2) | (byte & 0x20 ? 0 : 1);
		byte = x86_take(c);
		c->rex |= byte & 0x80 ? 8 : 0;
	}
	c->small = (byte & 3) == 1;
	c->repeats = (byte & 3) == 2;
	c->repeats_not = (byte & 3) == 3;
	c->vex_length = byte & 4;
	c->vex_register = ~byte >> 3 & 15;
	if (map < 1 || map > 3)
		return trail_stop(t, TRAIL_STRANGE);
	return x86_vector(t, c, map, x86_take(c));
}

/* ---- the old floating point ---- */

#define OPERATION(n) (1u << (n))

/* Of registers only: fnstsw ax, and comparisons with flags. */
static void floating_registers(struct trail *t, const struct code *c, unsigned opcode,
			       unsigned operation)
{
	if (opcode == 0xdf && operation == 4 && (c->rm & 7) == 0)
		x86_forget(t, AX);
	if ((opcode == 0xdb || opcode == 0xdf) && (operation == 5 || operation == 6))
		t->unknown_flags |= ALL;
}

bool x86_floating(struct trail *t, struct code *c, unsigned opcode)
{
	/* For each opcode, the operations that store, and those that load or store a whole state. */
	static const uint8_t stores[8] = {
		[1] = OPERATION(2) | OPERATION(3) | OPERATION(7),
		[3] = OPERATION(1) | OPERATION(2) | OPERATION(3) | OPERATION(4) | OPERATION(6) |
		      OPERATION(7),
		[5] = OPERATION(1) | OPERATION(2) | OPERATION(3) | OPERATION(7),
		[7] = OPERATION(1) | OPERATION(2) | OPERATION(3) | OPERATION(6) | OPERATION(7),
	};
	static const uint8_t strange[8] = {
		[1] = OPERATION(4) | OPERATION(6),
		[5] = OPERATION(4) | OPERATION(6),
	};
	x86_take_operands(t, c, 0);
	unsigned operation = c->reg & 7;
	if (c->mod == 3) {
		floating_registers(t, c, opcode, operation);
		return true;
	}
	if (strange[opcode & 7] & OPERATION(operation))
		return trail_stop(t, TRAIL_STRANGE);
	return !(stores[opcode & 7] & OPERATION(operation)) || x86_write_vector(t, c, 16);
}
