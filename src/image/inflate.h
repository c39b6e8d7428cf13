/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decompression with a bound: a small hostile file must not be able to take all
 * memory. Results are malloc'ed with a NUL byte after the last; NULL means
 * damaged, larger than allowed, or no memory. Pages of a result are touched only
 * as data comes: who claims gigabytes and has none takes none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest result allowed for this many compressed bytes. */
uint64_t inflate_limit(size_t compressed_size);

/* `out_size` is what the file says; any other outcome is damage. */
uint8_t *inflate_zlib(const uint8_t *in, size_t in_size, uint64_t out_size);
uint8_t *inflate_zstd(const uint8_t *in, size_t in_size, uint64_t out_size);

/* .xz does not say its size in front; *out_size is what came out. `most`: no result is larger; where one would be,
   or more memory than a few times that is needed, *exceeded is set. */
uint8_t *inflate_xz(const uint8_t *in, size_t in_size, uint64_t most, size_t *out_size,
		    bool *exceeded);
