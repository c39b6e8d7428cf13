/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of stacks with a sentinel in them. */
#include "scratch.h"

#include "collect/agents/sentinels.h"
#include "collect/agents/state.h"
#include "safe/wire.h"

#include <stdlib.h>
#include <string.h>

#define STUBS 0x7f0000010000ull
#define STACK 0x7ffe00001008ull
#define WORDS 8

struct made {
	struct arena arena;
	uint32_t owner;
	struct arena_thread *record;
};

static struct made make(void)
{
	struct made m = {.arena = {.size = 64 * ARENA_CHUNK}};
	m.arena.header = aligned_alloc(ARENA_CHUNK, m.arena.size);
	assert_non_null(m.arena.header);
	memset(m.arena.header, 0, m.arena.size);
	arena_format(m.arena.header, m.arena.size, 2);
	m.record = arena_thread_take(m.arena.header);
	assert_non_null(m.record);
	m.owner = (uint32_t)(((char *)m.record - (char *)m.arena.header) / ARENA_CHUNK);
	m.record->marks = arena_take(m.arena.header);
	memset(arena_at(m.arena.header, m.record->marks), 0, ARENA_CHUNK);
	m.arena.header->stubs = STUBS;
	return m;
}

static void note(const struct made *m, uint32_t index, uint64_t slot, uint32_t number,
		 uint64_t word)
{
	struct arena_chunk *chunk = arena_at(m->arena.header, m->record->marks);
	struct arena_mark *ring = (struct arena_mark *)(chunk + 2);
	ring[index].place = ARENA_MARK_PLACE(slot, number);
	ring[index].word = word;
}

static uint64_t stub(uint32_t number)
{
	return STUBS + number * WIRE_STUB;
}

static void true_words_are_set(void **state)
{
	struct made m = make();
	uint64_t registers[32] = {[30] = stub(7), [3] = 3};
	uint64_t stack[WORDS] = {1, stub(5), 2, stub(9), stub(5) + 5, STUBS - 1};
	(void)state;
	note(&m, 0, STACK + 8, 5, 0x1111);
	note(&m, 1, STACK + 80, 7, 0x2222);
	note(&m, ARENA_MARKS - 1, STACK + 24, 9, 0x3333);
	sentinels_remove(&m.arena, m.owner, STACK, (uint8_t *)stack, sizeof stack, registers);
	assert_int_equal(stack[0], 1);
	assert_int_equal(stack[1], 0x1111);
	assert_int_equal(stack[2], 2);
	assert_int_equal(stack[3], 0x3333);
	assert_int_equal(stack[4], 0x1111); /* what a stub of x86-64 has put there itself */
	assert_int_equal(stack[5], STUBS - 1);
	assert_int_equal(registers[30], 0x2222);
	assert_int_equal(registers[3], 3);
	free(m.arena.header);
}

static void the_same_place_is_the_best(void **state)
{
	struct made m = make();
	(void)state;
	note(&m, 0, STACK, 5, 0x1111);
	note(&m, 1, STACK + 16, 5, 0x2222);
	note(&m, 2, STACK + 32, 5, 0x3333);
	assert_int_equal(sentinels_see_through(&m.arena, m.owner, STACK + 16, stub(5)), 0x2222);
	assert_int_equal(sentinels_see_through(&m.arena, m.owner, STACK, stub(5)), 0x1111);
	assert_int_equal(sentinels_see_through(&m.arena, m.owner, STACK, stub(6)), stub(6));
	free(m.arena.header);
}

/* A program may have written anything there. */
static void damage(void **state)
{
	struct made m = make();
	uint64_t registers[32] = {stub(1)}, stack[WORDS] = {stub(1)};
	(void)state;
	m.record->marks = 0xffffff;
	sentinels_remove(&m.arena, m.owner, STACK, (uint8_t *)stack, sizeof stack, registers);
	assert_int_equal(stack[0], stub(1));
	m.record->marks = 0;
	assert_int_equal(sentinels_see_through(&m.arena, m.owner, STACK, stub(1)), stub(1));
	assert_int_equal(sentinels_see_through(&m.arena, 0xffffff, STACK, stub(1)), stub(1));
	m.arena.header->stubs = 0;
	assert_int_equal(sentinels_see_through(&m.arena, m.owner, STACK, 16), 16);
	free(m.arena.header);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(true_words_are_set),
		cmocka_unit_test(the_same_place_is_the_best),
		cmocka_unit_test(damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
