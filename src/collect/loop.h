/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a session waits for: descriptors, and who is called when one is readable. */
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
/* `watch` stays where it is until the descriptor is closed. */
struct err *loop_watch(struct loop *loop, int fd, struct watch *watch);
/* Calls whoever is ready now, and returns. */
struct err *loop_run(struct loop *loop);
