/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/between.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "profile/own.h"

/* Finds an index by a hash; who asks compares. Made when first needed. */
struct finder {
	uint32_t *slots; /* index + 1; 0: free */
	size_t mask;
};

typedef uint64_t hash_of(const struct profile *p, size_t index);

static bool finder_make(struct finder *f, const struct profile *p, size_t count, hash_of *hash)
{
	size_t room = 64;
	if (f->slots)
		return true;
	while (room < count * 2)
		room *= 2;
	f->slots = calloc(room, sizeof *f->slots);
	f->mask = room - 1;
	for (size_t i = 0; f->slots && i < count; i++) {
		size_t at = hash(p, i) & f->mask;
		while (f->slots[at])
			at = (at + 1) & f->mask;
		f->slots[at] = (uint32_t)i + 1;
	}
	return f->slots != NULL;
}

/* ---- modules and threads: equal by what they are called ---- */

static uint64_t hash_module(const struct profile *p, size_t index)
{
	const struct profile_module *m = &p->modules[index];
	return hash_number(hash_text(hash_text(HASH_START, m->path), m->build_id), m->kind);
}

/* Code made at run time belongs to a process. */
static bool same_module(const struct profile *p, size_t i, const struct profile *q, size_t k)
{
	const struct profile_module *a = &p->modules[i], *b = &q->modules[k];
	bool same = a->kind == b->kind && !strcmp(a->path, b->path) &&
		    !strcmp(a->build_id, b->build_id);
	if (!same || a->kind != PROFILE_JIT)
		return same;
	const struct profile_process *x = a->process < p->process_count ? &p->processes[a->process]
									: NULL;
	const struct profile_process *y = b->process < q->process_count ? &q->processes[b->process]
									: NULL;
	return x && y ? x->pid == y->pid && x->start_ns == y->start_ns : x == y;
}

static uint64_t hash_thread(const struct profile *p, size_t index)
{
	const struct profile_thread *t = &p->threads[index];
	return own_mix((uint64_t)(uint32_t)t->tid << 32 ^ own_mix(t->start_ns));
}

static bool same_thread(const struct profile *p, size_t i, const struct profile *q, size_t k)
{
	const struct profile_thread *a = &p->threads[i], *b = &q->threads[k];
	const struct profile_process *x = &p->processes[a->process], *y = &q->processes[b->process];
	return a->tid == b->tid && a->start_ns == b->start_ns && x->pid == y->pid &&
	       x->start_ns == y->start_ns;
}

typedef bool is_same(const struct profile *p, size_t i, const struct profile *q, size_t k);

static uint32_t *match(const struct profile *before, size_t before_count, const struct profile *now,
		       size_t now_count, hash_of *hash, is_same *same)
{
	uint32_t *to = malloc((before_count + 1) * sizeof *to);
	struct finder f = {0};
	bool good = to != NULL;
	for (size_t i = 0; good && i < before_count; i++) {
		to[i] = BETWEEN_NONE;
		if (i < now_count && same(before, i, now, i)) {
			to[i] = (uint32_t)i;
			continue;
		}
		good = finder_make(&f, now, now_count, hash);
		for (size_t at = hash(before, i) & f.mask; good && f.slots[at];
		     at = (at + 1) & f.mask)
			if (same(before, i, now, f.slots[at] - 1)) {
				to[i] = f.slots[at] - 1;
				break;
			}
	}
	free(f.slots);
	if (good)
		return to;
	free(to);
	return NULL;
}

uint32_t *between_modules(const struct profile *before, const struct profile *now)
{
	return match(before, before->module_count, now, now->module_count, hash_module,
		     same_module);
}

uint32_t *between_threads(const struct profile *before, const struct profile *now)
{
	return match(before, before->thread_count, now, now->thread_count, hash_thread,
		     same_thread);
}

/* ---- nodes: the same frame below the same parent ---- */

static uint64_t hash_node(const struct profile *p, size_t index)
{
	const struct profile_node *n = &p->nodes[index];
	return own_mix(own_mix((uint64_t)n->parent << 32 | n->module) ^ n->address ^
		       (uint64_t)n->kind << 62);
}

static bool same_node(const struct profile_node *a, const struct profile_node *b)
{
	return a->address == b->address && a->parent == b->parent && a->module == b->module &&
	       a->kind == b->kind;
}

static uint32_t find_node(const struct finder *f, const struct profile *now,
			  struct profile_node wanted)
{
	struct profile one = {.nodes = &wanted, .node_count = 1};
	for (size_t at = hash_node(&one, 0) & f->mask; f->slots[at]; at = (at + 1) & f->mask)
		if (same_node(&now->nodes[f->slots[at] - 1], &wanted))
			return f->slots[at] - 1;
	return BETWEEN_NONE;
}

static uint32_t *match_nodes(const struct profile *before, const struct profile *now,
			     const uint32_t *modules)
{
	uint32_t *to = calloc(before->node_count + 1, sizeof *to);
	struct finder f = {0};
	bool good = to != NULL;
	for (size_t i = 1; good && i < before->node_count; i++) {
		struct profile_node n = before->nodes[i];
		n.parent = to[n.parent];
		n.module = modules[n.module];
		to[i] = BETWEEN_NONE;
		if (n.parent == BETWEEN_NONE || n.module == BETWEEN_NONE)
			continue;
		if (i < now->node_count && same_node(&now->nodes[i], &n))
			to[i] = (uint32_t)i;
		else if ((good = finder_make(&f, now, now->node_count, hash_node)))
			to[i] = find_node(&f, now, n);
	}
	free(f.slots);
	if (good)
		return to;
	free(to);
	return NULL;
}

/* ---- values ---- */

static int compare(const void *a, const void *b)
{
	const struct profile_value *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->metric > y->metric) - (x->metric < y->metric);
}

struct maps {
	uint32_t *modules, *threads, *nodes;
};

/* The values of `before` with the indices of `now`, in order. */
static size_t translate(const struct profile *before, const struct profile *now,
			const struct maps *maps, struct profile_value *out)
{
	size_t count = 0;
	bool ordered = true;
	for (size_t i = 0; i < before->value_count; i++) {
		struct profile_value v = before->values[i];
		v.node = maps->nodes[v.node];
		v.thread = maps->threads[v.thread];
		if (v.node == BETWEEN_NONE || v.thread == BETWEEN_NONE ||
		    v.metric >= now->metric_count)
			continue;
		ordered &= !count || compare(&out[count - 1], &v) <= 0;
		out[count++] = v;
	}
	if (!ordered)
		qsort(out, count, sizeof *out, compare);
	return count;
}

static size_t subtract(const struct profile *now, const struct profile_value *less,
		       size_t less_count, struct profile_value *out)
{
	size_t count = 0, at = 0;
	for (size_t i = 0; i < now->value_count; i++) {
		struct profile_value v = now->values[i];
		while (at < less_count && compare(&less[at], &v) < 0)
			at++;
		for (; at < less_count && !compare(&less[at], &v); at++)
			v.count -= less[at].count < v.count ? less[at].count : v.count;
		if (v.count)
			out[count++] = v;
	}
	return count;
}

struct err *between_values(const struct profile *before, const struct profile *now,
			   struct profile_value **values, size_t *count)
{
	struct maps maps = {.modules = between_modules(before, now),
			    .threads = between_threads(before, now)};
	struct profile_value *less = malloc((before->value_count + 1) * sizeof *less);
	*count = 0;
	*values = malloc((now->value_count + 1) * sizeof **values);
	if (maps.modules)
		maps.nodes = match_nodes(before, now, maps.modules);
	bool good = *values && less && maps.threads && maps.nodes;
	if (good) {
		size_t less_count = translate(before, now, &maps, less);
		*count = subtract(now, less, less_count, *values);
	} else {
		free(*values);
		*values = NULL;
	}
	free(less);
	free(maps.modules);
	free(maps.threads);
	free(maps.nodes);
	return good ? NULL : err_new("out of memory");
}
