/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent measures what it does when a call begins, at one call in ARENA_PROBE_EACH. The rest of what a call takes is the
 * same for all: to come to the agent and to go back, and what it does when the call ends. It cannot measure that itself, so
 * it is a number that was measured once.
 *
 * The programs' time is the time that has passed, or their CPU time if that is more: many threads may run at once.
 */
#include "collect/agents/budget.h"

#include <time.h>

#include "base/clock.h"
#include "collect/agents/patches.h"
#include "collect/agents/state.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "safe/probes.h"

#define JUDGE_NS 1000000000ull
#define REST_NS 35u    /* of a call that is timed */
#define COUNTED_NS 10u /* of one that is only counted */

/* ---- the time that has passed ---- */

static uint64_t cpu_ns(const struct process *p)
{
	clockid_t id;
	struct timespec t;
	if (p->foreign || clock_getcpuclockid(p->pid, &id) || clock_gettime(id, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the CPU time of all processes since the last time. */
static uint64_t take_cpu(struct agents *agents)
{
	uint64_t sum = 0;
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (struct process *p = a->processes; p; p = p->agent->next) {
			uint64_t now = cpu_ns(p);
			if (now > p->agent->judged_cpu_ns) {
				sum += now - p->agent->judged_cpu_ns;
				p->agent->judged_cpu_ns = now;
			}
		}
	return sum;
}

/* ---- what the probes have taken ---- */

static void take_load(struct arena_probe *p, void *context)
{
	struct probes *probes = context;
	if (p->number >= probes->count)
		return;
	struct probe_function *f = &probes->functions[p->number];
	uint64_t calls = atomic_exchange(&p->measured, 0);
	uint64_t ns = atomic_exchange(&p->measured_ns, 0);
	f->load_ns += (ns + calls * (f->dropped ? COUNTED_NS : REST_NS)) * ARENA_PROBE_EACH;
}

static void only_count(struct arena_probe *p, void *context)
{
	const uint32_t *number = context;
	if (p->number == *number)
		atomic_store(&p->counted, 1);
}

static void for_all(struct agents *agents, patches_each *each, void *context)
{
	for (struct arena *a = agents->arenas; a; a = a->next)
		patches_for_each(a, each, context);
}

void budget_tick(struct agents *agents)
{
	struct probes *probes = agents->recording->options.probes;
	uint64_t now = now_ns(), passed = now - agents->judged_ns;
	if (!probes || passed < JUDGE_NS)
		return;
	bool first = !agents->judged_ns;
	uint64_t cpu = take_cpu(agents);
	agents->judged_ns = now;
	for_all(agents, take_load, probes);
	/* The first time, it only begins. */
	uint32_t dropped = probes_judge(probes, first ? UINT64_MAX : cpu > passed ? cpu : passed);
	if (dropped)
		for_all(agents, only_count, &(uint32_t){dropped - 1});
}
