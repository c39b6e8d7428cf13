/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The inner end of a sample's path: the kernel's frames, and the samples that are counted there. paths.c and
   walks.c use it when the frames of the process are in the tree. */
#include <stdint.h>

#include "collect/kernel/state.h"

struct kernel_inner_end {
	struct process *process;
	uint32_t thread, node;         /* node: of the innermost frame in the process */
	uint32_t event;                /* KERNEL_EVENT_OFF: the thread was off the CPU */
	struct kernel_absence absence; /* its samples, if it was */
	struct kernel_io io;           /* KERNEL_EVENT_IO: what was read or written */
	uint32_t end;                  /* how the walk ended (enum walk_end) */
	uint64_t time;
	const uint64_t *kernel_frames; /* addresses, innermost first */
	uint32_t kernel_frame_count;
};

struct err *inner_end_add(struct kernel *k, const struct kernel_inner_end *end);
