/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The event loop of a session: descriptors, and what is called when one is readable. session.c runs it;
   the samplers add their descriptors. */
struct err;

struct watch {
	void (*ready)(void *context);
	void *context;
};

struct loop {
	int epoll; /* -1: not open */
};

struct err *loop_open(struct loop *loop);
void loop_close(struct loop *loop);
/* `watch` must stay valid until the descriptor is closed. */
struct err *loop_watch(struct loop *loop, int fd, struct watch *watch);
/* Calls `ready` for all descriptors that are readable now, and returns. */
struct err *loop_run(struct loop *loop);
