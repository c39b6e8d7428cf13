/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations: heaps and sites in the arena, and the random gaps between samples. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "safe/exponential.h"
#include "safe/heap.h"

#define CHUNKS 16

static struct arena_header *make(void)
{
	struct arena_header *arena = aligned_alloc(ARENA_CHUNK, CHUNKS * ARENA_CHUNK);
	assert_non_null(arena);
	memset(arena, 0, CHUNKS * ARENA_CHUNK);
	arena_format(arena, CHUNKS * ARENA_CHUNK, 1);
	return arena;
}

static void test_sites_are_apart_until_the_arena_is_full(void **state)
{
	struct arena_header *arena = make();
	struct arena_heap *heap = arena_heap_take(arena, 7);
	uint32_t reference, count = 0;
	(void)state;
	assert_non_null(heap);
	while ((reference = arena_site_take(arena, heap)) != 0) {
		struct arena_site *site = arena_site(arena, reference);
		assert_true((char *)(site + 1) <= (char *)arena + arena->size);
		assert_int_equal(site->calls, 0); /* another one would have written there */
		memset((void *)site, 0xff, sizeof *site);
		count++;
	}
	assert_true(count >= (CHUNKS - 2) * (ARENA_CHUNK / sizeof(struct arena_site) - 1));
	free(arena);
}

static void test_a_heap_is_given_back_whole(void **state)
{
	struct arena_header *arena = make();
	(void)state;
	for (int32_t process = 1; process < 100; process++) {
		struct arena_heap *heap = arena_heap_take(arena, process);
		assert_non_null(heap);
		assert_int_equal(heap->process, process);
		assert_int_equal(heap->live, 0);
		assert_string_equal(heap->other, "");
		heap->live = 5;
		strcpy(heap->other, "x");
		for (int i = 0; i < 1000; i++)
			assert_true(arena_site_take(arena, heap));
		arena_heap_free(arena, heap);
	}
	free(arena);
}

static void test_heaps_of_processes_are_apart(void **state)
{
	struct arena_header *arena = make();
	struct arena_heap *one = arena_heap_take(arena, 1), *two = arena_heap_take(arena, 2);
	(void)state;
	assert_ptr_not_equal(one, two);
	arena_heap_free(arena, one);
	assert_ptr_equal(arena_heap_take(arena, 3), one);
	free(arena);
}

static void test_chance_is_that_of_an_exponential(void **state)
{
	(void)state;
	for (double x = 1e-9; x < 60; x *= 1.37)
		assert_true(fabs(exponential_chance(x) / -expm1(-x) - 1) < 1e-10);
	assert_true(exponential_chance(0) == 0);
}

static void test_gap_is_the_logarithm(void **state)
{
	(void)state;
	for (uint64_t random = 1; random >> 63 == 0; random += random / 3 + 1) {
		double wanted = -log((double)random / 18446744073709551616.0);
		assert_true(fabs(exponential_gap(random) - wanted) < 1e-9 * (1 + wanted));
	}
	assert_true(exponential_gap(0) > 40);
	assert_true(exponential_gap(UINT64_MAX) >= 0 && exponential_gap(UINT64_MAX) < 1e-15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites_are_apart_until_the_arena_is_full),
		cmocka_unit_test(test_a_heap_is_given_back_whole),
		cmocka_unit_test(test_heaps_of_processes_are_apart),
		cmocka_unit_test(test_chance_is_that_of_an_exponential),
		cmocka_unit_test(test_gap_is_the_logarithm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
