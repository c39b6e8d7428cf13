/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that programs make by themselves begin where that is seen, and nothing else does. */
#include "shape_rows.h"
#include "unit.h"

static bool is_root(const struct rows *rows, uint64_t offset)
{
	return at(rows, offset)->cfa == RECIPE_ROOT;
}

static void begins_aarch64(void **state)
{
	uint32_t code[] = {
		0xd503201f, 0xd2801b88, 0xd4000001, /* nop; mov x8,#220; svc #0 */
		0xf100001f, 0x540000a1,             /* cmp x0,#0; b.ne ret */
		0xa8c103e1, 0xd63f0020,             /* ldp x1,x0,[sp],#16; blr x1 */
		0xd2800ba8, 0xd4000001,             /* mov x8,#93; svc #0 */
		0xd65f03c0,                         /* ret */
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	(void)state;
	for (uint64_t i = 0; i < sizeof code / 4; i++)
		assert_int_equal(is_root(&rows, 4 * i), i >= 5 && i <= 8);
	rows_free(&rows);
	code[7] = 0xd2800808; /* mov x8,#64: write */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_false(is_root(&rows, 6 * 4));
	rows_free(&rows);
}

static void begins_x86_64(void **state)
{
	static const uint8_t code[] = {
		0x90, 0x0f, 0x05,       /* nop; syscall */
		0x85, 0xc0, 0x75, 0x11, /* test %eax,%eax; jne ret */
		0x58, 0x5f, 0xff, 0xd0, /* pop %rax; pop %rdi; call *%rax */
		0x48, 0x89, 0xc7, 0x48, 0xc7, 0xc0, 60, 0, 0, 0, /* mov %rax,%rdi; mov $60,%rax */
		0x0f, 0x05, 0xc3,                                /* syscall; ret */
	};
	struct rows rows = shapes_of(EM_X86_64, code, sizeof code);
	(void)state;
	for (uint64_t i = 0; i < sizeof code; i++)
		assert_int_equal(is_root(&rows, i), i >= 7 && i < 23);
	rows_free(&rows);
}

/* The child of a fork calls something and ends: its stack is a copy, with all callers. */
static void forks_do_not(void **state)
{
	static const uint32_t arm[] = {
		0xd2801b88, 0xd4000001, 0xb5000080, /* mov x8,#220; svc #0; cbnz x0,ret */
		0xd63f0260, 0xd2800ba8, 0xd4000001, /* blr x19; mov x8,#93; svc #0 */
		0xd65f03c0,
	};
	static const uint8_t x86[] = {0x0f, 0x05, 0x85, 0xc0, 0x75, 0x09, 0xff, 0xd3,
				      0xb8, 60,   0,    0,    0,    0x0f, 0x05, 0xc3};
	struct rows rows = shapes_of(EM_AARCH64, arm, sizeof arm);
	(void)state;
	for (uint64_t i = 0; i < sizeof arm; i += 4)
		assert_false(is_root(&rows, i));
	rows_free(&rows);
	rows = shapes_of(EM_X86_64, x86, sizeof x86);
	for (uint64_t i = 0; i < sizeof x86; i++)
		assert_false(is_root(&rows, i));
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_aarch64),
		cmocka_unit_test(begins_x86_64),
		cmocka_unit_test(forks_do_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
