/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where CFI and code differ: each cause by a procedure made for it. */
#include "bare_image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/cfi.h"
#include "recipes/compare.h"
#include "recipes/procedures.h"
#include "recipes/rows.h"

static const uint32_t plain[] = {
	0xa9be7bfd, /* 1000 stp x29, x30, [sp, #-32]! */
	0x910003fd, /* 1004 mov x29, sp */
	0x94000004, /* 1008 bl 1018 */
	0xd2800020, /* 100c mov x0, #1 */
	0xa8c27bfd, /* 1010 ldp x29, x30, [sp], #32 */
	0xd65f03c0, /* 1014 ret */
	0xd65f03c0, /* 1018 ret */
};

static const struct recipe entry = {.cfa = RECIPE_REG, .cfa_reg = 31};
static const struct recipe frame = {.cfa = RECIPE_REG,
				    .cfa_reg = 31,
				    .cfa_offset = 32,
				    .ra = RECIPE_AT_CFA,
				    .ra_offset = -24,
				    .fp = RECIPE_AT_CFA,
				    .fp_offset = -32};

struct piece {
	uint64_t start, end;
	struct recipe recipe;
};

/* Compares the code with CFI made of pieces; the earlier ones go before the later ones. */
static struct compare compare(const uint32_t *code, size_t size, const struct piece *pieces,
			      size_t count)
{
	struct image *image = bare_image(EM_AARCH64, code, size, 0);
	struct analysis analysis;
	struct compare out;
	struct rows cfi;
	rows_init(&cfi);
	for (size_t i = 0; i < count; i++)
		rows_add(&cfi, pieces[i].start, pieces[i].end, rows_rule(&cfi, &pieces[i].recipe));
	rows_finish(&cfi);
	assert_null(analysis_run(image, NULL, &analysis));
	assert_null(compare_sources(&analysis, &cfi, 2, &out));
	analysis_free(&analysis);
	rows_free(&cfi);
	image_close(image);
	return out;
}

/* `first` goes before the true CFI of `plain`; all but `wanted` instructions of `cause` agree. */
static void expect(struct piece first, enum compare_cause cause, uint64_t wanted)
{
	const struct piece pieces[] = {
		first,
		{0x1000, 0x1004, entry},
		{0x1004, 0x1014, frame},
		{0x1014, 0x101c, entry},
	};
	struct compare out = compare(plain, sizeof plain, pieces, 4);
	assert_int_equal(out.code_bytes, 28);
	assert_int_equal(out.cfi_bytes, 28);
	assert_int_equal(out.analysis_bytes, 28);
	assert_int_equal(out.instructions, 7);
	assert_int_equal(out.compared, 7);
	if (cause != COMPARE_AGREE) {
		assert_int_equal(out.count[cause], wanted);
		assert_int_equal(out.run_count, 1);
		assert_int_equal(out.runs[0].address, first.start);
		assert_int_equal(out.runs[0].cause, cause);
		assert_int_equal(out.runs[0].instructions, wanted);
		assert_memory_equal(&out.runs[0].cfi, &first.recipe, sizeof(struct recipe));
	}
	assert_int_equal(out.count[COMPARE_AGREE], 7 - wanted);
	compare_free(&out);
}

static void true_cfi_agrees(void **state)
{
	(void)state;
	expect((struct piece){0}, COMPARE_AGREE, 0);
}

static void missing_epilogue(void **state)
{
	(void)state;
	expect((struct piece){0x1014, 0x1018, frame}, COMPARE_EPILOGUE, 1);
}

static void late_prologue(void **state)
{
	(void)state;
	expect((struct piece){0x1004, 0x100c, entry}, COMPARE_LATE, 2);
}

/* The code stores the return address later than the CFI says. */
static void late_return_address(void **state)
{
	static const uint32_t code[] = {
		0xd10143ff, /* sub sp,sp,#80 */
		0xa9044ff4, /* stp x20,x19,[sp,#64] */
		0xa9402408, /* ldp x8,x9,[x0] */
		0xaa0003f3, /* mov x19,x0 */
		0xa902fbf4, /* stp x20,x30,[sp,#40] */
		0x94000004, /* bl */
		0xf9401bfe, /* ldr x30,[sp,#48] */
		0xa9444ff4, /* ldp x20,x19,[sp,#64] */
		0x910143ff, /* add sp,sp,#80 */
		0xd65f03c0, /* ret */
	};
	struct recipe saved = {.cfa = RECIPE_REG,
			       .cfa_reg = 31,
			       .cfa_offset = 80,
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = -32};
	const struct piece pieces[] = {
		{0x1000, 0x1008, entry},
		{0x1008, 0x1024, saved},
		{0x1024, 0x1028, entry},
	};
	struct compare out = compare(code, sizeof code, pieces, 3);
	(void)state;
	assert_int_equal(out.count[COMPARE_LATE], 4); /* one for the CFA, three for this */
	assert_int_equal(out.count[COMPARE_RA], 0);
	assert_int_equal(out.count[COMPARE_AGREE], 6);
	compare_free(&out);
}

/* After a call there is nothing to follow the state from: no proof. */
static void other_cfa(void **state)
{
	struct recipe other = frame;
	(void)state;
	other.cfa_offset = 48;
	expect((struct piece){0x100c, 0x1014, other}, COMPARE_CFA, 2);
}

/* They differ without proof, meet because only one of them follows an instruction, and differ again: still
   no proof of which is right. */
static void met_by_chance(void **state)
{
	static const uint32_t code[] = {
		0xa9be7bfd, /* 1000 stp x29, x30, [sp, #-32]! */
		0x94000008, /* 1004 bl 1024 */
		0xd10043ff, /* 1008 sub sp, sp, #16 */
		0xd2800020, /* 100c mov x0, #1 */
		0xd2800020, /* 1010 mov x0, #1 */
		0xd2800020, /* 1014 mov x0, #1 */
		0x910043ff, /* 1018 add sp, sp, #16 */
		0xa8c27bfd, /* 101c ldp x29, x30, [sp], #32 */
		0xd65f03c0, /* 1020 ret */
		0xd65f03c0, /* 1024 ret */
	};
	struct recipe deep[3];
	for (int i = 0; i < 3; i++) {
		deep[i] = frame;
		deep[i].cfa_offset += 16 * i;
		deep[i].ra_offset = -24;
	}
	const struct piece pieces[] = {
		{0x1000, 0x1004, entry},   {0x1004, 0x1008, frame},   {0x1008, 0x1010, deep[1]},
		{0x1010, 0x1018, deep[2]}, {0x1018, 0x101c, deep[1]}, {0x101c, 0x1020, frame},
		{0x1020, 0x1028, entry},
	};
	struct compare out = compare(code, sizeof code, pieces, 7);
	(void)state;
	assert_int_equal(out.count[COMPARE_LATE], 0);
	assert_int_equal(out.count[COMPARE_CFA], 3);
	assert_int_equal(out.count[COMPARE_AGREE], 7);
	compare_free(&out);
}

static void other_return_address(void **state)
{
	struct recipe other = frame;
	(void)state;
	other.ra_offset = -8;
	expect((struct piece){0x1008, 0x100c, other}, COMPARE_RA, 1);
}

static void other_frame_pointer(void **state)
{
	struct recipe other = frame;
	(void)state;
	other.fp_offset -= 64;
	expect((struct piece){0x1008, 0x1014, other}, COMPARE_FP, 3);
}

/* The code overwrites FP, and the CFI says that it is unchanged. */
static void clobbered_frame_pointer(void **state)
{
	struct recipe other = frame;
	(void)state;
	other.fp = RECIPE_SAME;
	other.fp_offset = 0;
	expect((struct piece){0x1008, 0x100c, other}, COMPARE_LATE, 1);
}

static void expression(void **state)
{
	(void)state;
	expect((struct piece){0x1008, 0x100c, {.cfa = RECIPE_COMPLEX}}, COMPARE_EXPRESSION, 1);
}

static void explained_is_what_is_proved(void **state)
{
	const struct piece pieces[] = {{0x1000, 0x1008, entry}, {0x1008, 0x1018, frame}};
	struct compare out = compare(plain, sizeof plain, pieces, 2);
	(void)state;
	assert_int_equal(out.count[COMPARE_LATE], 1);
	assert_int_equal(out.count[COMPARE_EPILOGUE], 1);
	assert_int_equal(compare_explained(&out), 2);
	assert_int_equal(out.count[COMPARE_CFI_ABSENT], 1);
	assert_int_equal(out.instructions, 7);
	assert_int_equal(out.compared, 6);
	assert_int_equal(out.cfi_bytes, 24);
	compare_free(&out);
}

/* The code ends the stack only where it clears the frame pointer. */
static void root(void **state)
{
	static const uint32_t code[] = {
		0xd2800020, /* mov x0, #1 */
		0xd280001d, /* mov x29, #0 */
		0xd2800021, /* mov x1, #1 */
		0xd4200000, /* brk #0 */
	};
	const struct piece piece = {0x1000, 0x1010, {.cfa = RECIPE_ROOT}};
	struct compare out = compare(code, sizeof code, &piece, 1);
	(void)state;
	assert_int_equal(out.count[COMPARE_ROOT], 2);
	assert_int_equal(out.count[COMPARE_AGREE], 2);
	assert_int_equal(compare_explained(&out), 2);
	compare_free(&out);
}

/* A list holds the first runs of a cause and counts the rest. */
static void list_is_bounded(void **state)
{
	struct recipe other = frame;
	struct piece pieces[] = {
		{0x1008, 0x100c, other}, {0x1010, 0x1014, other}, {0x1000, 0x1004, entry},
		{0x1004, 0x1014, frame}, {0x1014, 0x1018, entry}, {0x1018, 0x101c, other},
	};
	struct compare out;
	(void)state;
	pieces[0].recipe.ra_offset = pieces[1].recipe.ra_offset = -8;
	pieces[5].recipe = entry;
	pieces[5].recipe.ra = RECIPE_AT_CFA;
	pieces[5].recipe.ra_offset = 8;
	out = compare(plain, sizeof plain, pieces, 6);
	assert_int_equal(out.count[COMPARE_RA] + out.count[COMPARE_EPILOGUE], 3);
	for (size_t i = 0, listed = 0; i < out.run_count; i++) {
		listed += out.runs[i].cause == COMPARE_RA;
		assert_true(listed <= 2);
	}
	compare_free(&out);
}

static void words(void **state)
{
	char out[COMPARE_WORDS_MAX];
	struct recipe r = frame;
	(void)state;
	assert_string_equal(compare_words(&isa_aarch64, &entry, out), "CFA=sp ra=lr fp=same");
	assert_string_equal(compare_words(&isa_aarch64, &frame, out),
			    "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]");
	r = (struct recipe){.cfa = RECIPE_DEREF,
			    .cfa_reg = 6,
			    .cfa_offset = -16,
			    .cfa_add = 8,
			    .ra = RECIPE_AT_CFA,
			    .ra_offset = -8,
			    .fp = RECIPE_AT_FP};
	assert_string_equal(compare_words(&isa_x86_64, &r, out),
			    "CFA=[fp-16]+8 ra=[CFA-8] fp=[fp]");
	r = (struct recipe){.cfa = RECIPE_REG,
			    .cfa_reg = 10,
			    .cfa_vg = -2,
			    .ra = RECIPE_IN_REG,
			    .ra_offset = 16,
			    .fp = RECIPE_LOST};
	assert_string_equal(compare_words(&isa_aarch64, &r, out), "CFA=r10-2*vg ra=r16 fp=lost");
	r = (struct recipe){.cfa = RECIPE_ROOT};
	assert_string_equal(compare_words(&isa_aarch64, &r, out), "outermost");
	r = (struct recipe){.cfa = 250};
	assert_string_equal(compare_words(&isa_aarch64, &r, out), "unknown");
	r = (struct recipe){.cfa = RECIPE_DEREF,
			    .cfa_reg = 200,
			    .cfa_offset = INT32_MIN,
			    .cfa_add = INT32_MIN,
			    .cfa_vg = INT16_MIN,
			    .ra = RECIPE_AT_SP,
			    .ra_offset = INT32_MIN,
			    .fp = RECIPE_IN_REG,
			    .fp_offset = INT32_MIN};
	assert_true(strlen(compare_words(&isa_aarch64, &r, out)) < COMPARE_WORDS_MAX - 1);
	for (int cause = 0; cause < COMPARE_CAUSES; cause++)
		assert_string_not_equal(compare_cause_name(cause), "unknown");
}

/* ---- procedures ---- */

static void starts_against_truth(void **state)
{
	struct cfi_range ranges[] = {
		{0x1000, 0x1010}, {0x1020, 0x1030}, {0x1024, 0x1028}, {0x1040, 0x1050}};
	struct procedures truth = {ranges, 4};
	static const uint64_t starts[] = {
		0x1000, /* right */
		0x1008, /* inside */
		0x1010, /* between */
		0x1024, /* right: a procedure in a procedure */
		0x102c, /* inside the outer one */
		0x1030, /* between */
		0x1060, /* after the last */
	};
	struct image *image = bare_image(EM_AARCH64, plain, sizeof plain, 0x1000);
	struct procedures_match match;
	(void)state;
	procedures_compare(image, &truth, NULL, starts, 7, &match);
	assert_int_equal(match.found, 2);
	assert_int_equal(match.missed, 2);
	assert_int_equal(match.malignant, 2);
	assert_int_equal(match.benign, 3);
	procedures_compare(image, &truth, NULL, NULL, 0, &match);
	assert_int_equal(match.missed, 4);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(true_cfi_agrees),
		cmocka_unit_test(missing_epilogue),
		cmocka_unit_test(late_prologue),
		cmocka_unit_test(late_return_address),
		cmocka_unit_test(other_cfa),
		cmocka_unit_test(met_by_chance),
		cmocka_unit_test(other_return_address),
		cmocka_unit_test(other_frame_pointer),
		cmocka_unit_test(clobbered_frame_pointer),
		cmocka_unit_test(expression),
		cmocka_unit_test(explained_is_what_is_proved),
		cmocka_unit_test(root),
		cmocka_unit_test(list_is_bounded),
		cmocka_unit_test(words),
		cmocka_unit_test(starts_against_truth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
