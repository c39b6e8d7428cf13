/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A function as the bytes that a profile has of it (doc/format.md): its blocks, its edges, which of these are cut, and where
 * its paths start. That is enough to tell its paths.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct path_function;

#define GRAPH_BYTES_PATHS (1u << 20) /* a function with more paths is refused */

/* Appends the bytes of a function that is PATH_EXACT. `lengths`: by block, its instructions. */
void graph_bytes_put(const struct path_function *function, const uint32_t *lengths,
		     struct buf *out);
/* Sets the function's graph, numbering and lengths, which it must free also after an error. The bytes are foreign: an error says
   what is wrong with them. */
struct err *graph_bytes_read(const uint8_t *bytes, size_t size, struct path_function *function);
