/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What patches.c and slowest.c know of a thread's tree that is read (trees.c). */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct arena_thread;
struct harvest;
struct recording;

struct patches_tree {
	struct recording *recording;
	struct harvest *harvest;
	const struct arena *arena;
	const struct arena_thread *record;
	pid_t pid, tid;  /* as we see them */
	uint32_t thread; /* in the profile */
	bool last;       /* nobody will add to it */
};
