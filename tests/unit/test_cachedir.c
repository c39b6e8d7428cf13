/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/culprit-test-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command) ? -1 : 0;
}

static void assert_refused(const char *why)
{
	struct buf path = {0};
	struct err *e = cachedir_create("tables", &path);

	assert_non_null(e);
	assert_non_null(strstr(err_text(e), why));
	err_free(e);
	buf_free(&path);
}

static void creates_privately(void **state)
{
	struct buf path = {0};
	char home[80], wanted[128];
	struct stat st;

	(void)state;
	snprintf(home, sizeof(home), "%s/home", root);
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	umask(0);
	assert_null(cachedir_create("tables", &path));
	snprintf(wanted, sizeof(wanted), "%s/.cache/culprit/tables", home);
	assert_string_equal(buf_text(&path), wanted);
	assert_int_equal(stat(wanted, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_null(cachedir_create(NULL, &path));
	*strrchr(wanted, '/') = 0;
	assert_string_equal(buf_text(&path), wanted);

	assert_int_equal(chmod(wanted, 0777), 0);
	assert_refused("others may write");
	buf_free(&path);
}

static void prefers_xdg(void **state)
{
	struct buf path = {0};

	(void)state;
	setenv("HOME", "/home/somebody", 1);
	setenv("XDG_CACHE_HOME", "relative", 1);
	assert_null(cachedir_path(&path));
	assert_string_equal(buf_text(&path), "/home/somebody/.cache/culprit");
	buf_clear(&path);
	setenv("XDG_CACHE_HOME", "/caches", 1);
	assert_null(cachedir_path(&path));
	assert_string_equal(buf_text(&path), "/caches/culprit");
	buf_free(&path);
}

static void does_without(void **state)
{
	char file[80];
	FILE *made;

	(void)state;
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_refused("neither XDG_CACHE_HOME nor HOME");
	setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
	assert_refused("cannot create directory '/proc/nowhere'");
	snprintf(file, sizeof(file), "%s/culprit", root);
	made = fopen(file, "w");
	assert_non_null(made);
	fclose(made);
	setenv("XDG_CACHE_HOME", root, 1);
	assert_refused("not a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creates_privately),
		cmocka_unit_test(prefers_xdg),
		cmocka_unit_test(does_without),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
