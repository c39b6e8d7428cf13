/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists of what is to be changed in the code of a process: jumps of probes come or go. moving.c and left.c use it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena_probe;
struct err;
struct still_write;

struct changes {
	struct still_write *all;
	uint32_t *indexes; /* of the descriptions */
	size_t count, room, index_room;
};

/* Adds that the jump of a probe comes, or that what was there comes back. Returns false if there is no memory. */
bool changes_put_in(struct changes *c, const struct arena_probe *p, uint32_t index);
bool changes_take_out(struct changes *c, const struct arena_probe *p, uint32_t index);
/* Whether some of them could not be made. */
bool changes_any_left(const struct changes *c);
/* The error that says so. */
struct err *changes_left(pid_t pid);
void changes_free(struct changes *c);
