/* SPDX-License-Identifier: Apache-2.0 */
/* Formats as text, of small profiles whose numbers are known; and of ones that are large or odd. */
#include "unit.h"

#include "made_module.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "profile/profile.h"

#define FUNCTIONS 26

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* Function 'a' is at 0x1000, 'b' at 0x1100, …, named by `names` or by their letters. */
static struct profile *new_profile(const char *const *names)
{
	static char letters[FUNCTIONS][2];
	struct profile_name functions[FUNCTIONS];
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		letters[i][0] = (char)('a' + i);
		functions[i] = (struct profile_name){0x1000 + 0x100u * i, 0x100,
						     names && *names ? *names++ : letters[i]};
	}
	good(profile_add_process(
		p, &(struct profile_process){.pid = 10, .name = "app", .command = "", .rank = -1},
		&index));
	add_made_module(p, functions, FUNCTIONS);
	good(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	good(profile_add_metric(
		p, &(struct profile_metric){"page-faults", "faults", 1, false, {0, 0}}, &index));
	for (int t = 0; t < 2; t++)
		good(profile_add_thread(
			p,
			&(struct profile_thread){.tid = 10 + t, .name = t ? "the worker" : "app"},
			&index));
	return p;
}

/* Samples of a path: a letter for each function, outermost first; a digit in front is the reason
   why it is partial. Returns its node. */
static uint32_t count(struct profile *p, const char *path, unsigned thread, unsigned metric,
		      unsigned n)
{
	uint32_t node = 0;
	if (*path >= '0' && *path <= '9')
		good(profile_child(p, 0, PROFILE_PARTIAL, 0, (uint64_t)(*path++ - '0'), &node));
	for (; *path; path++)
		good(profile_child(p, node, path[1] ? PROFILE_CALL : PROFILE_EXACT, 1,
				   0x1010 + 0x100u * (unsigned)(*path - 'a'), &node));
	good(profile_count(p, node, thread, metric, n));
	return node;
}

static struct err *try_export(struct profile *p, struct export_options o, char **text)
{
	struct attribution_options ao = {.by = BY_FUNCTION, .no_loops = true};
	struct modules *modules;
	struct attribution a;
	size_t size;
	FILE *f = open_memstream(text, &size);
	assert_non_null(f);
	good(profile_settle(p));
	good(modules_open(p, false, &modules));
	good(attribution_make(p, modules, &ao, &a));
	o.creator = "test";
	struct err *e = export_write(&a, modules, &o, f);
	fclose(f);
	attribution_free(&a);
	modules_close(modules);
	return e;
}

static char *export(struct profile *p, struct export_options o)
{
	char *text;
	good(try_export(p, o, &text));
	return text;
}

static void expect(struct profile *p, struct export_options o, const char *wanted)
{
	char *text = export(p, o);
	assert_string_equal(text, wanted);
	free(text);
}

static void expect_part(struct profile *p, struct export_options o, const char *wanted)
{
	char *text = export(p, o);
	if (!strstr(text, wanted))
		fail_msg("'%s' is not in: %s", wanted, text);
	free(text);
}

#define ALL EXPORT_ALL_METRICS

static void test_folded(void **state)
{
	struct profile *p = new_profile(NULL);
	struct export_options o = {.format = EXPORT_FOLDED, .metric = ALL};
	bool second[] = {false, true};
	count(p, "ab", 0, 0, 5);
	count(p, "abab", 0, 0, 3);
	count(p, "a", 0, 1, 9);
	count(p, "c", 1, 0, 2);
	count(p, "3c", 1, 0, 1);
	expect(p, o, "a;b 5\na;b;a;b 3\nc 2\n(partial: no recipe);c 1\n");
	o.metric = 1;
	expect(p, o, "a 9\n");
	o.metric = 0;
	o.thread = second;
	expect(p, o, "c 2\n(partial: no recipe);c 1\n");
	o.group = GROUP_THREAD;
	expect(p, o,
	       "the worker (thread 11);c 2\nthe worker (thread 11);(partial: no recipe);c 1\n");
	o.group = GROUP_PROCESS;
	expect(p, o, "app (process 10);c 2\napp (process 10);(partial: no recipe);c 1\n");
	profile_free(p);
	(void)state;
}

/* Samples without any frame are not lost. */
static void test_no_path(void **state)
{
	struct profile *p = new_profile(NULL);
	good(profile_count(p, 0, 0, 0, 4));
	count(p, "a", 0, 0, 1);
	expect(p, (struct export_options){.format = EXPORT_FOLDED}, "(no path) 4\na 1\n");
	expect(p, (struct export_options){.format = EXPORT_FOLDED, .group = GROUP_PROCESS},
	       "app (process 10);(no path) 4\napp (process 10);a 1\n");
	expect_part(p, (struct export_options){.format = EXPORT_CALLGRIND}, "summary: 5\n");
	expect_part(p, (struct export_options){.format = EXPORT_SPEEDSCOPE},
		    "\"samples\":[[0],[1]],\"weights\":[4000000,1000000]");
	expect_part(p, (struct export_options){.format = EXPORT_FIREFOX},
		    "\"stack\":[0,1],\"weight\":[4,1]");
	expect_part(p, (struct export_options){.format = EXPORT_PERF_SCRIPT},
		    " 0.004000:    1000000 cpu-clock: \n"
		    "\t               0 [no path] ([unknown])\n\n");
	profile_free(p);
	(void)state;
}

static void test_empty(void **state)
{
	struct profile *p, *empty;
	good(profile_new(&empty));
	p = new_profile(NULL);
	for (int f = EXPORT_PPROF; f <= EXPORT_CSV; f++) {
		struct export_options o = {.format = (enum export_format)f, .metric = ALL};
		free(export(p, o));
		free(export(empty, o));
	}
	profile_free(empty);
	profile_free(p);
	(void)state;
}

/* main is 'a'. Direct recursion of b, mutual of c and d. */
static void test_callgrind(void **state)
{
	struct profile *p = new_profile(NULL);
	struct export_options o = {.format = EXPORT_CALLGRIND};
	count(p, "abbbe", 0, 0, 10);
	count(p, "abb", 0, 0, 1);
	count(p, "acdcde", 0, 0, 100);
	expect(p, o,
	       "# callgrind format\nversion: 1\ncreator: test\ncmd: \npositions: line\n"
	       "event: cpu_clock : samples of cpu_clock, 1000000 ns each\nevents: cpu_clock\n"
	       "summary: 111\n"
	       "\nob=(1) [made]\nfl=(1) ???\nfn=(1) a\n"
	       "cob=(1)\ncfi=(1)\ncfn=(2) b\ncalls=1 0\n0 11\n"
	       "cob=(1)\ncfi=(1)\ncfn=(3) c\ncalls=1 0\n0 100\n"
	       "\nob=(1)\nfl=(1)\nfn=(2)\n0 1\n"
	       "cob=(1)\ncfi=(1)\ncfn=(2)\ncalls=1 0\n0 0\n"
	       "cob=(1)\ncfi=(1)\ncfn=(4) e\ncalls=1 0\n0 10\n"
	       "\nob=(1)\nfl=(1)\nfn=(4)\n0 110\n"
	       "\nob=(1)\nfl=(1)\nfn=(3)\n"
	       "cob=(1)\ncfi=(1)\ncfn=(5) d\ncalls=1 0\n0 100\n"
	       "\nob=(1)\nfl=(1)\nfn=(5)\n"
	       "cob=(1)\ncfi=(1)\ncfn=(4)\ncalls=1 0\n0 100\n"
	       "\nob=(2) ???\nfl=(1)\nfn=(6) (all)\n"
	       "cob=(1)\ncfi=(1)\ncfn=(1)\ncalls=1 0\n0 111\n");
	profile_free(p);
	(void)state;
}

static void test_perf_script(void **state)
{
	struct profile *p = new_profile(NULL);
	/* A block for each sample, a period after the one before in its thread. */
	count(p, "3ab", 1, 0, 2);
	count(p, "a", 1, 0, 1);
	count(p, "a", 0, 1, 1);
	expect(p, (struct export_options){.format = EXPORT_PERF_SCRIPT, .metric = ALL},
	       "the_worker         10/11        0.001000:    1000000 cpu-clock: \n"
	       "\t            1110 b+0x10 ([made])\n"
	       "\t            1010 a+0x10 ([made])\n"
	       "\t               0 [partial: no recipe] ([unknown])\n\n"
	       "the_worker         10/11        0.002000:    1000000 cpu-clock: \n"
	       "\t            1110 b+0x10 ([made])\n"
	       "\t            1010 a+0x10 ([made])\n"
	       "\t               0 [partial: no recipe] ([unknown])\n\n"
	       "the_worker         10/11        0.003000:    1000000 cpu-clock: \n"
	       "\t            1010 a+0x10 ([made])\n\n"
	       "app                10/10        0.001000:          1 page-faults: \n"
	       "\t            1010 a+0x10 ([made])\n\n");
	good(profile_count(p, 0, 0, 0, UINT64_MAX / 2));
	struct export_options o = {.format = EXPORT_PERF_SCRIPT};
	char *text;
	struct err *e = try_export(p, o, &text);
	assert_non_null(e);
	err_free(e);
	free(text);
	profile_free(p);
	(void)state;
}

/* A sample of the first metric that came so many milliseconds after the beginning. */
static void count_at(struct profile *p, const char *path, unsigned thread, unsigned ms)
{
	uint32_t node = count(p, path, thread, 0, 1);
	good(profile_time(p, node, thread, 0, ms * UINT64_C(1000000), 1));
}

/* Where there is a time line, samples stand in its order; weights are as without it. */
static void test_time_line(void **state)
{
	struct profile *p = new_profile(NULL);
	struct export_options o = {.format = EXPORT_SPEEDSCOPE, .metric = ALL};
	p->timed = true;
	count_at(p, "ab", 0, 100);
	count_at(p, "ab", 0, 1);
	count_at(p, "ac", 0, 3);
	count_at(p, "ab", 0, 2);
	count_at(p, "c", 1, 7);
	count(p, "c", 1, 0, 1); /* not on the time line */
	count(p, "a", 0, 1, 3);
	expect_part(p, o,
		    "\"unit\":\"nanoseconds\",\"startValue\":0,\"samples\":[[1,0],[1,2],[],[1,0]],"
		    "\"weights\":[2000000,1000000,96000000,1000000],\"endValue\":100000000}");
	expect_part(p, o, "\"samples\":[[2]],\"weights\":[2000000],\"endValue\":2000000}");
	expect_part(p, o, "\"unit\":\"none\",\"startValue\":0,\"samples\":[[1]],\"weights\":[3],");
	o = (struct export_options){.format = EXPORT_PERF_SCRIPT, .metric = 0};
	char *text = export(p, o);
	static const char *const heads[] = {
		" 0.001000:", " 0.002000:", " 0.003000:", " 0.100000:", " 0.001000:", " 0.002000:"};
	const char *at = text;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		at = strstr(at,
			    i < 4 ? "app                10/10  " : "the_worker         10/11  ");
		assert_non_null(at);
		const char *frames = strchr(at, '\n');
		assert_non_null(frames);
		if (memmem(at, (size_t)(frames - at), heads[i], strlen(heads[i])) == NULL)
			fail_msg("no%s in: %s", heads[i], at);
		assert_non_null(strstr(frames, i == 2 || i > 3 ? " c+0x10" : " b+0x10"));
		assert_true(strstr(frames, i == 2 || i > 3 ? " c+0x10" : " b+0x10") - frames < 30);
		at = frames;
	}
	assert_null(strstr(at, "cpu-clock"));
	free(text);
	/* The same for a part of the samples. */
	o = (struct export_options){
		.format = EXPORT_SPEEDSCOPE, .metric = 0, .thread = (bool[]){true, false}};
	expect_part(p, o, "\"samples\":[[1,0],[1,2],[],[1,0]],");
	profile_free(p);
	(void)state;
}

static void test_hostile(void **state)
{
	static const char *const names[] = {
		"a;\"b\",\n\x1b[1m", "\xff]]>", "(anonymous namespace)::f", "", "x 12.5", NULL};
	struct profile *p = new_profile(names);
	struct export_options o = {.format = EXPORT_FOLDED, .full_names = true};
	count(p, "abcd", 0, 0, 1);
	count(p, "e", 0, 0, 7);
	expect(p, o,
	       "x_12.5 7\n"
	       "a:\"b\",??[1m;\xef\xbf\xbd]]>;(anonymous namespace)::f;?? 1\n");
	o.format = EXPORT_CSV;
	expect_part(p, o, "function,\"a;\"\"b\"\",??[1m\",[made],,,0x1000,0,1\r\n");
	o.format = EXPORT_SPEEDSCOPE;
	expect_part(p, o, "{\"name\":\"a;\\\"b\\\",??[1m\"},{\"name\":\"\xef\xbf\xbd]]>\"}");
	o.format = EXPORT_PERF_SCRIPT;
	expect_part(p, o, " {anonymous}::f+0x10 ([made])\n");
	profile_free(p);
	(void)state;
}

/* Counts that multiply to more than a number holds end at the largest. */
static void test_overflow(void **state)
{
	struct profile *p = new_profile(NULL);
	uint32_t node;
	good(profile_child(p, 0, PROFILE_EXACT, 1, 0x1010, &node));
	good(profile_count(p, node, 0, 0, UINT64_MAX / 2));
	expect_part(p, (struct export_options){.format = EXPORT_SPEEDSCOPE},
		    "\"weights\":[9223372036854775807]");
	free(export(p, (struct export_options){.format = EXPORT_PPROF}));
	profile_free(p);
	(void)state;
}

/* A path so deep that listing it at every step would never end: the formats that would have to
   refuse, the others take it as it is. */
static void test_deep(void **state)
{
	struct profile *p = new_profile(NULL);
	uint32_t node = 0;
	char *text;
	for (unsigned i = 0; i < 70000; i++) {
		good(profile_child(p, node, PROFILE_CALL, 1, 0x1010 + (i & 1) * 0x100, &node));
		good(profile_count(p, node, 0, 0, 1));
	}
	for (int f = EXPORT_PPROF; f <= EXPORT_CSV; f++) {
		struct export_options o = {.format = (enum export_format)f, .contexts = true};
		bool fits = f == EXPORT_FIREFOX || f == EXPORT_CALLGRIND || f == EXPORT_CSV;
		struct err *e = try_export(p, o, &text);
		if (fits)
			good(e);
		else if (!e || !strstr(err_text(e), "too many"))
			fail_msg("format %d: %s", f, e ? err_text(e) : "no error");
		err_free(e);
		free(text);
	}
	expect_part(p, (struct export_options){.format = EXPORT_CALLGRIND},
		    "fn=(1) a\n0 35000\ncob=(1)\ncfi=(1)\ncfn=(2) b\ncalls=1 0\n0 69999\n");
	profile_free(p);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),      cmocka_unit_test(test_no_path),
		cmocka_unit_test(test_empty),       cmocka_unit_test(test_callgrind),
		cmocka_unit_test(test_perf_script), cmocka_unit_test(test_time_line),
		cmocka_unit_test(test_hostile),     cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
