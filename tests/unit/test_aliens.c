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
					       .level = descriptor_level(name),
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
	assert_int_equal(descriptor_level("_ZZ1fvENKUlvE_clEv"), 1);
	assert_int_equal(descriptor_level("_ZZZ1fvENKUlvE_clEvENKUlvE_clEv"), 2);
	assert_int_equal(descriptor_level("operator()"), 1);
	assert_int_equal(descriptor_level("{closure#0}"), 1);
	assert_int_equal(descriptor_level("main::{closure#1}::{closure#0}"), 2);
	assert_int_equal(descriptor_level("_RNCNCNvCsa_4grep4main00B5_"), 2);
	assert_int_equal(descriptor_level("{closure#0}<read::Slice<Endian>>"), 1);
	assert_int_equal(descriptor_level("operator>"), 0);
	assert_int_equal(descriptor_level("{closure#0}->"), 0);
	assert_int_equal(descriptor_level("_ZN4grep4main28_$u7b$$u7b$closure$u7d$$u7d$17h0E"), 1);
	/* What a template is made with says nothing about where it is written. */
	assert_int_equal(descriptor_level("map<u8, main::{closure#0}>"), 0);
	assert_int_equal(descriptor_level("_Z1fv"), 0);
	assert_int_equal(descriptor_level("closure"), 0);
	assert_int_equal(descriptor_level("}"), 0);
	assert_int_equal(descriptor_level("closure}"), 0);
	assert_int_equal(descriptor_level("{impl#0}"), 0);
	assert_int_equal(descriptor_level(""), 0);
	assert_int_equal(descriptor_level(NULL), 0);
}

/* f 10-60, a closure in it, 20-50, and one in that, 30-35; all exist alone, the inner one also inlined. */
static void closures_are_inside_of_closures(void **state)
{
	const struct line_row outer[] = {
		{.file = 1, .line = 20}, {.file = 1, .line = 33}, {.file = 1, .line = 45}};
	const struct line_row f[] = {{.file = 1, .line = 10}, {.file = 1, .line = 55}};
	struct descriptors d = {0};
	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 20, "f::{closure#0}", true);
	add(&d, 1, 30, "f::{closure#0}::{closure#0}", false);
	add(&d, 1, 70, "g", true);
	assert_true(descriptors_finish(&d));
	descriptors_see_ends(&d, 1, 10, f, 2);
	descriptors_see_ends(&d, 1, 20, outer, 3);
	descriptors_see_nests(&d, 1, 10, f, 2);
	descriptors_see_nests(&d, 1, 20, outer, 3);
	assert_string_equal(owner(&d, 1, 30), "f::{closure#0}::{closure#0}");
	assert_string_equal(owner(&d, 1, 45), "f::{closure#0}");
	assert_string_equal(owner(&d, 1, 55), "f");
	assert_string_equal(owner(&d, 1, 70), "g");
	descriptors_free(&d);
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
	struct descriptors d = {0};
	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 14, "guard", false);
	add(&d, 1, 18, "other", false);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	descriptors_see_return(&d, 1, 11, 99); /* nothing begins there */
	assert_string_equal(owner(&d, 1, 25), "other");
	descriptors_see_return(&d, 1, 10, 25);
	assert_string_equal(owner(&d, 1, 18), "other");
	assert_string_equal(owner(&d, 1, 25), "f");
	assert_string_equal(owner(&d, 1, 16), "f");
	assert_string_equal(owner(&d, 1, 31), "g");
	descriptors_free(&d);
}

/* f 10-60: a function inside of it at the end, 40-58, one at the beginning, 12-20, both inlined only. */
static void functions_inside_stand_at_an_end(void **state)
{
	const struct line_row f[] = {{.file = 1, .line = 10}, {.file = 1, .line = 30}};
	struct descriptors d = {0};
	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 12, "first", false);
	add(&d, 1, 110, "g", true);
	add(&d, 1, 140, "last", false);
	assert_true(descriptors_finish(&d));
	descriptors_see_ends(&d, 1, 10, f, 2);
	descriptors_see_ends(&d, 1, 110, (const struct line_row[]){{.file = 1, .line = 130}}, 1);
	descriptors_see_return(&d, 1, 10, 60);
	descriptors_see_return(&d, 1, 110, 160);
	assert_string_equal(owner(&d, 1, 12), "first");
	assert_string_equal(owner(&d, 1, 30), "f"); /* where `first` ends is not known */
	assert_string_equal(owner(&d, 1, 60), "f");
	assert_string_equal(owner(&d, 1, 130), "g");
	assert_string_equal(owner(&d, 1, 158), "last");
	assert_string_equal(owner(&d, 1, 160), "g");
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
	const uint32_t wanted[] = {0, 5, 7, 0, 5, 7};
	struct descriptors d = {0};
	(void)state;
	add(&d, 1, 10, "f", true);
	add(&d, 1, 30, "g", true);
	assert_true(descriptors_finish(&d));
	assert_true(d.gaps);
	descriptors_see_return(&d, 1, 10, 18);
	expect_marks(&d, pieces, 6, wanted);
	descriptors_free(&d);
}

/* f 10-, g 30-, h 50- in file 1, k 5- in file 2. */
static void expect_marks_of_four(struct weave_piece *pieces, size_t count, const uint32_t *wanted)
{
	struct descriptors d = {0};
	add(&d, 1, 10, "f", true);
	add(&d, 1, 30, "g", true);
	add(&d, 1, 50, "h", false);
	add(&d, 2, 5, "k", true);
	assert_true(descriptors_finish(&d));
	expect_marks(&d, pieces, count, wanted);
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
		{.line = 0, .leads = true}, /* nothing comes from before, but g goes on */
		{.file = 1, .line = 34, .leads = true},
		{.line = 0}, /* goes on in the block, whatever comes then */
		{.file = 1, .line = 13},
		{.file = 1, .line = 51},
		{.line = 0, .leads = true}, /* h again: called twice */
		{.file = 1, .line = 51},
		{.line = 0, .leads = true, .follows = true}, /* the procedure behind it */
		{.file = 1, .line = 14},
	};
	const uint32_t wanted[] = {0, 0, 30, 30, 30, 30, 30, 30, 30, 30, 0, 50, 0, 50, 0, 0};
	(void)state;
	expect_marks_of_four(pieces, 16, wanted);
}

/* A function that is seen before and behind, and went on, is around. */
static void code_without_lines_is_in_what_goes_on(void **state)
{
	struct weave_piece pieces[] = {
		{.file = 1, .line = 31},
		{.file = 1, .line = 51},
		{.line = 0, .leads = true, .follows = true}, /* from h to k, in g */
		{.line = 0, .leads = true},
		{.file = 2, .line = 6},
		{.file = 1, .line = 33},
		{.file = 1, .line = 12},
		{.file = 1, .line = 31},
		{.file = 1, .line = 51},
		{.line = 0, .leads = true, .follows = true}, /* g is only called again */
		{.file = 2, .line = 6},
		{.file = 1, .line = 31},
		{.line = 0, .leads = true, .follows = true}, /* own code is between g and g */
		{.file = 2, .line = 6},
		{.file = 1, .line = 12},
		{.file = 1, .line = 33},
	};
	const uint32_t wanted[] = {30, 50, 30, 30, 5, 30, 0, 30, 50, 0, 5, 30, 0, 5, 0, 30};
	(void)state;
	expect_marks_of_four(pieces, 16, wanted);
}

/* The file of code that was made of several places is that of the function around them. */
static void code_without_lines_has_a_file(void **state)
{
	struct weave_piece pieces[] = {
		{.file = 1, .line = 31},
		{.file = 1, .placed = true}, /* g before and behind, in its file */
		{.file = 1, .line = 32},
		{.file = 2, .placed = true}, /* another file */
		{.file = 2, .line = 6},
		{.file = 1, .placed = true}, /* not k, which is in another file */
		{.file = 2, .line = 7},
		{.file = 1, .line = 12},
		{.file = 2, .placed = true}, /* k, although own code is around */
		{.file = 1, .line = 13},
		{.file = 3, .placed = true}, /* nothing is known of this file */
	};
	const uint32_t wanted[] = {30, 30, 30, 5, 5, 0, 5, 0, 5, 0, 0};
	(void)state;
	expect_marks_of_four(pieces, 11, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_procedure_ends_where_the_next_begins),
		cmocka_unit_test(instances_of_a_template_are_one),
		cmocka_unit_test(names_tell_what_is_nested),
		cmocka_unit_test(closures_are_inside_of_closures),
		cmocka_unit_test(what_goes_on_behind_is_around),
		cmocka_unit_test(a_closure_is_seen_elsewhere),
		cmocka_unit_test(returns_show_the_end),
		cmocka_unit_test(functions_inside_stand_at_an_end),
		cmocka_unit_test(lines_of_others_are_alien),
		cmocka_unit_test(gaps_are_of_nobody_known),
		cmocka_unit_test(code_without_lines_belongs_to_its_surroundings),
		cmocka_unit_test(code_without_lines_is_in_what_goes_on),
		cmocka_unit_test(code_without_lines_has_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
