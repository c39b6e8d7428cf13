/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "insn_text.h"
#include "isa/insn.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>

static const uint64_t address = 0x400000;

/* clang-format off */
static const struct {
	uint32_t word;
	const char *text;
	const char *expected;
} golden[] = {
	{0xa9be7bfd, "stp x29, x30, [sp, #-32]!", "other; [sp-32] = x29; [sp-24] = x30; sp = sp-32"},
	{0xa8c27bfd, "ldp x29, x30, [sp], #32", "other; x29 = [sp+0]; x30 = [sp+8]; sp = sp+32"},
	{0xa90153f3, "stp x19, x20, [sp, #16]", "other; [sp+16] = x19; [sp+24] = x20"},
	{0xa94153f3, "ldp x19, x20, [sp, #16]", "other; x19 = [sp+16]; x20 = [sp+24]"},
	{0xa9c17bfd, "ldp x29, x30, [sp, #16]!", "other; sp = sp+16; x29 = [sp+0]; x30 = [sp+8]"},
	{0xa9400400, "ldp x0, x1, [x0]", "other; x1 = [x0+8]; x0 = [x0+0]"},
	{0xa97f0001, "ldp x1, x0, [x0, #-16]", "other; x1 = [x0-16]; x0 = [x0-8]"},
	{0xa9407c20, "ldp x0, xzr, [x1]", "other; x0 = [x1+0]"},
	{0xa90007ff, "stp xzr, x1, [sp]", "other; [sp+0] = ?; [sp+8] = x1"},
	{0xa8810440, "stp x0, x1, [x2], #16", "other; [x2+0] = x0; [x2+8] = x1; x2 = x2+16"},
	{0xa8010440, "stnp x0, x1, [x2, #16]", "other; [x2+16] = x0; [x2+24] = x1"},
	{0x29400440, "ldp w0, w1, [x2]", "other writes x0 x1"},
	{0x68c10440, "ldpsw x0, x1, [x2], #8", "other writes x0 x1; x2 = x2+8"},
	{0x29be07e0, "stp w0, w1, [sp, #-16]!", "other; sp = sp-16"},
	{0x6dbf27e8, "stp d8, d9, [sp, #-16]!", "other; sp = sp-16"},
	{0xacc20420, "ldp q0, q1, [x1], #64", "other; x1 = x1+64"},
	{0x6d0127e8, "stp d8, d9, [sp, #16]", "other"},
	{0xf81f0ffe, "str x30, [sp, #-16]!", "other; [sp-16] = x30; sp = sp-16"},
	{0xf84107fe, "ldr x30, [sp], #16", "other; x30 = [sp+0]; sp = sp+16"},
	{0xf8408c20, "ldr x0, [x1, #8]!", "other; x1 = x1+8; x0 = [x1+0]"},
	{0xf90007fe, "str x30, [sp, #8]", "other; [sp+8] = x30"},
	{0xf90007ff, "str xzr, [sp, #8]", "other; [sp+8] = ?"},
	{0xf97ffffe, "ldr x30, [sp, #32760]", "other; x30 = [sp+32760]"},
	{0xf940001f, "ldr xzr, [x0]", "other"},
	{0xf81f83b3, "stur x19, [x29, #-8]", "other; [x29-8] = x19"},
	{0xf85f83b3, "ldur x19, [x29, #-8]", "other; x19 = [x29-8]"},
	{0xb85f83b3, "ldur w19, [x29, #-8]", "other writes x19"},
	{0xb9000fe0, "str w0, [sp, #12]", "other"},
	{0x38001420, "strb w0, [x1], #1", "other; x1 = x1+1"},
	{0x38401420, "ldrb w0, [x1], #1", "other writes x0; x1 = x1+1"},
	{0xb9800020, "ldrsw x0, [x1]", "other writes x0"},
	{0x78c02c20, "ldrsh w0, [x1, #2]!", "other writes x0; x1 = x1+2"},
	{0xfc408420, "ldr d0, [x1], #8", "other; x1 = x1+8"},
	{0x3c9f0fe0, "str q0, [sp, #-16]!", "other; sp = sp-16"},
	{0x3dc00000, "ldr q0, [x0]", "other"},
	{0xf8627820, "ldr x0, [x1, x2, lsl #3]", "other writes x0"},
	{0xb8a25823, "ldrsw x3, [x1, w2, uxtw #2]", "other writes x3"},
	{0xf8226820, "str x0, [x1, x2]", "other"},
	{0xf9800000, "prfm pldl1keep, [x0]", "other"},
	{0x58000800, "ldr x0, 0x400100", "other refers 400100 writes x0"},
	{0x18fff800, "ldr w0, 0x3fff00", "other refers 3fff00 writes x0"},
	{0x5c000800, "ldr d0, 0x400100", "other refers 400100"},
	{0xf87fe420, "ldraa x0, [x1, #-16]", "other; x0 = [x1-16]"},
	{0xf8a02c20, "ldrab x0, [x1, #16]!", "other; x1 = x1+16; x0 = [x1+0]"},
	{0xc8dffc20, "ldar x0, [x1]", "other; x0 = [x1+0]"},
	{0xc89ffc20, "stlr x0, [x1]", "other; [x1+0] = x0"},
	{0xf8bfc020, "ldapr x0, [x1]", "other writes x0"},
	{0xd9408020, "ldapur x0, [x1, #8]", "other; x0 = [x1+8]"},
	{0xc8037c20, "stxr w3, x0, [x1]", "other writes x3"},
	{0xc85ffc20, "ldaxr x0, [x1]", "other writes x0"},
	{0xc87f0820, "ldxp x0, x2, [x1]", "other writes x0 x2"},
	{0xc8258820, "stlxp w5, x0, x2, [x1]", "other writes x5"},
	{0xc8a07c41, "cas x0, x1, [x2]", "other writes x0"},
	{0x4860fc82, "caspal x0, x1, x2, x3, [x4]", "other writes x0 x1"},
	{0xf8e00041, "ldaddal x0, x1, [x2]", "other writes x1"},
	{0xf820005f, "stadd x0, [x2]", "other"},
	{0xb8a08041, "swpa w0, w1, [x2]", "other writes x1"},
	{0xf83fd140, "ld64b x0, [x10]", "other writes x0 x1 x2 x3 x4 x5 x6 x7"},
	{0x4cdfa000, "ld1 {v0.16b, v1.16b}, [x0], #32", "other; x0 = x0+32"},
	{0x0d9f9000, "st1 {v0.s}[1], [x0], #4", "other; x0 = x0+4"},
	{0x4ddfe420, "ld3r {v0.8h, v1.8h, v2.8h}, [x1], #6", "other; x1 = x1+6"},
	{0x4cc27000, "ld1 {v0.16b}, [x0], x2", "other; x0 = x0 + x2"},
	{0x4c407000, "ld1 {v0.16b}, [x0]", "other"},
	{0xd93fffff, "stg sp, [sp, #-16]!", "other; sp = sp-16"},
	{0xd9600020, "ldg x0, [x1]", "other writes x0"},
	{0xd100c3ff, "sub sp, sp, #0x30", "other; sp = sp-48"},
	{0xd1400bff, "sub sp, sp, #2, lsl #12", "other; sp = sp-8192"},
	{0x9100c3ff, "add sp, sp, #0x30", "other; sp = sp+48"},
	{0x910003fd, "mov x29, sp", "other; x29 = sp+0"},
	{0x910003bf, "mov sp, x29", "other; sp = x29+0"},
	{0x910043fd, "add x29, sp, #16", "other; x29 = sp+16"},
	{0xf1000421, "subs x1, x1, #1", "other; x1 = x1-1"},
	{0xf100043f, "cmp x1, #1", "other"},
	{0x11000420, "add w0, w1, #1", "other writes x0"},
	{0x1100043f, "add wsp, w1, #1", "other writes sp"},
	{0x8b020020, "add x0, x1, x2", "other; x0 = x1 + x2"},
	{0xcb020020, "sub x0, x1, x2", "other; x0 = x1 - x2"},
	{0xcb2c63ff, "sub sp, sp, x12", "other; sp = sp - x12"},
	{0x8b2c63ff, "add sp, sp, x12, uxtx", "other; sp = sp + x12"},
	{0x8b020c20, "add x0, x1, x2, lsl #3", "other writes x0"},
	{0x8b22c020, "add x0, x1, w2, sxtw", "other writes x0"},
	{0x8b1f0020, "add x0, x1, xzr", "other; x0 = x1+0"},
	{0xcb0103e0, "neg x0, x1", "other writes x0"},
	{0xeb01001f, "cmp x0, x1", "other"},
	{0xab2163ff, "cmn sp, x1", "other"},
	{0xaa0103e0, "mov x0, x1", "other; x0 = x1+0"},
	{0x2a0103e0, "mov w0, w1", "other writes x0"},
	{0xaa1f03e0, "mov x0, xzr", "other; x0 = 0"},
	{0xaa020020, "orr x0, x1, x2", "other writes x0"},
	{0xea01001f, "tst x0, x1", "other"},
	{0xd2a24689, "movz x9, #0x1234, lsl #16", "other; x9 = 12340000"},
	{0x92800009, "movn x9, #0", "other; x9 = ffffffffffffffff"},
	{0x12800009, "movn w9, #0", "other; x9 = ffffffff"},
	{0xf28acf09, "movk x9, #0x5678", "other; x9<0> = 5678"},
	{0xf2eacf09, "movk x9, #0x5678, lsl #48", "other; x9<48> = 5678"},
	{0x728acf09, "movk w9, #0x5678", "other writes x9"},
	{0xb204cfe0, "mov x0, #0xf0f0f0f0f0f0f0f0", "other; x0 = f0f0f0f0f0f0f0f0"},
	{0x321d6fe0, "mov w0, #0x7ffffff8", "other; x0 = 7ffffff8"},
	{0x30ffffe0, "adr x0, 0x3ffffd", "other refers 3ffffd; x0 = 3ffffd"},
	{0x90006000, "adrp x0, 0x1000000", "other refers 1000000; x0 = 1000000"},
	{0x927ced3f, "and sp, x9, #0xfffffffffffffff0", "other; sp = x9 & fffffffffffffff0"},
	{0x92089c20, "and x0, x1, #0xff00ff00ff00ff00", "other; x0 = x1 & ff00ff00ff00ff00"},
	{0x12000c20, "and w0, w1, #0xf", "other writes x0"},
	{0xf2400c20, "ands x0, x1, #0xf", "other writes x0"},
	{0xf2400c1f, "tst x0, #0xf", "other"},
	{0xd3431820, "ubfx x0, x1, #3, #4", "other writes x0"},
	{0x93c20c20, "extr x0, x1, x2, #3", "other writes x0"},
	{0x9b020c20, "madd x0, x1, x2, x3", "other writes x0"},
	{0x9bc27c20, "umulh x0, x1, x2", "other writes x0"},
	{0x1ac20820, "udiv w0, w1, w2", "other writes x0"},
	{0x9a820020, "csel x0, x1, x2, eq", "other writes x0"},
	{0xfa410000, "ccmp x0, x1, #0, eq", "other"},
	{0x9a020020, "adc x0, x1, x2", "other writes x0"},
	{0xdac00c20, "rev x0, x1", "other writes x0"},
	{0x9ac24c20, "crc32x w0, w1, x2", "other writes x0"},
	{0x14000040, "b 0x400100", "jump ->400100"},
	{0x17ffffc0, "b 0x3fff00", "jump ->3fff00"},
	{0x94000040, "bl 0x400100", "call ->400100 writes x30"},
	{0x54000801, "b.ne 0x400100", "branch ->400100"},
	{0xb4000803, "cbz x3, 0x400100", "branch ->400100 reg x3"},
	{0x35fff803, "cbnz w3, 0x3fff00", "branch ->3fff00 reg x3"},
	{0x36180803, "tbz w3, #3, 0x400100", "branch ->400100 reg x3"},
	{0xb747f803, "tbnz x3, #40, 0x3fff00", "branch ->3fff00 reg x3"},
	{0xd61f0200, "br x16", "jump* reg x16"},
	{0xd63f0100, "blr x8", "call* reg x8 writes x30"},
	{0xd65f03c0, "ret", "return reg x30"},
	{0xd65f0020, "ret x1", "return reg x1"},
	{0xd71f0801, "braa x0, x1", "jump* reg x0"},
	{0xd61f0c1f, "brabz x0", "jump* reg x0"},
	{0xd73f091f, "blraa x8, sp", "call* reg x8 writes x30"},
	{0xd63f0d1f, "blrabz x8", "call* reg x8 writes x30"},
	{0xd65f0bff, "retaa", "return reg x30"},
	{0xd65f0fff, "retab", "return reg x30"},
	{0xd69f03e0, "eret", "return"},
	{0xd4000001, "svc #0", "syscall writes x0"},
	{0xd4200020, "brk #1", "trap"},
	{0xd4400000, "hlt #0", "trap"},
	{0x00000000, "udf #0", "trap"},
	{0xd503201f, "nop", "nop"},
	{0xd503245f, "bti c", "other"},
	{0xd503203f, "yield", "other"},
	{0xd503233f, "paciasp", "other; sign x30"},
	{0xd503237f, "pacibsp", "other; sign x30"},
	{0xd50323bf, "autiasp", "other; sign x30"},
	{0xd50323df, "autibz", "other; sign x30"},
	{0xd50320ff, "xpaclri", "other; sign x30"},
	{0xd503211f, "pacia1716", "other writes x17"},
	{0xdac103fe, "pacia x30, sp", "other; sign x30"},
	{0xdac123e3, "paciza x3", "other writes x3"},
	{0xdac143e3, "xpaci x3", "other writes x3"},
	{0x9ac23020, "pacga x0, x1, x2", "other writes x0"},
	{0xd53bd040, "mrs x0, tpidr_el0", "other writes x0"},
	{0xd51bd040, "msr tpidr_el0, x0", "other"},
	{0xd5033bbf, "dmb ish", "other"},
	{0xd50b7420, "dc zva, x0", "other"},
	{0xd5033fdf, "isb", "other"},
	{0x9e660020, "fmov x0, d1", "other writes x0"},
	{0x9e670001, "fmov d1, x0", "other"},
	{0x1e260020, "fmov w0, s1", "other writes x0"},
	{0x9eae0020, "fmov x0, v1.d[1]", "other writes x0"},
	{0x9e780020, "fcvtzs x0, d1", "other writes x0"},
	{0x1e250020, "fcvtau w0, s1", "other writes x0"},
	{0x9e59f420, "fcvtzu x0, d1, #3", "other writes x0"},
	{0x9e620020, "scvtf d0, x1", "other"},
	{0x1e7e0020, "fjcvtzs w0, d1", "other writes x0"},
	{0x0e073c20, "umov w0, v1.b[3]", "other writes x0"},
	{0x4e183c20, "umov x0, v1.d[1]", "other writes x0"},
	{0x4e062c20, "smov x0, v1.h[1]", "other writes x0"},
	{0x4e081c01, "ins v1.d[0], x0", "other"},
	{0x4e080c20, "dup v0.2d, x1", "other"},
	{0x1e622820, "fadd d0, d1, d2", "other"},
	{0x4e31b820, "addv b0, v1.16b", "other"},
	{0x04bf5020, "rdvl x0, #1", "other writes x0"},
	{0x043f57df, "addvl sp, sp, #-2", "other writes sp"},
	{0x04615020, "addpl x0, x1, #1", "other writes x0"},
	{0x04e0e3e0, "cntd x0", "other writes x0"},
	{0x0421e3e3, "cntb x3, all, mul #2", "other writes x3"},
	{0x04b0e3e0, "incw x0", "other writes x0"},
	{0x0430e7e0, "decb x0", "other writes x0"},
	{0x04f0c3e0, "incd z0.d", "other"},
	{0x0430f3e0, "sqincb x0", "other writes x0"},
	{0x0460ffe0, "uqdech w0", "other writes x0"},
	{0x05e0a000, "lasta x0, p0, z0.d", "other writes x0"},
	{0x05b1a003, "clastb w3, p0, w3, z0.s", "other writes x3"},
	{0x05e38000, "lastb d0, p0, z0.d", "other"},
	{0x25208020, "cntp x0, p0, p1.b", "other writes x0"},
	{0x252c8820, "incp x0, p1.b", "other writes x0"},
	{0x2550c020, "ptest p0, p1.b", "other"},
	{0x25211400, "whilelt p0.b, x0, x1", "other"},
	{0xa5e0a000, "ld1d {z0.d}, p0/z, [x0]", "other"},
	{0xe58047e8, "str z8, [sp, #1, mul vl]", "other"},
	{0x25e12000, "ctermeq x0, x1", "other"},
	/* encodings that are none */
	{0x00010000, "", "bad"},
	{0x02000000, "", "bad"},
	{0x06000000, "", "bad"},
	{0x12400000, "and w0, w0, with a 64-bit mask", "bad"},
	{0x9240fc00, "and x0, x0, of all ones", "bad"},
	{0x32800000, "move wide, operation 1", "bad"},
	{0x52c00000, "movz w0, lsl 32", "bad"},
	{0x0b00fc00, "add w0, w0, w0, lsl 63", "bad"},
	{0x8bc00000, "add with ror", "bad"},
	{0x55000000, "", "bad"},
	{0xd61f0001, "br x0 with a stray bit", "bad"},
	{0xd6600000, "", "bad"},
	{0xf8600000, "ldaddl", "other writes x0"},
	{0xe8000000, "", "bad"},
	{0xf8201800, "str with an index that is none", "bad"},
	{0x08217c20, "casp of an odd pair", "bad"},
};
/* clang-format on */

static void put_word(uint8_t code[4], uint32_t word)
{
	for (unsigned i = 0; i < 4; i++)
		code[i] = (uint8_t)(word >> 8 * i);
}

static struct insn decode(uint32_t word)
{
	struct insn insn;
	uint8_t code[4];
	put_word(code, word);
	memset(&insn, 0xa5, sizeof insn);
	isa_aarch64.decode(code, sizeof code, address, &insn);
	return insn;
}

static void decodes_as_the_manual_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
		struct insn insn = decode(golden[i].word);
		struct insn_line line = insn_line(&isa_aarch64, &insn);
		if (strcmp(line.text, golden[i].expected))
			fail_msg("%08x %s: got '%s', not '%s'", golden[i].word, golden[i].text,
				 line.text, golden[i].expected);
		assert_int_equal(insn.length, 4);
		assert_int_equal(insn.address, address);
	}
}

static void cut_short_is_bad(void **state)
{
	static const uint8_t ret[4] = {0xc0, 0x03, 0x5f, 0xd6};
	struct insn insn;
	(void)state;
	for (size_t size = 0; size < 4; size++) {
		isa_aarch64.decode(ret, size, address, &insn);
		assert_int_equal(insn.kind, INSN_BAD);
		assert_int_equal(insn.length, size);
		assert_int_equal(insn.effect_count, 0);
		assert_false(isa_aarch64.is_prologue(ret, size));
	}
}

static void prologues_are_known(void **state)
{
	static const uint32_t yes[] = {
		0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		0xa9be53f3, /* stp x19, x20, [sp, #-32]! */
		0x6dbf27e8, /* stp d8, d9, [sp, #-16]! */
		0xf81f0ffe, /* str x30, [sp, #-16]! */
		0xd100c3ff, /* sub sp, sp, #48 */
		0xd14007ff, /* sub sp, sp, #1, lsl #12 */
		0xd503233f, /* paciasp */
		0xd503245f, /* bti c */
	};
	static const uint32_t no[] = {
		0xa90153f3, /* stp x19, x20, [sp, #16] */
		0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
		0x910003fd, /* mov x29, sp */
		0xd503249f, /* bti j: a jump's landing, no procedure */
		0xd503201f, /* nop */
		0xd65f03c0, /* ret */
		0xa9be07e0, /* stp x0, x1, [sp, #-32]! */
	};
	uint8_t code[4];
	(void)state;
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		put_word(code, yes[i]);
		assert_true(isa_aarch64.is_prologue(code, sizeof code));
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		put_word(code, no[i]);
		assert_false(isa_aarch64.is_prologue(code, sizeof code));
	}
}

static void describes_the_cpu(void **state)
{
	(void)state;
	assert_ptr_equal(isa_for_machine(EM_AARCH64), &isa_aarch64);
	assert_ptr_equal(isa_for_machine(EM_X86_64), &isa_x86_64);
	assert_null(isa_for_machine(EM_386));
	assert_int_equal(isa_aarch64.call_clobbers, 0x4007ffff);
}

/* Any word at all gives something sane. */
static void survives_random_words(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	(void)state;
	for (unsigned i = 0; i < 300000; i++) {
		struct insn insn = decode((uint32_t)next_random(&seed));
		assert_true(insn.kind <= INSN_BAD);
		assert_true(insn.effect_count <= INSN_MAX_EFFECTS);
		for (unsigned e = 0; e < insn.effect_count; e++)
			assert_true(insn.effects[e].dst < 32);
		if (insn.kind == INSN_BAD)
			assert_true(!insn.effect_count && !insn.writes && !insn.target);
	}
}

#ifdef __aarch64__
/*
 * The C library in this very process, as another disassembler reads it. Capstone is wrong about
 * what some instructions write; those are listed, and the golden cases above cover them.
 */
static const char *const capstone_errs[] = {
	"cmp",  "cmn",  "tst",       /* said to write their first operand */
	"adds", "subs",              /* the 32-bit ones said to write nothing */
	"msr",  "sys",  "dc",  "ic", /* said to write their source */
	"hint", "svc",  "hvc", "smc",
	"st1",  "st2",  "st3", "st4", /* said to write the register that the base moves by */
	"ld1",  "ld2",  "ld3", "ld4",
};

static bool capstone_is_wrong(const cs_insn *in)
{
	for (size_t i = 0; i < sizeof capstone_errs / sizeof capstone_errs[0]; i++)
		if (!strcmp(in->mnemonic, capstone_errs[i]))
			return true;
	return false;
}

static int capstone_register(unsigned reg)
{
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		return (int)(reg - ARM64_REG_X0);
	if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		return (int)(reg - ARM64_REG_W0);
	return reg == ARM64_REG_X29                          ? 29
	       : reg == ARM64_REG_X30                        ? 30
	       : reg == ARM64_REG_SP || reg == ARM64_REG_WSP ? 31
							     : -1;
}

static uint32_t capstone_writes(csh handle, const cs_insn *in)
{
	cs_regs read, written;
	uint8_t read_count, written_count;
	uint32_t all = 0;

	assert_int_equal(cs_regs_access(handle, in, read, &read_count, written, &written_count), 0);
	for (unsigned i = 0; i < written_count; i++) {
		int reg = capstone_register(written[i]);
		if (reg >= 0)
			all |= UINT32_C(1) << reg;
	}
	return all;
}

static uint64_t capstone_target(const cs_insn *in)
{
	const cs_arm64 *arm = &in->detail->arm64;
	return arm->op_count ? (uint64_t)arm->operands[arm->op_count - 1].imm : 0;
}

static uint8_t capstone_kind(csh handle, const cs_insn *in)
{
	switch (in->id) {
	case ARM64_INS_BL:
		return INSN_CALL;
	case ARM64_INS_BLR:
		return INSN_CALL_INDIRECT;
	case ARM64_INS_BR:
		return INSN_JUMP_INDIRECT;
	case ARM64_INS_B:
		return in->detail->arm64.cc == ARM64_CC_INVALID ? INSN_JUMP : INSN_BRANCH;
	case ARM64_INS_NOP:
		return INSN_NOP;
	case ARM64_INS_SVC:
	case ARM64_INS_HVC:
	case ARM64_INS_SMC:
		return INSN_SYSCALL;
	case ARM64_INS_ERET:
	case ARM64_INS_DRPS:
		return INSN_RETURN;
	case ARM64_INS_BRK:
	case ARM64_INS_HLT:
	case ARM64_INS_DCPS1:
	case ARM64_INS_DCPS2:
	case ARM64_INS_DCPS3:
		return INSN_TRAP;
	default:
		return cs_insn_group(handle, in, CS_GRP_RET)    ? INSN_RETURN
		       : cs_insn_group(handle, in, CS_GRP_JUMP) ? INSN_BRANCH
								: INSN_OTHER;
	}
}

static void compare(csh handle, const cs_insn *in, const struct insn *insn)
{
	const char *text = in->mnemonic, *operands = in->op_str;
	if (insn->kind != capstone_kind(handle, in))
		fail_msg("%s %s: kind %u", text, operands, insn->kind);
	if (insn->kind == INSN_JUMP || insn->kind == INSN_CALL || insn->kind == INSN_BRANCH)
		assert_int_equal(insn->target, capstone_target(in));
	if (in->id == ARM64_INS_ADR || in->id == ARM64_INS_ADRP)
		assert_int_equal(insn->refers, capstone_target(in));
	if (!capstone_is_wrong(in) && insn_all_writes(insn) != capstone_writes(handle, in))
		fail_msg("%s %s: writes %x, not %x", text, operands, insn_all_writes(insn),
			 capstone_writes(handle, in));
}

struct code {
	const uint8_t *start;
	size_t size;
};

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	struct code *code = data;
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		code->start = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
		code->size = segment->p_memsz & ~(size_t)3;
	}
	return 1;
}

static void agrees_with_capstone_about_libc(void **state)
{
	struct code code = {0};
	size_t compared = 0;
	cs_insn *in;
	csh handle;
	(void)state;
	dl_iterate_phdr(find_libc, &code);
	if (!code.size)
		skip();
	assert_int_equal(cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle), CS_ERR_OK);
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	in = cs_malloc(handle);
	for (size_t at = 0; at < code.size; at += 12) {
		const uint8_t *p = code.start + at;
		size_t left = 4;
		uint64_t pc = address + at;
		struct insn insn;
		isa_aarch64.decode(p, 4, pc, &insn);
		if (!cs_disasm_iter(handle, &p, &left, &pc, in))
			continue; /* tables among the code, or newer than capstone */
		compare(handle, in, &insn);
		compared++;
	}
	assert_true(compared > code.size / 12 / 2);
	cs_free(in, 1);
	cs_close(&handle);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_as_the_manual_says),
		cmocka_unit_test(cut_short_is_bad),
		cmocka_unit_test(prologues_are_known),
		cmocka_unit_test(describes_the_cpu),
		cmocka_unit_test(survives_random_words),
#ifdef __aarch64__
		cmocka_unit_test(agrees_with_capstone_about_libc),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
