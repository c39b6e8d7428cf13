/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/err.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "image/image.h"
#include "image/name_table.h"
#include "image/names.h"
#include "image/symbols.h"
#include "library/library.h"
#include "process/jit.h"
#include "process/kernel_names.h"
#include "process/reach.h"
#include "profile/profile.h"

/* Bytes of name lists that are read of one user's processes, in a drain. */
#define LISTS_MAX ((size_t)32 << 20)

static const char *kernel_name(const void *context, uint64_t address, uint64_t *start,
			       uint64_t *size)
{
	return kernel_names_find(context, address, start, size);
}

void names_of_kernel(struct harvest *h, const struct kernel_names *names)
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

/* Returns the addresses of a module that are in the profile, ascending; NULL: none. */
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

/* Whether the file can be found later by its path. */
static bool has_name(const struct library_module *m, const struct image *image)
{
	struct stat open, there;
	return !fstat(image_descriptor(image), &open) &&
	       !reach_stat(m->here ? m->here : m->path, &there) && open.st_dev == there.st_dev &&
	       open.st_ino == there.st_ino;
}

void names_of_files(struct recording *r, struct harvest *h)
{
	for (uint32_t id = 1; id < WIRE_MODULE_MAX; id++) {
		uint32_t module = h->modules[id];
		struct image *image;
		if (!module)
			continue;
		int names = library_names(r->library, id, &image);
		if (names >= 0)
			name_by_table(h->profile, module - 1, names);
		else if (image && !has_name(library_module(r->library, id), image))
			name_by_file(h->profile, module - 1, image);
	}
}

/* Returns how many more bytes may be read for a user. In a recording that goes on for months, a user who
   writes large lists has names for a part of them, and nobody else loses any. */
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
	if (addresses && !e && !jit) { /* the process is gone, but its file is there */
		snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)p->namespace_pid);
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

void names_of_jit(struct harvest *h, const struct process *p)
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
