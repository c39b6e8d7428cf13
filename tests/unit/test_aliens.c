/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "image/lines.h"
#include "structure/aliens.h"
#include "structure/descriptors.h"
#include "unit.h"

static void add(struct descriptors *d, uint32_t file, uint32_t line, const char *name, bool code)
{
	descriptors_add(d, (struct descriptor){.file = file,
					       .line = line,
					       .name = name,
					       .plain = "plain",
					       .nested = descriptor_is_nested(name),
					       .code = code});
}

static const char *owner(const struct descriptors *d, uint32_t file, uint32_t line)
{
	uint32_t x = descriptors_owner(d, file, line);

	return x == OWNER_NONE ? "-" : d->items[x].name;
}

static void a_procedure_ends_where_the_next_begins(void **state)
{
	struct descriptors d = {0};

	(void)state;
	add(&d, 2, 50, "h", true);
	add(&d, 1, 30, "g", false);
	add(&d, 1, 10, "f", true);
	assert_true(descriptors_finish(&d));
	assert_string_equal(owner(&d, 1, 9), "-");
	assert_string_equal(owner(&d, 1, 10), "f");
	assert_string_equal(owner(&d, 1, 29), "f");
	assert_string_equal(owner(&d, 1, 30), "g");
	assert_string_equal(owner(&d, 1, 4000000000u), "g");
	assert_string_equal(owner(&d, 2, 49), "-");
	assert_string_equal(owner(&d, 2, 51), "h");
	assert_string_equal(owner(&d, 3, 51), "-");
	assert_int_equal(descriptors_at(&d, 1, 30), 1);
	assert_int_equal(descriptors_at(&d, 1, 31), OWNER_NONE);
	descriptors_free(&d);
}

static void instances_of_a_template_are_one(void **state)
{
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "_Z1fIiEvT_", true);
	add(&d, 1, 10, "_Z1fIdEvT_", true);
	add(&d, 1, 20, "_Z1gv", true);
	add(&d, 1, 20, "_Z1gv", false);
	assert_true(descriptors_finish(&d));
	assert_int_equal(d.count, 2);
	assert_string_equal(d.items[0].name, "plain");
	assert_string_equal(d.items[1].name, "_Z1gv");
	descriptors_free(&d);
}

static void names_tell_what_is_nested(void **state)
{
	(void)state;
	assert_true(descriptor_is_nested("_ZZ1fvENKUlvE_clEv"));
	assert_true(descriptor_is_nested("operator()"));
	assert_true(descriptor_is_nested("{closure#0}"));
	assert_true(descriptor_is_nested("_ZN4grep4main28_$u7b$$u7b$closure$u7d$$u7d$17h0E"));
	assert_false(descriptor_is_nested("_Z1fv"));
	assert_false(descriptor_is_nested("closure"));
	assert_false(descriptor_is_nested(NULL));
}

/* f 10-20 with a method of a local class in it, 12-14, that exists as a procedure of its own. */
static void what_goes_on_behind_is_around(void **state)
{
	const struct line_row f[] = {
		{.file = 1, .line = 10}, {.file = 1, .line = 13}, {.file = 1, .line = 18}};
	const struct line_row x[] = {
		{.file = 1, .line = 12}, {.file = 1, .line = 14}, {.file = 2, .line = 900}};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 12, "x", true);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	assert_string_equal(owner(&d, 1, 18), "x"); /* nothing was seen yet */
	descriptors_see_ends(&d, 1, 10, f, 3);
	descriptors_see_ends(&d, 1, 12, x, 3);
	descriptors_see_nests(&d, 1, 10, f, 3);
	descriptors_see_nests(&d, 1, 12, x, 3);
	assert_string_equal(owner(&d, 1, 11), "f");
	assert_string_equal(owner(&d, 1, 12), "x");
	assert_string_equal(owner(&d, 1, 14), "x");
	assert_string_equal(owner(&d, 1, 15), "f");
	assert_string_equal(owner(&d, 1, 18), "f");
	assert_string_equal(owner(&d, 1, 31), "g");
	descriptors_free(&d);
}

/* A closure that was inlined everywhere: its lines are those seen where nothing of f is. */
static void a_closure_is_seen_elsewhere(void **state)
{
	const struct line_row sort[] = {{.file = 2, .line = 6}, {.file = 1, .line = 13}};
	const struct line_row f[] = {
		{.file = 1, .line = 10}, {.file = 1, .line = 13}, {.file = 1, .line = 15}};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 12, "{closure#0}", false);
	add(&d, 2, 5, "sort", true);
	assert_true(descriptors_finish(&d));
	descriptors_see_ends(&d, 1, 10, f, 3);
	descriptors_see_ends(&d, 2, 5, sort, 2);
	descriptors_see_nests(&d, 1, 10, f, 3);
	descriptors_see_nests(&d, 2, 5, sort, 2);
	assert_string_equal(owner(&d, 1, 13), "{closure#0}");
	assert_string_equal(owner(&d, 1, 14), "f");
	descriptors_free(&d);
}

/* A procedure returns from its own last line, whatever begins before that. */
static void returns_show_the_end(void **state)
{
	const struct line_row end = {.file = 1, .line = 25}, elsewhere = {.file = 2, .line = 99};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 14, "guard", false);
	add(&d, 1, 18, "other", false);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	descriptors_see_return(&d, 1, 10, &elsewhere);
	assert_string_equal(owner(&d, 1, 25), "other");
	descriptors_see_return(&d, 1, 10, &end);
	assert_string_equal(owner(&d, 1, 18), "other");
	assert_string_equal(owner(&d, 1, 25), "f");
	assert_string_equal(owner(&d, 1, 16), "f");
	assert_string_equal(owner(&d, 1, 31), "g");
	descriptors_free(&d);
}

/* Marks pieces with these lines of file 1 (0: without line) and compares contexts by their lines. */
static void expect_marks(const struct descriptors *d, struct weave_piece *pieces, size_t count,
			 const uint32_t *wanted)
{
	struct weave_context *contexts;
	size_t context_count;

	for (size_t i = 0; i < count; i++)
		pieces[i].start = 4 * i, pieces[i].end = 4 * i + 4, pieces[i].loop = WEAVE_NONE,
		pieces[i].known = pieces[i].line != 0;
	assert_true(aliens_mark(d, 1, 10, pieces, count, &contexts, &context_count));
	for (size_t i = 0; i < count; i++) {
		assert_true(pieces[i].context < context_count);
		assert_int_equal(contexts[pieces[i].context].line, wanted[i]);
	}
	free(contexts);
}

static void lines_of_others_are_alien(void **state)
{
	struct weave_piece pieces[] = {{.file = 1, .line = 12}, {.file = 1, .line = 31},
				       {.file = 1, .line = 5},  {.file = 3, .line = 7},
				       {.file = 2, .line = 60}, {.file = 1, .line = 30},
				       {.file = 1, .line = 19}};
	/* Line 5 stands before all procedures, file 3 has none: put in by the preprocessor. */
	const uint32_t wanted[] = {0, 30, 0, 0, 50, 30, 0};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 30, "g", true);
	add(&d, 2, 50, "h", false);
	assert_true(descriptors_finish(&d));
	expect_marks(&d, pieces, 7, wanted);
	descriptors_free(&d);
}

/* Only procedures with code are known: what no other procedure can have is of an unknown one. */
static void gaps_are_of_nobody_known(void **state)
{
	struct weave_piece pieces[] = {{.file = 1, .line = 12}, {.file = 1, .line = 5},
				       {.file = 3, .line = 7},  {.file = 1, .line = 18},
				       {.file = 1, .line = 22}, {.file = 3, .line = 9}};
	const struct line_row end = {.file = 1, .line = 18};
	const uint32_t wanted[] = {0, 5, 7, 0, 5, 7};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	assert_true(d.gaps);
	descriptors_see_return(&d, 1, 10, &end);
	expect_marks(&d, pieces, 6, wanted);
	descriptors_free(&d);
}

static void code_without_lines_belongs_to_its_surroundings(void **state)
{
	struct weave_piece pieces[] = {
		{.file = 1, .line = 12},
		{.line = 0}, /* after the procedure's own */
		{.file = 1, .line = 31},
		{.line = 0}, /* goes on in the block */
		{.file = 1, .line = 32},
		{.line = 0, .leads = true, .follows = true}, /* g before and behind */
		{.file = 1, .line = 33},
		{.line = 0, .leads = true}, /* nothing comes from before */
		{.file = 1, .line = 34, .leads = true},
	};
	const uint32_t wanted[] = {0, 0, 30, 30, 30, 30, 30, 0, 30};
	struct descriptors d = {0};

	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	expect_marks(&d, pieces, 9, wanted);
	descriptors_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_procedure_ends_where_the_next_begins),
		cmocka_unit_test(instances_of_a_template_are_one),
		cmocka_unit_test(names_tell_what_is_nested),
		cmocka_unit_test(what_goes_on_behind_is_around),
		cmocka_unit_test(a_closure_is_seen_elsewhere),
		cmocka_unit_test(returns_show_the_end),
		cmocka_unit_test(lines_of_others_are_alien),
		cmocka_unit_test(gaps_are_of_nobody_known),
		cmocka_unit_test(code_without_lines_belongs_to_its_surroundings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
