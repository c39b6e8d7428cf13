/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions of aarch64 read, write and leave nothing of. */
#include "unit.h"

#include "copies/use.h"

#include <elf.h>
#include <stdlib.h>

#define X(n) (1u << (n))
#define SP X(31)
#define EVERY UINT32_MAX

enum { READS_FLAGS = 1, KILLS_FLAGS = 2, ONLY_WRITES = 4, ODD = 8, KEEPS = 16 };

/* clang-format off */
static const struct {
	uint32_t word;
	const char *text;
	uint32_t reads, writes;
	unsigned more;
} golden[] = {
	{0xaa0103e0, "mov x0, x1", X(1) | SP, X(0), ONLY_WRITES},
	{0x910003fd, "mov x29, sp", SP, X(29), 0},
	{0x9100003f, "mov sp, x1", X(1), SP, 0},
	{0xd2800001, "mov x1, #0", 0, X(1), ONLY_WRITES},
	{0x12800003, "mov w3, #-1", 0, X(3), ONLY_WRITES},
	{0x72a00026, "movk w6, #1, lsl #16", X(6), X(6), 0},
	{0x10000085, "adr x5, +16", 0, X(5), ONLY_WRITES},
	{0x90000085, "adrp x5, +16 pages", 0, X(5), ONLY_WRITES},
	{0x91004020, "add x0, x1, #16", X(1), X(0), ONLY_WRITES},
	{0xb1004020, "adds x0, x1, #16", X(1), X(0), KILLS_FLAGS},
	{0x8b020c20, "add x0, x1, x2, lsl #3", X(1) | X(2), X(0), 0},
	{0x8b22cc20, "add x0, x1, w2, sxtw #3", X(1) | X(2), X(0), 0},
	{0xeb02003f, "cmp x1, x2", X(1) | X(2), 0, KILLS_FLAGS},
	{0xfa421824, "ccmp x1, #2, #4, ne", X(1), 0, READS_FLAGS | KILLS_FLAGS},
	{0x9a820020, "csel x0, x1, x2, eq", X(1) | X(2), X(0), READS_FLAGS},
	{0x9a020020, "adc x0, x1, x2", X(1) | X(2), X(0), READS_FLAGS},
	{0x9b020c20, "madd x0, x1, x2, x3", X(1) | X(2) | X(3), X(0), 0},
	{0xdac01020, "clz x0, x1", X(1), X(0), 0},
	{0xb3404020, "bfxil x0, x1, #0, #17", X(0) | X(1), X(0), 0},
	{0xd3404020, "ubfx x0, x1, #0, #17", X(1), X(0), 0},
	{0x93c20420, "extr x0, x1, x2, #1", X(1) | X(2), X(0), 0},
	{0xf9400420, "ldr x0, [x1, #8]", X(1), X(0), 0},
	{0xf8408420, "ldr x0, [x1], #8", X(1), X(0) | X(1), 0},
	{0xf8627820, "ldr x0, [x1, x2, lsl #3]", X(1) | X(2), X(0), 0},
	{0x39000420, "strb w0, [x1, #1]", X(0) | X(1), 0, 0},
	{0xf8226820, "str x0, [x1, x2]", X(0) | X(1) | X(2), 0, 0},
	{0xfc627820, "ldr d0, [x1, x2, lsl #3]", X(1) | X(2), 0, 0},
	{0x3d800420, "str q0, [x1, #16]", X(1), 0, 0},
	{0xa9be7bfd, "stp x29, x30, [sp, #-32]!", X(29) | X(30) | SP, SP, 0},
	{0xa9410820, "ldp x0, x2, [x1, #16]", X(1), X(0) | X(2), 0},
	{0x6d0127e8, "stp d8, d9, [sp, #16]", SP, 0, 0},
	{0xf9800020, "prfm pldl1keep, [x1]", X(1), 0, 0},
	{0x58000080, "ldr x0, +16", 0, X(0), 0},
	{0xc85f7c20, "ldxr x0, [x1]", X(1), X(0), 0},
	{0xc8027c20, "stxr w2, x0, [x1]", X(0) | X(1), X(2), 0},
	{0xc8220c20, "stxp w2, x0, x3, [x1]", X(0) | X(1) | X(3), X(2), 0},
	{0xc89ffc20, "stlr x0, [x1]", X(0) | X(1), 0, 0},
	{0xf8220020, "ldadd x2, x0, [x1]", X(1) | X(2), X(0), 0},
	{0xf8228020, "swp x2, x0, [x1]", X(1) | X(2), X(0), 0},
	{0x0c9f7820, "st1 {v0.2s}, [x1], #8", X(1) | SP, X(1), 0},
	{0x0c827820, "st1 {v0.2s}, [x1], x2", X(1) | X(2), X(1), 0},
	{0x9e670020, "fmov d0, x1", X(1), 0, 0},
	{0x9e660020, "fmov x0, d1", 0, X(0), 0},
	{0x9e620020, "scvtf d0, x1", X(1), 0, 0},
	{0x9e780020, "fcvtzs x0, d1", 0, X(0), 0},
	{0x1e622820, "fadd d0, d1, d2", 0, 0, 0},
	{0x1e622020, "fcmp d1, d2", 0, 0, KILLS_FLAGS},
	{0x4e080c20, "dup v0.2d, x1", X(1), 0, 0},
	{0x4e181c20, "mov v0.d[1], x1", X(1), 0, 0},
	{0x4e083c20, "mov x0, v1.d[0]", 0, X(0), 0},
	{0x54000080, "b.eq +16", 0, 0, READS_FLAGS},
	{0xb4000081, "cbz x1, +16", X(1), 0, 0},
	{0x36180081, "tbz w1, #3, +16", X(1), 0, 0},
	{0x94000004, "bl +16", 0, X(30), 0},
	{0xd63f0020, "blr x1", X(1), X(30), 0},
	{0xd61f0200, "br x16", X(16), 0, 0},
	{0xd65f03c0, "ret", X(30), 0, 0},
	{0xd65f0bff, "retaa", X(30) | SP, 0, 0},
	{0xd503233f, "paciasp", X(30) | SP, X(30), 0},
	{0xd503245f, "bti c", 0, 0, 0},
	{0xd503201f, "nop", 0, 0, 0},
	{0xd4000001, "svc #0", 0x1ff, X(0), 0},
	{0xd53bd041, "mrs x1, tpidr_el0", 0, X(1), 0},
	{0xd51bd041, "msr tpidr_el0, x1", X(1), 0, ODD},
	{0xd51b4201, "msr nzcv, x1", X(1), 0, KILLS_FLAGS},
	{0x0420e3e0, "cntb x0", EVERY, X(0), KEEPS | READS_FLAGS},
};
/* clang-format on */

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
		struct use use;
		uint32_t word = golden[i].word;
		use_aarch64.read((const uint8_t *)&word, sizeof word, &use);
		unsigned more = (use.reads_flags ? READS_FLAGS : 0) |
				(use.kills_flags ? KILLS_FLAGS : 0) |
				(use.only_writes ? ONLY_WRITES : 0) | (use.odd ? ODD : 0) |
				(use.kills != use.writes ? KEEPS : 0);
		if (use.reads != golden[i].reads || use.writes != golden[i].writes ||
		    more != golden[i].more)
			fail_msg("%s: reads %x, writes %x, kills %x, more %x", golden[i].text,
				 use.reads, use.writes, use.kills, more);
	}
}

static void test_bad(void **state)
{
	const uint8_t bytes[4] = {0, 0, 0, 2};
	struct use use;
	(void)state;
	use_aarch64.read(bytes, sizeof bytes, &use);
	assert_true(use.odd);
	use_aarch64.read(bytes, 3, &use);
	assert_true(use.odd);
}

/* Whatever the bytes are, a register that is gone was written, and the platform's registers are never free. */
static void test_random(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < 200000; i++) {
		struct use use;
		uint32_t word = (uint32_t)random() << 16 ^ (uint32_t)random();
		use_aarch64.read((const uint8_t *)&word, sizeof word, &use);
		assert_int_equal(use.kills & ~use.writes, 0);
	}
	assert_int_equal(use_aarch64.all & (X(18) | X(29) | X(30) | SP), 0);
	assert_ptr_equal(use_cpu_for(EM_AARCH64), &use_aarch64);
	assert_ptr_equal(use_cpu_for(EM_X86_64), &use_x86_64);
	assert_null(use_cpu_for(EM_386));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests_name("use_aarch64", tests, NULL, NULL);
}
