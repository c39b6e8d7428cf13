/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is known by its path and build-id. Of each the functions that were met
 * are kept, in order:
 *
 *    file: path, build-id, functions: [start, size, name]…    name NULL: nothing is known there
 *
 * Where an address is in none of them, the file's symbols are read, all that are
 * new are looked up, and the symbols are given back. When many functions have
 * come together, files that were not met for longest are forgotten.
 */
#include "daemon/namer.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "image/image.h"
#include "image/places.h"
#include "image/symbols.h"
#include "process/backing.h"
#include "profile/profile.h"
#include "store/store.h"

#define BYTES_MAX ((size_t)6 << 20) /* of all that is kept */

struct function {
	uint64_t start, size;
	char *name;
};

struct file {
	struct file *next;
	char *path, *build_id;
	time_t changed; /* where no build-id tells it apart */
	struct function *functions;
	size_t count, room, bytes;
	uint64_t used; /* the call that met it last */
};

struct namer {
	struct file *files;
	uint64_t calls;
	size_t bytes;
};

struct need { /* an address that was met */
	uint32_t module;
	uint64_t address;
};

struct found {
	struct store_symbol *items;
	size_t count, room;
};

struct err *namer_open(struct namer **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? NULL : err_new("out of memory");
}

static void free_file(struct file *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->functions[i].name);
	free(f->functions);
	free(f->path);
	free(f->build_id);
	free(f);
}

void namer_close(struct namer *n)
{
	for (struct file *f = n ? n->files : NULL, *next; f; f = next) {
		next = f->next;
		free_file(f);
	}
	free(n);
}

/* Files */

static time_t changed_of(const struct profile_module *m)
{
	struct stat st;
	return *m->build_id || stat(m->path, &st) ? 0 : st.st_mtime;
}

static struct file *find_file(struct namer *n, const struct profile_module *m)
{
	time_t changed = changed_of(m);
	for (struct file *f = n->files; f; f = f->next)
		if (f->changed == changed && !strcmp(f->path, m->path) &&
		    !strcmp(f->build_id, m->build_id))
			return f;
	struct file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->path = strdup(m->path);
	f->build_id = strdup(m->build_id);
	f->changed = changed;
	if (!f->path || !f->build_id) {
		free_file(f);
		return NULL;
	}
	f->next = n->files;
	n->files = f;
	return f;
}

/* Those that were not met for longest, until there is room. */
static void forget_old(struct namer *n)
{
	while (n->bytes > BYTES_MAX) {
		struct file **oldest = NULL;
		for (struct file **link = &n->files; *link; link = &(*link)->next)
			if ((*link)->used < n->calls &&
			    (!oldest || (*link)->used < (*oldest)->used))
				oldest = link;
		if (!oldest)
			break;
		struct file *f = *oldest;
		*oldest = f->next;
		n->bytes -= f->bytes;
		free_file(f);
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Among the first `count`, which are in order. */
static const struct function *find_function(const struct file *f, size_t count, uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct function *x = low ? &f->functions[low - 1] : NULL;
	return x && address - x->start < x->size ? x : NULL;
}

static struct err *add_function(struct namer *n, struct file *f, uint64_t start, uint64_t size,
				const char *name)
{
	char *copy = name ? strdup(name) : NULL;
	if (name && !copy)
		return err_new("out of memory");
	if (f->count == f->room) {
		size_t room = f->room ? f->room * 2 : 16;
		struct function *more = reallocarray(f->functions, room, sizeof *more);
		if (!more) {
			free(copy);
			return err_new("out of memory");
		}
		f->functions = more;
		f->room = room;
	}
	size_t bytes = sizeof *f->functions + (name ? strlen(name) + 1 : 0);
	f->functions[f->count++] = (struct function){start, size, copy};
	f->bytes += bytes;
	n->bytes += bytes;
	return NULL;
}

/* Its symbols, where it still is the file that was met. */
static struct err *open_file(const struct profile_module *m, struct image **image,
			     struct places **places)
{
	char id[2 * BUILD_ID_MAX + 1];
	struct err *e = m->kind == PROFILE_VDSO ? backing_open_vdso(image)
						: image_open(m->path, image);
	if (e)
		return e;
	image_build_id_hex(*image, id);
	if (strcmp(id, m->build_id) != 0)
		return err_new("%s: it is another file now", m->path);
	return places_open(*image, false, places);
}

static struct err *look_up(struct namer *n, struct file *f, struct places *places, uint64_t address)
{
	const struct symbol *s = places ? places_function(places, address) : NULL;
	/* Of one without a size, as far as it is known. */
	if (!s || address < s->address)
		return add_function(n, f, address, 1, NULL);
	uint64_t size = s->size > address - s->address ? s->size : address - s->address + 1;
	return add_function(n, f, s->address, size, places_name(places, s->name));
}

static void settle(struct namer *n, struct file *f)
{
	size_t kept = 0;
	if (f->count)
		qsort(f->functions, f->count, sizeof *f->functions, compare_functions);
	for (size_t i = 0; i < f->count; i++) {
		struct function *x = &f->functions[i];
		struct function *last = kept ? &f->functions[kept - 1] : NULL;
		if (!last || last->start != x->start) {
			f->functions[kept++] = *x;
			continue;
		}
		if (x->size > last->size)
			last->size = x->size;
		size_t bytes = sizeof *x + (x->name ? strlen(x->name) + 1 : 0);
		f->bytes -= bytes;
		n->bytes -= bytes;
		free(x->name);
	}
	f->count = kept;
}

/* What is new among a module's addresses. */
static struct err *read_file(struct namer *n, struct file *f, const struct profile_module *m,
			     const struct need *needs, size_t count)
{
	struct image *image = NULL;
	struct places *places = NULL;
	size_t known = f->count;
	struct err *e = NULL;
	bool tried = false;
	for (size_t i = 0; !e && i < count; i++) {
		const struct function *last = f->count > known ? &f->functions[f->count - 1] : NULL;
		uint64_t address = needs[i].address;
		if (find_function(f, known, address) ||
		    (last && address >= last->start && address - last->start < last->size))
			continue;
		if (!tried)
			err_free(open_file(m, &image, &places));
		tried = true;
		e = look_up(n, f, places, address);
	}
	places_close(places);
	image_close(image);
	if (tried) {
		settle(n, f);
		malloc_trim(0);
	}
	return e;
}

/* Results */

static struct err *add_found(struct found *out, uint32_t module, uint64_t start, uint64_t size,
			     const char *name)
{
	if (out->count == out->room) {
		size_t room = out->room ? out->room * 2 : 256;
		struct store_symbol *more = reallocarray(out->items, room, sizeof *more);
		if (!more)
			return err_new("out of memory");
		out->items = more;
		out->room = room;
	}
	out->items[out->count++] = (struct store_symbol){module, start, size, name};
	return NULL;
}

static struct err *add_kept(const struct profile_module *m, uint32_t module, struct found *out)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < m->name_count; i++)
		e = add_found(out, module, m->names[i].start, m->names[i].size, m->names[i].name);
	return e;
}

static struct err *find_of_module(struct namer *n, const struct profile_module *m,
				  const struct need *needs, size_t count, struct found *out)
{
	uint32_t module = needs->module;
	if (m->name_count)
		return add_kept(m, module, out);
	if (m->kind != PROFILE_FILE && m->kind != PROFILE_VDSO)
		return NULL;
	struct file *f = find_file(n, m);
	if (!f)
		return err_new("out of memory");
	f->used = n->calls;
	struct err *e = read_file(n, f, m, needs, count);
	const struct function *last = NULL;
	for (size_t i = 0; !e && i < count; i++) {
		const struct function *x = find_function(f, f->count, needs[i].address);
		if (x && x != last && x->name)
			e = add_found(out, module, x->start, x->size, x->name);
		last = x;
	}
	return e;
}

static int compare_needs(const void *a, const void *b)
{
	const struct need *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

struct err *namer_find(struct namer *n, const struct profile *p, struct store_symbol **symbols,
		       size_t *count)
{
	struct need *needs = calloc(p->node_count + 1, sizeof *needs);
	struct found out = {0};
	struct err *e = needs ? NULL : err_new("out of memory");
	size_t used = 0;
	n->calls++;
	for (size_t i = 1; !e && i < p->node_count; i++) {
		const struct profile_node *x = &p->nodes[i];
		if (x->module)
			needs[used++] = (struct need){x->module,
						      x->address - (x->kind == PROFILE_CALL)};
	}
	if (used)
		qsort(needs, used, sizeof *needs, compare_needs);
	for (size_t i = 0, end; !e && i < used; i = end) {
		for (end = i; end < used && needs[end].module == needs[i].module;)
			end++;
		e = find_of_module(n, &p->modules[needs[i].module], needs + i, end - i, &out);
	}
	forget_old(n);
	free(needs);
	if (e) {
		free(out.items);
		out = (struct found){0};
	}
	*symbols = out.items;
	*count = out.count;
	return e;
}
