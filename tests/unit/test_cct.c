/* SPDX-License-Identifier: Apache-2.0 */
/* The tree against a plain list of what was put in; and what a reader makes of one that somebody
   wrote over. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cct/cct.h"

#define CHUNKS 256u
#define SIZE ((uint64_t)CHUNKS * ARENA_CHUNK)

static struct arena_header *make(uint32_t metrics)
{
	struct arena_header *arena = aligned_alloc(ARENA_CHUNK, SIZE);
	assert_non_null(arena);
	memset(arena, 0, SIZE);
	arena_format(arena, SIZE, metrics);
	return arena;
}

struct seen {
	uint32_t count, parents[4096];
	uint64_t keys[4096], values[4096][2];
	uint32_t metrics;
};

static void visit(void *context, uint32_t index, uint32_t parent, uint64_t key,
		  const uint64_t *values)
{
	struct seen *seen = context;
	assert_int_equal(index, seen->count);
	assert_true(index == 0 || parent < index);
	if (index < 4096) {
		seen->parents[index] = parent;
		seen->keys[index] = key;
		memcpy(seen->values[index], values, 8 * seen->metrics);
	}
	seen->count++;
}

static void test_same_path_same_node(void **state)
{
	struct arena_header *arena = make(1);
	struct arena_thread *thread = arena_thread_take(arena);
	struct cct tree;
	(void)state;
	assert_true(cct_begin(&tree, arena, thread));
	uint32_t main_ = cct_child(&tree, tree.root, cct_key(true, 1, 0x1000));
	uint32_t a = cct_child(&tree, main_, cct_key(true, 1, 0x2000));
	uint32_t b = cct_child(&tree, main_, cct_key(true, 2, 0x2000));
	uint32_t exact = cct_child(&tree, main_, cct_key(false, 1, 0x2000));
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, exact);
	assert_int_equal(cct_child(&tree, main_, cct_key(true, 1, 0x2000)), a);
	assert_int_equal(cct_find(&tree, main_, cct_key(true, 2, 0x2000)), b);
	assert_int_equal(cct_find(&tree, main_, cct_key(true, 3, 0x2000)), 0);
	assert_int_equal(cct_key_module(cct_node(&tree, b)->key), 2);
	assert_int_equal(cct_node(&tree, b)->parent, main_);
	free(arena);
}

static void test_many_children_are_read_back(void **state)
{
	struct arena_header *arena = make(2);
	struct arena_thread *thread = arena_thread_take(arena);
	struct seen *seen = calloc(1, sizeof *seen);
	struct cct tree;
	(void)state;
	seen->metrics = 2;
	assert_true(cct_begin(&tree, arena, thread));
	uint32_t parent = cct_child(&tree, tree.root, 5);
	for (uint64_t i = 0; i < 3000; i++) {
		uint32_t node = cct_child(&tree, parent, cct_key(false, 7, i * 4));
		cct_values(cct_node(&tree, node))[1] += i;
	}
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_not_equal(cct_find(&tree, parent, cct_key(false, 7, i * 4)), 0);
	assert_true(cct_read(arena, SIZE, thread, visit, seen));
	assert_int_equal(seen->count, 3002);
	for (uint32_t i = 2; i < 3002; i++) {
		assert_int_equal(seen->parents[i], 1);
		assert_int_equal(seen->keys[i], cct_key(false, 7, (i - 2) * 4));
		assert_int_equal(seen->values[i][0], 0);
		assert_int_equal(seen->values[i][1], i - 2);
	}
	free(seen);
	free(arena);
}

static void test_no_room(void **state)
{
	struct arena_header *arena = make(1);
	struct arena_thread *thread = arena_thread_take(arena);
	struct cct tree;
	uint32_t made = 0;
	(void)state;
	assert_true(cct_begin(&tree, arena, thread));
	while (cct_child(&tree, tree.root, cct_key(true, 1, made)))
		made++;
	assert_int_equal(made, (CHUNKS - 2) * ((ARENA_CHUNK - 8) / 32) - 1);
	assert_int_not_equal(cct_find(&tree, tree.root, cct_key(true, 1, 17)), 0);
	free(arena);
}

/* Whatever is in the memory, reading ends, stays inside (sanitizers watch) and what it visits has
   parents that were visited. */
static void test_written_over(void **state)
{
	struct arena_header *arena = make(1), *copy = make(1);
	struct arena_thread *thread = arena_thread_take(arena);
	struct seen *seen = calloc(1, sizeof *seen);
	struct cct tree;
	uint64_t random = 88172645463325252u;
	(void)state;
	assert_true(cct_begin(&tree, arena, thread));
	uint32_t node = tree.root;
	for (uint32_t i = 0; i < 2000; i++)
		node = cct_child(&tree, i % 50 ? node : tree.root, cct_key(true, 1, i * 12));
	for (int round = 0; round < 300; round++) {
		memcpy(copy, arena, 8 * ARENA_CHUNK);
		for (int k = 0; k < 20; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			size_t at = sizeof(struct arena_header) +
				    random % (8 * ARENA_CHUNK - sizeof(struct arena_header) - 8);
			memcpy((char *)copy + at, &random, 4);
		}
		struct arena_thread *record =
			(struct arena_thread *)((char *)copy + ((char *)thread - (char *)arena));
		seen->count = 0;
		seen->metrics = 1;
		cct_read(copy, SIZE, record, visit, seen);
		assert_true(seen->count <= CHUNKS * (ARENA_CHUNK / 32));
	}
	free(seen);
	free(copy);
	free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_path_same_node),
		cmocka_unit_test(test_many_children_are_read_back),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_written_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
