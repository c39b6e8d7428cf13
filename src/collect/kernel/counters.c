/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that the sampler only counts. Each CPU has two tables. The collector tells the sampler to count
 * in the other one, waits until no CPU is at work in the first one any more, and empties it. It does so
 * each second, while processes that have ended are still known (tasks.c), and after all records were read
 * from the ring, so that new processes are known, too.
 */
#include "collect/kernel/counters.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/object.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "collect/kernel/waiting.h"
#include "harvest/recording.h"

#define FLIP_NS 1000000000ull
/* The longest wait for a CPU that is still counting. */
#define PATIENCE_NS 10000000ull

static size_t counters_size(const struct kernel *k)
{
	return (size_t)k->cpus * 2 * KERNEL_COUNTERS * sizeof *k->counting.counters;
}

struct err *counters_open(struct kernel *k)
{
	if (k->every == 1)
		return NULL;
	k->counting.counters = object_map(k, "counters", counters_size(k));
	k->counting.turns = object_map(k, "turns", k->cpus * sizeof *k->counting.turns);
	k->counting.side = object_map(k, ".data.side", sizeof *k->counting.side);
	return k->counting.counters && k->counting.turns && k->counting.side
		       ? NULL
		       : err_errno("cannot map the sampler's memory");
}

void counters_close(struct kernel *k)
{
	if (k->counting.counters)
		munmap(k->counting.counters, counters_size(k));
	if (k->counting.turns)
		munmap(k->counting.turns, k->cpus * sizeof *k->counting.turns);
	if (k->counting.side)
		munmap(k->counting.side, sizeof *k->counting.side);
}

/* Adds a count to the profile. If the code of the place is not known yet, the count waits. */
static struct err *add(struct kernel *k, struct process *p, uint64_t place, uint32_t serial,
		       uint64_t count, counters_key *find)
{
	uint32_t event = KERNEL_COUNTER_EVENT(place), thread;
	uint64_t address = place & CCT_ADDRESS, key = cct_key(false, CCT_KERNEL, address);
	if (serial != KERNEL_SERIAL_KERNEL && !find(k, serial, address, &key))
		return waiting_count(k, p, address, event, count);
	struct err *e = tasks_place_process(k, p, &thread);
	return e ? e : frames_count_place(k, p, thread, key, event, count);
}

static void take(struct kernel *k, uint32_t pid, uint64_t place, uint32_t serial, uint64_t count,
		 counters_key *find)
{
	struct recording_counted *sum = &k->counting.since;
	uint64_t ns = count * k->counting.mean_ns;
	struct process *p = tasks_process(k, (pid_t)pid, KERNEL_COUNTER_CHANGES(place));
	bool good = p && KERNEL_COUNTER_EVENT(place) < k->recording->options.event_count;
	struct err *e = good ? add(k, p, place, serial, count, find) : err_new("of nobody");
	if (e)
		k->unusable += count;
	else
		tasks_add_cost(k, p, count, ns);
	err_free(e);
	sum->samples += count;
	sum->ns += ns;
	sum->places++;
}

void counters_take_one(struct kernel *k, const struct kernel_counted *c, counters_key *find)
{
	k->counting.since.evicted++;
	take(k, c->head.process, c->place, c->serial, c->count, find);
}

static void take_line(struct kernel *k, struct kernel_counters *line, counters_key *find)
{
	for (unsigned i = 0; i < KERNEL_WAYS; i++)
		if (line->counts[i])
			take(k, line->processes[i], line->places[i], line->serials[i],
			     line->counts[i], find);
	if (line->counts[0]) /* free entries are the last ones */
		memset(line, 0, sizeof *line);
}

static void take_side(struct kernel *k, uint32_t side, counters_key *find)
{
	for (unsigned cpu = 0; cpu < k->cpus; cpu++)
		for (uint32_t i = 0; i < KERNEL_COUNTERS; i++)
			take_line(k, &k->counting.counters[(cpu * 2 + side) * KERNEL_COUNTERS + i],
				  find);
}

static void read_cost(struct kernel *k)
{
	uint64_t runs = 0, ns = 0;
	for (unsigned i = 0; i < k->cpus; i++) {
		runs += k->counting.turns[i].runs;
		ns += k->counting.turns[i].ns;
	}
	if (runs > k->counting.runs)
		k->counting.mean_ns = (ns - k->counting.ns) / (runs - k->counting.runs);
	k->counting.runs = runs;
	k->counting.ns = ns;
}

/* Whether a CPU may still be at work in the table that it was told to leave. */
static bool is_counting(const struct kernel *k)
{
	for (unsigned i = 0; i < k->cpus; i++)
		if (__atomic_load_n(&k->counting.turns[i].counting, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

bool counters_switch(struct kernel *k, bool now)
{
	uint64_t time = now_ns();
	if (k->every == 1)
		return false;
	if (!k->counting.flipped && (now || time - k->counting.flipped_ns >= FLIP_NS)) {
		__atomic_store_n(k->counting.side, !*k->counting.side, __ATOMIC_SEQ_CST);
		k->counting.flipped_ns = time;
		k->counting.flipped = true;
	}
	/* This takes less than a microsecond, unless the CPU itself was taken away from the machine. */
	while (k->counting.flipped && is_counting(k))
		if (now_ns() - time > PATIENCE_NS)
			return false;
	return k->counting.flipped;
}

void counters_take(struct kernel *k, counters_key *find)
{
	k->counting.flipped = false;
	read_cost(k);
	take_side(k, !*k->counting.side, find);
}

struct recording_counted counters_sum(struct kernel *k)
{
	struct recording_counted sum = k->counting.since;
	k->counting.since = (struct recording_counted){0};
	return sum;
}
