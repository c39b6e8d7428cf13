/* SPDX-License-Identifier: Apache-2.0 */
/* From the trees in the arenas to the tree of the profile. */
#include "collect/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "image/image.h"
#include "image/name_table.h"
#include "image/names.h"
#include "image/symbols.h"
#include "process/jit.h"
#include "process/kernel_names.h"
#include "process/reach.h"
#include "process/runtime.h"

#define REASONS 64u         /* why a path is partial: more than there are */
#define THREADS_MAX 100000u /* that are told apart */
#define LISTS_MAX \
	((size_t)32 << 20) /* bytes of lists of names that one user's processes have, in a drain */
#define IDLE_MAX 10000u    /* threads without samples that are kept */

struct err *harvest_begin(struct session *s, struct harvest *h)
{
	*h = (struct harvest){.bounded = s->options.drained};
	h->modules = calloc(WIRE_MODULE_MAX, sizeof *h->modules);
	struct err *e = h->modules ? profile_new(&h->profile) : err_new("out of memory");
	if (!e)
		h->profile->timed = s->options.timeline;
	for (size_t i = 0; !e && i < s->options.event_count; i++) {
		const struct session_event *event = &s->options.events[i];
		uint32_t index;
		e = profile_add_metric(h->profile,
				       &(struct profile_metric){.name = event->name,
								.unit = event->unit,
								.period = event->period,
								.user_only = event->user_only},
				       &index);
	}
	if (e)
		harvest_end(h);
	return e;
}

void harvest_end(struct harvest *h)
{
	profile_free(h->profile);
	free(h->modules);
	free(h->owners);
	*h = (struct harvest){0};
}

/* ---- modules ---- */

static struct err *find_or_add(struct profile *p, const struct profile_module *wanted,
			       uint32_t *index)
{
	for (size_t i = 1; i < p->module_count; i++) {
		const struct profile_module *m = &p->modules[i];
		if (m->kind == wanted->kind && m->process == wanted->process &&
		    !strcmp(m->path, wanted->path) && !strcmp(m->build_id, wanted->build_id)) {
			*index = (uint32_t)i;
			return NULL;
		}
	}
	return profile_add_module(p, wanted, index);
}

static struct err *file_module(struct session *s, struct harvest *h, uint32_t id, uint32_t *index)
{
	const struct library_module *m = library_module(s->library, id);
	*index = 0;
	if (!m)
		return NULL;
	if (!h->modules[id]) {
		struct profile_module wanted = {
			.kind = !strcmp(m->path, "[vdso]") ? PROFILE_VDSO : PROFILE_FILE,
			.path = m->here ? m->here : m->path,
			.build_id = m->build_id,
			.problem = m->problem ? m->problem : "",
		};
		struct err *e = find_or_add(h->profile, &wanted, index);
		if (e)
			return e;
		h->modules[id] = *index + 1;
	}
	*index = h->modules[id] - 1;
	return NULL;
}

static const char *problem_of_code(const struct process *p)
{
	return p->list && p->list->runtime ? p->list->runtime->why : "";
}

static struct err *unnamed_module(struct session *s, struct harvest *h, struct process *p,
				  uint32_t *index)
{
	uint32_t process;
	struct err *e = process_keep(s, p, &process);
	if (e)
		return e;
	p->unnamed_code = true;
	if (!h->jit_module || h->jit_process != process) {
		struct profile_module wanted = {.kind = PROFILE_JIT,
						.path = "[code made at run time]",
						.build_id = "",
						.problem = problem_of_code(p),
						.process = process};
		e = find_or_add(h->profile, &wanted, index);
		if (e)
			return e;
		struct profile_module *m = &h->profile->modules[*index];
		if (!*m->problem && *wanted.problem) /* it was met before its maker was known */
			m->problem = profile_string(h->profile, wanted.problem);
		h->jit_process = process;
		h->jit_module = *index + 1;
	}
	*index = h->jit_module - 1;
	return NULL;
}

/* Its addresses hold for one boot; without them it is the same everywhere. */
static struct err *kernel_module(const struct session *s, struct harvest *h, uint32_t *index)
{
	char boot[KERNEL_BOOT_SIZE] = "";
	*index = h->kernel_module;
	if (h->kernel)
		return NULL;
	if (s->options.whole)
		kernel_names_boot(boot);
	const struct profile_module wanted = {
		.kind = PROFILE_KERNEL, .path = "[kernel]", .build_id = boot, .problem = ""};
	struct err *e = find_or_add(h->profile, &wanted, &h->kernel_module);
	h->kernel = !e;
	*index = h->kernel_module;
	return e;
}

/* Whether the process has memory with code that is of no file. Without, nobody knows what it ran there. */
static bool makes_code(const struct process *p)
{
	for (uint32_t i = 0; p->list && i < p->list->count; i++)
		if (p->list->modules[i].flags & (WIRE_MODULE_JIT | WIRE_MODULE_BARE))
			return true;
	return false;
}

struct err *harvest_child(struct session *s, struct harvest *h, struct process *p, uint32_t parent,
			  uint64_t key, uint32_t *node)
{
	uint32_t id = cct_key_module(key), module = 0;
	uint64_t address = key & CCT_ADDRESS;
	struct err *e = NULL;
	if (id == CCT_PARTIAL) {
		*node = parent;
		if (parent || address >= REASONS) /* only memory that was written over says so */
			return NULL;
		return profile_child(h->profile, 0, PROFILE_PARTIAL, 0, address, node);
	}
	if (id == CCT_KERNEL) {
		e = kernel_module(s, h, &module);
		address |= address ? ~CCT_ADDRESS
				   : 0; /* the kernel is at the upper end of memory */
	} else if (id) {
		e = file_module(s, h, id, &module);
	} else if (!s->options.drained || makes_code(p)) {
		e = unnamed_module(s, h, p, &module);
	}
	return e ? e
		 : profile_child(h->profile, parent, key & CCT_CALL ? PROFILE_CALL : PROFILE_EXACT,
				 module, address, node);
}

/* ---- names that no file will have ---- */

static const char *kernel_name(const void *context, uint64_t address, uint64_t *start,
			       uint64_t *size)
{
	return kernel_names_find(context, address, start, size);
}

void harvest_name_kernel(struct harvest *h, const struct kernel_names *names)
{
	if (h->kernel && names)
		profile_name_module(h->profile, h->kernel_module, kernel_name, names);
}

static const char *symbol_name(const void *context, uint64_t address, uint64_t *start,
			       uint64_t *size)
{
	const struct symbol *s = symbols_find(context, address);
	if (!s)
		return NULL;
	*start = s->address;
	*size = s->size ? s->size : address + 1 - s->address;
	return s->name;
}

static const char *kept_name(const void *context, uint64_t address, uint64_t *start, uint64_t *size)
{
	return name_table_find(context, address, start, size);
}

static void name_module(struct profile *p, uint32_t module, profile_find_name *find,
			const void *context)
{
	const struct profile_module *m = &p->modules[module];
	profile_name_module(p, module, find, context);
	for (size_t i = 0; i < m->name_count; i++) {
		char *name = name_demangle(m->names[i].name);
		if (name)
			m->names[i].name = profile_string(p, name);
		free(name);
	}
}

static void name_by_table(struct profile *p, uint32_t module, int names)
{
	struct name_table table;
	if (!name_table_open(names, &table))
		return;
	name_module(p, module, kept_name, &table);
	name_table_close(&table);
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Those of a module that have samples, ascending; NULL where there are none. */
static uint64_t *find_addresses(const struct profile *p, uint32_t module, size_t *count)
{
	size_t nodes = 0;
	for (size_t i = 0; i < p->node_count; i++)
		nodes += p->nodes[i].module == module;
	uint64_t *out = nodes ? reallocarray(NULL, nodes, sizeof *out) : NULL;
	*count = 0;
	for (size_t i = 0; out && i < p->node_count; i++)
		if (p->nodes[i].module == module)
			out[(*count)++] = p->nodes[i].address - (p->nodes[i].kind == PROFILE_CALL);
	if (out)
		qsort(out, *count, sizeof *out, compare_addresses);
	return out;
}

static void name_by_file(struct profile *p, uint32_t module, struct image *image)
{
	struct symbols *symbols = NULL;
	size_t count;
	uint64_t *addresses = find_addresses(p, module, &count);
	if (addresses)
		err_free(symbols_read_near(image, NULL, addresses, count, &symbols));
	if (symbols)
		name_module(p, module, symbol_name, symbols);
	symbols_free(symbols);
	free(addresses);
}

/* Whether whoever names it later finds it by its path. */
static bool has_name(const struct library_module *m, const struct image *image)
{
	struct stat open, there;
	return !fstat(image_descriptor(image), &open) &&
	       !reach_stat(m->here ? m->here : m->path, &there) && open.st_dev == there.st_dev &&
	       open.st_ino == there.st_ino;
}

void harvest_name_files(struct session *s, struct harvest *h)
{
	for (uint32_t id = 1; id < WIRE_MODULE_MAX; id++) {
		uint32_t module = h->modules[id];
		struct image *image;
		if (!module)
			continue;
		int names = library_names(s->library, id, &image);
		if (names >= 0)
			name_by_table(h->profile, module - 1, names);
		else if (image && !has_name(library_module(s->library, id), image))
			name_by_file(h->profile, module - 1, image);
	}
}

/* Of what goes on for months: who writes large lists has names for a part of them, and nobody else loses any. */
static size_t *budget_of(struct harvest *h, uint32_t user)
{
	for (size_t i = 0; i < h->budget_count; i++)
		if (h->budgets[i].user == user || i == HARVEST_USERS - 1)
			return &h->budgets[i].left;
	h->budgets[h->budget_count] = (struct harvest_budget){user, LISTS_MAX};
	return &h->budgets[h->budget_count++].left;
}

static struct jit *open_names(struct harvest *h, const struct process *p, uint32_t module)
{
	struct jit *jit = NULL;
	char path[64];
	size_t unlimited = SIZE_MAX;
	struct jit_wanted wanted = {.budget = h->bounded ? budget_of(h, p->user) : &unlimited};
	uint64_t *addresses = find_addresses(h->profile, module, &wanted.count);
	wanted.addresses = addresses;
	struct err *e = addresses ? jit_open_wanted(p->pid, &wanted, &jit) : NULL;
	if (addresses && !e && !jit) { /* the process is gone, its file is not */
		snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)p->own);
		e = jit_open_file_wanted(path, p->user, &wanted, &jit);
	}
	err_free(e);
	free(addresses);
	return jit;
}

static const char *made_name(const void *context, uint64_t address, uint64_t *start, uint64_t *size)
{
	const struct jit_code *code = jit_find(context, address);
	if (!code)
		return NULL;
	*start = code->start;
	*size = code->size;
	return code->name;
}

void harvest_name_code(struct harvest *h, const struct process *p)
{
	struct profile *profile = h->profile;
	uint32_t module = 0;
	for (uint32_t i = 1; i < profile->module_count; i++)
		if (profile->modules[i].kind == PROFILE_JIT &&
		    profile->modules[i].process == p->profile - 1)
			module = i;
	struct jit *jit = module ? open_names(h, p, module) : NULL;
	if (jit)
		profile_name_module(profile, module, made_name, jit);
	jit_close(jit);
}

/* ---- threads ---- */

static uint64_t sum_samples(const struct session *s, const struct arena_thread *r)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->options.event_count; i++)
		sum += atomic_load(&((struct arena_thread *)r)->samples[i]);
	return sum;
}

/* Ticks stand for nanoseconds until the end: session.c turns them into time. */
static struct profile_thread describe(const struct session *s, const struct thread *t,
				      struct arena_thread *r, uint32_t process)
{
	uint64_t cpu = atomic_load(&r->cpu_ns), begun = atomic_load(&r->cpu_start_ns);
	uint64_t end = atomic_load(&r->end_ns);
	return (struct profile_thread){
		.process = process,
		.tid = t ? t->tid : r->tid,
		.name = t ? t->name : "",
		.start_ns = session_since(s, r->start_ns),
		.end_ns = session_since(s, end ? end : now_ns()),
		.cpu_ns = cpu > begun ? cpu - begun : 0,
		.handler_ns = atomic_load(&r->ticks),
		.handled = sum_samples(s, r),
	};
}

static void join_threads(struct profile_thread *all, const struct profile_thread *one)
{
	all->cpu_ns += one->cpu_ns;
	all->handler_ns += one->handler_ns;
	all->handled += one->handled;
	if (one->end_ns > all->end_ns)
		all->end_ns = one->end_ns;
}

/* Where there are very many threads, the rest of a process's are one. */
struct err *harvest_add_thread(struct session *s, struct harvest *h, struct process *p,
			       struct profile_thread *wanted, uint32_t *index)
{
	bool joined = h == &s->harvest && h->profile->thread_count >= THREADS_MAX;
	if (joined && p->more_threads) {
		*index = p->more_threads - 1;
		join_threads(&h->profile->threads[*index], wanted);
		return NULL;
	}
	if (joined) {
		wanted->tid = 0;
		wanted->name = "(more threads)";
	}
	struct err *e = profile_add_thread(h->profile, wanted, index);
	if (!e && joined)
		p->more_threads = *index + 1;
	return e;
}

struct err *harvest_thread(struct session *s, struct harvest *h, struct process *p,
			   struct thread *t, const struct arena_thread *record, uint32_t *index)
{
	uint32_t process;
	struct err *e = process_keep(s, p, &process);
	if (e)
		return e;
	struct profile_thread wanted = describe(s, t, (struct arena_thread *)record, process);
	if (t && t->profile) { /* a sample of it was walked before: it is there, without numbers */
		*index = t->profile - 1;
		struct profile_thread *there = &h->profile->threads[*index];
		if (t->profile == p->more_threads) {
			join_threads(there, &wanted);
			return NULL;
		}
		wanted.name = profile_string(h->profile, wanted.name);
		*there = wanted;
		return NULL;
	}
	e = harvest_add_thread(s, h, p, &wanted, index);
	if (!e && t && h == &s->harvest)
		t->profile = *index + 1;
	return e;
}

bool harvest_find_thread(struct session *s, struct thread *t, const struct arena_thread *record,
			 uint32_t *index)
{
	struct err *e = NULL;
	if (t->profile)
		*index = t->profile - 1;
	else
		e = harvest_thread(s, &s->harvest, t->process, t, record, index);
	if (e)
		s->notes.unkept++;
	err_free(e);
	return !e;
}

/* ---- trees ---- */

struct placed {
	uint32_t node;
	bool partial;
};

struct reading {
	struct session *session;
	struct harvest *harvest;
	struct process *process;
	uint32_t thread;
	size_t metrics;
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
		r->error = harvest_child(r->session, r->harvest, r->process, at.node, key,
					 &at.node);
	}
	r->placed[index] = at;
	for (uint32_t i = 0; i < r->metrics && !r->error; i++)
		if (values[i])
			r->error = profile_count(r->harvest->profile, at.node, r->thread, i,
						 values[i]);
	if (at.partial)
		r->partial += values[0];
}

static bool is_worth_keeping(struct session *s, struct process *p, const struct thread *t,
			     const struct arena_thread *record)
{
	if ((t && t->profile) || sum_samples(s, record))
		return true;
	return record->tid == p->own ? !p->replaced : s->idle_threads++ < IDLE_MAX;
}

static void count_up(struct session *s, struct harvest *h, struct arena_thread *r, uint64_t partial)
{
	uint64_t lost = atomic_load(&r->lost);
	s->samples += atomic_load(&r->weights[0]);
	s->partial += partial;
	s->lost += lost;
	if (lost)
		err_free(profile_lose(h->profile, "no room", lost));
}

void harvest_record(struct session *s, struct harvest *h, struct process *p, struct thread *t,
		    struct arena *a, const struct arena_thread *record, bool last)
{
	struct reading r = {
		.session = s, .harvest = h, .process = p, .metrics = s->options.event_count};
	/* The tree is laid out for as many values as the header says. */
	bool whole = a->header->metrics == r.metrics;
	if (!is_worth_keeping(s, p, t, record))
		return;
	r.error = harvest_thread(s, h, p, t, record, &r.thread);
	if (!r.error && whole)
		whole = cct_read(a->header, a->size, record, visit, &r);
	if (last) {
		count_up(s, h, (struct arena_thread *)record, r.partial);
		s->notes.damaged_trees += !whole;
	} else if (atomic_load(&((struct arena_thread *)record)->lost)) {
		err_free(profile_lose(h->profile, "no room", record->lost));
	}
	if (r.error)
		s->notes.unkept++;
	err_free(r.error);
	free(r.placed);
}

void harvest_lost(struct session *s, struct harvest *h, struct arena *a, bool last)
{
	static const char *const reasons[] = {
		[ARENA_LOST_ROOM] = "no room", [ARENA_LOST_THREAD] = "thread without a record"};
	if (last)
		s->notes.restricted_programs += atomic_exchange(&a->header->restricted, 0);
	for (int i = 0; i < ARENA_LOST_KINDS; i++) {
		uint64_t now = atomic_load(&a->header->lost[i]), more = now - a->lost[i];
		if (now <= a->lost[i])
			continue;
		err_free(profile_lose(h->profile, reasons[i], more));
		if (last) {
			a->lost[i] = now;
			s->lost += more;
		}
	}
}

/* ---- a look at a tree that goes on ---- */

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

uint64_t harvest_count_partial(const struct arena *a, const struct arena_thread *record)
{
	struct counting c = {0};
	cct_read(a->header, a->size, record, count_visit, &c);
	free(c.partial);
	return c.sum;
}
