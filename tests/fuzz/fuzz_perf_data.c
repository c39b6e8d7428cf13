/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf.data files. After a first byte that is even the rest is a file. After an
 * odd one a file is made: eight bytes say what samples hold, the next one how
 * many events there are and whether it is a pipe, and the rest is a list of
 * records (type, misc, length, contents), so that what is inside is reached.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "import/import.h"
#include "import/perf_format.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ATTR 112u

static void put(struct buf *b, uint64_t value, unsigned size)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	buf_append(b, bytes, size);
}

static void put_attr(struct buf *b, const uint8_t *choice, unsigned number)
{
	uint64_t sample_type = choice[0] | choice[1] << 8 | (choice[2] & 1) << 16;
	put(b, number, 4);
	put(b, ATTR, 4);
	put(b, choice[3] & 15, 8);
	put(b, 1000, 8);
	put(b, sample_type, 8);
	put(b, choice[4] & 31, 8);
	put(b, (choice[3] & 16 ? PERF_ATTR_ID_ALL : 0) | (choice[3] & 32 ? PERF_ATTR_FREQ : 0), 8);
	put(b, 0, 8);
	put(b, 0, 8);
	put(b, 0, 8);
	put(b, (uint64_t)choice[5] << 13, 8);
	put(b, choice[6] & 1 ? 0x1ffffffff : 0xff0fff, 8);
	put(b, choice[7], 8);
	put(b, 0, 8);
	put(b, choice[6] & 2 ? 3 << 16 : 0, 8);
}

static void put_records(struct buf *b, const uint8_t *data, size_t size)
{
	while (size >= 4) {
		size_t length = data[2] | (size_t)(data[3] & 15) << 8;
		if (length > size - 4)
			length = size - 4;
		put(b, data[0], 4);
		put(b, data[1] | (uint64_t)(data[3] & 0xe0) << 8, 2);
		put(b, 8 + length, 2);
		buf_append(b, data + 4, length);
		data += 4 + length;
		size -= 4 + length;
	}
}

static void make_pipe(const uint8_t *data, size_t size, unsigned events, struct buf *file)
{
	put(file, PERF_MAGIC, 8);
	put(file, PERF_PIPE_HEADER_SIZE, 8);
	for (unsigned i = 0; i < events; i++) {
		put(file, PERF_OWN_ATTR, 4);
		put(file, (8 + ATTR + 8) << 16, 4);
		put_attr(file, data, i);
		put(file, i + 1, 8);
	}
	put_records(file, data + 9, size - 9);
}

static void make_file(const uint8_t *data, size_t size, unsigned events, struct buf *file)
{
	struct buf records = {0};
	put_records(&records, data + 9, size - 9);
	put(file, PERF_MAGIC, 8);
	put(file, PERF_HEADER_SIZE, 8);
	put(file, ATTR + 16, 8);
	put(file, PERF_HEADER_SIZE + 8 * events, 8);
	put(file, events * (ATTR + 16), 8);
	put(file, PERF_HEADER_SIZE + 8 * events + events * (ATTR + 16), 8);
	put(file, records.size, 8);
	for (unsigned i = 0; i < 6; i++)
		put(file, 0, 8);
	for (unsigned i = 0; i < events; i++)
		put(file, i + 1, 8);
	for (unsigned i = 0; i < events; i++) {
		put_attr(file, data, i);
		put(file, PERF_HEADER_SIZE + 8 * i, 8);
		put(file, 8, 8);
	}
	buf_append(file, records.data, records.size);
	buf_free(&records);
}

static void check(const struct profile *p)
{
	struct buf bytes = {0};
	struct profile *again;
	char *damage;
	for (size_t i = 1; i < p->node_count; i++)
		assert(p->nodes[i].parent < i && p->nodes[i].module < p->module_count);
	for (size_t i = 0; i < p->value_count; i++)
		assert(p->values[i].node < p->node_count && p->values[i].thread < p->thread_count &&
		       p->values[i].metric < p->metric_count && p->values[i].count);
	assert(!profile_pack(p, &bytes));
	assert(!profile_parse(bytes.data, bytes.size, &again, &damage));
	assert(!damage && again->value_count == p->value_count);
	profile_free(again);
	buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_options options = {.sysroot = "/nowhere", .kallsyms = "/nowhere"};
	struct buf file = {0}, notes = {0};
	struct profile *p;
	if (size < 10 || !(data[0] & 1))
		buf_append(&file, size ? data + 1 : data, size ? size - 1 : 0);
	else if (data[9] & 4)
		make_pipe(data + 1, size - 1, data[9] & 3, &file);
	else
		make_file(data + 1, size - 1, data[9] & 3, &file);
	struct err *e = import_perf_bytes(file.data, file.size, &options, &p, &notes);
	assert(e ? !p : !!p);
	if (!e)
		check(p);
	err_free(e);
	profile_free(p);
	buf_free(&notes);
	buf_free(&file);
	return 0;
}
