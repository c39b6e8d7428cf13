/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page.h"

#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "view/pack.h"
#include "view/page_text.h" /* made by the build */

#define MARK "@DATA@" /* where the data goes */
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

struct err *page_make(const struct pack_input *in, struct buf *out)
{
	struct buf data = {0}, packed = {0};
	const char *text = (const char *)page_text,
		   *mark = memmem(text, sizeof page_text, MARK, sizeof MARK - 1);
	struct err *e = mark ? pack_make(in, &data) : err_new("the page has no place for data");
	if (!e)
		e = compress_bytes(&data, &packed);
	buf_free(&data);
	if (!e) {
		size_t before = (size_t)(mark - text), rest = before + sizeof MARK - 1;
		buf_append(out, text, before);
		put_base64(&packed, out);
		buf_append(out, text + rest, sizeof page_text - rest);
		e = out->failed ? err_new("out of memory") : NULL;
	}
	buf_free(&packed);
	return e;
}
