/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "base/err.h"
#include "process/jit.h"
#include "process/maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static struct maps parse(const char *text)
{
	struct maps maps;
	assert_null(maps_parse(text, strlen(text), &maps));
	return maps;
}

static void reads_every_field(void **state)
{
	struct maps m = parse(
		"aaaab6b60000-aaaab6b69000 r-xp 00001000 fe:02 70412      /usr/bin/sleep\n"
		"aaaac0000000-aaaac0021000 rw-p 00000000 00:00 0          [heap]\n"
		"ffff00000000-ffff00001000 ---s 00002000 00:01 18446744073709551615\n");
	(void)state;
	assert_int_equal(m.count, 3);
	assert_int_equal(m.items[0].start, 0xaaaab6b60000);
	assert_int_equal(m.items[0].end, 0xaaaab6b69000);
	assert_int_equal(m.items[0].offset, 0x1000);
	assert_int_equal(m.items[0].device, makedev(0xfe, 2));
	assert_int_equal(m.items[0].inode, 70412);
	assert_true(m.items[0].readable && m.items[0].executable);
	assert_false(m.items[0].writable || m.items[0].deleted);
	assert_string_equal(m.items[0].path, "/usr/bin/sleep");
	assert_string_equal(m.items[1].path, "[heap]");
	assert_true(m.items[1].writable);
	assert_false(m.items[2].readable || m.items[2].executable);
	assert_string_equal(m.items[2].path, "");
	assert_int_equal(m.items[2].inode, UINT64_MAX);
	maps_free(&m);
}

static void reads_odd_paths(void **state)
{
	struct maps m = parse("1000-2000 r-xp 0 1:2 3 /tmp/with  space and\\012line end\n"
			      "2000-3000 r-xp 0 1:2 3 /memfd:jit (deleted)\n"
			      "3000-4000 r-xp 0 0:0 0 \n"
			      "4000-5000 r-xp 0 0:0 0 (deleted)\n");
	(void)state;
	assert_int_equal(m.count, 4);
	assert_string_equal(m.items[0].path, "/tmp/with  space and\nline end");
	assert_string_equal(m.items[1].path, "/memfd:jit");
	assert_true(m.items[1].deleted);
	assert_string_equal(m.items[2].path, "");
	assert_string_equal(m.items[3].path, "(deleted)");
	assert_false(m.items[3].deleted);
	maps_free(&m);
}

static void leaves_out_nonsense(void **state)
{
	static const char *const lines[] = {
		"",
		"x",
		"2000-1000 r-xp 0 1:2 3 /backwards",
		"1000-1000 r-xp 0 1:2 3 /empty",
		"10000000000000000-20000000000000000 r-xp 0 1:2 3 /too-large",
		"-1000-2000 r-xp 0 1:2 3 /negative",
		"1000-2000",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0 1:2",
		"1000-2000 r-xp 0 1:2 ",
		"1000-2000 r-xp 0 1:2 3x /path",
		"1000-2000 r-xp 0 12 3 /path",
	};
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct maps m = parse(lines[i]);
		assert_int_equal(m.count, 0);
		maps_free(&m);
	}
	struct maps m;
	assert_null(maps_parse("1000-2000 r-xp 0 1:2 3 /a\0b\n", 28, &m)); /* a NUL inside */
	assert_int_equal(m.count, 1);
	assert_string_equal(m.items[0].path, "/a?b");
	maps_free(&m);
}

static void sorts_and_drops_overlaps(void **state)
{
	struct maps m = parse(
		"5000-6000 r-xp 0 1:2 3 /c\n1000-3000 r-xp 0 1:2 3 /a\n2000-4000 r-xp 0 1:2 3 /b\n");
	(void)state;
	assert_int_equal(m.count, 2);
	assert_string_equal(m.items[0].path, "/a");
	assert_string_equal(m.items[1].path, "/c");
	maps_free(&m);
}

/* Every prefix of good text is parsed without a word too much being read. */
static void survives_every_cut(void **state)
{
	static const char text[] =
		"1000-2000 r-xp 00000000 fe:02 7 /usr/bin/x (deleted)\n3000-4000 rw-p 0 0:0 0\n";
	(void)state;
	for (size_t size = 0; size < sizeof text; size++) {
		struct maps m;
		char *copy = malloc(size ? size : 1);
		memcpy(copy, text, size);
		assert_null(maps_parse(copy, size, &m));
		assert_true(m.count <= 2);
		maps_free(&m);
		free(copy);
	}
}

static void finds_itself(void **state)
{
	struct maps m;
	struct stat st;
	char exe[4096];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
	size_t found = 0;
	(void)state;
	assert_true(length > 0);
	exe[length] = '\0';
	assert_int_equal(stat(exe, &st), 0);
	assert_null(maps_read(getpid(), &m));
	for (size_t i = 0; i < m.count; i++) {
		uint64_t here = (uint64_t)(uintptr_t)finds_itself;
		if (i)
			assert_true(m.items[i].start >= m.items[i - 1].end);
		if (here < m.items[i].start || here >= m.items[i].end)
			continue;
		assert_true(m.items[i].executable);
		assert_string_equal(m.items[i].path, exe);
		assert_int_equal(m.items[i].inode, st.st_ino);
		found++;
	}
	assert_int_equal(found, 1);
	maps_free(&m);
}

static void says_what_is_wrong(void **state)
{
	struct maps m;
	struct err *e = maps_read(0x3fffffff, &m);
	(void)state;
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "no such process: 1073741823"));
	assert_null(m.items);
	err_free(e);
}

static void finds_names_of_made_code(void **state)
{
	static const char text[] =
		"1000 100 first\n1100 80 LazyCompile:*f /a b.js:1\nnonsense\n1000 0 empty\n"
		"1000 40 replaced\nffffffffffffff00 200 wraps\n2000 10";
	struct jit *jit;
	(void)state;
	assert_null(jit_parse(text, sizeof text - 1, &jit));
	assert_string_equal(jit_find(jit, 0x1000)->name, "replaced");
	assert_string_equal(jit_find(jit, 0x103f)->name, "replaced");
	assert_string_equal(jit_find(jit, 0x1040)->name, "first");
	assert_string_equal(jit_find(jit, 0x1100)->name, "LazyCompile:*f /a b.js:1");
	assert_null(jit_find(jit, 0x1180));
	assert_null(jit_find(jit, 0xfff));
	assert_null(jit_find(jit, 0x2000));
	assert_null(jit_find(jit, UINT64_MAX));
	jit_close(jit);
}

/* Of a list that may be as large as somebody likes only what is asked for is kept, and only its end read. */
static void reads_what_is_wanted(void **state)
{
	const char *path = scratch("perf-1.map");
	const uint64_t addresses[] = {0x1000, 0x1050, 0x900000};
	size_t budget = 100000000;
	struct jit_wanted wanted = {addresses, 3, &budget};
	struct jit *jit;
	FILE *file = fopen(path, "w");
	(void)state;
	fputs("1000 100 first\n2000 10 other\nnonsense\n1000 40 replaced\n", file);
	for (int i = 0; i < 200000; i++)
		fprintf(file, "900000 10 turn %d\n", i);
	for (int i = 0; i < 100000; i++)
		fputs("x", file); /* no end of the line */
	fwrite("\0\0\n", 1, 3, file);
	fputs("900000 8 last\n1050 1", file);
	fclose(file);
	assert_null(jit_open_file_wanted(path, geteuid(), &wanted, &jit));
	assert_string_equal(jit_find(jit, 0x900000)->name, "last");
	assert_null(jit_find(jit, 0x2000));
	assert_true(budget < 100000000 - 3000000);
	jit_close(jit);

	/* All that there is room for is of the end. */
	budget = 100;
	assert_null(jit_open_file_wanted(path, geteuid(), &wanted, &jit));
	assert_string_equal(jit_find(jit, 0x900000)->name, "last");
	assert_null(jit_find(jit, 0x1000));
	assert_int_equal(budget, 0);
	jit_close(jit);
	assert_null(jit_open_file_wanted(path, geteuid(), &wanted, &jit));
	assert_null(jit_find(jit, 0x900000));
	jit_close(jit);

	/* Where it is small all of it is there. */
	file = fopen(path, "w");
	fputs("1000 100 first\n1000 40 replaced\n", file);
	fclose(file);
	budget = 1000;
	assert_null(jit_open_file_wanted(path, geteuid(), &wanted, &jit));
	assert_string_equal(jit_find(jit, 0x1000)->name, "replaced");
	assert_string_equal(jit_find(jit, 0x1050)->name, "first");
	jit_close(jit);
	assert_null(jit_open_file_wanted(scratch("nowhere"), geteuid(), &wanted, &jit));
	assert_null(jit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_field),    cmocka_unit_test(reads_odd_paths),
		cmocka_unit_test(leaves_out_nonsense),  cmocka_unit_test(sorts_and_drops_overlaps),
		cmocka_unit_test(survives_every_cut),   cmocka_unit_test(finds_itself),
		cmocka_unit_test(says_what_is_wrong),   cmocka_unit_test(finds_names_of_made_code),
		cmocka_unit_test(reads_what_is_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
