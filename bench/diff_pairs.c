/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_diff PAIRS FILE...: how often `culprit diff` is wrong, told by recordings of one program.
 *
 *   resampled   pairs drawn from the recordings' own distribution of samples: nothing changed
 *   recorded    pairs of recordings, or of groups of them, chosen by chance: nothing changed
 *   injected    the same, with 10 % more samples in the function that has the most
 *
 * An alarm is a pair in which the total or any function is called changed.
 *
 * Then it says how much the recordings themselves differ, beyond what sampling gives, and how many of them the alarms
 * are due to: one recording that was disturbed is in a twentieth of all pairs of 40.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "compare/counts.h"
#include "compare/diff.h"
#include "compare/runs.h"

#define GROUP_MAX 16

static struct runs runs;
static struct counts table;
static size_t hottest;
static uint64_t random_state = 1;

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "bench_diff: %s\n", err_text(e));
	exit(1);
}

static double uniform(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static uint64_t poisson(double mean)
{
	uint64_t count = 0;
	if (mean > 500) {
		double z = sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
		return (uint64_t)fmax(0, floor(mean + sqrt(mean) * z + 0.5));
	}
	for (double left = mean; (left += log(1 - uniform())) > 0;)
		count++;
	return count;
}

struct trial {
	const char *name;
	size_t group; /* runs on each side */
	bool resampled;
	double more; /* samples of the hottest function */
	double noise;
};

/* Draws 2 * group different runs. */
static void choose(size_t group, size_t chosen[2 * GROUP_MAX])
{
	for (size_t i = 0; i < 2 * group;) {
		bool taken = false;
		chosen[i] = (size_t)(uniform() * (double)runs.count);
		for (size_t k = 0; k < i; k++)
			taken |= chosen[k] == chosen[i];
		i += !taken;
	}
}

static uint64_t sample(const struct trial *t, size_t row, size_t run)
{
	const uint64_t *counts = table.counts + row * table.runs;
	double sum = 0;
	if (!t->resampled)
		return counts[run];
	for (size_t i = 0; i < table.runs; i++)
		sum += (double)counts[i];
	return poisson(sum / (double)table.runs);
}

static void try_these(const struct trial *t, const size_t *chosen, bool *alarm, bool *found)
{
	size_t n = 2 * t->group;
	struct run all[2 * GROUP_MAX];
	struct runs part = {.all = all, .count = n, .metric = runs.metric, .unit = runs.unit};
	struct counts counts = {.all = table.all, .count = table.count, .runs = n};
	struct diff_options o = {.old_runs = t->group,
				 .min = 0.001,
				 .alpha = 0.05,
				 .noise = t->noise,
				 .fail_above = -1};
	struct diff d;
	counts.counts = calloc(table.count * n + 1, sizeof *counts.counts);
	for (size_t r = 0; r < n && counts.counts; r++) {
		all[r] = runs.all[chosen[r]];
		all[r].samples = 0;
		for (size_t i = 0; i < table.count; i++) {
			uint64_t *count = &counts.counts[i * n + r];
			*count = sample(t, i, chosen[r]);
			if (i == hottest && r >= t->group)
				*count += poisson((t->more - 1) * (double)*count);
			all[r].samples += *count;
		}
	}
	check(counts.counts ? diff_make(&part, &counts, &o, &d) : err_new("out of memory"));
	*alarm = d.changed || d.total.changed;
	*found = false;
	for (size_t i = 0; i < d.count; i++)
		*found |= d.rows[i].row == &table.all[hottest] && d.rows[i].changed;
	diff_free(&d);
	free(counts.counts);
}

static void try_once(const struct trial *t, bool *alarm, bool *found)
{
	size_t chosen[2 * GROUP_MAX];
	choose(t->group, chosen);
	try_these(t, chosen, alarm, found);
}

/* ---- how much recordings differ ---- */

/* The standard deviation of a row's samples between recordings, without that of sampling, as a part of the mean. Row
   table.count is the sum of all. Returns -1 where it has fewer samples than 1 % of all. */
static double excess_of(size_t row)
{
	double sum = 0, squares = 0, all = 0, runs_count = (double)table.runs;
	for (size_t r = 0; r < table.runs; r++) {
		double total = 0, count;
		for (size_t i = 0; i < table.count; i++)
			total += (double)table.counts[i * table.runs + r];
		count = row < table.count ? (double)table.counts[row * table.runs + r] : total;
		all += total;
		sum += count;
		squares += count * count;
	}
	double mean = sum / runs_count;
	double variance = (squares - sum * mean) / (runs_count - 1);
	return sum < all / 100 ? -1 : sqrt(fmax(0, variance - mean)) / mean;
}

static void say_how_runs_differ(void)
{
	double most = 0;
	size_t which = 0;
	for (size_t i = 0; i < table.count; i++)
		if (excess_of(i) > most) {
			most = excess_of(i);
			which = i;
		}
	printf("\nBeyond sampling, recordings differ by %.1f%% in all, and by %.1f%% in %s, the most of all "
	       "functions.\n",
	       100 * excess_of(table.count), 100 * most, table.all[which].name);
}

static int descending(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

/* Every pair of recordings, and the recordings that take part in the most alarms. */
static void say_which_runs_alarm(const struct trial *t)
{
	int *alarms = calloc(runs.count, sizeof *alarms), all = 0, left = 0;
	for (size_t i = 0; alarms && i < runs.count; i++)
		for (size_t k = i + 1; k < runs.count; k++) {
			bool alarm, found;
			try_these(t, (const size_t[]){i, k}, &alarm, &found);
			alarms[i] += alarm;
			alarms[k] += alarm;
			all += alarm;
		}
	if (!alarms)
		return;
	qsort(alarms, runs.count, sizeof *alarms, descending);
	printf("Of all %zu pairs of single recordings %d alarm (%.1f%%). The recordings with the most alarms:",
	       runs.count * (runs.count - 1) / 2, all,
	       200.0 * all / (double)(runs.count * (runs.count - 1)));
	for (size_t i = 0; i < runs.count && i < 5; i++)
		printf(" %d", alarms[i]);
	for (size_t i = 5; i < runs.count; i++)
		left += alarms[i];
	printf("; all others have %.1f each.\n",
	       (double)left / (double)(runs.count > 5 ? runs.count - 5 : 1));
	free(alarms);
}

static void find_hottest(void)
{
	uint64_t most = 0;
	for (size_t i = 0; i < table.count; i++) {
		uint64_t sum = 0;
		for (size_t r = 0; r < table.runs; r++)
			sum += table.counts[i * table.runs + r];
		if (sum > most) {
			most = sum;
			hottest = i;
		}
	}
}

int main(int argc, char **argv)
{
	static const struct trial trials[] = {
		{"resampled, sampling alone assumed", 1, true, 1, 0},
		{"resampled, as usual", 1, true, 1, 0.02},
		{"recorded, one run each", 1, false, 1, 0.02},
		{"recorded, five runs each", 5, false, 1, 0.02},
		{"recorded, ten runs each", 10, false, 1, 0.02},
		{"injected, one run each", 1, false, 1.1, 0.02},
		{"injected, five runs each", 5, false, 1.1, 0.02},
		{"injected, ten runs each", 10, false, 1.1, 0.02},
	};
	struct counts_options options = {.by = COUNTS_FUNCTION};
	struct buf notes = {0};
	int pairs = argc > 1 ? atoi(argv[1]) : 0;
	if (pairs < 1 || argc < 4) {
		fprintf(stderr, "usage: bench_diff PAIRS FILE FILE...\n");
		return 2;
	}
	check(runs_read((const char *const *)argv + 2, (size_t)argc - 2, NULL, &runs));
	check(counts_make(&runs, &options, &table, &notes));
	find_hottest();
	printf("%zu recordings, %d pairs each; the hottest function is %s\n\n", runs.count, pairs,
	       table.all[hottest].name);
	printf("| pairs | alarms | change found |\n| --- | ---: | ---: |\n");
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		int alarms = 0, founds = 0;
		bool alarm, found;
		for (int k = 0; k < pairs && 2 * trials[i].group <= runs.count; k++) {
			try_once(&trials[i], &alarm, &found);
			alarms += alarm;
			founds += found;
		}
		if (2 * trials[i].group > runs.count)
			continue;
		printf("| %s | %.1f%% | %.1f%% |\n", trials[i].name, 100.0 * alarms / pairs,
		       100.0 * founds / pairs);
	}
	say_how_runs_differ();
	say_which_runs_alarm(&trials[2]);
	counts_free(&table);
	runs_free(&runs);
	buf_free(&notes);
	return 0;
}
