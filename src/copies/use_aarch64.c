/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written is known from isa_aarch64. What is read is found here, by the encoding groups of the architecture manual: bits
 * 28:25 choose the group. Where an instruction is not known, all registers are taken to be read.
 *
 * Register 31 is sp or the zero register. It is never free, so it does not matter which.
 */
#include "copies/use.h"

#include "isa/insn.h"
#include "isa/insn_aarch64.h"

#define BIT(reg) (1u << (reg))
#define RANGE(first, last) ((2u << (last)) - (1u << (first)))
#define EVERY UINT32_MAX
#define FLAGS (USE_CARRY | USE_OTHERS)

static uint32_t one(uint8_t a)
{
	return BIT(a);
}

static uint32_t two(uint8_t a, uint8_t b)
{
	return BIT(a) | BIT(b);
}

/* ---- loads and stores ---- */

/* Loads and stores for exclusive use, those that keep an order, compare and swap */
static uint32_t exclusive(uint32_t w)
{
	bool load = bit(w, 22), ordered = bit(w, 23), pair = bit(w, 21);
	if (pair && (ordered || !bit(w, 31))) /* cas, casp */
		return two(rn(w), rd(w)) | BIT((rd(w) + 1) & 31) |
		       two(rm(w), (uint8_t)((rm(w) + 1) & 31));
	if (load)
		return one(rn(w));
	return two(rn(w), rd(w)) | (pair ? BIT(rt2(w)) : 0);
}

static uint32_t ordered(uint32_t w)
{
	bool store = bits(w, 23, 22) == 0 && !bit(w, 26);
	if (bits(w, 11, 10))
		return two(rn(w), rd(w)) | BIT(rm(w));
	return one(rn(w)) | (store ? BIT(rd(w)) : 0);
}

static uint32_t load_register(uint32_t w)
{
	bool store = bits(w, 23, 22) == 0 && !bit(w, 26);
	uint32_t set = one(rn(w)) | (store ? BIT(rd(w)) : 0);
	if (bit(w, 24) || !bit(w, 21))
		return set;
	if (bit(w, 10)) /* ldraa */
		return one(rn(w));
	if (bit(w, 11))
		return set | BIT(rm(w));
	bool plain = !bit(w, 15) || bits(w, 14, 12) == 0 || bits(w, 14, 12) == 4;
	return plain ? two(rn(w), rm(w)) : EVERY; /* ldadd, swp, ldapr; ld64b */
}

static uint32_t memory(uint32_t w)
{
	bool vector = bit(w, 26);
	switch (bits(w, 29, 28)) {
	case 0:
		if (vector)
			return one(rn(w)) | (bit(w, 23) ? BIT(rm(w)) : 0);
		return exclusive(w);
	case 1:
		if (!bit(w, 24))
			return 0; /* near the PC */
		if (bit(w, 21))   /* tags */
			return two(rn(w), rd(w));
		return ordered(w);
	case 2:
		return one(rn(w)) | (bit(w, 22) || vector ? 0 : two(rd(w), rt2(w)));
	default:
		return load_register(w);
	}
}

/* ---- arithmetic ---- */

static uint32_t immediate(uint32_t w)
{
	switch (bits(w, 25, 23)) {
	case 0:
	case 1: /* adr, adrp */
		return 0;
	case 5: /* movk */
		return bits(w, 30, 29) == 3 ? one(rd(w)) : 0;
	case 6: /* bfm */
		return one(rn(w)) | (bits(w, 30, 29) == 1 ? BIT(rd(w)) : 0);
	case 7:
		return two(rn(w), rm(w));
	default:
		return one(rn(w));
	}
}

static uint32_t registers(uint32_t w)
{
	if (!bit(w, 28))
		return two(rn(w), rm(w));
	if (bit(w, 24)) /* three sources */
		return two(rn(w), rm(w)) | BIT(rt2(w));
	bool alone = bits(w, 24, 21) == 6 && bit(w, 30);
	if (alone) /* some of them read what they change: pointer authentication */
		return bits(w, 20, 16) ? two(rn(w), rd(w)) : one(rn(w));
	if (bits(w, 24, 21) == 2 && bit(w, 11)) /* ccmp with a constant */
		return one(rn(w));
	return two(rn(w), rm(w));
}

/* To vector registers: scvtf, ucvtf, fmov, dup, ins */
static uint32_t vectors(uint32_t w)
{
	unsigned operation = bits(w, 18, 16);
	bool whole = (w & 0x7f20fc00) == 0x1e200000 &&
		     (operation == 2 || operation == 3 || operation == 7);
	bool fixed = (w & 0x7f3e0000) == 0x1e020000;
	bool copies = (w & 0xbfe0fc00) == 0x0e000c00 || (w & 0xffe0fc00) == 0x4e001c00;
	return whole || fixed || copies ? one(rn(w)) : 0;
}

/* ---- branches, system ---- */

static uint32_t hint(uint32_t w)
{
	switch (bits(w, 11, 5)) {
	case 7:
	case 24 ... 31: /* paciasp and the like */
		return two(LR, SP);
	case 8:
	case 10:
	case 12:
	case 14: /* pacia1716 and the like */
		return two(16, 17);
	case 40: /* chkfeat */
		return one(16);
	default:
		return 0;
	}
}

static uint32_t branch(uint32_t w)
{
	switch (bits(w, 31, 29)) {
	case 1:
	case 5: /* cbz, tbz */
		return one(rd(w));
	case 6:
		break;
	default:
		return 0;
	}
	if (bit(w, 25)) /* br, blr, ret, and with a key */
		return one(rn(w)) | (bit(w, 24) ? BIT(rd(w)) : 0) | (bit(w, 11) ? BIT(LR) : 0);
	if (!bit(w, 24)) /* svc */
		return RANGE(0, 8);
	if ((w & 0xfffff01f) == 0xd503201f)
		return hint(w);
	bool read = bit(w, 21);
	return read ? 0 : two(rd(w), (uint8_t)(bit(w, 22) ? rd(w) | 1 : rd(w)));
}

static uint32_t reads_of(uint32_t w)
{
	switch (bits(w, 28, 25)) {
	case 4:
	case 6:
	case 12:
	case 14:
		return memory(w);
	case 5:
	case 13:
		return registers(w);
	case 7:
	case 15:
		return vectors(w);
	case 8:
	case 9:
		return immediate(w);
	case 10:
	case 11:
		return branch(w);
	default:
		return EVERY; /* scalable vectors, matrices */
	}
}

/* ---- flags ---- */

static bool reads_flags(uint32_t w)
{
	return (w & 0xff000000) == 0x54000000 || /* b.cond */
	       (w & 0x1fe00000) == 0x1a800000 || /* csel */
	       (w & 0x1fe00000) == 0x1a400000 || /* ccmp */
	       (w & 0x1fe00000) == 0x1a000000 || /* adc, sbc, rmif, setf */
	       (w & 0xff200c00) == 0x1e200c00 || /* fcsel */
	       (w & 0xff200c00) == 0x1e200400 || /* fccmp */
	       (w & 0xffffffe0) == 0xd53b4200 || /* mrs nzcv */
	       (w & 0xffffff1f) == 0xd500401f || /* cfinv, xaflag, axflag */
	       bits(w, 28, 25) < 4;
}

static bool kills_flags(uint32_t w)
{
	return (w & 0x3f800000) == 0x31000000 || /* adds, subs */
	       (w & 0x3f000000) == 0x2b000000 || /* the same of registers */
	       (w & 0x7f800000) == 0x72000000 || /* ands */
	       (w & 0x7f000000) == 0x6a000000 || /* ands, bics */
	       (w & 0x3fe00000) == 0x3a400000 || /* ccmp */
	       (w & 0x3fe0fc00) == 0x3a000000 || /* adcs, sbcs */
	       (w & 0xff20fc07) == 0x1e202000 || /* fcmp */
	       (w & 0xff200c00) == 0x1e200400 || /* fccmp */
	       (w & 0xffffffe0) == 0xd51b4200;   /* msr nzcv */
}

/* ---- all of it ---- */

static uint32_t writes_of(const struct insn *insn)
{
	uint32_t set = insn->writes;
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op != EFFECT_STORE && insn->effects[i].op != EFFECT_COMPARE)
			set |= BIT(insn->effects[i].dst);
	return set;
}

/* mov, adr, adrp, add and sub with a constant, and ldr and ldp from the stack, by which registers are given back. What FP is set to is read by who walks over the stack. */
static bool only_writes(uint32_t w)
{
	bool moves = (w & 0x7fe0ffe0) == 0x2a0003e0 || (w & 0x5f800000) == 0x52800000 ||
		     (w & 0x7f800000) == 0x12800000;
	bool adds = (w & 0x1f000000) == 0x10000000 || (w & 0x3f800000) == 0x11000000;
	bool movk = (w & 0x7f800000) == 0x72800000;
	bool takes = (w & 0xffc003e0) == 0xf94003e0 || (w & 0xffc003e0) == 0xa94003e0;
	return (moves || adds || takes) && !movk && rd(w) != FP && rd(w) != SP;
}

static void aarch64_read(const uint8_t *code, size_t size, struct use *out)
{
	struct insn insn;
	*out = (struct use){0};
	isa_aarch64.decode(code, size, 0, &insn);
	out->odd = insn.kind == INSN_BAD;
	if (out->odd)
		return;
	uint32_t w = code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
		     (uint32_t)code[3] << 24;
	bool unknown = bits(w, 28, 25) < 4;
	out->reads = reads_of(w);
	out->writes = writes_of(&insn);
	out->kills = unknown ? 0 : out->writes;
	out->reads_flags = reads_flags(w) ? FLAGS : 0;
	out->kills_flags = kills_flags(w) ? FLAGS : 0;
	out->only_writes = only_writes(w);
	out->clears = (w & 0xffffffe0) == 0xd2800000; /* mov x, #0 */
	out->odd = (w & 0xffffffe0) == 0xd51bd040; /* msr tpidr_el0: that leads to where we count */
}

/* x18 is the platform's, x29 leads from frame to frame, x30 is where a function returns to: they are never free. */
const struct use_cpu use_aarch64 = {
	.all = RANGE(0, 17) | RANGE(19, 28),
	.arguments = RANGE(0, 8) | BIT(18) | BIT(SP),
	.results = RANGE(0, 8),
	.thrown = RANGE(0, 3),
	.kept = RANGE(19, 29) | BIT(SP),
	.passing = BIT(16) | BIT(17),
	.to_count = 2,
	.to_count_slowly = 2,
	.to_keep = 3,
	.uses_sum = true,
	.read = aarch64_read,
};
