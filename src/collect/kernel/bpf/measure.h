/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * What is measured of a call beside its time: CPU time, time blocked, events, arguments and results (settings.measures).
 * probe.h uses it.
 *
 * The scheduler's own sum of a thread's CPU time is only brought up to date at clock ticks and switches. So the time off
 * the CPU is measured instead, at switches (`probe_switched`), and the rest is CPU time. Of the time off the CPU, the
 * scheduler knows how long the thread could have run. Events are counted by each CPU for all its threads: what was
 * counted while a thread was on the CPU is added up at the same switches.
 *
 * Values are added up by bucket, with the time of their calls. So it can be told how the time depends on them. Few of the
 * buckets are ever used, so eight of them are an entry of `measures`.
 */
#include "collect/kernel/bpf/off.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_MEASURE_SUMS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_measure_key);
	__type(value, struct kernel_measure);
} measures SEC(".maps");

/* By number of the function. The collector makes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_FUNCTIONS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct kernel_slows);
} slows_of_functions SEC(".maps");

/* Flags KERNEL_LIMIT_… by number of the function. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_FUNCTIONS);
	__type(key, uint32_t);
	__type(value, uint32_t);
} limits SEC(".maps");

/* The counter of event i on CPU c is number i * settings.cpus + c. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} probe_counters SEC(".maps");

/* A new sum is made from this. Nobody writes to it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct kernel_measure);
} no_measure SEC(".maps");

struct measured_call { /* a call that ends */
	struct kernel_measure_key key;
	uint64_t ns, cpu_ns;
	int64_t value;
	uint64_t result;
};

INLINE uint32_t limits_of(uint32_t function)
{
	uint32_t *flags = bpf_map_lookup_elem(&limits, &function);
	return flags ? *flags : 0;
}

/* ---- events ---- */

/* What the CPU has counted of the event of measure i. */
INLINE uint64_t read_counter(uint32_t i)
{
	struct bpf_perf_event_value value = {0};
	uint64_t index = (uint64_t)i * settings.cpus + bpf_get_smp_processor_id();
	if (bpf_perf_event_read_value(&probe_counters, index, &value, sizeof value))
		return 0;
	return value.counter;
}

INLINE uint64_t counted_of(const struct probing *thread, uint32_t i)
{
	return thread->counted[i] + read_counter(i) - thread->base[i];
}

/* A thread comes to a CPU. */
INLINE void enter_cpu(struct probing *thread, uint64_t now)
{
	if (thread->left_ns)
		thread->off_ns += now - thread->left_ns;
	thread->left_ns = 0;
	for (uint32_t i = 0; i < KERNEL_MEASURES && i < settings.measure_count; i++)
		if (settings.measures[i].kind == KERNEL_MEASURED_EVENT)
			thread->base[i] = read_counter(i);
}

/* The thread is on a CPU. Some kernels do not tell of each switch: then its CPU time says when it came there. */
INLINE void note_running(struct probing *thread, struct task_struct *task, uint64_t now)
{
	uint64_t ran = task->se.sum_exec_runtime - thread->ran;
	if (thread->left_ns)
		enter_cpu(thread, ran < now - thread->left_ns ? now - ran : thread->left_ns);
}

/* A thread leaves the CPU. */
INLINE void leave_cpu(struct probing *thread, struct task_struct *task, uint64_t now)
{
	note_running(thread, task, now);
	thread->left_ns = now;
	thread->ran = task->se.sum_exec_runtime;
	for (uint32_t i = 0; i < KERNEL_MEASURES && i < settings.measure_count; i++)
		if (settings.measures[i].kind == KERNEL_MEASURED_EVENT)
			thread->counted[i] = counted_of(thread, i);
}

/* ---- the beginning of a call ---- */

INLINE uint64_t waited(const struct probing *thread, struct task_struct *task)
{
	return thread->off_ns - run_delay(task);
}

/* Keeps what the measures are measured from. */
APART int measure_begin(struct probing *thread, struct activity *a)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	if (!thread || !a)
		return 0;
	note_running(thread, task, bpf_ktime_get_ns());
	a->parameters[0] = CPU_PARAMETER(regs, 0);
	a->parameters[1] = CPU_PARAMETER(regs, 1);
	a->parameters[2] = CPU_PARAMETER(regs, 2);
	a->parameters[3] = CPU_PARAMETER(regs, 3);
	a->parameters[4] = CPU_PARAMETER(regs, 4);
	a->parameters[5] = CPU_PARAMETER(regs, 5);
	for (uint32_t i = 0; i < KERNEL_MEASURES && i < settings.measure_count; i++) {
		uint32_t kind = settings.measures[i].kind;
		if (kind == KERNEL_MEASURED_CPU)
			a->start[i] = thread->off_ns;
		else if (kind == KERNEL_MEASURED_BLOCKED)
			a->start[i] = waited(thread, task);
		else if (kind == KERNEL_MEASURED_EVENT)
			a->start[i] = counted_of(thread, i);
	}
	return 0;
}

/* ---- sums ---- */

/* Returns the sums for this key; NULL: there is no room. */
INLINE struct kernel_measure *measure_of(const struct kernel_measure_key *key)
{
	uint32_t zero = 0;
	struct kernel_measure *m = bpf_map_lookup_elem(&measures, key);
	struct kernel_measure *none = m ? NULL : bpf_map_lookup_elem(&no_measure, &zero);
	if (!none)
		return m;
	bpf_map_update_elem(&measures, key, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&measures, key);
}

/* Adds the value of one measure. */
APART int add_measure(struct kernel_timing *sum, struct measured_call *c)
{
	int64_t value = c->value;
	uint64_t below = -1 - (uint64_t)value;
	uint64_t bucket = value >= 0 ? kernel_time_bucket((uint64_t)value)
				     : KERNEL_TIMES + (below < 7 ? below : 7);
	uint64_t eighth = bucket & 7, i = c->key.measure;
	c->key.octave = (uint32_t)(bucket / 8);
	struct kernel_measure *m = measure_of(&c->key);
	if (!m) {
		__sync_fetch_and_add(&counts.calls_unmeasured, 1);
		return 0;
	}
	bool first = true;
	for (uint32_t k = 0; k < 8; k++)
		first = first && !m->eighths[k].calls;
	if (first || value < m->least)
		m->least = value;
	if (first || value > m->most)
		m->most = value;
	__sync_fetch_and_add(&m->eighths[eighth].calls, 1);
	__sync_fetch_and_add(&m->eighths[eighth].sum, value);
	__sync_fetch_and_add(&m->eighths[eighth].ns, c->ns);
	__sync_fetch_and_add(&m->eighths[eighth].cpu_ns, c->cpu_ns);
	uint64_t bit = 1ull << (c->key.octave & 63);
	if (i < KERNEL_MEASURES && !(sum->octaves[i] & bit))
		__sync_fetch_and_or(&sum->octaves[i], bit);
	return 0;
}

/* The value in a register: of its lower bits, and with their sign. */
INLINE int64_t value_in(uint64_t word, const volatile struct kernel_measuring *m)
{
	uint32_t unused = m->unused & 63;
	return m->is_signed ? (int64_t)(word << unused) >> unused
			    : (int64_t)(word << unused >> unused);
}

/* ---- the slowest calls ---- */

struct ranking {
	struct kernel_slows *slows;
	uint64_t least, next, at; /* the two fastest that are kept, and where the first is */
};

static long rank_one(uint32_t i, struct ranking *r)
{
	uint64_t n = i;
	if (n >= settings.slowest)
		return 1;
	MASK(n, KERNEL_SLOWEST - 1);
	uint64_t ns = r->slows->all[n].ns;
	if (ns < r->least) {
		r->next = r->least;
		r->least = ns;
		r->at = n;
	} else if (ns < r->next) {
		r->next = ns;
	}
	return 0;
}

/* Keeps a call if it is one of the slowest of its function. Others may do so at the same time: a place belongs to who
   changes its time. */
APART int keep_slow(const struct activity *a, const struct measured_call *c)
{
	uint32_t function = (uint32_t)c->key.sum.object;
	struct kernel_slows *slows = settings.slowest
					     ? bpf_map_lookup_elem(&slows_of_functions, &function)
					     : NULL;
	if (!a || !slows || c->ns <= slows->floor)
		return 0;
	for (uint32_t tries = 0; tries < 4; tries++) {
		struct ranking r = {slows, -1ull, -1ull, 0};
		bpf_loop(KERNEL_SLOWEST, rank_one, &r, 0);
		if (c->ns <= r.least)
			return 0;
		uint64_t at = r.at;
		MASK(at, KERNEL_SLOWEST - 1);
		struct kernel_slow *s = &slows->all[at];
		if (__sync_val_compare_and_swap(&s->ns, r.least, c->ns) != r.least)
			continue;
		s->begun = a->since;
		s->sum = c->key.sum;
		for (uint32_t i = 0; i < KERNEL_PARAMETERS; i++)
			s->parameters[i] = a->parameters[i];
		s->result = c->result;
		s->same_ns = c->ns;
		slows->floor = r.next < c->ns ? r.next : c->ns;
		return 0;
	}
	return 0;
}

/* ---- the end of a call ---- */

/* Adds what was measured. `same`: the call ends on the thread on which it began. */
APART int measure_end(struct probing *thread, const struct activity *a, struct kernel_timing *sum,
		      struct measured_call *c, bool same)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	if (!thread || !a || !sum || !c)
		return 0;
	c->result = CPU_RESULT(regs);
	note_running(thread, task, bpf_ktime_get_ns());
	for (uint32_t i = 0; i < KERNEL_MEASURES && i < settings.measure_count; i++) {
		uint64_t off = thread->off_ns - a->start[i];
		if (settings.measures[i].kind == KERNEL_MEASURED_CPU && same)
			c->cpu_ns = c->ns > off ? c->ns - off : 0;
	}
	for (uint32_t i = 0; i < KERNEL_MEASURES && i < settings.measure_count; i++) {
		uint32_t kind = settings.measures[i].kind;
		uint64_t n = settings.measures[i].number;
		if (kind == KERNEL_MEASURED_PARAMETER && n < KERNEL_PARAMETERS)
			c->value = value_in(a->parameters[n], &settings.measures[i]);
		else if (kind == KERNEL_MEASURED_RESULT)
			c->value = value_in(c->result, &settings.measures[i]);
		else if (!same)
			continue;
		else if (kind == KERNEL_MEASURED_CPU)
			c->value = (int64_t)c->cpu_ns;
		else if (kind == KERNEL_MEASURED_EVENT)
			c->value = (int64_t)(counted_of(thread, i) - a->start[i]);
		else
			c->value = (int64_t)(waited(thread, task) - a->start[i]);
		if (c->value < 0 && kind != KERNEL_MEASURED_PARAMETER &&
		    kind != KERNEL_MEASURED_RESULT)
			c->value = 0;
		c->key.measure = i;
		add_measure(sum, c);
	}
	keep_slow(a, c);
	return 0;
}
