/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Calls of chosen functions: how many there are, by which path, and how long they take. sample.bpf.c uses it.
 *
 * A probe is at the first instruction of a function, and one at each instruction by which it is left: returns, and
 * jumps to other functions. Return addresses are never changed, as uretprobes would do it: exceptions, debuggers, other
 * unwinders and our own walk find the stack as the program made it.
 *
 * The path is walked when a call begins, and counted as the paths of reads and writes are (io.h): in `transfers`, and
 * only the first call of a path sends it. What is known when a call ends is added up in `timings`, with the same key.
 *
 * `activities` has the calls that have not ended, by process, function and SP at the entry. A call and its end have the
 * same SP, and no two living frames of a process have the same. So it does not matter in which order calls end, nor on
 * which thread: coroutines, signal handlers and fibers need no care.
 *
 * A call may end without our seeing it: by an exception, or by longjmp. Each thread has its activities in a chain, the
 * youngest first. If something happens farther out on the stack than the youngest began, that one is gone: it is
 * marked, and counted so. If it was on another stack after all, it ends later, and the mark is taken back.
 */
#include "collect/kernel/bpf/io.h"

#define PROBE_WAKE_NS 2000000u /* the collector is woken no more often than this for copies */

struct activity_key {
	uint32_t process, function; /* function: from 1 on */
	uint64_t sp;
};

struct activity {
	struct kernel_transfer_key sum; /* where it is counted */
	struct activity_key outer;      /* the next in the chain; function 0: none */
	uint64_t since;                 /* the call began then, after our own work */
	uint64_t begin_ns;              /* that work */
	uint64_t parameters[KERNEL_PARAMETERS];
	uint64_t start[KERNEL_MEASURES]; /* of each measure: what it is measured from */
	uint64_t own_ns;                 /* as in struct probing, at that time */
	uint32_t thread;
	uint32_t gone; /* enum kernel_call_end: it was counted so; 0: it has not ended */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_ACTIVITIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct activity_key);
	__type(value, struct activity);
} activities SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_TRANSFERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_transfer_key);
	__type(value, struct kernel_timing);
} timings SEC(".maps");

struct probing { /* of a thread */
	struct activity_key top;
	uint64_t thrown_sp; /* an exception was thrown there, and not caught yet; 0: none */
	uint64_t own_ns;    /* all time that our own work has taken */
	uint64_t left_ns;   /* it left the CPU then; 0: it is on one */
	uint64_t ran;       /* task.se.sum_exec_runtime at that time */
	uint64_t off_ns;    /* off the CPU, all */
	uint64_t counted[KERNEL_MEASURES]; /* of events, until it came to this CPU */
	uint64_t base[KERNEL_MEASURES];    /* the CPU's counters at that time */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct probing);
} probings SEC(".maps");

/* A new sum of times is made from this: it is too large for the stack. Nobody writes to it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct kernel_timing);
} no_timing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct activity);
} no_activity SEC(".maps");

#include "collect/kernel/bpf/measure.h"

/* ---- paths ---- */

/* The next interpreted call. The state of the loop is in the map's memory. */
static long hash_call(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t n = i;
	if (n >= ws->calls.head.count)
		return 1;
	MASK(n, KERNEL_CALLS - 1);
	ws->hash = mix(mix(ws->hash, ws->calls.all[n].code), ws->calls.all[n].instruction);
	return 0;
}

/* Returns the hash of a path with the calls of interpreted functions on it. Where these stand on the stack is no part
   of it: the same calls come by the same frames. */
INLINE uint64_t hash_calls(struct workspace *ws, uint64_t hash)
{
	ws->hash = hash;
	bpf_loop(KERNEL_CALLS, hash_call, &ws, 0);
	return ws->hash;
}

/* ---- sums ---- */

/* Returns the sum for this key; NULL: there is no room. */
INLINE struct kernel_timing *timing_of(const struct kernel_transfer_key *key)
{
	uint32_t zero = 0;
	struct kernel_timing *sum = bpf_map_lookup_elem(&timings, key);
	struct kernel_timing *none = sum ? NULL : bpf_map_lookup_elem(&no_timing, &zero);
	if (!none)
		return sum;
	bpf_map_update_elem(&timings, key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&timings, key);
}

/* The key of the sum that the collector has made for what finds no room elsewhere. */
INLINE struct kernel_transfer_key key_of_rest(uint64_t function)
{
	return (struct kernel_transfer_key){.object = function, .act = KERNEL_IO_PROBE};
}

INLINE struct kernel_timing *timing_anyhow(const struct kernel_transfer_key *key)
{
	struct kernel_timing *sum = timing_of(key);
	if (sum)
		return sum;
	struct kernel_transfer_key rest = key_of_rest(key->object);
	return timing_of(&rest);
}

/* Adds calls that ended so, or takes them back. Fibers may end on another thread than they began. */
INLINE void count_end(struct kernel_timing *sum, uint32_t end, uint64_t count)
{
	if (end == KERNEL_CALL_RETURNED)
		__sync_fetch_and_add(&sum->returned, count);
	else if (end == KERNEL_CALL_UNWOUND)
		__sync_fetch_and_add(&sum->unwound, count);
	else
		__sync_fetch_and_add(&sum->abandoned, count);
}

INLINE void count_time(struct kernel_timing *sum, uint64_t ns)
{
	uint64_t bucket = kernel_time_bucket(ns);
	__sync_fetch_and_add(&sum->ns, ns);
	if (!sum->least || ns + 1 < sum->least)
		sum->least = ns + 1;
	if (ns > sum->most)
		sum->most = ns;
	if (bucket < KERNEL_TIMES)
		__sync_fetch_and_add(&sum->times[bucket], 1);
}

/* ---- activities ---- */

INLINE bool is_same_activity(const struct activity_key *a, const struct activity_key *b)
{
	return a->process == b->process && a->function == b->function && a->sp == b->sp;
}

struct settling {
	struct probing *thread;
	struct activity_key until; /* not this one */
	uint64_t sp;               /* those that began farther in than this are gone */
};

static long settle_one(uint32_t i, struct settling *s)
{
	struct activity_key key = s->thread->top;
	if (!key.function || key.sp >= s->sp || is_same_activity(&key, &s->until))
		return 1;
	struct activity *a = bpf_map_lookup_elem(&activities, &key);
	if (!a) {
		s->thread->top.function = 0;
		return 1;
	}
	if (!a->gone) {
		uint64_t thrown = s->thread->thrown_sp;
		a->gone = thrown && thrown <= key.sp ? KERNEL_CALL_UNWOUND : KERNEL_CALL_ABANDONED;
		struct kernel_transfer_key sum_key = a->sum;
		struct kernel_timing *sum = timing_anyhow(&sum_key);
		if (sum)
			count_end(sum, a->gone, 1);
	}
	s->thread->top = a->outer;
	return 0;
}

/* The thread is at this SP: calls that began farther in are gone. */
INLINE void settle(struct probing *thread, uint64_t sp, const struct activity_key *until)
{
	struct settling s = {thread, *until, sp};
	if (thread->top.function && thread->top.sp < sp)
		bpf_loop(KERNEL_ACTIVITIES, settle_one, &s, 0);
}

/* Notes a call whose end will not be seen. */
INLINE void note_untimed(const struct kernel_transfer_key *sum)
{
	struct kernel_timing *its = timing_anyhow(sum);
	if (its)
		count_end(its, KERNEL_CALL_ABANDONED, 1);
	__sync_fetch_and_add(&counts.calls_untimed, 1);
}

/* Makes an activity from nothing; NULL: there is no room. */
INLINE struct activity *make_activity(const struct activity_key *key)
{
	uint32_t zero = 0;
	struct activity *none = bpf_map_lookup_elem(&no_activity, &zero);
	if (!none || bpf_map_update_elem(&activities, key, none, BPF_ANY))
		return NULL;
	return bpf_map_lookup_elem(&activities, key);
}

/* Notes a call that has begun. Our work on it began at `now`. */
APART int note_begin(struct probing *thread, const struct activity_key *key,
		     const struct kernel_transfer_key *sum, uint64_t now)
{
	struct activity *before = bpf_map_lookup_elem(&activities, key);
	if (before && !before->gone) { /* on another thread's chain, or another stack's */
		struct kernel_transfer_key sum_key = before->sum;
		struct kernel_timing *its = timing_anyhow(&sum_key);
		if (its)
			count_end(its, KERNEL_CALL_ABANDONED, 1);
	}
	struct activity *a = make_activity(key);
	if (!a) {
		note_untimed(sum);
		return 0;
	}
	a->sum = *sum;
	a->outer = thread->top;
	a->thread = sum->thread;
	thread->top = *key;
	measure_begin(thread, a);
	a->since = bpf_ktime_get_ns();
	a->begin_ns = a->since - now;
	thread->own_ns += a->begin_ns;
	a->own_ns = thread->own_ns;
	return 0;
}

/* Notes that a call has ended: `now` is before our own work. If it began before the probe was there, nothing is
   noted. */
APART int note_end(struct probing *thread, const struct activity_key *key, uint32_t tid,
		   uint64_t now)
{
	struct activity *a = bpf_map_lookup_elem(&activities, key);
	if (!a)
		return 0;
	settle(thread, key->sp, key);
	if (is_same_activity(&thread->top, key))
		thread->top = a->outer;
	uint64_t own = a->thread == tid ? thread->own_ns - a->own_ns : 0;
	uint64_t ns = now - a->since;
	struct measured_call call = {.key = {.sum = a->sum}};
	struct kernel_timing *sum = timing_anyhow(&call.key.sum);
	if (sum) {
		if (a->gone)
			count_end(sum, a->gone, -1ull);
		count_end(sum, KERNEL_CALL_RETURNED, 1);
		call.ns = ns > own ? ns - own : 0;
		count_time(sum, call.ns);
		measure_end(thread, a, sum, &call, a->thread == tid);
		__sync_fetch_and_add(&sum->own_ns, a->begin_ns + bpf_ktime_get_ns() - now);
	}
	bpf_map_delete_elem(&activities, key);
	return 0;
}
