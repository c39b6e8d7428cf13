/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The section "paths" of a file (doc/format.md). */
#include <stddef.h>

struct buf;
struct cursor;
struct decoder;
struct profile_counted;

/* The contents of a section with the first of these functions: as many as should be in one. Returns how many. */
size_t counted_put(struct buf *raw, const struct profile_counted *functions, size_t count);
/* Adds those of a section to the profile. Their modules have the file's numbers as yet. */
void counted_read(struct decoder *d, struct cursor *c);
