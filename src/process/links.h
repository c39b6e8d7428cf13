/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well the code bears out each step of the stacks of a process
 * (flow/evidence.h).
 */
#include <stddef.h>

#include "flow/evidence.h"

struct err;
struct links;
struct space;
struct stack;
struct symbolizer;

/* Both must outlive the result. */
struct err *links_open(struct space *space, struct symbolizer *symbolizer, struct links **out);
void links_close(struct links *links); /* NULL is fine */

/* The link from stack->frames[index] to the frame after it. */
enum link links_classify(struct links *links, const struct stack *stack, size_t index);
