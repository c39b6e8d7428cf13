/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/harvest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "harvest/names.h"
#include "harvest/objects.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/kernel_names.h"
#include "process/runtime.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define REASONS 64u         /* more than there are reasons for a partial path */
#define THREADS_MAX 100000u /* threads that have a place of their own */

static struct err *add_calls(struct profile *p)
{
	uint32_t index;
	return profile_add_metric(
		p, &(struct profile_metric){.name = "calls", .unit = "calls", .period = 1}, &index);
}

struct err *harvest_begin(const struct recording *r, struct harvest *h)
{
	*h = (struct harvest){.bounded = r->options.drained};
	h->modules = calloc(WIRE_MODULE_MAX, sizeof *h->modules);
	struct err *e = h->modules ? profile_new(&h->profile) : err_new("out of memory");
	if (!e)
		h->profile->timed = r->options.timeline;
	for (size_t i = 0; !e && i < r->options.event_count; i++) {
		const struct recording_event *event = &r->options.events[i];
		uint32_t index;
		e = profile_add_metric(
			h->profile,
			&(struct profile_metric){.name = event->name,
						 .unit = event->unit,
						 .period = event->call || event->io || event->probe
								   ? 1
								   : event->period,
						 .user_only = event->user_only},
			&index);
	}
	if (!e && r->options.calls)
		e = add_calls(h->profile);
	if (e)
		harvest_end(h);
	return e;
}

void harvest_end(struct harvest *h)
{
	profile_free(h->profile);
	free(h->modules);
	free(h->owners);
	objects_end(h);
	*h = (struct harvest){0};
}

/* Processes have the same places in the copy, so each of them must have one. */
struct err *harvest_copy(struct recording *r, struct harvest *copy)
{
	uint32_t index;
	struct err *e = NULL;
	for (struct process *p = r->processes; p && !e; p = p->next)
		if (p->profile || !r->options.whole)
			e = harvest_add_process(r, p, &index);
	*copy = (struct harvest){0};
	copy->modules = calloc(WIRE_MODULE_MAX, sizeof *copy->modules);
	if (!e)
		e = copy->modules ? profile_new(&copy->profile) : err_new("out of memory");
	return e ? e : profile_merge(copy->profile, r->harvest.profile);
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

static struct err *file_module(struct recording *r, struct harvest *h, uint32_t id, uint32_t *index)
{
	const struct library_module *m = library_module(r->library, id);
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

static struct err *unnamed_module(struct recording *r, struct harvest *h, struct process *p,
				  uint32_t *index)
{
	uint32_t process;
	struct err *e = harvest_add_process(r, p, &process);
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
		/* It was met before it was known what makes it. */
		if (!*m->problem && *wanted.problem)
			m->problem = profile_string(h->profile, wanted.problem);
		h->jit_process = process;
		h->jit_module = *index + 1;
	}
	*index = h->jit_module - 1;
	return NULL;
}

/* The kernel's addresses are valid for one boot. Without addresses, it is the same everywhere. */
static struct err *kernel_module(const struct recording *r, struct harvest *h, uint32_t *index)
{
	char boot[KERNEL_BOOT_SIZE] = "";
	*index = h->kernel_module;
	if (h->kernel)
		return NULL;
	if (r->options.whole || r->kernel_frames)
		kernel_names_boot(boot);
	const struct profile_module wanted = {
		.kind = PROFILE_KERNEL, .path = "[kernel]", .build_id = boot, .problem = ""};
	struct err *e = find_or_add(h->profile, &wanted, &h->kernel_module);
	h->kernel = !e;
	*index = h->kernel_module;
	return e;
}

/* Whether the process has executable memory that is of no file. If not, nobody knows what it ran there. */
static bool makes_code(const struct process *p)
{
	for (uint32_t i = 0; p->list && i < p->list->count; i++)
		if (p->list->modules[i].flags & (WIRE_MODULE_JIT | WIRE_MODULE_BARE))
			return true;
	return false;
}

struct err *harvest_add_child(struct recording *r, struct harvest *h, struct process *p,
			      uint32_t parent, uint64_t key, uint32_t *node)
{
	uint32_t id = cct_key_module(key), module = 0;
	uint64_t address = key & CCT_ADDRESS;
	struct err *e = NULL;
	if (id == CCT_PARTIAL) {
		*node = parent;
		if (parent || address >= REASONS) /* only memory that was overwritten says so */
			return NULL;
		return profile_child(h->profile, 0, PROFILE_PARTIAL, 0, address, node);
	}
	if (id == CCT_KERNEL) {
		e = kernel_module(r, h, &module);
		/* The kernel is at the upper end of memory. */
		address |= address ? ~CCT_ADDRESS : 0;
	} else if (id) {
		address &= ~CCT_HOST;
		e = file_module(r, h, id, &module);
	} else if (!r->options.drained || makes_code(p)) {
		e = unnamed_module(r, h, p, &module);
	}
	return e ? e
		 : profile_child(h->profile, parent, key & CCT_CALL ? PROFILE_CALL : PROFILE_EXACT,
				 module, address, node);
}

struct err *harvest_module(struct recording *r, struct harvest *h, uint64_t key, uint32_t *module)
{
	uint32_t id = cct_key_module(key);
	*module = 0;
	return id && id < WIRE_MODULE_MAX ? file_module(r, h, id, module) : NULL;
}

/* ---- processes ---- */

/* Notes the owner of a process when it gets its place: the process may be long gone when the drain is
   taken. */
static struct err *note_owner(struct recording *r, const struct process *p)
{
	struct harvest *h = &r->harvest;
	size_t index = p->profile - 1;
	if (index >= h->owner_room) {
		size_t room = (index + 1) * 2;
		struct process_owner *more = reallocarray(h->owners, room, sizeof *more);
		if (!more)
			return err_new("out of memory");
		memset(more + h->owner_room, 0, (room - h->owner_room) * sizeof *more);
		h->owners = more;
		h->owner_room = room;
	}
	struct process_owner *x = &h->owners[index];
	if (x->container && x->user == p->user)
		return NULL;
	x->user = p->user;
	x->container = profile_string(h->profile, p->container ? p->container : "");
	x->start_ms = p->start_ms ? p->start_ms : r->boot_ms + (int64_t)(p->start_ns / 1000000);
	return NULL;
}

struct err *harvest_add_process(struct recording *r, struct process *p, uint32_t *index)
{
	if (!p->profile) {
		struct profile_process x = {
			.pid = p->pid,
			.parent = p->parent,
			.name = p->name,
			.command = p->command ? p->command : "",
			.rank = p->rank,
			.start_ns = recording_since(r, p->start_ns),
			.end_ns = recording_since(r, now_ns()),
			.status = p->status,
		};
		struct err *e = profile_add_process(r->harvest.profile, &x, index);
		if (e)
			return e;
		p->profile = *index + 1;
	}
	*index = p->profile - 1;
	return r->options.drained ? note_owner(r, p) : NULL;
}

/* What a child was between fork and exec matters only if it has samples. The same holds for all
   processes in a recording of the whole machine. */
void harvest_end_process(struct recording *r, struct process *p)
{
	uint32_t index;
	if (!p->replaced && !r->options.whole)
		recording_note_error(r, harvest_add_process(r, p, &index));
	if (p->profile) {
		struct profile_process *x = &r->harvest.profile->processes[p->profile - 1];
		x->end_ns = recording_since(r, p->end_ns);
		x->status = p->status;
		if (p->unnamed_code)
			names_of_jit(&r->harvest, p);
	}
	process_forget(r, p);
}

/* If memory ran out while an owner was noted, it is empty. */
struct err *harvest_owners(const struct harvest *h, struct process_owner **out)
{
	size_t count = h->profile->process_count;
	struct process_owner *owners = calloc(count + 1, sizeof *owners);
	if (!owners)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++) {
		if (i < h->owner_room)
			owners[i] = h->owners[i];
		if (!owners[i].container)
			owners[i].container = "";
	}
	*out = owners;
	return NULL;
}

/* ---- threads ---- */

void harvest_join_thread(struct profile_thread *all, const struct profile_thread *one)
{
	all->cpu_ns += one->cpu_ns;
	all->handler_ns += one->handler_ns;
	all->handled += one->handled;
	all->blocked_ns += one->blocked_ns;
	all->queued_ns += one->queued_ns;
	if (one->end_ns > all->end_ns)
		all->end_ns = one->end_ns;
}

/* If there are very many threads, the rest of a process's threads share one place. */
struct err *harvest_add_thread(struct recording *r, struct harvest *h, struct process *p,
			       struct profile_thread *wanted, uint32_t *index)
{
	bool joined = h == &r->harvest && h->profile->thread_count >= THREADS_MAX;
	if (joined && p->more_threads) {
		*index = p->more_threads - 1;
		harvest_join_thread(&h->profile->threads[*index], wanted);
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
