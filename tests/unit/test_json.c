/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"
#include "base/json.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACED "\xef\xbf\xbd"

static void assert_written(struct buf *b, const char *wanted)
{
	assert_string_equal(buf_text(b), wanted);
	buf_free(b);
}

static void assert_quoted(const char *text, const char *wanted)
{
	struct buf b = {0};
	struct json j = json_to_buf(&b);
	json_string(&j, text);
	assert_written(&b, wanted);
}

static void nests_with_commas(void **state)
{
	struct buf b = {0};
	struct json j = json_to_buf(&b);
	(void)state;
	json_begin_object(&j);
	json_key(&j, "empty");
	json_begin_array(&j);
	json_end_array(&j);
	json_key(&j, "list");
	json_begin_array(&j);
	json_u64(&j, 1);
	json_begin_object(&j);
	json_end_object(&j);
	json_begin_array(&j);
	json_null(&j);
	json_end_array(&j);
	json_bool(&j, true);
	json_bool(&j, false);
	json_end_array(&j);
	json_key(&j, "last");
	json_string(&j, "x");
	json_end_object(&j);
	json_newline(&j);
	json_u64(&j, 2);
	assert_written(&b, "{\"empty\":[],\"list\":[1,{},[null],true,false],\"last\":\"x\"}\n2");
}

static void escapes(void **state)
{
	(void)state;
	assert_quoted("", "\"\"");
	assert_quoted(NULL, "null");
	assert_quoted("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	assert_quoted("\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"");
	/* what a terminal takes for a command, and what turns the text around */
	assert_quoted("\xc2\x9b\xe2\x80\xae", "\"\\u009b\\u202e\"");
}

static void keeps_utf8(void **state)
{
	(void)state;
	assert_quoted("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		      "\"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	assert_quoted("\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"");
}

static void replaces_what_is_not_utf8(void **state)
{
	(void)state;
	assert_quoted("\xff", "\"" REPLACED "\"");
	assert_quoted("a\x80z", "\"a" REPLACED "z\"");
	assert_quoted("\xc3", "\"" REPLACED "\"");
	assert_quoted("\xe2\x82", "\"" REPLACED REPLACED "\"");
	assert_quoted("\xc0\xaf", "\"" REPLACED REPLACED "\"");
	assert_quoted("\xed\xa0\x80", "\"" REPLACED REPLACED REPLACED "\"");
	assert_quoted("\xe0\x80\xaf", "\"" REPLACED REPLACED REPLACED "\"");
	assert_quoted("\xf4\x90\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"");
	assert_quoted("\xf5\"", "\"" REPLACED "\\\"\"");
}

static void numbers_are_exact(void **state)
{
	struct buf b = {0};
	struct json j = json_to_buf(&b);
	(void)state;
	json_begin_array(&j);
	json_u64(&j, UINT64_MAX);
	json_i64(&j, INT64_MIN);
	json_address(&j, 0xffffffff81000000u);
	json_double(&j, 0.1);
	json_double(&j, 1.0 / 3);
	json_double(&j, -2);
	json_double(&j, NAN);
	json_double(&j, INFINITY);
	json_end_array(&j);
	assert_written(&b, "[18446744073709551615,-9223372036854775808,\"0xffffffff81000000\",0.1,"
			   "0.33333333333333331,-2,null,null]");
}

static void writes_to_streams(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct json j = json_to_file(stream);
	(void)state;
	json_begin_object(&j);
	json_key(&j, "a\n");
	json_u64(&j, 1);
	json_end_object(&j);
	fclose(stream);
	assert_string_equal(text, "{\"a\\n\":1}");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nests_with_commas), cmocka_unit_test(escapes),
		cmocka_unit_test(keeps_utf8),        cmocka_unit_test(replaces_what_is_not_utf8),
		cmocka_unit_test(numbers_are_exact), cmocka_unit_test(writes_to_streams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
