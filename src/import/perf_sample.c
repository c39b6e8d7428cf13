/* SPDX-License-Identifier: Apache-2.0 */
#include "import/perf_sample.h"

#include "import/bytes.h"
#include "import/perf_file.h"
#include "import/perf_format.h"

uint64_t perf_sample_word(const uint8_t *words, uint64_t index)
{
	struct bytes b = bytes_of(words + 8 * index, 8);
	return bytes_u64(&b);
}

/* `count` pieces of `size` bytes. */
static const uint8_t *take_many(struct bytes *b, uint64_t count, uint64_t size)
{
	if (count > bytes_left(b) / size)
		b->bad = true;
	return bytes_take(b, b->bad ? 0 : count * size);
}

/* The counter's value, and those of its group. */
static void skip_read(struct bytes *b, uint64_t format)
{
	uint64_t entry = 1 + !!(format & PERF_READ_ID) + !!(format & PERF_READ_LOST);
	uint64_t times = !!(format & PERF_READ_ENABLED) + !!(format & PERF_READ_RUNNING);
	uint64_t count = format & PERF_READ_GROUP ? bytes_u64(b) : 1;
	bytes_take(b, 8 * times);
	take_many(b, count, 8 * entry);
}

static void skip_branches(struct bytes *b, uint64_t kinds)
{
	uint64_t count = bytes_u64(b);
	if (kinds & PERF_BRANCHES_INDEX)
		bytes_u64(b);
	take_many(b, count, 24);
	if (kinds & PERF_BRANCHES_COUNTERS)
		take_many(b, count, 8);
}

static void take_stack(struct bytes *b, struct perf_sample *out)
{
	out->stack_wanted = bytes_u64(b);
	if (!out->stack_wanted)
		return;
	out->stack = bytes_take(b, out->stack_wanted);
	out->stack_size = bytes_u64(b); /* what was really there */
	if (out->stack_size > out->stack_wanted)
		out->stack_size = out->stack_wanted;
}

static void take_fixed(struct bytes *b, uint64_t type, struct perf_sample *out)
{
	if (type & PERF_HAS_IDENTIFIER)
		bytes_u64(b);
	if (type & PERF_HAS_IP)
		out->ip = bytes_u64(b);
	if (type & PERF_HAS_TID) {
		out->process = bytes_u32(b);
		out->thread = bytes_u32(b);
	}
	if (type & PERF_HAS_TIME)
		bytes_u64(b);
	if (type & PERF_HAS_ADDR)
		bytes_u64(b);
	if (type & PERF_HAS_ID)
		bytes_u64(b);
	if (type & PERF_HAS_STREAM_ID)
		bytes_u64(b);
	if (type & PERF_HAS_CPU)
		bytes_u64(b);
	if (type & PERF_HAS_PERIOD)
		out->period = bytes_u64(b);
}

bool perf_sample_parse(const struct perf_event *event, const uint8_t *body, size_t size,
		       struct perf_sample *out)
{
	uint64_t type = event->sample_type;
	struct bytes b = bytes_of(body, size);
	*out = (struct perf_sample){0};
	take_fixed(&b, type, out);
	if (type & PERF_HAS_READ)
		skip_read(&b, event->read_format);
	if (type & PERF_HAS_CALLCHAIN) {
		out->chain_count = bytes_u64(&b);
		out->chain = take_many(&b, out->chain_count, 8);
	}
	if (type & PERF_HAS_RAW)
		bytes_take(&b, bytes_u32(&b));
	if (type & PERF_HAS_BRANCHES)
		skip_branches(&b, event->branches);
	if (type & PERF_HAS_REGS_USER) {
		out->registers_abi = bytes_u64(&b);
		if (out->registers_abi)
			out->registers = take_many(
				&b, (uint64_t)__builtin_popcountll(event->registers), 8);
	}
	if (type & PERF_HAS_STACK_USER)
		take_stack(&b, out);
	return !b.bad;
}
