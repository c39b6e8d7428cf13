/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "annotate/sources.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

static struct sources *open_sources(const struct sources_options *options)
{
	struct sources *s;
	assert_null(sources_open(options, &s));
	return s;
}

static void put(const char *name, const char *text)
{
	scratch_write(name, text, strlen(text));
}

/* The first line of what is found for a path; "" where nothing is. */
static const char *first_line(struct sources *s, const char *path)
{
	const struct source_text *t = sources_find(s, path);
	size_t size = 0;
	const char *line = t ? source_line(t, 1, &size) : NULL;
	return line ? scratch_format("%.*s", (int)size, line) : "";
}

static const char *notes_of(const struct sources *s)
{
	struct buf out = {0};
	sources_notes(s, &out);
	const char *text = scratch_format("%s", buf_text(&out));
	buf_free(&out);
	return text;
}

static void lines_are_as_in_the_file(void **state)
{
	struct sources *s = open_sources(&(struct sources_options){0});
	size_t size;
	(void)state;
	put("a.c", "one\r\n\nthree\n\tlast");
	put("empty.c", "");
	const struct source_text *t = sources_find(s, scratch("a.c"));
	assert_non_null(t);
	assert_int_equal(source_line_count(t), 4);
	assert_memory_equal(source_line(t, 1, &size), "one", 3);
	assert_int_equal(size, 3);
	assert_non_null(source_line(t, 2, &size));
	assert_int_equal(size, 0);
	assert_memory_equal(source_line(t, 4, &size), "\tlast", 5);
	assert_int_equal(size, 5);
	assert_null(source_line(t, 0, &size));
	assert_null(source_line(t, 5, &size));
	assert_null(source_line(t, UINT32_MAX, &size));
	t = sources_find(s, scratch("empty.c"));
	assert_non_null(t);
	assert_int_equal(source_line_count(t), 0);
	assert_string_equal(notes_of(s), "");
	assert_null(sources_find(s, NULL));
	assert_null(sources_find(s, ""));
	sources_close(s);
	sources_close(NULL);
}

static void maps_come_first_then_the_path_then_folders(void **state)
{
	(void)state;
	assert_true(scratch_run("mkdir -p build/src mine/src tree/src/deep tree/deep"));
	put("build/src/x.c", "as it is");
	put("mine/src/x.c", "mapped");
	put("tree/src/x.c", "by its tail");
	put("tree/src/deep/y.c", "long tail");
	put("tree/deep/y.c", "shorter tail");
	put("tree/z.c", "name only");
	const char *maps[] = {scratch_format("%s=%s", scratch("bui"), scratch("mine")),
			      scratch_format("%s=%s", scratch("build"), scratch("mine"))};
	const char *dirs[] = {scratch("nowhere"), scratch("tree")};
	struct sources *s = open_sources(&(struct sources_options){.maps = maps, .map_count = 2});
	assert_string_equal(first_line(s, scratch("build/src/x.c")), "mapped");
	sources_close(s);

	/* A map that leads nowhere, and half of a name, are no maps. */
	s = open_sources(&(struct sources_options){.maps = maps, .map_count = 1});
	assert_string_equal(first_line(s, scratch("build/src/x.c")), "as it is");
	sources_close(s);

	s = open_sources(&(struct sources_options){.dirs = dirs, .dir_count = 2});
	assert_string_equal(first_line(s, scratch("build/src/x.c")), "as it is");
	assert_string_equal(first_line(s, "/gone/src/x.c"), "by its tail");
	assert_string_equal(first_line(s, "/gone/src/deep/y.c"), "long tail");
	assert_string_equal(first_line(s, "/gone/other/deep/y.c"), "shorter tail");
	assert_string_equal(first_line(s, "./../src/./deep/y.c"), "long tail");
	assert_string_equal(first_line(s, "/gone/z.c"), "name only");
	assert_string_equal(first_line(s, "/gone/none.c"), "");
	sources_close(s);

	/* Relative paths, as -ffile-prefix-map leaves them. */
	const char *relative[] = {scratch_format(".=%s", scratch("mine"))};
	s = open_sources(&(struct sources_options){.maps = relative, .map_count = 1});
	assert_string_equal(first_line(s, "./src/x.c"), "mapped");
	sources_close(s);
	s = open_sources(&(struct sources_options){.directory = scratch("build")});
	assert_string_equal(first_line(s, "./src/x.c"), "as it is");
	assert_string_equal(first_line(s, "src/x.c"), "as it is");
	sources_close(s);
}

static void what_is_no_source_is_not_read(void **state)
{
	struct sources *s = open_sources(&(struct sources_options){0});
	(void)state;
	assert_true(scratch_run("mkdir folder; mkfifo pipe; ln -s loop loop"));
	assert_true(scratch_run("truncate -s 100M huge.c; printf 'ELF\\0x' >binary.c"));
	assert_null(sources_find(s, scratch("folder")));
	assert_null(sources_find(s, scratch("pipe")));
	assert_null(sources_find(s, scratch("loop")));
	assert_null(sources_find(s, scratch("huge.c")));
	assert_null(sources_find(s, scratch("binary.c")));
	assert_null(sources_find(s, "/dev/zero"));
	assert_null(sources_find(s, "/dev/tty"));
	assert_null(sources_find(s, "/gone/a.c"));
	assert_null(sources_find(s, "/gone/a.c"));
	assert_null(sources_glance(s, "/gone/a.c"));
	assert_null(sources_glance(s, "/gone/unrelated.c"));
	assert_null(sources_glance(s, "/dev/null"));
	assert_null(sources_find(s, "/gone/\033[2J.c"));
	const char *notes = notes_of(s);
	assert_non_null(strstr(notes, "no source: /gone/a.c, /gone/?[2J.c: --source-dir"));
	assert_null(strstr(strstr(notes, "/gone/a.c") + 1, "/gone/a.c"));
	assert_null(strstr(notes, "unrelated"));
	assert_null(strstr(notes, "/dev/null"));
	assert_non_null(strstr(notes, "/folder is no regular file\n"));
	assert_non_null(strstr(notes, "/pipe is no regular file\n"));
	assert_non_null(strstr(notes, "/loop cannot be opened\n"));
	assert_non_null(strstr(notes, "/huge.c is too large\n"));
	assert_non_null(strstr(notes, "/binary.c is no text\n"));
	assert_non_null(strstr(notes, "/dev/zero is no regular file\n"));
	sources_close(s);
}

static void newer_files_are_said_once(void **state)
{
	(void)state;
	put("program", "");
	put("old.c", "old");
	put("new.c", "new");
	assert_true(scratch_run("touch -d 2001-01-01 old.c; touch -d 2002-01-01 program"));
	struct sources *s = open_sources(&(struct sources_options){.binary = scratch("program")});
	assert_string_equal(first_line(s, scratch("old.c")), "old");
	assert_string_equal(notes_of(s), "");
	assert_string_equal(first_line(s, scratch("new.c")), "new");
	assert_string_equal(first_line(s, scratch("new.c")), "new");
	const char *notes = notes_of(s);
	assert_non_null(strstr(notes, "/new.c: newer than the binary"));
	assert_ptr_equal(strchr(notes, '\n'), notes + strlen(notes) - 1);
	sources_close(s);
}

static const char *clean(const char *text, size_t columns, size_t taken)
{
	struct buf out = {0};
	assert_int_equal(source_put_clean(&out, text, strlen(text), columns), taken);
	const char *kept = scratch_format("%s", buf_text(&out));
	buf_free(&out);
	return kept;
}

static void text_cannot_harm_a_terminal(void **state)
{
	(void)state;
	assert_string_equal(clean("\tx\ty", 0, 17), "        x       y");
	assert_string_equal(clean("a\033[2Jb\177\b", 0, 8), "a?[2Jb??");
	assert_string_equal(clean("größe ∑", 0, 7), "größe ∑");
	assert_string_equal(clean("\xff\xc3.\xe2\x88", 0, 5), "??.??");
	assert_string_equal(clean("\xc2\x9b"
				  "31m",
				  0, 4),
			    "?31m"); /* 8-bit CSI */
	assert_string_equal(clean("a\xe2\x80\xae"
				  "b",
				  0, 3),
			    "a?b");                                        /* turns around */
	assert_string_equal(clean("\xc0\xaf\xed\xa0\x80", 0, 5), "?????"); /* not UTF-8 */
	assert_string_equal(clean("abcdef", 6, 6), "abcdef");
	assert_string_equal(clean("abcdefg", 6, 6), "abcde…");
	assert_string_equal(clean("größen", 5, 5), "größ…");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_as_in_the_file),
		cmocka_unit_test(maps_come_first_then_the_path_then_folders),
		cmocka_unit_test(what_is_no_source_is_not_read),
		cmocka_unit_test(newer_files_are_said_once),
		cmocka_unit_test(text_cannot_harm_a_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
