/* SPDX-License-Identifier: Apache-2.0 */
/* What formats are made of: protocol buffers, gzip, clean text, tables of strings, files. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "analyze/strings.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/gzip.h"
#include "export/outfile.h"
#include "export/proto.h"
#include "export/text.h"
#include "scratch.h"

static void is(struct buf *b, const void *bytes, size_t size)
{
	assert_false(b->failed);
	assert_int_equal(b->size, size);
	assert_memory_equal(b->data, bytes, size);
	buf_clear(b);
}
#define IS(b, text) is(b, text, sizeof text - 1)

/* The bytes are those of the format's own description. */
static void test_numbers(void **state)
{
	struct buf b = {0};
	proto_number(&b, 1, 150);
	IS(&b, "\x08\x96\x01");
	proto_number(&b, 1, 0);
	assert_int_equal(b.size, 0);
	proto_number(&b, 2, 127);
	IS(&b, "\x10\x7f");
	proto_number(&b, 2, 128);
	IS(&b, "\x10\x80\x01");
	proto_number(&b, 15, 1);
	IS(&b, "\x78\x01");
	proto_number(&b, 16, 1);
	IS(&b, "\x80\x01\x01");
	proto_number(&b, PROTO_FIELD_MAX, 1);
	IS(&b, "\xf8\xff\xff\xff\x0f\x01");
	proto_number(&b, 3, UINT64_MAX);
	IS(&b, "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	proto_number(&b, 3, (uint64_t)INT64_MIN);
	IS(&b, "\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
	buf_free(&b);
	(void)state;
}

static void test_bytes(void **state)
{
	struct buf b = {0};
	char *large = calloc(1, 300);
	assert_non_null(large);
	memset(large, 'x', 299);
	proto_text(&b, 2, "testing");
	IS(&b, "\x12\x07testing");
	proto_text(&b, 6, "");
	IS(&b, "\x32\x00");
	proto_bytes(&b, 3, "\x08\x96\x01", 3);
	IS(&b, "\x1a\x03\x08\x96\x01");
	proto_bytes(&b, 3, NULL, 0);
	IS(&b, "\x1a\x00");
	proto_text(&b, 1, large);
	assert_int_equal(b.size, 3 + 299);
	assert_memory_equal(b.data, "\x0a\xab\x02xx", 5);
	buf_free(&b);
	free(large);
	(void)state;
}

static void test_packed(void **state)
{
	const uint64_t values[] = {3, 270, 86942, 0};
	struct buf b = {0};
	proto_packed(&b, 6, values, 3);
	IS(&b, "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
	proto_packed(&b, 6, values + 3, 1);
	IS(&b, "\x32\x01\x00");
	proto_packed(&b, 6, values, 0);
	assert_int_equal(b.size, 0);
	buf_free(&b);
	(void)state;
}

static void cleans(const char *text, const char *wanted)
{
	struct buf b = {0};
	text_clean(text, ";", ':', &b);
	assert_string_equal(buf_text(&b), wanted);
	buf_free(&b);
}

static void test_clean(void **state)
{
	cleans("", "");
	cleans("solve(int)", "solve(int)");
	cleans("a;b;;c", "a:b::c");
	cleans("a\nb\r\tc\x1b[31m\x7f", "a?b??c?[31m?");
	cleans("\xc2\x85 \xe2\x80\xa8 \xe2\x80\xa9", "? ? ?"); /* other line ends */
	cleans("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
	       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	cleans("\x80 \xff \xc3",
	       "\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd"); /* no beginning, no end */
	cleans("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");   /* too long a form */
	cleans("\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	cleans("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
	cleans("\xf4\x90\x80\x80",
	       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* beyond the last */
	cleans("\xf0\x9f\x98", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	(void)state;
}

static void test_strings(void **state)
{
	struct strings s = {0};
	char text[16];
	assert_int_equal(text_number(&s, ""), 0);
	assert_int_equal(text_number(&s, "main"), 1);
	assert_int_equal(text_number(&s, NULL), 0);
	assert_int_equal(text_number(&s, "\n"), 2);
	assert_int_equal(text_number(&s, "\r"), 2); /* the same when they are clean */
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 5000; i++) {
			snprintf(text, sizeof text, "f%u", i);
			assert_int_equal(text_number(&s, text), 3 + i);
		}
	assert_int_equal(s.count, 5003);
	assert_string_equal(strings_get(&s, 5002), "f4999");
	assert_false(s.failed);
	strings_free(&s);
	(void)state;
}

/* What goes in comes out of zlib's own reader, whatever the pieces were. */
static void test_gzip(void **state)
{
	size_t size = 300000, got;
	unsigned char *bytes = malloc(size), *back = malloc(size + 1);
	const char *path = scratch("x.gz");
	FILE *f = fopen(path, "w");
	struct gzip *g;
	gzFile in;
	assert_true(bytes && back && f);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * i >> 7 ^ (i * 2654435761u >> 24));
	assert_null(gzip_open(f, &g));
	gzip_put(g, bytes, 1);
	gzip_put(g, bytes + 1, 0);
	gzip_put(g, bytes + 1, 200000);
	gzip_put(g, bytes + 200001, size - 200001);
	assert_null(gzip_close(g));
	assert_int_equal(fclose(f), 0);
	in = gzopen(path, "r");
	assert_non_null(in);
	got = (size_t)gzread(in, back, (unsigned)size + 1);
	assert_int_equal(got, size);
	assert_memory_equal(back, bytes, size);
	assert_int_equal(gzclose(in), Z_OK);
	assert_null(gzip_close(NULL));
	free(bytes);
	free(back);
	(void)state;
}

static size_t files_like(const char *pattern)
{
	glob_t found;
	size_t count = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return count;
}

static void contains(const char *path, const char *wanted)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	assert_string_equal(text, wanted);
}

static struct err *write_file(const char *path, const char *text, size_t times, struct err *e)
{
	struct outfile o;
	struct err *opened = outfile_open(&o, path);
	if (opened)
		return opened;
	while (times--)
		fputs(text, o.file);
	return outfile_close(&o, e);
}

static void fails(struct err *e, const char *words)
{
	assert_non_null(e);
	if (!strstr(err_text(e), words))
		fail_msg("'%s' does not say '%s'", err_text(e), words);
	err_free(e);
}

static void test_file(void **state)
{
	const char *path = scratch("out.x");
	const char *link = scratch("link.x");
	const char *all = scratch("*.x*");
	assert_null(write_file(path, "old", 1, NULL));
	contains(path, "old");
	assert_null(write_file(path, "new", 2, NULL));
	contains(path, "newnew");
	assert_int_equal(symlink("out.x", link), 0);
	assert_null(write_file(link, "linked", 1, NULL)); /* what it leads to is written */
	contains(path, "linked");
	assert_int_equal(files_like(all), 2);
	fails(write_file(path, "half", 1, err_new("no more")), "no more");
	contains(path, "linked");
	assert_int_equal(files_like(all), 2);
	fails(write_file(scratch(""), "x", 1, NULL), "is a directory");
	fails(write_file(scratch("none/x"), "x", 1, NULL), "No such file");
	assert_null(write_file("/dev/null", "x", 1, NULL));
	(void)state;
}

/* No room: an error, no signal; the old file stays and nothing else. */
static void test_full(void **state)
{
	const char *path = scratch("full.y");
	const char *all = scratch("*.y*");
	struct rlimit before, small;
	assert_null(write_file(path, "old", 1, NULL));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){1 << 16, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct err *e = write_file(path, "0123456789", 1 << 18, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fails(e, strerror(EFBIG));
	contains(path, "old");
	assert_int_equal(files_like(all), 1);
	if (!access("/dev/full", W_OK))
		fails(write_file("/dev/full", "x", 1, NULL), strerror(ENOSPC));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_packed),  cmocka_unit_test(test_clean),
		cmocka_unit_test(test_strings), cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_file),    cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
