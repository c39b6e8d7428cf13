/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "harvest/mark.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 512, COPIED = 256 };

static uint64_t stack[WORDS]; /* that of a process: our own */

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t address_of(const uint64_t *word)
{
	return (uint64_t)(uintptr_t)word;
}

static void fill(void)
{
	for (uint64_t i = 0; i < WORDS; i++)
		stack[i] = i + 1;
}

static struct mark mark_of_copy(void)
{
	uint64_t copy[COPIED];
	struct mark mark;
	memcpy(copy, stack, sizeof copy);
	mark_make(&mark, address_of(stack), (const uint8_t *)copy, sizeof copy);
	return mark;
}

static size_t read_rest(const struct mark *mark, uint64_t ns, uint64_t *rest)
{
	return mark_read(mark, getpid(), ns, address_of(stack + COPIED), rest,
			 (WORDS - COPIED) * sizeof *rest);
}

static void a_stack_that_is_as_it_was_is_read(void **state)
{
	uint64_t rest[WORDS - COPIED];
	(void)state;
	fill();
	struct mark mark = mark_of_copy();
	stack[0] = 7; /* the innermost part may change */
	assert_int_equal(read_rest(&mark, now(), rest), sizeof rest);
	assert_memory_equal(rest, stack + COPIED, sizeof rest);
}

static void another_stack_is_not_read(void **state)
{
	uint64_t rest[WORDS - COPIED];
	(void)state;
	fill();
	struct mark mark = mark_of_copy();
	stack[COPIED - 1]++;
	assert_int_equal(read_rest(&mark, now(), rest), 0);
}

static void later_is_too_late(void **state)
{
	uint64_t rest[WORDS - COPIED];
	(void)state;
	fill();
	struct mark mark = mark_of_copy();
	assert_int_equal(read_rest(&mark, now() - 2000000000u, rest), 0);
}

static void zeros_are_no_mark(void **state)
{
	uint64_t rest[WORDS - COPIED];
	(void)state;
	fill();
	memset(stack + COPIED - 64, 0, 64 * sizeof *stack); /* a buffer that nobody has used */
	struct mark mark = mark_of_copy();
	assert_int_equal(mark.address, address_of(stack + COPIED - 64) - MARK_SIZE);
	memset(stack, 0, sizeof stack); /* as where a thread has ended */
	assert_int_equal(read_rest(&mark, now(), rest), 0);
	mark = mark_of_copy();
	assert_int_equal(mark.address, 0);
	assert_int_equal(read_rest(&mark, now(), rest), 0);
}

static void what_is_gone_is_not_read(void **state)
{
	uint64_t rest[8];
	(void)state;
	fill();
	struct mark mark = mark_of_copy();
	assert_int_equal(mark_read(&mark, getpid(), now(), 8, rest, sizeof rest), 0);
	mark_make(&mark, address_of(stack), (const uint8_t *)stack, MARK_SIZE - 8);
	assert_int_equal(mark.address, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_that_is_as_it_was_is_read),
		cmocka_unit_test(another_stack_is_not_read),
		cmocka_unit_test(later_is_too_late),
		cmocka_unit_test(zeros_are_no_mark),
		cmocka_unit_test(what_is_gone_is_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
