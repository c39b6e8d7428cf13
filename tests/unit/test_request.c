/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "view/request.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void check(const char *text, int wanted)
{
	struct request r;
	int status = request_parse(text, strlen(text), &r);
	if (status != wanted)
		fail_msg("%.60s: %d, not %d", text, status, wanted);
}

static bool is(const char *part, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !memcmp(part, wanted, size);
}

static void test_good(void **state)
{
	static const char text[] = "GET /a/b HTTP/1.1\r\nhOST:  x:1 \r\nIf-None-Match: \"7\"\r\n"
				   "Content-Length: 0\r\n\r\nGET";
	struct request r;
	(void)state;
	assert_int_equal(request_parse(text, sizeof text - 1, &r), 200);
	assert_true(is(r.path, r.path_size, "/a/b"));
	assert_true(is(r.host, r.host_size, "x:1"));
	assert_true(is(r.match, r.match_size, "\"7\""));
	assert_false(r.close);
	assert_int_equal(r.size, sizeof text - 1 - 3);
	assert_int_equal(request_parse("GET / HTTP/1.0\r\nHost: x\r\n\r\n", 27, &r), 200);
	assert_true(r.close);
	assert_int_equal(
		request_parse("GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n", 46, &r),
		200);
	assert_true(r.close);
	/* Every beginning of it waits for the rest. */
	for (size_t i = 0; i < sizeof text - 1 - 3; i++)
		assert_int_equal(request_parse(text, i, &r), 0);
}

static void test_refused(void **state)
{
	char text[10000];
	(void)state;
	check("\r\n", 400);
	check("GET / HTTP/1.1\r\n\r\n", 400);
	check("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400);
	check("GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400);
	check("GET /\001 HTTP/1.1\r\nHost: x\r\n\r\n", 400);
	check("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400);
	check("GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505);
	check("GET / HTTP/3.1\r\nHost: x\r\n\r\n", 505);
	check("POST / HTTP/1.1\r\nHost: x\r\n\r\n", 405);
	check("GETS / HTTP/1.1\r\nHost: x\r\n\r\n", 405);
	check("GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400);
	check("GET / HTTP/1.1\r\n: x\r\n\r\n", 400);
	check("GET / HTTP/1.1\r\nHost: x\001\r\n\r\n", 400);
	check("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", 400);
	check("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", 400);
	snprintf(text, sizeof text, "GET /%.*d", 3000, 0);
	check(text, 414);
	snprintf(text, sizeof text, "GET /%.*d HTTP/1.1\r\nHost: x\r\n\r\n", 3000, 0);
	check(text, 414);
	snprintf(text, sizeof text, "GET / HTTP/1.1\r\nX: %.*d", 9000, 0);
	check(text, 431);
	snprintf(text, sizeof text, "GET / HTTP/1.1\r\nX: %.*d\r\nHost: x\r\n\r\n", 9000, 0);
	check(text, 431);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
