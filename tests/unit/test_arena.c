/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks and records of the memory that a target counts in: each is handed out once, comes back,
   and no list that was written over leads out of it. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "safe/arena.h"

#define CHUNKS 64

static struct arena_header *make(uint32_t metrics)
{
	struct arena_header *arena = aligned_alloc(ARENA_CHUNK, CHUNKS * ARENA_CHUNK);
	assert_non_null(arena);
	memset(arena, 0, CHUNKS * ARENA_CHUNK);
	arena_format(arena, CHUNKS * ARENA_CHUNK, metrics);
	return arena;
}

static void test_every_chunk_once(void **state)
{
	struct arena_header *arena = make(1);
	bool seen[CHUNKS] = {true};
	uint32_t chunk, count = 0;
	(void)state;
	while ((chunk = arena_take(arena)) != 0) {
		assert_true(chunk < CHUNKS);
		assert_false(seen[chunk]);
		seen[chunk] = true;
		count++;
	}
	assert_int_equal(count, CHUNKS - 1);
	free(arena);
}

static void test_given_back(void **state)
{
	struct arena_header *arena = make(1);
	uint32_t list = 0, count = 0, chunk;
	(void)state;
	for (int i = 0; i < 10; i++) {
		chunk = arena_take(arena);
		struct arena_chunk *head = arena_at(arena, chunk);
		assert_int_equal(head->used, sizeof *head);
		head->next = list;
		head->used = 5000;
		list = chunk;
	}
	arena_give(arena, list);
	while ((chunk = arena_take(arena)) != 0) {
		struct arena_chunk *head = arena_at(arena, chunk);
		assert_int_equal(head->next, 0);
		assert_int_equal(head->used, sizeof *head);
		count++;
	}
	assert_int_equal(count, CHUNKS - 1);
	free(arena);
}

static void test_list_in_a_circle(void **state)
{
	struct arena_header *arena = make(1);
	(void)state;
	uint32_t a = arena_take(arena), b = arena_take(arena);
	((struct arena_chunk *)arena_at(arena, a))->next = b;
	((struct arena_chunk *)arena_at(arena, b))->next = a;
	arena_give(arena, a); /* ends */
	((struct arena_chunk *)arena_at(arena, a))->next = 0x7fffffff;
	arena_give(arena, a);
	arena_give(arena, 0x7fffffff);
	arena->free_chunks = 0x7fffffff;
	assert_int_not_equal(arena_take(arena), 0x7fffffff);
	free(arena);
}

static void test_records_are_used_again(void **state)
{
	struct arena_header *arena = make(2);
	(void)state;
	struct arena_thread *first = arena_thread_take(arena), *second = arena_thread_take(arena);
	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	assert_int_equal(first->state, ARENA_TAKEN);
	uint32_t fresh = arena->fresh, generation = first->generation;
	first->nodes = arena_take(arena);
	first->scratch = arena_take(arena);
	first->copies[3] = arena_take(arena);
	first->tid = 42;
	first->weight = 7;
	arena_thread_free(arena, first);
	assert_ptr_equal(arena_thread_take(arena), first);
	assert_int_equal(first->generation, generation + 1);
	assert_int_equal(first->tid, 0);
	assert_int_equal(first->weight, 0);
	for (int i = 0; i < 3; i++) /* what it had is there again, nothing fresh is needed */
		assert_true(arena_take(arena) < fresh + 3);
	assert_int_equal(arena->fresh, fresh + 3);
	free(arena);
}

static void test_full(void **state)
{
	struct arena_header *arena = make(1);
	(void)state;
	while (arena_take(arena))
		;
	assert_null(arena_thread_take(arena));
	free(arena);
}

static void test_time_lines_have_a_limit(void **state)
{
	struct arena_header *arena = make(1);
	struct arena_thread *thread = arena_thread_take(arena);
	(void)state;
	assert_int_equal(arena_take_times(arena), 0); /* none are wanted */
	arena->times_max = 3;
	uint32_t chunks[4];
	for (int i = 0; i < 3; i++) {
		chunks[i] = arena_take_times(arena);
		assert_int_not_equal(chunks[i], 0);
	}
	assert_int_equal(arena_take_times(arena), 0);
	assert_int_equal(arena->times, 3);
	arena_give_times(arena, chunks[1]);
	chunks[1] = arena_take_times(arena);
	assert_int_not_equal(chunks[1], 0);
	assert_int_equal(arena_take_times(arena), 0);
	for (int i = 0; i < 2; i++) /* as a thread leaves them: one after another */
		((struct arena_chunk *)arena_at(arena, chunks[i]))->next = chunks[i + 1];
	thread->times = chunks[0];
	thread->untimed = 5;
	arena_thread_free(arena, thread);
	assert_int_equal(arena->times, 0);
	assert_ptr_equal(arena_thread_take(arena), thread);
	assert_int_equal(thread->times, 0);
	assert_int_equal(thread->untimed, 0);
	thread->times = 0x7fffffff; /* written over */
	arena_thread_free(arena, thread);
	assert_int_equal(arena->times, 0);
	while (arena_take(arena))
		;
	assert_int_equal(arena_take_times(arena), 0); /* the arena is full */
	assert_int_equal(arena->times, 0);
	free(arena);
}

static void test_headers_that_are_none(void **state)
{
	struct arena_header *arena = make(1);
	const uint64_t size = CHUNKS * ARENA_CHUNK;
	(void)state;
	assert_true(arena_is_sane(arena, size));
	assert_false(arena_is_sane(arena, size - ARENA_CHUNK));
	arena->metrics = ARENA_METRICS_MAX + 1;
	assert_false(arena_is_sane(arena, size));
	arena->metrics = 0;
	assert_false(arena_is_sane(arena, size));
	arena->metrics = 1;
	arena->version++;
	assert_false(arena_is_sane(arena, size));
	arena->version--;
	arena->magic ^= 1;
	assert_false(arena_is_sane(arena, size));
	free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_chunk_once),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_list_in_a_circle),
		cmocka_unit_test(test_records_are_used_again),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_time_lines_have_a_limit),
		cmocka_unit_test(test_headers_that_are_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
