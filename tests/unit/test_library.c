/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are made in the background, and lists that are forgotten. */
#include "scratch.h"

#include "base/err.h"
#include "collect/library.h"
#include "process/maps.h"
#include "process/registers.h"

#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct library *open_library(void)
{
	struct library *l;

	setenv("XDG_CACHE_HOME", scratch("cache"), 1);
	assert_null(library_open(RECIPES_AUTO, true, NULL, &l));
	assert_null(library_set_background(l, false));
	return l;
}

/* What this process has, as soon as its tables are there. */
static const struct library_list *look(struct library *l)
{
	const struct library_list *list = NULL;

	for (int i = 0; i < 100 && !list; i++) {
		unsigned builds = library_builds(l);

		assert_null(library_look(l, getpid(), native_machine, &list, NULL));
		assert_int_equal(library_was_unready(l), !list);
		while (!list && library_builds(l) == builds)
			library_wait(l, UINT64_MAX / 2);
	}
	assert_non_null(list);
	return list;
}

static size_t count_tables(struct library *l, const struct library_list *list)
{
	size_t count = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		const struct library_module *m = library_module(l, list->modules[i].id);

		count += m && m->state == LIBRARY_READY && m->table.page_count;
	}
	return count;
}

/* Nobody waits for a table. */
static void makes_tables_in_the_background(void **state)
{
	struct library *l = open_library();
	const struct library_list *list = NULL;
	uint64_t start = now_ns();

	(void)state;
	assert_null(library_look(l, getpid(), native_machine, &list, NULL));
	assert_null(list);
	assert_true(now_ns() - start < 10000000000u);
	assert_true(library_is_unready(l) && library_is_building(l));
	assert_true(library_was_unready(l));
	assert_false(library_is_unready(l));
	list = look(l);
	assert_true(count_tables(l, list) >= 2); /* of the program and the C library */
	assert_ptr_equal(look(l), list);
	assert_true(
		walk_find_module(&(struct walk_space){library_walk(l, list).modules, list->count},
				 (uint64_t)(uintptr_t)look) != NULL);
	library_close(l);
}

/* What is not in use is given back, and made again when it is. */
static void forgets_what_is_not_used(void **state)
{
	struct library *l = open_library();
	const struct library_list *list = look(l);
	uint32_t id = list->modules[0].id;
	size_t tables = count_tables(l, list);

	(void)state;
	assert_false(library_has_many(l));
	library_use(list);
	library_forget_unused(l);
	assert_ptr_equal(look(l), list);
	assert_int_equal(library_module(l, id)->state, LIBRARY_READY);
	library_forget_unused(l);
	assert_int_equal(library_module(l, id)->state, LIBRARY_DROPPED);
	assert_int_equal(library_module(l, id)->table.page_count, 0);
	list = look(l);
	assert_int_equal(list->modules[0].id, id); /* it is known by the same number */
	assert_int_equal(count_tables(l, list), tables);
	library_close(l);
}

/* Many processes of the same program, each at addresses of its own. */
static void lists_are_bounded(void **state)
{
	struct library *l = open_library();
	struct maps maps;
	const struct library_list *first = look(l);
	size_t made = 0, sweeps = 0;

	(void)state;
	assert_null(maps_read(getpid(), &maps));
	for (unsigned i = 0; i < 20000; i++) {
		const struct library_list *list;

		for (size_t k = 0; k < maps.count; k++) {
			maps.items[k].start += 4096;
			maps.items[k].end += 4096;
		}
		assert_null(library_look_at(l, getpid(), &maps, &list, NULL));
		made += list && list != first;
		if (!library_has_many(l))
			continue;
		library_use(first); /* so that tables stay */
		library_forget_unused(l);
		assert_false(library_has_many(l));
		sweeps++;
	}
	assert_int_equal(made, 20000);
	assert_true(sweeps >= 10);
	maps_free(&maps);
	library_close(l);
}

/* At the end nobody waits for what is not ready: it has no table then. */
static void can_be_hurried(void **state)
{
	struct library *l = open_library();
	const struct library_list *list = NULL;
	unsigned builds = library_builds(l);

	(void)state;
	assert_null(library_look(l, getpid(), native_machine, &list, NULL));
	assert_null(list);
	library_wait(l, 0);
	assert_int_not_equal(library_builds(l), builds);
	assert_null(library_look(l, getpid(), native_machine, &list, NULL));
	assert_non_null(list);
	while (library_is_building(l)) /* so that nothing is left running */
		library_builds(l);
	library_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_tables_in_the_background),
		cmocka_unit_test(forgets_what_is_not_used),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(can_be_hurried),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
