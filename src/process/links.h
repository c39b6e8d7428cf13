/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well the code bears out a step of a walk: does the instruction before
 * the return address call the procedure in which the callee stands?
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct links;
struct space;
struct stack;
struct symbolizer;

enum link {
	LINK_NONE,   /* the outermost frame has no caller */
	LINK_VALID,  /* a call of the callee, direct or by its PLT stub; or a signal */
	LINK_LIKELY, /* an indirect call, or a call of a procedure that may jump on to the callee */
	LINK_INVALID, /* no call, or one of something else */
	LINK_UNKNOWN, /* the caller's code cannot be read */
};

/* Both must outlive the result. */
struct err *links_open(struct space *space, struct symbolizer *symbolizer, struct links **out);
void links_close(struct links *links); /* NULL is fine */

/* The link from stack->frames[index] to the frame after it. */
enum link links_classify(struct links *links, const struct stack *stack, size_t index);

/* "valid", "likely", "invalid", "unknown"; "" for none. */
const char *link_name(enum link link);
