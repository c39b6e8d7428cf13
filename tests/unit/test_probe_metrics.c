/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "harvest/measures.h"
#include "harvest/probes.h"
#include "probe/entries.h"
#include "probe/findings.h"
#include "probe/fit.h"
#include "probe/metrics.h"
#include "probe/steer.h"
#include "profile/profile.h"

/* ---- metrics ---- */

static void test_parse(void **state)
{
	static const char *const good[] = {"cpu",      "blocked", "arg:1",
					   "arg:6:u8", "return",  "return:i32"};
	static const char *const bad[] = {"arg:",   "arg:0",   "arg:7",
					  "arg:1:", "arg:1:x", "return:u7"};
	struct probe_metric m;
	bool known;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_null(probe_metric_parse(good[i], &m, &known));
		assert_true(known);
		assert_string_equal(m.name, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err *e = probe_metric_parse(bad[i], &m, &known);
		assert_non_null(e);
		err_free(e);
	}
	assert_null(probe_metric_parse("cycles", &m, &known));
	assert_false(known);
	assert_null(probe_metric_parse("return:i32", &m, &known));
	assert_int_equal(measure_value(&m, 0xffffffffu), -1);
	assert_null(probe_metric_parse("arg:2:u8", &m, &known));
	assert_int_equal(m.number, 2);
	assert_int_equal(measure_value(&m, 0x1ff), 255);
	assert_null(probe_metric_parse("arg:1", &m, &known));
	assert_int_equal(measure_value(&m, (uint64_t)-5), -5);
}

static void add_call(struct probe_measure *m, int64_t value, double ns)
{
	struct probe_octave octave = {.least = value, .most = value};
	uint64_t below = -1 - (uint64_t)value;
	uint32_t bucket = value >= 0 ? probes_bucket((uint64_t)value)
				     : PROBE_TIMES + (uint32_t)(below < 7 ? below : 7);
	octave.eighths[bucket % 8] = (struct probe_bucket){1, value, (uint64_t)ns, 0};
	measure_add(m, bucket / 8, &octave);
}

static void test_values(void **state)
{
	struct probe_measure m = {0};
	(void)state;
	for (int i = -20; i <= 79; i++)
		add_call(&m, i, 100);
	assert_int_equal(m.calls, 100);
	assert_int_equal(m.least, -20);
	assert_int_equal(m.most, 79);
	assert_int_equal(m.sum, 100 * 79 - 99 * 100 / 2);
	assert_int_equal(m.buckets[PROBE_TIMES].calls, 1);
	assert_int_equal(m.buckets[PROBE_TIMES + 7].calls, 13);
	assert_int_equal(measure_bucket_start(PROBE_TIMES), -1);
	int64_t before = INT64_MIN;
	for (int i = 0; i <= 100; i++) {
		int64_t now = measure_quantile(&m, i / 100.0);
		assert_true(now >= before);
		before = now;
	}
	assert_in_range(measure_quantile(&m, 0.5), 26, 33);
	measure_add(&m, PROBE_OCTAVES, &(struct probe_octave){0}); /* there is no such octave */
}

/* ---- fits ---- */

static double cost(enum fit_shape shape, double n)
{
	switch (shape) {
	case FIT_LINEAR:
		return 500 + 3 * n;
	case FIT_N_LOG_N:
		return 500 + n * log2(n + 1);
	case FIT_SQUARE:
		return 500 + n * n / 4;
	default:
		return 5000;
	}
}

/* Each shape is told from the others, with errors of a fifth, and with some calls that are far too slow. */
static void test_shapes(void **state)
{
	(void)state;
	srand48(7);
	for (int shape = FIT_CONSTANT; shape <= FIT_SQUARE; shape++) {
		struct probe_measure m = {0};
		for (int round = 0; round < 40; round++)
			for (double n = 4; n < 20000; n *= 1.4) {
				double noise = 0.9 + drand48() / 5;
				double ns = cost((enum fit_shape)shape, floor(n)) * noise;
				add_call(&m, (int64_t)n, ns + (drand48() < 0.002 ? 4e6 : 0));
			}
		const struct fit fit = fit_make(&m);
		assert_int_equal(fit.shape, shape);
		assert_true(fit.sure > 0.6);
		assert_false(fit.cpu);
	}
}

static void test_too_few(void **state)
{
	struct probe_measure m = {0};
	(void)state;
	assert_int_equal(fit_make(&m).shape, FIT_NONE);
	for (int i = 0; i < 100; i++)
		add_call(&m, 1000, 100);
	assert_int_equal(fit_make(&m).shape, FIT_NONE);
	for (int i = 0; i < 100; i++)
		add_call(&m, -1 - i, 100);
	assert_int_equal(fit_make(&m).shape, FIT_NONE);
	for (int i = 0; i < 100; i++)
		add_call(&m, 1000 + 10 * i, 100); /* not even twice as large */
	assert_int_equal(fit_make(&m).shape, FIT_NONE);
}

/* ---- sums of functions and paths ---- */

static void test_measures(void **state)
{
	struct probes p = {.metric_count = 2};
	struct probe_octave one = {.least = 3, .most = 3};
	(void)state;
	one.eighths[3] = (struct probe_bucket){1, 3, 50, 0};
	p.functions = calloc(1, sizeof *p.functions);
	p.count = p.room = 1;
	assert_null(probes_measure(&p, 0, 5, 1, 0, &one));
	assert_null(probes_measure(&p, 0, 0, 1, 0, &one));
	struct err *e = probes_measure(&p, 0, 0, 2, 0, &one);
	assert_non_null(e);
	err_free(e);
	e = probes_measure(&p, 1, 0, 0, 0, &one);
	assert_non_null(e);
	err_free(e);
	assert_int_equal(p.functions[0].measures[1].calls, 2);
	assert_int_equal(p.functions[0].measures[0].calls, 0);
	assert_int_equal(p.path_count, 1);
	assert_int_equal(p.paths[0].measures[1].sum, 3);
	probes_free(&p);
}

/* ---- what stands out ---- */

/* 1000 calls by one path, and 1000 by another; each tenth value from 1 to 10. Of the second path, some calls are slow. */
static size_t slow_paths(unsigned slow_calls, double slow_ns, uint32_t *node)
{
	struct profile_node nodes[3] = {0};
	const struct profile profile = {.nodes = nodes, .node_count = 3};
	struct probe_path paths[2] = {{.node = 1}, {.node = 2}};
	struct probe_function function = {.name = (char *)(uintptr_t) "f"};
	struct probe_measure measures[3] = {0};
	struct findings found = {0};
	size_t count = 0;
	for (unsigned path = 0; path < 2; path++)
		for (unsigned i = 0; i < 1000; i++) {
			double ns = path && i < slow_calls ? slow_ns : 1000;
			add_call(&measures[path], i % 10 + 1, ns);
			add_call(&measures[2], i % 10 + 1, ns);
			paths[path].sums.most = UINT64_MAX;
			paths[path].sums.returned++;
			paths[path].sums.times[probes_bucket((uint64_t)ns)]++;
			function.sums.returned++;
			function.sums.times[probes_bucket((uint64_t)ns)]++;
		}
	paths[0].measures = &measures[0];
	paths[1].measures = &measures[1];
	function.measures = &measures[2];
	const struct probes p = {.functions = &function,
				 .count = 1,
				 .paths = paths,
				 .path_count = 2,
				 .metrics = {{.kind = PROBE_ARGUMENT, .number = 1}},
				 .metric_count = 1};
	assert_null(findings_make(&p, &profile, NULL, &found));
	for (size_t i = 0; i < found.count; i++)
		if (found.all[i].kind == FINDING_PATH) {
			*node = found.all[i].node;
			count++;
		}
	findings_free(&found);
	return count;
}

static void test_slow_path(void **state)
{
	uint32_t node = 0;
	(void)state;
	assert_int_equal(slow_paths(1000, 3000, &node), 1);
	assert_int_equal(node, 2);
	assert_int_equal(slow_paths(0, 0, &node), 0);
	/* Few calls that lost their CPU make the mean four times as large. */
	assert_int_equal(slow_paths(5, 600000, &node), 0);
}

/* ---- source lines ---- */

static void test_lines(void **state)
{
	struct entry_line at;
	(void)state;
	assert_true(entry_line_parse("src/a.c:120", &at));
	assert_int_equal(at.line, 120);
	assert_int_equal(at.length, 7);
	assert_false(entry_line_parse("shop::find", &at));
	assert_false(entry_line_parse("a::3", &at));
	assert_false(entry_line_parse("a.c:", &at));
	assert_false(entry_line_parse("a.c:0", &at));
	assert_false(entry_line_parse("a.c:3x", &at));
	assert_false(entry_line_parse(":3", &at));
}

/* ---- one process asks another ---- */

static int echo(void *context, char **words, size_t count, struct buf *answer)
{
	(*(int *)context)++;
	for (size_t i = 0; i < count; i++)
		buf_printf(answer, "<%s>", words[i]);
	return count == 3 ? 0 : 1;
}

static void test_steering(void **state)
{
	char directory[] = "/tmp/culprit-steer-XXXXXX";
	char add[] = "add", none_[] = "", name[] = "some name";
	char *words[] = {add, none_, name};
	const pid_t pids[] = {4711, 4712};
	struct steer *first, *second;
	int asked = 0, status;
	(void)state;
	assert_non_null(mkdtemp(directory));
	setenv("XDG_CACHE_HOME", directory, 1);
	struct buf none = {0};
	struct err *e = steer_ask(4711, words, 3, &none, &status);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "nobody probes process 4711"));
	err_free(e);
	assert_null(steer_open(pids, 2, &first));
	assert_null(steer_open(pids, 2, &second)); /* leaves them to the first */
	pid_t child = fork();
	if (!child) {
		struct buf answer = {0};
		bool good = !steer_ask(4712, words, 3, &answer, &status) && !status &&
			    !strcmp(buf_text(&answer), "<add><><some name>");
		buf_clear(&answer);
		good = good && !steer_ask(4711, words, 2, &answer, &status) && status == 1;
		_exit(good ? 0 : 1);
	}
	for (int i = 0; i < 500 && asked < 2; i++) {
		steer_serve(first, echo, &asked);
		steer_serve(second, echo, &asked);
		usleep(10000);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(asked, 2);
	char path[128];
	struct stat st;
	snprintf(path, sizeof path, "%s/culprit/probes/4711", directory);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
	steer_close(second);
	assert_int_equal(stat(path, &st), 0);
	steer_close(first);
	assert_int_equal(stat(path, &st), -1);
	snprintf(path, sizeof path, "rm -r %s", directory);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),    cmocka_unit_test(test_values),
		cmocka_unit_test(test_shapes),   cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_measures), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_steering), cmocka_unit_test(test_slow_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
