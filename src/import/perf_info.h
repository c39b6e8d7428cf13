/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a header, which stand in sections of a file or in records of a pipe. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define PERF_EVENTS_MAX 256u

struct perf_event {
	char *name; /* "cycles:u"; NULL: not told */
	uint32_t type;
	uint64_t config, period; /* or frequency: */
	bool frequency, id_all, no_kernel;
	uint64_t sample_type, read_format, branches, registers;
	uint32_t max_stack; /* frames of a call chain; 0: the kernel's usual limit */
};

struct perf_id {
	uint64_t id;
	uint32_t event;
};

struct perf_build_id {
	struct perf_build_id *chain;
	char hex[2 * 20 + 1];
	char path[];
};
#define PERF_BUILD_ID_BUCKETS 4096u

struct perf_info {
	struct perf_event *events;
	size_t event_count;
	struct perf_id *ids; /* ascending once sorted */
	size_t id_count, id_room;
	bool ids_sorted;
	struct perf_build_id *build_ids[PERF_BUILD_ID_BUCKETS];
	size_t build_id_count;
	char *host, *release, *arch, *command; /* NULL: not told */
	bool cut_short;                        /* perf did not end in order */
	struct buf damage;                     /* what was left out, "; " between */
};

/* A struct perf_event_attr of `size` bytes; its number. */
struct err *perf_info_add_event(struct perf_info *info, const uint8_t *attr, size_t size,
				uint32_t *number);
/* `size` bytes of ids of an event. */
struct err *perf_info_add_ids(struct perf_info *info, uint32_t event, const uint8_t *ids,
			      size_t size);
/* A feature that is of use; others are passed over. */
struct err *perf_info_add_feature(struct perf_info *info, uint32_t feature, const uint8_t *bytes,
				  size_t size);
/* One entry of the list of build-ids, without its head. */
struct err *perf_info_add_build_id(struct perf_info *info, uint16_t misc, const uint8_t *body,
				   size_t size);
/* Another name, unit, … of an event, in a pipe. */
void perf_info_update(struct perf_info *info, const uint8_t *body, size_t size);

/* The event of an id, or NULL. */
const struct perf_event *perf_info_find(struct perf_info *info, uint64_t id);

/* Notes damage, each text once. */
void perf_info_damage(struct perf_info *info, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void perf_info_free(struct perf_info *info);

/* The build-id that the file tells for a path, or NULL. */
const char *perf_info_build_id(const struct perf_info *info, const char *path);
uint32_t perf_info_event_number(const struct perf_info *info, const struct perf_event *event);
