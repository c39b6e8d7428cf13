/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that the sampler only counts by place, without a walk (recording_options.every). Each second
   they are taken from the sampler's memory into the profile. kernel.c and code.c use it. */
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
/* Each second, or at once if `now`, lets the sampler count in its other tables. Returns whether the
   tables that it has left can be taken. */
bool counters_switch(struct kernel *k, bool now);
/* Finds the key of an address (cct/cct.h) by the list with this serial. False: the list has no code
   there. See code_key. */
typedef bool counters_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key);
/* Takes all counts of the tables that the sampler has left. */
void counters_take(struct kernel *k, counters_key *find);
/* Takes one count that had to make room for another one in its table. */
void counters_take_one(struct kernel *k, const struct kernel_counted *counted, counters_key *find);
/* Returns the totals since the last call. */
struct recording_counted counters_sum(struct kernel *k);
