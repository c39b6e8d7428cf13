/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

#define ITEMS 10000

struct tally {
	atomic_uint seen[ITEMS];
	atomic_size_t sum;
};

static void count_item(void *context, size_t index)
{
	struct tally *tally = context;
	atomic_fetch_add(&tally->seen[index], 1);
	atomic_fetch_add(&tally->sum, index);
}

static void every_index_once(void **state)
{
	static const char *const threads[] = {"1", "2", "7", "1000", "nonsense", "-3"};
	(void)state;
	for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
		struct tally *tally = calloc(1, sizeof *tally);
		setenv("CULPRIT_THREADS", threads[t], 1);
		parallel_for(ITEMS, count_item, tally);
		for (size_t i = 0; i < ITEMS; i++)
			assert_int_equal(tally->seen[i], 1);
		assert_int_equal(tally->sum, (size_t)ITEMS * (ITEMS - 1) / 2);
		free(tally);
	}
	unsetenv("CULPRIT_THREADS");
}

static void no_items_no_calls(void **state)
{
	(void)state;
	parallel_for(0, count_item, NULL);
}

struct order {
	size_t next;
	int wrong;
};

static void check_order(void *context, size_t index)
{
	struct order *order = context;
	order->wrong += index != order->next++;
}

static void one_thread_keeps_the_order(void **state)
{
	struct order order = {0};
	(void)state;
	setenv("CULPRIT_THREADS", "1", 1);
	parallel_for(1000, check_order, &order);
	unsetenv("CULPRIT_THREADS");
	assert_int_equal(order.next, 1000);
	assert_int_equal(order.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_index_once),
		cmocka_unit_test(no_items_no_calls),
		cmocka_unit_test(one_thread_keeps_the_order),
	};
	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
