/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are kept as chains while they come in. A chain is what one reader says
 * about contiguous code, in ascending order, and ends with a row of rule 0:
 *
 *     {0x100, A} {0x104, B} {0x140, 0}   {0x900, A} {0x910, 0}   ...
 *     `-------- one chain ----------´    `--- the next ---´
 *
 * An interval that begins where the last one ended continues its chain, so a
 * procedure costs one row per change and one more. Chains are added one after
 * the other: of two, every interval of the earlier one goes before every
 * interval of the later one. That is why rows_finish can sort and sweep over
 * chains (one per procedure) and never has to sort rows.
 *
 * Finished rows are themselves chains, so adding more afterwards and finishing
 * again works.
 */
#include "recipes/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define NO_RULE 0

void rows_init(struct rows *rows)
{
	struct recipe none;
	memset(rows, 0, sizeof *rows);
	memset(&none, 0, sizeof none);
	rows_rule(rows, &none);
}

void rows_free(struct rows *rows)
{
	free(rows->rows);
	free(rows->rules);
	free(rows->slots);
	memset(rows, 0, sizeof *rows);
}

/* ---- rules ---- */

static uint64_t rule_hash(const struct recipe *recipe)
{
	uint64_t words[sizeof *recipe / 8], hash = 0;
	memcpy(words, recipe, sizeof *recipe);
	for (size_t i = 0; i < sizeof words / 8; i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

/* The slot that holds an equal rule, or the empty one where it belongs. Slots hold index + 1. */
static uint32_t *rule_slot(const struct rows *rows, const struct recipe *recipe)
{
	size_t mask = rows->slot_count - 1;
	size_t i = rule_hash(recipe) & mask;
	while (rows->slots[i] &&
	       memcmp(&rows->rules[rows->slots[i] - 1], recipe, sizeof *recipe) != 0)
		i = (i + 1) & mask;
	return &rows->slots[i];
}

static int slots_grow(struct rows *rows)
{
	size_t wanted = rows->slot_count ? rows->slot_count * 2 : 256;
	uint32_t *slots = calloc(wanted, sizeof *slots);
	if (!slots)
		return -1;
	free(rows->slots);
	rows->slots = slots;
	rows->slot_count = wanted;
	for (size_t i = 0; i < rows->rule_count; i++)
		*rule_slot(rows, &rows->rules[i]) = (uint32_t)i + 1;
	return 0;
}

static int rules_grow(struct rows *rows)
{
	size_t wanted = rows->rule_capacity ? rows->rule_capacity * 2 : 128;
	struct recipe *rules;
	if (wanted > UINT32_MAX / 2)
		return -1;
	rules = realloc(rows->rules, wanted * sizeof *rules);
	if (!rules)
		return -1;
	rows->rules = rules;
	rows->rule_capacity = wanted;
	return 0;
}

uint32_t rows_rule(struct rows *rows, const struct recipe *recipe)
{
	uint32_t *slot;
	if (rows->failed)
		return NO_RULE;
	if (rows->rule_count * 2 >= rows->slot_count && slots_grow(rows) < 0)
		goto failed;
	slot = rule_slot(rows, recipe);
	if (*slot)
		return *slot - 1;
	if (rows->rule_count == rows->rule_capacity && rules_grow(rows) < 0)
		goto failed;
	rows->rules[rows->rule_count] = *recipe;
	*slot = (uint32_t)++rows->rule_count;
	return *slot - 1;
failed:
	rows->failed = 1;
	return NO_RULE;
}

/* ---- adding ---- */

static void row_push(struct rows *rows, uint64_t address, uint32_t rule)
{
	if (rows->failed)
		return;
	if (rows->count == rows->capacity) {
		size_t wanted = rows->capacity ? rows->capacity * 2 : 1024;
		struct row *grown = NULL;
		if (wanted <= SIZE_MAX / sizeof *grown)
			grown = realloc(rows->rows, wanted * sizeof *grown);
		if (!grown) {
			rows->failed = 1;
			return;
		}
		rows->rows = grown;
		rows->capacity = wanted;
	}
	rows->rows[rows->count++] = (struct row){.address = address, .rule = rule};
}

void rows_add(struct rows *rows, uint64_t start, uint64_t end, uint32_t rule)
{
	struct row *last;
	if (rows->failed || start >= end || rule == NO_RULE || rule >= rows->rule_count)
		return;
	last = rows->count ? &rows->rows[rows->count - 1] : NULL;
	if (!last || last->address != start) {
		row_push(rows, start, rule);
	} else if (rows->count > 1 && last[-1].rule == rule) {
		last->address = end;
		return;
	} else {
		last->rule = rule;
	}
	row_push(rows, end, NO_RULE);
}

/* ---- finishing ---- */

struct chain {
	uint64_t start, end;
	size_t first, last; /* rows; `last` is the one that ends it */
};

struct sweep {
	const struct row *rows;
	struct chain *chains; /* ascending by start, then by first */
	size_t chain_count;
	size_t *active; /* heap of chains that cover the current address, earliest added on top */
	size_t active_count;
	struct rows out; /* `rows` alone is used */
};

static size_t chains_count(const struct rows *rows)
{
	size_t count = 0;
	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].rule == NO_RULE;
	return count;
}

static size_t chains_fill(const struct rows *rows, struct chain *chains)
{
	size_t count = 0, first = 0;
	for (size_t i = 0; i < rows->count; i++) {
		if (rows->rows[i].rule != NO_RULE)
			continue;
		if (i > first)
			chains[count++] = (struct chain){rows->rows[first].address,
							 rows->rows[i].address, first, i};
		first = i + 1;
	}
	return count;
}

static int chain_compare(const void *left, const void *right)
{
	const struct chain *a = left, *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static void chains_sort(struct chain *chains, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (chain_compare(&chains[i - 1], &chains[i]) > 0) {
			qsort(chains, count, sizeof *chains, chain_compare);
			return;
		}
	}
}

static void heap_push(struct sweep *sweep, size_t chain)
{
	const struct chain *chains = sweep->chains;
	size_t *heap = sweep->active, i = sweep->active_count++;
	while (i && chains[heap[(i - 1) / 2]].first > chains[chain].first) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = chain;
}

static void heap_pop(struct sweep *sweep)
{
	const struct chain *chains = sweep->chains;
	size_t *heap = sweep->active, count = --sweep->active_count, i = 0;
	size_t moved = heap[count];
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= count)
			break;
		if (child + 1 < count && chains[heap[child + 1]].first < chains[heap[child]].first)
			child++;
		if (chains[heap[child]].first >= chains[moved].first)
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (count)
		heap[i] = moved;
}

/* Puts a row out, joined with an equal one before it. */
static void sweep_put(struct sweep *sweep, uint64_t address, uint32_t rule)
{
	struct rows *out = &sweep->out;
	if (out->count && out->rows[out->count - 1].address == address)
		out->count--;
	if (out->count ? out->rows[out->count - 1].rule == rule : rule == NO_RULE)
		return;
	row_push(out, address, rule);
}

/* Puts out what `chain` says about [from, to). */
static void sweep_copy(struct sweep *sweep, const struct chain *chain, uint64_t from, uint64_t to)
{
	size_t low = chain->first, high = chain->last;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (sweep->rows[middle].address <= from)
			low = middle;
		else
			high = middle;
	}
	sweep_put(sweep, from, sweep->rows[low].rule);
	for (size_t i = low + 1; i < chain->last && sweep->rows[i].address < to; i++)
		sweep_put(sweep, sweep->rows[i].address, sweep->rows[i].rule);
	sweep_put(sweep, to, NO_RULE);
}

static void sweep_run(struct sweep *sweep)
{
	uint64_t at = 0;
	size_t next = 0;
	while (next < sweep->chain_count || sweep->active_count) {
		const struct chain *top;
		uint64_t to;
		if (!sweep->active_count && sweep->chains[next].start > at)
			at = sweep->chains[next].start;
		while (next < sweep->chain_count && sweep->chains[next].start <= at)
			heap_push(sweep, next++);
		top = &sweep->chains[sweep->active[0]];
		if (top->end <= at) {
			heap_pop(sweep);
			continue;
		}
		to = top->end;
		if (next < sweep->chain_count && sweep->chains[next].start < to)
			to = sweep->chains[next].start;
		sweep_copy(sweep, top, at, to);
		at = to;
	}
}

void rows_finish(struct rows *rows)
{
	struct sweep sweep = {.rows = rows->rows};
	size_t chains = chains_count(rows);
	if (rows->failed || !rows->count)
		return;
	sweep.chains = malloc((chains + 1) * sizeof *sweep.chains);
	sweep.active = malloc((chains + 1) * sizeof *sweep.active);
	if (sweep.chains && sweep.active) {
		sweep.chain_count = chains_fill(rows, sweep.chains);
		chains_sort(sweep.chains, sweep.chain_count);
		sweep_run(&sweep);
	} else {
		sweep.out.failed = 1;
	}
	free(sweep.chains);
	free(sweep.active);
	if (sweep.out.failed) {
		free(sweep.out.rows);
		rows->failed = 1;
		return;
	}
	free(rows->rows);
	rows->rows = sweep.out.rows;
	rows->count = sweep.out.count;
	rows->capacity = sweep.out.capacity;
}

uint32_t rows_find(const struct rows *rows, uint64_t address)
{
	size_t after = FIRST_NOT(i, rows->count, rows->rows[i].address <= address);
	return after ? rows->rows[after - 1].rule : NO_RULE;
}

uint32_t rows_follow(const struct rows *rows, size_t *row, uint64_t address)
{
	while (*row + 1 < rows->count && rows->rows[*row + 1].address <= address)
		++*row;
	if (!rows->count || rows->rows[*row].address > address)
		return NO_RULE;
	return rows->rows[*row].rule;
}
