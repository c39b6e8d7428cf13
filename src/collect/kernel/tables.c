/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables in the sampler's memory. It consists of shards (BPF maps), which are filled one after
 * another. A small table is given as a whole, with the first list that has its module. Of a large one, in a
 * recording of the whole machine, only those pages are given that were needed so far. If a walk comes to
 * another page, the sampler copies the stack. When we have walked the copy, we give the sampler the pages
 * that the walk needed. If there is no room left, all tables are removed, and given again when they are
 * needed.
 *
 * The tables of a browser, a few compilers and their libraries would not fit, and little of them is ever
 * used. A recording of one program gets all tables as a whole: there a copied stack costs the program more
 * than the memory is worth.
 *
 * Rules (recipes) are shared by all tables: 3600 programs and libraries of Debian have 750 000 of them, of
 * which 24 000 differ.
 */
#include "collect/kernel/tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "cct/cct.h"
#include "collect/kernel/object.h"
#include "collect/kernel/state.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/registers.h"

/* Bytes of tables in a recording of the whole machine: together with the other maps less than 60 MB. */
#define TABLES_WHOLE (24ull << 20)
#define TABLES_NS 60000000000ull /* at least, from one removal of all tables to the next */
#define LARGE 65536u             /* words: larger tables are given in parts */
#define PART_PAGES 16u           /* that are given at once: a power of two */
#define RULE_SLOTS (2 * KERNEL_RULES)

/* ---- shards ---- */

/* Adds a shard. Whenever the kernel gets one, it waits for all running programs, so shards are large. */
static bool make_shard(struct kernel *k, size_t words)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	const uint32_t block = KERNEL_BLOCK * sizeof(uint32_t);
	struct kernel_shard *more;
	if (words < KERNEL_SHARD / sizeof(uint32_t))
		words = KERNEL_SHARD / sizeof(uint32_t);
	uint32_t blocks = (uint32_t)((words + KERNEL_BLOCK - 1) / KERNEL_BLOCK);
	if ((k->whole && k->tables.bytes + (uint64_t)blocks * block > TABLES_WHOLE) ||
	    k->tables.count == KERNEL_SHARDS ||
	    !(more = reallocarray(k->tables.list, k->tables.count + 1, sizeof *more)))
		return false;
	k->tables.list = more;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "shard", sizeof(uint32_t), block, blocks,
				&opts);
	if (fd < 0)
		return false;
	void *at = mmap(NULL, (size_t)blocks * block, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool made = at != MAP_FAILED &&
		    !bpf_map_update_elem(k->tables.shards, &k->tables.count, &fd, BPF_ANY);
	close(fd);
	if (made) {
		k->tables.list[k->tables.count++] = (struct kernel_shard){
			at, (size_t)blocks * KERNEL_BLOCK, 0};
		k->tables.bytes += (uint64_t)blocks * block;
	} else if (at != MAP_FAILED) {
		munmap(at, (size_t)blocks * block);
	}
	return made;
}

/* Returns memory for so many words, and where the sampler finds it; NULL: there is no more. */
static uint32_t *take_words(struct kernel *k, size_t words, uint32_t *shard, uint32_t *at)
{
	struct kernel_shard *s = k->tables.count ? &k->tables.list[k->tables.count - 1] : NULL;
	if (!s || words > s->room - s->used) {
		if (!make_shard(k, words))
			return NULL;
		s = &k->tables.list[k->tables.count - 1];
	}
	*shard = k->tables.count - 1;
	*at = (uint32_t)s->used;
	s->used += words;
	return s->words + *at;
}

/* Unmaps all shards. */
static void leave_shards(struct kernel *k)
{
	for (uint32_t i = 0; i < k->tables.count; i++)
		munmap(k->tables.list[i].words, k->tables.list[i].room * sizeof(uint32_t));
	free(k->tables.list);
	k->tables.list = NULL;
	k->tables.count = 0;
	k->tables.bytes = 0;
}

/* ---- tables ---- */

/* Whether step_simple() in bpf/step.h can apply it. */
static bool is_simple(const struct recipe *r)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(native_machine);
	return r->cfa == RECIPE_REG && !r->cfa_vg &&
	       (r->cfa_reg == cpu->sp || r->cfa_reg == cpu->fp) && r->ra == RECIPE_AT_CFA &&
	       (r->fp == RECIPE_AT_CFA || r->fp == RECIPE_SAME) &&
	       (r->extra == RECIPE_AT_CFA || r->extra == RECIPE_SAME);
}

/* Returns the number of a rule in the sampler's memory; 0: there is no room. Tables have most rules in
   common, so each rule is stored once. */
static uint32_t share_rule(struct kernel *k, const struct recipe *rule)
{
	struct recipe shared = *rule;
	uint64_t words[sizeof shared / sizeof(uint64_t)], slot = HASH_START;
	shared.source = 0;
	shared.reserved = is_simple(rule) ? KERNEL_SIMPLE : 0;
	memcpy(words, &shared, sizeof words);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		slot = hash_number(slot, words[i]);
	for (;; slot++) {
		uint32_t *number = &k->tables.rule_slots[slot % RULE_SLOTS];
		if (*number && !memcmp(&k->tables.rules[*number], &shared, sizeof shared))
			return *number;
		if (*number)
			continue;
		if (k->tables.rules_used == KERNEL_RULES)
			return 0;
		k->tables.rules[k->tables.rules_used] = shared;
		return *number = k->tables.rules_used++;
	}
}

/* Copies rows, with the numbers of the shared rules. */
static bool copy_rows(struct kernel *k, const struct table *t, uint32_t first, uint32_t count,
		      uint32_t *to)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = t->rows[first + i];
		uint32_t rule = share_rule(k, &t->rules[row & TABLE_RULE_MASK]);
		if (!rule)
			return false;
		to[i] = (row & ~TABLE_RULE_MASK) | rule;
	}
	return true;
}

/* Gives a table: pages and rows of a small one; of a large one an index of its pages that is empty at
   first. */
static bool place_table(struct kernel *k, const struct library_module *m)
{
	const struct table *t = &m->table;
	size_t pages = (size_t)t->page_count + 1, words = pages + t->row_count;
	bool parts = k->whole && words > LARGE;
	uint32_t shard, at, *to = take_words(k, parts ? pages : words, &shard, &at);
	if (!to)
		return false;
	if (!parts)
		memcpy(to, t->pages, pages * sizeof *to);
	if (!parts && !copy_rows(k, t, 0, t->row_count, to + pages))
		return false;
	k->tables.modules[m->id] = (struct kernel_module){.start = t->start,
							  .page_count = t->page_count,
							  .shard = shard,
							  .pages = at,
							  .rows = (uint32_t)(at + pages),
							  .parts = parts};
	return true;
}

enum kernel_given tables_give(struct kernel *k, const struct library_module *m)
{
	uint8_t *loaded = &k->tables.loaded[m->id / 8], bit = (uint8_t)(1u << m->id % 8);
	if (!m->size || !m->table.page_count)
		return KERNEL_NO_TABLE;
	if (!(*loaded & bit)) {
		*loaded |= bit;
		k->tables.full |= !place_table(k, m);
	}
	return k->tables.modules[m->id].page_count ? KERNEL_GIVEN : KERNEL_NO_ROOM;
}

/* Gives the sampler a page that it does not have, and some pages around it. */
static void give_pages(struct kernel *k, const struct library_module *m, uint32_t page)
{
	const struct table *t = &m->table;
	const struct kernel_module *x = &k->tables.modules[m->id];
	uint32_t first = page & ~(PART_PAGES - 1), shard, at;
	for (page = first; page < first + PART_PAGES && page < t->page_count; page++) {
		uint32_t count = t->pages[page + 1] - t->pages[page];
		uint32_t *to = take_words(k, count + 1, &shard, &at);
		if (!to || at >> KERNEL_PART_BITS ||
		    !copy_rows(k, t, t->pages[page], count, to + 1)) {
			k->tables.full = true;
			return;
		}
		*to = count;
		/* The sampler may read this word at any time. */
		__atomic_store_n(&k->tables.list[x->shard].words[x->pages + page],
				 KERNEL_PART(shard, at), __ATOMIC_RELEASE);
	}
}

void tables_need(struct kernel *k, const uint64_t *keys, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = cct_key_module(keys[i]);
		const struct kernel_module *x = &k->tables.modules[id];
		const struct library_module *m = x->parts
							 ? library_module(k->recording->library, id)
							 : NULL;
		uint64_t address = (keys[i] & CCT_ADDRESS) - (keys[i] & CCT_CALL ? 1 : 0);
		uint64_t page = (address - x->start) >> TABLE_PAGE_BITS;
		/* The library may have freed its table meanwhile. */
		if (m && page < x->page_count && m->table.page_count == x->page_count &&
		    !k->tables.list[x->shard].words[x->pages + page])
			give_pages(k, m, (uint32_t)page);
	}
}

bool tables_are_full(const struct kernel *k)
{
	return k->tables.full && now_ns() - k->tables.begun_ns > TABLES_NS;
}

bool tables_begin(struct kernel *k)
{
	if (!k->tables.rule_slots)
		k->tables.rule_slots = reallocarray(NULL, RULE_SLOTS, sizeof *k->tables.rule_slots);
	if (!k->tables.rule_slots)
		return false;
	for (uint32_t i = 0; i < k->tables.count; i++) /* no program uses them after that */
		bpf_map_delete_elem(k->tables.shards, &i);
	leave_shards(k);
	memset(k->tables.modules, 0, KERNEL_MODULES * sizeof *k->tables.modules);
	memset(k->tables.loaded, 0, sizeof k->tables.loaded);
	memset(k->tables.rule_slots, 0, RULE_SLOTS * sizeof *k->tables.rule_slots);
	k->tables.rules_used = 1; /* rule 0: nothing is known */
	k->tables.full = false;
	k->tables.begun_ns = now_ns();
	return make_shard(k, 0);
}

bool tables_has(const struct kernel *k, uint32_t id)
{
	return k->tables.loaded[id / 8] & 1u << id % 8;
}

void tables_take_back(struct kernel *k, uint32_t id)
{
	k->tables.loaded[id / 8] &= (uint8_t) ~(1u << id % 8);
	k->tables.modules[id] = (struct kernel_module){0};
}

struct err *tables_open(struct kernel *k)
{
	struct kernel_tables *t = &k->tables;
	t->modules = object_map(k, "modules", KERNEL_MODULES * sizeof *t->modules);
	t->rules = object_map(k, "rules", KERNEL_RULES * sizeof *t->rules);
	if (!t->modules || !t->rules)
		return err_errno("cannot map the sampler's memory");
	return tables_begin(k) ? NULL : err_errno("cannot make memory for the sampler's tables");
}

void tables_close(struct kernel *k)
{
	struct kernel_tables *t = &k->tables;
	leave_shards(k);
	if (t->modules)
		munmap(t->modules, KERNEL_MODULES * sizeof *t->modules);
	if (t->rules)
		munmap(t->rules, KERNEL_RULES * sizeof *t->rules);
	free(k->tables.rule_slots);
}
