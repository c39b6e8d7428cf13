/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring gives is kept, in its order, also where there is no room for more. */
#include "unit.h"

#include "collect/internal.h"
#include "collect/kernel_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RECORD_MAX 20000u

static uint64_t taken, wrong;

static size_t size_of(uint64_t number)
{
	return sizeof(struct kernel_head) + sizeof number + number * 977 % RECORD_MAX;
}

static void take(struct session *s, const void *data, size_t size)
{
	uint64_t number;

	(void)s;
	memcpy(&number, (const uint8_t *)data + sizeof(struct kernel_head), sizeof number);
	wrong += number != taken++ || size != size_of(number);
}

static int give(struct kernel_reader *r, uint64_t number)
{
	uint8_t record[sizeof(struct kernel_head) + sizeof number + RECORD_MAX] = {0};

	memcpy(record + sizeof(struct kernel_head), &number, sizeof number);
	return reader_hold(r, record, size_of(number));
}

static void all_is_kept(void **state)
{
	struct kernel k = {0};
	struct session s = {.kernel = &k};
	uint64_t given = 0;

	(void)state;
	pthread_mutex_init(&k.reader.lock, NULL);
	k.reader.urgent = eventfd(0, EFD_NONBLOCK);
	k.reader.bytes_max = 1 << 20;
	for (int round = 0; round < 3; round++) {
		while (give(&k.reader, given++) >= 0)
			assert_true(given < 100000);
		assert_true(k.reader.bytes >= k.reader.bytes_max);
		reader_take(&s, take);
		assert_int_equal(taken, given);
		assert_int_equal(wrong, 0);
	}
	assert_int_equal(k.confused, 0);
	free(k.reader.spare);
	close(k.reader.urgent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
