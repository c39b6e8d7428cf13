/* SPDX-License-Identifier: Apache-2.0 */
#include "view/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "view/peer.h"
#include "view/request.h"

#define CLIENTS_MAX 32
#define TOKEN_BYTES 16
#define TOKEN_SIZE (2 * TOKEN_BYTES)
#define SECOND 1000000000ull
#define HEAD_TIME (10 * SECOND)  /* for a whole request, and between two of them */
#define STILL_TIME (20 * SECOND) /* in which something of an answer must be taken */
#define SEND_TIME (600 * SECOND) /* for a whole answer */
#define ACCEPTED_AT_ONCE 64

struct serve_body {
	unsigned references;
	struct buf bytes;
};

struct client {
	int fd;                      /* -1: free */
	uint64_t since_ns, moved_ns; /* of what it does now: when it began, when it went on last */
	char in[REQUEST_MAX + 1];
	size_t in_size;
	bool sending, close;
	char head[1024];
	size_t head_size, sent;  /* sent: of head and body */
	struct serve_body *body; /* NULL: none */
};

struct serve {
	int listener, epoll;
	uint16_t port;
	char token[TOKEN_SIZE + 1], url[64 + TOKEN_SIZE];
	char pass[TOKEN_SIZE + 1], pass_url[64 + TOKEN_SIZE];
	uint64_t pass_until_ns; /* 0: there is none */
	struct client clients[CLIENTS_MAX];
};

/* ---- bodies ---- */

struct serve_body *serve_body_new(struct buf *bytes)
{
	struct serve_body *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	*b = (struct serve_body){1, *bytes};
	*bytes = (struct buf){0};
	return b;
}

void serve_body_drop(struct serve_body *b)
{
	if (!b || --b->references)
		return;
	buf_free(&b->bytes);
	free(b);
}

/* ---- opening ---- */

static bool make_token(char token[TOKEN_SIZE + 1])
{
	unsigned char random[TOKEN_BYTES];
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return false;
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	return true;
}

static struct err *listen_at(struct serve *s, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t size = sizeof address;
	const int one = 1;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0)
		return err_errno("cannot make a socket");
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(s->listener, (struct sockaddr *)&address, sizeof address) ||
	    listen(s->listener, CLIENTS_MAX) ||
	    getsockname(s->listener, (struct sockaddr *)&address, &size))
		return port ? err_errno("cannot listen at 127.0.0.1:%u: without --port a free one "
					"is found",
					port)
			    : err_errno("cannot listen at 127.0.0.1");
	s->port = ntohs(address.sin_port);
	return NULL;
}

static bool watch(struct serve *s, int fd, int operation, uint32_t events, struct client *c)
{
	struct epoll_event event = {.events = events, .data.ptr = c};
	return !epoll_ctl(s->epoll, operation, fd, &event);
}

struct err *serve_open(uint16_t port, struct serve **out)
{
	struct serve *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->listener = -1;
	for (int i = 0; i < CLIENTS_MAX; i++)
		s->clients[i].fd = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	struct err *e = s->epoll >= 0 && make_token(s->token) ? listen_at(s, port)
							      : err_errno("cannot start to serve");
	if (!e && !watch(s, s->listener, EPOLL_CTL_ADD, EPOLLIN, NULL))
		e = err_errno("cannot start to serve");
	if (e) {
		serve_close(s);
		return e;
	}
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/%s/", s->port, s->token);
	*out = s;
	return NULL;
}

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	serve_body_drop(c->body);
	c->fd = -1;
	c->body = NULL;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	for (int i = 0; i < CLIENTS_MAX; i++)
		hang_up(&s->clients[i]);
	if (s->listener >= 0)
		close(s->listener);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

const char *serve_url(const struct serve *s)
{
	return s->url;
}

const char *serve_pass(struct serve *s, uint64_t ms)
{
	if (!make_token(s->pass))
		return "";
	s->pass_until_ns = now_ns() + ms * (SECOND / 1000);
	snprintf(s->pass_url, sizeof s->pass_url, "http://127.0.0.1:%u/%s", s->port, s->pass);
	return s->pass_url;
}

int serve_fd(const struct serve *s)
{
	return s->epoll;
}

/* ---- who may have what ---- */

/* Takes as long for a wrong token as for the right one. */
static bool is_token(const char *token, const char *text)
{
	unsigned difference = 0;
	for (size_t i = 0; i < TOKEN_SIZE; i++)
		difference |= (unsigned char)text[i] ^ (unsigned char)token[i];
	return !difference;
}

static bool is_host(const struct serve *s, const char *host, size_t size)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char wanted[32];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = (size_t)snprintf(wanted, sizeof wanted, "%s:%u", names[i], s->port);
		if (length == size && !memcmp(host, wanted, size))
			return true;
	}
	return false;
}

/* The name behind "/TOKEN/"; NULL: it is none of ours. */
static const char *name_of(const struct serve *s, const struct request *r, char *name, size_t size)
{
	if (r->path_size < TOKEN_SIZE + 2 || !is_token(s->token, r->path + 1) ||
	    r->path[TOKEN_SIZE + 1] != '/' || !is_host(s, r->host, r->host_size))
		return NULL;
	size_t length = r->path_size - TOKEN_SIZE - 2;
	if (length >= size)
		return NULL;
	memcpy(name, r->path + TOKEN_SIZE + 2, length);
	name[length] = 0;
	return name;
}

/* "/PASS", in time and by our own user. */
static bool has_pass(const struct serve *s, const struct client *c, const struct request *r)
{
	return s->pass_until_ns > now_ns() && r->path_size == TOKEN_SIZE + 1 &&
	       is_token(s->pass, r->path + 1) && is_host(s, r->host, r->host_size) &&
	       peer_is_ours(c->fd);
}

/* ---- answers ---- */

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 303:
		return "See Other";
	case 304:
		return "Not Modified";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	default:
		return "HTTP Version Not Supported";
	}
}

/* `fields`: lines that only this answer has. */
static void begin_answer(struct client *c, int status, const struct serve_answer *a,
			 const char *fields)
{
	char etag[48] = "", state[64] = "";
	struct serve_body *body = status == 200 ? a->body : NULL;
	if (a && a->version)
		snprintf(etag, sizeof etag, "ETag: \"%" PRIu64 "\"\r\n", a->version);
	if (a && a->state)
		snprintf(state, sizeof state, "Culprit-State: %s\r\n", a->state);
	c->close |= status >= 400;
	int size = snprintf(
		c->head, sizeof c->head,
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		"Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
		"Cross-Origin-Opener-Policy: same-origin\r\nX-Frame-Options: DENY\r\n%s%s\r\n",
		status, reason_of(status), body ? a->type : "text/plain",
		body ? body->bytes.size : 0, etag, state, fields,
		c->close ? "Connection: close\r\n" : "");
	c->head_size = (size_t)size;
	c->body = body;
	if (body)
		body->references++;
	c->sent = 0;
	c->sending = true;
	c->since_ns = c->moved_ns = now_ns();
}

static bool has_already(const struct request *r, uint64_t version)
{
	char etag[32];
	int size = snprintf(etag, sizeof etag, "\"%" PRIu64 "\"", version);
	return version && r->match_size == (size_t)size && !memcmp(r->match, etag, (size_t)size);
}

static void answer(struct serve *s, struct client *c, const struct request *r, serve_find *find,
		   void *context)
{
	char name[64], where[32 + TOKEN_SIZE];
	struct serve_answer a = {0};
	c->close = r->close;
	if (has_pass(s, c, r)) {
		snprintf(where, sizeof where, "Location: /%s/\r\n", s->token);
		begin_answer(c, 303, NULL, where);
		return;
	}
	if (name_of(s, r, name, sizeof name))
		find(context, name, &a);
	int status = !a.body ? 404 : has_already(r, a.version) ? 304 : 200;
	begin_answer(c, status, status == 404 ? NULL : &a, "");
}

/* ---- clients ---- */

/* What is to be sent next; 0: nothing is left. */
static size_t rest(const struct client *c, const char **from)
{
	size_t body = c->body ? c->body->bytes.size : 0, at = c->sent - c->head_size;
	if (c->sent < c->head_size) {
		*from = c->head + c->sent;
		return c->head_size - c->sent;
	}
	*from = body > at ? c->body->bytes.data + at : NULL;
	return body > at ? body - at : 0;
}

/* False where the client is done with. */
static bool send_more(struct client *c)
{
	const char *from;
	size_t size;
	while ((size = rest(c, &from))) {
		ssize_t part = send(c->fd, from, size, MSG_NOSIGNAL);
		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return errno == EAGAIN;
		c->sent += (size_t)part;
		c->moved_ns = now_ns();
	}
	serve_body_drop(c->body);
	c->body = NULL;
	c->sending = false;
	c->since_ns = now_ns();
	return !c->close;
}

/* Answers the requests that are there, one after the other. False where the client is done with. */
static bool answer_all(struct serve *s, struct client *c, serve_find *find, void *context)
{
	while (!c->sending) {
		struct request r;
		int status = request_parse(c->in, c->in_size, &r);
		if (!status)
			return true;
		if (status == 200) {
			answer(s, c, &r, find, context);
			c->in_size -= r.size;
			memmove(c->in, c->in + r.size, c->in_size);
		} else {
			c->in_size = 0;
			begin_answer(c, status, NULL, status == 405 ? "Allow: GET\r\n" : "");
		}
		if (!send_more(c))
			return false;
	}
	return true;
}

/* Reading stops while an answer is on its way: who sends on and on fills its own buffers. */
static bool attend(struct serve *s, struct client *c, uint32_t events, serve_find *find,
		   void *context)
{
	if (events & (EPOLLHUP | EPOLLERR))
		return false;
	if (c->sending && !send_more(c))
		return false;
	if (!answer_all(s, c, find, context)) /* what came with the request before */
		return false;
	while (!c->sending) {
		ssize_t part = recv(c->fd, c->in + c->in_size, REQUEST_MAX - c->in_size, 0);
		if (part < 0 && errno == EINTR)
			continue;
		if (part == 0 || (part < 0 && errno != EAGAIN))
			return false;
		if (part < 0)
			break;
		c->in_size += (size_t)part;
		if (!answer_all(s, c, find, context))
			return false;
	}
	return watch(s, c->fd, EPOLL_CTL_MOD, c->sending ? EPOLLOUT : EPOLLIN, c);
}

/* A free place, or that of one that has said nothing for the longest time. */
static struct client *find_place(struct serve *s)
{
	struct client *oldest = NULL;
	for (struct client *c = s->clients; c < s->clients + CLIENTS_MAX; c++) {
		if (c->fd < 0)
			return c;
		if (!c->sending && (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (oldest)
		hang_up(oldest);
	return oldest;
}

static void accept_some(struct serve *s)
{
	for (int left = ACCEPTED_AT_ONCE; left--;) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct client *c = find_place(s);
		if (!c || !watch(s, fd, EPOLL_CTL_ADD, EPOLLIN, c)) {
			close(fd);
			continue;
		}
		c->fd = fd;
		c->in_size = 0;
		c->sending = c->close = false;
		c->since_ns = now_ns();
	}
}

static void drop_slow(struct serve *s)
{
	uint64_t now = now_ns();
	for (struct client *c = s->clients; c < s->clients + CLIENTS_MAX; c++) {
		bool slow = c->sending ? now - c->moved_ns > STILL_TIME ||
						 now - c->since_ns > SEND_TIME
				       : now - c->since_ns > HEAD_TIME;
		if (c->fd >= 0 && slow)
			hang_up(c);
	}
}

/* New ones last: they may take the place of one that is still in the list. */
void serve_handle(struct serve *s, serve_find *find, void *context)
{
	struct epoll_event events[CLIENTS_MAX + 1];
	int count = epoll_wait(s->epoll, events, CLIENTS_MAX + 1, 0);
	bool knocked = false;
	for (int i = 0; i < count; i++) {
		struct client *c = events[i].data.ptr;
		if (!c)
			knocked = true;
		else if (c->fd >= 0 && !attend(s, c, events[i].events, find, context))
			hang_up(c);
	}
	if (knocked)
		accept_some(s);
	drop_slow(s);
}
