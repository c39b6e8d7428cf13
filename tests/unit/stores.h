/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Databases with intervals that are all alike, and what tests ask of them. */
#include "scratch.h"

#include "base/err.h"
#include "profile/profile.h"
#include "store/internal.h"
#include "store/read.h"
#include "store/store.h"

#define START INT64_C(1794700800000) /* a whole day, in UTC */
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define ALL_TIME .from_ms = 0, .to_ms = INT64_MAX / 4, .user = -1

static inline void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static inline void bad(struct err *e, const char *why)
{
	if (!e || !strstr(err_text(e), why))
		fail_msg("not '%s' but '%s'", why, e ? err_text(e) : "no error");
	assert_null(strchr(err_text(e), '\n'));
	err_free(e);
}

/* One interval: two processes in two images; of each sample at 0x1100 four others have no path. */
static const struct store_image images[] = {
	{PROFILE_FILE, "/bin/app", "0123", 0},
	{PROFILE_FILE, "/lib/libc.so", "abcd", 0},
};
static const struct store_symbol symbols[] = {
	{1, 0x1000, 0x100, "main"},
	{1, 0x1100, 0x100, "solve"},
	{2, 0x500, 0x80, "memcpy"},
};
static const struct store_process processes[] = {
	{10, START, "app", "app --fast", 1000, ""},
	{11, START, "app", "app --slow", 1000, "c0ffee"},
};
static const struct store_node nodes[] = {
	{0, 1, PROFILE_CALL, 0x1010},
	{1, 1, PROFILE_EXACT, 0x1100},
	{1, 2, PROFILE_EXACT, 0x510},
};
static const struct store_count counts[] = {
	{1, 1, 0, 0x1100, 40}, {1, 1, 0, 0x1100, 10}, {2, 2, 0, 0x510, 25},
	{0, 0, 0, 0xdead, 5},  {1, 2, 1, 0x510, 3},
};
static const struct store_path paths[] = {{2, 1, 0, 10}, {3, 2, 0, 5}};
static const struct store_loss losses[] = {{STORE_LOST, "ring full", 7},
					   {STORE_UNKNOWN, "process gone", 5}};

static inline struct store_interval make_interval(uint64_t number)
{
	return (struct store_interval){
		.number = number,
		.start_ms = START + (int64_t)(number - 1) * MINUTE,
		.end_ms = START + (int64_t)number * MINUTE,
		.images = images,
		.image_count = 2,
		.symbols = symbols,
		.symbol_count = 3,
		.processes = processes,
		.process_count = 2,
		.nodes = nodes,
		.node_count = 3,
		.counts = counts,
		.count_count = 5,
		.paths = paths,
		.path_count = 2,
		.losses = losses,
		.loss_count = 2,
		.cost = {1000000, 20 << 20, 5000, 10},
	};
}

static inline struct store_epoch make_epoch(int64_t start_ms)
{
	static const struct store_event events[] = {{"cycles", "cycles", 1000, 5, false},
						    {"imiss", "misses", 100, 0, true}};
	return (struct store_epoch){.host = "host",
				    .kernel = "6.1",
				    .machine = "aarch64",
				    .cpu = "cpu",
				    .version = "1",
				    .note = "",
				    .cpus = 2,
				    .hz = 5000,
				    .start_ms = start_ms,
				    .events = events,
				    .event_count = 2};
}

static inline int64_t begin_as(struct store *s, int64_t start_ms, bool continues)
{
	struct store_epoch epoch = make_epoch(start_ms);
	int64_t id;
	epoch.continues = continues;
	good(store_begin_epoch(s, &epoch, &id));
	return id;
}

static inline int64_t begin(struct store *s, int64_t start_ms)
{
	return begin_as(s, start_ms, false);
}

static inline void add(struct store *s, int64_t epoch, uint64_t number, bool wanted)
{
	struct store_interval v = make_interval(number);
	bool added;
	good(store_add(s, epoch, &v, &added));
	assert_int_equal(added, wanted);
}

static inline struct store *fresh(const char *name)
{
	struct store *s;
	unlink(scratch(name));
	good(store_open(scratch(name), STORE_CREATE, &s));
	return s;
}

static inline uint64_t samples_of(struct store *s, const struct read_choice *choice,
				  const char *event)
{
	struct read_samples x;
	uint64_t sum = 0;
	good(read_samples(s, choice, &x));
	for (size_t i = 0; i < x.count_count; i++)
		if (!strcmp(x.events[x.counts[i].event].name, event))
			sum += x.counts[i].count;
	read_samples_free(&x);
	return sum;
}

static inline uint64_t all_samples(struct store *s)
{
	return samples_of(s, &(struct read_choice){ALL_TIME}, "cycles");
}

static inline void tidy_all(struct store *s, const struct store_policy *policy, int64_t now_ms,
			    struct store_tidied *tidied)
{
	*tidied = (struct store_tidied){.more = true};
	for (int i = 0; tidied->more; i++) {
		assert_true(i < 10000);
		good(store_tidy(s, policy, now_ms, 1, tidied));
	}
}
