/* SPDX-License-Identifier: Apache-2.0 */
/* Copied stacks of which something is missing. The stack is this program's own memory. */
#include "unit.h"

#include "base/clock.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/state.h"
#include "harvest/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 8u
#define SECOND 1000000000ull
#define WORDS (PAGE / sizeof(uint64_t))

struct stack {
	uint64_t *memory; /* of PAGES, aligned */
	struct process process;
	struct kernel_waiting *copy;
};

/* A copy of so many pages, from `skip` bytes on, without those of `holes`. */
static struct stack make(uint64_t skip, uint64_t pages, uint64_t holes)
{
	struct stack s = {.memory = aligned_alloc(PAGE, PAGES * PAGE),
			  .process = {.pid = getpid()},
			  .copy = calloc(1, sizeof *s.copy + PAGES * PAGE)};
	assert_true(s.memory && s.copy);
	for (uint64_t i = 0; i < PAGES * WORDS; i++)
		s.memory[i] = 1000 + i;
	s.copy->address = (uint64_t)s.memory + skip;
	s.copy->size = pages * PAGE - skip;
	s.copy->time = now_ns();
	s.copy->holes[0] = holes;
	for (uint64_t page = 0; page < pages; page++) {
		uint64_t from = page ? page * PAGE : skip, to = (page + 1) * PAGE;
		if (!(holes >> page & 1))
			memcpy(s.copy->bytes + (from - skip), (uint8_t *)s.memory + from,
			       to - from);
	}
	return s;
}

static void complete(struct stack *s, uint64_t room)
{
	struct partial_stack copy = {s->process.pid, s->copy->time,  s->copy->address,
				     s->copy->size,  s->copy->holes, s->copy->bytes};
	s->copy->process = &s->process;
	copy_complete(&copy, room);
	s->copy->size = copy.size;
	s->process.gone = true; /* nothing more is to be read from it */
}

static void drop(struct stack *s)
{
	free(s->copy);
	free(s->memory);
}

/* Whether each word of a page is there, and right. */
static bool has_page(struct stack *s, uint64_t page)
{
	uint64_t at = (uint64_t)(s->memory + page * WORDS), word;
	if (at < s->copy->address)
		at = s->copy->address;
	for (; at < (uint64_t)(s->memory + (page + 1) * WORDS); at += sizeof word)
		if (!copy_read(s->copy, at, &word) || word != *(uint64_t *)at)
			return false;
	return true;
}

static void holes_are_filled(void **state)
{
	struct stack s = make(16, 7, 0x5a); /* 1, 3 and 4, and the last */
	(void)state;
	assert_false(has_page(&s, 1));
	complete(&s, 0);
	for (uint64_t page = 0; page < 7; page++)
		assert_true(has_page(&s, page));
	assert_false(has_page(&s, 7));
	drop(&s);
}

static void what_has_changed_is_not_read(void **state)
{
	struct stack s = make(0, 6, 0x12);
	(void)state;
	s.memory[4 * WORDS - 1] = 7; /* before the hole in page 4 */
	complete(&s, 0);
	assert_true(has_page(&s, 1));
	assert_true(has_page(&s, 2));
	uint64_t word;
	assert_false(copy_read(s.copy, (uint64_t)(s.memory + 4 * WORDS), &word));
	assert_true(has_page(&s, 5));
	drop(&s);
}

/* Who has returned leaves what is inside as it was. */
static void who_has_returned_is_seen(void **state)
{
	struct stack s = make(0, 6, 0x2);
	(void)state;
	s.memory[2 * WORDS] = 7; /* the first word beyond the hole */
	complete(&s, 0);
	uint64_t word;
	assert_false(copy_read(s.copy, (uint64_t)(s.memory + WORDS), &word));
	drop(&s);
}

static void it_is_not_read_late(void **state)
{
	struct stack s = make(0, 3, 0x2);
	(void)state;
	s.copy->time -= 3 * SECOND;
	complete(&s, PAGE);
	assert_true(has_page(&s, 0));
	assert_false(has_page(&s, 1));
	assert_true(has_page(&s, 2));
	assert_false(has_page(&s, 3));
	drop(&s);
}

static void the_innermost_page_is_not_read(void **state)
{
	struct stack s = make(PAGE - 8, 4, 0x3);
	(void)state;
	complete(&s, 0);
	assert_false(has_page(&s, 0));
	assert_false(has_page(&s, 1)); /* nothing tells whether it is the same */
	assert_true(has_page(&s, 2));
	drop(&s);
}

static void few_words_before_a_hole_are_enough(void **state)
{
	struct stack s = make(PAGE - 8, 4, 0x2);
	(void)state;
	complete(&s, 0);
	assert_true(has_page(&s, 0));
	assert_true(has_page(&s, 1));
	drop(&s);
}

static void more_is_read_beyond_the_end(void **state)
{
	struct stack s = make(0, 2, 0), other = make(0, 2, 0), cold = make(0, 3, 0x4);
	(void)state;
	complete(&s, 3 * PAGE);
	for (uint64_t page = 0; page < 5; page++)
		assert_true(has_page(&s, page));
	assert_false(has_page(&s, 5));
	other.memory[2 * WORDS - 2] = 7;
	complete(&other, 3 * PAGE);
	assert_int_equal(other.copy->size, 2 * PAGE);
	complete(&cold, PAGE); /* whose end is a hole */
	assert_true(has_page(&cold, 2) && has_page(&cold, 3));
	drop(&s);
	drop(&other);
	drop(&cold);
}

/* Beyond what the sampler can copy, and tell holes of. */
static void large_stacks_are_whole(void **state)
{
	uint64_t more = 4 * (uint64_t)KERNEL_STACK, words = (KERNEL_STACK + more) / sizeof words;
	uint64_t *memory = malloc(KERNEL_STACK + more), word;
	struct process process = {.pid = getpid(), .gone = true};
	struct kernel_waiting *w = calloc(1, sizeof *w + KERNEL_STACK + more);
	(void)state;
	assert_true(memory && w);
	for (uint64_t i = 0; i < words; i++)
		memory[i] = i;
	memcpy(w->bytes, memory, KERNEL_STACK);
	struct partial_stack copy = {process.pid,  now_ns(), (uint64_t)memory,
				     KERNEL_STACK, w->holes, w->bytes};
	copy_complete(&copy, more);
	w->process = &process;
	w->time = copy.time;
	w->address = copy.address;
	w->size = copy.size;
	w->beyond = PAGE;
	for (uint64_t i = 0; i < words; i++)
		assert_true(copy_read(w, (uint64_t)(memory + i), &word) && word == i);
	assert_false(w->missing);
	assert_false(copy_read(w, (uint64_t)(memory + words), &word));
	assert_true(w->missing); /* which is no fault of the stack's */
	w->missing = false;
	assert_false(copy_read(w, (uint64_t)(memory + words) + 2 * PAGE, &word));
	assert_false(w->missing);
	free(w);
	free(memory);
}

static void of_nobody_nothing_is_read(void **state)
{
	struct stack s = make(0, 3, 0x2);
	(void)state;
	s.process.pid = 0x7ffffff;
	complete(&s, PAGE);
	assert_false(has_page(&s, 1));
	assert_int_equal(s.copy->size, 3 * PAGE);
	drop(&s);
}

#define AWAY 0x4000000000ull /* where goroutines have their stacks */

/* What was copied from elsewhere is there, and nothing that was not. */
static void other_stacks_are_read(void **state)
{
	struct stack s = make(0, 1, 0);
	struct kernel_far *far = calloc(1, sizeof *far);
	uint64_t stacks[][2] = {{1, 43}, {44, 2}}, word;
	(void)state;
	assert_non_null(far);
	far->go_at[0] = AWAY + PAGE;
	far->go_at[1] = AWAY;
	far->go[1][3] = 42;
	far->stacks[0].address = AWAY + 2 * PAGE;
	far->stacks[0].size = sizeof stacks[0];
	far->stacks[1].address = AWAY + 3 * PAGE;
	far->stacks[1].size = sizeof stacks[1];
	s.copy->process = &s.process;
	s.copy->copied = s.copy->size;
	s.process.gone = true;
	assert_false(copy_read(s.copy, AWAY + 24, &word));
	s.copy->used = false;
	s.copy->pieces = malloc(copy_far_size(far));
	assert_non_null(s.copy->pieces);
	copy_far(far, (uint8_t *)stacks, s.copy->pieces);
	assert_int_equal(s.copy->pieces->g, AWAY + PAGE);
	assert_true(copy_read(s.copy, AWAY + 24, &word) && word == 42);
	assert_true(copy_read(s.copy, AWAY + 2 * PAGE + 8, &word) && word == 43);
	assert_false(s.copy->used);
	assert_true(has_page(&s, 0));
	assert_false(copy_read(s.copy, AWAY + 2 * PAGE + 16, &word));
	assert_true(copy_read(s.copy, AWAY + 3 * PAGE, &word) && word == 44);
	assert_false(copy_read(s.copy, AWAY + sizeof far->go[1], &word));
	assert_false(copy_read(s.copy, 8, &word)); /* there is no g at 0 */
	free(s.copy->pieces);
	free(far);
	drop(&s);
}

/* A record is as long as it says. */
static void copies_are_found(void **state)
{
	size_t size = sizeof(struct kernel_far) + sizeof(struct kernel_copy) + 8 + 24, before;
	struct kernel_far *far = calloc(1, size);
	struct kernel_copy *alone = (void *)(far + 1);
	(void)state;
	assert_non_null(far);
	far->head.kind = KERNEL_FAR;
	alone->head.kind = KERNEL_COPY;
	alone->size = 8;
	far->stacks[0].size = 16;
	far->stacks[1].size = 8;
	assert_ptr_equal(copy_in(far, size, &before), alone);
	assert_int_equal(before, sizeof *far);
	assert_ptr_equal(copy_in(alone, sizeof *alone + 8, &before), alone);
	assert_int_equal(before, 0);
	for (size_t less = 0; less < size; less++)
		assert_null(copy_in(far, less, &before));
	for (size_t less = 0; less < sizeof *alone + 8; less++)
		assert_null(copy_in(alone, less, &before));
	far->stacks[1].size = UINT64_MAX - 15;
	assert_null(copy_in(far, size, &before));
	alone->head.kind = KERNEL_PATH;
	assert_null(copy_in(alone, sizeof *alone + 8, &before));
	free(far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_are_filled),
		cmocka_unit_test(what_has_changed_is_not_read),
		cmocka_unit_test(who_has_returned_is_seen),
		cmocka_unit_test(it_is_not_read_late),
		cmocka_unit_test(the_innermost_page_is_not_read),
		cmocka_unit_test(few_words_before_a_hole_are_enough),
		cmocka_unit_test(more_is_read_beyond_the_end),
		cmocka_unit_test(large_stacks_are_whole),
		cmocka_unit_test(of_nobody_nothing_is_read),
		cmocka_unit_test(other_stacks_are_read),
		cmocka_unit_test(copies_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
