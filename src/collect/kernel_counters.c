/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that the sampler only counts. It has two tables for each CPU: it is
 * told to count in the other ones, and when none is at work in the first any
 * more, those are emptied. That is done each second, while what is known of
 * processes that have ended is still there; and after all that the ring has, so
 * that it is known who began.
 */
#include "collect/kernel_internal.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"

#define FLIP_NS 1000000000ull
#define PATIENCE_NS 10000000ull

static size_t counters_size(const struct kernel *k)
{
	return (size_t)k->cpus * 2 * KERNEL_COUNTERS * sizeof *k->counters;
}

struct err *counters_open(struct kernel *k)
{
	if (k->every == 1)
		return NULL;
	k->counters = kernel_map(k, "counters", counters_size(k));
	k->turns = kernel_map(k, "turns", k->cpus * sizeof *k->turns);
	k->side = kernel_map(k, ".data.side", sizeof *k->side);
	return k->counters && k->turns && k->side ? NULL
						  : err_errno("cannot map the sampler's memory");
}

void counters_close(struct kernel *k)
{
	if (k->counters)
		munmap(k->counters, counters_size(k));
	if (k->turns)
		munmap(k->turns, k->cpus * sizeof *k->turns);
	if (k->side)
		munmap(k->side, sizeof *k->side);
}

static struct err *add(struct session *s, struct process *p, uint64_t place, uint32_t serial,
		       uint64_t count)
{
	uint32_t event = KERNEL_COUNTER_EVENT(place), thread;
	uint64_t address = place & CCT_ADDRESS, key = cct_key(false, CCT_KERNEL, address);
	if (serial != KERNEL_INSIDE && !code_key(s->kernel, serial, address, &key))
		return paths_wait(s, p, address, event, count);
	struct err *e = tasks_keep_process(s, p, &thread);
	return e ? e : paths_count_place(s, p, thread, key, event, count);
}

static void take(struct session *s, uint32_t pid, uint64_t place, uint32_t serial, uint64_t count)
{
	struct session_counted *sum = &s->kernel->counted;
	uint64_t ns = count * s->kernel->count_mean_ns;
	struct process *p = tasks_process(s, (pid_t)pid, KERNEL_COUNTER_CHANGES(place));
	bool good = p && KERNEL_COUNTER_EVENT(place) < s->options.event_count;
	struct err *e = good ? add(s, p, place, serial, count) : err_new("of nobody");
	if (e)
		s->kernel->confused += count;
	else
		tasks_add_cost(s, p, count, ns);
	err_free(e);
	sum->samples += count;
	sum->ns += ns;
	sum->places++;
}

void counters_take_one(struct session *s, const struct kernel_counted *c)
{
	s->kernel->counted.evicted++;
	take(s, c->head.process, c->place, c->serial, c->count);
}

static void take_line(struct session *s, struct kernel_counters *line)
{
	for (unsigned i = 0; i < KERNEL_WAYS; i++)
		if (line->counts[i])
			take(s, line->processes[i], line->places[i], line->serials[i],
			     line->counts[i]);
	if (line->counts[0]) /* free ones are the last */
		memset(line, 0, sizeof *line);
}

static void take_side(struct session *s, uint32_t side)
{
	struct kernel *k = s->kernel;
	for (unsigned cpu = 0; cpu < k->cpus; cpu++)
		for (uint32_t i = 0; i < KERNEL_COUNTERS; i++)
			take_line(s, &k->counters[(cpu * 2 + side) * KERNEL_COUNTERS + i]);
}

static void read_cost(struct kernel *k)
{
	uint64_t runs = 0, ns = 0;
	for (unsigned i = 0; i < k->cpus; i++) {
		runs += k->turns[i].runs;
		ns += k->turns[i].ns;
	}
	if (runs > k->count_runs)
		k->count_mean_ns = (ns - k->count_ns) / (runs - k->count_runs);
	k->count_runs = runs;
	k->count_ns = ns;
}

/* Whether a CPU may still be at work in the table that it was told to leave. */
static bool is_counting(const struct kernel *k)
{
	for (unsigned i = 0; i < k->cpus; i++)
		if (__atomic_load_n(&k->turns[i].counting, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

bool counters_flip(struct kernel *k, bool now)
{
	uint64_t time = now_ns();
	if (k->every == 1)
		return false;
	if (!k->flipped && (now || time - k->flipped_ns >= FLIP_NS)) {
		__atomic_store_n(k->side, !*k->side, __ATOMIC_SEQ_CST);
		k->flipped_ns = time;
		k->flipped = true;
	}
	/* That takes less than a microsecond, unless the CPU itself was taken away. */
	while (k->flipped && is_counting(k))
		if (now_ns() - time > PATIENCE_NS)
			return false;
	return k->flipped;
}

void counters_take(struct session *s)
{
	struct kernel *k = s->kernel;
	k->flipped = false;
	read_cost(k);
	take_side(s, !*k->side);
}
