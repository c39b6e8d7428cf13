/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A perf.data file: what its header tells, and its records in the order of
 * their times. Every byte is foreign. What is damaged is left out and said in
 * `damage`, the rest is used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;
struct input;

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

struct perf_record {
	uint32_t type; /* PERF_KERNEL_… */
	uint16_t misc;
	const struct perf_event *event; /* never NULL */
	uint64_t time;                  /* 0: not told */
	const uint8_t *body;            /* after the head */
	size_t size;
};

struct perf_file;

/* Reads the header. `input` must stay. */
struct err *perf_file_open(struct input *input, struct perf_file **out);
void perf_file_close(struct perf_file *file); /* NULL is fine */

/* Gives every record of the kernel's to `take`, which may stop by an error. Of a pipe, events and
   the like are known as far as it was read. */
struct err *perf_file_records(struct perf_file *file,
			      struct err *(*take)(void *context, const struct perf_record *record),
			      void *context);

struct perf_info *perf_file_info(struct perf_file *file);
/* Samples that no event is known for. */
uint64_t perf_file_unknown(const struct perf_file *file);

/* The build-id that the file tells for a path, or NULL. */
const char *perf_info_build_id(const struct perf_info *info, const char *path);
uint32_t perf_info_event_number(const struct perf_info *info, const struct perf_event *event);
