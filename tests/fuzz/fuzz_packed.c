/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed rows of a database. The first byte says of which kind, and whether the rest is packed
 * already or raw columns. What can be read is packed, read again and must be the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "store/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_counts(const struct buf *in)
{
	struct pack_count *rows, *again;
	struct buf packed = {0};
	size_t count, again_count;
	struct err *e = unpack_counts(in->data, in->size, &rows, &count);
	if (e) {
		err_free(e);
		return;
	}
	for (size_t i = 0; i < count; i++)
		assert(rows[i].count);
	count = pack_settle_counts(rows, count);
	assert(!pack_counts(rows, count, 1, &packed));
	assert(!unpack_counts(packed.data, packed.size, &again, &again_count));
	assert(again_count == count && (!count || !memcmp(rows, again, count * sizeof *rows)));
	free(rows);
	free(again);
	buf_free(&packed);
}

static void try_paths(const struct buf *in)
{
	struct pack_path *rows, *again;
	struct buf packed = {0};
	size_t count, again_count;
	struct err *e = unpack_paths(in->data, in->size, &rows, &count);
	if (e) {
		err_free(e);
		return;
	}
	count = pack_settle_paths(rows, count);
	assert(!pack_paths(rows, count, 1, &packed));
	assert(!unpack_paths(packed.data, packed.size, &again, &again_count));
	assert(again_count == count && (!count || !memcmp(rows, again, count * sizeof *rows)));
	free(rows);
	free(again);
	buf_free(&packed);
}

static void try_nodes(const struct buf *in, uint32_t first)
{
	struct pack_node *rows, *again;
	struct buf packed = {0};
	size_t count, again_count;
	struct err *e = unpack_nodes(in->data, in->size, first, &rows, &count);
	if (e) {
		err_free(e);
		return;
	}
	for (size_t i = 0; i < count; i++)
		assert(rows[i].parent < first + i && rows[i].kind != PROFILE_ROOT &&
		       rows[i].kind <= PROFILE_PARTIAL);
	assert(!pack_nodes(rows, count, first, 1, &packed));
	assert(!unpack_nodes(packed.data, packed.size, first, &again, &again_count));
	assert(again_count == count);
	for (size_t i = 0; i < count; i++)
		assert(rows[i].parent == again[i].parent && rows[i].image == again[i].image &&
		       rows[i].address == again[i].address && rows[i].kind == again[i].kind);
	free(rows);
	free(again);
	buf_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf in = {0};
	if (size < 1)
		return 0;
	if (data[0] & 1)
		buf_append(&in, data[0] & 8 ? "\3" : "\1",
			   1); /* as it is, with bits apart or without */
	buf_append(&in, data + 1, size - 1);
	if (in.size) {
		if ((data[0] >> 1) % 3 == 0)
			try_counts(&in);
		else if ((data[0] >> 1) % 3 == 1)
			try_paths(&in);
		else
			try_nodes(&in, 1 + (data[0] >> 4));
	}
	buf_free(&in);
	return 0;
}
