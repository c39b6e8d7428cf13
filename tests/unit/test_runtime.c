/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "process/maps.h"
#include "process/runtime.h"

/* Of a copy without anything behind it. */
static bool java(const char *arguments, size_t size, const char *environment, size_t more)
{
	char *a = malloc(size + !size), *b = malloc(more + !more);
	memcpy(a, arguments, size);
	memcpy(b, environment, more);
	bool keeps = runtime_java_keeps(a, size, b, more);
	free(a);
	free(b);
	return keeps;
}
#define JAVA(arguments, environment) \
	java(arguments, sizeof arguments - 1, environment, sizeof environment - 1)

static void options_of_java(void **state)
{
	(void)state;
	assert_false(JAVA("", ""));
	assert_false(JAVA("java\0Main\0", "PATH=/bin\0"));
	assert_true(JAVA("java\0-XX:+PreserveFramePointer\0Main\0", ""));
	assert_true(JAVA("java\0-XX:+PreserveFramePointer", ""));
	assert_true(JAVA("java\0-cp\0a:b\0@more\0-XX:+PreserveFramePointer\0Main\0", ""));
	/* the last one decides */
	assert_false(JAVA("java\0-XX:+PreserveFramePointer\0-XX:-PreserveFramePointer\0M\0", ""));
	assert_false(JAVA("java\0-XX:+PreserveFramePointe\0M\0", ""));
	/* those of the program are not Java's */
	assert_false(JAVA("java\0Main\0-XX:+PreserveFramePointer\0", ""));
	assert_false(JAVA("java\0-jar\0a.jar\0-XX:+PreserveFramePointer\0", ""));
	assert_false(JAVA("java\0-m\0a/b\0-XX:+PreserveFramePointer\0", ""));
	assert_false(JAVA("java\0-cp\0-XX:+PreserveFramePointer\0M\0", ""));
	assert_false(JAVA("-XX:+PreserveFramePointer\0M\0", ""));
}

static void options_in_the_environment(void **state)
{
	(void)state;
	assert_true(JAVA("java\0M\0", "A=b\0JAVA_TOOL_OPTIONS=-Xint -XX:+PreserveFramePointer\0"));
	assert_true(JAVA("java\0M\0", "JDK_JAVA_OPTIONS=-XX:+PreserveFramePointer"));
	assert_false(JAVA("java\0M\0", "MY_JAVA_OPTIONS=-XX:+PreserveFramePointer\0"));
	assert_false(JAVA("java\0-XX:-PreserveFramePointer\0M\0",
			  "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer\0"));
	assert_false(JAVA("java\0-XX:+PreserveFramePointer\0M\0",
			  "_JAVA_OPTIONS=-XX:-PreserveFramePointer\0"));
}

#define ERLANG(arguments) runtime_erlang_keeps(arguments, sizeof arguments - 1)

static void options_of_erlang(void **state)
{
	(void)state;
	assert_false(ERLANG("beam.smp\0--\0-root\0/usr\0"));
	assert_true(ERLANG("beam.smp\0-JPperf\0true\0--\0-root\0/usr\0"));
	assert_true(ERLANG("beam.smp\0-JPperf\0fp\0--\0"));
	assert_false(ERLANG("beam.smp\0-JPperf\0map\0--\0"));
	assert_false(ERLANG("beam.smp\0--\0-JPperf\0true\0"));
	assert_false(ERLANG("beam.smp\0-JPperf\0true\0-JPperf\0false\0--\0"));
}

static const struct runtime *find(const char *path, uint16_t machine)
{
	char text[256];
	struct maps maps;
	snprintf(text, sizeof text,
		 "1000-2000 r-xp 00000000 00:01 1 /usr/bin/other\n"
		 "3000-4000 r-xp 00000000 00:01 2 %s\n"
		 "5000-6000 rwxp 00000000 00:00 0 \n",
		 path);
	assert_null(maps_parse(text, strlen(text), &maps));
	const struct runtime *found = runtime_find(&maps, 0, machine);
	maps_free(&maps);
	assert_non_null(found);
	return found;
}

static void expect(const char *path, uint16_t machine, const char *name, bool bare, bool top)
{
	const struct runtime *r = find(path, machine);
	assert_string_equal(r->name, name);
	assert_int_equal(r->bare, bare);
	assert_int_equal(r->top, top);
	assert_int_equal(!!*r->why, bare); /* whoever ends a path is named */
	if (bare)
		assert_non_null(strstr(r->why, name));
}

static void who_makes_code(void **state)
{
	static const uint16_t both[] = {EM_X86_64, EM_AARCH64};
	(void)state;
	for (int i = 0; i < 2; i++) {
		expect("/usr/lib/jvm/lib/server/libjvm.so", both[i], "Java", true, false);
		expect("/usr/lib/erlang/erts-13/bin/beam.smp", both[i], "Erlang", true, false);
		expect("/usr/bin/node", both[i], "V8", false, false);
		expect("/usr/lib/libnode.so.108", both[i], "V8", false, false);
		expect("/usr/bin/nodes", both[i], "", false, false);
		expect("/usr/bin/strange", both[i], "", false, false);
	}
	expect("/usr/bin/luajit-2.1.0-beta3", EM_X86_64, "LuaJIT", true, false);
	expect("/usr/bin/luajit-2.1.0-beta3", EM_AARCH64, "LuaJIT", false, true);
	expect("/usr/lib/libpcre2-8.so.0.11.2", EM_X86_64, "PCRE2", true, false);
	expect("/usr/lib/libpcre2-8.so.0.11.2", EM_AARCH64, "PCRE2", false, false);
	expect("/usr/bin/sbcl", EM_X86_64, "SBCL", false, false);
	expect("/usr/bin/sbcl", EM_AARCH64, "SBCL", true, false);
	/* this program has no such options */
	assert_string_equal(find("/lib/libjvm.so", EM_X86_64)->name, "Java");
	assert_true(runtime_is_saved_code("/usr/lib/sbcl/sbcl.core"));
	assert_false(runtime_is_saved_code("/usr/lib/sbcl/sbcl.cores"));
	assert_false(runtime_is_saved_code(".core"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_java),
		cmocka_unit_test(options_in_the_environment),
		cmocka_unit_test(options_of_erlang),
		cmocka_unit_test(who_makes_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
