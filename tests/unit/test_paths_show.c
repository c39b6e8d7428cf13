/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs read of paths: known examples, whole. And which functions are meant. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "image/image.h"
#include "made_graph.h"
#include "path_walker.h"
#include "paths/choice.h"
#include "paths/show.h"
#include "paths/ways.h"
#include "structure/structure.h"

/* ---- an example ---- */

static void take(struct walker *w, struct walk *k, uint32_t to)
{
	const struct graph_block *b = &w->f->graph.blocks[k->at];
	uint32_t edge = b->first;
	while (w->f->graph.edges[edge].to != to)
		edge++;
	assert_true(edge < b->first + b->count);
	walker_take(w, k, edge);
}

/* A call that goes by these blocks after the entry. 0 ends them; the call is left, unless it is still going on. */
static void go(struct walker *w, const uint32_t *blocks, bool leaves)
{
	struct walk k = walker_call(w);
	while (*blocks)
		take(w, &k, *blocks++);
	if (leaves)
		walker_end_path(w, &k, w->f->numbering.leave[k.at]);
}

/* A loop with a branch: four calls, with two, one, one and at least one round. */
static struct path_function loop_with_branch(void)
{
	const struct pair pairs[] = {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 1}, {4, 5}};
	struct path_function f = walker_function("_ZN4shop4findEi", graph_make(6, pairs, 7, 16), 0);
	struct walker w = walker_open(&f, 0);
	go(&w, (const uint32_t[]){1, 2, 4, 1, 3, 4, 1, 3, 4, 5, 0}, true);
	go(&w, (const uint32_t[]){1, 2, 4, 5, 0}, true);
	go(&w, (const uint32_t[]){1, 2, 4, 5, 0}, true);
	go(&w, (const uint32_t[]){1, 3, 4, 1, 2, 0}, false);
	walker_close(&w);
	return f;
}

static struct path_function straight(const char *name, uint64_t calls)
{
	const struct pair pairs[] = {{0, 1}};
	struct path_function f = walker_function(name, graph_make(2, pairs, 1, 16), 0);
	f.entries = f.counts[0] = calls;
	return f;
}

static struct path_function refused(const char *name, const char *reason)
{
	return (struct path_function){.name = strdup(name),
				      .module = strdup("/nowhere/app"),
				      .address = 0x40,
				      .state = PATH_REFUSED,
				      .reason = reason};
}

static void add(struct path_result *r, struct path_function f)
{
	assert_null(path_result_add(r, &f));
}

static struct path_result example(void)
{
	struct path_result r = {0};
	add(&r, refused("vm_run", "unresolved jump"));
	add(&r, straight("once", 1));
	add(&r, loop_with_branch());
	add(&r, straight("never", 0));
	add(&r, refused("parse", "unresolved jump"));
	add(&r, refused("odd", "overlapping code"));
	return r;
}

static void check_text(const struct path_result *r, const struct path_show *show,
		       const char *wanted)
{
	struct buf out = {0};
	assert_null(path_show_text(r, show, &out));
	assert_string_equal(buf_text(&out), wanted);
	buf_free(&out);
}

static void test_text(void **unused)
{
	(void)unused;
	struct path_result r = example();
	check_text(
		&r, &(struct path_show){3, "culprit: ", "a child was left out\n"},
		"culprit: 3 functions counted, 2 of them called; 3 functions refused: 2 unresolved jump (parse, vm_run), 1 overlapping code (odd)\n"
		"         a child was left out\n"
		"\n"
		"          calls      open       instructions  share          paths  hottest  top 3  function\n"
		"              4         1                100    93%         5 of 8      40%    72%  shop::find\n"
		"              1         0                  8   7.4%         1 of 1     100%   100%  once\n"
		"\n"
		" shop::find (app): 4 calls, 1 not seen to end\n"
		"          count  share  length  path\n"
		"              2    40%      20  0x0 -> 0x10 -> 0x20 -> 0x40 -> 0x50, returns\n"
		"              1    16%      16  0x0 -> 0x10 -> 0x20 -> 0x40, goes round loop 0x10\n"
		"              1    16%      16  0x0 -> 0x10 -> 0x30 -> 0x40, goes round loop 0x10\n"
		"                   28%          2 more paths\n"
		"\n"
		" once (app): 1 call\n"
		"          count  share  length  path\n"
		"              1   100%       8  0x0 -> 0x10, returns\n");
	path_result_free(&r);
}

/* Each path has so much as its number says; one of the loop's has nearly all. */
static void sample(struct path_function *f, uint64_t samples)
{
	f->metered = calloc(1, sizeof *f->metered);
	f->metered_count = 1;
	f->metered[0] = (struct path_metered){.samples = samples,
					      .placed = samples - 1,
					      .sure = samples / 2,
					      .value = samples * 1000000};
	f->metered[0].paths = calloc(f->numbering.path_count, sizeof *f->metered[0].paths);
	uint64_t left = (samples - 1) * 1000000, last = 0;
	for (uint64_t i = 0; i < f->numbering.path_count; i++) {
		struct path_value *v = &f->metered[0].paths[i];
		if (!f->counts[i])
			continue;
		*v = (struct path_value){1000000, 250000};
		left -= 1000000;
		last = i;
	}
	f->metered[0].paths[last].value += left;
}

static void test_metric(void **unused)
{
	(void)unused;
	struct path_result r = example();
	struct buf json = {0};
	assert_int_equal(path_result_metric(&r, "cpu-clock", "ns"), 0);
	for (size_t i = 0; i < r.count; i++)
		if (r.functions[i].entries)
			sample(&r.functions[i], r.functions[i].entries > 1 ? 2000 : 9);
	check_text(
		&r, &(struct path_show){3, "culprit: ", NULL},
		"culprit: 3 functions counted, 2 of them called; 3 functions refused: 2 unresolved jump (parse, vm_run), 1 overlapping code (odd)\n"
		"         cpu-clock: 2 009 samples in these functions, 50% on a path that is sure, 50% shared out by counts, <0.1% on paths without a count\n"
		"\n"
		"          calls      open       instructions  share    cpu-clock  share          paths  hottest  top 3  function\n"
		"              4         1                100    93%       2.00 s   100%         5 of 8     100%   100%  shop::find\n"
		"              1         0                  8   7.4%      9.00 ms   0.4%         1 of 1      89%    89%  once\n"
		"\n"
		" hot: paths, and functions, with at least 1% of cpu-clock\n"
		"            paths  instructions   cpu-clock   functions  paths each   cpu-clock\n"
		" dense          1           11%         99%           1         5.0        100%\n"
		" sparse         0            0%          0%           0         0.0          0%\n"
		" cold           5           89%        0.6%           1         1.0        0.4%\n"
		"\n"
		" shop::find (app): 4 calls, 1 not seen to end\n"
		"          count  share  length    cpu-clock  share   sure         path\n"
		"              1    12%      12       2.00 s   100%  <0.1% dense   loop 0x10: 0x10 -> 0x30 -> 0x40, goes round\n"
		"              2    40%      20      1.00 ms  <0.1%    25%         0x0 -> 0x10 -> 0x20 -> 0x40 -> 0x50, returns\n"
		"              1    16%      16      1.00 ms  <0.1%    25%         0x0 -> 0x10 -> 0x20 -> 0x40, goes round loop 0x10\n"
		"                   32%              2.00 ms   0.1%                2 more paths\n"
		"\n"
		" once (app): 1 call\n"
		"          count  share  length    cpu-clock  share   sure         path\n"
		"              1   100%       8      8.00 ms    89%   3.1%         0x0 -> 0x10, returns\n");
	struct json j = json_to_buf(&json);
	json_begin_object(&j);
	assert_null(path_show_json(&r, &(struct path_show){.limit = 1}, &j));
	json_end_object(&j);
	assert_non_null(strstr(
		buf_text(&json),
		"\"metrics\":[{\"name\":\"cpu-clock\",\"unit\":\"ns\",\"samples\":2009,\"placed\":2007,"
		"\"sure\":1004,\"total\":2009000000}]"));
	assert_non_null(strstr(buf_text(&json), "\"metrics\":[1995000000],\"sure\":[250000],"
						"\"kind\":\"dense\""));
	buf_free(&json);
	path_result_free(&r);
}

/* What does not add up comes first. */
static void test_problems(void **unused)
{
	(void)unused;
	struct path_result r = {0};
	add(&r, straight("twice", 2));
	r.functions[0].entries = 1;
	check_text(
		&r, &(struct path_show){3, "culprit: ", NULL},
		"culprit: 1 function has counts that do not add up:\n"
		"         twice: 2 paths from 0x0 have ended, but only 1 began\n"
		"         twice: 2 calls have ended, but only 1 began\n"
		"culprit: 1 function counted, 1 of them called\n"
		"\n"
		"          calls       instructions  share          paths  hottest  top 3  function\n"
		"              1                 16   100%         1 of 1     100%   100%  twice\n"
		"\n"
		" twice (app): 1 call\n"
		"          count  share  length  path\n"
		"              2   100%       8  0x0 -> 0x10, returns\n");
	r.forks = 1;
	check_text(
		&r, &(struct path_show){3, "culprit: ", NULL},
		"culprit: 1 function counted, 1 of them called\n"
		"         1 fork: a call that goes on in both processes ends twice\n"
		"\n"
		"          calls       instructions  share          paths  hottest  top 3  function\n"
		"              1                 16   100%         1 of 1     100%   100%  twice\n"
		"\n"
		" twice (app): 1 call\n"
		"          count  share  length  path\n"
		"              2   100%       8  0x0 -> 0x10, returns\n");
	path_result_free(&r);
}

static void test_nothing(void **unused)
{
	(void)unused;
	check_text(&(struct path_result){0}, &(struct path_show){3, "culprit: ", NULL},
		   "culprit: 0 functions counted, 0 of them called\n");
}

static void test_json(void **unused)
{
	(void)unused;
	struct path_result r = example();
	struct buf out = {0};
	struct json j = json_to_buf(&out);
	json_begin_object(&j);
	assert_null(path_show_json(&r, &(struct path_show){.limit = 2}, &j));
	json_end_object(&j);
	assert_string_equal(
		buf_text(&out),
		"{\"functions\":[{\"name\":\"shop::find(int)\",\"module\":\"/nowhere/app\""
		",\"address\":\"0x0\",\"state\":\"exact\",\"reason\":null,\"entries\":4"
		",\"open\":1,\"unknown\":0,\"checks\":[],\"instructions\":100,\"possible\":8"
		",\"taken\":5,\"edges\":[[\"0xc\",\"0x10\",4],[\"0x1c\",\"0x20\",3],[\"0x1c\""
		",\"0x30\",3],[\"0x2c\",\"0x40\",3],[\"0x3c\",\"0x40\",3],[\"0x4c\",\"0x10\",3]"
		",[\"0x4c\",\"0x50\",3]],\"paths\":[{\"id\":0,\"count\":2,\"instructions\":20"
		",\"metrics\":[],\"blocks\":[\"0x0\",\"0x10\",\"0x20\",\"0x40\",\"0x50\"]"
		",\"next\":null,\"lines\":[]}"
		",{\"id\":1,\"count\":1,\"instructions\":16,\"metrics\":[],\"blocks\":[\"0x0\""
		",\"0x10\",\"0x20\",\"0x40\"],\"next\":\"0x10\",\"lines\":[]}]}"
		",{\"name\":\"once\",\"module\":\"/nowhere/app\",\"address\":\"0x0\""
		",\"state\":\"exact\",\"reason\":null,\"entries\":1,\"open\":0,\"unknown\":0"
		",\"checks\":[],\"instructions\":8,\"possible\":1,\"taken\":1"
		",\"edges\":[[\"0xc\",\"0x10\",1]],\"paths\":[{\"id\":0,\"count\":1"
		",\"instructions\":8,\"metrics\":[],\"blocks\":[\"0x0\",\"0x10\"],\"next\":null"
		",\"lines\":[]}]}"
		",{\"name\":\"never\",\"module\":\"/nowhere/app\",\"address\":\"0x0\""
		",\"state\":\"exact\",\"reason\":null,\"entries\":0,\"open\":0,\"unknown\":0"
		",\"checks\":[],\"instructions\":0,\"possible\":1,\"taken\":0,\"edges\":[]"
		",\"paths\":[]}"
		",{\"name\":\"odd\",\"module\":\"/nowhere/app\",\"address\":\"0x40\""
		",\"state\":\"refused\",\"reason\":\"overlapping code\"}"
		",{\"name\":\"parse\",\"module\":\"/nowhere/app\",\"address\":\"0x40\""
		",\"state\":\"refused\",\"reason\":\"unresolved jump\"}"
		",{\"name\":\"vm_run\",\"module\":\"/nowhere/app\",\"address\":\"0x40\""
		",\"state\":\"refused\",\"reason\":\"unresolved jump\"}]"
		",\"checks\":{\"functions\":3,\"violated\":0,\"forks\":0}}");
	buf_free(&out);
	path_result_free(&r);
}

/* ---- lines ---- */

static char *way(const struct ways *w, const uint32_t *blocks, size_t count)
{
	uint32_t copy[8];
	struct buf out = {0};
	memcpy(copy, blocks, count * sizeof *blocks);
	ways_print(w, &(struct numbering_path){.blocks = copy, .count = count}, &out);
	return buf_take(&out);
}

static void check_way(const struct ways *w, const char *wanted, const uint32_t *blocks,
		      size_t count)
{
	char *got = way(w, blocks, count);
	assert_string_equal(got, wanted);
	free(got);
}

#define BLOCKS(...) \
	(const uint32_t[]){__VA_ARGS__}, sizeof(const uint32_t[]){__VA_ARGS__} / sizeof(uint32_t)

/* Lines 10, 11, 13, 20, 21 and 30 have code, and one line of a header. */
static void test_lines(void **unused)
{
	const struct pair pairs[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}};
	const struct way_line lines[] = {{1, 10},  {1, 11},          /* 0 */
					 {1, 13},  {1, 10}, {1, 13}, /* 1 */
					 {1, 20},                    /* 2 */
					 {2, 700},                   /* 3 */
					 {1, 21},  {1, 30},          /* 4 */
					 {1, 21}};                   /* 6 */
	const uint32_t first[] = {0, 2, 5, 6, 7, 9, 9, 10};
	(void)unused;
	struct graph g = graph_make(7, pairs, 6, 16);
	struct ways w = {0};
	assert_null(ways_make(&g, lines, first, &w));
	w.files = calloc(2, sizeof *w.files);
	w.files[0] = strdup("/src/main.c");
	w.files[1] = strdup("/usr/include/vector.h");
	w.file_count = 2;
	assert_int_equal(w.main, 1);
	check_way(&w, "10-11", BLOCKS(0));
	check_way(&w, "10-13", BLOCKS(0, 1));       /* 12 has no code */
	check_way(&w, "10-11 -> 20", BLOCKS(0, 2)); /* 13 was passed by */
	check_way(&w, "10-20 -> vector.h:700 -> 21-30", BLOCKS(0, 1, 2, 3, 4, 5));
	check_way(&w, "10-11 -> vector.h:700", BLOCKS(0, 3));
	check_way(&w, "10-11 -> 21-30", BLOCKS(0, 4, 6)); /* 21 was there already */
	check_way(&w, "20-30", BLOCKS(4, 2));             /* backwards */
	check_way(&w, "0x50", BLOCKS(5));                 /* no lines at all */
	ways_close(&w);
	graph_free(&g);
}

/* A function of this program, with real lines. */
__attribute__((noinline)) int sample_loop(const char *text, int limit);
int sample_loop(const char *text, int limit)
{
	int sum = 0;
	for (int i = 0; i < limit; i++) {
		if (text[i] == ' ')
			sum += 2;
		else
			sum -= text[i];
	}
	return sum;
}

static struct path_function walked(const char *path, const char *wanted)
{
	struct image *image;
	struct structure *s;
	struct graph g = {0};
	const char *name;
	assert_null(image_open(path, &image));
	assert_null(structure_open(image, &(struct structure_options){0}, &s));
	for (size_t i = 0; i < structure_count(s); i++) {
		uint64_t address = structure_entry(s, i, &name);
		if (name && !strcmp(name, wanted))
			assert_null(structure_graph(s, address, &g));
	}
	assert_true(g.block_count > 0);
	struct path_function f = walker_function(wanted, g, 0);
	struct walker w = walker_open(&f, 1);
	for (unsigned i = 0; i < 100; i++) {
		struct walk k = walker_call(&w);
		walker_go(&w, &k, 1000);
	}
	walker_close(&w);
	structure_close(s);
	image_close(image);
	free(f.module);
	f.module = realpath(path, NULL);
	return f;
}

static void test_real_lines(void **unused)
{
	(void)unused;
	struct path_result r = {0};
	struct buf out = {0};
	assert_int_equal(sample_loop("a b", 3), 2 - 'a' - 'b');
	add(&r, walked("/proc/self/exe", "sample_loop"));
	assert_null(path_show_text(&r, &(struct path_show){0, "", NULL}, &out));
	assert_non_null(strstr(buf_text(&out),
			       "sample_loop (test_paths_show, test_paths_show.c): 100 calls"));
	assert_non_null(strstr(buf_text(&out), "goes round"));
	assert_non_null(strstr(buf_text(&out), "loop "));
	buf_clear(&out);
	struct json j = json_to_buf(&out);
	json_begin_object(&j);
	assert_null(path_show_json(&r, &(struct path_show){0}, &j));
	json_end_object(&j);
	assert_non_null(strstr(buf_text(&out), "/test_paths_show.c:"));
	buf_free(&out);
	path_result_free(&r);
}

/* ---- the choice ---- */

static void test_modules(void **unused)
{
	(void)unused;
	const char *const modules[] = {"libm", "libz.so.1", "/opt/x/libx.so"};
	const struct path_choice none = {0}, some = {.modules = modules, .module_count = 3};
	assert_true(path_choice_has_module(&none, "/bin/app", true));
	assert_false(path_choice_has_module(&none, "/lib/libm.so.6", false));
	assert_true(path_choice_has_module(&some, "/lib/libm.so.6", false));
	assert_false(path_choice_has_module(&some, "/lib/libmvec.so.1", false));
	assert_true(path_choice_has_module(&some, "/lib/libz.so.1", false));
	assert_false(path_choice_has_module(&some, "/lib/libz.so.1.2", false));
	assert_true(path_choice_has_module(&some, "/opt/x/libx.so", false));
	assert_false(path_choice_has_module(&some, "/opt/y/libx.so", false));
	assert_false(path_choice_has_module(&some, "/bin/app", true));
}

static void test_functions(void **unused)
{
	(void)unused;
	regex_t patterns[2];
	assert_int_equal(regcomp(&patterns[0], "^shop::find", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regcomp(&patterns[1], "^_ZN3bin", REG_EXTENDED | REG_NOSUB), 0);
	const struct path_choice none = {0}, some = {.functions = patterns, .function_count = 2};
	assert_true(path_choice_has_function(&none, NULL));
	assert_true(path_choice_has_function(&none, "anything"));
	assert_false(path_choice_has_function(&some, NULL));
	assert_true(path_choice_has_function(&some, "_ZN4shop4findEi"));
	assert_true(path_choice_has_function(&some, "_ZN3bin3addEv"));
	assert_false(path_choice_has_function(&some, "_ZN4shop3addEi"));
	assert_false(path_choice_has_function(&some, "find"));
	regfree(&patterns[0]);
	regfree(&patterns[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),       cmocka_unit_test(test_metric),
		cmocka_unit_test(test_problems),   cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_json),       cmocka_unit_test(test_lines),
		cmocka_unit_test(test_real_lines), cmocka_unit_test(test_modules),
		cmocka_unit_test(test_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
