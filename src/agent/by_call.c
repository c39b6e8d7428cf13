/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of threads that have called us. */
#include "agent/agent.h"

#include "agent/cpu.h"
#include "agent/recent.h"
#include "safe/heap.h"
#include "safe/ticks.h"

/* The site that a node refers to. It is made if there is none. */
static uint32_t site_of(struct agent_thread *t, struct arena_heap *heap, uint32_t node)
{
	_Atomic uint64_t *site = &cct_values(cct_node(&t->tree, node))[agent.heap.site];
	uint64_t there = atomic_load_explicit(site, memory_order_relaxed);
	if (!there)
		there = arena_site_take(agent.arena, heap);
	atomic_store_explicit(site, there, memory_order_release);
	return (uint32_t)there;
}

/* The node of the path by which the thread has called us; 0 if it is not known without a walk. */
static uint32_t recent_node(struct agent_thread *t, uint64_t pc)
{
	uint64_t sp = t->registers[CPU_HERE.sp];
	/* The interpreter's functions may be others, although the stack is the same. */
	if (atomic_load_explicit(&agent.arena->has_python, memory_order_relaxed))
		return 0;
	sample_prepare(t, sp);
	return recent_find(t, pc, sp);
}

/* The node of the path that was walked; 0 if there is no room. */
static uint32_t walked_node(struct agent_thread *t, uint32_t known, enum walk_end end)
{
	uint32_t node = sample_node(t, known, end, t->registers);
	if (node && (known || end == WALK_COMPLETE))
		recent_keep(t, known, node);
	return node;
}

static uint32_t count_at_site(struct agent_thread *t, struct arena_heap *heap, uint32_t node)
{
	uint32_t site = node ? site_of(t, heap, node) : 0;
	if (site)
		counter_add(&cct_values(cct_node(&t->tree, node))[agent.heap.samples], 1);
	else
		counter_add(&t->shared.lost, 1);
	return site;
}

uint32_t sample_by_call(struct agent_thread *t, uint64_t pc, struct arena_heap *heap)
{
	uint32_t event = agent.heap.samples, node = recent_node(t, pc), known, site;
	counter_add(&t->shared.samples[event], 1);
	if (!event)
		counter_add(&t->shared.weight, 1);
	if (node)
		return count_at_site(t, heap, node);
	uint64_t start = ticks_now();
	enum walk_end end = sample_walk(t, t->registers, pc, &known);
	if (end == WALK_NO_MODULE) {
		site = arena_site_take(agent.arena, heap);
		if (site && sample_leave_copy(t, t->registers, pc, event, 1, site))
			return site;
	}
	site = count_at_site(t, heap, walked_node(t, known, end));
	counter_add(&t->shared.ticks, ticks_now() - start);
	return site;
}

void sample_values(struct agent_thread *t, uint64_t pc, uint64_t called,
		   const struct sample_value *values, size_t count)
{
	uint32_t known, node = recent_node(t, pc);
	if (!node) {
		enum walk_end end = sample_walk(t, t->registers, pc, &known);
		node = walked_node(t, known, end);
	}
	if (node && called)
		node = sample_called(t, node, called);
	for (size_t i = 0; i < count; i++) {
		if (node)
			counter_add(&cct_values(cct_node(&t->tree, node))[values[i].metric],
				    values[i].more);
		if (!values[i].metric)
			counter_add(&t->shared.weight, values[i].more);
	}
	counter_add(&t->shared.samples[values[0].metric], 1);
	if (!node)
		counter_add(&t->shared.lost, 1);
}

void sample_values_below(struct agent_thread *t, uint64_t pc, const uint64_t below[2],
			 const struct sample_value *values, size_t count)
{
	uint32_t known, node = recent_node(t, pc);
	uint64_t start = ticks_now();
	counter_add(&t->shared.samples[values[0].metric], 1);
	for (size_t i = 0; i < count; i++)
		if (!values[i].metric)
			counter_add(&t->shared.weight, values[i].more);
	if (!node) {
		enum walk_end end = sample_walk(t, t->registers, pc, &known);
		if (end == WALK_NO_MODULE &&
		    sample_leave_values(t, t->registers, pc, below, values, count))
			return;
		node = walked_node(t, known, end);
	}
	for (size_t i = 0; i < 2; i++)
		if (node && below[i])
			node = cct_child(&t->tree, node, below[i]);
	for (size_t i = 0; node && i < count; i++) {
		counter_add(&cct_values(cct_node(&t->tree, node))[values[i].metric],
			    values[i].more);
		if (agent.timeline && !values[i].metric && !time_line_add(t, node, values[i].more))
			counter_add(&t->shared.untimed, values[i].more);
	}
	if (!node)
		counter_add(&t->shared.lost, values[0].more);
	counter_add(&t->shared.ticks, ticks_now() - start);
}
