/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of comparing: against tables, and by simulation of what they promise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "compare/diff.h"
#include "compare/names.h"
#include "compare/numbers.h"
#include "compare/runs.h"
#include "compare/stats.h"
#include "compare/text.h"

static void assert_near(double got, double wanted, double relative)
{
	if (!(fabs(got - wanted) <= relative * fabs(wanted)))
		fail_msg("%.12g is not %.12g", got, wanted);
}

/* From printed tables of the distributions. */
static void tails_are_right(void **state)
{
	(void)state;
	assert_near(normal_above(1.959963985), 0.025, 1e-8);
	assert_near(normal_above(6), 9.865876450e-10, 1e-8);
	assert_near(chi_square_above(3.841458821, 1), 0.05, 1e-8);
	assert_near(chi_square_above(9.210340372, 2), 0.01, 1e-8);
	assert_near(chi_square_above(16.26623620, 3), 0.001, 1e-8);
	assert_near(chi_square_above(23.68479130, 14), 0.05, 1e-8);
	assert_near(chi_square_above(149.4492528, 100), 0.001, 1e-7);
	assert_near(chi_square_above(1e5, 1001), 0, 0);
	assert_near(chi_square_above(0, 3), 1, 0);
	assert_near(student_above(12.706204736, 1), 0.025, 1e-8);
	assert_near(student_above(4.302652730, 2), 0.025, 1e-8);
	assert_near(student_above(2.228138852, 10), 0.025, 1e-8);
	assert_near(student_above(-2.228138852, 10), 0.975, 1e-8);
	assert_near(student_above(3.169272673, 10), 0.005, 1e-8);
	assert_near(student_above(1.644853627, INFINITY), 0.05, 1e-8);
	assert_near(student_above(1, 1), 0.25, 1e-12);
	assert_true(student_above(INFINITY, 3) == 0);
	assert_near(student_quantile(0.025, 5), 2.570581836, 1e-8);
	assert_near(student_quantile(0.975, 5), -2.570581836, 1e-8);
	for (double df = 0.7; df < 2000; df *= 1.9)
		for (double p = 1e-7; p < 0.9; p *= 4)
			assert_near(student_above(student_quantile(p, df), df), p, 1e-6);
}

static void moments_are_right(void **state)
{
	const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct moments m;
	(void)state;
	moments_of(values, 8, &m);
	assert_near(m.sum, 40, 0);
	assert_near(m.mean, 5, 0);
	assert_near(m.deviation, sqrt(32.0 / 7), 1e-12);
	assert_near(m.min, 2, 0);
	assert_near(m.max, 9, 0);
	moments_of(values, 1, &m);
	assert_true(m.deviation == 0);
	moments_of(values, 0, &m);
	assert_true(m.sum == 0);
}

static void expect_name(void (*make)(const char *name, struct buf *out), const char *name,
			const char *wanted)
{
	struct buf b = {0};
	make(name, &b);
	assert_string_equal(buf_text(&b), wanted);
	buf_free(&b);
}

static void names_lose_their_numbers(void **state)
{
	static const char *const pairs[][2] = {
		{"solve", "solve"},
		{"solve.constprop.0", "solve"},
		{"solve.isra.0.part.3.cold", "solve"},
		{"solve.llvm.8129736451", "solve"},
		{"ns::f(int) [clone .isra.0] [clone .cold]", "ns::f(int)"},
		{"main::{lambda(int)#12}::operator()(int) const",
		 "main::{lambda(int)#}::operator()(int) const"},
		{"main::$_3::operator()() const", "main::$_::operator()() const"},
		{"main::'lambda2'(int)::operator()(int)", "main::'lambda'(int)::operator()(int)"},
		{"app::run::{closure#4}", "app::run::{closure#}"},
		{"app::run::h0123456789abcdef", "app::run"},
		{"app::run::h0123456789abcde", "app::run::h0123456789abcde"},
		{"file.partial", "file.partial"},
		{"matrix.avx2", "matrix.avx2"},
		{".cold", ".cold"},
		{"a.part", "a"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		expect_name(name_plain, pairs[i][0], pairs[i][1]);
	expect_name(name_module, "/usr/lib/libx.so.1 (deleted)", "libx.so.1");
}

static void names_have_families(void **state)
{
	static const char *const pairs[][2] = {
		{"solve", "solve"},
		{"double fib<double>(double)", "fib"},
		{"double app::sum<double>(std::vector<double> const&)", "app::sum"},
		{"app::Box<int>::operator<(app::Box<int> const&)", "app::Box::operator<"},
		{"Foo::operator bool() const", "Foo::operator bool"},
		{"Foo<a->b>::g() const", "Foo::g"},
		{"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
		{"decltype(auto) f<int>(int)", "f"},
		{"main::{lambda(int)#}::operator()(int) const", "main::{lambda#}::operator()"},
		{"/home/x/a script.py", "/home/x/a script.py"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		expect_name(name_family, pairs[i][0], pairs[i][1]);
	expect_name(name_module_family, "/usr/lib/libx.so.1.2", "libx.so");
	expect_name(name_module_family, "/usr/lib/libx-1.3.so (deleted)", "libx.so");
	expect_name(name_module_family, "/usr/bin/python3.11", "python3");
	expect_name(name_module_family, "/opt/app-old", "app-old");
}

/* ---- one row ---- */

static struct test_result compare_counts(const uint64_t *old, size_t olds, const uint64_t *new,
					 size_t news, double noise)
{
	double ones[16];
	struct test_options o = {.noise = noise, .confidence = 0.95};
	struct test_result r;
	for (int i = 0; i < 16; i++)
		ones[i] = 1;
	test_compare(&(struct test_side){old, ones, olds}, &(struct test_side){new, ones, news}, &o,
		     &r);
	return r;
}

static void single_runs_are_compared_as_counts(void **state)
{
	const uint64_t old = 100, new = 150, none = 0, ten = 10;
	struct test_result r = compare_counts(&old, 1, &new, 1, 0);
	(void)state;
	assert_near(r.p, erfc(49 / sqrt(250) / sqrt(2)), 1e-12); /* (|150 - 100| - 1) / sqrt(250) */
	assert_true(r.low > 1 && r.low < 1.2 && r.high > 1.9 && r.high < 2);
	r = compare_counts(&old, 1, &old, 1, 0);
	assert_true(r.p == 1 && r.low < 1 && r.high > 1);
	/* Safer than the exact test: 2 / 2^10. */
	r = compare_counts(&none, 1, &ten, 1, 0);
	assert_true(r.p > 2.0 / 1024 && r.p < 0.01 && isinf(r.high) && r.low > 1);
	r = compare_counts(&ten, 1, &none, 1, 0);
	assert_true(r.p > 2.0 / 1024 && r.p < 0.01 && r.low == 0 && r.high < 1);
	r = compare_counts(&none, 1, &none, 1, 0);
	assert_true(r.p == 1);
	/* Noise widens, and functions scatter more than samples. */
	r = compare_counts(&old, 1, &new, 1, 0.1);
	assert_near(r.p, erfc(49 / sqrt(2 * 250 + 2 * 12.5 * 12.5) / sqrt(2)), 1e-12);
}

static void several_runs_are_compared_by_their_scatter(void **state)
{
	const uint64_t old[] = {1000, 1200, 1100, 900}, new[] = {1500, 1400, 1700, 1600};
	struct test_result r = compare_counts(old, 4, new, 4, 0);
	double v = (50000.0 / 3 + 50000.0 / 3) / 4;
	(void)state;
	assert_near(r.before, 1050, 1e-12);
	assert_near(r.after, 1550, 1e-12);
	assert_near(r.df, 6, 1e-9); /* equal scatter */
	assert_near(r.p, 2 * student_above((500 - 0.25) / sqrt(v), 6), 1e-9);
	assert_near(r.error, sqrt(v), 1e-9);
	/* Luck with equal counts does not make surer than sampling: the variance of a run is its count. */
	const uint64_t same[] = {100, 100, 100}, more[] = {110, 110, 110};
	r = compare_counts(same, 3, more, 3, 0);
	assert_near(r.p, 2 * student_above((10 - 1.0 / 3) / sqrt(2 * 105 / 3.0), 4), 1e-9);
	/* One run takes over the scatter of the others. */
	r = compare_counts(old, 4, new, 1, 0);
	assert_near(r.df, 3, 1e-9);
	assert_true(r.p > 0.01 && r.p < 0.1);
}

static void periods_weigh(void **state)
{
	const uint64_t old = 1000, new = 500;
	const double one = 1, two = 2;
	struct test_options o = {.confidence = 0.95};
	struct test_side before = {&old, &one, 1}, after = {&new, &two, 1};
	struct test_result r;
	(void)state;
	test_compare(&before, &after, &o, &r);
	assert_near(r.before, 1000, 1e-12);
	assert_near(r.after, 1000, 1e-12);
	assert_true(r.p > 0.99);
	assert_true(r.low > 0.8 && r.high < 1.25 && r.low < 1 && r.high > 1);
}

/* ---- simulation: many rows, pairs of recordings ---- */

#define ROWS 40
#define RUNS_MAX 10

static uint64_t random_state;

static double uniform(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

static uint64_t poisson(double mean)
{
	uint64_t count = 0;
	if (mean > 500)
		return (uint64_t)fmax(0, floor(mean + sqrt(mean) * normal() + 0.5));
	for (double left = mean; (left += log(1 - uniform())) > 0;)
		count++;
	return count;
}

struct world {
	double samples;     /* of a run */
	double common, own; /* how much runs differ, all together and each row by itself */
	double slower;      /* row 1 of the new runs */
	size_t old, new;
	double noise; /* that is assumed */
	bool shares;
	double fail_above;
	double fewer; /* so many times: samples of the new runs, which are shorter or have a longer period */
};

/* A program with few hot functions and many others. */
static double share_of(int row)
{
	double sum = 0;
	for (int i = 0; i < ROWS; i++)
		sum += 1 / pow(i + 1, 1.3);
	return 1 / pow(row + 1, 1.3) / sum;
}

struct outcome {
	bool any, hot, too_slow;
	bool missed; /* an interval that does not have what is true */
};

/* A row's verdict, its corrected chance and its interval are of one test. */
static void check_agreement(const struct diff *d, const struct diff_row *r)
{
	if (!r->tested)
		return;
	bool outside = r->test.low > 1 || r->test.high < 1;
	assert_true(r->test.low <= r->test.high);
	assert_true(r->changed == outside);
	if (fabs(r->p - d->options.alpha) > 1e-9)
		assert_true(r->changed == (r->p <= d->options.alpha));
	assert_true(!strcmp(diff_verdict(d, r), "noise") == !outside);
	if (r->too_slow)
		assert_true(r->changed && r->test.low > 1 + d->options.fail_above);
}

static struct outcome simulate(const struct world *w)
{
	struct run all[RUNS_MAX] = {0};
	struct row rows[ROWS] = {0};
	uint64_t counts[ROWS * RUNS_MAX];
	char name[] = "f";
	struct runs runs = {.all = all, .count = w->old + w->new, .metric = "clock", .unit = "ns"};
	struct counts table = {.all = rows, .count = ROWS, .runs = runs.count, .counts = counts};
	struct diff_options o = {.old_runs = w->old,
				 .min = 0.001,
				 .alpha = 0.05,
				 .noise = w->noise,
				 .shares = w->shares,
				 .fail_above = w->fail_above};
	struct outcome out = {0};
	struct diff d;
	for (size_t r = 0; r < runs.count; r++) {
		double speed = exp(w->common * normal());
		double fewer = r >= w->old ? w->fewer : 1;
		all[r] = (struct run){.path = "x", .period = (uint64_t)(1000000 * fewer)};
		for (int i = 0; i < ROWS; i++) {
			double mean = w->samples / fewer * share_of(i) * speed *
				      exp(w->own * normal());
			if (i == 1 && r >= w->old)
				mean *= w->slower;
			rows[i].name = name;
			counts[(size_t)i * runs.count + r] = poisson(mean);
			all[r].samples += counts[(size_t)i * runs.count + r];
		}
	}
	assert_null(diff_make(&runs, &table, &o, &d));
	out.any = d.changed || d.total.changed;
	out.too_slow = d.too_slow;
	check_agreement(&d, &d.total);
	for (size_t i = 0; i < d.count; i++) {
		const struct diff_row *r = &d.rows[i];
		double ratio = r->row == &rows[1] ? w->slower : 1;
		out.hot |= r->row == &rows[1] && r->changed;
		check_agreement(&d, r);
		out.missed |= !w->shares && r->tested &&
			      (ratio < r->test.low || ratio > r->test.high);
	}
	diff_free(&d);
	return out;
}

#ifndef PAIRS
#define PAIRS 400
#endif
/* 5 % of the pairs, and three standard errors of a rate over so many. */
#define ALARMS_MAX (0.05 * PAIRS + 3 * sqrt(0.05 * 0.95 * PAIRS))

static void count(const struct world *w, int *any, int *hot, int *too_slow)
{
	int missed = 0;
	*any = *hot = *too_slow = 0;
	for (int i = 0; i < PAIRS; i++) {
		struct outcome o = simulate(w);
		*any += o.any;
		*hot += o.hot;
		*too_slow += o.too_slow;
		missed += o.missed;
	}
	/* All intervals together have what is true. */
	assert_true(missed <= ALARMS_MAX);
}

/* One row that may be called noise or changed: what is said of it is what its interval says. With one more
   row to be tested, both are more careful. */
static void verdict_is_that_of_the_interval(void **state)
{
	(void)state;
	for (uint64_t more = 0; more < 400; more++) {
		struct run all[2] = {{.path = "a", .period = 1}, {.path = "b", .period = 1}};
		char name[] = "f";
		struct row rows[8] = {{.name = name}, {.name = name}, {.name = name},
				      {.name = name}, {.name = name}, {.name = name},
				      {.name = name}, {.name = name}};
		uint64_t counts[16];
		struct runs runs = {.all = all, .count = 2, .metric = "clock", .unit = "ns"};
		struct counts table = {.all = rows, .count = 8, .runs = 2, .counts = counts};
		struct diff_options o = {.old_runs = 1, .alpha = 0.05, .fail_above = 0};
		struct diff d;
		for (size_t i = 0; i < 8; i++) {
			counts[2 * i] = 1000;
			counts[2 * i + 1] = 1000 + more * i / 4;
			all[0].samples += counts[2 * i];
			all[1].samples += counts[2 * i + 1];
		}
		assert_null(diff_make(&runs, &table, &o, &d));
		assert_int_equal(d.tests, 9);
		assert_near(d.confidence, 1 - 0.05 / 9, 1e-12);
		check_agreement(&d, &d.total);
		for (size_t i = 0; i < d.count; i++)
			check_agreement(&d, &d.rows[i]);
		diff_free(&d);
	}
}

/* An interval that begins just above 0 does not read as if it had 0 in it. */
static void interval_reads_as_it_is(void **state)
{
	struct row row = {.name = (char[]){"f"}};
	struct text_options o = {0};
	int close = 0;
	(void)state;
	for (uint64_t more = 9000; more < 12000; more += 20) {
		uint64_t counts[2] = {10000000, 10000000 + more};
		struct run all[2] = {{.path = "a", .period = 1, .samples = counts[0]},
				     {.path = "b", .period = 1, .samples = counts[1]}};
		struct runs runs = {.all = all, .count = 2, .metric = "clock", .unit = "ns"};
		struct counts table = {.all = &row, .count = 1, .runs = 2, .counts = counts};
		struct diff_options options = {.old_runs = 1, .alpha = 0.05, .fail_above = -1};
		struct buf text = {0};
		struct diff d;
		assert_null(diff_make(&runs, &table, &options, &d));
		diff_text(&d, &runs, &o, &text);
		const char *low = strstr(buf_text(&text), "% to ");
		assert_non_null(low);
		while (low[-1] != ' ')
			low--;
		assert_true((strtod(low, NULL) > 0) == d.rows[0].changed);
		close += d.rows[0].changed && d.rows[0].test.low < 1.0005;
		buf_free(&text);
		diff_free(&d);
	}
	assert_true(close > 10);
}

/* The ratios that are plausible may lie in two pieces; 1 may be in the other one, or between them. */
static void interval_has_no_change_or_not(void **state)
{
	(void)state;
	random_state = 20261117;
	for (int i = 0; i < 20000; i++) {
		uint64_t old[4], new[4];
		size_t olds = 1 + (size_t)(uniform() * 4), news = 1 + (size_t)(uniform() * 4);
		double mean = exp(8 * uniform()), scatter = 2 * uniform();
		for (size_t k = 0; k < 4; k++) {
			old[k] = poisson(mean * exp(scatter * normal()));
			new[k] = poisson(mean * exp(scatter * normal()));
		}
		struct test_result r = compare_counts(old, olds, new, news, 0.02);
		bool outside = r.low > 1 || r.high < 1;
		assert_true(r.changed == outside);
		assert_true(r.changed == (r.p <= 0.05));
		if (r.before > 0)
			assert_true(r.low <= r.after / r.before && r.after / r.before <= r.high);
	}
}

/* Five runs of a program; where `slower` is not 1, row 1 of one run takes that much longer. */
static struct stats vary(double samples, double slower, struct row *rows, uint64_t *counts)
{
	static char name[] = "f";
	struct run all[5] = {0};
	struct runs runs = {.all = all, .count = 5, .metric = "clock", .unit = "ns"};
	struct counts table = {.all = rows, .count = ROWS, .runs = 5, .counts = counts};
	struct stats s;
	for (size_t r = 0; r < runs.count; r++) {
		all[r] = (struct run){.path = "x", .period = 1000000};
		for (size_t i = 0; i < ROWS; i++) {
			double mean = samples * share_of((int)i);
			rows[i].name = name;
			counts[i * 5 + r] = poisson(i == 1 && r == 2 ? mean * slower : mean);
			all[r].samples += counts[i * 5 + r];
		}
	}
	assert_null(stats_make(&runs, &table, 0, &s));
	return s;
}

static struct test_result compare_amounts(const uint64_t *old, const uint64_t *new, size_t runs)
{
	const double ones[] = {1, 1, 1, 1};
	struct test_result r;
	test_compare(&(struct test_side){old, ones, runs}, &(struct test_side){new, ones, runs},
		     &(struct test_options){.confidence = 0.95, .amounts = true}, &r);
	return r;
}

/* Bytes are no samples: only the scatter of the runs counts, whatever the numbers are. */
static void amounts_are_compared_by_their_scatter(void **state)
{
	const uint64_t old[] = {1000, 1200, 1100, 900}, new[] = {1500, 1400, 1700, 1600};
	const uint64_t same[] = {100, 100, 100}, more[] = {110, 110, 110};
	(void)state;
	struct test_result r = compare_amounts(old, new, 4);
	assert_near(r.p, 2 * student_above(500 / sqrt((50000.0 / 3 + 50000.0 / 3) / 4), 6), 1e-9);
	r = compare_amounts(same, more, 3);
	assert_true(r.p == 0 && r.changed);
	assert_near(r.low, 1.1, 1e-9);
	assert_near(r.high, 1.1, 1e-9);
	r = compare_amounts(same, same, 3);
	assert_true(r.p == 1 && !r.changed && r.low == 1 && r.high == 1);
	/* If nothing changed, no more than 5 % say that something did. */
	random_state = 20261118;
	int alarms = 0;
	const int pairs = 4000;
	for (int i = 0; i < pairs; i++) {
		uint64_t a[3], b[3];
		for (int k = 0; k < 3; k++) {
			a[k] = (uint64_t)fmax(0, 1e6 + 2e5 * normal());
			b[k] = (uint64_t)fmax(0, 1e6 + 2e5 * normal());
		}
		alarms += compare_amounts(a, b, 3).changed;
	}
	assert_true(alarms < 0.06 * pairs && alarms > 0.02 * pairs);
}

/* Rows of few samples have a large range by chance: no more than 5 % of the comparisons say of any that it varies. */
static void few_samples_say_little(void **state)
{
	struct row rows[ROWS] = {0};
	uint64_t counts[ROWS * 5];
	int alarms = 0, found = 0;
	(void)state;
	random_state = 20261117;
	for (int i = 0; i < PAIRS; i++) {
		struct stats s = vary(1000, 1, rows, counts);
		alarms += s.rows[0].varies;
		for (size_t k = 1; k < s.count; k++)
			assert_true(s.rows[k].varies || s.rows[k - 1].varies ||
				    s.rows[k].moments.sum <= s.rows[k - 1].moments.sum);
		stats_free(&s);
		s = vary(1000, 2, rows, counts);
		found += s.rows[0].varies && s.rows[0].row == &rows[1];
		stats_free(&s);
	}
	print_message("# %d of %d alarms, %d found\n", alarms, PAIRS, found);
	assert_true(alarms <= ALARMS_MAX);
	assert_true(found > 0.9 * PAIRS);
}

/* Nothing changed: at most 5 % of the pairs have any row that is called changed. */
static void false_alarms_are_rare(void **state)
{
	static const struct world worlds[] = {
		{20000, 0, 0, 1, 1, 1, 0, false, 0, 1}, /* sampling alone, nothing assumed */
		{500, 0, 0, 1, 1, 1, 0, false, 0, 1},   /* few samples */
		{20000, 0, 0, 1, 1, 1, 0, true, 0, 1},  /* shares */
		{50000, 0.015, 0.01, 1, 1, 1, 0.02, false, 0, 1}, /* runs that differ as assumed */
		{50000, 0.03, 0.03, 1, 4, 4, 0, false, 0, 1}, /* runs that tell how they differ */
		{50000, 0.1, 0.05, 1, 2, 2, 0, false, 0, 1},  /* and are few */
		{50000, 0.03, 0.03, 1, 6, 3, 0, false, 0, 1},
		{50000, 0.03, 0.03, 1, 5, 1, 0, false, 0, 1},
		{2000, 0.01, 0.02, 1, 5, 5, 0, true, 0, 1},
		{50000, 0, 0, 1, 1, 1, 0, true, 0, 200},        /* a short run beside a long one */
		{50000, 0, 0, 1, 1, 1, 0, false, 0, 200},       /* other periods */
		{50000, 0.02, 0, 1, 1, 1, 0.02, true, 0, 1000}, /* very short, as usual */
		{50000, 0.01, 0.01, 1, 4, 4, 0, true, 0, 200},
	};
	int any, hot, too_slow;
	(void)state;
	random_state = 20261115;
	for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
		count(&worlds[i], &any, &hot, &too_slow);
		print_message("# world %zu: %d of %d alarms, %d failures\n", i, any, PAIRS,
			      too_slow);
		assert_true(any <= ALARMS_MAX);
		assert_true(too_slow <= ALARMS_MAX);
	}
}

/* A function that is 10 % slower is found; and it is not "slower by more than 10 %". */
static void changes_are_found(void **state)
{
	static const struct world found[] = {
		{100000, 0, 0, 1.1, 1, 1, 0, false, 0.03, 1},
		{50000, 0.01, 0.01, 1.1, 5, 5, 0, false, 0.03, 1},
		{100000, 0, 0, 1.1, 1, 1, 0, true, 0.03, 1},
		{50000, 0.01, 0.01, 1.2, 1, 1, 0.02, false, 0.03, 1},
	};
	struct world limit = {50000, 0.01, 0.01, 1.1, 5, 5, 0, false, 0.1, 1};
	int any, hot, too_slow;
	(void)state;
	random_state = 20261116;
	for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
		count(&found[i], &any, &hot, &too_slow);
		print_message("# change %zu: found %d of %d, too slow %d\n", i, hot, PAIRS,
			      too_slow);
		assert_true(hot >= PAIRS * 90 / 100);
		assert_true(too_slow >= PAIRS * 60 / 100);
	}
	count(&limit, &any, &hot, &too_slow);
	print_message("# at the limit: %d of %d\n", too_slow, PAIRS);
	assert_true(too_slow <= ALARMS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tails_are_right),
		cmocka_unit_test(moments_are_right),
		cmocka_unit_test(names_lose_their_numbers),
		cmocka_unit_test(names_have_families),
		cmocka_unit_test(single_runs_are_compared_as_counts),
		cmocka_unit_test(several_runs_are_compared_by_their_scatter),
		cmocka_unit_test(periods_weigh),
		cmocka_unit_test(few_samples_say_little),
		cmocka_unit_test(verdict_is_that_of_the_interval),
		cmocka_unit_test(interval_has_no_change_or_not),
		cmocka_unit_test(interval_reads_as_it_is),
		cmocka_unit_test(amounts_are_compared_by_their_scatter),
		cmocka_unit_test(false_alarms_are_rare),
		cmocka_unit_test(changes_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
