/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a sample that are of use. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event;

struct perf_sample {
	uint64_t ip, period; /* period: 0 where it is not told */
	uint32_t process, thread;
	const uint8_t *chain; /* chain_count words (perf_sample_word) */
	uint64_t chain_count;
	uint64_t registers_abi;   /* PERF_REGISTERS_…; 0: none */
	const uint8_t *registers; /* a word for each bit of the event's mask */
	const uint8_t *stack;     /* from SP on */
	uint64_t stack_size;
	uint64_t stack_wanted; /* what perf was told to copy */
};

/* False where the record is shorter than what it says to hold. */
bool perf_sample_parse(const struct perf_event *event, const uint8_t *body, size_t size,
		       struct perf_sample *out);

uint64_t perf_sample_word(const uint8_t *words, uint64_t index);
