/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time lines of threads that an agent samples. A thread notes when each sample came, and in which node of
 * its tree (safe/arena.h). Here that becomes the time line of the profile: now and then while the thread
 * runs, and at its end.
 *
 * The references to nodes are valid until the record is given back. To find the node in the profile, we
 * follow the keys of the node and of its callers. Results are remembered, so usually the node itself or its
 * caller is already known.
 */
#include "collect/agents/times.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/arenas.h"
#include "collect/agents/interpreted.h"
#include "collect/agents/state.h"
#include "collect/agents/trees.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "profile/profile.h"

#define KNOWN_BITS 13

struct known { /* a node of a thread's tree that is known */
	uint64_t arena;
	uint32_t owner, generation; /* the thread's record */
	uint32_t ref, node;         /* ref: in the tree; node: in the profile */
};

struct times {
	struct known known[1u << KNOWN_BITS];
	uint32_t max; /* frames of a path */
	struct known path[];
};

static struct times *times_open(struct agents *agents)
{
	uint32_t max = agents->recording->options.max_depth;
	if (!agents->times)
		agents->times = calloc(1, sizeof *agents->times +
						  (max + 2) * sizeof *agents->times->path);
	if (agents->times)
		/* And the root, and the node for callers that are not known. */
		agents->times->max = max + 2;
	return agents->times;
}

void times_close(struct agents *agents)
{
	free(agents->times);
	agents->times = NULL;
}

static struct known *slot_of(struct times *k, const struct known *wanted)
{
	uint64_t hash = wanted->ref * 0x9e3779b97f4a7c15u ^ wanted->arena << 40;
	return &k->known[hash >> (64 - KNOWN_BITS)];
}

static bool is_same(const struct known *a, const struct known *b)
{
	return a->ref == b->ref && a->owner == b->owner && a->generation == b->generation &&
	       a->arena == b->arena;
}

/* The node with this reference; NULL if there can be none: the target may have overwritten the memory. */
static const volatile struct cct_node *node_at(const struct arena *a, uint32_t ref)
{
	uint64_t at = (uint64_t)ref * 8;
	return at >= ARENA_CHUNK && at + sizeof(struct cct_node) <= a->size
		       ? (void *)((char *)a->header + at)
		       : NULL;
}

/* Finds the node in the profile: goes up to a node that is known, then down again. */
static struct err *find_node(struct agents *agents, const struct arena *a, struct process *p,
			     struct known at, uint32_t *out, bool *good)
{
	struct times *k = agents->times;
	uint32_t count = 0, node = 0;
	struct err *e = NULL;
	*good = false;
	for (;;) {
		const struct known *known = slot_of(k, &at);
		const volatile struct cct_node *n = node_at(a, at.ref);
		if (is_same(known, &at)) {
			node = known->node;
			break;
		}
		if (!n || count == k->max)
			return NULL;
		uint32_t parent = n->parent;
		if (!parent) /* the root */
			break;
		k->path[count++] = at;
		at.ref = parent;
	}
	while (count && !e) {
		struct known *here = &k->path[--count];
		uint64_t key = node_at(a, here->ref)->key;
		e = interpreted_add_child(agents->recording, &agents->recording->harvest, p, a,
					  node, key, &node);
		here->node = node;
		*slot_of(k, here) = *here;
	}
	*out = node;
	*good = !e;
	return e;
}

static void take_one(struct agents *agents, const struct arena *a, const struct thread *t,
		     uint32_t thread, struct arena_time time)
{
	struct known at = {a->inode, t->chunk, t->generation, time.node, 0};
	uint64_t now = now_ns();
	uint32_t node;
	bool good;
	struct err *e = find_node(agents, a, t->process, at, &node, &good);
	if (good)
		e = profile_time(agents->recording->harvest.profile, node, thread, 0,
				 recording_since(agents->recording, time.ns < now ? time.ns : now),
				 time.weight);
	agents->recording->notes.unkept += e != NULL;
	agents->recording->harvest.profile->untimed += good && !e ? 0 : time.weight;
	err_free(e);
}

void times_take(struct agents *agents, struct arena *a, struct thread *t, struct arena_thread *r)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS; /* a target may have overwritten the list */
	uint32_t first = atomic_load_explicit(&r->times, memory_order_acquire), thread, used;
	struct arena_chunk *chunk = (void *)arena_record(a, first);
	if (!chunk || !agents->recording->options.timeline || !times_open(agents) ||
	    !trees_find_thread(agents->recording, t, r, &thread))
		return;
	for (; chunk && left; left--, chunk = (void *)arena_record(a, first)) {
		uint32_t at = t->times_read ? t->times_read : sizeof *chunk;
		used = atomic_load_explicit(&chunk->used, memory_order_acquire);
		for (; at + sizeof(struct arena_time) <= used && used <= ARENA_CHUNK;
		     at += sizeof(struct arena_time))
			take_one(agents, a, t, thread, *(struct arena_time *)((char *)chunk + at));
		t->times_read = at;
		if (at + sizeof(struct arena_time) <= ARENA_CHUNK)
			break;
		uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
		if (!next) /* the thread has not begun another chunk */
			break;
		atomic_store(&r->times, next);
		arena_give_times(a->header, first);
		t->times_read = 0;
		first = next;
	}
}

void times_take_all(struct agents *agents)
{
	for (struct arena *a = agents->arenas; agents->recording->options.timeline && a;
	     a = a->next)
		for (size_t i = 0; a->header && i < a->thread_count; i++) {
			struct thread *t = &a->threads[i];
			struct arena_thread *r = arena_record(a, t->chunk);
			if (r && r->generation == t->generation)
				times_take(agents, a, t, r);
		}
}
