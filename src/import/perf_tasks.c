/* SPDX-License-Identifier: Apache-2.0 */
#include "import/perf_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "import/binaries.h"
#include "process/space.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define BUCKETS 4096u
#define MAPPINGS_MAX 16384u         /* of a process */
#define ALL_MAPPINGS_MAX (1u << 21) /* of all: forks copy them */

struct mapping {
	uint64_t start, end, offset;
	struct binary *binary; /* NULL: made at run time */
};

struct task_space {
	uint32_t uses;
	struct mapping *mappings; /* ascending, disjoint */
	uint32_t count, room;
	struct walk_module *walk; /* NULL: not made since the last change */
};

struct perf_tasks {
	struct binaries *binaries;
	struct task_process *processes[BUCKETS]; /* the newest of a number first */
	struct task_thread *threads[BUCKETS];
	uint64_t mapping_count, unkept;
};

static const struct recipe no_recipe; /* RECIPE_NONE */
static const struct table no_table = {.rules = &no_recipe, .rule_count = 1};

struct perf_tasks *perf_tasks_new(struct binaries *binaries)
{
	struct perf_tasks *t = calloc(1, sizeof *t);
	if (t)
		t->binaries = binaries;
	return t;
}

uint64_t perf_tasks_unkept(const struct perf_tasks *t)
{
	return t->unkept;
}

/* ---- memory ---- */

static void space_drop(struct perf_tasks *t, struct task_space *s)
{
	if (!s || --s->uses)
		return;
	t->mapping_count -= s->count;
	free(s->mappings);
	free(s->walk);
	free(s);
}

void perf_tasks_free(struct perf_tasks *t)
{
	for (size_t i = 0; t && i < BUCKETS; i++) {
		for (struct task_process *p = t->processes[i], *next; p; p = next) {
			next = p->chain;
			space_drop(t, p->space);
			free(p);
		}
		for (struct task_thread *at = t->threads[i], *next; at; at = next) {
			next = at->chain;
			free(at);
		}
	}
	free(t);
}

/* A list of the process's own, with room for two more. NULL where it cannot have one. */
static struct task_space *own_space(struct perf_tasks *t, struct task_process *p)
{
	struct task_space *old = p->space, *s = old;
	uint32_t count = old ? old->count : 0;
	if (!old || old->uses > 1) {
		if (t->mapping_count + count > ALL_MAPPINGS_MAX)
			return NULL;
		s = calloc(1, sizeof *s);
		if (!s)
			return NULL;
		s->uses = 1;
	}
	if (s->room < count + 2) {
		uint32_t room = 2 * count + 8;
		struct mapping *more = reallocarray(s->mappings, room, sizeof *more);
		if (!more) {
			if (s != old)
				free(s);
			return NULL;
		}
		s->mappings = more;
		s->room = room;
	}
	if (s != old && count)
		memcpy(s->mappings, old->mappings, count * sizeof *s->mappings);
	if (s != old) {
		s->count = count;
		t->mapping_count += count;
		space_drop(t, old);
		p->space = s;
	}
	free(s->walk);
	s->walk = NULL;
	return s;
}

/* The first mapping that ends after `address`. */
static uint32_t find_mapping(const struct task_space *s, uint64_t address)
{
	return FIRST_NOT(i, s->count, s->mappings[i].end <= address);
}

/* Puts it in, and cuts away what it covers. */
static void insert(struct task_space *s, struct mapping new)
{
	uint32_t first = find_mapping(s, new.start), last = first;
	struct mapping pieces[3];
	uint32_t count = 0;
	while (last < s->count && s->mappings[last].start < new.end)
		last++;
	if (first < last && s->mappings[first].start < new.start) {
		pieces[count] = s->mappings[first];
		pieces[count++].end = new.start;
	}
	pieces[count++] = new;
	if (first < last && s->mappings[last - 1].end > new.end) {
		struct mapping rest = s->mappings[last - 1];
		rest.offset += new.end - rest.start;
		rest.start = new.end;
		pieces[count++] = rest;
	}
	memmove(s->mappings + first + count, s->mappings + last,
		(s->count - last) * sizeof *s->mappings);
	memcpy(s->mappings + first, pieces, count * sizeof *pieces);
	s->count += count;
	s->count -= last - first;
}

static struct walk_module describe(const struct mapping *m)
{
	struct walk_module w = {.start = m->start, .end = m->end, .table = no_table};
	const struct binary *b = m->binary;
	struct map map = {.start = m->start, .end = m->end, .offset = m->offset};
	if (!b) {
		w.flags = WIRE_MODULE_JIT;
		return w;
	}
	w.id = b->id;
	w.bias = m->start - m->offset;
	if (space_bias(b->segments, b->segment_count, &map, &w.bias) && b->table.bytes)
		w.table = b->table.table;
	return w;
}

struct walk_space perf_tasks_walk(struct perf_tasks *t, struct task_process *p)
{
	static const struct walk_module nothing;
	struct task_space *s = p->space;
	if (!s)
		return (struct walk_space){&nothing, 0};
	if (!s->walk) {
		s->walk = reallocarray(NULL, (size_t)s->count + 1, sizeof *s->walk);
		for (uint32_t i = 0; s->walk && i < s->count; i++) {
			if (s->mappings[i].binary)
				binary_open(t->binaries, s->mappings[i].binary);
			s->walk[i] = describe(&s->mappings[i]);
		}
	}
	return (struct walk_space){s->walk ? s->walk : &nothing, s->walk ? s->count : 0};
}

/* ---- processes and threads ---- */

static struct task_process *find_process(const struct perf_tasks *t, int32_t pid)
{
	struct task_process *p = t->processes[(uint32_t)pid % BUCKETS];
	while (p && p->pid != pid)
		p = p->chain;
	return p;
}

static struct task_process *add_process(struct perf_tasks *t, int32_t pid)
{
	struct task_process *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->pid = pid;
	p->parent = -1;
	if (!pid)
		snprintf(p->name, sizeof p->name, "swapper");
	p->chain = t->processes[(uint32_t)pid % BUCKETS];
	t->processes[(uint32_t)pid % BUCKETS] = p;
	return p;
}

static struct task_thread *find_thread(const struct perf_tasks *t, int32_t tid)
{
	struct task_thread *at = t->threads[(uint32_t)tid % BUCKETS];
	while (at && at->tid != tid)
		at = at->chain;
	return at;
}

static struct task_thread *add_thread(struct perf_tasks *t, struct task_process *p, int32_t tid)
{
	struct task_thread *new = calloc(1, sizeof *new);
	if (!new)
		return NULL;
	new->process = p;
	new->tid = tid;
	memcpy(new->name, p->name, sizeof new->name);
	new->chain = t->threads[(uint32_t)tid % BUCKETS];
	t->threads[(uint32_t)tid % BUCKETS] = new;
	return new;
}

struct task_thread *perf_tasks_thread(struct perf_tasks *t, int32_t pid, int32_t tid)
{
	struct task_thread *at = find_thread(t, tid);
	if (at && at->process->pid == pid)
		return at;
	struct task_process *p = find_process(t, pid);
	if (!p)
		p = add_process(t, pid);
	return p ? add_thread(t, p, tid) : NULL;
}

struct err *perf_tasks_fork(struct perf_tasks *t, int32_t pid, int32_t parent, int32_t tid,
			    bool other, uint64_t time)
{
	struct task_process *from = find_process(t, parent), *p;
	p = pid == parent ? from : add_process(t, pid);
	if (!p)
		p = add_process(t, pid);
	struct task_thread *new = p ? add_thread(t, p, tid) : NULL;
	if (!new)
		return err_new("out of memory");
	new->start = time;
	if (pid == parent)
		return NULL;
	p->start = time;
	p->parent = parent;
	if (from && !other) {
		memcpy(p->name, from->name, sizeof p->name);
		memcpy(new->name, from->name, sizeof new->name);
		p->space = from->space;
		if (p->space)
			p->space->uses++;
	}
	return NULL;
}

void perf_tasks_exit(struct perf_tasks *t, int32_t pid, int32_t tid, uint64_t time)
{
	struct task_thread *at = find_thread(t, tid);
	if (!at || at->process->pid != pid)
		return;
	at->end = time;
	if (pid == tid)
		at->process->end = time;
}

struct err *perf_tasks_name(struct perf_tasks *t, int32_t pid, int32_t tid, const char *name,
			    bool exec, uint64_t time)
{
	struct task_thread *at = perf_tasks_thread(t, pid, tid);
	if (!at)
		return err_new("out of memory");
	struct task_process *p = at->process;
	if (exec) {
		space_drop(t, p->space);
		p->space = NULL;
		/* What ran there before is another program, unless it was perf on its way. */
		if (p->profile && strcmp(p->name, "perf-exec") != 0 &&
		    strcmp(p->name, "perf") != 0) {
			p->profile = p->made_code = 0;
			p->images++;
			p->start = time;
		}
	}
	snprintf(at->name, sizeof at->name, "%s", name);
	if (exec || (pid == tid && !p->name[0]))
		snprintf(p->name, sizeof p->name, "%s", name);
	return NULL;
}

struct err *perf_tasks_map(struct perf_tasks *t, int32_t pid, uint64_t start, uint64_t size,
			   uint64_t offset, struct binary *binary)
{
	struct task_process *p = find_process(t, pid);
	if (!p)
		p = add_process(t, pid);
	if (!p)
		return err_new("out of memory");
	if (!size || start > UINT64_MAX - size)
		return NULL;
	struct task_space *s = p->space && p->space->count >= MAPPINGS_MAX ? NULL : own_space(t, p);
	if (!s || t->mapping_count >= ALL_MAPPINGS_MAX) {
		t->unkept++;
		return NULL;
	}
	t->mapping_count -= s->count;
	insert(s, (struct mapping){start, start + size, offset, binary});
	t->mapping_count += s->count;
	return NULL;
}

/* ---- the profile ---- */

static uint64_t since(uint64_t base, uint64_t time)
{
	return time > base ? time - base : 0;
}

struct err *perf_tasks_keep(struct task_thread *thread, struct profile *profile, uint64_t base,
			    uint32_t *index)
{
	struct task_process *p = thread->process;
	struct err *e = NULL;
	if (thread->profile && thread->image == p->images) {
		*index = thread->profile - 1;
		return NULL;
	}
	if (!p->profile) {
		uint32_t number;
		e = profile_add_process(
			profile,
			&(struct profile_process){.pid = p->pid,
						  .parent = p->parent,
						  .name = p->name,
						  .command = "",
						  .rank = -1,
						  .status = -1,
						  .start_ns = since(base, p->start)},
			&number);
		if (e)
			return e;
		p->profile = number + 1;
	}
	e = profile_add_thread(profile,
			       &(struct profile_thread){.process = p->profile - 1,
							.tid = thread->tid,
							.name = thread->name,
							.start_ns = since(base, thread->start)},
			       index);
	if (!e) {
		thread->profile = *index + 1;
		thread->image = p->images;
	}
	return e;
}

void perf_tasks_finish(struct perf_tasks *t, struct profile *profile, uint64_t base, uint64_t end)
{
	for (size_t i = 0; i < profile->process_count; i++)
		profile->processes[i].end_ns = since(base, end);
	for (size_t i = 0; i < profile->thread_count; i++)
		profile->threads[i].end_ns = since(base, end);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct task_process *p = t->processes[i]; p; p = p->chain) {
			if (!p->profile)
				continue;
			struct profile_process *to = &profile->processes[p->profile - 1];
			to->name = profile_string(profile, p->name);
			if (p->end)
				to->end_ns = since(base, p->end);
		}
		for (struct task_thread *at = t->threads[i]; at; at = at->chain) {
			if (!at->profile || at->image != at->process->images)
				continue;
			struct profile_thread *to = &profile->threads[at->profile - 1];
			to->name = profile_string(profile, at->name);
			if (at->end)
				to->end_ns = since(base, at->end);
		}
	}
}

void perf_tasks_each(struct perf_tasks *t,
		     void (*visit)(void *context, struct task_process *process), void *context)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct task_process *p = t->processes[i]; p; p = p->chain)
			if (p->profile)
				visit(context, p);
}
