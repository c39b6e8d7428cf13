/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/screen.h"

#include <stdlib.h>
#include <string.h>

static void check(const char *bytes, bool waited, int wanted, size_t wanted_used)
{
	size_t used = 99;
	int key = key_decode(bytes, strlen(bytes), waited, &used);
	if (key != wanted || used != wanted_used)
		fail_msg("'%s': key %d, %zu bytes", bytes, key, used);
}

static void test_letters(void **state)
{
	(void)state;
	check("", false, KEY_NONE, 0);
	check("q", false, 'q', 1);
	check("qx", false, 'q', 1);
	check("\r", false, KEY_ENTER, 1);
	check("\n", false, KEY_ENTER, 1);
	check("\b", false, KEY_BACKSPACE, 1);
	check("\177", false, KEY_BACKSPACE, 1);
	check("\303\244", false, 0303, 1);
}

static void test_sequences(void **state)
{
	(void)state;
	check("\033[A", false, KEY_UP, 3);
	check("\033OB", false, KEY_DOWN, 3);
	check("\033[5~q", false, KEY_PAGE_UP, 4);
	check("\033[6~", false, KEY_PAGE_DOWN, 4);
	check("\033[1;5H", false, KEY_HOME, 6);
	check("\033[4~", false, KEY_END, 4);
	check("\033[99999999999~", false, KEY_OTHER, 14);
	check("\033[0~", false, KEY_OTHER, 4);
	check("\033[Z", false, KEY_OTHER, 3);
}

/* Escape is a key, and the beginning of others: time tells. */
static void test_escape(void **state)
{
	(void)state;
	check("\033", false, KEY_NONE, 0);
	check("\033", true, KEY_ESCAPE, 1);
	check("\033q", false, KEY_ESCAPE, 1);
	check("\033[", false, KEY_NONE, 0);
	check("\033[1;", false, KEY_NONE, 0);
	check("\033[1;", true, KEY_OTHER, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_letters),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_escape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
