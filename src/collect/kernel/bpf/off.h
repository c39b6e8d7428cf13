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
 */
#include "collect/kernel/bpf/maps.h"

#define OFF_ALWAYS 24 /* times off_ns: the chance of no sample is less than 1 in 10^10 */

struct off {
	uint64_t since;                              /* when it left the CPU; 0: it is running */
	uint64_t chosen;                             /* when it was chosen to run, the last time */
	uint64_t run_delay;                          /* task.sched_info.run_delay when it left */
	uint64_t preempted;                          /* it could have run on when it left */
	uint32_t waker, waker_process, waker_thread; /* as in struct kernel_off */
	struct kernel_sums sums; /* until it left, or was chosen, the last time */
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
INLINE void restart_sums(struct off *off)
{
	__builtin_memset(&off->sums, 0, sizeof off->sums);
	off->sums.begun = off->chosen = bpf_ktime_get_ns();
}

/* Returns what is known of a thread, from its start on if that is not too long ago. */
INLINE struct off *make_off(struct task_struct *task)
{
	struct off *off = bpf_task_storage_get(&offs, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!off || off->sums.begun)
		return off;
	restart_sums(off);
	if (task->start_boottime >= settings.begun) {
		off->sums.begun = task->start_time;
		off->sums.queued_ns = run_delay(task);
		off->chosen = off->sums.begun + off->sums.queued_ns;
	}
	return off;
}

/* The sums of a thread until now. */
INLINE void fill_sums(struct kernel_sums *out, const struct off *off, uint64_t now)
{
	uint64_t from = off->since ? off->since : off->chosen, ns = now > from ? now - from : 0;
	*out = off->sums;
	if (!off->since)
		out->cpu_ns += ns;
	else if (off->preempted)
		out->queued_ns += ns;
	else
		out->blocked_ns += ns;
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

/* Whether an absence of so many ns has a sample. */
INLINE bool is_off_sampled(uint64_t ns)
{
	uint64_t mean = settings.off_ns;
	if (!mean || ns >= OFF_ALWAYS * mean)
		return mean;
	return bpf_get_prandom_u32() >= exp_of_minus((ns << 24) / mean);
}
