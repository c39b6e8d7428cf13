/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights: how many periods a sample stands for.
 *
 * A sample of a clock that counts all CPU time may stand for several periods, or for none: ticks while the
 * kernel works come as one signal at its end, and POSIX timers are only as exact as the kernel's own tick. So
 * the thread's CPU clock tells the weight.
 *
 * Any other sample stands for itself, and for those that were skipped before it because they came too early.
 *
 * The first event may also have one sample by chance: at a random time in the thread's first period. It is a
 * fair share for threads shorter than a period, but for all others it is half a sample too much. So every
 * other thread leaves out the first tick of its period.
 */
#include "agent/agent.h"

#include <time.h>

#define CLOCK_EVERY 16u /* samples between two looks at the CPU clock */

static void ask_clock(struct agent_thread *t)
{
	uint64_t now = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	t->credit += (int64_t)(now - t->cpu_last);
	t->cpu_last = now;
	t->unasked = 0;
	atomic_store_explicit(&t->shared.cpu_ns, now, memory_order_relaxed);
}

static uint64_t weigh_clock(struct agent_thread *t)
{
	uint64_t period = agent.events[0].period;
	ask_clock(t);
	if (!t->shared.samples[0]) { /* it comes by chance, and stands for all time until now */
		uint64_t until_now = ((uint64_t)t->credit + period - 1) / period;
		t->credit = 0;
		return until_now ? until_now : 1;
	}
	int64_t weight = (t->credit + (int64_t)(period / 2)) / (int64_t)period;
	if (weight < 1)
		return 0;
	t->credit -= weight * (int64_t)period;
	return (uint64_t)weight;
}

/* The test for the CPU time: if the first tick came while the kernel worked, it is the collector that
   leaves it out, and the first one here comes later. */
static bool is_left_out(struct agent_thread *t, bool by_chance)
{
	if (!agent.chance || by_chance || t->ticked)
		return false;
	t->ticked = true;
	bool coin = t->shared.start_ns * UINT64_C(0x9e3779b97f4a7c15) >> 63;
	return t->cpu_last - t->shared.cpu_start_ns < agent.events[0].period * 5 / 2 && coin;
}

uint64_t weight_of(struct agent_thread *t, uint32_t event, bool by_chance)
{
	uint64_t count = 1 + t->skipped[event];
	t->skipped[event] = 0;
	if (event)
		return count;
	if (agent.events[0].clock && agent.events[0].period)
		return weigh_clock(t);
	if (t->shared.samples[0] < CLOCK_EVERY || ++t->unasked >= CLOCK_EVERY)
		ask_clock(t);
	return is_left_out(t, by_chance) ? 0 : count;
}
