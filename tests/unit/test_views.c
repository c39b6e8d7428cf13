/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "made_module.h"

#include "analyze/views.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "analyze/show.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "profile/profile.h"
#include "unwind/walk.h"

/* Functions of a module made at run time: the profile itself has their names. Function 'a' is at
   0x1000, 'b' at 0x1100, … */

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct profile *new_profile(void)
{
	static char texts[26][2];
	struct profile_name names[26];
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	for (int i = 0; i < 26; i++) {
		texts[i][0] = (char)('a' + i);
		names[i] = (struct profile_name){0x1000 + 0x100u * (unsigned)i, 0x100, texts[i]};
	}
	good(profile_add_process(p,
				 &(struct profile_process){.pid = 10,
							   .parent = 1,
							   .name = "app",
							   .command = "app",
							   .rank = -1,
							   .status = 0},
				 &index));
	assert_int_equal(add_made_module(p, names, 26), 1);
	good(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	good(profile_add_metric(
		p, &(struct profile_metric){"page-faults", "faults", 1, false, {0, 0}}, &index));
	for (int t = 0; t < 2; t++)
		good(profile_add_thread(p,
					&(struct profile_thread){.tid = 10 + t,
								 .name = t ? "worker" : "app",
								 .cpu_ns = 1000000000,
								 .handler_ns = 4000000,
								 .handled = 1000},
					&index));
	p->complete = true;
	p->delivery_ns = 1000;
	p->hz = 1000;
	return p;
}

/* Samples of a path: a letter for each function, outermost first; a digit in front is the reason
   why it is partial. Every call is at its own place in the function, by what it calls. */
static void count(struct profile *p, const char *path, unsigned thread, unsigned metric, unsigned n)
{
	uint32_t node = 0;
	if (path[0] >= '0' && path[0] <= '9')
		good(profile_child(p, 0, PROFILE_PARTIAL, 0, (uint64_t)(*path++ - '0'), &node));
	for (; *path; path++) {
		uint64_t start = 0x1000 + 0x100u * (unsigned)(*path - 'a');
		if (path[1])
			good(profile_child(p, node, PROFILE_CALL, 1, start + 4 + (path[1] - 'a'),
					   &node));
		else
			good(profile_child(p, node, PROFILE_EXACT, 1, start + 0x80, &node));
	}
	good(profile_count(p, node, thread, metric, n));
}

struct made {
	struct modules *modules;
	struct attribution a;
	struct tree *t;
};

static struct made make_with(struct profile *p, struct view_options v, const char *focus,
			     const char *ignore, enum attribution_by by)
{
	struct made m;
	regex_t on, off;
	struct attribution_options o = {
		.by = by, .focus = focus ? &on : NULL, .ignore = ignore ? &off : NULL};
	good(profile_settle(p));
	if (focus)
		assert_int_equal(regcomp(&on, focus, REG_EXTENDED | REG_NOSUB), 0);
	if (ignore)
		assert_int_equal(regcomp(&off, ignore, REG_EXTENDED | REG_NOSUB), 0);
	good(modules_open(p, false, &m.modules));
	good(attribution_make(p, m.modules, &o, &m.a));
	good(view_make(&m.a, &v, &m.t));
	if (focus)
		regfree(&on);
	if (ignore)
		regfree(&off);
	return m;
}

static struct made make(struct profile *p, enum view view, enum view_group group)
{
	return make_with(p, (struct view_options){.view = view, .group = group}, NULL, NULL,
			 BY_FUNCTION);
}

static void unmake(struct made *m)
{
	tree_free(m->t);
	attribution_free(&m->a);
	modules_close(m->modules);
}

static const char *name_of(const struct tree *t, uint32_t node)
{
	return scopes_get(t->scopes, t->nodes[node].scope)->name;
}

/* "a 5/0 (b 5/5)": names with total/self of a metric, children in parentheses. */
static void write_node(const struct tree *t, uint32_t node, uint32_t metric, struct buf *out)
{
	uint32_t c = tree_first(t, node);
	buf_printf(out, "%s %u/%u", name_of(t, node), (unsigned)tree_total(t, node, metric),
		   (unsigned)tree_self(t, node, metric));
	for (const char *before = " ("; c != TREE_NONE; c = tree_next(t, c), before = ", ") {
		buf_puts(out, before);
		write_node(t, c, metric, out);
	}
	if (tree_first(t, node) != TREE_NONE)
		buf_puts(out, ")");
}

static void expect_tree(const struct tree *t, uint32_t metric, const char *expected)
{
	struct buf out = {0};
	write_node(t, 0, metric, &out);
	assert_string_equal(buf_text(&out), expected);
	buf_free(&out);
}

static void expect(struct profile *p, enum view view, const char *expected)
{
	struct made m = make(p, view, GROUP_NONE);
	expect_tree(m.t, 0, expected);
	unmake(&m);
}

/* The same function by several calls is one child; the order is by cost. */
static void merges_calls_of_a_function(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abd", 0, 0, 3);
	count(p, "abe", 0, 0, 2);
	count(p, "ab", 1, 0, 1);
	count(p, "ac", 0, 0, 7);
	expect(p, VIEW_TREE, "(all) 13/0 (a 13/0 (c 7/7, b 6/1 (d 3/3, e 2/2)))");
	expect(p, VIEW_FLAT, "(all) 13/0 (c 7/7, d 3/3, e 2/2, b 6/1, a 13/0)");
	expect(p, VIEW_CALLERS,
	       "(all) 13/0 (c 7/7 (a 7/7), d 3/3 (b 3/3 (a 3/3)), e 2/2 (b 2/2 (a 2/2)), "
	       "b 6/1 (a 6/1), a 13/0)");
	profile_free(p);
}

static void counts_recursion_once(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abbb", 0, 0, 4);
	count(p, "ab", 0, 0, 2);
	count(p, "abcb", 0, 0, 1);
	expect(p, VIEW_TREE, "(all) 7/0 (a 7/0 (b 7/2 (b 4/0 (b 4/4), c 1/0 (b 1/1))))");
	expect(p, VIEW_FLAT, "(all) 7/0 (b 7/7, a 7/0, c 1/0)");
	/* Through the inner calls came samples of b itself, but nothing that the outermost call
	   does not have already. */
	expect(p, VIEW_CALLERS,
	       "(all) 7/0 (b 7/7 (b 0/4 (b 0/4 (a 0/4)), a 7/2, c 0/1 (b 0/1 (a 0/1))), "
	       "a 7/0, c 1/0 (b 1/0 (a 1/0)))");
	profile_free(p);
}

static void shows_partial_paths(void **state)
{
	struct profile *p = new_profile();
	struct summary s;
	(void)state;
	count(p, "ab", 0, 0, 5);
	count(p, "3cb", 0, 0, 2);
	count(p, "6c", 0, 0, 1);
	expect(p, VIEW_TREE,
	       "(all) 8/0 (a 5/0 (b 5/5), (partial: no recipe) 2/0 (c 2/0 (b 2/2)), "
	       "(partial: bad frame) 1/0 (c 1/1))");
	expect(p, VIEW_CALLERS,
	       "(all) 8/0 (b 7/7 (a 5/5, c 2/2 ((partial: no recipe) 2/2)), "
	       "c 3/1 ((partial: bad frame) 1/1, (partial: no recipe) 2/0), a 5/0, "
	       "(partial: no recipe) 2/0, (partial: bad frame) 1/0)");
	profile_lose(p, "no room", 3);
	summary_make(p, 0, &s);
	assert_int_equal(s.samples, 8);
	assert_int_equal(s.complete, 5);
	assert_int_equal(s.partial, 3);
	assert_int_equal(s.by_reason[WALK_NO_RECIPE], 2);
	assert_int_equal(s.by_reason[WALK_BAD_FRAME], 1);
	assert_int_equal(s.lost, 3);
	assert_int_equal(s.handler_ns, 4000);
	assert_true(s.overhead > 0.0049999 && s.overhead < 0.0050001);
	profile_free(p);
}

static void groups_by_thread(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	bool threads[2] = {false, true};
	(void)state;
	count(p, "ab", 0, 0, 1);
	count(p, "ab", 1, 0, 5);
	count(p, "bb", 1, 0, 2);
	m = make(p, VIEW_TREE, GROUP_THREAD);
	expect_tree(m.t, 0,
		    "(all) 8/0 (worker (thread 11) 7/0 (a 5/0 (b 5/5), b 2/0 (b 2/2)), "
		    "app (thread 10) 1/0 (a 1/0 (b 1/1)))");
	unmake(&m);
	m = make(p, VIEW_CALLERS, GROUP_THREAD);
	expect_tree(m.t, 0,
		    "(all) 8/0 (worker (thread 11) 7/0 (b 7/7 (a 5/5, b 0/2), a 5/0), "
		    "app (thread 10) 1/0 (b 1/1 (a 1/1), a 1/0))");
	unmake(&m);
	m = make(p, VIEW_FLAT, GROUP_THREAD);
	expect_tree(m.t, 0, "(all) 8/0 (worker (thread 11) 7/7, app (thread 10) 1/1)");
	unmake(&m);
	m = make(p, VIEW_FLAT, GROUP_PROCESS);
	expect_tree(m.t, 0, "(all) 8/0 (app (process 10) 8/8)");
	unmake(&m);
	m = make(p, VIEW_FLAT, GROUP_RANK);
	expect_tree(m.t, 0, "(all) 8/0 ((no rank) 8/8)");
	unmake(&m);
	m = make_with(p, (struct view_options){.view = VIEW_TREE, .thread = threads}, NULL, NULL,
		      BY_FUNCTION);
	expect_tree(m.t, 0, "(all) 7/0 (a 5/0 (b 5/5), b 2/0 (b 2/2))");
	assert_int_equal(m.t->whole[0], 8);
	unmake(&m);
	profile_free(p);
}

static void keeps_metrics_apart(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	(void)state;
	count(p, "ab", 0, 0, 5);
	count(p, "ab", 0, 1, 100);
	count(p, "ac", 0, 1, 900);
	m = make_with(p, (struct view_options){.metric = 1}, NULL, NULL, BY_FUNCTION);
	expect_tree(m.t, 1, "(all) 1000/0 (a 1000/0 (c 900/900, b 100/100))");
	expect_tree(m.t, 0, "(all) 5/0 (a 5/0 (c 0/0, b 5/5))");
	assert_int_equal(m.t->whole[0], 5);
	assert_int_equal(m.t->whole[1], 1000);
	unmake(&m);
	profile_free(p);
}

static void focuses_and_ignores(void **state)
{
	struct profile *p = new_profile();
	struct view_options v = {0};
	struct made m;
	(void)state;
	count(p, "abc", 0, 0, 5);
	count(p, "abd", 0, 0, 3);
	count(p, "ae", 0, 0, 2);
	count(p, "ab", 0, 0, 1);
	m = make_with(p, v, "^b$", NULL, BY_FUNCTION);
	expect_tree(m.t, 0, "(all) 9/0 (a 9/0 (b 9/1 (c 5/5, d 3/3)))");
	assert_int_equal(m.t->whole[0], 11);
	unmake(&m);
	m = make_with(p, v, "^b$", "c|e", BY_FUNCTION);
	expect_tree(m.t, 0, "(all) 4/0 (a 4/0 (b 4/1 (d 3/3)))");
	unmake(&m);
	m = make_with(p, v, NULL, "[cd]", BY_MODULE);
	expect_tree(m.t, 0, "(all) 3/0 ([made] 3/3)");
	unmake(&m);
	profile_free(p);
}

static void follows_the_hot_path(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	uint32_t last;
	(void)state;
	count(p, "abc", 0, 0, 30);
	count(p, "abd", 0, 0, 25);
	count(p, "abe", 0, 0, 25);
	count(p, "af", 0, 0, 15);
	count(p, "g", 0, 0, 5);
	m = make(p, VIEW_TREE, GROUP_NONE);
	last = tree_hot_path(m.t, 0);
	assert_string_equal(name_of(m.t, last), "b");
	expect_tree(m.t, 0, "(all) 100/0 (a 95/0 (b 80/0))");
	unmake(&m);
	profile_free(p);
}

static void hides_what_is_small(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	(void)state;
	count(p, "ab", 0, 0, 98);
	count(p, "acd", 0, 0, 1);
	count(p, "ace", 0, 0, 1);
	m = make(p, VIEW_TREE, GROUP_NONE);
	assert_int_equal(tree_prune(m.t, 0, 0.02, 0), 2);
	expect_tree(m.t, 0, "(all) 100/0 (a 100/0 (b 98/98, c 2/0))");
	unmake(&m);
	m = make(p, VIEW_TREE, GROUP_NONE);
	assert_int_equal(tree_prune(m.t, 0, 0, 1), 0);
	expect_tree(m.t, 0, "(all) 100/0 (a 100/0)");
	unmake(&m);
	m = make_with(p, (struct view_options){.view = VIEW_CALLERS, .min = 0.015, .depth = 1},
		      NULL, NULL, BY_FUNCTION);
	tree_prune(m.t, 0, 0.015, 0);
	expect_tree(m.t, 0, "(all) 100/0 (b 98/98, a 100/0, c 2/0)");
	unmake(&m);
	profile_free(p);
}

static void never_hides_partial_paths(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	(void)state;
	count(p, "ab", 0, 0, 998);
	count(p, "ab", 0, 1, 1);
	count(p, "3cb", 0, 0, 2);
	m = make(p, VIEW_TREE, GROUP_NONE);
	assert_int_equal(tree_prune(m.t, 0, 0.01, 0), 1);
	expect_tree(m.t, 0, "(all) 1000/0 (a 998/0 (b 998/998), (partial: no recipe) 2/0)");
	assert_int_equal(tree_prune(m.t, 1, 0.01, 0), 0);
	expect_tree(m.t, 1, "(all) 1/0 (a 1/0 (b 1/1))");
	unmake(&m);
	profile_free(p);
}

static void tells_instructions_apart(void **state)
{
	struct profile *p = new_profile();
	struct made m;
	(void)state;
	count(p, "ab", 0, 0, 5);
	count(p, "ac", 0, 0, 4);
	m = make_with(p, (struct view_options){0}, NULL, NULL, BY_INSN);
	expect_tree(m.t, 0, "(all) 9/0 (a+0x5 5/0 (b+0x80 5/5), a+0x6 4/0 (c+0x80 4/4))");
	unmake(&m);
	profile_free(p);
}

/* Frames with loops and inlined functions, made by hand: a frame is a letter of `frames` and its
   steps are what `steps` says, for instance "a L M" for function a with two loops; small letters
   in parentheses are inlined functions. The nodes of the profile decide by their function which
   frame they are. */

static uint32_t hand_scope(struct attribution *a, const char *word)
{
	bool inlined = word[0] == '(';
	enum scope_kind kind = word[0] == '?'                     ? SCOPE_PARTIAL
			       : inlined                          ? SCOPE_INLINE
			       : word[0] >= 'A' && word[0] <= 'Z' ? SCOPE_LOOP
								  : SCOPE_FUNCTION;
	char name[2] = {word[inlined], 0};
	uint32_t number;
	good(scopes_add(a->scopes,
			&(struct scope){.kind = kind,
					.module = 1,
					.address = (uint64_t)(unsigned char)name[0],
					.name = name},
			&number));
	return number;
}

static void hand_steps(struct attribution *a, const char *text)
{
	char *copy = strdup(text), *rest = NULL;
	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		uint32_t scope = hand_scope(a, word);
		if (a->by == BY_LOOP && scopes_get(a->scopes, scope)->kind != SCOPE_LOOP &&
		    word[0] != '?')
			continue;
		assert_true(a->step_count < a->step_room);
		a->steps[a->step_count++] = (struct attribution_step){.scope = scope};
	}
	free(copy);
}

/* steps[i] is for frames in function 'a' + i. */
static struct attribution by_hand(struct profile *p, enum attribution_by by,
				  const char *const *steps)
{
	struct attribution a = {.profile = p, .by = by, .step_room = 20000};
	good(profile_settle(p));
	good(scopes_new(&a.scopes));
	a.spans = calloc(p->node_count + 1, sizeof *a.spans);
	a.steps = calloc(a.step_room, sizeof *a.steps);
	a.dropped = calloc(p->node_count + 1, sizeof *a.dropped);
	assert_true(a.spans && a.steps && a.dropped);
	if (by == BY_LOOP)
		good(scopes_add(a.scopes,
				&(struct scope){.kind = SCOPE_LOOP, .name = "(in no loop)"},
				&a.rest));
	for (size_t i = 1; i < p->node_count; i++) {
		a.spans[i].first = (uint32_t)a.step_count;
		if (p->nodes[i].kind == PROFILE_PARTIAL)
			hand_steps(&a, "?");
		else
			hand_steps(&a, steps[(p->nodes[i].address - 0x1000) / 0x100]);
		a.spans[i].count = (uint32_t)a.step_count - a.spans[i].first;
	}
	return a;
}

static void expect_by_hand(struct profile *p, enum attribution_by by, const char *const *steps,
			   enum view view, const char *expected)
{
	struct attribution a = by_hand(p, by, steps);
	struct tree *t;
	good(view_make(&a, &(struct view_options){.view = view}, &t));
	expect_tree(t, 0, expected);
	tree_free(t);
	attribution_free(&a);
}

/* a's loop K calls b, which has a loop L in a loop M, and in L the inlined function x with the loop
   N; c is called from there and has no loop. */
static const char *const nest[] = {"a K", "b M L (x N", "c"};

static void loops_are_scopes_of_the_tree(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abc", 0, 0, 4);
	count(p, "ab", 0, 0, 3);
	count(p, "a", 0, 0, 2);
	expect_by_hand(p, BY_FUNCTION, nest, VIEW_TREE,
		       "(all) 9/0 (a 9/0 (K 9/2 (b 7/0 (M 7/0 (L 7/0 (x 7/0 (N 7/3 (c 4/4))))))))");
	profile_free(p);
}

static void functions_have_the_samples_of_their_loops(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abc", 0, 0, 4);
	count(p, "ab", 0, 0, 3);
	count(p, "a", 0, 0, 2);
	expect_by_hand(p, BY_FUNCTION, nest, VIEW_FLAT, "(all) 9/0 (c 4/4, x 7/3, a 9/2, b 7/0)");
	/* The loop of the call stands between a function and its caller. */
	expect_by_hand(p, BY_FUNCTION, nest, VIEW_CALLERS,
		       "(all) 9/0 (c 4/4 (N 4/4 (x 4/4 (L 4/4 (M 4/4 (b 4/4 (K 4/4 (a 4/4))))))), "
		       "x 7/3 (L 7/3 (M 7/3 (b 7/3 (K 7/3 (a 7/3))))), "
		       "a 9/2, b 7/0 (K 7/0 (a 7/0)))");
	profile_free(p);
}

static void loops_are_peers(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abc", 0, 0, 4);
	count(p, "ab", 0, 0, 3);
	count(p, "a", 0, 0, 2);
	count(p, "c", 0, 0, 1);
	expect_by_hand(p, BY_LOOP, nest, VIEW_TREE,
		       "(all) 10/0 (K 9/2 (M 7/0 (L 7/0 (N 7/3 ((in no loop) 4/4)))), "
		       "(in no loop) 1/1)");
	expect_by_hand(p, BY_LOOP, nest, VIEW_FLAT,
		       "(all) 10/0 ((in no loop) 5/5, N 7/3, K 9/2, L 7/0, M 7/0)");
	profile_free(p);
}

static void recursion_through_loops_counts_once(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count(p, "abab", 0, 0, 5);
	count(p, "aba", 0, 0, 1);
	expect_by_hand(p, BY_LOOP, nest, VIEW_FLAT, "(all) 6/0 (N 6/5, K 6/1, L 6/0, M 6/0)");
	expect_by_hand(p, BY_FUNCTION, nest, VIEW_FLAT, "(all) 6/0 (x 6/5, a 6/1, b 6/0)");
	profile_free(p);
}

/* Sums that must hold in any profile. */

static void check_sums(struct profile *p, const struct tree *t, enum view view)
{
	uint64_t self = 0;
	assert_int_equal(tree_total(t, 0, 0), profile_samples(p, 0));
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t below = 0;
		self += view == VIEW_FLAT || view == VIEW_TREE ? tree_self(t, i, 0) : 0;
		for (uint32_t c = t->nodes[i].child; c != TREE_NONE; c = t->nodes[c].next) {
			below += tree_total(t, c, 0);
			assert_true(tree_total(t, c, 0) <= tree_total(t, i, 0));
			if (view == VIEW_CALLERS && !i)
				self += tree_self(t, c, 0);
			if (view == VIEW_CALLERS && i)
				assert_true(tree_self(t, c, 0) <= tree_self(t, i, 0));
		}
		if (view == VIEW_TREE)
			assert_int_equal(tree_total(t, i, 0), below + tree_self(t, i, 0));
	}
	assert_int_equal(self, profile_samples(p, 0));
}

static struct profile *random_profile(unsigned *seed)
{
	struct profile *p = new_profile();
	for (int i = 0; i < 200; i++) {
		char path[16];
		int length = 1 + rand_r(seed) % 12, k = 0;
		if (rand_r(seed) % 10 == 0)
			path[k++] = (char)('2' + rand_r(seed) % 8); /* some reasons are none */
		for (; k < length; k++)
			path[k] = (char)('a' + rand_r(seed) % 4);
		path[k] = 0;
		if (path[k - 1] >= 'a')
			count(p, path, (unsigned)rand_r(seed) % 2, 0,
			      1 + (unsigned)rand_r(seed) % 9);
	}
	return p;
}

static void sums_hold_for_random_trees(void **state)
{
	unsigned seed = 1;
	(void)state;
	for (int round = 0; round < 30; round++) {
		struct profile *p = random_profile(&seed);
		for (enum view view = VIEW_TREE; view <= VIEW_FLAT; view++) {
			struct made m = make(p, view, GROUP_NONE);
			check_sums(p, m.t, view);
			unmake(&m);
		}
		profile_free(p);
	}
}

static void sums_hold_with_loops(void **state)
{
	static const char *const steps[] = {"a K", "b M L (x N", "c", "d (x K (y"};
	unsigned seed = 2;
	(void)state;
	for (int round = 0; round < 30; round++) {
		struct profile *p = random_profile(&seed);
		for (int i = 0; i < 6; i++) {
			enum view view = (enum view)(i % 3);
			struct attribution a = by_hand(p, i < 3 ? BY_FUNCTION : BY_LOOP, steps);
			struct tree *t;
			good(view_make(&a, &(struct view_options){.view = view}, &t));
			check_sums(p, t, view);
			tree_free(t);
			attribution_free(&a);
		}
		profile_free(p);
	}
}

/* No recursion of ours may overflow the stack, and nothing may take the square of the depth. */
static void bears_deep_stacks(void **state)
{
	struct profile *p = new_profile();
	uint32_t node = 0;
	(void)state;
	for (unsigned i = 0; i < 60000; i++)
		good(profile_child(p, node, PROFILE_CALL, 1, 0x1004 + 0x100 * (i % 2), &node));
	good(profile_count(p, node, 0, 0, 10));
	good(profile_settle(p));
	for (enum view view = VIEW_TREE; view <= VIEW_FLAT; view++) {
		struct made m = make(p, view, GROUP_NONE);
		struct buf text = {0}, json = {0};
		struct json j = json_to_buf(&json);
		struct show_options o = {.flat = view == VIEW_FLAT, .width = 100};
		assert_int_equal(tree_total(m.t, 0, 0), 10);
		show_text(m.t, p, &o, &text);
		json_begin_object(&j);
		show_json(m.t, p, &o, &j);
		json_end_object(&j);
		assert_true(text.size && json.size && !text.failed && !json.failed);
		buf_free(&text);
		buf_free(&json);
		unmake(&m);
	}
	profile_free(p);
}

static void draws_forks(void **state)
{
	struct profile *p = new_profile();
	struct buf out = {0};
	struct show_options o = {0};
	struct made m;
	(void)state;
	count(p, "abcd", 0, 0, 400);
	count(p, "abe", 0, 0, 200);
	count(p, "f", 0, 0, 400);
	m = make(p, VIEW_TREE, GROUP_NONE);
	show_text(m.t, p, &o, &out);
	assert_string_equal(buf_text(&out), "   total     self       time \n"
					    " 100.00%    0.00%     1.00 s (all)\n"
					    "  60.00%    0.00%     600 ms ├─ a  ([made])\n"
					    "  60.00%    0.00%     600 ms │  b  ([made])\n"
					    "  40.00%    0.00%     400 ms │  ├─ c  ([made])\n"
					    "  40.00%   40.00%     400 ms │  │  d  ([made])\n"
					    "  20.00%   20.00%     200 ms │  └─ e  ([made])\n"
					    "  40.00%   40.00%     400 ms └─ f  ([made])\n");
	buf_free(&out);
	o = (struct show_options){.flat = true, .limit = 2};
	unmake(&m);
	m = make(p, VIEW_FLAT, GROUP_NONE);
	assert_int_equal(show_text(m.t, p, &o, &out), 4);
	assert_string_equal(buf_text(&out), "    self    total       time \n"
					    "  40.00%   40.00%     400 ms d  ([made])\n"
					    "  40.00%   40.00%     400 ms f  ([made])\n");
	buf_free(&out);
	unmake(&m);
	profile_free(p);
}

static void summary_is_said_plainly(void **state)
{
	struct profile *p = new_profile();
	struct buf out = {0};
	struct summary s;
	(void)state;
	p->duration_ns = 41300000000;
	count(p, "ab", 0, 0, 41201);
	count(p, "3b", 0, 0, 1);
	count(p, "6b", 0, 0, 1);
	good(profile_settle(p));
	summary_make(p, 0, &s);
	summary_print(&s, "culprit: ", &out);
	assert_string_equal(
		buf_text(&out),
		"culprit: 41 203 samples of cpu-clock at 1000 Hz in 41.3 s, 1 process, 2 threads\n"
		"         paths: 41 201 complete, 2 partial (1 no recipe, 1 bad frame); 0 lost; overhead 0.50% of CPU time\n");
	buf_clear(&out);
	assert_int_equal(summary_warn(&s, p, &out), 0);
	count(p, "3b", 0, 0, 10000);
	good(profile_lose(p, "no room", 9000));
	p->complete = false;
	good(profile_settle(p));
	summary_make(p, 0, &s);
	assert_int_equal(summary_warn(&s, p, &out), 3);
	assert_non_null(strstr(buf_text(&out), "cut short"));
	assert_non_null(strstr(buf_text(&out), "14.9% of the samples were lost: 9000 no room"));
	assert_non_null(strstr(buf_text(&out), "19.5% of the call paths are partial"));
	buf_free(&out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_calls_of_a_function),
		cmocka_unit_test(counts_recursion_once),
		cmocka_unit_test(shows_partial_paths),
		cmocka_unit_test(groups_by_thread),
		cmocka_unit_test(keeps_metrics_apart),
		cmocka_unit_test(focuses_and_ignores),
		cmocka_unit_test(follows_the_hot_path),
		cmocka_unit_test(hides_what_is_small),
		cmocka_unit_test(never_hides_partial_paths),
		cmocka_unit_test(tells_instructions_apart),
		cmocka_unit_test(loops_are_scopes_of_the_tree),
		cmocka_unit_test(functions_have_the_samples_of_their_loops),
		cmocka_unit_test(loops_are_peers),
		cmocka_unit_test(recursion_through_loops_counts_once),
		cmocka_unit_test(sums_hold_for_random_trees),
		cmocka_unit_test(sums_hold_with_loops),
		cmocka_unit_test(bears_deep_stacks),
		cmocka_unit_test(draws_forks),
		cmocka_unit_test(summary_is_said_plainly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
