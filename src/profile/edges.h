/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The section "edges" of a file (doc/format.md). */
#include <stddef.h>

struct buf;
struct cursor;
struct decoder;
struct profile_edge;

void edges_put(struct buf *raw, const struct profile_edge *edges, size_t count);
void edges_read(struct decoder *d, struct cursor *c);
