/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/builds.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "compare/names.h"
#include "profile/profile.h"

#define PROGRAMS_MAX 32 /* a bit each */

struct finder {
	const struct profile *p;
	struct modules *modules;
	const uint8_t *node_sides;
	struct builds *out;
	bool *used;     /* by module: it has code in the tree; others were not opened */
	uint8_t *sides; /* by module that stands for others */
};

/* ---- the same file name ---- */

static struct err *find_used(struct finder *f)
{
	size_t count = f->p->module_count + 1;
	f->used = calloc(count, sizeof *f->used);
	f->sides = calloc(count, sizeof *f->sides);
	f->out->same = calloc(count, sizeof *f->out->same);
	f->out->rebuilt = calloc(count, sizeof *f->out->rebuilt);
	f->out->unreadable = calloc(count, sizeof *f->out->unreadable);
	if (!f->used || !f->sides || !f->out->same || !f->out->rebuilt || !f->out->unreadable)
		return err_new("out of memory");
	for (size_t i = 0; i < f->p->node_count; i++)
		f->used[f->p->nodes[i].module] = true;
	return NULL;
}

static uint64_t hash_name(const char *path, void (*name)(const char *path, struct buf *out))
{
	struct buf text = {0};
	name(path, &text);
	uint64_t hash = hash_text(HASH_START, buf_text(&text));
	buf_free(&text);
	return hash;
}

static struct err *join_names(struct finder *f)
{
	struct lookup files = {0};
	bool good = true;
	for (uint32_t i = 1; i < f->p->module_count && good; i++) {
		uint64_t key = hash_name(f->p->modules[i].path, name_module);
		uint32_t first = lookup_find(&files, key);
		f->out->same[i] = f->used[i] && first != LOOKUP_NONE ? first : i;
		if (f->used[i] && first == LOOKUP_NONE)
			good = lookup_put(&files, key, i);
	}
	for (size_t i = 1; i < f->p->node_count && f->node_sides; i++)
		f->sides[f->out->same[f->p->nodes[i].module]] |= f->node_sides[i];
	lookup_free(&files);
	return good ? NULL : err_new("out of memory");
}

/* ---- other names ---- */

/* Whether it stands for a file that only this side has. */
static bool is_alone(const struct finder *f, uint32_t module, uint8_t side)
{
	return module && f->used[module] && f->out->same[module] == module &&
	       f->sides[module] == side && f->p->modules[module].kind == PROFILE_FILE;
}

static void pair_up(struct finder *f, uint32_t old, uint32_t new)
{
	for (uint32_t i = 1; i < f->p->module_count; i++)
		if (f->out->same[i] == old)
			f->out->same[i] = new;
	f->sides[new] = SIDES_BOTH;
	f->sides[old] = 0;
}

/* The only one of a side by hash of its name; 0: there are several. */
static bool find_only(const struct finder *f, uint8_t side, struct lookup *out)
{
	bool good = true;
	for (uint32_t i = 1; i < f->p->module_count && good; i++) {
		if (!is_alone(f, i, side))
			continue;
		uint64_t key = hash_name(f->p->modules[i].path, name_module_family);
		good = lookup_put(out, key, lookup_find(out, key) == LOOKUP_NONE ? i : 0);
	}
	return good;
}

static struct err *join_versions(struct finder *f)
{
	struct lookup old = {0}, new = {0};
	bool good = find_only(f, SIDE_OLD, &old) && find_only(f, SIDE_NEW, &new);
	for (uint32_t i = 1; i < f->p->module_count && good; i++) {
		if (!is_alone(f, i, SIDE_NEW))
			continue;
		uint64_t key = hash_name(f->p->modules[i].path, name_module_family);
		uint32_t before = lookup_find(&old, key);
		if (before != LOOKUP_NONE && before && lookup_find(&new, key) == i)
			pair_up(f, before, i);
	}
	lookup_free(&old);
	lookup_free(&new);
	return good ? NULL : err_new("out of memory");
}

static bool is_library(const char *path)
{
	struct buf name = {0};
	name_module(path, &name);
	bool is = strstr(buf_text(&name), ".so");
	buf_free(&name);
	return is;
}

/* What may be a side's program, at most PROGRAMS_MAX of them. */
static size_t list_programs(const struct finder *f, uint8_t side, uint32_t *list)
{
	size_t count = 0;
	for (uint32_t i = 1; i < f->p->module_count && count < PROGRAMS_MAX; i++)
		if (is_alone(f, i, side) && !is_library(f->p->modules[i].path))
			list[count++] = i;
	return count;
}

/* The only one with half of the side's samples; 0: none. */
static struct err *find_program(const struct finder *f, uint8_t side, uint32_t *out)
{
	const struct profile *p = f->p;
	uint32_t list[PROGRAMS_MAX], *bits = calloc(p->node_count + 1, sizeof *bits);
	size_t count = list_programs(f, side, list);
	double samples[PROGRAMS_MAX] = {0}, all = 0;
	*out = 0;
	if (!bits)
		return err_new("out of memory");
	for (size_t i = 1; i < p->node_count && count; i++) {
		bits[i] = bits[p->nodes[i].parent];
		for (size_t k = 0; k < count; k++)
			if (f->out->same[p->nodes[i].module] == list[k])
				bits[i] |= 1u << k;
	}
	/* What is below a module of one side has samples of that side only. */
	for (size_t i = 0; i < p->value_count && count; i++) {
		const struct profile_value *v = &p->values[i];
		if (!(f->node_sides[v->node] & side))
			continue;
		all += (double)v->count;
		for (size_t k = 0; k < count; k++)
			samples[k] += bits[v->node] >> k & 1 ? (double)v->count : 0;
	}
	size_t large = 0;
	for (size_t k = 0; k < count; k++)
		if (2 * samples[k] >= all) {
			*out = list[k];
			large++;
		}
	*out = large == 1 ? *out : 0;
	free(bits);
	return NULL;
}

/* ---- names in common ---- */

struct names { /* hashes, ascending, each once */
	uint64_t *all;
	size_t count, room;
};

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Every program has these. */
static bool says_nothing(const char *name)
{
	return !name || !strcmp(name, "main") || !strcmp(name, "_start");
}

/* The functions of a module that were seen. */
static struct err *find_names(const struct finder *f, uint32_t module, struct names *out)
{
	size_t kept = 0;
	for (size_t i = 1; i < f->p->node_count; i++) {
		const struct profile_node *n = &f->p->nodes[i];
		struct modules_function function;
		if (f->out->same[n->module] != module)
			continue;
		modules_function(f->modules, n->module, n->address, n->kind == PROFILE_EXACT,
				 &function);
		if (says_nothing(function.name))
			continue;
		if (!ARRAY_ROOM(out->all, out->count, out->room))
			return err_new("out of memory");
		out->all[out->count++] = hash_name(function.name, name_plain);
	}
	if (out->count)
		qsort(out->all, out->count, sizeof *out->all, compare_hashes);
	for (size_t i = 0; i < out->count; i++)
		if (!kept || out->all[kept - 1] != out->all[i])
			out->all[kept++] = out->all[i];
	out->count = kept;
	return NULL;
}

/* Whether at least half of the functions of the one that has fewer are in both. */
static bool are_alike(const struct names *a, const struct names *b)
{
	size_t i = 0, j = 0, both = 0;
	while (i < a->count && j < b->count) {
		uint64_t x = a->all[i], y = b->all[j];
		both += x == y;
		i += x <= y;
		j += y <= x;
	}
	return 2 * both >= (a->count < b->count ? a->count : b->count);
}

static struct err *join_programs(struct finder *f)
{
	uint32_t old, new = 0;
	struct names before = {0}, after = {0};
	struct err *e = find_program(f, SIDE_OLD, &old);
	if (!e)
		e = find_program(f, SIDE_NEW, &new);
	if (!e && old && new)
		e = find_names(f, old, &before);
	if (!e && old && new)
		e = find_names(f, new, &after);
	if (!e && old && new &&are_alike(&before, &after))
		pair_up(f, old, new);
	free(before.all);
	free(after.all);
	return e;
}

/* ---- builds ---- */

static void find_rebuilt(struct finder *f)
{
	struct builds *b = f->out;
	for (uint32_t i = 1; i < f->p->module_count; i++) {
		const struct profile_module *m = &f->p->modules[i];
		uint32_t first = b->same[i];
		if (!f->used[i])
			continue;
		if (strcmp(f->p->modules[first].build_id, m->build_id) != 0)
			b->rebuilt[first] = true;
		if (m->kind != PROFILE_FILE || modules_image(f->modules, i))
			continue;
		b->unreadable[first] = true;
		if (!*m->build_id && !m->name_count) /* nothing says that it is the same */
			b->rebuilt[first] = true;
	}
}

struct err *builds_find(const struct profile *profile, struct modules *modules,
			const uint8_t *sides, struct builds *out)
{
	struct finder f = {.p = profile, .modules = modules, .node_sides = sides, .out = out};
	*out = (struct builds){.profile = profile};
	struct err *e = find_used(&f);
	if (!e)
		e = join_names(&f);
	if (!e && sides)
		e = join_versions(&f);
	if (!e && sides)
		e = join_programs(&f);
	if (!e)
		find_rebuilt(&f);
	free(f.used);
	free(f.sides);
	return e;
}

void builds_free(struct builds *b)
{
	free(b->same);
	free(b->rebuilt);
	free(b->unreadable);
	*b = (struct builds){0};
}

/* ---- what is known of them ---- */

bool builds_differ(const struct builds *b, uint32_t module)
{
	return b->rebuilt[b->same[module]];
}

bool builds_whole(const struct builds *b, uint32_t module)
{
	uint32_t first = b->same[module];
	return b->rebuilt[first] && b->unreadable[first];
}

void builds_note_wholes(const struct builds *b, struct buf *notes)
{
	for (uint32_t i = 1; i < b->profile->module_count; i++) {
		if (b->same[i] != i || !builds_whole(b, i))
			continue;
		builds_name(b, i, notes);
		buf_puts(notes, " is compared as a whole: not all of its builds are there\n");
	}
}

void builds_name(const struct builds *b, uint32_t module, struct buf *out)
{
	name_module(b->profile->modules[b->same[module]].path, out);
}
