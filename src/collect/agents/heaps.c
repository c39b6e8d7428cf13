/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/heaps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "profile/profile.h"
#include "safe/heap.h"
#include "safe/ticks.h"

#define BRIEF_NS 10000.0 /* memory that is freed earlier has lived for a short while */

struct placed_site {
	uint64_t site;
	uint32_t node, thread;
};

static size_t metric_of(const struct recording_options *o, enum recording_call call)
{
	for (size_t i = 0; i < o->event_count; i++)
		if (o->events[i].call == call)
			return i;
	return SIZE_MAX;
}

size_t heaps_site_metric(const struct recording_options *o)
{
	return metric_of(o, RECORDING_HEAP_BYTES);
}

struct wire_heap heaps_settings(const struct recording *r)
{
	const struct recording_options *o = &r->options;
	size_t samples = metric_of(o, RECORDING_HEAP_SAMPLES);
	if (samples == SIZE_MAX)
		return (struct wire_heap){0};
	double rate = (double)(ticks_now() - r->start_ticks) / (double)(now_ns() - r->start_ns);
	return (struct wire_heap){.wanted = true,
				  .samples = (uint32_t)samples,
				  .site = (uint32_t)heaps_site_metric(o),
				  .released = (uint32_t)metric_of(o, RECORDING_HEAP_RELEASED),
				  .bytes = o->events[samples].period,
				  .brief = (uint64_t)(rate * BRIEF_NS)};
}

void heaps_place(struct process *p, uint64_t site, uint32_t node, uint32_t thread)
{
	struct heap_sites *s = &p->agent->sites;
	if (ARRAY_ROOM(s->placed, s->count, s->room))
		s->placed[s->count++] = (struct placed_site){site, node, thread};
}

/* The heap of a process; NULL: it has none. */
static struct arena_heap *heap_of(const struct arena *a, const struct process *p)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS; /* a target may have overwritten the list */
	uint32_t chunk = a->header ? atomic_load(&a->header->heaps) : 0;
	for (; chunk && chunk < a->size >> ARENA_CHUNK_BITS && left; left--) {
		struct arena_heap *heap = arena_at(a->header, chunk);
		if (atomic_load(&heap->process) == p->namespace_pid)
			return heap;
		chunk = atomic_load(&heap->chunk.next);
	}
	return NULL;
}

static uint64_t number_of(const struct arena_heap *heap, struct arena_site *site,
			  enum recording_call which)
{
	uint64_t live = arena_site_live(site);
	switch (which) {
	case RECORDING_HEAP_BYTES:
		return atomic_load(&site->bytes);
	case RECORDING_HEAP_CALLS:
		return atomic_load(&site->calls);
	case RECORDING_HEAP_LIVE:
		return live;
	case RECORDING_HEAP_PEAK:
		return heap->at_peak || site->serial != heap->serial ? live
								     : atomic_load(&site->peak);
	case RECORDING_HEAP_TEMPORARY:
		return atomic_load(&site->temporary);
	case RECORDING_HEAP_BRIEF:
		return atomic_load(&site->brief);
	case RECORDING_HEAP_FREED:
		return site->ended + site->ended_elsewhere;
	case RECORDING_HEAP_LIFETIME:
		return site->lifetime + site->lifetime_elsewhere;
	case RECORDING_HEAP_ELSEWHERE:
		return atomic_load(&site->ended_elsewhere);
	case RECORDING_HEAP_WASTED:
		return atomic_load(&site->wasted);
	case RECORDING_HEAP_GROWN:
		return atomic_load(&site->grown);
	case RECORDING_HEAP_MAPPED:
		return atomic_load(&site->mapped);
	case RECORDING_HEAP_KEPT:
		return site->mapped - site->unmapped;
	default:
		return 0;
	}
}

static struct err *count(const struct recording_options *o, struct harvest *h,
			 const struct arena *a, const struct arena_heap *heap,
			 const struct placed_site *at)
{
	struct err *e = NULL;
	if (at->site > (a->size - sizeof(struct arena_site)) / 8)
		return NULL;
	for (uint32_t i = 0; !e && i < o->event_count; i++) {
		uint64_t n = number_of(heap, arena_site(a->header, at->site), o->events[i].call);
		if (n && n < UINT64_C(1) << 62)
			e = profile_count(h->profile, at->node, at->thread, i, n);
	}
	return e;
}

struct err *heaps_count(const struct recording_options *o, struct harvest *h, const struct arena *a,
			const struct process *p, uint64_t site, uint32_t node, uint32_t thread)
{
	const struct arena_heap *heap = heap_of(a, p);
	return heap ? count(o, h, a, heap, &(struct placed_site){site, node, thread}) : NULL;
}

void heaps_count_placed(struct agents *agents, struct harvest *h, const struct process *p)
{
	const struct heap_sites *s = &p->agent->sites;
	const struct arena *a = p->agent->arena;
	const struct arena_heap *heap = s->count ? heap_of(a, p) : NULL;
	for (size_t i = 0; heap && i < s->count; i++)
		recording_note_error(agents->recording,
				     count(&agents->recording->options, h, a, heap, &s->placed[i]));
}

static void note_heap(struct recording *r, struct arena_heap *heap)
{
	char *name = r->notes.other_malloc;
	recording_lose(r, "no room", atomic_load(&heap->untracked));
	if (!*name)
		snprintf(name, sizeof r->notes.other_malloc, "%.*s", (int)HEAP_NAME - 1,
			 heap->other);
}

void heaps_end(struct agents *agents, struct process *p)
{
	struct heap_sites *s = &p->agent->sites;
	struct arena *a = p->agent->arena;
	struct arena_heap *heap = heap_of(a, p);
	heaps_count_placed(agents, &agents->recording->harvest, p);
	if (heap) {
		note_heap(agents->recording, heap);
		arena_heap_free(a->header, heap);
	}
	free(s->placed);
	*s = (struct heap_sites){0};
}
