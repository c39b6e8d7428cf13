/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The time line in the file: sections of type FORMAT_SPANS. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct cursor;
struct decoder;
struct profile_span;

/* The contents of a section with these spans, which are in order. */
void timeline_put(struct buf *raw, const struct profile_span *spans, size_t count,
		  uint64_t coarse_us);
/* Adds those of a section to the profile; threads and metrics have the file's numbers as yet. */
void timeline_read(struct decoder *d, struct cursor *c);
