/* SPDX-License-Identifier: Apache-2.0 */
/* Events that were not counted all of the time: what their samples stand for. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/kernel/periods.h"
#include "collect/kernel/state.h"
#include "collect/tally.h"
#include "profile/profile.h"

#define SECOND UINT64_C(1000000000)

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void about(double value, double wanted)
{
	if (fabs(value - wanted) > 1e-6 * fabs(wanted))
		fail_msg("%g, not %g", value, wanted);
}

/* How much `samples` of period 1 are, before they are rounded. */
static double amount(struct coverage c, uint64_t samples)
{
	return (double)samples / coverage_share(c);
}

static void shares(void **state)
{
	(void)state;
	about(coverage_share((struct coverage){0, 0}), 1);
	about(coverage_share((struct coverage){SECOND, SECOND}), 1);
	about(coverage_share((struct coverage){SECOND, SECOND - 1000}), 1);
	about(coverage_share((struct coverage){SECOND, SECOND / 4}), 0.25);
	/* What a file says may be nonsense. */
	about(coverage_share((struct coverage){SECOND, UINT64_MAX}), 1);
	about(coverage_share((struct coverage){0, 5}), 1);
	assert_true(coverage_never((struct coverage){SECOND, 0}));
	assert_false(coverage_never((struct coverage){0, 0}));
	assert_false(coverage_never((struct coverage){SECOND, 1}));
	assert_int_equal(coverage_period((struct coverage){0, 0}, 1000003), 1000003);
	assert_int_equal(coverage_period((struct coverage){8, 3}, 3000), 8000);
	assert_int_equal(coverage_period((struct coverage){3, 2}, 1), 2); /* to the nearest */
	assert_int_equal(coverage_period((struct coverage){SECOND, 0}, 1000), 1000);
	assert_true(coverage_period((struct coverage){UINT64_MAX, 1}, UINT64_MAX) == UINT64_MAX);
	assert_true(coverage_period((struct coverage){0, 0}, UINT64_MAX) == UINT64_MAX);
}

/* Whatever is put together stands for as much as its parts. */
static void sums(void **state)
{
	struct coverage c = {10 * SECOND, 10 * SECOND};
	(void)state;
	/* The same share, other lengths. */
	struct coverage same = {SECOND, SECOND / 2};
	coverage_add(&same, 7, (struct coverage){3 * SECOND, 3 * SECOND / 2}, 1000);
	assert_true(same.enabled_ns == 4 * SECOND && same.running_ns == 2 * SECOND);
	/* One was heavy and counted always, the other light and counted for a tenth. */
	coverage_add(&c, 5000, (struct coverage){10 * SECOND, SECOND}, 100);
	about(amount(c, 5100), 6000);
	assert_true(c.enabled_ns == 20 * SECOND);
	/* In whatever order. */
	struct coverage a = {4 * SECOND, SECOND}, b = {SECOND, SECOND / 3},
			d = {7 * SECOND, 5 * SECOND}, left = a, right = b;
	coverage_add(&left, 10, b, 200);
	coverage_add(&left, 210, d, 3000);
	coverage_add(&right, 200, d, 3000);
	coverage_add(&right, 3200, a, 10);
	about(amount(left, 3210), 40 + 600 + 4200);
	about(amount(right, 3210), 40 + 600 + 4200);
	/* What nobody knows of was counted always; of what was never counted the rest tells. */
	struct coverage unknown = {0, 0}, never = {SECOND, 0};
	coverage_add(&unknown, 100, (struct coverage){SECOND, SECOND / 2}, 100);
	about(amount(unknown, 200), 300);
	coverage_add(&never, 0, (struct coverage){SECOND, SECOND / 2}, 100);
	about(amount(never, 100), 400);
	/* Without a sample the times are left. */
	struct coverage idle = {SECOND, SECOND / 2};
	coverage_add(&idle, 0, (struct coverage){SECOND, SECOND}, 0);
	assert_true(idle.enabled_ns == 2 * SECOND && idle.running_ns == 3 * SECOND / 2);
	struct coverage full = {UINT64_MAX, UINT64_MAX / 2};
	coverage_add(&full, UINT64_MAX, (struct coverage){UINT64_MAX, 1}, UINT64_MAX);
	assert_true(full.enabled_ns == UINT64_MAX && full.running_ns > 0);
}

static void tallies(void **state)
{
	struct tally t = {0};
	const struct tally_reading none = {0}, opened = {1000, SECOND, SECOND},
				   later = {1600, 4 * SECOND, 2 * SECOND},
				   odd = {10, SECOND, 2 * SECOND};
	(void)state;
	/* On one CPU a third of the time, on the other always. */
	tally_add(&t, &opened, &later);
	about(coverage_share(t.coverage), 1.0 / 3);
	tally_add(&t, &none, &opened);
	assert_int_equal(t.count, 1600);
	about(amount(t.coverage, t.count), 600 * 3 + 1000);
	/* Numbers that go back add nothing, and nobody is counted longer than always. */
	struct tally before = t;
	tally_add(&t, &later, &opened);
	assert_memory_equal(&t, &before, sizeof t);
	struct tally o = {0};
	tally_add(&o, &none, &odd);
	about(coverage_share(o.coverage), 1);
}

/* However often periods change, and whatever they are: there are as many samples as events say. */
static void changing_periods(void **state)
{
	enum { PERIOD = 1000 };
	struct kernel_pace pace = {.period = PERIOD};
	uint64_t count = 0, samples = 0;
	(void)state;
	srand(7);
	for (int i = 0; i < 2000; i++) {
		uint64_t events = 64 * PERIOD + (uint64_t)rand() % (500 * PERIOD);
		double swing = (rand() % 2001 - 1000) / 1000.0 * 0.018;
		count += events;
		samples += events / pace.period; /* the rest is gone */
		double part = periods_repay(&pace, count, PERIOD);
		assert_true(part >= -0.05 && part <= 0.05);
		pace.period = (uint64_t)(PERIOD / (1 + swing + part) + 0.5);
	}
	double wanted = (double)count / PERIOD;
	if (fabs((double)samples - wanted) > 20)
		fail_msg("%llu samples, not %.0f", (unsigned long long)samples, wanted);
	/* Where nothing came in between, nothing is owed. */
	double owed = pace.owed;
	periods_repay(&pace, count, PERIOD);
	assert_true(pace.owed == owed);
}

static struct profile *make(struct coverage c, uint64_t samples)
{
	struct profile *p;
	uint32_t index, node;
	good(profile_new(&p));
	good(profile_add_metric(p,
				&(struct profile_metric){.name = "instructions",
							 .unit = "instructions",
							 .period = 1000,
							 .coverage = c},
				&index));
	good(profile_add_process(p, &(struct profile_process){.name = "a", .command = "a"},
				 &index));
	good(profile_add_thread(p, &(struct profile_thread){.name = "a"}, &index));
	good(profile_child(p, 0, PROFILE_EXACT, 0, 0x10, &node));
	good(profile_count(p, node, 0, 0, samples));
	return p;
}

/* A recording keeps it, and so does what is made of several. */
static void profiles(void **state)
{
	struct profile *a = make((struct coverage){10 * SECOND, 10 * SECOND}, 5000), *b;
	struct buf bytes = {0};
	char *damage;
	(void)state;
	b = make((struct coverage){10 * SECOND, SECOND}, 100);
	assert_int_equal(profile_period(a, 0), 1000);
	assert_int_equal(profile_period(b, 0), 10000);
	good(profile_pack(b, &bytes));
	profile_free(b);
	good(profile_parse(bytes.data, bytes.size, &b, &damage));
	assert_null(damage);
	assert_int_equal(profile_period(b, 0), 10000);
	good(profile_merge(a, b));
	assert_int_equal(a->metric_count, 1);
	about((double)profile_samples(a, 0) * 1000 / coverage_share(a->metrics[0].coverage),
	      6000 * 1000);
	buf_free(&bytes);
	profile_free(a);
	profile_free(b);
}

static void notes(void **state)
{
	struct buf text = {0};
	(void)state;
	assert_false(coverage_note((struct coverage){5, 5}, "cycles", "cycles", 10, &text));
	assert_int_equal(text.size, 0);
	assert_true(coverage_note((struct coverage){1000, 371}, "cycles", "cycles", 371, &text));
	assert_string_equal(buf_text(&text),
			    "cycles was counted 37.1% of the time, in turns with other events: "
			    "scaled, a sample stands for 1000 cycles instead of 371\n");
	buf_clear(&text);
	assert_true(coverage_note((struct coverage){1000, 0}, "cycles", "cycles", 371, &text));
	assert_non_null(strstr(buf_text(&text), "cycles was never counted"));
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares),   cmocka_unit_test(sums),
		cmocka_unit_test(tallies),  cmocka_unit_test(changing_periods),
		cmocka_unit_test(profiles), cmocka_unit_test(notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
