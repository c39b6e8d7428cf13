/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/cpu_id.h"

#include <stdio.h>
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

static void hidden_models_are_those_of_their_features(void **state)
{
	(void)state;
	char id[CPU_ID_MAX], text[256];
	static const char format[] =
		"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %s\n"
		"stepping\t: 1\nmicrocode\t: 0x1\nflags\t\t: fpu %s\nbugs\t: amx_tile\n";
	static const char *const cases[][3] = {
		{"167", "avx2 amx_bf16 amx_tile amx_int8", "GenuineIntel:6:143:1:0x1"},
		{"167", "avx2", "GenuineIntel:6:167:1:0x1"},
		{"167", "amx_tiles", "GenuineIntel:6:167:1:0x1"},
		{"173", "amx_tile", "GenuineIntel:6:173:1:0x1"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, format, cases[i][0], cases[i][1]);
		cpu_id_parse(text, id);
		assert_string_equal(id, cases[i][2]);
	}
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
		cmocka_unit_test(hidden_models_are_those_of_their_features),
		cmocka_unit_test(of_nothing_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
