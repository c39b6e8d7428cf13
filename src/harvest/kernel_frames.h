/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Frames of the kernel, below those of the program that it works for. Both samplers add them. The names
   of its functions are read when they are needed first, since the list is long. */
#include <stdint.h>

struct err;
struct kernel_names;
struct process;
struct recording;

/* Finds out whether the kernel shows us its addresses (r->kernel_frames). */
void kernel_frames_open(struct recording *r);
void kernel_frames_close(struct recording *r);
/* The names of the kernel's functions; NULL if it has none for us. */
const struct kernel_names *kernel_frames_names(struct recording *r);
/* Names the kernel's functions that are in the profile. Called before the profile is taken. */
void kernel_frames_name(struct recording *r);
/* Moves `node` to its descendant for these frames, which are given innermost first. If they have no names,
   one frame stands for all. */
struct err *kernel_frames_add(struct recording *r, struct process *p, const uint64_t *addresses,
			      uint32_t count, uint32_t *node);
/* The same for a thread that waits: the innermost of these frames has made a call, too. */
struct err *kernel_frames_add_waiting(struct recording *r, struct process *p,
				      const uint64_t *addresses, uint32_t count, uint32_t *node);
