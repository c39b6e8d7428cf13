/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* Finds what is known about the code at an address: span (a mapping of a list) -> module -> page -> row
   -> rule (a recipe). take.h and count.h use it. */
#include "collect/kernel/bpf/maps.h"

/* Returns the last span that begins at or before the address, or the first one; UINT32_MAX: there are
   none. */
CHECKED uint32_t find_last(uint32_t first, uint32_t count, uint64_t address)
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
	return count ? first : UINT32_MAX;
}

/* Returns the span that has the address; UINT32_MAX: none. */
CHECKED uint32_t find_span(uint32_t first, uint32_t count, uint64_t address)
{
	uint32_t at = find_last(first, count, address);
	struct kernel_span *s = at == UINT32_MAX ? 0 : bpf_map_lookup_elem(&spans, &at);
	return s && address - s->start < s->end - s->start ? at : UINT32_MAX;
}

/* Whether the list has code of a file in this range. Code made at run time does not count: it comes and
   goes, and is walked without a table. */
CHECKED int is_listed(struct kernel_process *process, uint64_t start, uint64_t end)
{
	if (!process)
		return 0;
	uint32_t at = find_last(process->first, process->count, end - 1);
	struct kernel_span *s = at == UINT32_MAX ? 0 : bpf_map_lookup_elem(&spans, &at);
	return s && s->start < end && s->end > start && !(s->flags & KERNEL_SPAN_JIT);
}

INLINE struct kernel_mappings *mappings_of(uint32_t tgid)
{
	uint32_t at = tgid & (KERNEL_MAPPINGS - 1);
	return bpf_map_lookup_elem(&mappings, &at);
}

/* Returns the serial of the list that the process is to be walked with; 0: there is none, or it may be
   out of date. */
INLINE uint32_t list_of(const struct kernel_process *process, uint32_t tgid)
{
	struct kernel_mappings *its = mappings_of(tgid);
	bool good = its && process && !process->doubtful && process->over_code == its->over_code;
	return good ? process->serial : 0;
}

/* Returns a word of a shard; 0: there is none. */
CHECKED uint32_t read_shard(uint32_t number, uint32_t index)
{
	void *table = bpf_map_lookup_elem(&shards, &number);
	uint32_t at = index / KERNEL_BLOCK;
	struct block *b = table ? bpf_map_lookup_elem(table, &at) : 0;
	return b ? b->words[index % KERNEL_BLOCK] : 0;
}

/* Returns the index of the rule for an address of the module; NO_RULE: this part of its table is not
   here. */
CHECKED uint32_t find_rule(uint32_t id, uint64_t address)
{
	struct kernel_module *m = bpf_map_lookup_elem(&modules, &id);
	if (!m || !m->page_count)
		return NO_RULE;
	uint32_t number = m->shard;
	uint64_t page = (address - m->start) >> TABLE_PAGE_BITS;
	if (page >= m->page_count)
		return 0;
	uint32_t index = m->pages + (uint32_t)page, row = read_shard(number, index), count, at, i;
	uint32_t key = (uint32_t)(address & (TABLE_PAGE - 1)) << TABLE_RULE_BITS | TABLE_RULE_MASK;
	if (m->parts) {
		if (!row)
			return NO_RULE;
		number = KERNEL_PART_SHARD(row);
		row = KERNEL_PART_ROW(row);
		count = read_shard(number, row);
		row++;
	} else {
		count = read_shard(number, index + 1) - row;
		row += m->rows;
	}
	void *table = bpf_map_lookup_elem(&shards, &number);
	struct block *b;
	if (!table)
		return NO_RULE;
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
	return b ? b->words[row % KERNEL_BLOCK] & TABLE_RULE_MASK : NO_RULE;
}

/* Moves the walk to the span that has the address; 0: no span has it. An address outside all spans may
   be code made at run time. */
CHECKED int know_span(struct walk *w, struct kernel_process *process, uint64_t address)
{
	if (!w || !process)
		return 0;
	uint32_t at = find_span(process->first, process->count, address);
	struct kernel_span *s = at == UINT32_MAX ? 0 : bpf_map_lookup_elem(&spans, &at);
	w->span_serial = 0;
	if (s) {
		w->span_serial = process->serial;
		w->span_start = s->start;
		w->span_size = s->end - s->start;
		w->span_bias = s->bias;
		w->span_module = s->module;
		w->span_flags = s->flags;
		return 1;
	}
	w->span_bias = w->span_module = 0;
	w->span_flags = KERNEL_SPAN_JIT;
	return address >= process->jit_low && address < process->jit_high;
}

/* Fills in what is known about an address of the walk's span; 0: nothing. What a module's table says
   holds for all processes that have the module, for as long as the module has this id. */
CHECKED int know_place(struct place *p, struct walk *w, uint64_t key)
{
	uint32_t now = generation, rule = 0;
	if (!p || !w)
		return 0;
	p->generation = 0;
	p->key = key;
	p->by_pointer = w->span_flags & KERNEL_SPAN_JIT ? 1 : 0;
	if (!w->span_flags)
		rule = find_rule(w->span_module, key & ADDRESS);
	if (rule == NO_RULE || w->span_flags & KERNEL_SPAN_ELSEWHERE) {
		w->elsewhere = 1;
		return 0;
	}
	struct recipe *r = bpf_map_lookup_elem(&rules, &rule);
	if (!r)
		return 0;
	p->recipe = *r;
	if (!w->span_flags)
		p->generation = now;
	return 1;
}

/* Returns what is known about an address; NULL: it is of no module. Usually it was met before, in this
   or another process that has the same module. `first`: the first of this CPU's places. */
INLINE struct place *find_place(uint32_t first, struct walk *w, struct kernel_process *process,
				uint64_t address)
{
	if ((w->span_serial != process->serial || address - w->span_start >= w->span_size) &&
	    !know_span(w, process, address))
		return 0;
	uint64_t key = (uint64_t)w->span_module << KERNEL_KEY_BITS |
		       ((address - w->span_bias) & ADDRESS);
	uint32_t index = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (KERNEL_PLACES - 1);
	index += first;
	struct place *p = bpf_map_lookup_elem(&places, &index);
	if (!p)
		return 0;
	if (p->key == key && p->generation == generation)
		return p;
	return know_place(p, w, key) ? p : 0;
}
