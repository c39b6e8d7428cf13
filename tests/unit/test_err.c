/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void text_is_what_was_said(void **state)
{
	struct err *e = err_new("section '%s': %d bytes", ".text", 42);
	(void)state;
	assert_string_equal(err_text(e), "section '.text': 42 bytes");
	err_free(e);
}

static void errno_is_spelled_out(void **state)
{
	struct err *e;
	(void)state;
	errno = ENOENT;
	e = err_errno("%s: cannot open", "/x");
	assert_string_equal(err_text(e), "/x: cannot open: No such file or directory");
	err_free(e);
}

static void context_goes_in_front(void **state)
{
	struct err *e = err_new("cannot open");
	(void)state;
	e = err_context(e, "/proc/%d/maps", 42);
	e = err_context(e, "stack of process %d", 42);
	assert_string_equal(err_text(e), "stack of process 42: /proc/42/maps: cannot open");
	err_free(e);
}

static void success_stays_success(void **state)
{
	(void)state;
	assert_null(err_context(NULL, "nothing"));
	err_free(NULL);
}

static void foreign_text_stays_on_one_line(void **state)
{
	struct err *e = err_new("name '%s'", "a\nb\x1b[31m");
	(void)state;
	e = err_context(e, "x\ny");
	assert_string_equal(err_text(e), "x?y: name 'a?b?[31m'");
	err_free(e);
}

static void percent_in_a_text_is_not_a_format(void **state)
{
	struct err *e = err_context(err_new("%s", "100%n%s"), "%s", "50%d");
	(void)state;
	assert_string_equal(err_text(e), "50%d: 100%n%s");
	err_free(e);
}

static void long_texts_are_whole(void **state)
{
	char *name = malloc(100001);
	struct err *e;
	(void)state;
	memset(name, 'a', 100000);
	name[100000] = 0;
	e = err_context(err_new("%s", name), "b");
	assert_int_equal(strlen(err_text(e)), 100003);
	err_free(e);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_what_was_said),
		cmocka_unit_test(errno_is_spelled_out),
		cmocka_unit_test(context_goes_in_front),
		cmocka_unit_test(success_stays_success),
		cmocka_unit_test(foreign_text_stays_on_one_line),
		cmocka_unit_test(percent_in_a_text_is_not_a_format),
		cmocka_unit_test(long_texts_are_whole),
	};
	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
