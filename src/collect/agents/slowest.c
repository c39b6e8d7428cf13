/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that is kept refers to the sums of its path, in the tree of its thread. So it is taken together with this tree: for
 * good when the thread has ended, and else for a look.
 */
#include "collect/agents/slowest.h"

#include "base/clock.h"
#include "collect/agents/patches_tree.h"
#include "collect/agents/programs.h"
#include "collect/agents/state.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "safe/probes.h"
#include "safe/slowest.h"
#include "safe/ticks.h"

_Static_assert(ARENA_SLOWEST_MAX - ARENA_SLOWEST_SPARE == PROBE_SLOWEST_MAX, "as many");

size_t slowest_size(uint32_t wanted)
{
	return sizeof(struct arena_slowest) +
	       (wanted + ARENA_SLOWEST_SPARE) * sizeof(struct arena_slow);
}

/* ---- when a call began ---- */

static struct {
	uint64_t ns, ticks;
} first;

void slowest_begin(void)
{
	if (first.ns)
		return;
	first.ns = now_ns();
	first.ticks = ticks_now();
}

/* The longer ago the first tick is, the better its rate is known. */
static uint64_t ns_at(uint64_t ticks)
{
	uint64_t ns = now_ns(), now = ticks_now();
	if (ticks < first.ticks || ticks >= now)
		return ns; /* of an emulator, which has ticks of its own */
	return first.ns + (uint64_t)((unsigned __int128)(ticks - first.ticks) * (ns - first.ns) /
				     (now - first.ticks));
}

/* ---- lists ---- */

static const struct arena_slowest *list_at(const struct arena *a, uint64_t reference)
{
	const struct arena_slowest *list;
	uint64_t at = reference * 8;
	if (!reference || reference > a->size / 8 || a->size - at < sizeof *list)
		return NULL;
	list = (const void *)((const char *)a->header + at);
	uint32_t count = list->count;
	bool whole = count <= ARENA_SLOWEST_MAX &&
		     count * sizeof(struct arena_slow) <= a->size - at - sizeof *list;
	return whole ? list : NULL;
}

static void keep(struct probes *probes, uint32_t number, const struct arena_slow *s, uint64_t ns,
		 struct probe_slow *call)
{
	call->ns = ns;
	call->begun = ns_at(s->since);
	probes_keep_slow(probes, number, call);
}

void slowest_take(const struct patches_tree *tree, const struct arena_probe_sums *sums,
		  uint64_t reference, uint32_t node)
{
	const struct arena_thread *record = tree->record;
	uint32_t chunk = (uint32_t)(((const char *)record - (const char *)tree->arena->header) >>
				    ARENA_CHUNK_BITS);
	const struct arena_slowest *list = list_at(tree->arena, sums->slowest);
	struct arena_slow s;
	uint64_t ns;
	for (uint32_t i = 0; list && i < list->count && i < ARENA_SLOWEST_MAX; i++) {
		if (!slowest_read(&list->all[i], &s, &ns) || s.sums != reference ||
		    s.record != chunk || s.generation != record->generation)
			continue;
		struct probe_slow call = {.process = (uint32_t)tree->pid,
					  .thread = (uint32_t)tree->tid,
					  .node = node};
		keep(tree->recording->options.probes, sums->number, &s, ns, &call);
	}
}

static const struct process *process_of(const struct arena *a, int32_t namespace_pid)
{
	for (const struct process *p = a->processes; p; p = p->agent->next)
		if (p->namespace_pid == namespace_pid)
			return p;
	return NULL;
}

void slowest_take_others(struct recording *recording, const struct arena *a,
			 const struct arena_probe *probe)
{
	const struct arena_slowest *list = list_at(a, probe->slowest);
	struct arena_slow s;
	uint64_t ns;
	for (uint32_t i = 0; list && i < list->count && i < ARENA_SLOWEST_MAX; i++) {
		if (!slowest_read(&list->all[i], &s, &ns) || s.record)
			continue;
		const struct process *p = process_of(a, s.process);
		struct probe_slow call = {.process = (uint32_t)(p ? p->pid : s.process),
					  .thread = (uint32_t)(p ? program_tid(p, s.tid) : s.tid)};
		keep(recording->options.probes, probe->number, &s, ns, &call);
	}
}
