/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Counts samples that are not walked, by process, place and event. Each CPU has tables whose lines are as
 * large as those of the cache, so that a sample touches one line. There are two tables for each CPU: the
 * collector lets the sampler use the other one, and empties the first (counters.c). So nobody waits, and
 * nothing is counted twice. sample.bpf.c uses it.
 */
#include "collect/kernel/bpf/code.h"
#include "collect/kernel/bpf/record.h"

/* Whether this sample is one that is walked. */
INLINE bool is_turn(uint32_t cpu, uint32_t event)
{
	struct kernel_turn *t = bpf_map_lookup_elem(&turns, &cpu);
	if (!t)
		return true;
	uint64_t index = event;
	MASK(index, KERNEL_METRICS - 1);
	uint32_t left = t->left[index];
	t->left[index] = left ? left - 1 : settings.every - 1;
	return !left;
}

/* Sends a sample whose code is not known yet. The collector will count it. */
INLINE void send_place(uint32_t event, uint64_t pc, const struct kernel_process *process,
		       uint64_t start)
{
	struct kernel_place place = {.pc = pc, .changes = process ? process->changes : 0};
	fill_head(&place.head, KERNEL_PLACE, event, start);
	if (bpf_ringbuf_output(&ring, &place, sizeof place, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
}

/* Sends a count that must make room for another one. */
INLINE void send_counted(const struct kernel_counters *line, uint64_t way)
{
	struct kernel_counted out = {.place = line->places[way],
				     .serial = line->serials[way],
				     .count = line->counts[way]};
	out.head.kind = KERNEL_COUNTED;
	out.head.process = out.head.thread = line->processes[way];
	out.head.time = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&ring, &out, sizeof out, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, out.count);
}

/* Counts one more sample of this place. It may take the room of another one. */
CHECKED int count_place(struct kernel_turn *turn, uint64_t place, uint32_t process, uint32_t serial,
			uint32_t cpu)
{
	if (!turn)
		return 0;
	uint64_t hash = (place ^ (uint64_t)process << 20) * 0x9e3779b97f4a7c15ull, way;
	/* This must be visible to others before the table is chosen: see counters_switch(). */
	__sync_lock_test_and_set(&turn->counting, 1);
	uint32_t index = (cpu * 2 + (side & 1)) * KERNEL_COUNTERS +
			 ((uint32_t)(hash >> 32) & (KERNEL_COUNTERS - 1));
	struct kernel_counters *line = bpf_map_lookup_elem(&counters, &index);
	if (!line) {
		__sync_lock_test_and_set(&turn->counting, 0);
		__sync_fetch_and_add(&counts.lost_records, 1);
		return 0;
	}
	for (way = 0; way < KERNEL_WAYS; way++)
		if (!line->counts[way] ||
		    (line->places[way] == place && line->processes[way] == process &&
		     line->serials[way] == serial))
			break;
	if (way < KERNEL_WAYS && line->counts[way]) {
		line->counts[way]++;
	} else {
		if (way == KERNEL_WAYS) {
			way = line->next < KERNEL_WAYS ? line->next : 0;
			line->next = (uint32_t)way + 1;
			send_counted(line, way);
		}
		line->places[way] = place;
		line->processes[way] = process;
		line->serials[way] = serial;
		line->counts[way] = 1;
	}
	__sync_lock_test_and_set(&turn->counting, 0);
	return 1;
}

/* Counts a sample at the place where the CPU was. `process` may be NULL. */
INLINE void count(struct bpf_perf_event_data *context, struct kernel_process *process, uint32_t cpu,
		  uint32_t tgid, uint32_t event, uint64_t start)
{
	struct kernel_turn *turn = bpf_map_lookup_elem(&turns, &cpu);
	uint64_t pc = CPU_EVENT_PC(&context->regs);
	uint32_t serial = CPU_IN_KERNEL(&context->regs) ? KERNEL_SERIAL_KERNEL
							: list_of(process, tgid);
	if (!turn)
		return;
	if (!serial) {
		send_place(event, pc, process, start);
		return;
	}
	count_place(turn, KERNEL_COUNTER_PLACE(pc, event, process ? process->changes : 0), tgid,
		    serial, cpu);
	turn->runs++;
	turn->ns += bpf_ktime_get_ns() - start;
}
