/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that is set while spans of time are told. */
#include "unit.h"

#include "daemon/wall.h"

#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)
#define YEAR (365 * 24 * HOUR)
#define START INT64_C(1794700800000)

static struct wall_time at(int64_t since_ms, int64_t set_ms)
{
	return (struct wall_time){START + since_ms + set_ms, (uint64_t)(500 + since_ms) * 1000000u};
}

static void expect_span(struct wall *w, struct wall_time now, int64_t length_ms, int64_t start,
			int64_t end)
{
	int64_t from, to;
	wall_span(w, now, (uint64_t)length_ms * 1000000u, &from, &to);
	assert_int_equal(from - START, start);
	assert_int_equal(to - START, end);
}

static void spans_follow_each_other(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, at(0, 0), INT64_MIN);
	expect_span(&w, at(60 * SECOND, 0), 60 * SECOND, 0, 60 * SECOND);
	assert_int_equal(wall_set(&w, at(60 * SECOND, 0)), 0);
	/* A clock that is corrected on the way makes a span shorter or leaves a gap, never a lap. */
	assert_int_equal(wall_set(&w, at(90 * SECOND, -400)), 0);
	expect_span(&w, at(120 * SECOND, -400), 60 * SECOND, 60 * SECOND, 120 * SECOND - 400);
	assert_int_equal(wall_set(&w, at(150 * SECOND, 300)), 0);
	expect_span(&w, at(180 * SECOND, 300), 60 * SECOND, 120 * SECOND + 300, 180 * SECOND + 300);
	/* To the millisecond, whatever is rounded. */
	int64_t from, to;
	wall_span(&w, at(181 * SECOND, 300), UINT64_C(999400000), &from, &to);
	assert_int_equal(from - START, 180 * SECOND + 300);
	assert_int_equal(wall_set(&w, at(180 * SECOND, 300)), 0);
	w.end_ms = START + 180 * SECOND + 300;
	/* Not even where the span is as short as the correction. */
	assert_int_equal(wall_set(&w, at(180 * SECOND + 100, -300)), 0);
	expect_span(&w, at(180 * SECOND + 100, -300), 100, 180 * SECOND + 300, 180 * SECOND + 300);
}

static void a_clock_that_is_set_is_told(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, at(0, 0), INT64_MIN);
	expect_span(&w, at(60 * SECOND, 0), 60 * SECOND, 0, 60 * SECOND);
	assert_int_equal(wall_set(&w, at(61 * SECOND, HOUR)), HOUR);
	assert_int_equal(wall_set(&w, at(62 * SECOND, HOUR)), 0);
	expect_span(&w, at(90 * SECOND, HOUR), 30 * SECOND, 60 * SECOND + HOUR, 90 * SECOND + HOUR);
	assert_int_equal(wall_set(&w, at(91 * SECOND, -HOUR)), -2 * HOUR);
	/* On the new clock it was before all others, and is as long as ever. */
	expect_span(&w, at(120 * SECOND, -HOUR), 30 * SECOND, 90 * SECOND - HOUR,
		    120 * SECOND - HOUR);
	/* Before 1970, even. */
	assert_int_equal(wall_set(&w, at(121 * SECOND, -2 * START)), HOUR - 2 * START);
	expect_span(&w, at(150 * SECOND, -2 * START), 30 * SECOND, 120 * SECOND - 2 * START,
		    150 * SECOND - 2 * START);
}

/* A slow drift is followed, however far it goes. */
static void drift_is_not_a_clock_that_is_set(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, at(0, 0), INT64_MIN);
	for (int64_t i = 1; i < 10000; i++)
		assert_int_equal(wall_set(&w, at(i * 100, i * 10)), 0);
}

static void nothing_is_old_at_once(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, at(0, 0), START - HOUR);
	assert_int_equal(wall_age_ms(&w, at(0, 0)), START);
	assert_int_equal(wall_set(&w, at(SECOND, YEAR)), YEAR);
	assert_int_equal(wall_age_ms(&w, at(SECOND, YEAR)), START + SECOND);
	assert_int_equal(wall_age_ms(&w, at(HOUR, YEAR)), START + HOUR);
	assert_int_equal(wall_age_ms(&w, at(HOUR + SECOND, YEAR)), START + HOUR + SECOND + YEAR);
	/* It was a mistake, and is corrected in time. */
	assert_int_equal(wall_set(&w, at(2 * HOUR, 3 * YEAR)), 2 * YEAR);
	assert_int_equal(wall_set(&w, at(2 * HOUR + SECOND, 0)), -3 * YEAR);
	assert_int_equal(wall_age_ms(&w, at(2 * HOUR + SECOND, 0)), START + 2 * HOUR + SECOND);
}

/* A machine whose clock stands wrong when it is switched on. */
static void nothing_is_old_when_it_starts(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, at(0, YEAR), START - HOUR);
	assert_int_equal(wall_age_ms(&w, at(0, YEAR)), START - HOUR);
	assert_int_equal(wall_set(&w, at(30 * SECOND, 0)), -YEAR);
	assert_in_range(wall_age_ms(&w, at(30 * SECOND, 0)), START - 2 * HOUR, START + 30 * SECOND);
	assert_int_equal(wall_age_ms(&w, at(2 * HOUR, 0)), START + 2 * HOUR);
	wall_start(&w, at(0, 0), START + YEAR);
	assert_int_equal(wall_age_ms(&w, at(0, 0)), START);
}

static void both_clocks_are_read_at_one_moment(void **state)
{
	struct wall w;
	(void)state;
	wall_start(&w, wall_now(), INT64_MIN);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(wall_set(&w, wall_now()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_follow_each_other),
		cmocka_unit_test(a_clock_that_is_set_is_told),
		cmocka_unit_test(drift_is_not_a_clock_that_is_set),
		cmocka_unit_test(nothing_is_old_at_once),
		cmocka_unit_test(nothing_is_old_when_it_starts),
		cmocka_unit_test(both_clocks_are_read_at_one_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
