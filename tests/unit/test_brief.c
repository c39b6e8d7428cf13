/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that fit on a screen. A function is a letter; a path is their names, outermost first. */
#include "unit.h"

#include "analyze/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct scopes *scopes;

static struct tree *new_tree(void)
{
	struct tree *t;
	good(scopes_new(&scopes));
	good(tree_new(scopes, 1, &t));
	return t;
}

static void add(struct tree *t, const char *path, uint64_t samples)
{
	uint32_t node = 0, scope;
	for (; *path; path++) {
		char name[] = {*path, 0};
		good(scopes_add(scopes,
				&(struct scope){.kind = SCOPE_FUNCTION,
						.module = 1,
						.address = (uint64_t)*path,
						.name = name},
				&scope));
		good(tree_child(t, node, scope, &node));
	}
	t->self[node] += samples;
	t->whole[0] += samples;
}

static void finish(struct tree *t)
{
	tree_sum(t);
	good(tree_sort(t, 0, false));
}

static void free_all(struct tree *t, struct tree *folded)
{
	tree_free(t);
	tree_free(folded);
	scopes_free(scopes);
}

/* What is shown below a node: "a3(b1 c2x4)" has totals, and x how many calls are in one. */
static void describe(const struct tree *t, uint32_t node, struct buf *out)
{
	const struct tree_node *n = &t->nodes[node];
	buf_printf(out, "%s%llu", node ? scopes_get(t->scopes, n->scope)->name : "",
		   (unsigned long long)tree_total(t, node, 0));
	if (n->folded)
		buf_printf(out, "x%u", n->folded + 1);
	uint32_t child = tree_first(t, node);
	for (const char *before = "("; child != TREE_NONE; child = tree_next(t, child)) {
		buf_puts(out, before);
		describe(t, child, out);
		before = " ";
	}
	if (tree_first(t, node) != TREE_NONE)
		buf_puts(out, ")");
}

static void assert_tree(const struct tree *t, const char *wanted)
{
	struct buf text = {0};
	describe(t, 0, &text);
	assert_string_equal(buf_text(&text), wanted);
	buf_free(&text);
}

static void recursion_is_folded(void **state)
{
	struct tree *t = new_tree(), *folded;
	(void)state;
	add(t, "mf", 1);
	add(t, "mff", 2);
	add(t, "mffff", 4);
	add(t, "mffg", 8);
	add(t, "mg", 16);
	finish(t);
	good(brief_fold(t, 0, &folded));
	assert_tree(folded, "31(m31(g16 f15x4(g8)))");
	free_all(t, folded);
}

static void so_is_mutual_recursion(void **state)
{
	struct tree *t = new_tree(), *folded;
	(void)state;
	add(t, "mababab", 1);
	add(t, "mabac", 2);
	add(t, "mb", 4);
	add(t, "n", 8);
	finish(t);
	good(brief_fold(t, 0, &folded));
	assert_tree(folded, "15(n8 m7(b4 a3x3(c2 b1x3)))");
	free_all(t, folded);
}

static void a_deep_recursion_takes_no_time(void **state)
{
	enum { DEPTH = 100000 };
	struct tree *t = new_tree(), *folded;
	char *path = malloc(DEPTH + 1);
	(void)state;
	assert_non_null(path);
	memset(path, 'r', DEPTH);
	path[DEPTH] = 0;
	add(t, path, 1);
	free(path);
	finish(t);
	good(brief_fold(t, 0, &folded));
	assert_tree(folded, "1(r1x100000)");
	free_all(t, folded);
}

static void chains_end_where_samples_leave(void **state)
{
	struct tree *t = new_tree();
	(void)state;
	add(t, "abcd", 90);
	add(t, "abc", 1);
	add(t, "abx", 9);
	finish(t);
	tree_prune(t, 0, 0.05, 0);
	uint32_t a = tree_first(t, 0), b = tree_first(t, a), c = tree_first(t, b),
		 d = tree_first(t, c);
	assert_int_equal(brief_chain(t, 0, 5, 0), 0); /* the root stands alone */
	assert_int_equal(brief_chain(t, 0, 5, a), b); /* it forks */
	assert_int_equal(brief_chain(t, 0, 5, c), d); /* one sample leaves: too few to tell */
	assert_int_equal(brief_chain(t, 0, 1, c), c);
	tree_prune(t, 0, 0.1, 0);
	assert_int_equal(brief_chain(t, 0, 10, a), d);
	free_all(t, NULL);
}

static void as_much_is_shown_as_fits(void **state)
{
	struct tree *t = new_tree();
	size_t hidden;
	(void)state;
	add(t, "mnabc", 40); /* one line, with m and n before it */
	add(t, "mnde", 30);
	add(t, "mnfg", 20);
	add(t, "mnh", 10);
	finish(t);
	double share = brief_fit(t, 0, 0.005, 100, &hidden);
	assert_true(share == 0.005);
	assert_int_equal(hidden, 0);
	assert_tree(t, "100(m100(n100(a40(b40(c40)) d30(e30) f20(g20) h10)))");
	share = brief_fit(t, 0, 0.005, 4, &hidden); /* the root, "m n", and two below */
	assert_true(share > 0.2 && share <= 0.3);
	assert_int_equal(hidden, 2);
	assert_tree(t, "100(m100(n100(a40(b40(c40)) d30(e30))))");
	share = brief_fit(t, 0, 0.005, 1, &hidden); /* less than the tree needs */
	assert_true(share > 0.4);
	free_all(t, NULL);
}

/* ---- names of a chain ---- */

/* What becomes of the names in so many columns, and that the columns are those that it takes. */
static void assert_way(const char *const *names, size_t count, size_t most, const char *wanted)
{
	struct buf out = {0};
	size_t columns = brief_way(names, count, most, &out);
	assert_string_equal(buf_text(&out), wanted);
	assert_int_equal(columns, utf8_count(wanted));
	uint32_t character;
	for (size_t at = 0, step; at < out.size; at += step)
		assert_true(step = utf8_decode(out.data + at, out.size - at, &character));
	if (out.data)
		out.data[utf8_draw_ascii(out.data, out.size)] = 0;
	assert_int_equal(utf8_count(buf_text(&out)), columns);
	buf_free(&out);
}

static void chains_that_fit_are_whole(void **state)
{
	static const char *const names[] = {"read", "vfs_read"};
	(void)state;
	assert_way(names, 2, 18, "read → vfs_read → ");
	assert_way(names, 1, 0, "read → ");
	assert_way(NULL, 0, 0, "");
}

static void long_chains_lose_their_middle(void **state)
{
	static const char *const names[] = {"read",   "el0t_64_sync", "el0_svc",
					    "invoke", "ksys_read",    "vfs_read"};
	(void)state;
	assert_way(names, 6, 64,
		   "read → el0t_64_sync → el0_svc → invoke → ksys_read → vfs_read → ");
	assert_way(names, 6, 63, "read → … 1 … → el0_svc → invoke → ksys_read → vfs_read → ");
	assert_way(names, 6, 38, "read → … 3 … → ksys_read → vfs_read → ");
	assert_way(names, 6, 37, "read → … 4 … → vfs_read → ");
	assert_way(names, 6, 26, "read → … 4 … → vfs_read → ");
	assert_way(names, 6, 25, "read → … 5 … → ");
	assert_way(names, 6, 0, "read → … 5 … → ");
}

/* By characters, and no shorter than can be read. */
static void long_first_names_are_cut(void **state)
{
	static const char *const names[] = {"größe_größe_größe_größe_größe_größe_größe_größe", "b",
					    "c"};
	(void)state;
	assert_way(names, 1, 44, "größe_größe_größe_gr…ße_größe_größe_größe → ");
	assert_way(names, 1, 10, "größe_größe_gr…öße_größe_größe → ");
	assert_way(names, 3, 10, "größe_größe_gr…öße_größe_größe → … 2 … → ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_is_folded),
		cmocka_unit_test(so_is_mutual_recursion),
		cmocka_unit_test(a_deep_recursion_takes_no_time),
		cmocka_unit_test(chains_end_where_samples_leave),
		cmocka_unit_test(as_much_is_shown_as_fits),
		cmocka_unit_test(chains_that_fit_are_whole),
		cmocka_unit_test(long_chains_lose_their_middle),
		cmocka_unit_test(long_first_names_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
