/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by their samples, and those that are chosen by them: in a profile of this program, made up. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/hottest.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "paths/choice.h"
#include "paths/hot.h"
#include "paths/result.h"
#include "profile/profile.h"
#include "scratch.h"

__attribute__((noinline)) int hot_first(int n);
__attribute__((noinline)) int hot_second(int n);
__attribute__((noinline)) int hot_third(int n);

static volatile int sink;

int hot_first(int n)
{
	sink += n;
	return sink * 3;
}

int hot_second(int n)
{
	sink -= n;
	return sink * 5;
}

int hot_third(int n)
{
	sink ^= n;
	return sink * 7;
}

enum { OTHER = 1, SELF };             /* modules */
enum { FAULTS, CLOCK };               /* metrics */
static uint64_t first, second, third; /* addresses of the functions */
static char self[4096], id[2 * BUILD_ID_MAX + 1];

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void fails(struct err *e, const char *part)
{
	assert_non_null(e);
	if (!strstr(err_text(e), part))
		fail_msg("'%s' is not in: %s", part, err_text(e));
	err_free(e);
}

static uint64_t address_of(const struct symbols *symbols, const char *name)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return all[i].address;
	fail_msg("no symbol %s", name);
	return 0;
}

static int know_self(void **unused)
{
	struct image *image;
	struct symbols *symbols;
	(void)unused;
	assert_non_null(realpath("/proc/self/exe", self));
	good(image_open(self, &image));
	image_build_id_hex(image, id);
	good(symbols_read(image, NULL, &symbols));
	first = address_of(symbols, "hot_first");
	second = address_of(symbols, "hot_second");
	third = address_of(symbols, "hot_third");
	symbols_free(symbols);
	image_close(image);
	assert_int_equal(hot_first(0) + hot_second(0) + hot_third(0), 0);
	return 0;
}

/* ---- the profile ---- */

static void sample(struct profile *p, uint32_t module, enum profile_node_kind kind,
		   uint64_t address, uint32_t metric, uint64_t count)
{
	uint32_t node;
	good(profile_child(p, 0, kind, module, address, &node));
	good(profile_count(p, node, 0, metric, count));
}

/* Of 1000 samples, 800 are in this program: 500 in the second function, 250 in the first, 40 in the third, 10 in none. */
static struct profile *recorded(const char *build_id)
{
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	good(profile_add_module(p,
				&(struct profile_module){.kind = PROFILE_FILE,
							 .path = "/nowhere/libother.so.1",
							 .build_id = "",
							 .problem = ""},
				&index));
	good(profile_add_module(
		p,
		&(struct profile_module){
			.kind = PROFILE_FILE, .path = self, .build_id = build_id, .problem = ""},
		&index));
	for (int i = 0; i < 2; i++)
		good(profile_add_metric(p,
					&(struct profile_metric){.name = i ? "cpu-clock" : "faults",
								 .unit = i ? "ns" : "faults",
								 .period = 1},
					&index));
	good(profile_add_process(
		p, &(struct profile_process){.name = "test_hottest", .command = self, .rank = -1},
		&index));
	good(profile_add_thread(p, &(struct profile_thread){.name = "main"}, &index));
	sample(p, OTHER, PROFILE_EXACT, first, CLOCK, 200);
	sample(p, SELF, PROFILE_EXACT, first, CLOCK, 100);
	sample(p, SELF, PROFILE_EXACT, first + 1, CLOCK, 150);
	sample(p, SELF, PROFILE_EXACT, second + 4, CLOCK, 499);
	sample(p, SELF, PROFILE_CALL, second + 1, CLOCK, 1); /* a call at its first byte */
	sample(p, SELF, PROFILE_EXACT, third, CLOCK, 40);
	sample(p, SELF, PROFILE_EXACT, 1, CLOCK, 10);
	sample(p, SELF, PROFILE_EXACT, third, FAULTS, 5000);
	p->complete = true;
	good(profile_settle(p));
	return p;
}

static void functions_by_samples(void **unused)
{
	(void)unused;
	const bool wanted[] = {false, false, true};
	struct profile *p = recorded(id);
	struct hottest h;
	good(hottest_make(p, wanted, &h));
	assert_int_equal(h.all, 1000);
	assert_int_equal(h.samples, 800);
	assert_int_equal(h.count, 3);
	const struct hot_function expected[] = {{SELF, second, (char *)"hot_second", 500},
						{SELF, first, (char *)"hot_first", 250},
						{SELF, third, (char *)"hot_third", 40}};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(h.functions[i].module, expected[i].module);
		assert_int_equal(h.functions[i].entry, expected[i].entry);
		assert_int_equal(h.functions[i].samples, expected[i].samples);
		assert_string_equal(h.functions[i].name, expected[i].name);
	}
	hottest_free(&h);
	profile_free(p);
}

static void files_must_be_the_same(void **unused)
{
	(void)unused;
	const bool wanted[] = {false, false, true}, other[] = {false, true, false};
	struct profile *p = recorded("0123");
	struct hottest h;
	fails(hottest_make(p, wanted, &h), "has changed since it was recorded");
	assert_null(h.functions);
	fails(hottest_make(p, other, &h), "/nowhere/libother.so.1");
	p->metrics[CLOCK].name = "page-faults";
	fails(hottest_make(p, wanted, &h), "no samples of CPU time");
	profile_free(p);
}

/* ---- the choice ---- */

static void add(struct path_result *r, uint64_t entry, enum path_state state)
{
	struct path_function f = {.name = strdup("f"),
				  .module = strdup(self),
				  .address = entry,
				  .state = (uint8_t)state,
				  .reason = "a reason"};
	good(path_result_add(r, &f));
}

static void check_told(const struct path_hot *hot, const struct path_result *r, const char *wanted)
{
	struct buf out = {0};
	path_hot_tell(hot, r, &out);
	assert_string_equal(buf_text(&out) + strcspn(buf_text(&out), ":"), wanted);
	buf_free(&out);
}

static bool has(const struct path_hot *hot, uint64_t entry)
{
	const struct path_choice choice = {.places = hot->places, .place_count = hot->count};
	assert_false(path_choice_has_place(&choice, "/nowhere/libother.so.1", entry));
	assert_false(path_choice_has_module(&choice, "/nowhere/libother.so.1", true));
	assert_true(path_choice_has_module(&choice, self, true));
	assert_false(path_choice_has_module(&choice, self, false));
	return path_choice_has_place(&choice, self, entry);
}

static void as_many_as_cover(void **unused)
{
	(void)unused;
	static const struct {
		double cover;
		size_t count;
	} cases[] = {{0.1, 1}, {62, 1}, {63, 2}, {93.75, 2}, {94, 3}, {100, 3}};
	const char *file = scratch("hot.prof");
	struct profile *p = recorded(id);
	good(profile_write(p, file));
	profile_free(p);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct path_hot hot;
		good(path_hot_open(file, cases[i].cover, &(struct path_choice){0}, &hot));
		assert_int_equal(hot.count, cases[i].count);
		assert_true(has(&hot, second));
		assert_int_equal(has(&hot, first), hot.count > 1);
		assert_int_equal(has(&hot, third), hot.count > 2);
		assert_false(has(&hot, first + 1));
		path_hot_close(&hot);
	}
	struct path_hot hot;
	struct path_result r = {0};
	good(path_hot_open(file, 100, &(struct path_choice){0}, &hot));
	add(&r, first, PATH_REFUSED);
	add(&r, second, PATH_REFUSED); /* in one program only */
	add(&r, second, PATH_EXACT);
	check_told(&hot, &r,
		   ": 79.0% of its samples of CPU time, 98.8% of those in the chosen modules\n"
		   "1 of these, with 25.0%, was refused\n"
		   "1 of these, with 4.0%, was not met, or left alone\n");
	path_result_free(&r);
	path_hot_close(&hot);
}

static void what_there_is_to_choose_from(void **unused)
{
	(void)unused;
	const char *file = scratch("choice.prof");
	struct profile *p = recorded(id);
	struct path_hot hot;
	regex_t pattern;
	const char *const libraries[] = {"libnone"};
	good(profile_write(p, file));
	assert_int_equal(regcomp(&pattern, "third$", REG_EXTENDED | REG_NOSUB), 0);
	struct path_choice choice = {.functions = &pattern, .function_count = 1};
	good(path_hot_open(file, 50, &choice, &hot));
	assert_int_equal(hot.count, 1);
	assert_true(has(&hot, third));
	path_hot_close(&hot);
	regfree(&pattern);
	assert_int_equal(regcomp(&pattern, "nothing$", REG_EXTENDED | REG_NOSUB), 0);
	fails(path_hot_open(file, 50, &choice, &hot), "no function with samples matches");
	path_hot_close(&hot);
	regfree(&pattern);
	choice = (struct path_choice){.modules = libraries, .module_count = 1};
	fails(path_hot_open(file, 50, &choice, &hot), "no samples of CPU time in these modules");
	path_hot_close(&hot);
	fails(path_hot_open("/nowhere/none.prof", 50, &choice, &hot), "/nowhere/none.prof");
	path_hot_close(&hot);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_by_samples),
		cmocka_unit_test(files_must_be_the_same),
		cmocka_unit_test(as_many_as_cover),
		cmocka_unit_test(what_there_is_to_choose_from),
	};
	return cmocka_run_group_tests(tests, know_self, NULL);
}
