/* SPDX-License-Identifier: Apache-2.0 */
#include "image/inflate.h"

#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define SIZE_LIMIT (UINT64_C(4) << 30)
/* deflate cannot do better than 1032:1; debug information never comes near it. */
#define RATIO_LIMIT 1200
#define XZ_MEMORY_LIMIT (UINT64_C(256) << 20)
#define XZ_MEMORY_USUAL (UINT64_C(12) << 20) /* what the xz program sets by itself takes 9 */
#define PIECE_MAX (UINT32_C(1) << 30)        /* zlib counts in 32 bits */

uint64_t inflate_limit(size_t compressed_size)
{
	if (compressed_size >= SIZE_LIMIT / RATIO_LIMIT)
		return SIZE_LIMIT;
	return (uint64_t)compressed_size * RATIO_LIMIT;
}

static uint8_t *allocate_output(size_t in_size, uint64_t out_size)
{
	uint8_t *out;
	if (out_size > inflate_limit(in_size))
		return NULL;
	out = malloc(out_size + 1);
	if (out)
		out[out_size] = 0;
	return out;
}

static uInt piece(uint64_t left)
{
	return left > PIECE_MAX ? PIECE_MAX : (uInt)left;
}

/* True where exactly `out_size` bytes came out. */
static bool zlib_run(z_stream *z, const uint8_t *in, size_t in_size, uint8_t *out,
		     uint64_t out_size)
{
	const uint8_t *in_end = in + in_size, *out_end = out + out_size;
	int status = Z_OK;
	z->next_in = (Bytef *)(uintptr_t)in;
	z->next_out = out;
	while (status == Z_OK) {
		z->avail_in = piece((uint64_t)(in_end - z->next_in));
		z->avail_out = piece((uint64_t)(out_end - z->next_out));
		if (z->avail_out == 0)
			break;
		status = inflate(z, Z_NO_FLUSH); /* Z_BUF_ERROR where the input ended early */
		/* Large sections are sometimes several streams, one after the other. */
		if (status == Z_STREAM_END && z->next_in < in_end && z->next_out < out_end)
			status = inflateReset(z);
	}
	return z->next_out == out_end;
}

uint8_t *inflate_zlib(const uint8_t *in, size_t in_size, uint64_t out_size)
{
	uint8_t *out = allocate_output(in_size, out_size);
	z_stream z = {0};
	bool good;
	if (!out || inflateInit(&z) != Z_OK) {
		free(out);
		return NULL;
	}
	good = zlib_run(&z, in, in_size, out, out_size);
	inflateEnd(&z);
	if (good)
		return out;
	free(out);
	return NULL;
}

uint8_t *inflate_zstd(const uint8_t *in, size_t in_size, uint64_t out_size)
{
	uint8_t *out = allocate_output(in_size, out_size);
	if (out && ZSTD_decompress(out, out_size, in, in_size) == out_size)
		return out;
	free(out);
	return NULL;
}

/* Twice the space, within the limit; false: not allowed or not there. */
static bool grow(uint8_t **out, size_t *room, uint64_t limit)
{
	size_t bigger = *room * 2 > limit ? limit : *room * 2;
	uint8_t *moved;
	if (bigger <= *room)
		return false;
	moved = realloc(*out, bigger + 1);
	if (!moved)
		return false;
	*out = moved;
	*room = bigger;
	return true;
}

static bool xz_run(lzma_stream *z, uint8_t **out, size_t room, uint64_t limit, bool *full)
{
	lzma_ret status;
	z->next_out = *out;
	z->avail_out = room;
	for (;;) {
		status = lzma_code(z, LZMA_FINISH);
		if (status == LZMA_STREAM_END)
			return true;
		*full = status == LZMA_MEMLIMIT_ERROR;
		if (status != LZMA_OK)
			return false;
		if (z->avail_out != 0)
			continue;
		*full = room >= limit;
		if (!grow(out, &room, limit))
			return false;
		z->next_out = *out + z->total_out;
		z->avail_out = room - z->total_out;
	}
}

static uint64_t xz_memory(uint64_t most)
{
	if (most >= XZ_MEMORY_LIMIT)
		return XZ_MEMORY_LIMIT;
	return most > XZ_MEMORY_USUAL ? most : XZ_MEMORY_USUAL;
}

uint8_t *inflate_xz(const uint8_t *in, size_t in_size, uint64_t most, size_t *out_size,
		    bool *exceeded)
{
	uint64_t limit = inflate_limit(in_size) < most ? inflate_limit(in_size) : most;
	size_t room = in_size < limit / 4 ? in_size * 4 : limit;
	uint8_t *out = in_size ? malloc(room + 1) : NULL;
	lzma_stream z = LZMA_STREAM_INIT;
	*out_size = 0;
	*exceeded = false;
	if (!out || lzma_stream_decoder(&z, xz_memory(most), 0) != LZMA_OK) {
		free(out);
		return NULL;
	}
	z.next_in = in;
	z.avail_in = in_size;
	if (xz_run(&z, &out, room, limit, exceeded)) {
		*out_size = z.total_out;
		out[*out_size] = 0;
	} else {
		free(out);
		out = NULL;
	}
	lzma_end(&z);
	return out;
}
