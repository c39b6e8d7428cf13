/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "view/pack.h"
#include "view/page_text.h" /* made by the build */

/* What is filled in, in this order. */
#define LIVE_MARK "@LIVE@"       /* the version of data that is live */
#define CONNECT_MARK "@CONNECT@" /* what the page may connect to */
#define DATA_MARK "@DATA@"
#define CHUNK (1u << 20)

static struct err *compress_bytes(const struct buf *in, struct buf *out)
{
	z_stream z = {0};
	int status = deflateInit2(&z, 6, Z_DEFLATED, 15 + 16 /* gzip */, 9, Z_DEFAULT_STRATEGY);
	size_t taken = 0;
	while (status == Z_OK && buf_reserve(out, CHUNK)) {
		size_t left = in->size - taken, part = left < CHUNK ? left : CHUNK;
		z.next_in = (unsigned char *)in->data + taken;
		z.avail_in = (unsigned)part;
		z.next_out = (unsigned char *)out->data + out->size;
		z.avail_out = CHUNK;
		status = deflate(&z, part == left ? Z_FINISH : Z_NO_FLUSH);
		taken += part - z.avail_in;
		out->size += CHUNK - z.avail_out;
	}
	deflateEnd(&z);
	return status == Z_STREAM_END ? NULL : err_new("cannot compress: out of memory");
}

static void put_base64(const struct buf *in, struct buf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *b = (const unsigned char *)in->data;
	if (!buf_reserve(out, in->size / 3 * 4 + 5))
		return;
	for (size_t i = 0; i < in->size; i += 3) {
		size_t left = in->size - i;
		unsigned word = (unsigned)b[i] << 16 | (left > 1 ? b[i + 1] : 0u) << 8 |
				(left > 2 ? b[i + 2] : 0u);
		char text[4] = {digits[word >> 18], digits[word >> 12 & 63],
				left > 1 ? digits[word >> 6 & 63] : '=',
				left > 2 ? digits[word & 63] : '='};
		buf_append(out, text, sizeof text);
	}
}

struct err *page_data(const struct pack_input *in, struct buf *out)
{
	struct buf data = {0};
	struct err *e = pack_make(in, &data);
	if (!e)
		e = compress_bytes(&data, out);
	buf_free(&data);
	return e;
}

/* The page as far as a mark, which is left out: what follows begins at the result. */
static const char *copy_until(const char *from, const char *mark, struct buf *out)
{
	const char *end = (const char *)page_text + sizeof page_text;
	const char *at = from ? memmem(from, (size_t)(end - from), mark, strlen(mark)) : NULL;
	if (at)
		buf_append(out, from, (size_t)(at - from));
	return at ? at + strlen(mark) : NULL;
}

struct err *page_wrap(const struct buf *data, uint64_t version, struct buf *out)
{
	const char *end = (const char *)page_text + sizeof page_text;
	const char *rest = copy_until((const char *)page_text, LIVE_MARK, out);
	if (version)
		buf_printf(out, "%" PRIu64, version);
	rest = copy_until(rest, CONNECT_MARK, out);
	if (version)
		buf_puts(out, "; connect-src 'self'");
	rest = copy_until(rest, DATA_MARK, out);
	if (!rest)
		return err_new("the page has no place for data");
	put_base64(data, out);
	buf_append(out, rest, (size_t)(end - rest));
	return out->failed ? err_new("out of memory") : NULL;
}

struct err *page_make(const struct pack_input *in, struct buf *out)
{
	struct buf packed = {0};
	struct err *e = page_data(in, &packed);
	if (!e)
		e = page_wrap(&packed, 0, out);
	buf_free(&packed);
	return e;
}
