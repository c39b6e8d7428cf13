/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/path_pairs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "compare/block_pairs.h"
#include "compare/names.h"
#include "paths/ranking.h"
#include "paths/result.h"

struct file {
	uint64_t name, family; /* hashes */
	bool is_library;
	uint64_t same; /* the name that stands for it */
};

struct files {
	struct file *all;
	size_t count, room;
};

struct entry { /* a function */
	const struct ranked_function *f;
	uint32_t index; /* in its ranking */
	bool is_new;
	uint32_t file;   /* of its side */
	uint64_t module; /* the same number on both sides if that is the same file */
	uint64_t name, plain, family, shape;
	uint64_t key;         /* at work */
	struct entry *paired; /* NULL: not yet */
};

struct pairing {
	struct entry *all;      /* those of the old side come first */
	struct entry **waiting; /* without a pair */
	size_t count, old_count, waiting_count;
	struct files files[2]; /* of the old side, of the new one */
	struct buf text;
};

/* ---- files ---- */

static uint64_t hash_name(struct pairing *p, void (*put)(const char *, struct buf *),
			  const char *name)
{
	buf_clear(&p->text);
	put(name, &p->text);
	return hash_text(HASH_START, buf_text(&p->text));
}

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strstr(slash ? slash : path, ".so") != NULL;
}

/* The number of a file of a side; `count` of them if there is no memory. */
static uint32_t find_file(struct pairing *p, struct files *files, const char *path)
{
	uint64_t name = hash_name(p, name_module, path);
	for (size_t i = 0; i < files->count; i++)
		if (files->all[i].name == name)
			return (uint32_t)i;
	if (ARRAY_ROOM(files->all, files->count, files->room))
		files->all[files->count++] = (struct file){
			.name = name,
			.family = hash_name(p, name_module_family, path),
			.is_library = is_library(path),
			.same = name};
	else
		p->text.failed = true;
	return (uint32_t)files->count - 1;
}

static bool has_name(const struct files *files, uint64_t name)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->all[i].name == name)
			return true;
	return false;
}

enum likeness { LIKE_FAMILY, LIKE_PROGRAM, LIKE_ANY };

static bool is_like(const struct file *f, enum likeness like, const struct file *wanted)
{
	return like == LIKE_ANY ||
	       (like == LIKE_FAMILY ? f->family == wanted->family : !f->is_library);
}

/* The only such file of a side that the other side has not; NULL: there is none, or there are several. `wanted` is for LIKE_FAMILY. */
static struct file *only_one(const struct files *files, const struct files *others,
			     enum likeness like, const struct file *wanted)
{
	struct file *found = NULL;
	for (size_t i = 0; i < files->count; i++) {
		struct file *f = &files->all[i];
		if (!is_like(f, like, wanted) || has_name(others, f->name))
			continue;
		if (found)
			return NULL;
		found = f;
	}
	return found;
}

static void match_only(struct files *old, const struct files *new, enum likeness like,
		       const struct file *wanted)
{
	struct file *f = only_one(old, new, like, wanted);
	const struct file *other = only_one(new, old, like, wanted);
	if (f && other && f->same == f->name)
		f->same = other->name;
}

static void match_files(struct files *old, const struct files *new)
{
	for (size_t i = 0; i < old->count; i++)
		match_only(old, new, LIKE_FAMILY, &old->all[i]);
	match_only(old, new, LIKE_PROGRAM, NULL);
	match_only(old, new, LIKE_ANY, NULL);
}

/* ---- functions ---- */

static void describe(struct pairing *p, const struct ranking *r, uint32_t i, bool is_new)
{
	const struct ranked_function *f = &r->functions[i];
	struct entry *e = &p->all[p->count++];
	*e = (struct entry){.f = f, .index = i, .is_new = is_new};
	e->file = find_file(p, &p->files[is_new], f->function->module);
	if (f->function->name && *f->function->name) {
		e->name = hash_text(HASH_START, f->function->name);
		e->plain = hash_name(p, name_plain, f->name);
		e->family = hash_name(p, name_family, f->name);
	}
	if (f->function->state == PATH_EXACT)
		e->shape = block_shape(&(struct block_side){&f->function->graph, f->lengths, NULL});
}

static uint64_t key_of(const struct entry *e, uint64_t x, uint64_t y)
{
	return hash_number(hash_number(hash_number(HASH_START, e->module), x), y);
}

static uint64_t by_build(const struct entry *e)
{
	const char *id = e->f->function->build_id;
	return id && *id ? key_of(e, hash_text(HASH_START, id), e->f->function->address) : 0;
}

static uint64_t by_name_and_shape(const struct entry *e)
{
	return e->name && e->shape ? key_of(e, e->name, e->shape) : 0;
}

static uint64_t by_name(const struct entry *e)
{
	return e->name ? key_of(e, e->name, 0) : 0;
}

static uint64_t by_plain_and_shape(const struct entry *e)
{
	return e->plain && e->shape ? key_of(e, e->plain, e->shape) : 0;
}

static uint64_t by_plain(const struct entry *e)
{
	return e->plain ? key_of(e, e->plain, 0) : 0;
}

static uint64_t by_family(const struct entry *e)
{
	return e->family ? key_of(e, e->family, 0) : 0;
}

static uint64_t by_shape(const struct entry *e)
{
	return e->shape ? key_of(e, e->shape, 0) : 0;
}

static const struct pass {
	uint64_t (*key)(const struct entry *); /* 0: none */
	size_t most; /* functions with the same key on each side; 0: any number, also different ones */
	bool nameless;
} passes[] = {
	{by_build, 0, false},           {by_name_and_shape, 0, false}, {by_name, 0, false},
	{by_plain_and_shape, 0, false}, {by_plain, 0, false},          {by_family, 1, false},
	{by_shape, SIZE_MAX, true},
};

static int compare(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int order = compare(x->key, y->key);
	if (!order)
		order = x->is_new - y->is_new;
	return order ? order : compare(x->f->function->address, y->f->function->address);
}

static void pair(struct entry *x, struct entry *y)
{
	x->paired = y;
	y->paired = x;
}

static size_t count_while(const struct pairing *p, size_t from, bool is_new)
{
	size_t i = from;
	while (i < p->waiting_count && p->waiting[i]->key == p->waiting[from]->key &&
	       p->waiting[i]->is_new == is_new)
		i++;
	return i - from;
}

/* Those with the same key, in the order of their addresses. */
static void pair_keys(struct pairing *p, size_t most)
{
	for (size_t i = 0; i < p->waiting_count;) {
		uint64_t key = p->waiting[i]->key;
		size_t old = count_while(p, i, false);
		size_t behind = i + old, new = 0;
		if (behind < p->waiting_count && p->waiting[behind]->key == key)
			new = count_while(p, behind, true);
		bool sure = !most || (old == new &&old <= most);
		for (size_t k = 0; key && sure && k < old && k < new; k++)
			pair(p->waiting[i + k], p->waiting[behind + k]);
		i = behind + new;
	}
}

static void drop_paired(struct pairing *p)
{
	size_t kept = 0;
	for (size_t i = 0; i < p->waiting_count; i++)
		if (!p->waiting[i]->paired)
			p->waiting[kept++] = p->waiting[i];
	p->waiting_count = kept;
}

/* A function with a name is not one with another name, even if it has the same shape. */
static bool may_pair(const struct entry *e, const struct pass *pass)
{
	return !pass->nameless || !e->name;
}

static void run_pass(struct pairing *p, const struct pass *pass)
{
	for (size_t i = 0; i < p->waiting_count; i++)
		p->waiting[i]->key = may_pair(p->waiting[i], pass) ? pass->key(p->waiting[i]) : 0;
	if (p->waiting_count)
		qsort(p->waiting, p->waiting_count, sizeof *p->waiting, by_key);
	pair_keys(p, pass->most);
	drop_paired(p);
}

/* ---- neighbours ---- */

static int by_place(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int order = compare(x->module, y->module);
	return order ? order : compare(x->f->function->address, y->f->function->address);
}

static struct entry **sort_side(struct pairing *p, bool is_new)
{
	size_t first = is_new ? p->old_count : 0,
	       count = (is_new ? p->count : p->old_count) - first;
	struct entry **all = calloc(count + 1, sizeof *all);
	for (size_t i = 0; i < count && all; i++)
		all[i] = &p->all[first + i];
	if (count && all)
		qsort(all, count, sizeof *all, by_place);
	return all;
}

static bool is_between(struct entry *const *all, size_t i)
{
	return !all[i]->paired && !all[i]->name && all[i - 1]->paired && all[i + 1]->paired &&
	       all[i - 1]->module == all[i]->module && all[i + 1]->module == all[i]->module;
}

static struct err *pair_neighbours(struct pairing *p)
{
	size_t old_count = p->old_count, new_count = p->count - p->old_count;
	struct entry **old = sort_side(p, false), **new = sort_side(p, true);
	size_t k = 1;
	/* Neighbours of a function were paired in the order of their addresses, mostly: so one step leads to the next. */
	for (size_t i = 1; old && new &&i + 1 < old_count; i++) {
		if (!is_between(old, i))
			continue;
		for (k = 1; k + 1 < new_count && new[k - 1] != old[i - 1]->paired;)
			k++;
		if (k + 1 < new_count && is_between(new, k) && new[k + 1] == old[i + 1]->paired)
			pair(old[i], new[k]);
	}
	bool failed = !old || !new;
	free(old);
	free(new);
	return failed ? err_new("out of memory") : NULL;
}

/* ---- all ---- */

static void list(const struct pairing *p, struct path_pair *out, size_t *count)
{
	*count = 0;
	for (size_t i = p->old_count; i < p->count; i++)
		out[(*count)++] = (struct path_pair){p->all[i].paired ? p->all[i].paired->index
								      : PATH_FUNCTION_ALONE,
						     p->all[i].index};
	for (size_t i = 0; i < p->old_count; i++)
		if (!p->all[i].paired)
			out[(*count)++] = (struct path_pair){p->all[i].index, PATH_FUNCTION_ALONE};
}

static struct err *match(struct pairing *p)
{
	if (p->text.failed)
		return err_new("out of memory");
	match_files(&p->files[0], &p->files[1]);
	for (size_t i = 0; i < p->count; i++) {
		struct entry *e = &p->all[i];
		e->module = p->files[e->is_new].all[e->file].same;
		p->waiting[p->waiting_count++] = e;
	}
	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
		run_pass(p, &passes[i]);
	struct err *e = pair_neighbours(p);
	return p->text.failed && !e ? err_new("out of memory") : e;
}

struct err *path_pairs_find(const struct ranking *old, const struct ranking *new,
			    struct path_pair **out, size_t *count)
{
	size_t room = old->count + new->count + 1;
	struct pairing p = {.all = calloc(room, sizeof *p.all),
			    .waiting = calloc(room, sizeof *p.waiting)};
	*out = calloc(room, sizeof **out);
	struct err *e = p.all && p.waiting && *out ? NULL : err_new("out of memory");
	for (uint32_t i = 0; i < old->count && !e; i++)
		describe(&p, old, i, false);
	p.old_count = p.count;
	for (uint32_t i = 0; i < new->count && !e; i++)
		describe(&p, new, i, true);
	if (!e)
		e = match(&p);
	if (!e)
		list(&p, *out, count);
	buf_free(&p.text);
	free(p.files[0].all);
	free(p.files[1].all);
	free(p.all);
	free(p.waiting);
	if (e) {
		free(*out);
		*out = NULL;
	}
	return e;
}
