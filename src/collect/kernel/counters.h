/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that the sampler only counts. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct kernel_counted;
struct recording_counted;

struct err *counters_open(struct kernel *k);
void counters_close(struct kernel *k);
/* Every now and then, or now, lets the sampler count elsewhere; whether there is something to take. */
bool counters_flip(struct kernel *k, bool now);
/* The key of a place (cct/cct.h) in the code of a list; false where that has none there. */
typedef bool counters_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key);
void counters_take(struct kernel *k, counters_key *find);
/* What had to make room. */
void counters_take_one(struct kernel *k, const struct kernel_counted *counted, counters_key *find);
/* What was counted since this was called last. */
struct recording_counted counters_sum(struct kernel *k);
