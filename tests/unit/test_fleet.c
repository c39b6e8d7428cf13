/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to a server for many hosts and what comes back: HTTP, RowBinary, addresses. */
#include "scratch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "fleet/http.h"
#include "fleet/numbers.h"
#include "fleet/rowbinary.h"
#include "fleet/server.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void bad(struct err *e, const char *why)
{
	if (!e || !strstr(err_text(e), why))
		fail_msg("not '%s' but '%s'", why, e ? err_text(e) : "no error");
	assert_null(strchr(err_text(e), '\n'));
	err_free(e);
}

/* ---- one question, with a thread that answers ---- */

struct other_end {
	int listener;
	size_t reads; /* bytes of the request that it reads before it answers */
	const char *answer;
	size_t size;    /* of the answer; 0: it is a text */
	const char *on; /* what comes after it, again and again, until nobody wants it */
	size_t on_size;
	bool slow, mute; /* its body comes a byte now and then; nothing, until the other hangs up */
	char got[4096];
};

static bool send_on(int fd, const char *bytes, size_t size)
{
	for (ssize_t n; size; bytes += n, size -= (size_t)n)
		if ((n = send(fd, bytes, size, MSG_NOSIGNAL)) <= 0)
			return false;
	return true;
}

static void *answer_it(void *context)
{
	struct other_end *o = context;
	int fd = accept(o->listener, NULL, NULL);
	char bytes[65536];
	ssize_t n = 1;
	for (size_t at = 0; at < o->reads && n > 0;) {
		n = read(fd, bytes, sizeof bytes);
		for (ssize_t i = 0; i < n; i++, at++)
			if (at < sizeof o->got - 1)
				o->got[at] = bytes[i];
	}
	while (o->mute && read(fd, bytes, sizeof bytes) > 0)
		;
	size_t size = o->size ? o->size : o->answer ? strlen(o->answer) : 0;
	const char *body = o->slow ? strstr(o->answer, "\r\n\r\n") : NULL;
	for (size_t at = 0, part; at < size; at += part) {
		part = !o->slow ? size : at ? 1 : (size_t)(body + 4 - o->answer);
		if (at)
			usleep(20000);
		if (!send_on(fd, o->answer + at, part))
			break;
	}
	while (o->on && send_on(fd, o->on, o->on_size))
		;
	shutdown(fd, SHUT_WR);
	while (size && read(fd, bytes, sizeof bytes) > 0) /* to close before would be a reset */
		;
	close(fd);
	return NULL;
}

static struct err *talk(struct other_end *o, struct http_request *r, struct http_answer *a)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof at;
	char url[64];
	pthread_t thread;
	o->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(o->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(o->listener, 1), 0);
	assert_int_equal(getsockname(o->listener, (struct sockaddr *)&at, &length), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/?query=x", ntohs(at.sin_port));
	r->url = url;
	assert_int_equal(pthread_create(&thread, NULL, answer_it, o), 0);
	struct err *e = http_ask(r, a);
	pthread_join(thread, NULL);
	close(o->listener);
	r->url = NULL;
	return e;
}

static struct http_request question(void)
{
	return (struct http_request){.headers = {"X-Who: me"},
				     .body = "rows",
				     .body_size = 4,
				     .connect_ms = 5000,
				     .silent_ms = 5000,
				     .total_ms = 50000,
				     .stop = -1};
}

static void whole_answers(void **state)
{
	static const struct {
		const char *bytes;
		int status;
		const char *body;
	} all[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"},
		{"HTTP/1.0 404 No\r\n\r\nuntil it ends", 404, "until it ends"},
		{"HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n"
		 "5\r\nhello\r\nA;x=y\r\n, you all!\r\n0\r\nTrailer: x\r\n\r\n",
		 200, "hello, you all!"},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200,
		 ""},
		{"HTTP/1.1 204 None\r\n\r\n", 204, ""},
		/* Where it sends us to is not where we go. */
		{"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 1\r\n\r\n!",
		 302, "!"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct other_end o = {.reads = 100, .answer = all[i].bytes};
		struct http_request r = question();
		struct http_answer a = {.body_max = 1000};
		good(talk(&o, &r, &a));
		assert_int_equal(a.status, all[i].status);
		assert_string_equal(buf_text(&a.body), all[i].body);
		buf_free(&a.body);
	}
}

static void bad_answers(void **state)
{
	static const struct {
		const char *bytes, *why;
	} all[] = {
		{"", "without an answer"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ""},
		{"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP server"},
		{"HTTP/1.1 2x0 OK\r\n\r\n", ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", ""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct other_end o = {.reads = 100, .answer = all[i].bytes};
		struct http_request r = question();
		struct http_answer a = {.body_max = 1000};
		bad(talk(&o, &r, &a), all[i].why);
		buf_free(&a.body);
	}
}

/* Bodies, heads and lines without an end. */
static void endless_answers(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
		"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n"};
	char letters[4096];
	(void)state;
	memset(letters, 'x', sizeof letters);
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		struct other_end o = {.reads = 100,
				      .answer = heads[i],
				      .on = i < 4 ? letters : "X: y\r\n",
				      .on_size = i < 4 ? sizeof letters : 6};
		struct http_request r = question();
		struct http_answer a = {.body_max = 10000};
		bad(talk(&o, &r, &a), i < 3   ? "longer than the 10000 bytes"
				      : i < 4 ? ""
					      : "head of the answer is too long");
		assert_true(a.body.size <= 10000);
		buf_free(&a.body);
	}
}

/* Why it refuses is said at the beginning. What comes after that for ever ends by its time. */
static void endless_refusals(void **state)
{
	char words[4096];
	struct other_end o = {.reads = 100,
			      .answer = "HTTP/1.1 500 No\r\n\r\n",
			      .on = words,
			      .on_size = sizeof words};
	struct http_request r = question();
	struct http_answer a = {.body_max = SERVER_ROWS_MAX};
	(void)state;
	memset(words, 'x', sizeof words);
	r.total_ms = 300;
	bad(talk(&o, &r, &a), "it takes too long");
	assert_int_equal(a.body.size, HTTP_REFUSAL_MAX);
	buf_free(&a.body);
}

static void talking(void **state)
{
	struct http_request r = question();
	struct other_end o = {.reads = 100,
			      .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
	struct http_answer a = {.body_max = 100};
	(void)state;
	good(talk(&o, &r, &a));
	assert_non_null(strstr(o.got, "POST /?query=x HTTP/1.1\r\n"));
	assert_non_null(strstr(o.got, "\r\nX-Who: me\r\n"));
	assert_non_null(strstr(o.got, "\r\nContent-Length: 4\r\n"));
	assert_null(strstr(o.got, "Expect"));
	assert_string_equal(buf_text(&a.body), "ok");
	buf_free(&a.body);
	/* It refuses before it has read all: that is what is told. */
	size_t much = 8u << 20;
	char *body = calloc(1, much);
	r.body = body;
	r.body_size = much;
	o = (struct other_end){.reads = 100,
			       .answer = "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"};
	a = (struct http_answer){.body_max = 100};
	good(talk(&o, &r, &a));
	assert_int_equal(a.status, 401);
	buf_free(&a.body);

	/* It ends the connection instead. */
	o = (struct other_end){.reads = 100, .answer = ""};
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "");
	buf_free(&a.body);

	/* It says nothing. */
	r.silent_ms = 200;
	r.body_size = 4;
	o = (struct other_end){.reads = 100, .mute = true};
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "no answer in 0.2 s");
	buf_free(&a.body);
	/* It never comes to an end. */
	r.silent_ms = 5000;
	r.total_ms = 200;
	o = (struct other_end){.reads = 100,
			       .slow = true,
			       .answer = "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n"
					 "one two three four five six seven eight nine ten eleven"};
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "it takes too long");
	buf_free(&a.body);
	/* Something always comes, and next to nothing. */
	r.silent_ms = 200;
	r.total_ms = 50000;
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "it is too slow: less than 32 KB in 0.2 s");
	buf_free(&a.body);
	free(body);
}

/* A server whose answer is of this size. */
struct chatty {
	int listener;
	size_t size;
};

static void *chat(void *context)
{
	const struct chatty *c = context;
	char bytes[65536] = {0};
	int fd = accept(c->listener, NULL, NULL);
	size_t left = c->size, got = 0;
	ssize_t n = 1;
	/* All of it: to close before that would be a reset. */
	for (; n > 0 && !strstr(bytes, "SELECT 1"); got += n > 0 ? (size_t)n : 0)
		n = read(fd, bytes + got, sizeof bytes - 1 - got);
	dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", left);
	while (left && n > 0) {
		n = send(fd, bytes, left < sizeof bytes ? left : sizeof bytes, MSG_NOSIGNAL);
		left -= n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return NULL;
}

typedef struct err *asking(struct server *server, const char *sql, struct buf *answer);

static struct err *ask_chatty(size_t size, asking *ask, struct buf *answer)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct chatty c = {socket(AF_INET, SOCK_STREAM, 0), size};
	socklen_t length = sizeof at;
	struct server *s;
	pthread_t thread;
	char address[64];
	assert_int_equal(bind(c.listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(c.listener, 1), 0);
	assert_int_equal(getsockname(c.listener, (struct sockaddr *)&at, &length), 0);
	snprintf(address, sizeof address, "http://127.0.0.1:%u/x", ntohs(at.sin_port));
	good(server_open(address, NULL, &s));
	assert_int_equal(pthread_create(&thread, NULL, chat, &c), 0);
	struct err *e = ask(s, "SELECT 1", answer);
	pthread_join(thread, NULL);
	close(c.listener);
	server_close(s);
	return e;
}

/* Each question has answers of a size that fits it. */
static void sizes(void **state)
{
	struct buf answer = {0};
	(void)state;
	good(ask_chatty(SERVER_ANSWER_MAX, server_ask, &answer));
	assert_int_equal(answer.size, SERVER_ANSWER_MAX);
	bad(ask_chatty(SERVER_ANSWER_MAX + 1, server_ask, &answer), "longer than the 1 MB");
	good(ask_chatty(SERVER_ANSWER_MAX + 1, server_ask_rows, &answer));
	assert_int_equal(answer.size, SERVER_ANSWER_MAX + 1);
	bad(ask_chatty(SERVER_ROWS_MAX + 1, server_ask_rows, &answer), "longer than the 256 MB");
	buf_free(&answer);
}

static void told_to_stop(void **state)
{
	struct http_request r = question();
	struct other_end o = {.reads = 10, .mute = true};
	struct http_answer a = {.body_max = 100};
	int stop[2];
	(void)state;
	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "", 1), 1);
	r.stop = stop[0];
	bad(talk(&o, &r, &a), "told to stop");
	buf_free(&a.body);
	close(stop[0]);
	close(stop[1]);
}

static void escapes(void **state)
{
	struct buf b = {0};
	(void)state;
	http_escape(&b, "SELECT 'a&b' + \"\xc3\xa4\"\n%");
	assert_string_equal(buf_text(&b), "SELECT%20%27a%26b%27%20%2B%20%22%C3%A4%22%0A%25");
	buf_clear(&b);
	server_quote(&b, "it's a \\ \"\n");
	assert_string_equal(buf_text(&b), "'it\\'s a \\\\ \"\n'");
	buf_free(&b);
}

/* ---- rowBinary ---- */

static void rows(void **state)
{
	static const char odd[] = "a\tb\nc'd\"e\\f\x1b[31m\xff";
	struct profile *strings;
	struct buf b = {0};
	char *large = malloc(100001);
	(void)state;
	good(profile_new(&strings));
	memset(large, 'l', 100000);
	large[100000] = 0;
	rowbinary_put(&b, 0x1122, 2);
	rowbinary_put(&b, UINT64_MAX, 8);
	rowbinary_put_text(&b, odd);
	rowbinary_put_text(&b, "");
	rowbinary_put_text(&b, large);
	rowbinary_put(&b, 7, 1);
	assert_int_equal((unsigned char)b.data[0], 0x22);
	struct rowbinary r = rowbinary_read(&b);
	assert_int_equal(rowbinary_get(&r, 2), 0x1122);
	assert_int_equal(rowbinary_get(&r, 8), UINT64_MAX);
	assert_string_equal(rowbinary_text(&r, strings), odd);
	assert_string_equal(rowbinary_text(&r, strings), "");
	assert_int_equal(strlen(rowbinary_text(&r, strings)), ROWBINARY_TEXT_MAX);
	assert_true(rowbinary_more(&r));
	assert_int_equal(rowbinary_get(&r, 1), 7);
	assert_false(rowbinary_more(&r) || r.damaged);
	/* Cut anywhere, it is damaged, and stays so. */
	for (size_t size = 0; size < 40; size++) {
		struct buf part = {.data = b.data, .size = size};
		r = rowbinary_read(&part);
		rowbinary_get(&r, 2);
		rowbinary_get(&r, 8);
		rowbinary_text(&r, strings);
		rowbinary_text(&r, strings);
		assert_string_equal(rowbinary_text(&r, strings), "");
		assert_true(r.damaged);
		assert_int_equal(rowbinary_get(&r, 1), 0);
	}
	free(large);
	buf_free(&b);
	profile_free(strings);
}

static void lengths(void **state)
{
	static const unsigned char endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 0xff, 0xff, 1};
	struct buf b = {.data = (char *)endless, .size = sizeof endless}, c = {0};
	struct rowbinary r = rowbinary_read(&b);
	(void)state;
	assert_int_equal(rowbinary_length(&r, 1), 0);
	assert_true(r.damaged);
	/* More things than there are bytes for. */
	rowbinary_put_length(&c, 300);
	for (int i = 0; i < 300; i++)
		rowbinary_put(&c, 1, 1);
	r = rowbinary_read(&c);
	assert_int_equal(rowbinary_length(&r, 1), 300);
	r = rowbinary_read(&c);
	assert_int_equal(rowbinary_length(&r, 2), 0);
	assert_true(r.damaged);
	buf_free(&c);
}

static void numbers(void **state)
{
	struct numbers n = {0};
	(void)state;
	assert_int_equal(numbers_find(&n, 1, 2, 3), 0);
	for (uint32_t i = 1; i < 5000; i++) {
		uint32_t *at = numbers_at(&n, i % 7, i, i / 3);
		assert_int_equal(*at, 0);
		*at = i;
	}
	for (uint32_t i = 1; i < 5000; i++)
		assert_int_equal(numbers_find(&n, i % 7, i, i / 3), i);
	assert_int_equal(numbers_find(&n, 9, 1, 0), 0);
	numbers_free(&n);
}

/* ---- addresses and who we are ---- */

static void addresses(void **state)
{
	static const struct {
		const char *address, *name;
	} good_ones[] = {
		{"http://db", "http://db:8123/culprit"},
		{"http://db/", "http://db:8123/culprit"},
		{"http://db.example.org:80/fleet_1", "http://db.example.org:80/fleet_1"},
		{"HTTP://10.0.0.1:65535", "http://10.0.0.1:65535/culprit"},
		{"http://[fe80::1%eth0]:1/x", "http://[fe80::1%eth0]:1/x"},
		{"http://[::1]", "http://[::1]:8123/culprit"},
		{"https://db", "https://db:8443/culprit"},
	};
	static const char *const bad_ones[] = {
		"http://",        "http:///x",         "http://a:0",   "http://a:65536",
		"http://a:1x",    "http://a:",         "http://a/b/c", "http://a/b?c",
		"http://a b",     "http://a\r\nX: y/", "http://[::1",  "http://[::1]x/",
		"http://a/`x`.y", "ftp://a",           "http://a:-1",  "http://\xc3\xa4",
	};
	struct server *s;
	(void)state;
	for (size_t i = 0; i < sizeof good_ones / sizeof *good_ones; i++) {
		good(server_open(good_ones[i].address, NULL, &s));
		assert_string_equal(server_name(s), good_ones[i].name);
		server_close(s);
	}
	for (size_t i = 0; i < sizeof bad_ones / sizeof *bad_ones; i++)
		bad(server_open(bad_ones[i], NULL, &s), "http://HOST:PORT/DATABASE");
	struct err *e = server_open("http://me:hidden@a/", NULL, &s);
	assert_null(strstr(err_text(e), "hidden"));
	bad(e, "do not belong into an address");
	assert_true(server_is_address("http://a") && server_is_address("https://a"));
	assert_false(server_is_address("/var/http://a") || server_is_address("http:"));
}

static void credentials(void **state)
{
	struct server *s;
	(void)state;
	scratch_write("who", "# us\n\nuser = me\r\n password=a = b # c \n", 37);
	assert_int_equal(chmod(scratch("who"), 0600), 0);
	good(server_open("http://a", &(struct server_trust){.credentials = scratch("who")}, &s));
	server_close(s);
	assert_int_equal(chmod(scratch("who"), 0640), 0);
	bad(server_open("http://a", &(struct server_trust){.credentials = scratch("who")}, &s),
	    "others may read or write it");
	bad(server_open("http://a", &(struct server_trust){.credentials = scratch("nobody")}, &s),
	    "cannot open");
	bad(server_open("http://a", &(struct server_trust){.credentials = "/dev/null"}, &s),
	    "not a regular file");
	scratch_write("who", "secret-word\n", 12);
	assert_int_equal(chmod(scratch("who"), 0600), 0);
	struct err *e = server_open("http://a",
				    &(struct server_trust){.credentials = scratch("who")}, &s);
	assert_null(strstr(err_text(e), "secret-word"));
	bad(e, "not of the form");
	setenv("CULPRIT_DB_PASSWORD", "a\r\nX: y", 1);
	bad(server_open("http://a", NULL, &s), "control character");
	unsetenv("CULPRIT_DB_PASSWORD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_answers),
		cmocka_unit_test(bad_answers),
		cmocka_unit_test(endless_answers),
		cmocka_unit_test(endless_refusals),
		cmocka_unit_test(talking),
		cmocka_unit_test(sizes),
		cmocka_unit_test(told_to_stop),
		cmocka_unit_test(escapes),
		cmocka_unit_test(rows),
		cmocka_unit_test(lengths),
		cmocka_unit_test(numbers),
		cmocka_unit_test(addresses),
		cmocka_unit_test(credentials),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
