/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"

#define HANDLED_AT_ONCE 256

struct err *loop_open(struct loop *loop)
{
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll < 0 ? err_errno("cannot make an event loop") : NULL;
}

void loop_close(struct loop *loop)
{
	if (loop->epoll >= 0)
		close(loop->epoll);
	loop->epoll = -1;
}

struct err *loop_watch(struct loop *loop, int fd, struct watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? err_errno("cannot watch descriptors")
		       : NULL;
}

/* One event at a time: handling one may free what the next one is about. */
struct err *loop_run(struct loop *loop)
{
	struct epoll_event event;
	for (int i = 0; i < HANDLED_AT_ONCE; i++) {
		int count = epoll_wait(loop->epoll, &event, 1, 0);
		if (count < 0 && errno != EINTR)
			return err_errno("cannot wait for events");
		if (count <= 0)
			break;
		const struct watch *watch = event.data.ptr;
		watch->ready(watch->context);
	}
	return NULL;
}
