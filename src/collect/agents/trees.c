/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/trees.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/arenas.h"
#include "collect/agents/heaps.h"
#include "collect/agents/interpreted.h"
#include "collect/agents/patches.h"
#include "collect/agents/patches_tree.h"
#include "collect/agents/state.h"
#include "collect/agents/waits.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "profile/profile.h"

#define IDLE_MAX 10000u /* threads without samples that are kept */

/* ---- threads ---- */

static uint64_t sum_samples(const struct recording *recording, const struct arena_thread *r)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < recording->options.event_count; i++)
		sum += atomic_load(&((struct arena_thread *)r)->samples[i]);
	return sum;
}

/* handler_ns is still in ticks here: session.c converts it at the end. */
static struct profile_thread describe(const struct recording *recording, const struct process *p,
				      const struct thread *t, struct arena_thread *r,
				      uint32_t process)
{
	uint64_t cpu = atomic_load(&r->cpu_ns), begun = atomic_load(&r->cpu_start_ns);
	struct profile_thread out = {
		.process = process,
		.tid = t ? t->tid : r->tid,
		.name = t ? t->name : "",
		.start_ns = recording_since(recording, r->start_ns),
		.end_ns = recording_since(recording, now_ns()),
		.cpu_ns = cpu > begun ? cpu - begun : 0,
		.handler_ns = atomic_load(&r->ticks),
		.handled = sum_samples(recording, r),
	};
	waits_describe(recording, p, t, r, &out);
	return out;
}

static struct err *place_thread(struct recording *recording, struct harvest *h, struct process *p,
				struct thread *t, const struct arena_thread *record,
				uint32_t *index)
{
	uint32_t process;
	struct err *e = harvest_add_process(recording, p, &process);
	if (e)
		return e;
	struct profile_thread wanted = describe(recording, p, t, (struct arena_thread *)record,
						process);
	if (t && t->profile) { /* a copy of it was walked before: it is there, without numbers */
		*index = t->profile - 1;
		struct profile_thread *there = &h->profile->threads[*index];
		if (t->profile == p->more_threads) {
			harvest_join_thread(there, &wanted);
			return NULL;
		}
		wanted.name = profile_string(h->profile, wanted.name);
		*there = wanted;
		return NULL;
	}
	e = harvest_add_thread(recording, h, p, &wanted, index);
	if (!e && t && h == &recording->harvest)
		t->profile = *index + 1;
	return e;
}

bool trees_find_thread(struct recording *recording, struct thread *t,
		       const struct arena_thread *record, uint32_t *index)
{
	struct err *e = NULL;
	if (t->profile)
		*index = t->profile - 1;
	else
		e = place_thread(recording, &recording->harvest, t->process, t, record, index);
	return recording_note_error(recording, e);
}

/* ---- trees ---- */

struct placed {
	uint32_t node;
	bool partial;
};

struct reading {
	struct recording *recording;
	struct harvest *harvest;
	struct process *process;
	const struct arena *arena;
	const struct arena_thread *record;
	pid_t tid;
	uint32_t thread;
	size_t metrics;
	size_t site_metric;    /* whose values are references to sites */
	bool last;             /* nobody will write to the tree any more */
	struct placed *placed; /* by index in the tree that is read */
	size_t room;
	uint64_t partial;
	struct err *error;
};

static bool make_room(struct reading *r, uint32_t index)
{
	if (index < r->room)
		return true;
	size_t room = r->room ? r->room * 2 : 1024;
	struct placed *more = index < room ? reallocarray(r->placed, room, sizeof *more) : NULL;
	if (!more) {
		r->error = err_new("out of memory");
		return false;
	}
	r->placed = more;
	r->room = room;
	return true;
}

/* A site's numbers are read when the process ends; but now, if the tree is taken for a look only. */
static struct err *take_site(struct reading *r, uint64_t site, uint32_t node)
{
	if (!r->last)
		return heaps_count(&r->recording->options, r->harvest, r->arena, r->process, site,
				   node, r->thread);
	heaps_place(r->process, site, node, r->thread);
	return NULL;
}

/* Calls of a probed function. */
static struct err *take_calls(struct reading *r, uint64_t reference, const struct placed *at)
{
	const struct patches_tree tree = {.recording = r->recording,
					  .harvest = r->harvest,
					  .arena = r->arena,
					  .record = r->record,
					  .pid = r->process->pid,
					  .tid = r->tid,
					  .thread = r->thread,
					  .last = r->last};
	return patches_take(&tree, reference, at->node, at->partial ? &r->partial : NULL);
}

/* The thread of the same process with this number, as the target sees it. It may have ended. */
static bool find_waker(const struct reading *r, int32_t tid, uint32_t *index)
{
	const struct arena *a = r->arena;
	for (size_t i = 0; i < a->thread_count; i++) {
		struct thread *t = &((struct arena *)a)->threads[i];
		const struct arena_thread *record = arena_record(a, t->chunk);
		if (t->process == r->process && record && record->tid == tid)
			return trees_find_thread(r->recording, t, record, index);
	}
	const struct profile *p = r->harvest->profile;
	for (size_t i = p->thread_count; i-- > 0;)
		if (p->threads[i].process + 1 == r->process->profile && p->threads[i].tid == tid) {
			*index = (uint32_t)i;
			return true;
		}
	return false;
}

/* Counts who ended the waits of a node. A look at a tree that grows does without. */
static void count_wakes(struct reading *r, uint32_t node, uint64_t key, const uint64_t *values)
{
	const struct recording_options *o = &r->recording->options;
	uint64_t waker = (key & CCT_ADDRESS) >> CCT_OBJECT_BITS;
	uint32_t act = key & CCT_OBJECT_ACT, index, by = PROFILE_WAKER_INTERRUPT;
	if (!r->last || cct_key_module(key) != CCT_OBJECT || act < ARENA_WAITS)
		return;
	if (act != ARENA_WAITS_SLEEP && (!waker || !find_waker(r, (int32_t)(waker >> 1), &index)))
		return;
	if (act != ARENA_WAITS_SLEEP)
		by = PROFILE_WAKERS + index;
	for (uint32_t i = 0; i < o->event_count && i < r->metrics && !r->error; i++)
		if (o->events[i].off & RECORDING_BLOCKED && values[i])
			r->error = profile_wake(r->harvest->profile,
						&(struct profile_wake){node, r->thread, i, by,
								       values[i],
								       waker & 1 ? values[i] : 0});
}

static void visit(void *context, uint32_t index, uint32_t parent, uint64_t key,
		  const uint64_t *values)
{
	struct reading *r = context;
	if (r->error || !make_room(r, index))
		return;
	struct placed at = {0};
	if (index) {
		at = r->placed[parent];
		at.partial |= !at.node && cct_key_module(key) == CCT_PARTIAL;
		r->error = interpreted_add_child(r->recording, r->harvest, r->process, r->arena,
						 at.node, key, &at.node);
	}
	r->placed[index] = at;
	for (uint32_t i = 0; i < r->metrics && !r->error; i++)
		if (values[i] && r->recording->options.probes)
			r->error = take_calls(r, values[i], &at);
		else if (values[i] && i == r->site_metric)
			r->error = take_site(r, values[i], at.node);
		else if (values[i])
			r->error = profile_count(r->harvest->profile, at.node, r->thread, i,
						 values[i]);
	if (index && !r->error)
		count_wakes(r, at.node, key, values);
	if (at.partial && !r->recording->options.probes)
		r->partial += values[0];
}

static bool is_worth_keeping(struct recording *recording, struct process *p, const struct thread *t,
			     const struct arena_thread *record)
{
	if ((t && t->profile) || sum_samples(recording, record))
		return true;
	return record->tid == p->namespace_pid ? !p->replaced
					       : recording->idle_threads++ < IDLE_MAX;
}

static void count_up(struct recording *recording, struct arena_thread *r, uint64_t partial)
{
	recording->samples += atomic_load(&r->weight);
	recording->partial += partial;
	recording_lose(recording, "no room", atomic_load(&r->lost));
}

void trees_take(struct recording *recording, struct harvest *h, struct process *p, struct thread *t,
		struct arena *a, const struct arena_thread *record, bool last)
{
	struct reading r = {.recording = recording,
			    .harvest = h,
			    .process = p,
			    .arena = a,
			    .record = record,
			    .tid = t ? t->tid : record->tid,
			    .metrics = recording_metrics(recording),
			    .site_metric = heaps_site_metric(&recording->options),
			    .last = last};
	/* The tree has as many values per node as the header says. */
	bool whole = a->header->metrics == r.metrics;
	if (!is_worth_keeping(recording, p, t, record))
		return;
	r.error = place_thread(recording, h, p, t, record, &r.thread);
	if (!r.error && whole)
		whole = cct_read(a->header, a->size, record, visit, &r);
	uint64_t more = 0;
	if (!r.error)
		r.error = waits_count(recording, h, p, t, a, record, r.thread, &more);
	if (last) {
		recording->samples += more;
		count_up(recording, (struct arena_thread *)record, r.partial);
		recording->notes.damaged_trees += !whole;
	} else if (atomic_load(&((struct arena_thread *)record)->lost)) {
		err_free(profile_lose(h->profile, "no room", record->lost));
	}
	recording_note_error(recording, r.error);
	free(r.placed);
}

void trees_lose(struct recording *recording, struct harvest *h, struct arena *a, bool last)
{
	uint64_t now = atomic_load(&a->header->unsampled), more = now - a->unsampled;
	if (last)
		recording->notes.restricted_programs += atomic_exchange(&a->header->restricted, 0);
	recording->notes.uncounted |= atomic_load(&a->header->uncounted);
	if (now <= a->unsampled)
		return;
	err_free(profile_lose(h->profile, "thread without a record", more));
	if (last) {
		a->unsampled = now;
		recording->lost += more;
	}
}

/* ---- counting in the tree of a live thread ---- */

struct counting {
	bool *partial;
	size_t room;
	uint64_t sum;
	bool failed;
};

static void count_visit(void *context, uint32_t index, uint32_t parent, uint64_t key,
			const uint64_t *values)
{
	struct counting *c = context;
	if (!c->failed && index >= c->room) {
		size_t room = c->room ? c->room * 2 : 4096;
		bool *more = index < room ? realloc(c->partial, room) : NULL;
		c->failed = !more;
		c->partial = more ? more : c->partial;
		c->room = more ? room : c->room;
	}
	if (c->failed)
		return;
	c->partial[index] = index &&
			    (parent ? c->partial[parent] : cct_key_module(key) == CCT_PARTIAL);
	c->sum += c->partial[index] ? values[0] : 0;
}

uint64_t trees_count_partial(const struct arena *a, const struct arena_thread *record)
{
	struct counting c = {0};
	cct_read(a->header, a->size, record, count_visit, &c);
	free(c.partial);
	return c.sum;
}
