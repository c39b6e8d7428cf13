/* SPDX-License-Identifier: Apache-2.0 */
#include "import/perf_info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "import/bytes.h"
#include "import/perf_format.h"

#define ATTR_MIN 64u /* of the first version of struct perf_event_attr */
#define IDS_MAX (1u << 22)
#define BUILD_IDS_MAX 65536u
#define ARGUMENTS_MAX 4096u
#define DAMAGE_MAX 1000u /* characters */

void perf_info_damage(struct perf_info *info, const char *format, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (info->damage.size > DAMAGE_MAX || strstr(buf_text(&info->damage), text))
		return;
	buf_printf(&info->damage, "%s%s", info->damage.size ? "; " : "", text);
}

void perf_info_free(struct perf_info *info)
{
	for (size_t i = 0; i < info->event_count; i++)
		free(info->events[i].name);
	for (size_t i = 0; i < PERF_BUILD_ID_BUCKETS; i++)
		for (struct perf_build_id *b = info->build_ids[i], *next; b; b = next) {
			next = b->chain;
			free(b);
		}
	free(info->events);
	free(info->ids);
	free(info->host);
	free(info->release);
	free(info->arch);
	free(info->command);
	buf_free(&info->damage);
}

/* ---- events ---- */

static struct perf_event read_attr(const uint8_t *attr, size_t size)
{
	uint8_t whole[112] = {0}; /* what an older version lacks is zero */
	memcpy(whole, attr, size < sizeof whole ? size : sizeof whole);
	struct bytes b = bytes_of(whole, sizeof whole);
	struct perf_event e = {0};
	e.type = bytes_u32(&b);
	bytes_u32(&b); /* its own size */
	e.config = bytes_u64(&b);
	e.period = bytes_u64(&b);
	e.sample_type = bytes_u64(&b);
	e.read_format = bytes_u64(&b);
	uint64_t bits = bytes_u64(&b);
	e.no_kernel = bits & PERF_ATTR_NO_KERNEL;
	e.frequency = bits & PERF_ATTR_FREQ;
	e.id_all = bits & PERF_ATTR_ID_ALL;
	b.at = whole + 72;
	e.branches = bytes_u64(&b);
	e.registers = bytes_u64(&b);
	b.at = whole + 108;
	e.max_stack = bytes_u16(&b);
	return e;
}

/* All room at once: events are pointed at. */
struct err *perf_info_add_event(struct perf_info *info, const uint8_t *attr, size_t size,
				uint32_t *number)
{
	if (size < ATTR_MIN)
		return err_new("the description of an event is too short");
	if (info->event_count == PERF_EVENTS_MAX)
		return err_new("there are more than %u events", PERF_EVENTS_MAX);
	if (!info->events)
		info->events = calloc(PERF_EVENTS_MAX, sizeof *info->events);
	if (!info->events)
		return err_new("out of memory");
	*number = (uint32_t)info->event_count;
	info->events[info->event_count++] = read_attr(attr, size);
	return NULL;
}

struct err *perf_info_add_ids(struct perf_info *info, uint32_t event, const uint8_t *ids,
			      size_t size)
{
	size_t count = size / 8;
	struct bytes b = bytes_of(ids, size);
	if (count > IDS_MAX - info->id_count)
		return err_new("there are too many ids of events");
	if (info->id_count + count > info->id_room) {
		size_t room = 2 * (info->id_count + count);
		struct perf_id *more = reallocarray(info->ids, room, sizeof *more);
		if (!more)
			return err_new("out of memory");
		info->ids = more;
		info->id_room = room;
	}
	for (size_t i = 0; i < count; i++)
		info->ids[info->id_count++] = (struct perf_id){bytes_u64(&b), event};
	info->ids_sorted = false;
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	const struct perf_id *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

const struct perf_event *perf_info_find(struct perf_info *info, uint64_t id)
{
	const struct perf_id wanted = {id, 0};
	if (!info->id_count)
		return NULL;
	if (!info->ids_sorted)
		qsort(info->ids, info->id_count, sizeof *info->ids, compare_ids);
	info->ids_sorted = true;
	const struct perf_id *found = bsearch(&wanted, info->ids, info->id_count, sizeof *info->ids,
					      compare_ids);
	return found ? &info->events[found->event] : NULL;
}

uint32_t perf_info_event_number(const struct perf_info *info, const struct perf_event *event)
{
	return (uint32_t)(event - info->events);
}

/* ---- features ---- */

/* Text of at most `size` bytes that ends at a zero, malloc'ed. */
static char *text_of(const uint8_t *bytes, size_t size)
{
	return strndup((const char *)bytes, size);
}

/* Its length, with padding, comes first. NULL where it does not fit. */
static char *take_text(struct bytes *b)
{
	uint32_t size = bytes_u32(b);
	const uint8_t *text = bytes_take(b, size);
	return text ? text_of(text, size) : NULL;
}

static bool set_text(char **text, struct bytes *b)
{
	char *new = take_text(b);
	if (new) {
		free(*text);
		*text = new;
	}
	return new;
}

static bool set_command(struct perf_info *info, struct bytes *b)
{
	uint32_t count = bytes_u32(b);
	struct buf all = {0};
	for (uint32_t i = 0; i < count && i < ARGUMENTS_MAX && !b->bad; i++) {
		char *text = take_text(b);
		if (text)
			buf_printf(&all, "%s%s", i ? " " : "", text);
		free(text);
	}
	free(info->command);
	info->command = buf_take(&all);
	return !b->bad;
}

static void set_name(struct perf_event *e, char *name)
{
	free(e->name);
	e->name = name;
}

static bool set_descriptions(struct perf_info *info, struct bytes *b)
{
	uint32_t count = bytes_u32(b), attr_size = bytes_u32(b);
	for (uint32_t i = 0; i < count && !b->bad; i++) {
		bytes_take(b, attr_size);
		uint32_t id_count = bytes_u32(b);
		char *name = take_text(b);
		uint64_t first = id_count ? bytes_u64(b) : 0;
		bytes_take(b, id_count ? 8 * (uint64_t)(id_count - 1) : 0);
		const struct perf_event *e = id_count ? perf_info_find(info, first) : NULL;
		uint32_t number = e ? perf_info_event_number(info, e) : i;
		if (name && !b->bad && number < info->event_count)
			set_name(&info->events[number], name);
		else
			free(name);
	}
	return !b->bad;
}

void perf_info_update(struct perf_info *info, const uint8_t *body, size_t size)
{
	enum { UPDATE_NAME = 2 };
	struct bytes b = bytes_of(body, size);
	uint64_t what = bytes_u64(&b);
	const struct perf_event *e = perf_info_find(info, bytes_u64(&b));
	if (!b.bad && what == UPDATE_NAME && e)
		set_name(&info->events[perf_info_event_number(info, e)],
			 text_of(b.at, bytes_left(&b)));
}

/* ---- build-ids ---- */

static struct perf_build_id **bucket_of(const struct perf_info *info, const char *path)
{
	uint32_t hash = 0;
	for (; *path; path++)
		hash = hash * 31 + (unsigned char)*path;
	return (struct perf_build_id **)&info->build_ids[hash % PERF_BUILD_ID_BUCKETS];
}

static struct perf_build_id *find_build_id(struct perf_build_id *b, const char *path)
{
	while (b && strcmp(b->path, path) != 0)
		b = b->chain;
	return b;
}

const char *perf_info_build_id(const struct perf_info *info, const char *path)
{
	const struct perf_build_id *b = find_build_id(*bucket_of(info, path), path);
	return b ? b->hex : NULL;
}

struct err *perf_info_add_build_id(struct perf_info *info, uint16_t misc, const uint8_t *body,
				   size_t size)
{
	struct bytes b = bytes_of(body, size);
	bytes_u32(&b); /* whose: 0 or -1, or a guest */
	const uint8_t *id = bytes_take(&b, 24);
	size_t length = 20, left = bytes_left(&b);
	if (!id || info->build_id_count == BUILD_IDS_MAX)
		return NULL;
	if (misc & PERF_MISC_BUILD_ID_SIZE && id[20] <= 20)
		length = id[20];
	struct perf_build_id *new = calloc(1, sizeof *new + left + 1);
	if (!new)
		return err_new("out of memory");
	memcpy(new->path, b.at, left);
	for (size_t i = 0; i < length; i++)
		snprintf(new->hex + 2 * i, 3, "%02x", id[i]);
	struct perf_build_id **bucket = bucket_of(info, new->path);
	if (!length || find_build_id(*bucket, new->path)) {
		free(new);
		return NULL;
	}
	new->chain = *bucket;
	*bucket = new;
	info->build_id_count++;
	return NULL;
}

static struct err *add_build_ids(struct perf_info *info, struct bytes *b)
{
	struct err *e = NULL;
	while (!e && bytes_left(b) >= PERF_RECORD_HEAD) {
		bytes_u32(b); /* the type is not always set */
		uint16_t misc = bytes_u16(b), size = bytes_u16(b);
		const uint8_t *body = size < PERF_RECORD_HEAD
					      ? NULL
					      : bytes_take(b, size - PERF_RECORD_HEAD);
		if (!body) {
			b->bad = true;
			break;
		}
		e = perf_info_add_build_id(info, misc, body, size - PERF_RECORD_HEAD);
	}
	return e;
}

struct err *perf_info_add_feature(struct perf_info *info, uint32_t feature, const uint8_t *bytes,
				  size_t size)
{
	struct bytes b = bytes_of(bytes, size);
	struct err *e = NULL;
	bool good = true;
	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		e = add_build_ids(info, &b);
		good = !b.bad;
		break;
	case PERF_FEATURE_HOSTNAME:
		good = set_text(&info->host, &b);
		break;
	case PERF_FEATURE_OSRELEASE:
		good = set_text(&info->release, &b);
		break;
	case PERF_FEATURE_ARCH:
		good = set_text(&info->arch, &b);
		break;
	case PERF_FEATURE_CMDLINE:
		good = set_command(info, &b);
		break;
	case PERF_FEATURE_EVENT_DESC:
		good = set_descriptions(info, &b);
		break;
	default:
		break;
	}
	if (!good)
		perf_info_damage(info, "a part of the header (feature %u) is damaged", feature);
	return e;
}
