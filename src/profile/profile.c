/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

void *own_grow(void *items, size_t *room, size_t count, size_t size)
{
	size_t wanted = *room ? *room * 2 : 16, bytes;
	void *moved;
	if (count < *room)
		return items;
	if (__builtin_mul_overflow(wanted, size, &bytes))
		return NULL;
	moved = realloc(items, bytes);
	if (moved)
		*room = wanted;
	return moved;
}

struct err *profile_new(struct profile **out)
{
	struct profile *p = calloc(1, sizeof *p);
	const struct profile_module none = {.kind = PROFILE_NONE};
	const struct profile_node root = {.kind = PROFILE_ROOT};
	struct err *e = NULL;
	uint32_t index;
	*out = NULL;
	if (p)
		p->own = calloc(1, sizeof *p->own);
	if (!p || !p->own) {
		free(p);
		return err_new("out of memory");
	}
	p->command = p->directory = p->host = p->kernel = p->machine = p->cpu = p->version =
		p->note = "";
	e = profile_add_module(p, &none, &index);
	if (!e)
		e = own_append_node(p, &root);
	if (e)
		profile_free(p);
	else
		*out = p;
	return e;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->module_count; i++)
		free(p->modules[i].names);
	free(p->modules);
	free(p->metrics);
	free(p->processes);
	free(p->threads);
	free(p->nodes);
	free(p->values);
	free(p->spans);
	free(p->wakes);
	free(p->edges);
	own_free_counted(p);
	own_free_contexts(p);
	free(p->lost);
	own_strings_free(p->own);
	free(p->own->slots);
	free(p->own);
	free(p);
}

static struct err *no_memory(void)
{
	return err_new("out of memory");
}

static struct err *too_many(const char *what, size_t limit)
{
	return err_new("a profile cannot have more than %zu %s", limit, what);
}

static int compare_names(const void *a, const void *b)
{
	const struct profile_name *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Names are given room for a power of two: full exactly when their number is one. */
struct err *own_append_name(struct profile *p, uint32_t module, const struct profile_name *name)
{
	struct profile_module *m = &p->modules[module];
	struct profile_name copy = *name;
	if (m->name_count >= PROFILE_TABLE_MAX)
		return too_many("names in a module", PROFILE_TABLE_MAX);
	if (!own_keep(p, &copy.name))
		return no_memory();
	if ((m->name_count & (m->name_count - 1)) == 0) {
		size_t room = m->name_count ? m->name_count * 2 : 1;
		struct profile_name *moved = realloc(m->names, room * sizeof *moved);
		if (!moved)
			return no_memory();
		m->names = moved;
	}
	m->names[m->name_count++] = copy;
	return NULL;
}

static struct err *add_names(struct profile *p, uint32_t module, const struct profile_module *from)
{
	struct profile_module *m = &p->modules[module];
	struct err *e = NULL;
	bool ascending = true;
	for (size_t i = 0; i < from->name_count && !e; i++) {
		e = own_append_name(p, module, &from->names[i]);
		if (i && from->names[i].start < from->names[i - 1].start)
			ascending = false;
	}
	if (!ascending)
		qsort(m->names, m->name_count, sizeof *m->names, compare_names);
	return e;
}

struct err *profile_add_module(struct profile *p, const struct profile_module *m, uint32_t *index)
{
	struct profile_module copy = *m;
	struct profile_module *moved;
	if (p->module_count >= PROFILE_TABLE_MAX)
		return too_many("modules", PROFILE_TABLE_MAX);
	if (copy.kind == PROFILE_JIT && copy.process >= p->process_count)
		return err_new("module '%s' of a process that is not in the profile",
			       copy.path ? copy.path : "");
	if (copy.kind != PROFILE_JIT)
		copy.process = 0;
	copy.names = NULL;
	copy.name_count = 0;
	if (!own_keep(p, &copy.path) || !own_keep(p, &copy.build_id) || !own_keep(p, &copy.problem))
		return no_memory();
	moved = own_grow(p->modules, &p->own->module_room, p->module_count, sizeof copy);
	if (!moved)
		return no_memory();
	p->modules = moved;
	*index = (uint32_t)p->module_count++;
	p->modules[*index] = copy;
	return add_names(p, *index, m);
}

struct err *profile_add_metric(struct profile *p, const struct profile_metric *m, uint32_t *index)
{
	struct profile_metric copy = *m, *moved;
	if (p->metric_count >= PROFILE_METRIC_MAX)
		return too_many("metrics", PROFILE_METRIC_MAX);
	if (!own_keep(p, &copy.name) || !own_keep(p, &copy.unit))
		return no_memory();
	moved = own_grow(p->metrics, &p->own->metric_room, p->metric_count, sizeof copy);
	if (!moved)
		return no_memory();
	p->metrics = moved;
	*index = (uint32_t)p->metric_count++;
	p->metrics[*index] = copy;
	return NULL;
}

struct err *profile_add_process(struct profile *p, const struct profile_process *x, uint32_t *index)
{
	struct profile_process copy = *x, *moved;
	if (p->process_count >= PROFILE_TABLE_MAX)
		return too_many("processes", PROFILE_TABLE_MAX);
	if (!own_keep(p, &copy.name) || !own_keep(p, &copy.command))
		return no_memory();
	moved = own_grow(p->processes, &p->own->process_room, p->process_count, sizeof copy);
	if (!moved)
		return no_memory();
	p->processes = moved;
	*index = (uint32_t)p->process_count++;
	p->processes[*index] = copy;
	return NULL;
}

struct err *profile_add_thread(struct profile *p, const struct profile_thread *t, uint32_t *index)
{
	struct profile_thread copy = *t, *moved;
	if (p->thread_count >= PROFILE_TABLE_MAX)
		return too_many("threads", PROFILE_TABLE_MAX);
	if (copy.process >= p->process_count)
		return err_new("thread %d of a process that is not in the profile", copy.tid);
	if (!own_keep(p, &copy.name))
		return no_memory();
	moved = own_grow(p->threads, &p->own->thread_room, p->thread_count, sizeof copy);
	if (!moved)
		return no_memory();
	p->threads = moved;
	*index = (uint32_t)p->thread_count++;
	p->threads[*index] = copy;
	return NULL;
}

static struct profile_lost *find_lost(struct profile *p, const char *reason)
{
	for (size_t i = 0; i < p->lost_count; i++)
		if (!strcmp(p->lost[i].reason, reason))
			return &p->lost[i];
	return NULL;
}

struct err *profile_lose(struct profile *p, const char *reason, uint64_t count)
{
	struct profile_lost *found, *moved;
	if (!own_keep(p, &reason))
		return no_memory();
	found = find_lost(p, reason);
	if (!found && p->lost_count >= PROFILE_LOST_MAX - 1) { /* the last place is for these */
		reason = "other";
		if (!own_keep(p, &reason))
			return no_memory();
		found = find_lost(p, reason);
	}
	if (!found) {
		moved = own_grow(p->lost, &p->own->lost_room, p->lost_count, sizeof *moved);
		if (!moved)
			return no_memory();
		p->lost = moved;
		found = &p->lost[p->lost_count++];
		*found = (struct profile_lost){reason, 0};
	}
	found->count = sum_add(found->count, count);
	return NULL;
}

uint64_t profile_end(const struct profile *p)
{
	return p->start_time ? p->start_time + p->duration_ns / 1000000000 : 0;
}
