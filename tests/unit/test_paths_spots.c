/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of paths go to those that fit where they were, by their counts, and nothing of them is lost or made up. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "made_graph.h"
#include "path_walker.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/spots.h"

static uint64_t state;

static uint32_t by_chance(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* Two branches, one after the other: 0 to 1 or 2, to 3, to 4 or 5, to 6. */
static struct path_function two_branches(void)
{
	static const struct pair pairs[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3},
					    {3, 4}, {3, 5}, {4, 6}, {5, 6}};
	struct path_function f = walker_function(
		"f", graph_make(7, pairs, sizeof pairs / sizeof *pairs, 16), 0);
	f.numbering.graph = &f.graph;
	assert_int_equal(f.numbering.path_count, 4);
	return f;
}

/* The number of the path that comes by both blocks. */
static uint64_t path_by(const struct path_function *f, uint32_t first, uint32_t second)
{
	struct numbering_path path = {0};
	uint64_t found = UINT64_MAX;
	for (uint64_t i = 0; i < f->numbering.path_count; i++) {
		unsigned seen = 0;
		good(numbering_decode(&f->numbering, i, &path));
		for (size_t k = 0; k < path.count; k++)
			seen += path.blocks[k] == first || path.blocks[k] == second;
		found = seen == 2 ? i : found;
	}
	numbering_path_free(&path);
	assert_true(found != UINT64_MAX);
	return found;
}

static void add(struct path_spots *s, struct path_spot spot, uint64_t value, unsigned times)
{
	while (times--)
		assert_true(path_spots_add(s, &spot, 0, value));
}

static void samples_go_where_they_fit(void **unused)
{
	(void)unused;
	struct path_function f = two_branches();
	struct path_spots s = {0};
	const uint64_t a = path_by(&f, 1, 4), b = path_by(&f, 1, 5), c = path_by(&f, 2, 4),
		       d = path_by(&f, 2, 5);
	f.counts[a] = 30;
	f.counts[b] = 10;
	f.counts[c] = 5;
	add(&s, (struct path_spot){a < b ? a : b, 2, 0}, 100, 8); /* by block 1 */
	add(&s, (struct path_spot){c < d ? c : d, 2, 0}, 100, 3); /* by block 2: only c */
	add(&s, (struct path_spot){.block = 4}, 70, 1);           /* a or c */
	add(&s, (struct path_spot){d, 1, 0}, 100, 2);             /* was not taken */
	add(&s, (struct path_spot){.block = SPOT_NO_BLOCK}, 100, 4);
	good(path_spots_give(&s, 1, &f));
	const struct path_metered *m = path_function_metered(&f, 0);
	assert_non_null(m);
	assert_int_equal(m->samples, 18);
	assert_int_equal(m->placed, 12);
	assert_int_equal(m->sure, 3);
	assert_int_equal(m->value, 1770);
	assert_int_equal(m->paths[a].value, 600 + 60);
	assert_int_equal(m->paths[b].value, 200);
	assert_int_equal(m->paths[c].value, 300 + 10);
	assert_int_equal(m->paths[d].value, 0);
	assert_int_equal(m->paths[a].sure, 0);
	assert_int_equal(m->paths[c].sure, 300);
	path_spots_free(&s);
	path_function_free(&f);
}

static void nothing_is_lost_or_made_up(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 300; round++) {
		struct path_function f = two_branches();
		struct path_spots s = {0};
		uint64_t placed = 0, given = 0;
		state = round;
		for (uint64_t i = 0; i < f.numbering.path_count; i++)
			f.counts[i] = by_chance(2) ? (uint64_t)by_chance(1 << 30) << by_chance(33)
						   : 0;
		for (unsigned k = 1 + by_chance(300); k; k--) {
			struct path_spot spot = {by_chance(4), 1 + by_chance(4), 0};
			bool fits = false;
			for (uint64_t i = spot.first; i < spot.first + spot.count && i < 4; i++)
				fits |= f.counts[i] > 0;
			uint64_t value = (uint64_t)by_chance(1 << 30) << 8;
			assert_true(path_spots_add(&s, &spot, 0, value));
			placed += fits ? value : 0;
		}
		good(path_spots_give(&s, 1, &f));
		for (uint64_t i = 0; i < 4; i++) {
			const struct path_value *v = &f.metered[0].paths[i];
			assert_true(v->sure <= v->value && (f.counts[i] || !v->value));
			given += v->value;
		}
		assert_int_equal(given, placed);
		path_spots_free(&s);
		path_function_free(&f);
	}
}

static void different_spots_are_kept_apart(void **unused)
{
	(void)unused;
	struct path_spots s = {0};
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 5000; i++)
			assert_true(path_spots_add(&s, &(struct path_spot){i / 4, i / 2 % 2, i % 2},
						   i % 3, i));
	assert_int_equal(s.count, 5000);
	for (size_t i = 0; i < s.count; i++) {
		assert_int_equal(s.totals[i].samples, 3);
		assert_int_equal(s.totals[i].value, 3 * i);
	}
	path_spots_free(&s);
}

/* Of 100 in all, for 1000 instructions. */
static void hot_paths_are_dense_or_sparse(void **unused)
{
	(void)unused;
	const struct ranking r = {.metered = {.value = 100}, .instructions = 1000};
	assert_int_equal(ranking_heat(&r, 0, 0), PATH_COLD);
	assert_int_equal(ranking_heat(&r, 50, 400), PATH_DENSE);
	assert_int_equal(ranking_heat(&r, 50, 500), PATH_SPARSE);
	assert_int_equal(ranking_heat(&r, 1, 9), PATH_DENSE);
	const struct ranking large = {.metered = {.value = 101}, .instructions = 1000};
	assert_int_equal(ranking_heat(&large, 1, 9), PATH_COLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_go_where_they_fit),
		cmocka_unit_test(nothing_is_lost_or_made_up),
		cmocka_unit_test(different_spots_are_kept_apart),
		cmocka_unit_test(hot_paths_are_dense_or_sparse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
