/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/term.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static void assert_size(uint64_t bytes, const char *wanted)
{
	char text[TERM_UNIT_MAX];
	assert_string_equal(term_size(text, bytes), wanted);
}

static void assert_time(double seconds, const char *wanted)
{
	char text[TERM_UNIT_MAX];
	assert_string_equal(term_time(text, seconds), wanted);
}

static void sizes(void **state)
{
	(void)state;
	assert_size(0, "0 B");
	assert_size(999, "999 B");
	assert_size(1000, "1.00 kB");
	assert_size(212345, "212 kB");
	assert_size(999499, "999 kB");
	assert_size(999500, "1.00 MB");
	assert_size(41300000, "41.3 MB");
	assert_size(UINT64_MAX, "18.4 EB");
}

static void times(void **state)
{
	(void)state;
	assert_time(0, "0 s");
	assert_time(-1, "0 s");
	assert_time((double)NAN, "0 s");
	assert_time(40e-9, "40.0 ns");
	assert_time(820e-6, "820 us");
	assert_time(0.00151, "1.51 ms");
	assert_time(41.3, "41.3 s");
	assert_time(99.96, "1 min 39 s");
	assert_time(3600, "1 h 00 min");
	assert_time(1e12, "1.00e+12 s");
}

static void colours(void **state)
{
	int null = open("/dev/null", O_WRONLY);
	(void)state;
	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR_FORCE");
	assert_false(term_is_tty(null));
	assert_false(term_colour(null));
	assert_string_equal(term_style(null, TERM_RED), "");
	setenv("CLICOLOR_FORCE", "0", 1);
	assert_false(term_colour(null));
	setenv("CLICOLOR_FORCE", "1", 1);
	assert_true(term_colour(null));
	assert_string_equal(term_style(null, TERM_RED), "\033[31m");
	setenv("NO_COLOR", "", 1);
	assert_true(term_colour(null));
	setenv("NO_COLOR", "1", 1);
	assert_false(term_colour(null));
	assert_int_equal(term_width(null), 80);
	close(null);
}

static void locales(void **state)
{
	(void)state;
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	unsetenv("LANG");
	assert_false(term_wants_ascii());
	setenv("LANG", "de_DE.UTF-8", 1);
	assert_false(term_wants_ascii());
	setenv("LC_CTYPE", "C", 1);
	assert_true(term_wants_ascii());
	setenv("LC_ALL", "", 1); /* as if it were not set */
	assert_true(term_wants_ascii());
	setenv("LC_ALL", "C.utf8", 1);
	assert_false(term_wants_ascii());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(times),
		cmocka_unit_test(colours),
		cmocka_unit_test(locales),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
