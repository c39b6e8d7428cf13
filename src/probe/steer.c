/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"

#define REQUEST_MAX 65536u
#define WORDS_MAX 1024u
#define SERVED_AT_ONCE 8
#define ANSWER_MAX (256u << 20)
#define HEAR_SECONDS 1     /* for a request; the table waits meanwhile */
#define SEND_SECONDS 5     /* for each part of an answer */
#define ANSWER_SECONDS 600 /* to add functions of a large program may take a while */

struct steer {
	int directory;
	struct {
		int fd;
		char name[32];
	} * doors;
	size_t count;
};

/* The directory is open: its path may be longer than an address can be, and may change. */
static void set_address(int directory, const char *name, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", directory, name);
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

static void set_patience(int fd, int option, time_t seconds)
{
	const struct timeval limit = {.tv_sec = seconds};
	setsockopt(fd, SOL_SOCKET, option, &limit, sizeof limit);
}

/* Returns a connection; -1: nobody listens. */
static int call(int directory, const char *name)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	set_address(directory, name, &address);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- the side that answers ---- */

static int listen_at(int directory, const char *name)
{
	struct sockaddr_un address;
	int other = call(directory, name);
	if (other >= 0) { /* another one is at work there */
		close(other);
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlinkat(directory, name, 0); /* of one that was killed */
	set_address(directory, name, &address);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof address) &&
	    !fchmodat(directory, name, 0600, 0) && !listen(fd, SERVED_AT_ONCE))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

struct err *steer_open(const pid_t *pids, size_t count, struct steer **out)
{
	struct steer *c = calloc(1, sizeof *c);
	*out = c;
	if (!c)
		return err_new("out of memory");
	c->directory = -1;
	c->doors = calloc(count ? count : 1, sizeof *c->doors);
	struct err *e = c->doors ? cachedir_open("probes", &c->directory)
				 : err_new("out of memory");
	for (size_t i = 0; !e && i < count; i++) {
		snprintf(c->doors[c->count].name, sizeof c->doors->name, "%d", (int)pids[i]);
		c->doors[c->count].fd = listen_at(c->directory, c->doors[c->count].name);
		c->count += c->doors[c->count].fd >= 0;
	}
	return e;
}

/* Reads the whole request. Returns the number of its words, which point into `in`. */
static size_t hear(int fd, struct buf *in, char **words)
{
	char bytes[4096];
	ssize_t got;
	size_t count = 0;
	while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0 && in->size < REQUEST_MAX)
		buf_append(in, bytes, (size_t)got);
	if (got || !in->size || in->data[in->size - 1])
		return 0;
	for (char *at = in->data; at < in->data + in->size && count < WORDS_MAX;
	     at += strlen(at) + 1)
		words[count++] = at;
	return count;
}

static bool say(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		size -= (size_t)sent;
	}
	return true;
}

static void answer(int fd, steer_handler *handler, void *context)
{
	struct buf in = {0}, out = {0};
	char **words = calloc(WORDS_MAX, sizeof *words);
	set_patience(fd, SO_RCVTIMEO, HEAR_SECONDS);
	set_patience(fd, SO_SNDTIMEO, SEND_SECONDS);
	size_t count = words ? hear(fd, &in, words) : 0;
	if (count) {
		char status = (char)('0' + handler(context, words, count, &out));
		if (say(fd, &status, 1))
			say(fd, buf_text(&out), out.size);
	}
	free(words);
	buf_free(&in);
	buf_free(&out);
}

void steer_serve(struct steer *c, steer_handler *handler, void *context)
{
	for (size_t i = 0; c && i < c->count; i++)
		for (int left = SERVED_AT_ONCE; left--;) {
			int fd = accept4(c->doors[i].fd, NULL, NULL, SOCK_CLOEXEC);
			if (fd < 0)
				break;
			if (is_ours(fd))
				answer(fd, handler, context);
			close(fd);
		}
}

void steer_close(struct steer *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++) {
		unlinkat(c->directory, c->doors[i].name, 0);
		close(c->doors[i].fd);
	}
	if (c->directory >= 0)
		close(c->directory);
	free(c->doors);
	free(c);
}

/* ---- the side that asks ---- */

static struct err *converse(int fd, char *const *words, size_t count, struct buf *out, int *status)
{
	char bytes[4096], first = 0;
	ssize_t got = 0;
	set_patience(fd, SO_RCVTIMEO, ANSWER_SECONDS);
	for (size_t i = 0; i < count; i++)
		if (!say(fd, words[i], strlen(words[i]) + 1))
			return err_errno("the other culprit probe does not listen");
	shutdown(fd, SHUT_WR);
	if (recv(fd, &first, 1, 0) != 1 || first < '0' || first > '9')
		return err_new("the other culprit probe has ended, or does not answer");
	while (out->size < ANSWER_MAX && (got = recv(fd, bytes, sizeof bytes, 0)) > 0)
		buf_append(out, bytes, (size_t)got);
	*status = first - '0';
	return got ? err_new("the other culprit probe did not answer to the end") : NULL;
}

struct err *steer_ask(pid_t pid, char *const *words, size_t count, struct buf *out, int *status)
{
	int directory;
	char name[32];
	struct err *e = cachedir_open("probes", &directory);
	if (e)
		return e;
	snprintf(name, sizeof name, "%d", (int)pid);
	int fd = call(directory, name);
	close(directory);
	if (fd < 0)
		return err_new(
			"nobody probes process %d, or another user does; to start, culprit probe -p "
			"%d FUNCTION...",
			(int)pid, (int)pid);
	e = is_ours(fd) ? converse(fd, words, count, out, status)
			: err_new("another user probes process %d", (int)pid);
	close(fd);
	return e;
}
