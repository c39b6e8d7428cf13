/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "profile/process_name.h"

static const char *make(const char *comm, const char *file)
{
	static char out[96];
	process_name_make(out, sizeof out, comm, file);
	return out;
}

static void made(void **state)
{
	(void)state;
	assert_string_equal(make("one", "one"), "one");
	assert_string_equal(make("", "one"), "one");
	assert_string_equal(make("redis-server", "redis-check-rdb"),
			    "redis-server [redis-check-rdb]");
	assert_string_equal(make("python3", "python3.11"), "python3 [python3.11]");
	/* The kernel keeps 15 bytes. */
	assert_string_equal(make("a-name-that-goe", "a-name-that-goes-on"), "a-name-that-goes-on");
	assert_string_equal(make("a-name-that-go", "a-name-that-goes-on"),
			    "a-name-that-go [a-name-that-goes-on]");
}

static void meant(void **state)
{
	static const struct {
		const char *name, *arguments, *wanted;
		bool is;
	} all[] = {
		{"one", "./one 3", "one", true},
		{"one", NULL, "one", true},
		{"one", NULL, "on", false},
		{"one", "", "", false},
		{"redis-server [redis-check-rdb]", "", "redis-server", true},
		{"redis-server [redis-check-rdb]", "", "redis-check-rdb", true},
		{"redis-server [redis-check-rdb]", "", "redis-server [redis-check-rdb]", true},
		{"redis-server [redis-check-rdb]", "", "redis", false},
		{"redis-server [redis-check-rdb]", "", "check-rdb", false},
		{"redis-server [redis-check-rdb]", "", "redis-check-rdb]", false},
		/* As it was recorded before both were. */
		{"redis-check-rdb", "/usr/bin/redis-server 127.0.0.1:6379", "redis-server", true},
		{"redis-check-rdb", "/usr/bin/redis-server 127.0.0.1:6379", "6379", false},
		{"postgres", "postgres: walwriter", "postgres", true},
		{"x [y]", "-bash", "bash", true},
		{"x [y]", "/", "", false},
		{"a-name-that-goes-on", "", "a-name-that-goe", true},
		{"a-name-that-goes-on", "", "a-name-that-go", false},
		{"]", "", "x", false},
		{" [", "", "x", false},
		{" []", "", "x", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (process_name_is(all[i].name, all[i].arguments, all[i].wanted) != all[i].is)
			fail_msg("'%s' (%s) for '%s'", all[i].name,
				 all[i].arguments ? all[i].arguments : "", all[i].wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made),
		cmocka_unit_test(meant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
