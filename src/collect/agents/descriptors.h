/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What threads do and wait for, as agents tell it: keys of CCT_OBJECT. trees.c, copies.c and waits.c use it. */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct harvest;

/* Appends the name of what a key is done to. */
void descriptors_name(const struct arena *a, uint64_t key, struct buf *out);
/* Adds the child that says what is done, with such a name. */
struct err *descriptors_add_child(struct harvest *h, uint32_t parent, uint64_t key,
				  const char *object, uint32_t *node);
