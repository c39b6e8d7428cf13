/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Which times off the CPU are sampled. sample.bpf.c uses it.
 *
 * Samples of such time come as if a clock ran while a thread is off the CPU, and rang after times that follow
 * no rhythm: settings.off_ns on average, exponentially distributed. So the samples of an absence are
 * Poisson-distributed. Here it is decided only whether there are any: that is so with a chance of
 * 1 - exp(-ns / off_ns). How many there are is drawn by the collector (kernel/absences.c). Long absences always
 * have some, short ones seldom: the cost is bounded, however often a program waits.
 *
 * Most absences have none. They are over for us when the thread is chosen to run (sched_switch): then its time is added.
 * Only if there is a sample, the CPU is told to take it as soon as the thread runs (`pending`). How long the thread
 * had no CPU is known only then, but the scheduler's own sum (run_delay) has it at any later time, too.
 *
 * Each sample is a walk. On stacks of many thousands of frames that take longer than the program runs from one absence
 * to the next, a thread's samples become rarer: by `rarity`, a power of two, and each counts as so many. That is decided
 * by the walks before, so the sums stay right on average.
 */
#include "collect/kernel/bpf/brake.h"
#include "collect/kernel/bpf/maps.h"

#define OFF_ALWAYS 24 /* times off_ns: the chance of no sample is less than 1 in 10^10 */

struct off {
	uint64_t since;                              /* when it left the CPU; 0: it is running */
	uint64_t chosen;                             /* when it was chosen to run, the last time */
	uint64_t run_delay;                          /* task.sched_info.run_delay when it left */
	uint64_t ran;                                /* task.se.sum_exec_runtime when it left */
	uint64_t preempted;                          /* it could have run on when it left */
	uint32_t waker, waker_process, waker_thread; /* as in struct kernel_off */
	/* Since when it is counted, CLOCK_MONOTONIC; on and off the CPU until it left, or was chosen, the last time. */
	uint64_t begun, cpu_ns, off_ns;
	uint64_t delay_start; /* run_delay when that began */
	uint64_t walked_ran;  /* task.se.sum_exec_runtime at its last sample */
	uint64_t rarity;      /* its samples are 2^rarity times as rare */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off);
} offs SEC(".maps");

/* Bits of the CPU's preempt_count: it handles an interrupt, also what the interrupt has left for later. */
#define IN_INTERRUPT (0xf00000u | 0xf0000u | 0x100u)

/* Returns how long the thread could have run, but had no CPU. Some kernels do not count it. */
INLINE uint64_t run_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/* Counts anew from now on, for a thread that is on a CPU. */
INLINE void restart_sums(struct task_struct *task, struct off *off)
{
	off->cpu_ns = off->off_ns = off->rarity = 0;
	off->delay_start = run_delay(task);
	off->begun = off->chosen = bpf_ktime_get_ns();
}

/* Returns what is known of a thread, from its start on if that is not too long ago. */
INLINE struct off *make_off(struct task_struct *task)
{
	struct off *off = bpf_task_storage_get(&offs, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!off || off->begun)
		return off;
	restart_sums(task, off);
	if (task->start_boottime >= settings.begun) {
		off->begun = task->start_time;
		off->off_ns = off->delay_start;
		off->delay_start = 0;
		off->chosen = off->begun + off->off_ns;
	}
	return off;
}

/* Ends an absence after which the thread was chosen to run, if that was not done when it ran: the programs are not all
   attached, and removed, at once. Some kernels do not even tell of each switch: then its CPU time says when it was. */
INLINE void end_absence(struct task_struct *task, struct off *off, uint64_t now)
{
	uint64_t ran = task->se.sum_exec_runtime - off->ran;
	bool chosen = off->chosen > off->since;
	if (!off->since || (!chosen && !ran))
		return;
	if (!chosen)
		off->chosen = ran < now - off->since ? now - ran : off->since;
	off->off_ns += off->chosen - off->since;
	off->since = 0;
}

/* The sums of a thread until now. */
INLINE void fill_sums(struct kernel_sums *out, struct task_struct *task, const struct off *off,
		      uint64_t now)
{
	struct off at = *off;
	end_absence(task, &at, now);
	uint64_t from = at.since ? at.since : at.chosen, ns = now > from ? now - from : 0;
	uint64_t all = at.off_ns, queued = run_delay(task) - at.delay_start;
	out->begun = at.begun;
	out->cpu_ns = at.cpu_ns + (at.since ? 0 : ns);
	all += at.since ? ns : 0;
	queued += at.since && at.preempted ? ns : 0;
	out->queued_ns = queued < all ? queued : all;
	out->blocked_ns = all - out->queued_ns;
}

/* What tell_waiting() writes: too large for the stack. One reader runs it at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct kernel_waits);
} told SEC(".maps");

/* Returns exp(-x / 2^24) as a fraction of 2^32, for x < OFF_ALWAYS * 2^24: the exponential of a small part
   of it, by its series, squared eight times. */
INLINE uint64_t exp_of_minus(uint64_t x)
{
	uint64_t y = x; /* x / 256 as a fraction of 2^32: at most 24 / 256 */
	uint64_t y2 = y * y >> 32, y3 = y2 * y >> 32, y4 = y3 * y >> 32;
	uint64_t e = (1ull << 32) - y + y2 / 2 - y3 / 6 + y4 / 24;
	for (int i = 0; i < 8; i++)
		e = (e >> 1) * (e >> 1) >> 30;
	return e;
}

#define OFF_MEAN_MOST (1ull << 31) /* ns; what follows has room for twice that */

#define OFF_DEAR 4u /* parts of off_ns: walks that take less are no burden */

/* A thread had a sample, for which `cost` ns were needed. If that is much, walks take a fifth of its CPU time at most
   afterwards, as those of clocks do (brake.h). */
INLINE void set_rarity(struct task_struct *task, struct off *off, uint64_t cost)
{
	uint64_t ran = task->se.sum_exec_runtime - off->walked_ran;
	bool dear = cost * OFF_DEAR >= settings.off_ns;
	off->walked_ran += ran;
	if (dear && ran < BRAKE * cost && settings.off_ns << off->rarity < OFF_MEAN_MOST)
		off->rarity++;
	else if (off->rarity && (!dear || ran > 4 * BRAKE * cost))
		off->rarity--;
}

/* Whether an absence of so many ns has a sample, if there is one in `mean` ns. */
INLINE bool is_off_sampled(uint64_t ns, uint64_t mean)
{
	if (!mean || ns >= OFF_ALWAYS * mean)
		return mean;
	uint64_t chance = bpf_get_prandom_u32();
	/* exp(-x) is at least 1 - x: so much for most short ones */
	if (ns < mean && chance + (ns << 32) / mean < 1ull << 32)
		return false;
	return chance >= exp_of_minus((ns << 24) / mean);
}

/* Whether the thread that was chosen on a CPU has a sample. Beyond so many CPUs, each one is looked at. */
#define PENDING_CPUS 1024
struct {
	uint64_t wanted, others[7]; /* a cache line of its own */
} pending[PENDING_CPUS];

INLINE void set_pending(bool wanted)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	if (cpu < PENDING_CPUS)
		pending[cpu].wanted = wanted;
}

INLINE bool is_pending(void)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	return cpu >= PENDING_CPUS || pending[cpu].wanted;
}
