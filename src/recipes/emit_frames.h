/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The contents of a .debug_frame section from recipes: a part of recipes/emit.c. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct isa;
struct rows;

/* Appends a CIE and the FDEs of all rows, cut where procedures begin. Returns how many FDEs. */
uint64_t emit_frames(const struct isa *isa, const struct rows *rows, const uint64_t *starts,
		     size_t start_count, struct buf *out);
