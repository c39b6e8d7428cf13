/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks the steps of a process's stacks: does the code confirm that one frame called the next? It applies
   flow/evidence.h to a struct space. `culprit stack` uses it. */
#include <stddef.h>

#include "flow/evidence.h"

struct err;
struct links;
struct space;
struct stack;
struct symbolizer;

/* `space` and `symbolizer` must outlive the result. */
struct err *links_open(struct space *space, struct symbolizer *symbolizer, struct links **out);
void links_close(struct links *links); /* NULL is fine */

/* Classifies the step from stack->frames[index] to its caller, the frame after it. */
enum link links_classify(struct links *links, const struct stack *stack, size_t index);
