/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How `culprit probe add`, `remove`, `list` and `show` talk to the `culprit probe` that is at work in a process: by a
 * socket in the user's own directory (base/cachedir.h), named after the process. Both sides ask the kernel who the other
 * one is: it must be the same user. A request is a few words, an answer is a status and text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct steer;
struct err;

/* Appends the answer to a request. Returns the exit status of who has asked. */
typedef int steer_handler(void *context, char **words, size_t count, struct buf *answer);

/* Lets others ask about these processes. If another one answers for a process already, that is left to it. */
struct err *steer_open(const pid_t *pids, size_t count, struct steer **out);
/* Answers those who have asked. It does not wait for anybody to ask. */
void steer_serve(struct steer *steer, steer_handler *handler, void *context);
void steer_close(struct steer *steer);

/* Asks who is at work in the process. Sets the status. An error says that nobody is, or who it is. */
struct err *steer_ask(pid_t pid, char *const *words, size_t count, struct buf *answer, int *status);
