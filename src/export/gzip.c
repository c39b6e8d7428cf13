/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gzip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/err.h"

#define GZIP_WINDOW (15 + 16) /* the largest, with the header and trailer of gzip */
#define CHUNK (64u << 10)

struct gzip {
	FILE *out;
	z_stream z;
	int status;
	unsigned char chunk[CHUNK];
};

struct err *gzip_open(FILE *out, struct gzip **gzip)
{
	struct gzip *g = calloc(1, sizeof *g);
	if (g && deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			      Z_DEFAULT_STRATEGY) == Z_OK) {
		g->out = out;
		*gzip = g;
		return NULL;
	}
	free(g);
	return err_new("out of memory");
}

/* Until all that was put is read, and at the end until all is written. */
static void run(struct gzip *g, int flush)
{
	do {
		g->z.next_out = g->chunk;
		g->z.avail_out = CHUNK;
		g->status = deflate(&g->z, flush);
		fwrite(g->chunk, 1, CHUNK - g->z.avail_out, g->out);
	} while (g->status == Z_OK && !g->z.avail_out);
}

void gzip_put(struct gzip *g, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	while (size) {
		uInt part = size > CHUNK ? CHUNK : (uInt)size;
		g->z.next_in = (unsigned char *)at;
		g->z.avail_in = part;
		run(g, Z_NO_FLUSH);
		at += part;
		size -= part;
	}
}

struct err *gzip_close(struct gzip *g)
{
	if (!g)
		return NULL;
	run(g, Z_FINISH);
	bool good = g->status == Z_STREAM_END;
	deflateEnd(&g->z);
	free(g);
	return good ? NULL : err_new("cannot compress");
}
