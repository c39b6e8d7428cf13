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
#include "fleet/numbering.h"
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

/* ---- answers ---- */

/* In pieces of this size. */
static struct err *feed(struct http_answer *a, const char *bytes, size_t size, size_t piece)
{
	struct err *e = NULL;
	for (size_t at = 0; !e && at < size; at += piece)
		e = http_feed(a, bytes + at, size - at < piece ? size - at : piece);
	return e ? e : http_end(a);
}

static void whole_answers(void **state)
{
	static const struct {
		const char *bytes;
		int status;
		const char *body;
	} all[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"},
		{"HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nhello and more", 200, "hello"},
		{"HTTP/1.0 404 No\r\n\r\nuntil it ends", 404, "until it ends"},
		{"HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n"
		 "5\r\nhello\r\nA;x=y\r\n, you all!\r\n0\r\nTrailer: x\r\n\r\n",
		 200, "hello, you all!"},
		{"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, "ok"},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200,
		 ""},
		{"HTTP/1.1 204 None\r\n\r\n", 204, ""},
		{"HTTP/1.1 500 X\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n!", 500, "!"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (size_t piece = 1; piece < 80; piece += 7) {
			struct http_answer a = {.body_max = 1000};
			good(feed(&a, all[i].bytes, strlen(all[i].bytes), piece));
			assert_int_equal(a.status, all[i].status);
			assert_string_equal(buf_text(&a.body), all[i].body);
			http_answer_free(&a);
		}
}

static void bad_answers(void **state)
{
	static const struct {
		const char *bytes, *why;
	} all[] = {
		{"", "without an answer"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "cut short"},
		{"HTTP/1.1 200 OK\r\nContent-Le", "cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		 "cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", "cut short"},
		{"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP server"},
		{"HTTP/2 200\r\n", "no HTTP server"},
		{"HTTP/1.1 2x0 OK\r\n", "no HTTP server"},
		{"HTTP/1.1 2000 OK\r\n", "no HTTP server"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "no HTTP"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "no HTTP server"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "no HTTP"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", "cut short"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "encoded in a way"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "no HTTP server"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "fffffffffffffffff\r\n",
		 "no HTTP server"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
		 "no HTTP server"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (size_t piece = 1; piece < 80; piece += 7) {
			struct http_answer a = {.body_max = 1000};
			bad(feed(&a, all[i].bytes, strlen(all[i].bytes), piece), all[i].why);
			http_answer_free(&a);
		}
}

static void endless_answers(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n"};
	char zeroes[4096] = {0}, letters[4096];
	(void)state;
	memset(letters, 'x', sizeof letters);
	for (size_t i = 0; i < 3; i++) {
		struct http_answer a = {.body_max = 10000};
		struct err *e = http_feed(&a, heads[i], strlen(heads[i]));
		for (int n = 0; !e && n < 10; n++)
			e = http_feed(&a, zeroes, sizeof zeroes);
		bad(e, "longer than");
		assert_true(a.body.size <= 10000);
		http_answer_free(&a);
	}
	struct http_answer a = {.body_max = 10000}, b = {.body_max = 10000};
	struct err *e = http_feed(&a, "HTTP/1.1 200 OK\r\nX: ", 20);
	for (int n = 0; !e && n < 100; n++)
		e = http_feed(&a, letters, sizeof letters);
	bad(e, "head of the answer is too long");
	assert_true(a.line.size <= HTTP_HEAD_MAX);
	http_answer_free(&a);
	e = http_feed(&b, "HTTP/1.1 200 OK\r\n", 17);
	for (int n = 0; !e && n < 10000; n++)
		e = http_feed(&b, "X: y\r\n", 6);
	bad(e, "head of the answer is too long");
	http_answer_free(&b);
}

/* Why it refuses is said at the beginning. */
static void endless_refusals(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 500 No\r\n\r\n", "HTTP/1.1 500 No\r\nContent-Length: 1000000000\r\n\r\n",
		"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n3b9aca00\r\n"};
	char words[4096];
	(void)state;
	memset(words, 'x', sizeof words);
	for (size_t i = 0; i < 3; i++) {
		struct http_answer a = {.body_max = SERVER_ROWS_MAX};
		good(http_feed(&a, heads[i], strlen(heads[i])));
		for (int n = 0; n < 100; n++)
			good(http_feed(&a, words, sizeof words));
		good(http_end(&a));
		assert_int_equal(a.state, HTTP_WHOLE);
		assert_int_equal(a.body.size, HTTP_REFUSAL_MAX);
		http_answer_free(&a);
	}
}

/* Long lines around next to no body. */
static void endless_pieces(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct http_answer a = {.body_max = 1u << 20}, b = {.body_max = 1u << 20};
	char piece[4096];
	(void)state;
	int size = snprintf(piece, sizeof piece, "1;%03999d\r\nx\r\n", 0);
	struct err *e = http_feed(&a, head, strlen(head));
	for (int n = 0; !e && n < 1000; n++)
		e = http_feed(&a, piece, (size_t)size);
	bad(e, "head of the answer is too long");
	http_answer_free(&a);
	/* Small pieces alone are fine. */
	good(http_feed(&b, head, strlen(head)));
	for (int n = 0; n < 100000; n++)
		good(http_feed(&b, "1\r\nx\r\n", 6));
	good(http_feed(&b, "0\r\n\r\n", 5));
	assert_int_equal(b.state, HTTP_WHOLE);
	assert_int_equal(b.body.size, 100000);
	http_answer_free(&b);
}

/* ---- talking, with a thread at the other end ---- */

struct other_end {
	int fd;
	size_t reads; /* bytes of the request that it reads before it answers */
	const char *answer;
	bool slow; /* a byte now and then */
	char got[4096];
};

static void *answer_it(void *context)
{
	struct other_end *o = context;
	size_t at = 0;
	ssize_t n = 1;
	while (at < o->reads && n > 0) {
		char bytes[65536];
		n = read(o->fd, bytes, sizeof bytes);
		for (ssize_t i = 0; i < n; i++, at++)
			if (at < sizeof o->got - 1)
				o->got[at] = bytes[i];
	}
	for (const char *c = o->answer; c && *c; c += o->slow ? 1 : strlen(c)) {
		if (o->slow)
			usleep(20000);
		if (send(o->fd, c, o->slow ? 1 : strlen(c), MSG_NOSIGNAL) < 0)
			break;
	}
	if (o->answer)
		shutdown(o->fd, SHUT_RDWR);
	return NULL;
}

static struct err *talk(struct other_end *o, struct http_request *r, struct http_answer *a)
{
	pthread_t thread;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	o->fd = ends[1];
	assert_int_equal(pthread_create(&thread, NULL, answer_it, o), 0);
	struct err *e = http_talk(ends[0], r, a);
	close(ends[0]);
	pthread_join(thread, NULL);
	close(ends[1]);
	return e;
}

static void talking(void **state)
{
	struct http_request r = {.method = "POST",
				 .host = "::1",
				 .port = "8123",
				 .target = "/?query=x",
				 .headers = "X-Who: me\r\n",
				 .body = "rows",
				 .body_size = 4,
				 .silent_ms = 5000,
				 .total_ms = 50000,
				 .stop = -1};
	static const char wanted[] = "POST /?query=x HTTP/1.1\r\nHost: [::1]:8123\r\n"
				     "Connection: close\r\nContent-Length: 4\r\nX-Who: me\r\n"
				     "\r\nrows";
	struct other_end o = {.reads = sizeof wanted - 1,
			      .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
	struct http_answer a = {.body_max = 100};
	(void)state;
	good(talk(&o, &r, &a));
	assert_string_equal(o.got, wanted);
	assert_string_equal(buf_text(&a.body), "ok");
	http_answer_free(&a);
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
	http_answer_free(&a);

	/* It ends the connection instead. */
	o = (struct other_end){.reads = 100, .answer = ""};
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "cannot send");
	http_answer_free(&a);

	/* It says nothing: to a short request, and to one that it does not even read. */
	r.silent_ms = 50;
	for (size_t size = 4; size <= much; size *= much / 4) {
		r.body_size = size;
		o = (struct other_end){.reads = 10};
		a = (struct http_answer){.body_max = 100};
		bad(talk(&o, &r, &a), "no answer in 0.05 s");
		http_answer_free(&a);
	}
	/* It never comes to an end. */
	r.body_size = 4;
	r.silent_ms = 5000;
	r.total_ms = 200;
	o = (struct other_end){.reads = 10,
			       .slow = true,
			       .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "it takes too long");
	http_answer_free(&a);
	/* Something always comes, and next to nothing. */
	r.silent_ms = 200;
	r.total_ms = 50000;
	a = (struct http_answer){.body_max = 100};
	bad(talk(&o, &r, &a), "it is too slow: less than 32 KB in 0.2 s");
	http_answer_free(&a);
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
	struct http_request r = {.method = "POST",
				 .host = "x",
				 .port = "1",
				 .target = "/",
				 .headers = "",
				 .silent_ms = 100000,
				 .total_ms = 100000};
	struct other_end o = {.reads = 10};
	struct http_answer a = {.body_max = 100};
	int stop[2];
	(void)state;
	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "", 1), 1);
	r.stop = stop[0];
	bad(talk(&o, &r, &a), "told to stop");
	http_answer_free(&a);
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
	struct numbering n = {0};
	(void)state;
	assert_int_equal(numbering_find(&n, 1, 2, 3), 0);
	for (uint32_t i = 1; i < 5000; i++) {
		uint32_t *at = numbering_at(&n, i % 7, i, i / 3);
		assert_int_equal(*at, 0);
		*at = i;
	}
	for (uint32_t i = 1; i < 5000; i++)
		assert_int_equal(numbering_find(&n, i % 7, i, i / 3), i);
	assert_int_equal(numbering_find(&n, 9, 1, 0), 0);
	numbering_free(&n);
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
	bad(server_open("https://a", NULL, &s), "https is not spoken here");
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
	good(server_open("http://a", scratch("who"), &s));
	server_close(s);
	assert_int_equal(chmod(scratch("who"), 0640), 0);
	bad(server_open("http://a", scratch("who"), &s), "others may read or write it");
	bad(server_open("http://a", scratch("nobody"), &s), "cannot open");
	bad(server_open("http://a", "/dev/null", &s), "not a regular file");
	scratch_write("who", "secret-word\n", 12);
	assert_int_equal(chmod(scratch("who"), 0600), 0);
	struct err *e = server_open("http://a", scratch("who"), &s);
	assert_null(strstr(err_text(e), "secret-word"));
	bad(e, "not of the form");
	setenv("CULPRIT_DB_PASSWORD", "a\r\nX: y", 1);
	bad(server_open("http://a", NULL, &s), "control character");
	unsetenv("CULPRIT_DB_PASSWORD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_answers),   cmocka_unit_test(bad_answers),
		cmocka_unit_test(endless_answers), cmocka_unit_test(endless_refusals),
		cmocka_unit_test(endless_pieces),  cmocka_unit_test(talking),
		cmocka_unit_test(sizes),           cmocka_unit_test(told_to_stop),
		cmocka_unit_test(escapes),         cmocka_unit_test(rows),
		cmocka_unit_test(lengths),         cmocka_unit_test(numbers),
		cmocka_unit_test(addresses),       cmocka_unit_test(credentials),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
