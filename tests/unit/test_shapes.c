/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is known by its shape gets its recipe, and code that only resembles it does not. */
#include "shape_rows.h"
#include "isa/insn.h"

static void signal_trampoline_x86_64(void **state)
{
	/* nop x4; mov $15,%rax; syscall; nop */
	static const uint8_t code[] = {0x90, 0x90, 0x90, 0x90, 0x48, 0xc7, 0xc0,
				       15,   0,    0,    0,    0x0f, 0x05, 0x90};
	struct rows rows = shapes_of(EM_X86_64, code, sizeof code);

	(void)state;
	assert_int_equal(at(&rows, 2)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 3)->cfa, RECIPE_SIGNAL); /* a handler returns to offset 4 */
	assert_int_equal(at(&rows, 3)->cfa_add, RECIPE_RETURNED);
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_SIGNAL);
	assert_int_equal(at(&rows, 4)->cfa_add, 0);
	assert_int_equal(at(&rows, 11)->cfa, RECIPE_SIGNAL);
	assert_int_equal(at(&rows, 13)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void signal_trampoline_aarch64(void **state)
{
	/* nop; nop; mov x8,#139; svc #0; nop */
	static const uint32_t code[] = {0xd503201f, 0xd503201f, 0xd2801168, 0xd4000001, 0xd503201f};
	/* The same two words, one byte off: not an instruction of this CPU. */
	static const uint8_t shifted[] = {0x1f, 0x20, 0x03, 0xd5, 0,    0x68, 0x11, 0x80,
					  0xd2, 0x01, 0,    0,    0xd4, 0,    0,    0};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);

	(void)state;
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_SIGNAL);
	assert_int_equal(at(&rows, 12)->cfa, RECIPE_SIGNAL);
	assert_int_equal(at(&rows, 16)->cfa, RECIPE_NONE);
	rows_free(&rows);
	rows = shapes_of(EM_AARCH64, shifted, sizeof shifted);
	assert_int_equal(at(&rows, 8)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void entry_has_no_caller(void **state)
{
	static const uint8_t x86[] = {0x31, 0xed, 0x90, 0x90};              /* xor %ebp,%ebp */
	static const uint32_t arm[] = {0xd503245f, 0xd280001d, 0xd503201f}; /* bti c; mov x29,#0 */
	struct rows rows = shapes_of(EM_X86_64, x86, sizeof x86);
	(void)state;
	assert_int_equal(at(&rows, 0)->cfa, RECIPE_ROOT);
	rows_free(&rows);
	rows = shapes_of(EM_AARCH64, arm, sizeof arm);
	assert_int_equal(at(&rows, 0)->cfa, RECIPE_ROOT);
	assert_int_equal(at(&rows, 8)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void dynamic_linker_entry_is_root(void **state)
{
	/* mov x0,sp; bl +16; mov x21,x0; br x21 */
	static const uint32_t arm[] = {0x910003e0, 0x94000004, 0xaa0003f5, 0xd61f02a0, 0xd503201f};
	struct rows rows = shapes_of(EM_AARCH64, arm, sizeof arm);

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset += 4)
		assert_int_equal(at(&rows, offset)->cfa, RECIPE_ROOT);
	assert_int_equal(at(&rows, 16)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

/* The PLT pushed 16 bytes before it jumped here, of which no unwind information tells. */
static void lazy_binding_aarch64(void **state)
{
	static const uint32_t code[] = {
		0xd503201f, 0xd503201f, /* nop; nop */
		0xa9b327e8, 0xa9011fe6, /* stp x8,x9,[sp,#-208]!; stp x6,x7,[sp,#16] */
		0x94000000,             /* bl */
		0xa8cd27e8, 0xa8c17bf1, /* ldp x8,x9,[sp],#208; ldp x17,x30,[sp],#16 */
		0xd61f0200,             /* br x16 */
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 8)->cfa_offset, 16);
	assert_int_equal(at(&rows, 8)->ra_offset, -8);
	assert_int_equal(at(&rows, 12)->cfa_offset, 224);
	assert_int_equal(at(&rows, 20)->cfa_offset, 224);
	assert_int_equal(at(&rows, 24)->cfa_offset, 16);
	assert_int_equal(at(&rows, 28)->cfa_offset, 0);
	assert_int_equal(at(&rows, 28)->ra, RECIPE_SAME);
	rows_free(&rows);
}

static void lazy_binding_x86_64(void **state)
{
	static const uint8_t code[] = {
		0x90, 0x90, /* nop; nop */
		0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4,
		0xc0,                      /* push %rbx; mov %rsp,%rbx; and $-64,%rsp */
		0xe8, 0,    0,    0,    0, /* call */
		0x48, 0x89, 0xdc, 0x48, 0x8b, 0x1c, 0x24, /* mov %rbx,%rsp; mov (%rsp),%rbx */
		0x48, 0x83, 0xc4, 0x18,                   /* add $24,%rsp */
		0x41, 0xff, 0xe3,                         /* jmp *%r11 */
	};
	struct rows rows = shapes_of(EM_X86_64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 2)->cfa_offset, 24);
	assert_int_equal(at(&rows, 3)->cfa_offset, 32);
	assert_int_equal(at(&rows, 6)->cfa_reg, isa_x86_64.extra);
	assert_int_equal(at(&rows, 10)->cfa_reg, isa_x86_64.extra);
	assert_int_equal(at(&rows, 10)->extra_offset, -32);
	assert_int_equal(at(&rows, 22)->cfa_offset, 32);
	assert_int_equal(at(&rows, 26)->cfa_offset, 8);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_trampoline_x86_64),
		cmocka_unit_test(signal_trampoline_aarch64),
		cmocka_unit_test(entry_has_no_caller),
		cmocka_unit_test(dynamic_linker_entry_is_root),
		cmocka_unit_test(lazy_binding_aarch64),
		cmocka_unit_test(lazy_binding_x86_64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
