/* SPDX-License-Identifier: Apache-2.0 */
/* Two builds in one profile: which scopes are the same, and the one tree that they become. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "analyze/strings.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "compare/matches.h"
#include "compare/runs.h"
#include "profile/profile.h"
#include "view/comparison.h"
#include "view/contexts.h"
#include "view/lines.h"
#include "view/pack.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

struct side {
	uint8_t kind;
	const char *path, *build_id;
	struct profile_name names[4];
	size_t name_count;
};

/* Thread and run i, module i + 1 for each side. */
static struct profile *new_profile(const struct side sides[2])
{
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	good(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	for (uint32_t i = 0; i < 2; i++) {
		struct side s = sides[i];
		good(profile_add_process(
			p,
			&(struct profile_process){
				.pid = (int32_t)i + 1, .name = "app", .command = "app", .rank = -1},
			&index));
		good(profile_add_thread(p,
					&(struct profile_thread){
						.process = i, .tid = (int32_t)i + 1, .name = "app"},
					&index));
		good(profile_add_module(p,
					&(struct profile_module){.kind = s.kind,
								 .path = s.path,
								 .build_id = s.build_id,
								 .process = i,
								 .problem = "",
								 .names = s.names,
								 .name_count = s.name_count},
					&index));
		assert_int_equal(index, i + 1);
	}
	p->complete = true;
	return p;
}

/* A path of addresses, outermost first, that ends with 0. */
static void count(struct profile *p, uint32_t side, const uint64_t *path, uint64_t n)
{
	uint32_t node = 0;
	for (; *path; path++)
		good(profile_child(p, node, path[1] ? PROFILE_CALL : PROFILE_EXACT, side + 1,
				   *path + 0x10, &node));
	good(profile_count(p, node, side, 0, n));
}

/* What is made of a profile. */
struct made {
	struct profile *p;
	struct modules *modules;
	struct attribution a;
	struct matches matches;
	struct comparison comparison;
	struct strings strings;
	struct lines lines;
	struct contexts contexts;
	struct buf notes;
	uint32_t of_thread[2];
	struct comparison_run runs[2];
};

static void make(struct made *m, struct profile *p)
{
	static const uint64_t periods[] = {1000000, 1250000};
	*m = (struct made){
		.p = p,
		.of_thread = {0, 1},
		.runs = {{.path = "old", .samples = 1, .periods = periods, .period_count = 1},
			 {.path = "new", .samples = 2, .periods = periods + 1, .period_count = 1}}};
	struct runs runs = {.profile = p, .count = 2, .of_thread = m->of_thread};
	good(profile_settle(p));
	good(modules_open(p, false, &m->modules));
	good(attribution_make(p, m->modules, &(struct attribution_options){.by = BY_FUNCTION},
			      &m->a));
	good(matches_make(&runs, 1, m->modules, &m->a, &m->matches, &m->notes));
	m->comparison = (struct comparison){
		.runs = m->runs,
		.count = 2,
		.old_count = 1,
		.of_thread = m->of_thread,
		.same = m->matches.same,
		.names = m->matches.names,
		.whole = m->matches.whole,
		.alpha = 0.05,
		.noise = 0.02,
		.min = 0.001,
	};
	strings_add(&m->strings, "");
	good(lines_make(p, m->modules, &m->strings, &m->lines));
	good(contexts_make(&m->a, &m->lines, &m->comparison, &m->contexts));
}

static void made_free(struct made *m)
{
	contexts_free(&m->contexts);
	lines_free(&m->lines);
	strings_free(&m->strings);
	matches_free(&m->matches);
	attribution_free(&m->a);
	modules_close(m->modules);
	profile_free(m->p);
	buf_free(&m->notes);
}

static const char *name_of(const struct made *m, uint32_t scope)
{
	return comparison_name(&m->comparison, scope, scopes_get(m->a.scopes, scope)->name);
}

/* The nodes of the tree, in their order, as "main(solve gone)". */
static void draw(const struct made *m, uint32_t node, struct buf *out)
{
	const struct tree *t = m->contexts.tree;
	buf_puts(out, name_of(m, t->nodes[node].scope));
	for (uint32_t c = t->nodes[node].child; c != TREE_NONE; c = t->nodes[c].next) {
		buf_puts(out, c == t->nodes[node].child ? "(" : " ");
		draw(m, c, out);
	}
	buf_puts(out, t->nodes[node].child != TREE_NONE ? ")" : "");
}

static void expect_tree(const struct made *m, const char *wanted)
{
	struct buf text = {0};
	draw(m, 0, &text);
	assert_string_equal(buf_text(&text), wanted);
	buf_free(&text);
}

/* Samples of a side in the nodes of this name. */
static uint64_t samples(const struct made *m, const char *name, uint32_t side)
{
	const struct contexts *c = &m->contexts;
	uint64_t sum = 0;
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].thread == side &&
		    !strcmp(name_of(m, c->tree->nodes[c->order[c->rows[i].node]].scope), name))
			sum += c->rows[i].count;
	return sum;
}

/* ---- the tests ---- */

static const struct side moved[2] = {
	{PROFILE_JIT,
	 "/tmp/old/[made]",
	 "",
	 {{0x1000, 0x100, "main"}, {0x1100, 0x100, "solve"}, {0x1200, 0x100, "gone"}},
	 3},
	{PROFILE_JIT,
	 "/tmp/new/[made]",
	 "",
	 {{0x5000, 0x100, "extra"}, {0x5100, 0x100, "solve.constprop.0"}, {0x5200, 0x100, "main"}},
	 3},
};

static void matches_by_name(void **state)
{
	struct profile *p = new_profile(moved);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x1100, 0}, 100);
	count(p, 0, (uint64_t[]){0x1000, 0x1200, 0}, 30);
	count(p, 1, (uint64_t[]){0x5200, 0x5100, 0}, 200);
	count(p, 1, (uint64_t[]){0x5200, 0x5000, 0}, 7);
	make(&m, p);
	expect_tree(&m, "(all)(main(solve gone extra))");
	assert_int_equal(samples(&m, "solve", 0), 100);
	assert_int_equal(samples(&m, "solve", 1), 200);
	assert_int_equal(samples(&m, "gone", 0), 30);
	assert_int_equal(samples(&m, "gone", 1), 0);
	assert_int_equal(samples(&m, "extra", 0), 0);
	assert_int_equal(samples(&m, "extra", 1), 7);
	/* The new build's stands for both. */
	for (uint32_t i = 1; i < scopes_count(m.a.scopes); i++) {
		uint32_t same = m.matches.same[i];
		assert_int_equal(m.matches.same[same], same);
		if (!strcmp(name_of(&m, i), "solve"))
			assert_int_equal(scopes_get(m.a.scopes, same)->module, 2);
	}
	assert_int_equal(m.notes.size, 0);
	made_free(&m);
}

static void code_without_a_name_is_one(void **state)
{
	static const struct side sides[2] = {
		{PROFILE_JIT, "[made]", "01", {{0x1000, 0x100, "main"}}, 1},
		{PROFILE_JIT, "[made]", "02", {{0x5000, 0x100, "main"}}, 1},
	};
	struct profile *p = new_profile(sides);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x3000, 0}, 10);
	count(p, 0, (uint64_t[]){0x1000, 0x3400, 0}, 20);
	count(p, 1, (uint64_t[]){0x5000, 0x7000, 0}, 40);
	make(&m, p);
	expect_tree(&m, "(all)(main((code made at run time)))");
	assert_int_equal(samples(&m, "(code made at run time)", 0), 30);
	assert_int_equal(samples(&m, "(code made at run time)", 1), 40);
	made_free(&m);
}

/* Builds that cannot be read: all of the file is one node, however deep the calls in it are. */
static void what_is_gone_is_whole(void **state)
{
	static const struct side sides[2] = {
		{PROFILE_FILE, "/nowhere/old/app", "01", {{0}}, 0},
		{PROFILE_FILE, "/nowhere/new/app", "02", {{0}}, 0},
	};
	struct profile *p = new_profile(sides);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x2000, 0x3000, 0}, 10);
	count(p, 0, (uint64_t[]){0x1000, 0}, 1);
	count(p, 1, (uint64_t[]){0x1000, 0x2000, 0}, 20);
	make(&m, p);
	expect_tree(&m, "(all)(all of app)");
	assert_int_equal(samples(&m, "all of app", 0), 11);
	assert_int_equal(samples(&m, "all of app", 1), 20);
	assert_non_null(strstr(buf_text(&m.notes), "app is compared as a whole"));
	made_free(&m);
}

/* Functions of one family, where there is no choice. */
static void other_template_arguments(void **state)
{
	static const struct side sides[2] = {
		{PROFILE_JIT,
		 "[made]",
		 "",
		 {{0x1000, 0x100, "main"},
		  {0x1100, 0x100, "double sum<double>(double)"},
		  {0x1200, 0x100, "cut<int>(int)"},
		  {0x1300, 0x100, "cut<long>(long)"}},
		 4},
		{PROFILE_JIT,
		 "[made]",
		 "",
		 {{0x5000, 0x100, "main"},
		  {0x5100, 0x100, "float sum<float>(float)"},
		  {0x5200, 0x100, "cut<char>(char)"}},
		 3},
	};
	struct profile *p = new_profile(sides);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x1100, 0}, 100);
	count(p, 0, (uint64_t[]){0x1000, 0x1200, 0}, 30);
	count(p, 0, (uint64_t[]){0x1000, 0x1300, 0}, 20);
	count(p, 1, (uint64_t[]){0x5000, 0x5100, 0}, 90);
	count(p, 1, (uint64_t[]){0x5000, 0x5200, 0}, 40);
	make(&m, p);
	assert_int_equal(samples(&m, "float sum<float>(float)", 0), 100);
	assert_int_equal(samples(&m, "float sum<float>(float)", 1), 90);
	assert_int_equal(samples(&m, "cut<int>(int)", 1), 0);
	assert_int_equal(samples(&m, "cut<long>(long)", 1), 0);
	assert_int_equal(samples(&m, "cut<char>(char)", 0), 0);
	made_free(&m);
}

/* What a compiler split off a function is called by what is left of it; calls of itself stay calls. */
static void split_functions_are_one(void **state)
{
	static const struct side sides[2] = {
		{PROFILE_JIT, "[made]", "", {{0x1000, 0x100, "main"}, {0x1100, 0x100, "fib"}}, 2},
		{PROFILE_JIT,
		 "[made]",
		 "",
		 {{0x5000, 0x100, "main"}, {0x5100, 0x100, "fib"}, {0x5200, 0x100, "fib.part.0"}},
		 3},
	};
	struct profile *p = new_profile(sides);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x1100, 0x1100, 0}, 100);
	count(p, 1, (uint64_t[]){0x5000, 0x5100, 0x5200, 0x5100, 0x5200, 0}, 90);
	make(&m, p);
	expect_tree(&m, "(all)(main(fib(fib)))");
	assert_int_equal(samples(&m, "fib", 0), 100);
	assert_int_equal(samples(&m, "fib", 1), 90);
	made_free(&m);
}

/* Modules of other names: by version, as the program of a side, and not at all. */
static void modules_with_other_names(void **state)
{
	static const struct {
		const char *old, *new;
		bool same;
	} cases[] = {
		{"/old/libx.so.1.2", "/new/libx.so.1.3", true},
		{"/old/libx-2.so", "/new/libx-3.so", true},
		{"/old/app", "/new/app-changed", true},
		{"/old/libx.so.1", "/new/liby.so.1", false},
		{"/old/app", "/new/libx.so.1", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct side sides[2] = {
			{PROFILE_FILE, cases[i].old, "01", {{0}}, 0},
			{PROFILE_FILE, cases[i].new, "02", {{0}}, 0},
		};
		struct profile *p = new_profile(sides);
		struct made m;
		count(p, 0, (uint64_t[]){0x1000, 0}, 10);
		count(p, 1, (uint64_t[]){0x1000, 0}, 20);
		make(&m, p);
		const struct tree *t = m.contexts.tree;
		size_t below = 0;
		for (uint32_t c = t->nodes[0].child; c != TREE_NONE; c = t->nodes[c].next)
			below++;
		assert_int_equal(below, cases[i].same ? 1 : 2);
		made_free(&m);
	}
}

/* A frame that one build has: what is below it is below its parent, too. */
static void level_of_one_build(void **state)
{
	struct profile *p = new_profile(moved);
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x1100, 0x1200, 0}, 100);
	count(p, 1, (uint64_t[]){0x5200, 0x5000, 0x5100, 0}, 200);
	count(p, 1, (uint64_t[]){0x5200, 0x5000, 0}, 5);
	make(&m, p);
	expect_tree(&m, "(all)(main(extra(solve(gone))))");
	assert_int_equal(samples(&m, "gone", 0), 100);
	assert_int_equal(samples(&m, "solve", 1), 200);
	assert_int_equal(samples(&m, "extra", 1), 5);
	assert_int_equal(samples(&m, "extra", 0), 0);
	made_free(&m);
}

static void packs_what_is_compared(void **state)
{
	struct profile *p = new_profile(moved);
	struct buf bytes = {0};
	struct made m;
	(void)state;
	count(p, 0, (uint64_t[]){0x1000, 0x1100, 0}, 100);
	count(p, 1, (uint64_t[]){0x5200, 0x5100, 0}, 200);
	make(&m, p);
	m.runs[0].path = "a\"</script>.prof";
	good(pack_make(&(struct pack_input){.profile = p,
					    .modules = m.modules,
					    .attribution = &m.a,
					    .notes = "",
					    .title = "x",
					    .version = "1",
					    .comparison = &m.comparison},
		       &bytes));
	char *header = strndup(bytes.data + 4, bytes.size - 4);
	assert_non_null(strstr(
		header,
		"\"comparison\":{\"runs\":[{\"path\":\"a\\\"</script>.prof\",\"samples\":1,\"periods\":[1000000]},"
		"{\"path\":\"new\",\"samples\":2,\"periods\":[1250000]}],\"old\":1,\"threads\":[0,1],"
		"\"alpha\":0.05,\"noise\":0.02,\"min\":0.001}"));
	assert_null(strstr(header, "constprop"));
	free(header);
	buf_free(&bytes);
	made_free(&m);
}

static void packs_an_empty_side(void **state)
{
	struct profile *p = new_profile(moved);
	struct made m;
	(void)state;
	count(p, 1, (uint64_t[]){0x5200, 0x5100, 0}, 200);
	make(&m, p);
	expect_tree(&m, "(all)(main(solve))");
	assert_int_equal(samples(&m, "solve", 0), 0);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_by_name),
		cmocka_unit_test(code_without_a_name_is_one),
		cmocka_unit_test(what_is_gone_is_whole),
		cmocka_unit_test(other_template_arguments),
		cmocka_unit_test(split_functions_are_one),
		cmocka_unit_test(modules_with_other_names),
		cmocka_unit_test(level_of_one_build),
		cmocka_unit_test(packs_what_is_compared),
		cmocka_unit_test(packs_an_empty_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
