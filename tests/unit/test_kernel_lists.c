/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler is told of processes, in a map as it has them. */
#include "unit.h"

#include "collect/kernel/bpf/shared.h"
#include "collect/kernel/code.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define COUNT 100u

/* So small that some buckets have several. */
static int open_map(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "processes", sizeof(uint32_t),
				 sizeof(struct kernel_process), 2 * COUNT, NULL);
	if (map < 0) {
		print_message("eBPF is not permitted here: %s\n", strerror(errno));
		skip();
	}
	return map;
}

static struct kernel_process read_one(int map, uint32_t pid)
{
	struct kernel_process found;
	assert_int_equal(bpf_map_lookup_elem(map, &pid, &found), 0);
	return found;
}

static void all_lists_are_taken(void **state)
{
	int map = open_map();
	(void)state;
	for (uint32_t pid = 1; pid <= COUNT; pid++) {
		struct kernel_process p = {.first = pid, .count = 2, .serial = pid, .changes = pid};
		assert_int_equal(bpf_map_update_elem(map, &pid, &p, BPF_ANY), 0);
	}
	assert_true(code_clear_lists(map));
	for (uint32_t pid = 1; pid <= COUNT; pid++) {
		struct kernel_process p = read_one(map, pid);
		assert_true(!p.serial && !p.first && !p.count);
		assert_int_equal(p.changes, pid); /* what else is known stays */
	}
	assert_false(code_clear_lists(map));
	close(map);
}

static void an_empty_map_has_none(void **state)
{
	int map = open_map();
	(void)state;
	assert_false(code_clear_lists(map));
	close(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lists_are_taken),
		cmocka_unit_test(an_empty_map_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
