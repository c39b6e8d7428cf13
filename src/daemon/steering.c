/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One is served at a time: who is slow is hung up on when the next one comes,
 * and nobody is waited for.
 */
#include "daemon/steering.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

#define QUESTION_MAX 64

struct steering {
	int epoll, listener, client;
	char *path;
	char question[QUESTION_MAX];
	size_t size;
};

/* Whether somebody answers there. */
static bool is_served(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served = fd >= 0 && (!connect(fd, (const struct sockaddr *)address, sizeof *address) ||
				  errno == EAGAIN);
	if (fd >= 0)
		close(fd);
	return served;
}

static void make_folder(const char *path)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
	if (slash && slash != folder) {
		*slash = 0;
		mkdir(folder, 0700);
	}
	free(folder);
}

static struct err *watch(const struct steering *c, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? err_errno("cannot watch descriptors")
		       : NULL;
}

static struct err *listen_there(struct steering *c)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	if (strlen(c->path) >= sizeof address.sun_path)
		return err_new("%s: the path is too long for a socket", c->path);
	strcpy(address.sun_path, c->path);
	make_folder(c->path);
	if (is_served(&address))
		return err_new("%s: another daemon answers there: name another one with --socket",
			       c->path);
	if (!lstat(c->path, &st) && S_ISSOCK(st.st_mode))
		unlink(c->path);
	c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	int failed = c->listener < 0 ||
		     bind(c->listener, (struct sockaddr *)&address, sizeof address) ||
		     listen(c->listener, 8);
	umask(mask);
	return failed ? err_errno("%s: cannot listen", c->path) : watch(c, c->listener);
}

struct err *steering_open(const char *path, struct steering **out)
{
	struct steering *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c)
		return err_new("out of memory");
	c->listener = c->client = -1;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->path = strdup(path);
	struct err *e = c->epoll < 0 || !c->path ? err_errno("cannot make a control socket")
						 : listen_there(c);
	if (e) {
		free(c->path); /* it may be another one's */
		c->path = NULL;
		steering_close(c);
		return e;
	}
	*out = c;
	return NULL;
}

static void hang_up(struct steering *c)
{
	if (c->client >= 0)
		close(c->client);
	c->client = -1;
	c->size = 0;
}

void steering_close(struct steering *c)
{
	if (!c)
		return;
	hang_up(c);
	if (c->path)
		unlink(c->path);
	if (c->listener >= 0)
		close(c->listener);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c->path);
	free(c);
}

int steering_fd(const struct steering *c)
{
	return c->epoll;
}

static bool may_ask(int fd)
{
	struct ucred who;
	socklen_t size = sizeof who;
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) &&
	       (who.uid == 0 || who.uid == geteuid());
}

static void accept_one(struct steering *c)
{
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	hang_up(c);
	c->client = fd;
	struct err *e = may_ask(fd) ? watch(c, fd) : err_new("not its owner");
	if (e)
		hang_up(c);
	err_free(e);
}

/* True where a line is complete. */
static bool hear(struct steering *c)
{
	ssize_t got = read(c->client, c->question + c->size, sizeof c->question - 1 - c->size);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got > 0)
		c->size += (size_t)got;
	c->question[c->size] = 0;
	char *end = strchr(c->question, '\n');
	if (end) {
		*end = 0;
		return true;
	}
	if (got <= 0 || c->size == sizeof c->question - 1)
		hang_up(c);
	return false;
}

const char *steering_question(struct steering *c)
{
	struct epoll_event event;
	while (epoll_wait(c->epoll, &event, 1, 0) == 1) {
		if (event.data.fd == c->listener)
			accept_one(c);
		else if (hear(c))
			return c->question;
	}
	return NULL;
}

void steering_answer(struct steering *c, const char *format, ...)
{
	char line[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof line - 1, format, arguments);
	va_end(arguments);
	line[strcspn(line, "\n")] = 0;
	strcat(line, "\n");
	(void)!send(c->client, line, strlen(line), MSG_NOSIGNAL);
	hang_up(c);
}
