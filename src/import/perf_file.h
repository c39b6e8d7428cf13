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

#include "import/perf_info.h"

struct err;
struct input;

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
