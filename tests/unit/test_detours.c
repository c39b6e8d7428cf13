/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out of the way have the frame of where they came from, if that is certain. */
#include "bare_image.h"
#include "recipes/analysis.h"
#include "recipes/detours.h"
#include "recipes/rows.h"

struct piece {
	uint64_t start, end;
	int32_t depth;
};

static struct recipe by_sp(uint16_t machine, int32_t depth)
{
	return (struct recipe){.cfa = RECIPE_REG,
			       .cfa_reg = machine == EM_AARCH64 ? 31 : 7,
			       .cfa_offset = depth,
			       .ra = depth ? RECIPE_AT_CFA : RECIPE_SAME,
			       .ra_offset = depth ? -8 : 0};
}

/* What is added for `code`, whose CFI the pieces are. */
static struct rows detours(uint16_t machine, const void *code, size_t size,
			   const struct piece *pieces, size_t count)
{
	struct image *image = bare_image(machine, code, size, 0);
	struct analysis analysis;
	struct rows cfi, rows;
	rows_init(&cfi);
	rows_init(&rows);
	for (size_t i = 0; i < count; i++) {
		struct recipe r = by_sp(machine, pieces[i].depth);
		rows_add(&cfi, pieces[i].start, pieces[i].end, rows_rule(&cfi, &r));
	}
	rows_finish(&cfi);
	assert_null(analysis_run(image, NULL, &analysis));
	detours_add(&analysis, &cfi, &rows);
	rows_finish(&rows);
	analysis_free(&analysis);
	rows_free(&cfi);
	image_close(image);
	return rows;
}

/* The row at `address` says `depth`; 0: there is none; -1: it is lost. */
static void expect(const struct rows *rows, uint64_t address, int32_t depth)
{
	const struct recipe *r = &rows->rules[rows_find(rows, address)];
	assert_int_equal(r->cfa, !depth ? RECIPE_NONE : depth < 0 ? RECIPE_COMPLEX : RECIPE_REG);
	if (depth > 0)
		assert_int_equal(r->cfa_offset, depth);
}

static const uint32_t tried[] = {
	0xd10083ff, /* 1000 sub sp,sp,#32 */
	0xf9000ffe, /* 1004 str x30,[sp,#24] */
	0x54000203, /* 1008 b.lo 1048 */
	0xd2800020, /* 100c mov x0,#1 */
	0xf81f0ffa, /* 1010 str x26,[sp,#-16]! */
	0xeb10037f, /* 1014 cmp x27,x16 */
	0x54000143, /* 1018 b.lo 1040 */
	0xd2800020, /* 101c mov x0,#1 */
	0x54000189, /* 1020 b.ls 1050 */
	0x54000068, /* 1024 b.hi 1030 */
	0x1400000b, /* 1028 b 1054 */
	0xd503201f, /* 102c nop */
	0xf84107fa, /* 1030 ldr x26,[sp],#16 */
	0xf9400ffe, /* 1034 ldr x30,[sp,#24] */
	0x910083ff, /* 1038 add sp,sp,#32 */
	0xd65f03c0, /* 103c ret */
	0x94000008, /* 1040 bl 1060 */
	0x17fffff6, /* 1044 b 101c */
	0x94000006, /* 1048 bl 1060 */
	0x17fffff0, /* 104c b 100c */
	0x94000004, /* 1050 bl 1060: does not come back */
	0x94000003, /* 1054 bl 1060 */
	0x17fffff6, /* 1058 b 1030 */
	0xd4200000, /* 105c brk */
	0xd65f03c0, /* 1060 ret */
};

static const struct piece tried_cfi[] = {{0x1000, 0x1004, 0},  {0x1004, 0x1014, 32},
					 {0x1014, 0x1034, 48}, {0x1034, 0x103c, 32},
					 {0x103c, 0x1040, 0},  {0x1040, 0x105c, 32}};

static void aarch64(void **state)
{
	struct rows rows = detours(EM_AARCH64, tried, sizeof tried, tried_cfi, 6);
	(void)state;
	expect(&rows, 0x103c, 0);
	expect(&rows, 0x1040, 48);
	expect(&rows, 0x1044, 48);
	expect(&rows, 0x1048, 0); /* as the CFI says */
	expect(&rows, 0x104c, 0);
	expect(&rows, 0x1050, 48);
	expect(&rows, 0x1054, 48);
	expect(&rows, 0x1058, 48);
	expect(&rows, 0x105c, 0);
	rows_free(&rows);
}

/* The handler is on the stack before the CFI says so. */
static void pushed_aarch64(void **state)
{
	uint32_t code[sizeof tried / 4];
	struct piece cfi[6];
	struct rows rows;
	(void)state;
	memcpy(code, tried, sizeof code);
	memcpy(cfi, tried_cfi, sizeof cfi);
	code[5] = 0xf90007f0; /* 1014 str x16,[sp,#8] */
	cfi[1].end = cfi[2].start = 0x1018;
	rows = detours(EM_AARCH64, code, sizeof code, cfi, 6);
	expect(&rows, 0x1010, 0);
	expect(&rows, 0x1014, 48);
	expect(&rows, 0x1018, 0);
	rows_free(&rows);
	cfi[1].end = cfi[2].start = 0x1014; /* in time */
	rows = detours(EM_AARCH64, code, sizeof code, cfi, 6);
	expect(&rows, 0x1014, 0);
	rows_free(&rows);
}

/* Two ways to one call, from different frames. */
static void mixed(void **state)
{
	uint32_t code[sizeof tried / 4];
	struct rows rows;
	(void)state;
	memcpy(code, tried, sizeof code);
	code[2] = 0x54000243; /* 1008 b.lo 1050 */
	rows = detours(EM_AARCH64, code, sizeof code, tried_cfi, 6);
	expect(&rows, 0x1040, 48);
	expect(&rows, 0x1050, -1);
	rows_free(&rows);
}

/* A call to which the code before it leads, and which does not go back to the branch. */
static void reached_from_above(void **state)
{
	uint32_t code[sizeof tried / 4];
	struct rows rows;
	(void)state;
	memcpy(code, tried, sizeof code);
	code[15] = 0xd503201f; /* 103c nop */
	code[17] = 0xd65f03c0; /* 1044 ret */
	rows = detours(EM_AARCH64, code, sizeof code, tried_cfi, 6);
	expect(&rows, 0x1040, 0);
	rows_free(&rows);
}

static void x86_64(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x08,       /* 1000 sub $8,%rsp */
		0x41, 0x56,                   /* 1004 push %r14 */
		0x41, 0x56,                   /* 1006 push %r14 */
		0x72, 0x0d,                   /* 1008 jb 1017 */
		0x90,                         /* 100a nop */
		0x76, 0x11,                   /* 100b jbe 101e */
		0x41, 0x5e,                   /* 100d pop %r14 */
		0x41, 0x5e,                   /* 100f pop %r14 */
		0x48, 0x83, 0xc4, 0x08,       /* 1011 add $8,%rsp */
		0xc3,                         /* 1015 ret */
		0x90,                         /* 1016 nop */
		0xe8, 0x08, 0x00, 0x00, 0x00, /* 1017 call 1024 */
		0xeb, 0xec,                   /* 101c jmp 100a */
		0xe8, 0x01, 0x00, 0x00, 0x00, /* 101e call 1024 */
		0xcc,                         /* 1023 int3 */
		0xc3,                         /* 1024 ret */
	};
	const struct piece cfi[] = {{0x1000, 0x1004, 8},  {0x1004, 0x1006, 16},
				    {0x1006, 0x1008, 24}, {0x1008, 0x100f, 32},
				    {0x100f, 0x1011, 24}, {0x1011, 0x1015, 16},
				    {0x1015, 0x1017, 8},  {0x1017, 0x1023, 16}};
	struct rows rows = detours(EM_X86_64, code, sizeof code, cfi, 8);
	(void)state;
	expect(&rows, 0x1016, 0);
	expect(&rows, 0x1017, 32);
	expect(&rows, 0x101c, 32);
	expect(&rows, 0x101e, 32);
	expect(&rows, 0x1023, 0);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64), cmocka_unit_test(pushed_aarch64),
		cmocka_unit_test(mixed),   cmocka_unit_test(reached_from_above),
		cmocka_unit_test(x86_64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
