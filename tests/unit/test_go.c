/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes of Go's code, for both CPUs: frames as its table has them, and where its runtime goes to
   another stack. The code is of the runtime's shape, and no longer than that needs. */
#include "go_bytes.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"

static const uint32_t arm_code[] = {
	/* systemstack */
	0xf81f0ffe,
	0xf81f83fd,
	0xd10023fd,
	0xf9401b84,
	0x94000000,
	0xaa0503fc,
	0xf9401f83,
	0x9100007f,
	0xf9400343,
	0xd63f0060,
	0xf9401b83,
	0xf940607c,
	0x94000000,
	0xf9401f80,
	0x9100001f,
	0xa97ffbfd,
	0x910043ff,
	0xd65f03c0,
	/* morestack */
	0xf9401b88,
	0x910003e0,
	0xf9001f80,
	0xf900239e,
	0xf9003383,
	0xf940011c,
	0x94000000,
	0xf9401f80,
	0x9100001f,
	0xf81f0fff,
	0x94000000,
	/* mcall */
	0xaa0003fa,
	0xf9401b88,
	0xf940011c,
	0x94000000,
	0xf9401f80,
	0x9100001f,
	0xd63f0080,
	/* gogo */
	0xaa0603fc,
	0x94000000,
	0xf94000a0,
	0x9100001f,
	0xd61f00c0,
	/* asmcgocall */
	0xf81f0ffe,
	0xf81f83fd,
	0xd10023fd,
	0x910003e2,
	0xaa1c03e4,
	0xf9401f80,
	0x9100001f,
	0x910003ed,
	0xd10041ad,
	0x910001bf,
	0xf90003e4,
	0xf9400484,
	0xcb020084,
	0xf90007e4,
	0xd63f0020,
	0xf94003fc,
	0xf9400785,
	0xf94007e6,
	0xcb0600a5,
	0x910000bf,
	0xa97ffbfd,
	0x910043ff,
	0xd65f03c0,
	0x910003ed,
	0x910001bf,
	0xf90007e2,
	0xd63f0020,
	0xf94007e2,
	0x9100005f,
	0xa97ffbfd,
	0x910043ff,
	0xd65f03c0,
	/* nanotime1 */
	0xf81d0ffe,
	0xf81f83fd,
	0xd10023fd,
	0x910003f4,
	0xf9401c61,
	0x9100003f,
	0xd63f0040,
	0x9100029f,
	0xa97ffbfd,
	0x9100c3ff,
	0xd65f03c0,
	/* cgocallback */
	0xf81d0ffe,
	0xf81f83fd,
	0xd10023fd,
	0xf9401c64,
	0xf9000be4,
	0xd100c080,
	0x9100001f,
	0xd63f0000,
	0xf9401f80,
	0x9100001f,
	0xa97ffbfd,
	0x9100c3ff,
	0xd65f03c0,
	/* user */
	0xf9400b90,
	0xeb3063ff,
	0x54000109,
	0xf81e0ffe,
	0xf81f83fd,
	0xd10023fd,
	0x94000000,
	0xa97ffbfd,
	0x910083ff,
	0xd65f03c0,
	0xaa1e03e3,
	0x94000000,
	0x17fffff4,
};

static const struct go_function arm[] = {
	{.name = "runtime.systemstack", .size = 72, .flags = 2, .sp = {{0, 4}, {16, 64}, {0, 4}}},
	{.name = "runtime.morestack", .size = 44, .flags = 2, .sp = {{0, 44}}},
	{.name = "runtime.mcall", .size = 28, .flags = 2, .sp = {{0, 28}}},
	{.name = "gogo", .size = 20, .flags = 2, .sp = {{0, 20}}},
	{.name = "runtime.asmcgocall", .size = 128, .flags = 2, .sp = {{0, 4}, {16, 124}}},
	{.name = "runtime.nanotime1", .size = 44, .flags = 2, .sp = {{0, 4}, {48, 36}, {0, 4}}},
	{.name = "runtime.cgocallback", .size = 52, .flags = 2, .sp = {{0, 4}, {48, 44}, {0, 4}}},
	{.name = "main.user", .size = 52, .sp = {{0, 16}, {32, 20}, {0, 16}}},
};

static const uint8_t amd_code[] = {
	/* systemstack */
	0x48,
	0x8b,
	0x7c,
	0x24,
	0x08,
	0x48,
	0x8b,
	0x58,
	0x30,
	0xe8,
	0xfb,
	0xff,
	0xff,
	0xff,
	0x48,
	0x8b,
	0x5a,
	0x38,
	0x48,
	0x89,
	0xdc,
	0xff,
	0xd7,
	0x48,
	0x8b,
	0x58,
	0x30,
	0x48,
	0x8b,
	0x83,
	0xc0,
	0x00,
	0x00,
	0x00,
	0x48,
	0x8b,
	0x60,
	0x38,
	0xc3,
	0xff,
	0xe7,
	/* morestack */
	0x48,
	0x8b,
	0x44,
	0x24,
	0x08,
	0x48,
	0x8b,
	0x1b,
	0x48,
	0x8b,
	0x63,
	0x38,
	0xe8,
	0xfb,
	0xff,
	0xff,
	0xff,
	0xe8,
	0xfb,
	0xff,
	0xff,
	0xff,
	/* mcall */
	0x48,
	0x89,
	0xc2,
	0x49,
	0x8b,
	0x66,
	0x38,
	0x50,
	0x41,
	0xff,
	0xd4,
	/* gogo */
	0x49,
	0x89,
	0xd6,
	0x48,
	0x8b,
	0x23,
	0xff,
	0xe3,
	/* asmcgocall */
	0x48,
	0x8b,
	0x44,
	0x24,
	0x08,
	0x48,
	0x89,
	0xe2,
	0x48,
	0x8b,
	0x66,
	0x38,
	0x48,
	0x83,
	0xec,
	0x40,
	0x48,
	0x83,
	0xe4,
	0xf0,
	0x48,
	0x89,
	0x7c,
	0x24,
	0x30,
	0x48,
	0x8b,
	0x7f,
	0x08,
	0x48,
	0x29,
	0xd7,
	0x48,
	0x89,
	0x7c,
	0x24,
	0x28,
	0xff,
	0xd0,
	0x48,
	0x8b,
	0x7c,
	0x24,
	0x30,
	0x48,
	0x8b,
	0x77,
	0x08,
	0x48,
	0x2b,
	0x74,
	0x24,
	0x28,
	0x48,
	0x89,
	0xf4,
	0xc3,
	0x48,
	0x83,
	0xec,
	0x40,
	0x48,
	0x83,
	0xe4,
	0xf0,
	0x48,
	0xc7,
	0x44,
	0x24,
	0x30,
	0x00,
	0x00,
	0x00,
	0x00,
	0x48,
	0x89,
	0x54,
	0x24,
	0x28,
	0xff,
	0xd0,
	0x48,
	0x8b,
	0x74,
	0x24,
	0x28,
	0x48,
	0x89,
	0xf4,
	0xc3,
	/* nanotime1 */
	0x48,
	0x83,
	0xec,
	0x18,
	0x48,
	0x89,
	0x6c,
	0x24,
	0x10,
	0x48,
	0x8d,
	0x6c,
	0x24,
	0x10,
	0x49,
	0x89,
	0xe4,
	0x48,
	0x8b,
	0x62,
	0x38,
	0x48,
	0x83,
	0xec,
	0x10,
	0x48,
	0x83,
	0xe4,
	0xf0,
	0xff,
	0xd0,
	0x4c,
	0x89,
	0xe4,
	0x48,
	0x8b,
	0x6c,
	0x24,
	0x10,
	0x48,
	0x83,
	0xc4,
	0x18,
	0xc3,
	/* cgocallback */
	0x48,
	0x83,
	0xec,
	0x20,
	0x48,
	0x89,
	0x6c,
	0x24,
	0x18,
	0x48,
	0x8d,
	0x6c,
	0x24,
	0x18,
	0x48,
	0x8b,
	0x46,
	0x38,
	0x48,
	0x89,
	0x04,
	0x24,
	0x48,
	0x89,
	0xfc,
	0xff,
	0xd0,
	0x48,
	0x8b,
	0x66,
	0x38,
	0x48,
	0x8b,
	0x6c,
	0x24,
	0x18,
	0x48,
	0x83,
	0xc4,
	0x20,
	0xc3,
	/* user */
	0x49,
	0x3b,
	0x66,
	0x10,
	0x76,
	0x1d,
	0x48,
	0x83,
	0xec,
	0x18,
	0x48,
	0x89,
	0x6c,
	0x24,
	0x10,
	0x48,
	0x8d,
	0x6c,
	0x24,
	0x10,
	0xe8,
	0xfb,
	0xff,
	0xff,
	0xff,
	0x48,
	0x8b,
	0x6c,
	0x24,
	0x10,
	0x48,
	0x83,
	0xc4,
	0x18,
	0xc3,
	0xe8,
	0xfb,
	0xff,
	0xff,
	0xff,
	0xeb,
	0xd6,
};

static const struct go_function amd[] = {
	{.name = "runtime.systemstack", .size = 41, .flags = 2, .sp = {{0, 41}}},
	{.name = "runtime.morestack", .size = 22, .flags = 2, .sp = {{0, 22}}},
	{.name = "runtime.mcall", .size = 11, .flags = 2, .sp = {{0, 8}, {8, 3}}},
	{.name = "gogo", .size = 8, .flags = 2, .sp = {{0, 8}}},
	{.name = "runtime.asmcgocall", .size = 90, .flags = 2, .sp = {{0, 90}}},
	{.name = "runtime.nanotime1", .size = 44, .flags = 2, .sp = {{0, 4}, {24, 40}}},
	{.name = "runtime.cgocallback", .size = 41, .flags = 2, .sp = {{0, 4}, {32, 36}, {0, 1}}},
	{.name = "main.user", .size = 42, .sp = {{0, 10}, {24, 24}, {0, 8}}},
};

#define COUNT (sizeof arm / sizeof *arm)

enum which { SYSTEM, MORE, MCALL, GOGO, CGO, CLOCK, CALLBACK, USER };

struct world {
	const struct go_function *functions;
	struct rows rows;
};

static struct world begin(uint16_t machine)
{
	static struct go_table table;
	bool is_arm = machine == EM_AARCH64;
	struct world w = {.functions = is_arm ? arm : amd};
	go_make(&table, GO_V18, is_arm ? 4 : 1, w.functions, COUNT);
	struct image *image = is_arm ? go_image(machine, arm_code, sizeof arm_code, &table)
				     : go_image(machine, amd_code, sizeof amd_code, &table);
	rows_init(&w.rows);
	shapes_add(image, &w.rows);
	rows_finish(&w.rows);
	image_close(image);
	return w;
}

static const struct recipe *at(const struct world *w, enum which which, unsigned offset)
{
	uint64_t start = GO_TEXT;
	for (unsigned i = 0; i < which; i++)
		start += w->functions[i].size;
	return &w->rows.rules[rows_find(&w->rows, start + offset)];
}

static void check_frame(const struct recipe *r, int cfa, int ra_where, int ra, int fp_where, int fp)
{
	assert_int_equal(r->cfa, RECIPE_REG);
	assert_int_equal(r->cfa_offset, cfa);
	assert_int_equal(r->ra, ra_where);
	assert_int_equal(r->ra_offset, ra);
	assert_int_equal(r->fp, fp_where);
	assert_int_equal(r->fp_offset, fp);
}

static void check_other_g(const struct recipe *r, int kind, int reg, int second)
{
	assert_int_equal(r->cfa, kind);
	assert_int_equal(r->cfa_reg, reg);
	assert_int_equal(r->cfa_offset, 48);
	assert_int_equal(r->cfa_vg, 192);
	assert_int_equal(RECIPE_FIRST(r->cfa_add), 56);
	assert_int_equal(RECIPE_SECOND(r->cfa_add), second);
}

static void frames_aarch64(void **state)
{
	struct world w = begin(EM_AARCH64);
	(void)state;
	check_frame(at(&w, USER, 0), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	check_frame(at(&w, USER, 16), 32, RECIPE_AT_CFA, -32, RECIPE_SAME, 0);
	check_frame(at(&w, USER, 20), 32, RECIPE_AT_CFA, -32, RECIPE_AT_CFA, -40);
	check_frame(at(&w, USER, 36), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	/* before the call for a larger stack, and in it */
	check_frame(at(&w, USER, 44), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	check_frame(at(&w, USER, 47), 0, RECIPE_IN_REG, 19, RECIPE_SAME, 0);
	rows_free(&w.rows);
}

static void frames_x86_64(void **state)
{
	struct world w = begin(EM_X86_64);
	(void)state;
	check_frame(at(&w, USER, 6), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_frame(at(&w, USER, 10), 32, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_frame(at(&w, USER, 15), 32, RECIPE_AT_CFA, -8, RECIPE_AT_CFA, -16);
	check_frame(at(&w, USER, 34), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	rows_free(&w.rows);
}

static void switches_aarch64(void **state)
{
	struct world w = begin(EM_AARCH64);
	const struct recipe *r;
	(void)state;
	check_frame(at(&w, SYSTEM, 28), 16, RECIPE_AT_CFA, -16, RECIPE_AT_CFA, -24);
	r = at(&w, SYSTEM, 39); /* in the call on the other stack */
	check_other_g(r, RECIPE_PARKED, 28, 16);
	assert_int_equal(r->ra, RECIPE_AT_CFA);
	assert_int_equal(r->ra_offset, -16);
	check_frame(at(&w, SYSTEM, 60), 16, RECIPE_AT_CFA, -16, RECIPE_AT_CFA, -24);
	check_frame(at(&w, SYSTEM, 68), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	check_frame(at(&w, MORE, 8), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&w, MORE, 8)->extra, RECIPE_IN_REG);
	assert_int_equal(at(&w, MORE, 8)->extra_offset, 3);
	r = at(&w, MORE, 43);
	check_other_g(r, RECIPE_PARKED, 28, 0);
	assert_int_equal(r->ra, RECIPE_IN_G);
	assert_int_equal(r->ra_offset, 64);
	assert_int_equal(r->extra, RECIPE_IN_G);
	assert_int_equal(r->extra_offset, 96);

	check_frame(at(&w, MCALL, 4), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	check_other_g(at(&w, MCALL, 15), RECIPE_PARKED, 28, 0);
	assert_int_equal(at(&w, MCALL, 24)->cfa, RECIPE_ROOT);
	check_frame(at(&w, GOGO, 4), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&w, GOGO, 7)->cfa, RECIPE_ROOT);

	r = at(&w, CLOCK, 27);
	assert_int_equal(r->cfa, RECIPE_AWAY);
	assert_int_equal(r->cfa_reg, 29);
	assert_int_equal(r->cfa_offset, 56);
	check_frame(at(&w, CLOCK, 36), 48, RECIPE_AT_CFA, -48, RECIPE_AT_CFA, -56);
	rows_free(&w.rows);
}

static void switches_x86_64(void **state)
{
	struct world w = begin(EM_X86_64);
	const struct recipe *r;
	(void)state;
	check_frame(at(&w, SYSTEM, 0x12), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	r = at(&w, SYSTEM, 0x16); /* in the call on the other stack */
	check_other_g(r, RECIPE_PARKED, 14, 8);
	assert_int_equal(r->ra_offset, -8);
	check_frame(at(&w, SYSTEM, 0x26), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_frame(at(&w, SYSTEM, 0x27), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_frame(at(&w, MORE, 8), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	r = at(&w, MORE, 0x10);
	check_other_g(r, RECIPE_PARKED, 14, 0);
	assert_int_equal(r->ra, RECIPE_IN_G);
	assert_int_equal(r->ra_offset, 64);
	assert_int_equal(r->extra, RECIPE_SAME);

	check_frame(at(&w, MCALL, 3), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	assert_int_equal(at(&w, MCALL, 9)->cfa, RECIPE_ROOT);
	check_frame(at(&w, GOGO, 3), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	assert_int_equal(at(&w, GOGO, 6)->cfa, RECIPE_ROOT);

	r = at(&w, CLOCK, 0x1e);
	assert_int_equal(r->cfa, RECIPE_AWAY);
	assert_int_equal(r->cfa_reg, 6);
	assert_int_equal(r->cfa_offset, 16);
	check_frame(at(&w, CLOCK, 0x27), 32, RECIPE_AT_CFA, -8, RECIPE_AT_CFA, -16);
	check_frame(at(&w, CLOCK, 0x2b), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	rows_free(&w.rows);
}

static void check_depth(const struct recipe *r, int g, int depth, int second)
{
	assert_int_equal(r->cfa, RECIPE_DEPTH);
	assert_int_equal(r->cfa_offset, g);
	assert_int_equal(RECIPE_FIRST(r->cfa_add), depth);
	assert_int_equal(RECIPE_SECOND(r->cfa_add), second);
}

static void check_deref(const struct recipe *r, int offset, int add)
{
	assert_int_equal(r->cfa, RECIPE_DEREF);
	assert_int_equal(r->cfa_offset, offset);
	assert_int_equal(r->cfa_add, add);
}

static void check_away(const struct recipe *r, int reg, int offset)
{
	assert_int_equal(r->cfa, RECIPE_AWAY);
	assert_int_equal(r->cfa_reg, reg);
	assert_int_equal(r->cfa_offset, offset);
}

static void calls_of_c_aarch64(void **state)
{
	struct world w = begin(EM_AARCH64);
	(void)state;
	check_frame(at(&w, CGO, 24), 16, RECIPE_AT_CFA, -16, RECIPE_AT_CFA, -24);
	check_away(at(&w, CGO, 40), 2, 16);
	check_depth(at(&w, CGO, 59), 0, 8, 16);
	check_frame(at(&w, CGO, 80), 16, RECIPE_AT_CFA, -16, RECIPE_AT_CFA, -24);
	check_frame(at(&w, CGO, 88), 0, RECIPE_SAME, 0, RECIPE_SAME, 0);
	check_away(at(&w, CGO, 100), 2, 16);
	check_deref(at(&w, CGO, 107), 8, 16);
	check_frame(at(&w, CGO, 116), 16, RECIPE_AT_CFA, -16, RECIPE_AT_CFA, -24);
	check_frame(at(&w, CALLBACK, 20), 48, RECIPE_AT_CFA, -48, RECIPE_AT_CFA, -56);
	check_other_g(at(&w, CALLBACK, 31), RECIPE_CALLBACK, 28, 48);
	assert_int_equal(at(&w, CALLBACK, 31)->extra_offset, 16);
	check_frame(at(&w, CALLBACK, 40), 48, RECIPE_AT_CFA, -48, RECIPE_AT_CFA, -56);
	rows_free(&w.rows);
}

static void calls_of_c_x86_64(void **state)
{
	struct world w = begin(EM_X86_64);
	(void)state;
	check_frame(at(&w, CGO, 0x08), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_away(at(&w, CGO, 0x10), 1, 8);
	check_depth(at(&w, CGO, 0x26), 48, 40, 8);
	check_depth(at(&w, CGO, 0x35), 48, 40, 8);
	check_frame(at(&w, CGO, 0x38), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_away(at(&w, CGO, 0x39), 1, 8);
	check_deref(at(&w, CGO, 0x50), 40, 8);
	check_frame(at(&w, CGO, 0x59), 8, RECIPE_AT_CFA, -8, RECIPE_SAME, 0);
	check_frame(at(&w, CALLBACK, 0x16), 40, RECIPE_AT_CFA, -8, RECIPE_AT_CFA, -16);
	check_other_g(at(&w, CALLBACK, 0x1a), RECIPE_CALLBACK, 14, 40);
	assert_int_equal(at(&w, CALLBACK, 0x1a)->extra_offset, 0);
	check_frame(at(&w, CALLBACK, 0x1f), 40, RECIPE_AT_CFA, -8, RECIPE_AT_CFA, -16);
	rows_free(&w.rows);
}

/* Without the offsets that only its code tells nothing is known of who waits. */
static void unknown_code_has_no_caller(void **state)
{
	struct go_function other[COUNT];
	static struct go_table table;
	struct world w = {.functions = amd};
	(void)state;
	memcpy(other, amd, sizeof other);
	other[SYSTEM].name = "runtime.other";
	go_make(&table, GO_V20, 1, other, COUNT);
	struct image *image = go_image(EM_X86_64, amd_code, sizeof amd_code, &table);
	rows_init(&w.rows);
	shapes_add(image, &w.rows);
	rows_finish(&w.rows);
	image_close(image);
	assert_int_equal(at(&w, SYSTEM, 0x16)->cfa, RECIPE_COMPLEX);
	assert_int_equal(at(&w, MORE, 0x10)->cfa, RECIPE_COMPLEX);
	check_depth(at(&w, CGO, 0x26), 48, 40, 8);
	rows_free(&w.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_aarch64),
		cmocka_unit_test(frames_x86_64),
		cmocka_unit_test(switches_aarch64),
		cmocka_unit_test(switches_x86_64),
		cmocka_unit_test(calls_of_c_aarch64),
		cmocka_unit_test(calls_of_c_x86_64),
		cmocka_unit_test(unknown_code_has_no_caller),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
