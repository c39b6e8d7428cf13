/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes around the columns. */
#include "store/pack_internal.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"

enum {
	PACKED_RAW = 1,
	PACKED_ZSTD = 2,
	PACKED_APART = 2 /* added to these: columns with bits apart */
};
#define RAW_SMALL 48 /* less does not become smaller */

struct err *pack_frame(const struct buf *raw, bool apart, int level, struct buf *out)
{
	char kind = PACKED_ZSTD + (apart ? PACKED_APART : 0);
	size_t bound = ZSTD_compressBound(raw->size);
	if (raw->failed)
		return err_new("out of memory");
	ZSTD_CCtx *z = raw->size > RAW_SMALL ? ZSTD_createCCtx() : NULL;
	if (z && buf_reserve(out, bound + 1)) {
		ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
		ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
		size_t size = ZSTD_compress2(z, out->data + out->size + 1, bound, raw->data,
					     raw->size);
		ZSTD_freeCCtx(z);
		if (!ZSTD_isError(size) && size < raw->size) {
			out->data[out->size] = kind;
			out->size += size + 1;
			return NULL;
		}
	} else {
		ZSTD_freeCCtx(z);
	}
	kind += PACKED_RAW - PACKED_ZSTD;
	buf_append(out, &kind, 1);
	buf_append(out, raw->data, raw->size);
	return out->failed ? err_new("out of memory") : NULL;
}

static struct err *inflate(const uint8_t *bytes, size_t size, struct cursor *c)
{
	unsigned long long raw = ZSTD_getFrameContentSize(bytes, size);
	if (raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == ZSTD_CONTENTSIZE_ERROR ||
	    raw > FORMAT_RAW_MAX)
		return err_new("packed rows are damaged");
	c->own = malloc(raw + 1);
	if (!c->own)
		return err_new("out of memory");
	size_t got = ZSTD_decompress(c->own, raw, bytes, size);
	c->at = c->own;
	c->end = c->own + raw;
	return ZSTD_isError(got) || got != raw ? err_new("packed rows are damaged") : NULL;
}

struct err *unpack_frame(const void *bytes, size_t size, struct cursor *c, bool *apart)
{
	const uint8_t *at = bytes;
	*c = (struct cursor){0};
	*apart = at[0] > PACKED_APART;
	int kind = at[0] - (*apart ? PACKED_APART : 0);
	if (kind == PACKED_ZSTD)
		return inflate(at + 1, size - 1, c);
	c->at = at + 1;
	c->end = at + size;
	return kind == PACKED_RAW ? NULL : err_new("packed rows are damaged");
}
