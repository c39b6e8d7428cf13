/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Frames of a path, outermost first, as nodes of the profile; and the sample at its end. */
#include <stdint.h>

struct err;
struct kernel;
struct process;

/* Where a path that ended so (enum walk_end) begins. */
struct err *frames_add_root(struct kernel *k, struct process *p, uint32_t end, uint32_t *node);
/* Goes from the node to that of the next frame inwards. */
struct err *frames_add(struct kernel *k, struct process *p, uint64_t key, uint32_t *node);
/* The same for what the kernel did for it, innermost first. Without names one frame stands for all. */
struct err *frames_add_inner(struct kernel *k, struct process *p, const uint64_t *addresses,
			     uint32_t count, uint32_t *node);
struct err *frames_count(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			 uint32_t end, uint64_t time);
/* Samples of a place whose callers nobody knows. */
struct err *frames_count_place(struct kernel *k, struct process *p, uint32_t thread, uint64_t key,
			       uint32_t event, uint64_t count);
