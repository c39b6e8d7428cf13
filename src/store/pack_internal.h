/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files that pack share. */
#include <stdbool.h>

#include "profile/sections.h"
#include "store/pack.h"

#define ORDER(x, y)                                \
	do {                                       \
		if ((x) != (y))                    \
			return (x) < (y) ? -1 : 1; \
	} while (0)

/* Appends the raw bytes with what is around them, compressed where that is smaller. `apart`: some of their
   columns have their low bits apart. */
struct err *pack_frame(const struct buf *raw, bool apart, int level, struct buf *out);
/* The raw bytes again; cursor_close in any case. `size` is not 0. */
struct err *unpack_frame(const void *bytes, size_t size, struct cursor *c, bool *apart);
