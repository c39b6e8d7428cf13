/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer call paths of a tree: what rare ones and deep recursion become, and that no sample is lost. */
#include "scratch.h"

#include "base/err.h"
#include "profile/profile.h"
#include "store/calltree.h"
#include "store/shorten.h"

#define DEPTH 500

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static uint32_t add(struct calltree *t, uint32_t parent, unsigned kind, uint64_t address)
{
	struct pack_node node = pack_node(parent, 1, kind, address);
	uint32_t made = calltree_child(t, &node);
	assert_true(made != UINT32_MAX);
	return made;
}

static uint32_t depth_of(const struct calltree *t, uint64_t node)
{
	uint32_t depth = 0;
	for (uint32_t at = (uint32_t)node; at; at = t->nodes[at].parent)
		depth++;
	return depth;
}

static uint64_t sum(const struct pack_path *rows, size_t count)
{
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++)
		all += rows[i].count;
	return all;
}

/* main calls `usual`, which has most samples, and by a rare way `leaf`. */
static void test_rare_paths_lose_callers(void **state)
{
	struct calltree tree = {0}, less = {0};
	(void)state;
	assert_true(calltree_clear(&tree));
	uint32_t root = add(&tree, 0, PROFILE_CALL, 0x1000);
	uint32_t usual = add(&tree, root, PROFILE_EXACT, 0x2000);
	uint32_t rare = add(&tree, add(&tree, root, PROFILE_CALL, 0x1010), PROFILE_CALL, 0x3000);
	uint32_t leaf = add(&tree, rare, PROFILE_EXACT, 0x4000);
	struct pack_path rows[] = {{usual, 1, 1, 1000000}, {leaf, 1, 1, 3}};
	good(shorten_paths(&tree, rows, 2, &less));
	assert_int_equal(sum(rows, 2), 1000003);
	assert_int_equal(less.count, 4); /* the root, main, and its two children */
	assert_int_equal(less.nodes[rows[0].node].address, 0x2000);
	assert_int_equal(less.nodes[rows[1].node].address, 0x4000);
	assert_int_equal(less.nodes[less.nodes[rows[1].node].parent].address, 0x1000);
	calltree_free(&tree);
	calltree_free(&less);
}

/* What is not known of the callers stays that way, however rare it is. */
static void test_partial_stays(void **state)
{
	struct calltree tree = {0}, less = {0};
	(void)state;
	assert_true(calltree_clear(&tree));
	uint32_t usual = add(&tree, 0, PROFILE_EXACT, 0x2000);
	uint32_t partial = add(&tree, 0, PROFILE_PARTIAL, 3);
	uint32_t leaf = add(&tree, add(&tree, partial, PROFILE_CALL, 0x3000), PROFILE_EXACT,
			    0x4000);
	struct pack_path rows[] = {{usual, 1, 1, 1000000}, {leaf, 1, 1, 1}};
	good(shorten_paths(&tree, rows, 2, &less));
	uint32_t parent = less.nodes[rows[1].node].parent;
	assert_int_equal(less.nodes[parent].kind, PROFILE_PARTIAL);
	calltree_free(&tree);
	calltree_free(&less);
}

/* `period` functions call each other in a circle; each call has samples. */
static void check_recursion(uint32_t period, uint32_t most)
{
	struct calltree tree = {0}, less = {0};
	struct pack_path rows[DEPTH];
	uint32_t at = 0;
	assert_true(calltree_clear(&tree));
	for (uint32_t i = 0; i < DEPTH; i++) {
		at = add(&tree, at, PROFILE_CALL, 0x1000 * (1 + i % period));
		rows[i] = (struct pack_path){at, 1, 1, 10 + i};
	}
	uint64_t before = sum(rows, DEPTH);
	good(shorten_paths(&tree, rows, DEPTH, &less));
	assert_int_equal(sum(rows, DEPTH), before);
	assert_int_equal(less.count - 1, most);
	for (uint32_t i = 0; i < DEPTH; i++) {
		assert_int_equal(less.nodes[rows[i].node].address, 0x1000 * (1 + i % period));
		assert_int_equal(depth_of(&less, rows[i].node),
				 i < most ? i + 1 : most - period + 1 + i % period);
	}
	calltree_free(&tree);
	calltree_free(&less);
}

static void test_recursion_is_folded(void **state)
{
	(void)state;
	check_recursion(1, SHORTEN_REPEATED);
	check_recursion(3, 3 * SHORTEN_REPEATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rare_paths_lose_callers),
		cmocka_unit_test(test_partial_stays),
		cmocka_unit_test(test_recursion_is_folded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
