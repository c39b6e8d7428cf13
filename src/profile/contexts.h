/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calling contexts of functions whose paths were counted: the section "contexts" of a file (doc/format.md). */
#include <stddef.h>

struct buf;
struct cursor;
struct decoder;
struct err;
struct profile;
struct profile_context;

/* The contents of a section with the first of these contexts, the first of which has this index: as many as should be in one.
   Returns how many. */
size_t contexts_put(struct buf *raw, const struct profile_context *contexts, size_t first,
		    size_t count);
/* Adds those of a section to the profile. Their modules and callers have the file's numbers as yet. */
void contexts_read(struct decoder *d, struct cursor *c);
/* Gives them the profile's numbers. Those whose callers are missing have lost them. */
void contexts_renumber(struct decoder *d);
