/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler knows of code. It gets the table of a module once, and a list of modules
 * (library/library.h) once for all processes that have the same list. Lists are only added. If there is no
 * room for another one, all lists are removed and given again when they are needed. While the sampler has
 * no list for a process, it copies the stacks, and the collector walks them.
 *
 * A library may be unloaded, and another one loaded in its place, between two looks. So the sampler watches
 * where the kernel finds free addresses for new mappings (program `mapped` in bpf/sample.bpf.c). If the
 * list of the process has code at these addresses, the sampler stops using the list, and copies stacks
 * until the collector has looked again. The collector may be delayed at any point of a look. So the sampler
 * counts how often the kernel found addresses for a process (struct kernel_mappings). If the count has not
 * changed since before the look, the list is used at once. Otherwise it is used when the records of
 * mapped.c have shown that no library was replaced (code_check_doubtful). If a program chooses the address of a
 * mapping itself, the kernel does not search for one. Such a mapping is known only from the records, a
 * moment later.
 *
 * Reading the memory map of a compiler takes longer than some compilers live. So for a program that has
 * just been started, its history (mapped.c) is used instead, if all its files are known and no record was
 * lost. If a sample then meets code that is not in the history, the memory map is read at once. Otherwise it
 * is read a second later (code_confirm).
 */
#include "collect/kernel/code.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/kernel/counters.h"
#include "collect/kernel/interpreters.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/object.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tables.h"
#include "collect/kernel/tasks.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/backing.h"
#include "process/maps.h"
#include "process/registers.h"
#include "safe/wire.h"

#define CONFIRM_NS 1000000000ull
/* After this time the records tell of every mapping that was being made. */
#define TRUST_NS 100000000ull
#define AT_ONCE 256    /* entries of the map per call: more than a hash bucket has */
#define GENERATIONS 16 /* rounds: children that are forked meanwhile inherit lists */
/* Run-time compilers put new code within this distance of their old code. */
#define JIT_REACH (64ull << 20)

/* ---- opening and closing ---- */

struct err *code_open(struct kernel *k)
{
	struct kernel_code *code = &k->code;
	code->spans = object_map(k, "spans", KERNEL_SPANS * sizeof *code->spans);
	code->mappings = object_map(k, "mappings", KERNEL_MAPPINGS * sizeof *code->mappings);
	code->generation = object_map(k, ".data.generation", sizeof *code->generation);
	if (!code->spans || !code->mappings || !code->generation)
		return err_errno("cannot map the sampler's memory");
	*code->generation = 1;
	return NULL;
}

void code_close(struct kernel *k)
{
	struct kernel_code *code = &k->code;
	if (code->spans)
		munmap(code->spans, KERNEL_SPANS * sizeof *code->spans);
	if (code->mappings)
		munmap(code->mappings, KERNEL_MAPPINGS * sizeof *code->mappings);
	if (code->generation)
		munmap(code->generation, sizeof *code->generation);
}

/* ---- lists ---- */

/* Goes from bucket to bucket. An entry that is changed moves to the front of its bucket. Going from
   entry to entry would meet it again, and never end if two entries share a bucket. */
bool code_clear_lists(int processes)
{
	uint32_t keys[AT_ONCE], next, *from = NULL;
	struct kernel_process values[AT_ONCE];
	bool any = false;
	for (int more = 0; !more; from = &next) {
		uint32_t count = AT_ONCE;
		more = bpf_map_lookup_batch(processes, from, &next, keys, values, &count, NULL);
		if (more && errno != ENOENT) /* ENOENT: this batch is the last one */
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

void code_take_counts(struct kernel *k)
{
	if (counters_switch(k, true))
		counters_take(k, code_key);
}

void code_forget_lists(struct kernel *k)
{
	code_take_counts(k);
	/* A child that is forked meanwhile inherits the list of its parent, so this is repeated. */
	for (int i = 0; i < GENERATIONS && code_clear_lists(k->processes); i++)
		;
	k->code.spans_used = 0;
	k->code.list_count = 0;
}

/* Ids of modules get new meanings, so what the sampler remembers by id becomes invalid. */
static void begin_generation(struct kernel *k)
{
	uint32_t next = *k->code.generation + 1;
	__atomic_store_n(k->code.generation, next ? next : 1, __ATOMIC_RELEASE);
}

void code_forget_tables(struct kernel *k)
{
	code_forget_lists(k);
	tables_begin(k);
	begin_generation(k); /* from here on, lookups find the new tables */
}

/* Marks the modules that the sampler may still name: those of its lists, since children inherit lists
   without asking us; and those of the profile, whose functions are named at its end. */
static void use_modules(struct kernel *k)
{
	for (uint32_t i = 0; i < k->code.spans_used; i++)
		library_mark_module_used(k->recording->library, k->code.spans[i].module);
	for (uint32_t id = 1; id < WIRE_MODULE_MAX; id++)
		if (k->recording->harvest.modules[id])
			library_mark_module_used(k->recording->library, id);
}

/* Takes back the tables of ids that no module has any more. The next module with such an id gets its own
   table. */
static void take_back_modules(struct kernel *k)
{
	bool any = false;
	for (uint32_t id = 1; id < KERNEL_MODULES; id++)
		if (tables_has(k, id) && !library_module(k->recording->library, id)) {
			tables_take_back(k, id);
			any = true;
		}
	if (any)
		begin_generation(k);
}

void code_sweep(struct kernel *k)
{
	struct library *library = k->recording->library;
	if (library_is_short(library)) /* ids are short, and lists of long ago hold some */
		code_forget_lists(k);
	use_modules(k);
	for (uint32_t i = 0; i < k->code.list_count; i++)
		if (k->code.lists[i].list && !k->code.lists[i].list->used)
			k->code.lists[i].list = NULL;
	library_forget_unused(library);
	take_back_modules(k);
	k->code.vdso_known = false;
}

/* Returns a module of a list as the sampler has it. Gives the sampler its table. */
static struct kernel_span describe(struct kernel *k, const struct wire_module *w)
{
	const struct library_module *m = library_module(k->recording->library, w->id);
	static const uint32_t flags[] = {
		[KERNEL_NO_TABLE] = KERNEL_SPAN_LOST, [KERNEL_NO_ROOM] = KERNEL_SPAN_ELSEWHERE};
	struct kernel_span span = {
		.start = w->start, .end = w->end, .bias = w->bias, .module = w->id};
	if (w->flags & WIRE_MODULE_JIT || k->recording->options.frame_pointers)
		span.flags = KERNEL_SPAN_JIT;
	else if (!m || !w->table_size)
		span.flags = KERNEL_SPAN_LOST;
	else
		span.flags = flags[tables_give(k, m)];
	return span;
}

/* Sets the range of addresses in which code made at run time is expected. */
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

/* Returns the list as the sampler has it, and gives it to the sampler if it is new; NULL: it is too
   large. */
static const struct kernel_list *give_list(struct kernel *k, const struct library_list *list)
{
	if (list->given && list->given <= k->code.list_count &&
	    k->code.lists[list->given - 1].list == list)
		return &k->code.lists[list->given - 1];
	if (list->count > KERNEL_SPANS)
		return NULL;
	if (k->code.list_count == KERNEL_LISTS || list->count > KERNEL_SPANS - k->code.spans_used)
		code_forget_lists(k);
	struct kernel_list *l = &k->code.lists[k->code.list_count++];
	((struct library_list *)list)->given = k->code.list_count;
	*l = (struct kernel_list){.list = list,
				  .first = k->code.spans_used,
				  .count = list->count,
				  .serial = ++k->code.serial};
	for (uint32_t i = 0; i < list->count; i++)
		k->code.spans[l->first + i] = describe(k, &list->modules[i]);
	find_jit(l);
	k->code.spans_used += list->count;
	return l;
}

/* State of a process before it was looked at. */
struct before {
	uint64_t ns;
	uint32_t changes, begun;
};

static struct kernel_mappings mappings_of(const struct kernel *k, pid_t pid)
{
	const struct kernel_mappings *r = &k->code.mappings[(uint32_t)pid % KERNEL_MAPPINGS];
	return (struct kernel_mappings){__atomic_load_n(&r->begun, __ATOMIC_SEQ_CST),
					__atomic_load_n(&r->over_code, __ATOMIC_SEQ_CST)};
}

/* Gives the list of a process to the sampler, unless the process has exec'd since the look began. If the
   kernel found addresses for a mapping meanwhile, a library of the list may have been replaced. Then the
   list is marked as doubtful, and the sampler does not use it until code_check_doubtful has checked it. */
static void publish(struct kernel *k, struct process *p, const struct before *before)
{
	uint32_t pid = (uint32_t)p->pid;
	uint64_t flags = k->whole ? BPF_ANY : BPF_EXIST;
	struct kernel_process now;
	const struct kernel_list *l = give_list(k, p->list);
	uint32_t over_code = mappings_of(k, p->pid).over_code;
	p->kernel->doubtful_ns = 0;
	if (!l)
		return;
	if (bpf_map_lookup_elem(k->processes, &pid, &now)) {
		if (!k->whole)
			return;
		now = (struct kernel_process){0}; /* it started before us */
	}
	if (now.changes != before->changes)
		return;
	now.first = l->first;
	now.count = l->count;
	now.serial = l->serial;
	now.over_code = over_code;
	now.jit_low = l->jit_low;
	now.jit_high = l->jit_high;
	now.jit_top = l->jit_top;
	now.script = interpreters_give(k, p);
	now.resigned = 0;
	now.doubtful = 1;
	bpf_map_update_elem(k->processes, &pid, &now, flags);
	/* From here on the sampler notices if something takes the place of a library. */
	if (mappings_of(k, p->pid).begun != before->begun) {
		p->kernel->doubtful_ns = now_ns();
		return;
	}
	now.doubtful = 0;
	bpf_map_update_elem(k->processes, &pid, &now, flags);
}

void code_check_doubtful(struct kernel *k, struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	if (!p->kernel->doubtful_ns)
		return;
	if (p->gone || bpf_map_lookup_elem(k->processes, &pid, &now) || !now.doubtful) {
		p->kernel->doubtful_ns = 0;
	} else if (now.over_code != mappings_of(k, p->pid).over_code ||
		   mapped_replaced(k, p->pid, p->kernel->list_ns, now_ns())) {
		p->kernel->doubtful_ns = 0;
		p->kernel->unlooked = true;
	} else if (now_ns() - p->kernel->doubtful_ns > TRUST_NS) {
		p->kernel->doubtful_ns = 0;
		now.doubtful = 0;
		bpf_map_update_elem(k->processes, &pid, &now, BPF_EXIST);
	}
}

/* Lists are ascending by serial. */
static const struct kernel_list *find_list(const struct kernel *k, uint32_t serial)
{
	size_t found = FIRST_NOT(i, k->code.list_count, k->code.lists[i].serial < serial);
	return found < k->code.list_count && k->code.lists[found].serial == serial
		       ? &k->code.lists[found]
		       : NULL;
}

/* Gives the same keys as find_place() in bpf/code.h. */
bool code_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key)
{
	const struct kernel_list *l = find_list(k, serial);
	const struct kernel_span *spans = l ? &k->code.spans[l->first] : NULL;
	size_t after = FIRST_NOT(i, l ? l->count : 0, spans[i].start <= address);
	const struct kernel_span *span = after ? &spans[after - 1] : NULL;
	if (span && address < span->end)
		*key = cct_key(false, span->module, address - span->bias);
	else if (l && address >= l->jit_low && address < l->jit_high)
		*key = address & CCT_ADDRESS;
	else
		return false;
	return true;
}

/* ---- looking ---- */

unsigned code_waits_for(const struct kernel *k)
{
	return k->code.waits_for;
}

void code_forget_waits(struct kernel *k)
{
	k->code.waits_for = 0;
}

/* The list, or NULL: there is an error, or its tables are waited for. */
static const struct library_list *ask_library(struct kernel *k, const struct library_question *q,
					      struct err **e)
{
	struct library_look found;
	*e = library_look(k->recording->library, q, &found);
	if (!*e && found.state == LIBRARY_LOOK_WAITING)
		k->code.waits_for = found.builds;
	return *e ? NULL : found.list;
}

/* A process that has ended cannot be asked for its vDSO. All processes have the same one, so we look at
   our own. */
static void learn_vdso(struct kernel *k)
{
	struct maps maps;
	struct err *e = maps_read(getpid(), &maps);
	if (!e) {
		size_t kept = 0;
		for (size_t i = 0; i < maps.count; i++)
			if (!strcmp(maps.items[i].path, "[vdso]"))
				maps.items[kept++] = maps.items[i];
		maps.count = kept;
		ask_library(k, &(struct library_question){.pid = getpid(), .maps = &maps}, &e);
		maps_free(&maps);
	}
	err_free(e);
	k->code.vdso_known = true;
}

static const struct library_list *list_at(struct kernel *k, const struct process *p, uint64_t time,
					  bool unready_too)
{
	struct maps maps;
	struct err *e;
	if (!k->code.vdso_known)
		learn_vdso(k);
	if (!mapped_at(k, p->pid, time, &maps))
		return NULL;
	pid_t relative = tasks_relative(k, p);
	const struct library_question q = {.pid = relative ? PROCESS_BELOW(relative) : PROCESS_GONE,
					   .maps = &maps,
					   .unready_too = unready_too};
	const struct library_list *list = ask_library(k, &q, &e);
	maps_free(&maps);
	err_free(e);
	return list && list->count ? list : NULL;
}

const struct library_list *code_list_at(struct kernel *k, const struct process *p, uint64_t time)
{
	return list_at(k, p, time, false);
}

/* Takes the list of a young process from its history (mapped.c). Most programs are started again and
   again, from files that are known. Reading their memory maps would take longer than many of them live.
   False: the memory map must be read. */
static bool look_at_history(struct kernel *k, struct process *p, bool unready_too, struct err **e)
{
	struct maps maps;
	if (!k->whole || !p->kernel->executed || p->machine != native_machine ||
	    !mapped_young(k, p->pid, &maps))
		return false;
	bool known = library_knows(k->recording->library, &maps);
	const struct library_question q = {
		.pid = p->pid, .maps = &maps, .unready_too = unready_too};
	const struct library_list *list = known ? ask_library(k, &q, e) : NULL;
	if (list)
		p->list = list;
	maps_free(&maps);
	return known;
}

/* Finds the list of a process again: by its history (sets `by_history`), or by its memory map; if `ask`, only by
   that. If the memory map cannot be read, the list is what the history says. `ns`: when the look began. False:
   some of the list's tables are still being made. */
static bool renew_list(struct kernel *k, struct process *p, bool ask, bool unready_too, uint64_t ns,
		       bool *by_history)
{
	struct err *e = NULL;
	*by_history = !ask && look_at_history(k, p, unready_too, &e);
	if (!*by_history) {
		const struct library_question q = {
			.pid = p->pid, .machine = p->machine, .unready_too = unready_too};
		const struct library_list *found = ask_library(k, &q, &e);
		if (found)
			p->list = found;
		p->looked_ns = e ? p->looked_ns : ns;
	}
	bool ready = e || !code_waits_for(k);
	if (ready && (e || !p->list || !p->list->count))
		p->list = list_at(k, p, UINT64_MAX, unready_too);
	err_free(e);
	return ready;
}

static void look(struct kernel *k, struct process *p, bool ask, bool unready_too)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	bool by_history;
	if (p->gone)
		return;
	code_forget_waits(k); /* of earlier looks */
	if (bpf_map_lookup_elem(k->processes, &pid, &now))
		now.changes = 0;
	const struct library_list *list = p->list;
	struct before before = {now_ns(), now.changes, mappings_of(k, p->pid).begun};
	bool ready = renew_list(k, p, ask, unready_too, before.ns, &by_history);
	if (ready || p->list != list) {
		p->kernel->list_ns = before.ns;
		p->kernel->list_end_ns = now_ns();
	}
	if (!ready)
		return;
	if (p->list) {
		publish(k, p, &before);
		mapped_read(k);
		code_check_doubtful(k, p);
	}
	p->kernel->by_history_ns = by_history ? now_ns() : 0;
	p->kernel->without_tables = false;
}

void code_look(struct kernel *k, struct process *p)
{
	look(k, p, false, false);
}

void code_ask(struct kernel *k, struct process *p)
{
	look(k, p, true, false);
}

void code_confirm(struct kernel *k, struct process *p)
{
	if (p->kernel->by_history_ns && now_ns() - p->kernel->by_history_ns > CONFIRM_NS)
		look(k, p, true, false);
}

void code_look_without_tables(struct kernel *k, struct process *p)
{
	look(k, p, false, true);
	p->kernel->without_tables = true;
}

void code_stop_copies(struct kernel *k, struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	bool known = !bpf_map_lookup_elem(k->processes, &pid, &now) && now.serial;
	if (!known && !k->whole)
		return;
	if (!known) /* nobody can read its memory map */
		now = (struct kernel_process){.serial = ++k->code.serial,
					      .changes = p->kernel->changes,
					      .over_code = mappings_of(k, p->pid).over_code};
	now.resigned = 1;
	bpf_map_update_elem(k->processes, &pid, &now, known ? BPF_EXIST : BPF_ANY);
}

const struct library_list *code_parent_list(struct kernel *k, const struct process *p)
{
	struct process *parent = tasks_find_process(k, p->parent);
	if (parent && !parent->list && !parent->gone)
		code_look(k, parent);
	return parent ? parent->list : NULL;
}
