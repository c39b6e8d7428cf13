/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "explain/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static struct calibration some(void)
{
	struct calibration c = {.cpu = "0x41:0xd40:r1p1",
				.clock = "cpu-clock",
				.hz = 2.5e9,
				.width = 8,
				.l1 = 4,
				.l2 = 13,
				.skid_load = {0, 0.25, 0.75, 0},
				.skid_other = {1, 0, 0, 0}};
	return c;
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	struct calibration c = some(), back;
	struct buf text = {0};
	calibrate_write(&c, &text);
	assert_true(calibrate_read(buf_text(&text), c.cpu, &back));
	assert_true(back.hz == c.hz && back.l2 == 13 && back.dram == 0 &&
		    back.skid_load[2] == 0.75);
	assert_string_equal(back.clock, "cpu-clock");
	assert_int_equal(calibrate_skid_of_loads(&back), 2);
	buf_free(&text);
}

static void another_cpu_is_measured_anew(void **state)
{
	(void)state;
	struct calibration c = some(), back;
	struct buf text = {0};
	calibrate_write(&c, &text);
	assert_false(calibrate_read(buf_text(&text), "0x41:0xd40:r1p2", &back));
	buf_free(&text);
}

static void half_a_file_is_none(void **state)
{
	(void)state;
	struct calibration c = some(), back;
	struct buf text = {0};
	calibrate_write(&c, &text);
	for (size_t size = 0; size + 8 < text.size; size += 7) {
		char *cut = strndup(text.data, size);
		assert_non_null(cut);
		assert_false(calibrate_read(cut, c.cpu, &back));
		free(cut);
	}
	assert_false(calibrate_read(
		"calibration 2\ncpu 0x41:0xd40:r1p1\nclock x\nproblem \nhz nan\n", c.cpu, &back));
	buf_free(&text);
}

static void what_was_not_measured_says_so(void **state)
{
	(void)state;
	struct calibration c = some();
	struct buf text = {0};
	snprintf(c.problem, sizeof c.problem, "perf events are not allowed");
	calibrate_show(&c, &text);
	assert_non_null(strstr(buf_text(&text), "2.50 GHz"));
	assert_non_null(strstr(buf_text(&text), "not measured"));
	assert_non_null(strstr(buf_text(&text), "perf events are not allowed"));
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(another_cpu_is_measured_anew),
		cmocka_unit_test(half_a_file_is_none),
		cmocka_unit_test(what_was_not_measured_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
