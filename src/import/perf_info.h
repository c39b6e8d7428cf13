/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a header, which stand in sections of a file or in records of a pipe. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct perf_event;
struct perf_info;

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
