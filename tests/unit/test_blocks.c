/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sampled blocks of memory, against a plain list; and the numbers that an entry has room for. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/alone.h"
#include "agent/blocks.h"

#define MANY 20000u
#define STEPS 200000u
#define THREADS 4u

static uint64_t seed = 1;

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* As allocators place them: in a few arenas, 16 bytes or more apart. */
static uint64_t address_of(uint64_t number)
{
	static const uint64_t arenas[] = {0x555500001010, 0x7fff00000020, 0xffffa0000008, 0x10008};
	return arenas[number % 4] + number / 4 * (16 + number % 4 * 24);
}

static struct heap_block block_of(uint64_t number)
{
	return (struct heap_block){
		.address = address_of(number),
		.bytes = blocks_bytes(random_next(&seed) >> (random_next(&seed) % 64)),
		.calls = blocks_calls(random_next(&seed) >> (random_next(&seed) % 64)),
		.site = (uint32_t)random_next(&seed) & ~15u,
		.ticks = random_next(&seed),
	};
}

static void assert_same(const struct heap_block *a, const struct heap_block *b)
{
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->calls, b->calls);
	assert_int_equal(a->site, b->site);
	assert_int_equal(a->ticks, b->ticks);
}

static void test_it_keeps_what_it_got(void **state)
{
	struct heap_block *kept = calloc(MANY, sizeof *kept), block, found;
	(void)state;
	assert_non_null(kept);
	for (unsigned step = 0; step < STEPS; step++) {
		uint64_t number = random_next(&seed) % MANY;
		if (random_next(&seed) % 5 < 3) {
			block = block_of(number);
			assert_true(blocks_add(&block, &found));
			assert_int_equal(found.address, kept[number].address);
			if (found.address)
				assert_same(&found, &kept[number]);
			kept[number] = block;
			continue;
		}
		blocks_prefetch((void *)address_of(number));
		bool known = blocks_take((void *)address_of(number), &found);
		assert_int_equal(known, kept[number].address != 0);
		if (known)
			assert_same(&found, &kept[number]);
		kept[number].address = 0;
	}
	for (unsigned number = 0; number < MANY; number++)
		assert_int_equal(blocks_take((void *)address_of(number), &found),
				 kept[number].address != 0);
	free(kept);
}

static void test_usual_numbers_are_exact(void **state)
{
	(void)state;
	for (uint64_t bytes = 0; bytes < UINT64_C(1) << 33; bytes = bytes * 3 + 1)
		assert_int_equal(blocks_bytes(bytes), bytes);
	assert_int_equal(blocks_bytes((UINT64_C(1) << 33) - 1), (UINT64_C(1) << 33) - 1);
	assert_int_equal(blocks_calls(1), 1);
	assert_int_equal(blocks_calls(32767), 32767);
}

static void test_large_numbers_lose_little(void **state)
{
	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t bytes = random_next(&seed) >> (3 + random_next(&seed) % 61),
			 calls = bytes % 1000000000;
		assert_true(blocks_bytes(bytes) <= bytes);
		assert_true(bytes - blocks_bytes(bytes) <= bytes >> 28);
		assert_int_equal(blocks_bytes(blocks_bytes(bytes)), blocks_bytes(bytes));
		assert_true(blocks_calls(calls) <= calls);
		assert_true(calls - blocks_calls(calls) <= calls >> 14);
		assert_int_equal(blocks_calls(blocks_calls(calls)), blocks_calls(calls));
	}
	assert_true(blocks_calls(UINT64_MAX) > 1000000000);
}

static void test_a_child_has_none(void **state)
{
	struct heap_block block = block_of(1), found;
	(void)state;
	assert_true(blocks_add(&block, &found));
	blocks_after_fork();
	assert_false(blocks_take((void *)block.address, &found));
}

static char wrong; /* its address says so */

static void *use(void *argument)
{
	uint64_t own = (uint64_t)argument, state = own + 1;
	struct heap_block found;
	for (unsigned step = 0; step < STEPS / THREADS; step++) {
		uint64_t number = random_next(&state) % 100 * THREADS +
				  own; /* the same regions, other blocks */
		struct heap_block block = {
			.address = 0x7f0000000010 + number * 32, .bytes = number, .calls = 1};
		if (!blocks_add(&block, &found) || found.address ||
		    !blocks_take((void *)block.address, &found) || found.bytes != number)
			return &wrong;
	}
	return NULL;
}

static void test_threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[THREADS];
	void *problem;
	(void)state;
	alone_start();
	for (uint64_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)i), 0);
	assert_false(is_alone());
	for (uint64_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
}

static void test_one_thread_is_alone(void **state)
{
	_Atomic uint64_t number = 5;
	(void)state;
	alone_start();
	if (alone_told) /* an older libc does not tell */
		assert_true(is_alone());
	assert_int_equal(alone_add(&number, 2), 5);
	assert_int_equal(number, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread_is_alone), /* first: before there are threads */
		cmocka_unit_test(test_it_keeps_what_it_got),
		cmocka_unit_test(test_usual_numbers_are_exact),
		cmocka_unit_test(test_large_numbers_lose_little),
		cmocka_unit_test(test_a_child_has_none),
		cmocka_unit_test(test_threads_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
