/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which thread waited for which: who woke it, by the wakes of a profile (profile/profile.h). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct buf;
struct err;
struct json;
struct profile;

#define WAITS_UNKNOWN \
	UINT32_MAX /* a waker that is not known: the wait goes on, or there was no room */

struct wait_pair {
	uint32_t thread;
	uint32_t waker;  /* enum profile_waker, or WAITS_UNKNOWN */
	uint8_t reason;  /* enum reason */
	uint64_t count;  /* samples */
	uint64_t waited; /* of these: while the waker waited itself */
};

/* Threads that wait for each other: the first waits for the second, and so on. */
#define WAIT_CHAIN_MAX 8
struct wait_chain {
	uint32_t threads[WAIT_CHAIN_MAX];
	uint32_t length;
	uint64_t count; /* samples of the first, while it waited for the second */
	/* How it ends: the last thread is on a CPU (REASON_ON_CPU), waits for this, or (REASON_COUNT) for a thread
	   that is in the chain already. */
	uint8_t end;
};

struct waits {
	struct wait_pair *pairs; /* the largest first */
	size_t pair_count, pair_room;
	struct wait_chain *chains; /* the largest first */
	size_t chain_count;
	uint64_t total; /* samples of waiting */
};

/* The metric that has wakes: the wanted one, or the first; false if there is none. */
bool waits_metric(const struct profile *profile, uint32_t *metric);
/* `threads`: which waits count, by who waits; NULL: all. */
struct err *waits_make(const struct attribution *attribution, uint32_t metric, const bool *threads,
		       struct waits *out);
void waits_free(struct waits *waits);

/* Appends a line for each pair and chain. `limit`: of each, not more. `min`: least share of a pair. */
void waits_print(const struct waits *waits, const struct profile *profile, uint32_t metric,
		 uint64_t limit, double min, struct buf *out);
/* The members "waits" and "chains" of the JSON object that is open. */
void waits_json(const struct waits *waits, const struct profile *profile, uint64_t limit,
		struct json *out);
