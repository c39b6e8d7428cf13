/* SPDX-License-Identifier: Apache-2.0 */
/* What is written as a debug file is read back as the same recipes and names. */
#include "bare_image.h"
#include "base/buf.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/build.h"
#include "recipes/cfi.h"
#include "recipes/emit.h"
#include "recipes/rows.h"
#include "scratch.h"

#define ROOM 0x100000000u /* the code of the bare images */

/* Rows as the reader of CFI makes them from what was written. */
static struct image *write_and_open(const struct emit_input *input, struct emit_stats *stats)
{
	struct buf bytes = {0};
	struct image *written;
	struct err *e;
	assert_null(emit_debug_file(input, &bytes, stats));
	e = image_open_memory(bytes.data, bytes.size, "written", &written);
	if (e)
		fail_msg("%s", err_text(e));
	buf_free(&bytes);
	assert_int_equal(image_machine(written), image_machine(input->image));
	assert_int_equal(image_type(written), image_type(input->image));
	return written;
}

static void read_back(struct image *written, struct rows *rows)
{
	struct cfi_stats stats;
	rows_init(rows);
	assert_null(cfi_read(written, NULL, rows, &stats));
	assert_int_equal(stats.bad_entries, 0);
	rows_finish(rows);
}

static bool is_said(const struct recipe *r)
{
	return r->cfa == RECIPE_REG || r->cfa == RECIPE_DEREF || r->cfa == RECIPE_ROOT;
}

/* Equal but for who said it; what is not said reads as nothing. */
static void assert_same_rows(const struct rows *wanted, const struct rows *got)
{
	for (size_t i = 0; i < wanted->count; i++) {
		struct recipe a = wanted->rules[wanted->rows[i].rule];
		struct recipe b = got->rules[rows_find(got, wanted->rows[i].address)];
		struct recipe last = got->rules[rows_find(got, wanted->rows[i].address - 1)];
		if (!is_said(&a))
			a = (struct recipe){0};
		a.source = b.source = 0;
		if (memcmp(&a, &b, sizeof a))
			fail_msg("other recipe at %llx",
				 (unsigned long long)wanted->rows[i].address);
		if (!i)
			continue;
		a = wanted->rules[wanted->rows[i - 1].rule];
		if (!is_said(&a))
			a = (struct recipe){0};
		a.source = last.source = 0;
		assert_memory_equal(&a, &last, sizeof a);
	}
}

/* ---- rows made by hand ---- */

static const struct recipe kinds[] = {
	{.cfa = RECIPE_REG, .cfa_offset = 16},
	{.cfa = RECIPE_REG, .cfa_offset = 0},
	{.cfa = RECIPE_REG, .cfa_offset = 100000},
	{.cfa = RECIPE_REG, .cfa_offset = -16},
	{.cfa = RECIPE_REG, .cfa_offset = -13},
	{.cfa = RECIPE_REG, .cfa_offset = 13, .fp = RECIPE_AT_CFA, .fp_offset = -16},
	{.cfa = RECIPE_REG, .cfa_offset = 32, .fp = RECIPE_AT_CFA, .fp_offset = 24},
	{.cfa = RECIPE_REG, .cfa_offset = 32, .fp = RECIPE_AT_CFA, .fp_offset = -13},
	{.cfa = RECIPE_REG, .cfa_offset = 32, .fp = RECIPE_AT_CFA, .fp_offset = 13},
	{.cfa = RECIPE_REG, .cfa_offset = 32, .fp = RECIPE_AT_CFA, .fp_offset = 0},
	{.cfa = RECIPE_ROOT},
	{.cfa = RECIPE_DEREF, .cfa_offset = -16, .cfa_add = 8, .fp = RECIPE_AT_FP},
	{.cfa = RECIPE_DEREF,
	 .cfa_offset = 16,
	 .cfa_add = -8,
	 .fp = RECIPE_AT_FP,
	 .fp_offset = -24},
	{.cfa = RECIPE_SIGNAL},
	{.cfa = RECIPE_DEREF, .fp = RECIPE_AT_SP, .fp_offset = 40},
	{.cfa = RECIPE_COMPLEX},
	{.cfa = RECIPE_ROOT},
	{.cfa = RECIPE_REG, .cfa_offset = 64, .fp = RECIPE_IN_REG, .fp_offset = 9},
	{.cfa = RECIPE_REG, .cfa_offset = 64, .fp = RECIPE_LOST},
	{.cfa = RECIPE_REG, .cfa_offset = INT32_MAX, .fp = RECIPE_SAME},
	{.cfa = RECIPE_REG,
	 .cfa_offset = INT32_MIN,
	 .extra = RECIPE_AT_CFA,
	 .extra_offset = INT32_MIN},
	{.cfa = RECIPE_REG, .cfa_offset = 64, .extra = RECIPE_AT_SP, .extra_offset = INT32_MAX},
	{.cfa = RECIPE_REG, .cfa_offset = 64, .extra = RECIPE_LOST},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

/* Where return addresses may be on this CPU, by turns. */
static void vary_return_address(struct recipe *r, const struct isa *isa, size_t turn)
{
	if (r->cfa != RECIPE_REG && r->cfa != RECIPE_DEREF)
		return;
	r->ra = RECIPE_AT_CFA;
	r->ra_offset = -8 * (int32_t)(turn % 5);
	if (turn % 7 == 3) {
		r->ra = RECIPE_IN_REG;
		r->ra_offset = 10;
	} else if (turn % 7 == 5 && isa->link != INSN_NO_REG) {
		r->ra = RECIPE_SAME;
		r->ra_offset = 0;
	}
}

/* Every kind of row after every other one, at many distances. */
static void fill_rows(struct rows *rows, const struct isa *isa)
{
	static const uint32_t distances[] = {4,     8,      0x3c,    0x40,   0xfc,
					     0x100, 0xfffc, 0x10000, 0x20000};
	uint64_t at = BARE_START;
	size_t turn = 0;
	rows_init(rows);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		for (size_t k = 0; k < 2 * KIND_COUNT; k++, turn++) {
			struct recipe r = kinds[k % 2 ? k / 2 : i];
			uint64_t end = at + distances[turn % 9];
			if (is_said(&r) && r.cfa != RECIPE_ROOT) {
				const uint8_t bases[] = {isa->sp, isa->fp, 11};
				r.cfa_reg = bases[turn % 3];
				vary_return_address(&r, isa, turn);
			}
			rows_add(rows, at, end, rows_rule(rows, &r));
			at = end + (turn % 11 == 0 ? 12 : 0);
		}
	}
	if (isa->link != INSN_NO_REG) {
		struct recipe r = {
			.cfa = RECIPE_REG, .cfa_reg = isa->sp, .cfa_offset = 16, .cfa_vg = 3};
		rows_add(rows, at, at + 64, rows_rule(rows, &r));
	}
	rows_finish(rows);
	assert_false(rows->failed);
}

static void every_kind_comes_back(const struct isa *isa)
{
	static const uint64_t starts[] = {BARE_START, BARE_START + 8, BARE_START + 0x200, 0x50000,
					  0x80004};
	struct image *image = bare_image(isa->elf_machine, "\0\0\0\0", 4, ROOM), *written;
	struct emit_input input = {.image = image, .starts = starts, .start_count = 5};
	struct symbols *symbols;
	struct emit_stats stats;
	struct rows rows, got;
	assert_null(symbols_read(image, NULL, &symbols));
	fill_rows(&rows, isa);
	input.rows = &rows;
	input.symbols = symbols;
	written = write_and_open(&input, &stats);
	assert_true(stats.entries > KIND_COUNT);
	assert_int_equal(stats.invented, 5);
	read_back(written, &got);
	assert_same_rows(&rows, &got);
	rows_free(&got);
	rows_free(&rows);
	image_close(written);
	symbols_free(symbols);
	image_close(image);
}

static void every_kind_x86_64(void **state)
{
	(void)state;
	every_kind_comes_back(&isa_x86_64);
}

static void every_kind_aarch64(void **state)
{
	(void)state;
	every_kind_comes_back(&isa_aarch64);
}

static void nothing_to_say(void **state)
{
	struct image *image = bare_image(EM_X86_64, "\xc3", 1, 0), *written;
	struct rows rows, got;
	struct emit_input input = {.image = image, .rows = &rows};
	struct symbols *symbols;
	struct emit_stats stats;
	(void)state;
	rows_init(&rows);
	rows_finish(&rows);
	assert_null(symbols_read(image, NULL, &symbols));
	input.symbols = symbols;
	written = write_and_open(&input, &stats);
	assert_int_equal(stats.entries, 0);
	read_back(written, &got);
	assert_int_equal(got.count, 0);
	rows_free(&got);
	rows_free(&rows);
	image_close(written);
	symbols_free(symbols);
	image_close(image);
}

/* ---- a real program ---- */

static const char program[] =
	"#include <stdio.h>\n"
	"#include <alloca.h>\n"
	"static __attribute__((noinline)) int hidden(int n) { volatile char b[64]; b[n % 64] = 1; puts(\"x\"); return b[0]; }\n"
	"__attribute__((noinline)) int visible(int n) { char *p = alloca(n); p[0] = hidden(n); puts(p); return *p; }\n"
	"int main(int c, char **v) { (void)v; return visible(c) + hidden(c + 1); }\n";

struct real {
	struct image *image, *written;
	struct symbols *symbols;
	struct analysis analysis;
	struct rows rows;
	struct emit_stats stats;
};

static struct real emit_real(const char *name, enum recipes_mode mode)
{
	struct real r;
	struct emit_input input = {0};
	assert_null(image_open(scratch(name), &r.image));
	assert_null(symbols_read(r.image, NULL, &r.symbols));
	assert_null(analysis_run(r.image, r.symbols, &r.analysis));
	rows_init(&r.rows);
	assert_null(recipes_rows(r.image, NULL, mode, &r.rows));
	input.image = r.image;
	input.symbols = r.symbols;
	input.rows = &r.rows;
	input.start_count = trace_starts(r.analysis.trace, &input.starts);
	r.written = write_and_open(&input, &r.stats);
	return r;
}

static void real_free(struct real *r)
{
	image_close(r->written);
	rows_free(&r->rows);
	analysis_free(&r->analysis);
	symbols_free(r->symbols);
	image_close(r->image);
}

static uint64_t address_of(struct image *image, const char *name)
{
	const struct symbol *all;
	struct symbols *symbols;
	uint64_t address = 0;
	size_t count;
	assert_null(symbols_read(image, NULL, &symbols));
	count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			address = all[i].address;
	symbols_free(symbols);
	return address;
}

static void real_program(void **state)
{
	static const enum recipes_mode modes[] = {RECIPES_AUTO, RECIPES_ANALYSIS, RECIPES_CFI};
	char own[2 * BUILD_ID_MAX + 1], written[2 * BUILD_ID_MAX + 1];
	(void)state;
	scratch_compile("program", program, "-O2 -Wl,--build-id");
	for (size_t i = 0; i < 3; i++) {
		struct real r = emit_real("program", modes[i]);
		const struct image_section *text = image_section(r.image, ".text"), *sections;
		size_t count = image_sections(r.written, &sections);
		struct rows got;
		bool found = false;
		read_back(r.written, &got);
		assert_same_rows(&r.rows, &got);
		rows_free(&got);
		image_build_id_hex(r.image, own);
		image_build_id_hex(r.written, written);
		assert_int_not_equal(own[0], 0);
		assert_string_equal(own, written);
		assert_int_not_equal(address_of(r.image, "visible"), 0);
		assert_int_equal(address_of(r.written, "visible"), address_of(r.image, "visible"));
		assert_int_equal(address_of(r.written, "hidden"), address_of(r.image, "hidden"));
		for (size_t k = 0; k < count; k++)
			found |= !strcmp(sections[k].name, ".text") &&
				 sections[k].type == SHT_NOBITS &&
				 sections[k].address == text->address &&
				 sections[k].size == text->size;
		assert_true(found);
		real_free(&r);
	}
}

/* Without symbols, procedures that the code calls get names by their addresses. */
static void stripped_program(void **state)
{
	uint64_t hidden;
	char name[64];
	struct image *image;
	struct real r;
	(void)state;
	scratch_compile("full", program, "-O2 -Wl,--build-id");
	if (!scratch_run("strip -o stripped full"))
		fail_msg("strip does not work");
	assert_null(image_open(scratch("full"), &image));
	hidden = address_of(image, "hidden");
	image_close(image);
	assert_int_not_equal(hidden, 0);
	r = emit_real("stripped", RECIPES_AUTO);
	snprintf(name, sizeof name, "culprit_proc_%llx", (unsigned long long)hidden);
	assert_int_equal(address_of(r.written, name), hidden);
	assert_true(r.stats.invented > 0);
	real_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_x86_64), cmocka_unit_test(every_kind_aarch64),
		cmocka_unit_test(nothing_to_say),    cmocka_unit_test(real_program),
		cmocka_unit_test(stripped_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
