/* SPDX-License-Identifier: Apache-2.0 */
/* The way to the server and back. Nothing waits without an end: each step has its time, all of them
   together have one, what moves has a least pace, and a descriptor can end all of it. */
#include "fleet/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define PORTION 65536

static struct err *stopped(void)
{
	return err_new("told to stop");
}

/* Until `fd` is ready for `events`, but not longer than `ms` or beyond `until_ms`. */
static struct err *await(int fd, short events, int ms, int64_t until_ms, int stop)
{
	struct pollfd both[] = {{.fd = fd, .events = events}, {.fd = stop, .events = POLLIN}};
	int64_t left = until_ms - (int64_t)now_ms();
	bool last = left < ms;
	int n;
	do {
		n = poll(both, 2, !last ? ms : left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno("cannot wait");
	if (both[1].revents)
		return stopped();
	if (n && left > 0)
		return NULL;
	return last ? err_new("it takes too long") : err_new("no answer in %.3g s", ms / 1e3);
}

/* How fast bytes go or come: HTTP_PACE_BYTES in each window, which begins anew when they are there. */
struct pace {
	int window_ms;
	int64_t since_ms;
	size_t moved;
};

static struct pace pace_begin(int window_ms)
{
	return (struct pace){.window_ms = window_ms, .since_ms = (int64_t)now_ms()};
}

static struct err *pace_keep(struct pace *p, size_t moved)
{
	int64_t now = (int64_t)now_ms();
	p->moved += moved;
	if (p->moved >= HTTP_PACE_BYTES) {
		p->since_ms = now;
		p->moved = 0;
	}
	return now - p->since_ms <= p->window_ms
		       ? NULL
		       : err_new("it is too slow: less than %d KB in %.3g s", HTTP_PACE_BYTES >> 10,
				 p->window_ms / 1e3);
}

/* ---- connecting ---- */

static struct err *connect_to(const struct addrinfo *to, const struct http_request *r, int *out)
{
	int problem = 0;
	socklen_t size = sizeof problem;
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno("cannot make a socket");
	struct err *e = NULL;
	if (connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS)
		e = err_errno("cannot connect");
	if (!e)
		e = await(fd, POLLOUT, r->connect_ms, INT64_MAX, r->stop);
	if (!e && getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size))
		e = err_errno("cannot connect");
	if (!e && problem) {
		errno = problem;
		e = err_errno("cannot connect");
	}
	if (e)
		close(fd);
	else
		*out = fd;
	return e;
}

/* The addresses of a name one after another, until one answers. */
static struct err *dial(const struct http_request *r, int *out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int failed = getaddrinfo(r->host, r->port, &hints, &list);
	if (failed == EAI_SYSTEM)
		return err_errno("cannot find its address");
	if (failed)
		return err_new("cannot find its address: %s", gai_strerror(failed));
	struct err *e = err_new("it has no address");
	for (const struct addrinfo *a = list; a && e; a = a->ai_next) {
		err_free(e);
		e = connect_to(a, r, out);
	}
	freeaddrinfo(list);
	return e;
}

/* ---- talking ---- */

static struct err *send_all(int fd, const struct http_request *r, int64_t until_ms,
			    const char *bytes, size_t size)
{
	struct pace pace = pace_begin(r->silent_ms);
	while (size) {
		ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return err_errno("cannot send");
		if (n < 0) {
			struct err *e = await(fd, POLLOUT, r->silent_ms, until_ms, r->stop);
			if (e)
				return e;
			continue;
		}
		bytes += n;
		size -= (size_t)n;
		struct err *e = size ? pace_keep(&pace, (size_t)n) : NULL;
		if (e)
			return e;
	}
	return NULL;
}

/* A server may think for as long as it may be silent; when it speaks, it is to speak on. */
static struct err *receive(int fd, const struct http_request *r, int silent_ms, int64_t until_ms,
			   struct http_answer *a)
{
	char bytes[PORTION];
	struct pace pace = {0};
	while (a->state != HTTP_WHOLE) {
		struct err *e = await(fd, POLLIN, silent_ms, until_ms, r->stop);
		if (e)
			return e;
		ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_errno("cannot receive");
		e = n ? http_feed(a, bytes, (size_t)n) : http_end(a);
		if (e || !n || a->state == HTTP_WHOLE)
			return e;
		silent_ms = silent_ms < HTTP_PACE_MS ? silent_ms : HTTP_PACE_MS;
		if (!pace.since_ms)
			pace = pace_begin(silent_ms);
		e = pace_keep(&pace, (size_t)n);
		if (e)
			return e;
	}
	return NULL;
}

struct err *http_talk(int fd, const struct http_request *r, struct http_answer *a)
{
	struct buf head = {0};
	int64_t until = (int64_t)now_ms() + r->total_ms;
	bool numbers = strchr(r->host, ':') != NULL; /* of IPv6 */
	buf_printf(&head,
		   "%s %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n"
		   "Content-Length: %zu\r\n%s\r\n",
		   r->method, r->target, numbers ? "[" : "", r->host, numbers ? "]" : "", r->port,
		   r->body_size, r->headers);
	struct err *e = head.failed ? err_new("out of memory")
				    : send_all(fd, r, until, head.data, head.size);
	if (head.data) /* there may be a password in it */
		explicit_bzero(head.data, head.size);
	buf_free(&head);
	if (e)
		return e;
	struct err *sent = send_all(fd, r, until, r->body, r->body_size);
	if (!sent)
		return receive(fd, r, r->silent_ms, until, a);
	/* A server that refuses need not read all, and its answer says more than a broken pipe. */
	e = receive(fd, r, 0, until, a);
	bool answered = !e && a->status >= 400;
	err_free(answered ? sent : e);
	return answered ? NULL : sent;
}

struct err *http_ask(const struct http_request *r, struct http_answer *a)
{
	int fd = -1;
	struct err *e = dial(r, &fd);
	if (e)
		return e;
	e = http_talk(fd, r, a);
	close(fd);
	return e;
}

void http_escape(struct buf *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";
	for (; *text; text++) {
		if (strchr(plain, *text))
			buf_append(out, text, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}
