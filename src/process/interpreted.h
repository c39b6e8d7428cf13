/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls of interpreted functions in a process that is stopped: script/python.h. stacks.c uses it. */
#include <stdbool.h>

struct remote;
struct space;
struct stacks;

/* Adds their calls to the stacks of the threads that were walked. False if memory ran out. */
bool interpreted_add(struct remote *remote, const struct space *space, struct stacks *stacks);
