/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/cpu_id.h"

#include <string.h>

static void of_arm(void **state)
{
	(void)state;
	char id[CPU_ID_MAX];
	cpu_id_parse(
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
		"CPU part\t: 0xd40\nCPU revision\t: 1\n\nprocessor\t: 1\nCPU part\t: 0xd0c\n",
		id);
	assert_string_equal(id, "0x41:0xd40:r1p1");
}

static void of_intel_and_amd(void **state)
{
	(void)state;
	char id[CPU_ID_MAX];
	cpu_id_parse("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
		     "model name\t: Intel(R) Xeon(R)\nstepping\t: 7\nmicrocode\t: 0x5003604\n",
		     id);
	assert_string_equal(id, "GenuineIntel:6:85:7:0x5003604");
}

static void of_nothing_is_empty(void **state)
{
	(void)state;
	char id[CPU_ID_MAX] = "old";
	cpu_id_parse("", id);
	assert_string_equal(id, "");
	cpu_id_parse("CPU part", id);
	assert_string_equal(id, "");
	cpu_id_parse("CPU implementer : 0x4100000000000000000000000000000000000000\nCPU part : 0x1",
		     id);
	assert_true(strlen(id) < CPU_ID_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_arm),
		cmocka_unit_test(of_intel_and_amd),
		cmocka_unit_test(of_nothing_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
