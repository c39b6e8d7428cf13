/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A thread that makes boards (live/board.h) of profiles, so that keys and the
 * recording are not kept waiting while names are looked up. A newer profile or
 * wish takes the place of an older one that it has not begun with.
 */
#include <stdbool.h>

#include "live/board.h"

struct worker;

struct err *worker_start(struct worker **out);
/* False: it is busy and goes on until the process ends. NULL is fine */
bool worker_stop(struct worker *worker);

/* Readable when worker_board has something new. */
int worker_fd(const struct worker *worker);
/* The profile becomes the worker's. `fresh`: as board_maker_take has it. */
void worker_give(struct worker *worker, struct profile *profile, bool fresh);
void worker_wish(struct worker *worker, const struct board_wish *wish);
/* The newest board, the caller's, or NULL where it was taken already. *problem: why there is none. */
struct board *worker_board(struct worker *worker, struct err **problem);
/* Whether it has something to do. */
bool worker_busy(struct worker *worker);
