/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues have the registers of the caller where they are already, not in words below SP. */
#include "bare_image.h"
#include "recipes/analysis.h"
#include "recipes/restored.h"
#include "recipes/rows.h"

struct piece {
	uint64_t start, end;
	int32_t depth, fp, extra; /* where they are, from the CFA on; 0: unchanged */
};

/* What is added for `code`, whose CFI the pieces are. */
static struct rows restored(const void *code, size_t size, const struct piece *pieces, size_t count)
{
	struct image *image = bare_image(EM_X86_64, code, size, 0);
	struct analysis analysis;
	struct rows cfi, rows;
	rows_init(&cfi);
	rows_init(&rows);
	for (size_t i = 0; i < count; i++) {
		const struct piece *p = &pieces[i];
		struct recipe r = {.cfa = RECIPE_REG,
				   .cfa_reg = 7,
				   .cfa_offset = p->depth,
				   .ra = RECIPE_AT_CFA,
				   .ra_offset = -8,
				   .fp = p->fp ? RECIPE_AT_CFA : RECIPE_SAME,
				   .fp_offset = p->fp,
				   .extra = p->extra ? RECIPE_AT_CFA : RECIPE_SAME,
				   .extra_offset = p->extra};
		rows_add(&cfi, p->start, p->end, rows_rule(&cfi, &r));
	}
	rows_finish(&cfi);
	assert_null(analysis_run(image, NULL, &analysis));
	restored_add(&analysis, &cfi, &rows);
	rows_finish(&rows);
	analysis_free(&analysis);
	rows_free(&cfi);
	image_close(image);
	return rows;
}

static void expect_none(const struct rows *rows, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at++)
		assert_int_equal(rows_find(rows, at), 0);
}

static void expect(const struct rows *rows, uint64_t start, uint64_t end, struct piece wanted)
{
	for (uint64_t at = start; at < end; at++) {
		const struct recipe *r = &rows->rules[rows_find(rows, at)];
		assert_int_equal(r->cfa, RECIPE_REG);
		assert_int_equal(r->cfa_offset, wanted.depth);
		assert_int_equal(r->ra, RECIPE_AT_CFA);
		assert_int_equal(r->ra_offset, -8);
		assert_int_equal(r->fp, wanted.fp ? RECIPE_AT_CFA : RECIPE_SAME);
		assert_int_equal(r->fp_offset, wanted.fp);
		assert_int_equal(r->extra, wanted.extra ? RECIPE_AT_CFA : RECIPE_SAME);
		assert_int_equal(r->extra_offset, wanted.extra);
	}
}

static const uint8_t pops[] = {
	0x55,                   /* 1000 push %rbp */
	0x53,                   /* 1001 push %rbx */
	0x48, 0x83, 0xec, 0x08, /* 1002 sub $8,%rsp */
	0x31, 0xed,             /* 1006 xor %ebp,%ebp */
	0x31, 0xdb,             /* 1008 xor %ebx,%ebx */
	0x48, 0x83, 0xc4, 0x08, /* 100a add $8,%rsp */
	0x5b,                   /* 100e pop %rbx */
	0x5d,                   /* 100f pop %rbp */
	0x66, 0x90,             /* 1010 xchg %ax,%ax */
	0xc3,                   /* 1012 ret */
};

static void popped(void **state)
{
	static const struct piece cfi[] = {
		{0x1000, 0x1001, 8, 0, 0},      {0x1001, 0x1002, 16, -16, 0},
		{0x1002, 0x1006, 24, -16, -24}, {0x1006, 0x100e, 32, -16, -24},
		{0x100e, 0x100f, 24, -16, -24}, {0x100f, 0x1010, 16, -16, -24},
		{0x1010, 0x1013, 8, -16, -24},
	};
	struct rows rows = restored(pops, sizeof pops, cfi, 7);
	(void)state;
	expect_none(&rows, 0x1000, 0x100f);
	expect(&rows, 0x100f, 0x1010, (struct piece){.depth = 16, .fp = -16});
	expect(&rows, 0x1010, 0x1013, (struct piece){.depth = 8});
	rows_free(&rows);
}

/* Who says something else of the words is not believed in the rest. */
static void disagreed(void **state)
{
	static const struct piece cfi[] = {
		{0x1000, 0x100f, 8, 0, 0},
		{0x100f, 0x1010, 24, -16, -32},
		{0x1010, 0x1013, 8, -24, -16},
	};
	struct rows rows = restored(pops, sizeof pops, cfi, 3);
	(void)state;
	expect_none(&rows, 0x1000, 0x1014);
	rows_free(&rows);
}

/* A register that is kept below SP, and used meanwhile. */
static void kept_below(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0x6c, 0x24, 0xf8, /* 1000 mov %rbp,-8(%rsp) */
		0x31, 0xed,                   /* 1005 xor %ebp,%ebp */
		0x66, 0x90,                   /* 1007 xchg %ax,%ax */
		0x48, 0x8b, 0x6c, 0x24, 0xf8, /* 1009 mov -8(%rsp),%rbp */
		0xc3,                         /* 100e ret */
	};
	static const struct piece cfi[] = {{0x1000, 0x1005, 8, 0, 0}, {0x1005, 0x100f, 8, -16, 0}};
	struct rows rows = restored(code, sizeof code, cfi, 2);
	(void)state;
	expect(&rows, 0x1005, 0x1007, (struct piece){.depth = 8}); /* not used yet */
	expect_none(&rows, 0x1007, 0x100e);
	expect(&rows, 0x100e, 0x100f, (struct piece){.depth = 8});
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(popped),
		cmocka_unit_test(disagreed),
		cmocka_unit_test(kept_below),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
