/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler knows of code. A module's table is given to it once; a list
 * of modules (library/library.h) once for all processes that have the same.
 * Lists are only ever added; where there is no room for more, all are forgotten
 * and given anew as they are needed. A process whose list the sampler does not
 * have leaves its stacks to us meanwhile.
 */
#include "collect/kernel_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "process/backing.h"
#include "process/maps.h"
#include "process/registers.h"

#define CONFIRM_NS 1000000000ull
#define TRUST_NS 100000000ull   /* after which what had room has been mapped, and is noted */
#define AT_ONCE 256             /* processes: more than a bucket has */
#define GENERATIONS 16          /* of children that are made while lists are taken away */
#define JIT_REACH (64ull << 20) /* compilers at run time make more code, near to the last */

void *kernel_map(struct kernel *k, const char *name, size_t size)
{
	int fd = bpf_object__find_map_fd_by_name(k->object, name);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* ---- life ---- */

struct err *code_open(struct kernel *k)
{
	k->spans = kernel_map(k, "spans", KERNEL_SPANS * sizeof *k->spans);
	k->modules = kernel_map(k, "modules", KERNEL_MODULES * sizeof *k->modules);
	k->rules = kernel_map(k, "rules", KERNEL_RULES * sizeof *k->rules);
	k->rooms = kernel_map(k, "rooms", KERNEL_ROOMS * sizeof *k->rooms);
	k->generation = kernel_map(k, ".data.generation", sizeof *k->generation);
	if (!k->spans || !k->modules || !k->rules || !k->rooms || !k->generation)
		return err_errno("cannot map the sampler's memory");
	*k->generation = 1;
	return tables_begin(k) ? NULL : err_errno("cannot make memory for the sampler's tables");
}

void code_close(struct kernel *k)
{
	tables_close(k);
	if (k->spans)
		munmap(k->spans, KERNEL_SPANS * sizeof *k->spans);
	if (k->modules)
		munmap(k->modules, KERNEL_MODULES * sizeof *k->modules);
	if (k->rules)
		munmap(k->rules, KERNEL_RULES * sizeof *k->rules);
	if (k->rooms)
		munmap(k->rooms, KERNEL_ROOMS * sizeof *k->rooms);
	if (k->generation)
		munmap(k->generation, sizeof *k->generation);
}

/* ---- lists ---- */

/* An entry that is changed goes to the front of its bucket, and whoever went from one to the next would come to it
   again, for ever where two are in one: so it goes from bucket to bucket. */
bool code_take_lists(int processes)
{
	uint32_t keys[AT_ONCE], next, *from = NULL;
	struct kernel_process values[AT_ONCE];
	bool any = false;
	for (int more = 0; !more; from = &next) {
		uint32_t count = AT_ONCE;
		more = bpf_map_lookup_batch(processes, from, &next, keys, values, &count, NULL);
		if (more && errno != ENOENT) /* which says that these are the last */
			break;
		for (uint32_t i = 0; i < count; i++) {
			if (!values[i].serial)
				continue;
			values[i].serial = values[i].first = values[i].count = 0;
			bpf_map_update_elem(processes, &keys[i], &values[i], BPF_EXIST);
			any = true;
		}
	}
	return any;
}

/* What was counted needs them. */
void code_forget_lists(struct session *s)
{
	struct kernel *k = s->kernel;
	if (counters_flip(k, true))
		counters_take(s);
	/* A child that is made meanwhile has its parent's. */
	for (int i = 0; i < GENERATIONS && code_take_lists(k->processes); i++)
		;
	k->spans_used = 0;
	k->list_count = 0;
}

/* Ids of modules will be others': what the sampler knows by them is of no use any more. */
static void begin_generation(struct kernel *k)
{
	uint32_t next = *k->generation + 1;
	__atomic_store_n(k->generation, next ? next : 1, __ATOMIC_RELEASE);
}

/* All tables, to begin anew with those that are needed now. */
static void forget_tables(struct session *s)
{
	code_forget_lists(s);
	tables_begin(s->kernel);
	begin_generation(s->kernel); /* what is looked up from here on is of the new ones */
}

/* Those that the sampler may name: children of processes have lists that we were not asked for; and those
   of the profile, whose functions are named at its end. */
static void use_modules(struct session *s)
{
	const struct kernel *k = s->kernel;
	for (uint32_t i = 0; i < k->spans_used; i++)
		library_use_module(s->library, k->spans[i].module);
	for (uint32_t id = 1; id < WIRE_MODULE_MAX; id++)
		if (s->harvest.modules[id])
			library_use_module(s->library, id);
}

/* Of ids that nobody has any more, so that the next one with such an id is given its own table. */
static void take_back_modules(struct session *s)
{
	struct kernel *k = s->kernel;
	bool any = false;
	for (uint32_t id = 1; id < KERNEL_MODULES; id++)
		if (k->loaded[id / 8] & 1u << id % 8 && !library_module(s->library, id)) {
			tables_take_back(k, id);
			any = true;
		}
	if (any)
		begin_generation(k);
}

void code_sweep(struct session *s)
{
	struct kernel *k = s->kernel;
	if (tables_are_full(k))
		forget_tables(s);
	if (!library_has_many(s->library))
		return;
	if (counters_flip(k, true))
		counters_take(s);
	for (const struct process *p = k->home->processes; p; p = p->next)
		library_use(p->list);
	paths_use(s);
	if (library_is_short(
		    s->library)) /* lists that the sampler was given are of long ago, too */
		code_forget_lists(s);
	use_modules(s);
	for (uint32_t i = 0; i < k->list_count; i++)
		if (k->lists[i].list && !k->lists[i].list->used)
			k->lists[i].list = NULL;
	library_forget_unused(s->library);
	take_back_modules(s);
	k->vdso_known = false;
}

static struct kernel_span describe(struct session *s, const struct wire_module *w)
{
	const struct library_module *m = library_module(s->library, w->id);
	static const uint32_t flags[] = {
		[KERNEL_NO_TABLE] = KERNEL_SPAN_LOST, [KERNEL_NO_ROOM] = KERNEL_SPAN_ELSEWHERE};
	struct kernel_span span = {
		.start = w->start, .end = w->end, .bias = w->bias, .module = w->id};
	if (w->flags & WIRE_MODULE_JIT || s->options.frame_pointers)
		span.flags = KERNEL_SPAN_JIT;
	else if (!m || !w->table_size)
		span.flags = KERNEL_SPAN_LOST;
	else
		span.flags = flags[tables_give(s->kernel, m)];
	return span;
}

static void find_jit(struct kernel_list *l)
{
	l->jit_low = UINT64_MAX;
	for (uint32_t i = 0; i < l->list->count; i++) {
		const struct wire_module *w = &l->list->modules[i];
		if (!(w->flags & WIRE_MODULE_JIT))
			continue;
		l->jit_top |= w->flags & WIRE_MODULE_TOP;
		if (l->jit_low > w->start)
			l->jit_low = w->start;
		l->jit_high = w->end;
	}
	l->jit_low -= l->jit_low > JIT_REACH ? JIT_REACH : l->jit_low;
	l->jit_high += l->jit_high ? JIT_REACH : 0;
}

static const struct kernel_list *give_list(struct session *s, const struct library_list *list)
{
	struct kernel *k = s->kernel;
	if (list->given && list->given <= k->list_count && k->lists[list->given - 1].list == list)
		return &k->lists[list->given - 1];
	if (list->count > KERNEL_SPANS)
		return NULL;
	if (k->list_count == KERNEL_LISTS || list->count > KERNEL_SPANS - k->spans_used)
		code_forget_lists(s);
	struct kernel_list *l = &k->lists[k->list_count++];
	((struct library_list *)list)->given = k->list_count;
	*l = (struct kernel_list){
		.list = list, .first = k->spans_used, .count = list->count, .serial = ++k->serial};
	for (uint32_t i = 0; i < list->count; i++)
		k->spans[l->first + i] = describe(s, &list->modules[i]);
	find_jit(l);
	k->spans_used += list->count;
	return l;
}

/* Of a process, before it was looked at. */
struct before {
	uint64_t ns;
	uint32_t changes, found;
};

static struct kernel_room room_of(const struct kernel *k, pid_t pid)
{
	const struct kernel_room *r = &k->rooms[(uint32_t)pid % KERNEL_ROOMS];
	return (struct kernel_room){__atomic_load_n(&r->found, __ATOMIC_SEQ_CST),
				    __atomic_load_n(&r->taken, __ATOMIC_SEQ_CST)};
}

/* Code that came while we looked is not in the list: then it is not given. Where something was mapped
   meanwhile, a library of the list may have gone: it is not used before that is known. */
static void publish(struct session *s, struct process *p, const struct before *before)
{
	const struct kernel *k = s->kernel;
	uint32_t pid = (uint32_t)p->pid;
	uint64_t flags = k->whole ? BPF_ANY : BPF_EXIST;
	struct kernel_process now;
	const struct kernel_list *l = give_list(s, p->list);
	uint32_t taken = room_of(k, p->pid).taken;
	p->doubtful_ns = 0;
	if (!l)
		return;
	if (bpf_map_lookup_elem(k->processes, &pid, &now)) {
		if (!k->whole)
			return;
		now = (struct kernel_process){0}; /* it was there before us */
	}
	if (now.changes != before->changes)
		return;
	now.first = l->first;
	now.count = l->count;
	now.serial = l->serial;
	now.taken = taken;
	now.jit_low = l->jit_low;
	now.jit_high = l->jit_high;
	now.jit_top = l->jit_top;
	now.resigned = 0;
	now.doubtful = 1;
	bpf_map_update_elem(k->processes, &pid, &now, flags);
	/* From here on the sampler sees what comes into the place of a library. */
	if (room_of(k, p->pid).found != before->found) {
		p->doubtful_ns = now_ns();
		return;
	}
	now.doubtful = 0;
	bpf_map_update_elem(k->processes, &pid, &now, flags);
}

void code_trust(struct session *s, struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	if (!p->doubtful_ns)
		return;
	if (p->gone || bpf_map_lookup_elem(s->kernel->processes, &pid, &now) || !now.doubtful) {
		p->doubtful_ns = 0;
	} else if (now.taken != room_of(s->kernel, p->pid).taken ||
		   maps_replaced(s->kernel, p->pid, p->list_ns, now_ns())) {
		p->doubtful_ns = 0;
		p->unlooked = true;
	} else if (now_ns() - p->doubtful_ns > TRUST_NS) {
		p->doubtful_ns = 0;
		now.doubtful = 0;
		bpf_map_update_elem(s->kernel->processes, &pid, &now, BPF_EXIST);
	}
}

static const struct kernel_list *find_list(const struct kernel *k, uint32_t serial)
{
	uint32_t low = 0, high = k->list_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (k->lists[middle].serial < serial)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->list_count && k->lists[low].serial == serial ? &k->lists[low] : NULL;
}

/* As find_place() in bpf/code.h. */
bool code_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key)
{
	const struct kernel_list *l = find_list(k, serial);
	uint32_t low = l ? l->first : 0, high = l ? l->first + l->count : 0, first = low;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (k->spans[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct kernel_span *span = low > first ? &k->spans[low - 1] : NULL;
	if (span && address < span->end)
		*key = cct_key(false, span->module, address - span->bias);
	else if (l && address >= l->jit_low && address < l->jit_high)
		*key = address & CCT_ADDRESS;
	else
		return false;
	return true;
}

/* A process that is gone cannot be asked for its vDSO, but all have the same. */
static void learn_vdso(struct session *s)
{
	struct maps maps;
	const struct library_list *ignored;
	struct err *e = maps_read(getpid(), &maps);
	if (!e) {
		size_t kept = 0;
		for (size_t i = 0; i < maps.count; i++)
			if (!strcmp(maps.items[i].path, "[vdso]"))
				maps.items[kept++] = maps.items[i];
		maps.count = kept;
		e = library_look_at(s->library, getpid(), &maps, &ignored, NULL);
		maps_free(&maps);
	}
	err_free(e);
	s->kernel->vdso_known = true;
}

const struct library_list *code_then(struct session *s, const struct process *p, uint64_t time)
{
	struct maps maps;
	const struct library_list *list;
	if (!s->kernel->vdso_known)
		learn_vdso(s);
	if (!maps_noted(s->kernel, p->pid, time, &maps))
		return NULL;
	pid_t relative = tasks_relative(s, p);
	struct err *e = library_look_at(
		s->library, relative ? PROCESS_BELOW(relative) : PROCESS_GONE, &maps, &list, NULL);
	maps_free(&maps);
	bool good = !e && list && list->count;
	err_free(e);
	return good ? list : NULL;
}

/* Most programs are started again and again, from files that are known: to read what one of them has
   in memory would take longer than many of them live. */
static bool look_at_noted(struct session *s, struct process *p, struct err **e)
{
	struct maps maps;
	const struct library_list *list;
	if (!s->kernel->whole || !p->executed || p->machine != native_machine ||
	    !maps_young(s->kernel, p->pid, &maps))
		return false;
	bool known = library_knows(s->library, &maps);
	if (known)
		*e = library_look_at(s->library, p->pid, &maps, &list, NULL);
	if (known && !*e && list)
		p->list = list;
	maps_free(&maps);
	return known;
}

static void look(struct session *s, struct process *p, bool ask)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	struct err *e = NULL;
	if (p->gone)
		return;
	library_was_unready(s->library); /* for others */
	if (bpf_map_lookup_elem(s->kernel->processes, &pid, &now))
		now.changes = 0;
	const struct library_list *list = p->list;
	struct before before = {now_ns(), now.changes, room_of(s->kernel, p->pid).found};
	bool noted = !ask && look_at_noted(s, p, &e);
	if (!noted) {
		e = process_look(s, p, NULL);
		p->looked_ns = e ? p->looked_ns : before.ns;
	}
	bool unready = !e && library_is_unready(s->library);
	if (!unready && (e || !p->list || !p->list->count))
		p->list = code_then(s, p, UINT64_MAX);
	err_free(e);
	if (!unready || p->list != list) {
		p->list_ns = before.ns;
		p->list_end_ns = now_ns();
	}
	if (unready)
		return;
	if (p->list) {
		publish(s, p, &before);
		maps_note(s->kernel);
		code_trust(s, p);
	}
	p->noted_ns = noted ? now_ns() : 0;
	p->makeshift = false;
}

void code_look(struct session *s, struct process *p)
{
	look(s, p, false);
}

void code_ask(struct session *s, struct process *p)
{
	look(s, p, true);
}

void code_confirm(struct session *s, struct process *p)
{
	if (p->noted_ns && now_ns() - p->noted_ns > CONFIRM_NS)
		look(s, p, true);
}

void code_make_do(struct session *s, struct process *p)
{
	bool before = library_hurry(s->library, true);
	code_look(s, p);
	library_hurry(s->library, before);
	p->makeshift = true;
}

void code_resign(struct session *s, struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	bool known = !bpf_map_lookup_elem(s->kernel->processes, &pid, &now) && now.serial;
	if (!known && !s->kernel->whole)
		return;
	if (!known) /* nobody can tell what it has in memory */
		now = (struct kernel_process){.serial = ++s->kernel->serial,
					      .changes = p->changes,
					      .taken = room_of(s->kernel, p->pid).taken};
	now.resigned = 1;
	bpf_map_update_elem(s->kernel->processes, &pid, &now, known ? BPF_EXIST : BPF_ANY);
}
