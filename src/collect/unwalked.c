/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that a target could not walk, because they met code of no module
 * that it had been told of: a library that was loaded a moment ago, code made at
 * run time. It leaves registers and stack; we look at the process's memory map
 * again, tell it, and walk.
 */
#include "collect/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cct/cct.h"
#include "process/pointer.h"

#define LOOK_AGAIN_NS 500000ull /* at a map in which nothing was new; doubled each time */
#define USELESS_MAX 10u
#define BYTES_MAX ((size_t)ARENA_SNAPSHOT_CHUNKS * ARENA_CHUNK)

/* A sample as copied out of the arena. */
struct sample {
	uint32_t event, weight;
	uint64_t registers[CPU_REGISTERS];
	uint64_t pc, address;
	size_t size;
	uint8_t bytes[BYTES_MAX];
};
_Static_assert(CPU_REGISTERS == 32, "as many as in struct arena_snapshot");

bool unwalked_any(const struct arena_thread *record)
{
	for (int i = 0; i < ARENA_SNAPSHOTS; i++)
		if (atomic_load_explicit(&((struct arena_thread *)record)->snapshots[i],
					 memory_order_relaxed))
			return true;
	return false;
}

static bool copy_out(const struct arena *a, uint32_t chunk, struct sample *out)
{
	const struct arena_snapshot *from = (void *)arena_record(a, chunk);
	if (!from)
		return false;
	out->event = from->event;
	out->weight = from->weight;
	out->pc = from->pc;
	out->address = from->address;
	memcpy(out->registers, from->registers, sizeof out->registers);
	uint64_t size = from->size;
	if (size > BYTES_MAX)
		return false;
	out->size = (size_t)size;
	size_t done = 0, head = offsetof(struct arena_snapshot, bytes);
	while (done < out->size) {
		const struct arena_chunk *at = (void *)arena_record(a, chunk);
		if (!at)
			return false;
		size_t part = ARENA_CHUNK - head;
		if (part > out->size - done)
			part = out->size - done;
		memcpy(out->bytes + done, (const char *)at + head, part);
		done += part;
		head = sizeof *at;
		chunk = atomic_load(&((struct arena_chunk *)at)->next);
	}
	return true;
}

static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	const struct sample *s = context;
	if (address < s->address || address - s->address > s->size ||
	    s->size - (address - s->address) < sizeof *out)
		return false;
	memcpy(out, s->bytes + (address - s->address), sizeof *out);
	return true;
}

static enum code_kind code_at(const void *context, uint64_t address)
{
	const struct walk_module *m = walk_find_module(context, address);
	if (!m)
		return CODE_NONE;
	return m->table.page_count ? CODE_MODULE : CODE_OTHER;
}

static enum walk_end step(struct walk *w, const struct walk_space *space,
			  const struct walk_reader *reader)
{
	const struct code_space code = {code_at, space};
	uint64_t at = w->pc - !w->exact;
	enum walk_end end = walk_step(w, space, reader);
	if ((end != WALK_NO_MODULE && end != WALK_NO_RECIPE) || code_at(space, at) == CODE_MODULE)
		return end;
	if (pointer_step_back(w, &code, reader))
		return WALK_ON;
	if (code_at(space, at) == CODE_OTHER && pointer_step(w, &code, reader))
		return WALK_ON;
	return end;
}

struct path {
	uint64_t *keys;
	size_t count, max;
	enum walk_end end;
};

/* The keys of the frames, innermost first. */
static enum walk_end walk_sample(struct sample *sample, const struct walk_space *space,
				 uint16_t machine, struct path *path)
{
	struct walk w;
	struct walk_reader reader = {read_word, sample};
	enum walk_end end;
	path->count = 0;
	walk_begin(&w, unwind_cpu_for(machine), sample->registers, sample->pc);
	do {
		const struct walk_module *m = walk_find_module(space, w.pc - !w.exact);
		if (path->count == path->max)
			return WALK_TOO_DEEP;
		if (!m || !(m->flags & WIRE_MODULE_AGENT))
			path->keys[path->count++] = m && m->id ? cct_key(!w.exact, m->id,
									 w.pc - m->bias)
							       : cct_key(!w.exact, 0, w.pc);
		end = step(&w, space, &reader);
	} while (end == WALK_ON);
	return end;
}

static struct err *keep_path(struct session *s, struct process *p, const struct sample *sample,
			     uint32_t thread, const struct path *path)
{
	struct harvest *h = &s->harvest;
	uint32_t node = 0;
	struct err *e = NULL;
	if (path->end != WALK_COMPLETE)
		e = harvest_child(s, h, p, 0, cct_key(false, CCT_PARTIAL, (uint64_t)path->end),
				  &node);
	for (size_t i = path->count; !e && i; i--)
		e = harvest_child(s, h, p, node, path->keys[i - 1], &node);
	if (!e)
		e = profile_count(h->profile, node, thread, sample->event, sample->weight);
	if (!e && path->end != WALK_COMPLETE && !sample->event)
		s->partial += sample->weight;
	return e;
}

/* Looks at the process's memory again, unless that was of no use lately. */
static bool refresh(struct session *s, struct process *p)
{
	uint64_t now = session_now(), rest = p->useless ? LOOK_AGAIN_NS << p->useless : 0;
	if (p->gone || p->foreign || now - p->looked_ns < rest || !process_is_alive(p))
		return false;
	const struct library_list *before = p->list;
	p->looked_ns = now;
	err_free(process_look(s, p, NULL)); /* it may be ending: then with what we know */
	if (p->list != before)
		p->useless = 0;
	else if (p->useless < USELESS_MAX)
		p->useless++;
	return p->list != before;
}

static enum walk_end walk_with(struct session *s, const struct process *p, struct sample *sample,
			       struct path *path)
{
	struct walk_space space = p->list ? library_walk(s->library, p->list)
					  : (struct walk_space){0};
	return walk_sample(sample, &space, p->machine, path);
}

static void take_one(struct session *s, struct arena *a, struct process *p, uint32_t owner,
		     struct arena_thread *record, uint32_t chunk, struct sample *sample,
		     struct path *path)
{
	struct err *e = NULL;
	uint32_t thread;
	if (!copy_out(a, chunk, sample) || sample->event >= s->options.event_count) {
		s->notes.damaged_trees++;
		return;
	}
	path->end = walk_with(s, p, sample, path);
	if (path->end == WALK_NO_MODULE && refresh(s, p))
		path->end = walk_with(s, p, sample, path);
	struct thread *t = arena_thread_of(a, owner); /* after that, which may move it */
	if (!t)
		return;
	if (t->profile)
		thread = t->profile - 1;
	else
		e = harvest_thread(s, &s->harvest, p, t, record, &thread);
	if (!e)
		e = keep_path(s, p, sample, thread, path);
	if (e)
		s->notes.unkept++;
	err_free(e);
}

void unwalked_take(struct session *s, struct arena *a, struct process *p, uint32_t owner,
		   struct arena_thread *record)
{
	struct path path = {.max = s->options.max_depth ? s->options.max_depth : SESSION_DEPTH};
	if (!unwalked_any(record) || !arena_thread_of(a, owner))
		return;
	struct sample *sample = malloc(sizeof *sample);
	path.keys = reallocarray(NULL, path.max, sizeof *path.keys);
	for (int i = 0; i < ARENA_SNAPSHOTS; i++) {
		uint32_t chunk = atomic_load(&record->snapshots[i]);
		if (!chunk)
			continue;
		if (sample && path.keys)
			take_one(s, a, p, owner, record, chunk, sample, &path);
		else
			s->notes.unkept++;
		/* Its chunks are free before the thread may leave another one. */
		arena_give(a->header, chunk);
		atomic_store(&record->snapshots[i], 0);
	}
	free(sample);
	free(path.keys);
}
