/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's control socket, for its owner and root. Who connects sends one
 * line and gets one: "epoch" begins another epoch ("ok N", or "error WHY").
 */
#include <stdbool.h>
#include <stddef.h>

struct err;
struct steering;

/* Makes the socket, and the folder that it is in. One that a dead daemon left is taken. */
struct err *steering_open(const char *path, struct steering **out);
void steering_close(struct steering *steering); /* NULL is fine */
/* Descriptors to wait for (an epoll). */
int steering_fd(const struct steering *steering);

/* What somebody asks for, NULL where nobody does; steering_answer must follow. */
const char *steering_question(struct steering *steering);
void steering_answer(struct steering *steering, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
