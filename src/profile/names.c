/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions that are kept in the profile, since no file has them later. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "profile/own.h"

static int compare_names(const void *a, const void *b)
{
	const struct profile_name *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Room for a power of two, as own_append_name has it. */
static struct profile_name *make_room(size_t count)
{
	size_t room = 1;
	while (room < count)
		room *= 2;
	return reallocarray(NULL, room, sizeof(struct profile_name));
}

/* In order, the first of those that begin at one place. */
static size_t sort_names(struct profile_name *names, size_t count)
{
	size_t kept = 0;
	if (count)
		qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++)
		if (!kept || names[kept - 1].start != names[i].start)
			names[kept++] = names[i];
	return kept;
}

void profile_name_module(struct profile *p, uint32_t module, profile_find_name *find,
			 const void *context)
{
	size_t nodes = 0, count = 0;
	for (size_t i = 0; i < p->node_count; i++)
		nodes += p->nodes[i].module == module;
	struct profile_name *names = nodes ? make_room(nodes) : NULL;
	for (size_t i = 0; names && i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i];
		uint64_t start, size;
		const char *name = NULL;
		if (n->module == module)
			name = find(context, n->address - (n->kind == PROFILE_CALL), &start, &size);
		if (name)
			names[count++] = (struct profile_name){start, size, name};
	}
	if (!names)
		return;
	count = sort_names(names, count);
	for (size_t i = 0; i < count; i++)
		names[i].name = profile_string(p, names[i].name);
	free(p->modules[module].names);
	p->modules[module].names = names;
	p->modules[module].name_count = count;
}

struct err *profile_name_function(struct profile *p, uint32_t module, uint64_t start, uint64_t size,
				  const char *name)
{
	struct profile_module *m = &p->modules[module];
	size_t at = FIRST_NOT(i, m->name_count, m->names[i].start < start);
	if (at < m->name_count && m->names[at].start == start)
		return NULL;
	/* There is room for a power of two. */
	bool full = !(m->name_count & (m->name_count - 1));
	struct profile_name *names = full ? reallocarray(m->names,
							 m->name_count ? m->name_count * 2 : 1,
							 sizeof *names)
					  : m->names;
	if (!names)
		return err_new("out of memory");
	memmove(names + at + 1, names + at, (m->name_count - at) * sizeof *names);
	names[at] = (struct profile_name){start, size, profile_string(p, name)};
	m->names = names;
	m->name_count++;
	return NULL;
}

struct err *own_merge_names(struct profile *p, struct profile_module *into,
			    const struct profile_module *from)
{
	size_t count = into->name_count + from->name_count;
	struct profile_name *names = from->name_count ? make_room(count) : NULL;
	if (!from->name_count)
		return NULL;
	if (!names)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++) {
		bool new = i >= into->name_count;
		names[i] = new ? from->names[i - into->name_count] : into->names[i];
		if (new && !own_keep(p, &names[i].name)) {
			free(names);
			return err_new("out of memory");
		}
	}
	free(into->names);
	into->names = names;
	into->name_count = sort_names(names, count);
	return NULL;
}
