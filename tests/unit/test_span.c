/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "store/span.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

/* Sunday, 15 November 2026, 12:30 in UTC. */
#define NOW INT64_C(1794745800000)
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define TODAY (NOW - 12 * HOUR - 30 * MINUTE)

static void set_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void is(const char *text, int64_t from, int64_t to)
{
	int64_t got_from, got_to;
	struct err *e = span_parse(text, NOW, &got_from, &got_to);
	if (e)
		fail_msg("'%s': %s", text, err_text(e));
	if (got_from != from || got_to != to)
		fail_msg("'%s' is %lld to %lld, not %lld to %lld", text, (long long)got_from,
			 (long long)got_to, (long long)from, (long long)to);
}

static void is_not(const char *text, const char *why)
{
	int64_t from, to;
	struct err *e = span_parse(text, NOW, &from, &to);
	if (!e || !strstr(err_text(e), why))
		fail_msg("'%s' gives: %s", text, e ? err_text(e) : "no error");
	err_free(e);
}

static void days(void **state)
{
	(void)state;
	set_zone("UTC");
	is("today", TODAY, TODAY + DAY);
	is("Yesterday", TODAY - DAY, TODAY);
	is("2026-11-14", TODAY - DAY, TODAY);
	is(" 2026-11-14 ", TODAY - DAY, TODAY);
	is("2026-11-10..2026-11-12", TODAY - 5 * DAY, TODAY - 2 * DAY);
	is("2026-11-14..yesterday", TODAY - DAY, TODAY);
}

static void parts_of_days(void **state)
{
	(void)state;
	set_zone("UTC");
	is("yesterday 14:00-15:00", TODAY - 10 * HOUR, TODAY - 9 * HOUR);
	is("yesterday 14:00 - 15:00", TODAY - 10 * HOUR, TODAY - 9 * HOUR);
	is("2026-11-14 14:00..15:00", TODAY - 10 * HOUR, TODAY - 9 * HOUR);
	is("2026-11-14T14:00:30..15:00", TODAY - 10 * HOUR + 30000, TODAY - 9 * HOUR);
	is("2026-11-14 14:00-15:00", TODAY - 10 * HOUR, TODAY - 9 * HOUR);
	is("14:00..15:30", TODAY + 14 * HOUR, TODAY + 15 * HOUR + 30 * MINUTE);
	is("9:05-9:06", TODAY + 9 * HOUR + 5 * MINUTE, TODAY + 9 * HOUR + 6 * MINUTE);
	is("-7d 14:00-15:00", TODAY - 7 * DAY + 14 * HOUR, TODAY - 7 * DAY + 15 * HOUR);
	is("1w 14:00-15:00", TODAY - 7 * DAY + 14 * HOUR, TODAY - 7 * DAY + 15 * HOUR);
	is("yesterday 23:00-01:00", TODAY - HOUR, TODAY + HOUR);
	is("yesterday 23:00-24:00", TODAY - HOUR, TODAY);
	is("2026-11-13 22:00..2026-11-14 06:00", TODAY - 26 * HOUR, TODAY - 18 * HOUR);
	is("2026-11-13 22:00..2026-11-14", TODAY - 26 * HOUR, TODAY);
}

static void back_from_now(void **state)
{
	(void)state;
	set_zone("UTC");
	is("-1h", NOW - HOUR, NOW);
	is("1h", NOW - HOUR, NOW);
	is("-90m", NOW - 90 * MINUTE, NOW);
	is("-30s", NOW - 30000, NOW);
	is("-2w", NOW - 14 * DAY, NOW);
	is("-2d..-1d", NOW - 2 * DAY, NOW - DAY);
	is("-2h..now", NOW - 2 * HOUR, NOW);
	is("yesterday..", TODAY - DAY, NOW);
	is("..2026-11-14", 0, TODAY);
	is("2026-11-14 14:00..", TODAY - 10 * HOUR, NOW);
}

static void everything(void **state)
{
	int64_t from, to;
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_null(span_parse(i ? "" : "all", NOW, &from, &to));
		assert_true(from == 0 && to > NOW + 1000 * DAY);
	}
}

/* In Berlin the last Sunday of October 2026 has 25 hours. */
static void zones(void **state)
{
	int64_t from, to;
	(void)state;
	set_zone("Europe/Berlin");
	is("2026-11-14 14:00-15:00", TODAY - 11 * HOUR, TODAY - 10 * HOUR);
	assert_null(span_parse("2026-10-25", NOW, &from, &to));
	if (from % DAY) /* without the zone's data it is UTC */
		assert_int_equal(to - from, 25 * HOUR);
	set_zone("UTC");
}

static void nonsense(void **state)
{
	(void)state;
	set_zone("UTC");
	is_not("tomorrow", "no span of time");
	is_not("2026-13-01", "no span of time");
	is_not("2026-02-30", "no span of time");
	is_not("25:00-26:00", "no span of time");
	is_not("..", "no span of time");
	is_not("-1x", "no span of time");
	is_not("1h 30m", "no span of time");
	is_not("today today", "no span of time");
	is_not("14:00-15:00-16:00", "no span of time");
	is_not("yesterday 14:00", "has no end");
	is_not("today..yesterday", "ends before it begins");
	is_not("-1h..-2h", "ends before it begins");
	char text[400];
	memset(text, '1', sizeof text);
	text[sizeof text - 1] = 0;
	is_not(text, "no span of time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(days),          cmocka_unit_test(parts_of_days),
		cmocka_unit_test(back_from_now), cmocka_unit_test(everything),
		cmocka_unit_test(zones),         cmocka_unit_test(nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
