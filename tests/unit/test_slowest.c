/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest calls, as programs keep them: none is lost, whoever else is at work, and what is read is of one call. */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "safe/slowest.h"

#define WANTED 10u
#define COUNT (WANTED + ARENA_SLOWEST_SPARE)
#define CALLS 20000u
#define WRITERS 4u

static struct arena_slowest *make(void)
{
	struct arena_slowest *list = calloc(1,
					    sizeof *list + ARENA_SLOWEST_MAX * sizeof list->all[0]);
	assert_non_null(list);
	list->count = COUNT;
	return list;
}

/* All of it follows from the time. */
static struct arena_slow call_of(uint64_t ns)
{
	return (struct arena_slow){.since = ns * 3,
				   .record = (uint32_t)ns,
				   .generation = (uint32_t)ns + 1,
				   .sums = (uint32_t)ns + 2,
				   .process = (int32_t)ns + 3,
				   .tid = (int32_t)ns + 4};
}

static bool is_whole(const struct arena_slow *s, uint64_t ns)
{
	const struct arena_slow wanted = call_of(ns);
	return s->since == wanted.since && s->record == wanted.record &&
	       s->generation == wanted.generation && s->sums == wanted.sums &&
	       s->process == wanted.process && s->tid == wanted.tid;
}

static uint64_t keep(struct arena_slowest *list, uint64_t ns)
{
	const struct arena_slow call = call_of(ns);
	return slowest_keep(list, ns, &call);
}

static bool has(const struct arena_slowest *list, uint64_t wanted)
{
	struct arena_slow s;
	uint64_t ns;
	for (uint32_t i = 0; i < list->count; i++)
		if (slowest_read(&list->all[i], &s, &ns) && ns == wanted)
			return is_whole(&s, ns);
	return false;
}

/* 1 to `most`, each once, in no order. */
static uint64_t shuffled(uint64_t i, uint64_t most)
{
	return i * 7919 % most + 1; /* 7919 has no factor of `most` */
}

static void the_slowest_stay(void **state)
{
	struct arena_slowest *list = make();
	uint64_t threshold = 0;
	(void)state;
	for (uint64_t i = 0; i < CALLS; i++) {
		uint64_t ns = shuffled(i, CALLS);
		if (ns <= threshold)
			continue;
		uint64_t next = keep(list, ns);
		assert_true(next >= threshold && next <= CALLS - COUNT + 1);
		threshold = next;
	}
	assert_int_equal(threshold, CALLS - COUNT + 1);
	for (uint64_t ns = CALLS; ns > CALLS - COUNT; ns--)
		assert_true(has(list, ns));
	free(list);
}

static void no_call_without_time(void **state)
{
	struct arena_slowest *list = make();
	struct arena_slow s;
	uint64_t ns;
	(void)state;
	assert_int_equal(keep(list, 0), 0);
	for (uint32_t i = 0; i < list->count; i++)
		assert_false(slowest_read(&list->all[i], &s, &ns));
	free(list);
}

/* A handler comes while places are being written, which it must not touch. */
static void places_that_are_written_are_left(void **state)
{
	struct arena_slowest *list = make();
	struct arena_slow s;
	uint64_t ns;
	(void)state;
	for (uint64_t i = 0; i < COUNT; i++)
		keep(list, i + 1);
	for (uint32_t i = 0; i < ARENA_SLOWEST_SPARE; i++)
		list->all[i].mark |= 1;
	for (uint64_t i = 0; i < CALLS; i++)
		keep(list, 100 + shuffled(i, CALLS));
	for (uint64_t i = 0; i < WANTED; i++)
		assert_true(has(list, 100 + CALLS - i));
	for (uint32_t i = 0; i < ARENA_SLOWEST_SPARE; i++) {
		assert_int_equal(list->all[i].since, (i + 1) * 3);
		assert_false(slowest_read(&list->all[i], &s, &ns));
	}
	for (uint32_t i = 0; i < COUNT; i++)
		list->all[i].mark |= 1;
	assert_int_equal(keep(list, UINT64_MAX / 2), 0);
	free(list);
}

/* ---- several at once ---- */

static struct arena_slowest *shared;
static _Atomic uint32_t over;

static void *write_calls(void *number)
{
	for (uint64_t i = (uintptr_t)number; i < CALLS; i += WRITERS)
		keep(shared, shuffled(i, CALLS));
	atomic_fetch_add(&over, 1);
	return NULL;
}

static void threads_lose_none(void **state)
{
	pthread_t threads[WRITERS];
	struct arena_slow s;
	uint64_t ns;
	(void)state;
	for (int round = 0; round < 20; round++) {
		shared = make();
		atomic_store(&over, 0);
		for (uintptr_t i = 0; i < WRITERS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, write_calls, (void *)i),
					 0);
		while (atomic_load(&over) < WRITERS)
			for (uint32_t i = 0; i < COUNT; i++)
				if (slowest_read(&shared->all[i], &s, &ns))
					assert_true(is_whole(&s, ns));
		for (uint32_t i = 0; i < WRITERS; i++)
			pthread_join(threads[i], NULL);
		for (uint64_t i = 0; i < WANTED; i++)
			assert_true(has(shared, CALLS - i));
		free(shared);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_stay),
		cmocka_unit_test(no_call_without_time),
		cmocka_unit_test(places_that_are_written_are_left),
		cmocka_unit_test(threads_lose_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
