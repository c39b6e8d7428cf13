/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/waits.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/descriptors.h"
#include "collect/agents/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "profile/profile.h"
#include "safe/wire.h"
#include "unwind/end.h"

bool waits_wanted(const struct recording *r)
{
	for (size_t i = 0; i < r->options.event_count; i++)
		if (r->options.events[i].off)
			return true;
	return false;
}

/* ---- times ---- */

struct times {
	uint64_t end, cpu;
	uint64_t off;    /* all time off the CPU */
	uint64_t open;   /* of this: in a wait that goes on */
	uint64_t queued; /* in none that was seen, and the scheduler had no CPU for it */
	uint64_t rest;   /* in none that was seen */
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct times times_of(const struct process *p, const struct thread *t,
			     const struct arena_thread *record)
{
	struct arena_thread *r = (struct arena_thread *)record;
	uint64_t cpu = atomic_load(&r->cpu_ns), waited = atomic_load(&r->waited_ns);
	uint64_t since = atomic_load(&r->wait.since);
	struct times out = {.end = atomic_load(&r->end_ns)};
	if (t && t->cpu_ns > cpu && !out.end)
		cpu = t->cpu_ns;
	if (!out.end)
		out.end = p->end_ns ? p->end_ns : now_ns();
	out.cpu = less(cpu, atomic_load(&r->cpu_start_ns));
	out.off = less(less(out.end, r->start_ns), out.cpu);
	out.rest = less(out.off, waited);
	out.open = since ? less(out.end, since) : 0;
	if (out.open > out.rest)
		out.open = out.rest;
	out.rest -= out.open;
	out.queued = t ? less(t->queued_ns, t->queued_start_ns) : 0;
	if (out.queued > out.rest)
		out.queued = out.rest;
	out.rest -= out.queued;
	return out;
}

void waits_describe(const struct recording *r, const struct process *p, const struct thread *t,
		    const struct arena_thread *record, struct profile_thread *out)
{
	if (!waits_wanted(r) || !record->start_ns)
		return;
	const struct times times = times_of(p, t, record);
	out->end_ns = recording_since(r, times.end);
	out->cpu_ns = times.cpu;
	out->queued_ns = times.queued;
	out->blocked_ns = times.off - times.queued;
}

uint64_t waits_function_key(const struct process *p, uint64_t address)
{
	for (uint32_t i = 0; p->list && i < p->list->count; i++) {
		const struct wire_module *m = &p->list->modules[i];
		if (m->start <= address && address < m->end && m->id)
			return cct_key(true, m->id, address - m->bias + 1);
	}
	return 0;
}

/* ---- counting ---- */

struct counting {
	struct recording *recording;
	struct harvest *harvest;
	struct process *process;
	const struct arena *arena;
	uint32_t thread;
	uint64_t *samples;
};

/* Counts time of a kind at a node. */
static struct err *count(const struct counting *c, uint32_t node, uint64_t ns, uint8_t kind)
{
	const struct recording_options *o = &c->recording->options;
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < o->event_count; i++) {
		uint64_t n = o->events[i].off & kind
				     ? (ns + o->events[i].period / 2) / o->events[i].period
				     : 0;
		if (!i)
			*c->samples += n;
		e = n ? profile_count(c->harvest->profile, node, c->thread, i, n) : NULL;
	}
	return e;
}

/* Moves `node` to its child for an act. */
static struct err *add_act(const struct counting *c, uint32_t act, uint32_t *node)
{
	struct buf name = {0};
	uint64_t key = cct_key(false, CCT_OBJECT, act);
	descriptors_name(c->arena, key, &name);
	struct err *e = descriptors_add_child(c->harvest, *node, key, buf_text(&name), node);
	buf_free(&name);
	return e;
}

/* A wait that goes on. If nobody has seen where, it is known which function waits. */
static struct err *count_open(const struct counting *c, const struct thread *t,
			      const struct arena_thread *record, uint64_t ns)
{
	const struct arena_wait *w = &record->wait;
	uint64_t since = atomic_load(&((struct arena_thread *)record)->wait.since);
	uint32_t node = 0;
	if (t && t->wait_node && t->wait_since == since)
		return count(c, t->wait_node, ns, RECORDING_BLOCKED);
	uint64_t function = waits_function_key(c->process, w->function);
	struct err *e = harvest_add_child(c->recording, c->harvest, c->process, 0,
					  cct_key(false, CCT_PARTIAL, WALK_NO_STACK), &node);
	if (!e && function)
		e = harvest_add_child(c->recording, c->harvest, c->process, node, function, &node);
	if (!e)
		e = add_act(c,
			    w->act > ARENA_WAITS_DESCRIPTOR && w->act < ARENA_ACTS
				    ? w->act
				    : ARENA_WAITS_OTHER,
			    &node);
	return e ? e : count(c, node, ns, RECORDING_BLOCKED);
}

static struct err *count_row(const struct counting *c, uint32_t act, uint64_t ns, uint8_t kind)
{
	uint32_t node = 0;
	struct err *e = ns ? add_act(c, act, &node) : NULL;
	return e || !ns ? e : count(c, node, ns, kind);
}

struct err *waits_count(struct recording *r, struct harvest *h, struct process *p,
			const struct thread *t, const struct arena *a,
			const struct arena_thread *record, uint32_t thread, uint64_t *samples)
{
	const struct counting c = {r, h, p, a, thread, samples};
	if (!waits_wanted(r) || !record->start_ns)
		return NULL;
	const struct times times = times_of(p, t, record);
	struct err *e = times.open ? count_open(&c, t, record, times.open) : NULL;
	if (!e)
		e = count_row(&c, ARENA_WAITS_CPU, times.queued, RECORDING_QUEUED);
	if (!e)
		e = count_row(&c, ARENA_WAITS_OTHER, times.rest, RECORDING_BLOCKED);
	return e;
}
