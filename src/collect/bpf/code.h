/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What is known about the code at an address: span -> module -> page -> row -> rule. */
#include "collect/bpf/maps.h"

/* The last span that begins at or before the address and has it; UINT32_MAX: none. */
CHECKED uint32_t find_span(uint32_t first, uint32_t count, uint64_t address)
{
	for (int i = 0; i < SPAN_STEPS && count > 1; i++) {
		uint32_t half = count / 2, middle = first + half;
		struct kernel_span *s = bpf_map_lookup_elem(&spans, &middle);
		if (!s)
			return UINT32_MAX;
		if (s->start <= address) {
			first = middle;
			count -= half;
		} else {
			count = half;
		}
	}
	struct kernel_span *s = count ? bpf_map_lookup_elem(&spans, &first) : 0;
	return s && address - s->start < s->end - s->start ? first : UINT32_MAX;
}

/* The index of the rule for an address of the module, NO_RULE where something is wrong. */
CHECKED uint32_t find_rule(uint32_t id, uint64_t address)
{
	struct kernel_module *m = bpf_map_lookup_elem(&modules, &id);
	if (!m)
		return NO_RULE;
	uint32_t number = m->shard;
	void *table = bpf_map_lookup_elem(&shards, &number);
	if (!table)
		return NO_RULE;
	uint64_t page = (address - m->start) >> TABLE_PAGE_BITS;
	if (page >= m->page_count)
		return m->rules;
	uint32_t index = m->pages + (uint32_t)page, at = index / KERNEL_BLOCK, row, count, i;
	uint32_t key = (uint32_t)(address & (TABLE_PAGE - 1)) << TABLE_RULE_BITS | TABLE_RULE_MASK;
	struct block *b = bpf_map_lookup_elem(table, &at);
	if (!b)
		return NO_RULE;
	row = b->words[index % KERNEL_BLOCK];
	index++;
	at = index / KERNEL_BLOCK;
	b = bpf_map_lookup_elem(table, &at);
	if (!b)
		return NO_RULE;
	count = b->words[index % KERNEL_BLOCK] - row;
	row += m->rows;
	for (i = 0; i < ROW_STEPS && count > 1; i++) {
		uint32_t half = count / 2;
		index = row + half;
		at = index / KERNEL_BLOCK;
		b = bpf_map_lookup_elem(table, &at);
		if (!b)
			return NO_RULE;
		if (b->words[index % KERNEL_BLOCK] <= key)
			row = index;
		count -= half;
	}
	at = row / KERNEL_BLOCK;
	b = bpf_map_lookup_elem(table, &at);
	return b ? m->rules + (b->words[row % KERNEL_BLOCK] & TABLE_RULE_MASK) : NO_RULE;
}

/* Fills in what is known about the code at an address; 0: it is of no module. */
CHECKED int know_place(struct place *p, struct kernel_process *process, uint64_t address)
{
	if (!p || !process)
		return 0;
	uint32_t at = find_span(process->first, process->count, address), rule = 0;
	p->serial = 0;
	p->by_pointer = 0;
	if (at == UINT32_MAX) {
		if (address < process->jit_low || address >= process->jit_high)
			return 0;
		p->by_pointer = 1;
		p->key = address & ADDRESS;
	} else {
		struct kernel_span *s = bpf_map_lookup_elem(&spans, &at);
		if (!s)
			return 0;
		p->by_pointer = s->flags & KERNEL_SPAN_JIT ? 1 : 0;
		if (!s->flags)
			rule = find_rule(s->module, address - s->bias);
		if (rule == NO_RULE)
			rule = 0;
		p->key = (uint64_t)s->module << KERNEL_KEY_BITS | ((address - s->bias) & ADDRESS);
	}
	struct recipe *r = bpf_map_lookup_elem(&rules, &rule);
	if (!r)
		return 0;
	p->recipe = *r;
	p->address = address;
	p->serial = process->serial;
	return 1;
}

/* The same, where it is known already mostly; NULL: of no module. `first`: of this CPU's places. */
INLINE struct place *find_place(uint32_t first, struct kernel_process *process, uint64_t address)
{
	uint32_t index = (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 32) & (KERNEL_PLACES - 1);
	index += first;
	struct place *p = bpf_map_lookup_elem(&places, &index);
	if (!p)
		return 0;
	if (p->address == address && p->serial == process->serial)
		return p;
	return know_place(p, process, address) ? p : 0;
}
