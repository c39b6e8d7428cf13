/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"

#include <fcntl.h>
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
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command) ? -1 : 0;
}

static void assert_refused(const char *why)
{
	int directory;
	struct err *e = cachedir_open("tables", &directory);
	assert_non_null(e);
	if (!strstr(err_text(e), why))
		fail_msg("not '%s' but '%s'", why, err_text(e));
	assert_int_equal(directory, -1);
	err_free(e);
}

static int open_tables(void)
{
	int directory;
	assert_null(cachedir_open("tables", &directory));
	assert_true(directory >= 0);
	return directory;
}

/* The path of something below the root; valid for a while. */
static const char *below(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof paths[0], "%s/%s", root, name);
	return path;
}

static void creates_privately(void **state)
{
	struct stat st, opened;
	int directory;
	(void)state;
	setenv("HOME", below("home"), 1);
	unsetenv("XDG_CACHE_HOME");
	umask(0);
	directory = open_tables();
	assert_int_equal(stat(below("home/.cache/culprit/tables"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fstat(directory, &opened), 0);
	assert_int_equal(st.st_ino, opened.st_ino);
	close(directory);
	close(open_tables());

	assert_int_equal(chmod(below("home/.cache/culprit"), 0777), 0);
	assert_refused("others may write");
}

/* ~/.cache may be elsewhere; what is below it is ours. */
static void follows_no_link(void **state)
{
	(void)state;
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", below("linked"), 1);
	assert_int_equal(mkdir(below("linked"), 0700), 0);
	assert_int_equal(mkdir(below("large"), 0700), 0);
	assert_int_equal(symlink("../large", below("linked/.cache")), 0);
	close(open_tables());
	assert_int_equal(access(below("large/culprit/tables"), F_OK), 0);

	assert_int_equal(rename(below("large/culprit/tables"), below("large/tables")), 0);
	assert_int_equal(symlink("../tables", below("large/culprit/tables")), 0);
	assert_refused("a link to one is not followed");
	assert_int_equal(rename(below("large/culprit"), below("large/before")), 0);
	assert_int_equal(symlink("before", below("large/culprit")), 0);
	assert_refused("a link to one is not followed");
}

static void write_to(int directory, const char *name, const char *text, bool whole)
{
	struct buf temporary = {0};
	int fd = cachedir_write(directory, name, &temporary);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	cachedir_keep(directory, name, &temporary, fd, whole);
	assert_int_not_equal(faccessat(directory, buf_text(&temporary), F_OK, 0), 0);
	buf_free(&temporary);
}

static bool reads(int directory, const char *name, const char *wanted)
{
	char text[64];
	int fd = cachedir_read(directory, name);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
	if (fd >= 0)
		close(fd);
	return size == (ssize_t)strlen(wanted) && !memcmp(text, wanted, strlen(wanted));
}

static void reads_own_files(void **state)
{
	int directory, fd;
	(void)state;
	setenv("XDG_CACHE_HOME", below("files"), 1);
	directory = open_tables();
	write_to(directory, "a", "first", true);
	assert_true(reads(directory, "a", "first"));
	write_to(directory, "a", "half", false);
	assert_true(reads(directory, "a", "first"));
	write_to(directory, "a", "second", true);
	assert_true(reads(directory, "a", "second"));
	assert_int_equal(cachedir_read(directory, "none"), -1);
	/* What is no file of ours. */
	assert_int_equal(symlinkat("a", directory, "link"), 0);
	assert_int_equal(cachedir_read(directory, "link"), -1);
	assert_int_equal(mkfifoat(directory, "pipe", 0600), 0);
	assert_int_equal(cachedir_read(directory, "pipe"), -1);
	assert_int_equal(mkdirat(directory, "folder", 0700), 0);
	assert_int_equal(cachedir_read(directory, "folder"), -1);
	fd = openat(directory, "open", O_WRONLY | O_CREAT, 0666);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cachedir_read(directory, "open"), -1);
	if (!geteuid()) {
		assert_int_equal(fchownat(directory, "a", 65534, 65534, 0), 0);
		assert_int_equal(cachedir_read(directory, "a"), -1);
	}
	close(directory);
}

/* Something else is put into its place after it was checked. */
static void stays_where_it_was(void **state)
{
	int directory;
	(void)state;
	setenv("XDG_CACHE_HOME", below("moved"), 1);
	directory = open_tables();
	write_to(directory, "a", "ours", true);
	assert_int_equal(rename(below("moved/culprit"), below("moved/before")), 0);
	assert_int_equal(mkdir(below("moved/culprit"), 0777), 0);
	assert_int_equal(mkdir(below("moved/culprit/tables"), 0777), 0);
	assert_true(reads(directory, "a", "ours"));
	write_to(directory, "b", "ours, too", true);
	assert_int_equal(access(below("moved/before/tables/b"), F_OK), 0);
	assert_int_not_equal(access(below("moved/culprit/tables/b"), F_OK), 0);
	close(directory);
	assert_refused("others may write");
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
	snprintf(file, sizeof file, "%s/culprit", root);
	made = fopen(file, "w");
	assert_non_null(made);
	fclose(made);
	setenv("XDG_CACHE_HOME", root, 1);
	assert_refused("not a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creates_privately), cmocka_unit_test(follows_no_link),
		cmocka_unit_test(reads_own_files),   cmocka_unit_test(stays_where_it_was),
		cmocka_unit_test(prefers_xdg),       cmocka_unit_test(does_without),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
