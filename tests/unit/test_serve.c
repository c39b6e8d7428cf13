/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the page: what a pass is good for, and for whom. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "view/serve.h"

#define NOBODY 65534
#define LONG_MS 100000

static void find_nothing(void *context, const char *name, struct serve_answer *out)
{
	(void)context;
	(void)name;
	(void)out;
}

static int connect_to(unsigned port, bool mapped)
{
	struct sockaddr_in plain = {.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 both = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &both.sin6_addr), 1);
	int fd = socket(mapped ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	if (fd < 0 && mapped)
		return -1;
	assert_true(fd >= 0);
	int failed = mapped ? connect(fd, (struct sockaddr *)&both, sizeof both)
			    : connect(fd, (struct sockaddr *)&plain, sizeof plain);
	assert_int_equal(failed, 0);
	return fd;
}

/* Asks for an address of the server as this user; the answer is valid until the next one. A process of its own asks, so that
   the server can answer meanwhile. */
static const char *ask(struct serve *s, const char *url, uid_t user, bool mapped)
{
	static char answer[4096];
	char path[128], request[256];
	unsigned port;
	int ends[2], status;
	ssize_t size = 0;
	assert_int_equal(sscanf(url, "http://127.0.0.1:%u%127s", &port, path), 2);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (!child) {
		if (user != geteuid() && setuid(user))
			_exit(1);
		int fd = connect_to(port, mapped);
		snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			 path, port);
		if (fd < 0 || write(fd, request, strlen(request)) < 0 ||
		    (size = read(fd, answer, sizeof answer)) < 0 ||
		    write(ends[1], answer, (size_t)size) != size)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	while (!waitpid(child, &status, WNOHANG)) {
		struct pollfd wait = {serve_fd(s), POLLIN, 0};
		poll(&wait, 1, 10);
		serve_handle(s, find_nothing, NULL);
	}
	size = read(ends[0], answer, sizeof answer - 1);
	answer[size > 0 ? size : 0] = 0;
	close(ends[0]);
	assert_int_equal(status, 0);
	return answer;
}

static bool leads_on(struct serve *s, const char *answer)
{
	char wanted[128];
	snprintf(wanted, sizeof wanted, "\r\nLocation: /%s\r\n",
		 strchr(serve_url(s) + strlen("http://"), '/') + 1);
	return !strncmp(answer, "HTTP/1.1 303 ", 13) && strstr(answer, wanted);
}

static bool is_refused(const char *answer)
{
	return !strncmp(answer, "HTTP/1.1 404 ", 13) && !strstr(answer, "Location");
}

static bool speaks_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void pass_leads_on(void **state)
{
	struct serve *s;
	(void)state;
	assert_null(serve_open(0, &s));
	const char *pass = serve_pass(s, LONG_MS), *token = strrchr(pass, '/') + 1;
	assert_int_equal(strlen(token), 32);
	assert_null(strstr(serve_url(s), token));
	/* More than once: some programs look first. */
	assert_true(leads_on(s, ask(s, pass, geteuid(), false)));
	assert_true(leads_on(s, ask(s, pass, geteuid(), false)));
	if (speaks_ipv6())
		assert_true(leads_on(s, ask(s, pass, geteuid(), true)));
	/* Another one is worth nothing, nor is this one where the token belongs. */
	char other[128];
	snprintf(other, sizeof other, "%s", pass);
	other[strlen(other) - 1] ^= 1;
	assert_true(is_refused(ask(s, other, geteuid(), false)));
	snprintf(other, sizeof other, "%s/", pass);
	assert_true(is_refused(ask(s, other, geteuid(), false)));
	serve_close(s);
}

static void pass_ends(void **state)
{
	struct serve *s;
	(void)state;
	assert_null(serve_open(0, &s));
	const char *pass = serve_pass(s, 20);
	usleep(30000);
	assert_true(is_refused(ask(s, pass, geteuid(), false)));
	serve_close(s);
}

/* Who reads it in a list of processes is another user. */
static void pass_is_ours_alone(void **state)
{
	struct serve *s;
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_null(serve_open(0, &s));
	const char *pass = serve_pass(s, LONG_MS);
	assert_true(is_refused(ask(s, pass, NOBODY, false)));
	if (speaks_ipv6())
		assert_true(is_refused(ask(s, pass, NOBODY, true)));
	assert_true(leads_on(s, ask(s, pass, geteuid(), false)));
	serve_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pass_leads_on),
		cmocka_unit_test(pass_ends),
		cmocka_unit_test(pass_is_ours_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
