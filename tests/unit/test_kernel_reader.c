/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring gives is kept, in its order, also where there is no room for more. */
#include "unit.h"

#include "base/clock.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/reader.h"
#include "collect/kernel/state.h"

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

static void take(struct kernel *k, const void *data, size_t size)
{
	uint64_t number;
	(void)k;
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
	uint64_t given = 0;
	(void)state;
	pthread_mutex_init(&k.reader.lock, NULL);
	k.reader.urgent = eventfd(0, EFD_NONBLOCK);
	k.reader.bytes_max = 1 << 20;
	for (int round = 0; round < 3; round++) {
		while (give(&k.reader, given++) >= 0)
			assert_true(given < 100000);
		assert_true(k.reader.bytes >= k.reader.bytes_max);
		reader_take(&k, take);
		assert_int_equal(taken, given);
		assert_int_equal(wrong, 0);
	}
	assert_int_equal(k.unusable, 0);
	free(k.reader.spare);
	close(k.reader.urgent);
}

#define COPIED 4096u
#define BEYOND (2u << 20)

static const uint8_t *stack; /* our own memory, as if it were one */

static void take_stack(struct kernel *k, const void *data, size_t size)
{
	const struct kernel_copy *copy = data;
	(void)k;
	taken++;
	wrong += size != sizeof *copy + copy->size || copy->beyond ||
		 copy->size != COPIED + BEYOND || memcmp(copy + 1, stack, COPIED + BEYOND) != 0;
}

/* What the sampler did not copy of a stack is read when its record comes, not when somebody looks at it. */
static void stacks_are_completed(void **state)
{
	struct kernel k = {0};
	uint8_t *memory = malloc(COPIED + BEYOND);
	struct kernel_copy *record = calloc(1, sizeof *record + COPIED);
	(void)state;
	assert_true(memory && record);
	for (size_t i = 0; i < COPIED + BEYOND; i++)
		memory[i] = (uint8_t)(i * 7 + i / 4096);
	stack = memory;
	record->head = (struct kernel_head){
		.kind = KERNEL_COPY, .process = (uint32_t)getpid(), .time = now_ns()};
	record->address = (uint64_t)memory;
	record->size = COPIED;
	record->beyond = BEYOND;
	memcpy(record + 1, memory, COPIED);
	pthread_mutex_init(&k.reader.lock, NULL);
	k.reader.urgent = eventfd(0, EFD_NONBLOCK);
	k.reader.bytes_max = 64u << 20;
	taken = wrong = 0;
	assert_int_equal(reader_hold(&k.reader, record, sizeof *record + COPIED), 0);
	assert_int_equal(record->size, COPIED); /* it is the ring's */
	memset(memory, 0, COPIED);              /* from now on it is another */
	assert_int_equal(reader_hold(&k.reader, record, sizeof *record + COPIED), 0);
	memcpy(memory, record + 1, COPIED);
	reader_take(&k, take_stack);
	assert_int_equal(taken, 2);
	assert_int_equal(wrong, 1); /* the second one is as it came */
	free(k.reader.spare);
	free(k.reader.scratch);
	close(k.reader.urgent);
	free(record);
	free(memory);
}

#define PAGE 4096u

static void take_far(struct kernel *k, const void *data, size_t size)
{
	size_t before;
	const struct kernel_copy *copy = copy_in(data, size, &before);
	(void)k;
	taken++;
	wrong += !copy || !before || copy->size != 3 * PAGE || copy->holes[0] ||
		 memcmp(copy + 1, stack, 3 * PAGE + PAGE) != 0;
}

/* Where other stacks are behind it, only holes are filled. */
static void far_stacks_stay(void **state)
{
	struct kernel k = {0};
	size_t size = sizeof(struct kernel_far) + sizeof(struct kernel_copy) + 4 * PAGE;
	uint8_t *memory = aligned_alloc(PAGE, 4 * PAGE);
	struct kernel_far *far = calloc(1, size);
	struct kernel_copy *record = (void *)(far + 1);
	(void)state;
	assert_true(memory && far);
	for (size_t i = 0; i < 4 * PAGE; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251);
	stack = memory;
	far->head = (struct kernel_head){.kind = KERNEL_FAR};
	far->stacks[1].size = PAGE;
	record->head = (struct kernel_head){
		.kind = KERNEL_COPY, .process = (uint32_t)getpid(), .time = now_ns()};
	record->address = (uint64_t)memory;
	record->size = 3 * PAGE;
	record->beyond = PAGE;
	record->holes[0] = 2;
	memcpy(record + 1, memory, 4 * PAGE);
	memset((uint8_t *)(record + 1) + PAGE, 0, PAGE);
	pthread_mutex_init(&k.reader.lock, NULL);
	k.reader.urgent = eventfd(0, EFD_NONBLOCK);
	k.reader.bytes_max = 64u << 20;
	taken = wrong = 0;
	assert_int_equal(reader_hold(&k.reader, far, size), 0);
	reader_take(&k, take_far);
	assert_int_equal(taken, 1);
	assert_int_equal(wrong, 0);
	free(k.reader.spare);
	free(k.reader.scratch);
	close(k.reader.urgent);
	free(far);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_kept),
		cmocka_unit_test(stacks_are_completed),
		cmocka_unit_test(far_stacks_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
