/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/debug.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "scratch.h"

static const char program[] = "int f(int a) { return a; }\nint main(void) { return f(0); }\n";

/* The file that is found for the scratch file `name`, or "" for none. */
static const char *found_for(const char *name)
{
	static char path[PATH_MAX];
	struct image *image, *debug;
	assert_null(image_open(scratch(name), &image));
	assert_null(debug_find(image, false, &debug));
	strcpy(path, debug ? image_path(debug) : "");
	image_close(debug);
	image_close(image);
	return path;
}

static void make_program(const char *build_id)
{
	assert_true(scratch_run("rm -rf root program* .debug"));
	scratch_compile("program", program, scratch_format("-g -Wl,--build-id=%s", build_id));
	assert_true(scratch_run("objcopy --only-keep-debug program program.debug"));
	assert_true(scratch_run("strip program"));
	setenv("CULPRIT_DEBUG_ROOT", scratch("root"), 1);
}

static void by_build_id(void **state)
{
	(void)state;
	make_program("0xabcdef0123");
	assert_string_equal(found_for("program"), "");
	assert_true(scratch_run("mkdir -p root/.build-id/ab && "
				"cp program.debug root/.build-id/ab/cdef0123.debug"));
	assert_string_equal(found_for("program"), scratch("root/.build-id/ab/cdef0123.debug"));
}

static void another_build_id_is_passed_over(void **state)
{
	(void)state;
	make_program("0xabcdef0123");
	scratch_compile("other", program, "-g -Wl,--build-id=0xabcdef0124");
	assert_true(scratch_run("mkdir -p root/.build-id/ab && "
				"cp other root/.build-id/ab/cdef0123.debug"));
	assert_string_equal(found_for("program"), "");
	scratch_write("root/.build-id/ab/cdef0123.debug", "nonsense", 8);
	assert_string_equal(found_for("program"), "");
}

static void by_link(void **state)
{
	(void)state;
	make_program("none");
	assert_true(scratch_run("objcopy --add-gnu-debuglink=program.debug program"));
	assert_string_equal(found_for("program"), scratch("program.debug"));
	assert_true(scratch_run("mkdir .debug && mv program.debug .debug/"));
	assert_string_equal(found_for("program"), scratch(".debug/program.debug"));
	assert_true(scratch_run(scratch_format("mkdir -p root'%s'", scratch_dir)));
	assert_true(scratch_run(scratch_format("mv .debug/program.debug root'%s'", scratch_dir)));
	assert_string_equal(found_for("program"),
			    scratch_format("%s%s/program.debug", scratch("root"), scratch_dir));
}

static void a_wrong_checksum_is_passed_over(void **state)
{
	(void)state;
	make_program("none");
	assert_true(scratch_run("objcopy --add-gnu-debuglink=program.debug program && "
				"printf x >> program.debug"));
	assert_string_equal(found_for("program"), "");
}

static void a_link_does_not_lead_elsewhere(void **state)
{
	struct {
		char name[20];
		uint32_t crc;
	} link = {.name = "../../etc/passwd"};
	char section[4096];
	(void)state;
	make_program("none");
	scratch_write("link", &link, sizeof link);
	assert_true(scratch_run("objcopy --add-section .gnu_debuglink=link program"));
	assert_string_equal(found_for("program"), "");
	memset(section, 'a', sizeof section); /* a name without an end */
	scratch_write("link", section, sizeof section);
	assert_true(scratch_run("objcopy --update-section .gnu_debuglink=link program"));
	assert_string_equal(found_for("program"), "");
}

/* A download happens only where it is allowed and a server is named; here none answers. */
static void without_a_server(void **state)
{
	struct image *image, *debug;
	(void)state;
	make_program("0xabcdef0123");
	setenv("DEBUGINFOD_CACHE_PATH", scratch("cache"), 1);
	setenv("DEBUGINFOD_TIMEOUT", "1", 1);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	assert_null(image_open(scratch("program"), &image));
	assert_null(debug_find(image, true, &debug));
	assert_null(debug);
	unsetenv("DEBUGINFOD_URLS");
	assert_null(debug_find(image, true, &debug));
	assert_null(debug);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_build_id),
		cmocka_unit_test(another_build_id_is_passed_over),
		cmocka_unit_test(by_link),
		cmocka_unit_test(a_wrong_checksum_is_passed_over),
		cmocka_unit_test(a_link_does_not_lead_elsewhere),
		cmocka_unit_test(without_a_server),
	};
	return cmocka_run_group_tests_name("debug", tests, NULL, NULL);
}
