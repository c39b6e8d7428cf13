/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf collects the buffers of all CPUs one after the other, so records of
 * different CPUs are not in order. After each round it writes FINISHED_ROUND:
 * whatever comes later is younger than the youngest record of the round
 * before. So records wait in a heap, and at the end of a round those that are
 * not younger than that leave it, the oldest first. Records without a time are
 * those that perf made up at the start; they do not wait.
 *
 * Records may lie in a compressed stream, whose pieces are records themselves
 * and need not end where a record ends.
 */
#include "import/perf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/array.h"
#include "base/err.h"
#include "base/filekind.h"
#include "import/bytes.h"
#include "import/perf_format.h"
#include "import/perf_info.h"
#include "import/input.h"

#define WAITING_MAX ((size_t)256 << 20) /* bytes */
#define FEATURE_MAX ((uint64_t)64 << 20)
#define RECORD_MAX 65536u
/* What a compressed byte may become, over all; no stack shrinks that much. */
#define RATIO_MAX 1000u
#define PLAIN_MIN ((uint64_t)64 << 20)

struct waiting {
	uint64_t time, number;
	const struct perf_event *event;
	size_t size;
	uint8_t bytes[]; /* with the head */
};

struct perf_file {
	struct input *input;
	struct perf_info info;
	bool pipe;
	uint64_t data_end; /* of a file */

	struct waiting **heap; /* the oldest first */
	size_t count, room, waiting_bytes;
	uint64_t number, round_time, last_round_time;

	ZSTD_DStream *zstd;
	struct buf plain; /* decompressed, no whole record yet */
	uint64_t compressed_total, plain_total;

	uint64_t unknown;
	struct err *(*take)(void *context, const struct perf_record *record);
	void *context;
};

/* ---- the header ---- */

struct section {
	uint64_t offset, size;
};

static struct section take_section(struct bytes *b)
{
	struct section s;
	s.offset = bytes_u64(b);
	s.size = bytes_u64(b);
	return s;
}

static const uint8_t *read_section(struct perf_file *f, struct section s)
{
	return input_seek(f->input, s.offset) ? input_next(f->input, s.size) : NULL;
}

static struct err *read_events(struct perf_file *f, struct section attrs, uint64_t entry)
{
	uint64_t count = entry > sizeof(struct section) ? attrs.size / entry : 0;
	struct err *e = NULL;
	if (!count)
		return err_new("it describes no events: its header is damaged");
	for (uint64_t i = 0; !e && i < count; i++) {
		const uint8_t *bytes = read_section(
			f, (struct section){attrs.offset + i * entry, entry});
		uint32_t number;
		if (!bytes)
			return err_new("the description of its events is cut off");
		struct bytes b = bytes_of(bytes + entry - 16, 16);
		struct section ids = take_section(&b);
		e = perf_info_add_event(&f->info, bytes, (size_t)entry - 16, &number);
		bytes = !e && ids.size ? read_section(f, ids) : NULL;
		if (bytes)
			e = perf_info_add_ids(&f->info, number, bytes, (size_t)ids.size);
		else if (!e && ids.size)
			perf_info_damage(&f->info, "ids of an event are cut off");
	}
	return e;
}

static struct err *read_features(struct perf_file *f, const uint8_t *bits, uint64_t place)
{
	struct err *e = NULL;
	unsigned number = 0;
	for (unsigned i = 0; !e && i < PERF_FEATURE_BITS; i++) {
		if (!(bits[i / 8] >> i % 8 & 1))
			continue;
		const uint8_t *entry = read_section(f, (struct section){place + 16 * number++, 16});
		struct bytes b = bytes_of(entry, entry ? 16 : 0);
		struct section s = take_section(&b);
		if (i != PERF_FEATURE_BUILD_ID && i != PERF_FEATURE_HOSTNAME &&
		    i != PERF_FEATURE_OSRELEASE && i != PERF_FEATURE_ARCH &&
		    i != PERF_FEATURE_CMDLINE && i != PERF_FEATURE_EVENT_DESC)
			continue;
		const uint8_t *bytes = entry && s.size <= FEATURE_MAX ? read_section(f, s) : NULL;
		if (!bytes)
			perf_info_damage(&f->info, "parts of the header are cut off");
		else
			e = perf_info_add_feature(&f->info, i, bytes, (size_t)s.size);
	}
	return e;
}

static struct err *open_file(struct perf_file *f)
{
	const uint8_t *head = read_section(f, (struct section){0, PERF_HEADER_SIZE});
	if (!head)
		return err_new("it is cut off in its header");
	struct bytes b = bytes_of(head + 16, PERF_HEADER_SIZE - 16);
	uint64_t entry = bytes_u64(&b), size = input_size(f->input);
	struct section attrs = take_section(&b), data = take_section(&b);
	uint8_t bits[PERF_FEATURE_BITS / 8];
	memcpy(bits, head + PERF_HEADER_SIZE - sizeof bits, sizeof bits);
	struct err *e = read_events(f, attrs, entry);
	if (e)
		return e;
	if (data.offset > size)
		return err_new("it is cut off before its records");
	if (!data.size) {
		f->info.cut_short = true;
		data.size = size - data.offset;
	} else if (data.size > size - data.offset) {
		perf_info_damage(&f->info, "it is cut off: %llu of %llu bytes of records are there",
				 (unsigned long long)(size - data.offset),
				 (unsigned long long)data.size);
		data.size = size - data.offset;
	} else {
		e = read_features(f, bits, data.offset + data.size);
	}
	f->data_end = data.offset + data.size;
	input_seek(f->input, data.offset);
	return e;
}

static struct err *open_any(struct perf_file *f)
{
	const uint8_t *head = input_next(f->input, PERF_PIPE_HEADER_SIZE);
	if (!head)
		return err_new("it is no perf.data file: too short");
	struct bytes b = bytes_of(head, PERF_PIPE_HEADER_SIZE);
	uint64_t magic = bytes_u64(&b), size = bytes_u64(&b);
	if (magic == PERF_MAGIC_SWAPPED)
		return err_new("it is of a big-endian machine, which is not supported");
	if (magic != PERF_MAGIC) {
		const char *hint = filekind_hint(head, PERF_PIPE_HEADER_SIZE);
		return hint ? err_new("it is no perf.data file, but %s", hint)
			    : err_new("it is no perf.data file");
	}
	f->pipe = size == PERF_PIPE_HEADER_SIZE;
	f->data_end = input_size(f->input);
	if (f->pipe)
		return NULL;
	if (!input_is_seekable(f->input))
		return err_new("a perf.data file cannot be read from a pipe: name the file, or let "
			       "perf record -o - write to the pipe");
	return open_file(f);
}

struct err *perf_file_open(struct input *input, struct perf_file **out)
{
	struct perf_file *f = calloc(1, sizeof *f);
	*out = NULL;
	if (!f)
		return err_new("out of memory");
	f->input = input;
	struct err *e = open_any(f);
	if (e)
		perf_file_close(f);
	else
		*out = f;
	return e;
}

void perf_file_close(struct perf_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		free(f->heap[i]);
	free(f->heap);
	ZSTD_freeDStream(f->zstd);
	buf_free(&f->plain);
	perf_info_free(&f->info);
	free(f);
}

struct perf_info *perf_file_info(struct perf_file *f)
{
	return &f->info;
}

uint64_t perf_file_unknown(const struct perf_file *f)
{
	return f->unknown;
}

/* ---- order ---- */

static bool is_older(const struct waiting *a, const struct waiting *b)
{
	return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void sift_up(struct perf_file *f, size_t at)
{
	while (at && is_older(f->heap[at], f->heap[(at - 1) / 2])) {
		struct waiting *w = f->heap[at];
		f->heap[at] = f->heap[(at - 1) / 2];
		f->heap[(at - 1) / 2] = w;
		at = (at - 1) / 2;
	}
}

static struct waiting *take_oldest(struct perf_file *f)
{
	struct waiting *oldest = f->heap[0], *last = f->heap[--f->count];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < f->count; at = child) {
		if (child + 1 < f->count && is_older(f->heap[child + 1], f->heap[child]))
			child++;
		if (!is_older(f->heap[child], last))
			break;
		f->heap[at] = f->heap[child];
	}
	f->heap[at] = last;
	f->waiting_bytes -= oldest->size;
	return oldest;
}

static struct err *give(struct perf_file *f, const struct perf_event *event, uint64_t time,
			const uint8_t *bytes, size_t size)
{
	struct bytes head = bytes_of(bytes, PERF_RECORD_HEAD);
	struct perf_record r = {.event = event,
				.time = time,
				.body = bytes + PERF_RECORD_HEAD,
				.size = size - PERF_RECORD_HEAD};
	r.type = bytes_u32(&head);
	r.misc = bytes_u16(&head);
	return f->take(f->context, &r);
}

/* Those up to this time, and more where too many wait. */
static struct err *give_waiting(struct perf_file *f, uint64_t until, size_t bytes_left)
{
	struct err *e = NULL;
	while (!e && f->count && (f->heap[0]->time <= until || f->waiting_bytes > bytes_left)) {
		struct waiting *w = take_oldest(f);
		e = give(f, w->event, w->time, w->bytes, w->size);
		free(w);
	}
	return e;
}

static struct err *wait(struct perf_file *f, const struct perf_event *event, uint64_t time,
			const uint8_t *bytes, size_t size)
{
	struct waiting *w = malloc(sizeof *w + size);
	if (!w || !ARRAY_ROOM(f->heap, f->count, f->room)) {
		free(w);
		return err_new("out of memory");
	}
	*w = (struct waiting){time, f->number++, event, size};
	memcpy(w->bytes, bytes, size);
	f->heap[f->count++] = w;
	f->waiting_bytes += size;
	sift_up(f, f->count - 1);
	if (time > f->round_time)
		f->round_time = time;
	return f->waiting_bytes > WAITING_MAX ? give_waiting(f, 0, WAITING_MAX / 2) : NULL;
}

static struct err *end_round(struct perf_file *f)
{
	struct err *e = give_waiting(f, f->last_round_time, SIZE_MAX);
	f->last_round_time = f->round_time;
	return e;
}

/* ---- which event, when ---- */

static uint64_t word_at(const uint8_t *bytes, size_t size, size_t offset)
{
	struct bytes b = bytes_of(bytes, size);
	bytes_take(&b, offset);
	return bytes_u64(&b);
}

/* Words of a sample before its time or its id. */
static unsigned words_before(uint64_t type, uint64_t which)
{
	unsigned words = !!(type & PERF_HAS_IDENTIFIER) + !!(type & PERF_HAS_IP) +
			 !!(type & PERF_HAS_TID);
	if (which == PERF_HAS_ID)
		words += !!(type & PERF_HAS_TIME) + !!(type & PERF_HAS_ADDR);
	return words;
}

/* Words from the end of another record to the beginning of its time or its id. */
static unsigned words_behind(uint64_t type, uint64_t which)
{
	unsigned words = !!(type & PERF_HAS_IDENTIFIER) + !!(type & PERF_HAS_CPU) +
			 !!(type & PERF_HAS_STREAM_ID) + !!(type & PERF_HAS_ID);
	return which == PERF_HAS_TIME ? words + 1 : words;
}

static const struct perf_event *event_of(struct perf_file *f, bool sample, const uint8_t *body,
					 size_t size)
{
	struct perf_info *info = &f->info;
	const struct perf_event *first = info->events;
	uint64_t type = first->sample_type, id;
	if (info->event_count == 1 || (!sample && !first->id_all))
		return first;
	size_t offset;
	if (type & PERF_HAS_IDENTIFIER)
		offset = sample ? 0 : size - 8;
	else if (type & PERF_HAS_ID)
		offset = sample ? 8 * words_before(type, PERF_HAS_ID)
				: size - 8 * (size_t)words_behind(type, PERF_HAS_ID);
	else
		return first;
	if (offset > size || size - offset < 8)
		return sample ? NULL : first;
	id = word_at(body, size, offset);
	const struct perf_event *found = perf_info_find(info, id);
	return found || sample ? found : first;
}

static uint64_t time_of(const struct perf_event *e, bool sample, const uint8_t *body, size_t size)
{
	if (!(e->sample_type & PERF_HAS_TIME) || (!sample && !e->id_all))
		return 0;
	if (sample)
		return word_at(body, size, 8 * words_before(e->sample_type, PERF_HAS_TIME));
	size_t behind = 8 * (size_t)words_behind(e->sample_type, PERF_HAS_TIME);
	return behind <= size ? word_at(body, size, size - behind) : 0;
}

static struct err *take_kernel_record(struct perf_file *f, uint32_t type, const uint8_t *bytes,
				      size_t size)
{
	const uint8_t *body = bytes + PERF_RECORD_HEAD;
	size_t left = size - PERF_RECORD_HEAD;
	bool sample = type == PERF_KERNEL_SAMPLE;
	if (type != PERF_KERNEL_MMAP && type != PERF_KERNEL_MMAP2 && type != PERF_KERNEL_COMM &&
	    type != PERF_KERNEL_FORK && type != PERF_KERNEL_EXIT && type != PERF_KERNEL_LOST &&
	    type != PERF_KERNEL_LOST_SAMPLES && !sample)
		return NULL;
	const struct perf_event *e = f->info.event_count ? event_of(f, sample, body, left) : NULL;
	if (!e) {
		f->unknown += sample;
		return NULL;
	}
	uint64_t time = time_of(e, sample, body, left);
	return time ? wait(f, e, time, bytes, size) : give(f, e, 0, bytes, size);
}

/* ---- records ---- */

static struct err *take_attr(struct perf_file *f, const uint8_t *body, size_t size)
{
	struct bytes b = bytes_of(body, size);
	uint32_t number;
	bytes_u32(&b);
	uint32_t attr = bytes_u32(&b); /* the size that it says of itself */
	if (attr > size) {
		perf_info_damage(&f->info, "the description of an event is damaged");
		return NULL;
	}
	struct err *e = perf_info_add_event(&f->info, body, attr, &number);
	return e ? e : perf_info_add_ids(&f->info, number, body + attr, size - attr);
}

static struct err *take_feature(struct perf_file *f, const uint8_t *body, size_t size)
{
	struct bytes b = bytes_of(body, size);
	uint64_t feature = bytes_u64(&b);
	return feature < PERF_FEATURE_BITS
		       ? perf_info_add_feature(&f->info, (uint32_t)feature, b.at, bytes_left(&b))
		       : NULL;
}

static struct err *decompress(struct perf_file *f, const uint8_t *bytes, size_t size);

/* `size`: of the whole record. */
static struct err *take_record(struct perf_file *f, const uint8_t *bytes, size_t size, bool inner)
{
	struct bytes b = bytes_of(bytes, size);
	uint32_t type = bytes_u32(&b);
	uint16_t misc = bytes_u16(&b);
	const uint8_t *body = bytes + PERF_RECORD_HEAD;
	size_t left = size - PERF_RECORD_HEAD;
	if (type < PERF_OWN_FIRST)
		return take_kernel_record(f, type, bytes, size);
	switch (type) {
	case PERF_OWN_ATTR:
		return f->pipe ? take_attr(f, body, left) : NULL;
	case PERF_OWN_FEATURE:
		return f->pipe ? take_feature(f, body, left) : NULL;
	case PERF_OWN_EVENT_UPDATE:
		perf_info_update(&f->info, body, left);
		return NULL;
	case PERF_OWN_BUILD_ID:
		return perf_info_add_build_id(&f->info, misc, body, left);
	case PERF_OWN_FINISHED_ROUND:
		return end_round(f);
	case PERF_OWN_COMPRESSED:
		return inner ? NULL : decompress(f, body, left);
	case PERF_OWN_COMPRESSED2:
		if (inner || left < 8 || word_at(body, left, 0) > left - 8)
			return NULL;
		return decompress(f, body + 8, (size_t)word_at(body, left, 0));
	default:
		return NULL;
	}
}

/* ---- the compressed stream ---- */

/* The whole records of what was decompressed; false where it makes no sense. */
static struct err *take_plain(struct perf_file *f, bool *sane)
{
	struct err *e = NULL;
	size_t at = 0;
	*sane = true;
	while (!e && f->plain.size - at >= PERF_RECORD_HEAD) {
		const uint8_t *bytes = (const uint8_t *)f->plain.data + at;
		size_t size = (size_t)bytes[6] | (size_t)bytes[7] << 8;
		*sane = size >= PERF_RECORD_HEAD;
		if (!*sane || size > f->plain.size - at)
			break;
		e = take_record(f, bytes, size, true);
		at += size;
	}
	memmove(f->plain.data, f->plain.data + at, f->plain.size - at);
	f->plain.size -= at;
	return e;
}

static struct err *end_stream(struct perf_file *f, const char *why)
{
	perf_info_damage(&f->info,
			 "compressed records are damaged (%s): those after %llu bytes of "
			 "them are missing",
			 why, (unsigned long long)f->plain_total);
	ZSTD_freeDStream(f->zstd);
	f->zstd = NULL;
	f->compressed_total = UINT64_MAX;
	return NULL;
}

static struct err *decompress(struct perf_file *f, const uint8_t *bytes, size_t size)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	struct err *e = NULL;
	bool sane, full = false;
	if (f->compressed_total == UINT64_MAX) /* it is of no use any more */
		return NULL;
	if (!f->zstd)
		f->zstd = ZSTD_createDStream();
	if (!f->zstd)
		return err_new("out of memory");
	f->compressed_total += size;
	while (!e && (in.pos < in.size || full)) {
		if (!buf_reserve(&f->plain, RECORD_MAX))
			return err_new("out of memory");
		ZSTD_outBuffer out = {f->plain.data + f->plain.size, RECORD_MAX, 0};
		size_t status = ZSTD_decompressStream(f->zstd, &out, &in);
		if (ZSTD_isError(status))
			return end_stream(f, ZSTD_getErrorName(status));
		f->plain.size += out.pos;
		f->plain_total += out.pos;
		full = out.pos == out.size;
		if (f->plain_total > PLAIN_MIN && f->plain_total / RATIO_MAX > f->compressed_total)
			return end_stream(f, "they would become too large");
		e = take_plain(f, &sane);
		if (!e && !sane)
			return end_stream(f, "no records are in them");
	}
	return e;
}

/* ---- all of them ---- */

/* What follows these records without being one. */
static uint64_t extra_size(uint32_t type, const uint8_t *bytes, size_t size)
{
	struct bytes b = bytes_of(bytes + PERF_RECORD_HEAD, size - PERF_RECORD_HEAD);
	if (type == PERF_OWN_AUXTRACE)
		return bytes_u64(&b);
	return type == PERF_OWN_TRACING_DATA ? ((uint64_t)bytes_u32(&b) + 7) & ~(uint64_t)7 : 0;
}

/* The next record into `bytes` (RECORD_MAX); its size, 0 at the end. */
static size_t next_record(struct perf_file *f, uint8_t *bytes)
{
	uint64_t place = input_place(f->input), left = f->data_end - place;
	const uint8_t *at = left >= PERF_RECORD_HEAD ? input_next(f->input, PERF_RECORD_HEAD)
						     : NULL;
	if (!at) {
		if (f->data_end != UINT64_MAX && left)
			perf_info_damage(&f->info, "the last record is cut off");
		return 0;
	}
	size_t size = (size_t)at[6] | (size_t)at[7] << 8;
	if (size < PERF_RECORD_HEAD) {
		perf_info_damage(&f->info,
				 "the record at byte %llu makes no sense: those after it are "
				 "missing",
				 (unsigned long long)place);
		return 0;
	}
	memcpy(bytes, at, PERF_RECORD_HEAD);
	at = size <= left ? input_next(f->input, size - PERF_RECORD_HEAD) : NULL;
	if (!at) {
		perf_info_damage(&f->info, "the last record is cut off");
		return 0;
	}
	memcpy(bytes + PERF_RECORD_HEAD, at, size - PERF_RECORD_HEAD);
	return size;
}

static struct err *read_records(struct perf_file *f)
{
	uint8_t bytes[RECORD_MAX];
	struct err *e = NULL;
	size_t size;
	while (!e && (size = next_record(f, bytes))) {
		struct bytes b = bytes_of(bytes, size);
		uint64_t extra = extra_size(bytes_u32(&b), bytes, size);
		e = take_record(f, bytes, size, false);
		if (!e && extra &&
		    (extra > f->data_end - input_place(f->input) || !input_skip(f->input, extra))) {
			perf_info_damage(&f->info, "the last record is cut off");
			break;
		}
	}
	return e;
}

struct err *perf_file_records(struct perf_file *f,
			      struct err *(*take)(void *context, const struct perf_record *record),
			      void *context)
{
	f->take = take;
	f->context = context;
	struct err *e = read_records(f);
	return e ? e : give_waiting(f, UINT64_MAX, 0);
}
