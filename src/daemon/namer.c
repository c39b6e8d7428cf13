/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is known by its path and build-id. Of each the pieces that were met are
 * kept, in order, with the function that they are of. A function in which another
 * one lies has several, and so has what lies between functions.
 *
 *    file: path, build-id, pieces: [from, to, start, size, name]…    name NULL: nothing is known there
 *
 * Where an address is in none of them, the file's symbols are read, all that are
 * new are looked up, and the symbols are given back. When many have
 * come together, files that were not met for longest are forgotten.
 */
#include "daemon/namer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/hash.h"
#include "image/image.h"
#include "image/places.h"
#include "image/symbols.h"
#include "process/backing.h"
#include "profile/profile.h"
#include "store/store.h"

#define BYTES_MAX ((size_t)6 << 20) /* of all that is kept */
#define RECENT 8192u                /* addresses that are known to be wanted */

struct piece {
	uint64_t from, to;
	uint64_t start, size; /* of the function */
	char *name;
};

struct file {
	struct file *next;
	char *path, *build_id;
	time_t changed; /* where no build-id tells it apart */
	struct piece *pieces;
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
		free(f->pieces[i].name);
	free(f->pieces);
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
	f->bytes = sizeof *f + strlen(f->path) + strlen(f->build_id);
	n->bytes += f->bytes;
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

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

/* Among the first `count`, which are in order. */
static const struct piece *find_piece(const struct file *f, size_t count, uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->pieces[middle].from <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct piece *x = low ? &f->pieces[low - 1] : NULL;
	return x && address < x->to ? x : NULL;
}

/* Takes the name. */
static struct err *add_piece(struct namer *n, struct file *f, const struct piece *piece)
{
	if (f->count == f->room) {
		size_t room = f->room ? f->room * 2 : 16;
		struct piece *more = reallocarray(f->pieces, room, sizeof *more);
		if (!more) {
			free(piece->name);
			return err_new("out of memory");
		}
		f->pieces = more;
		f->room = room;
	}
	size_t bytes = sizeof *piece + (piece->name ? strlen(piece->name) + 1 : 0);
	f->pieces[f->count++] = *piece;
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
	const struct symbols *symbols = places ? places_symbols(places) : NULL;
	struct piece piece = {.from = 0, .to = UINT64_MAX}; /* there are no symbols */
	const struct symbol *s = symbols ? symbols_around(symbols, address, &piece.from, &piece.to)
					 : NULL;
	if (s) {
		piece.start = s->address;
		piece.size = s->size ? s->size : piece.to - s->address;
		piece.name = strdup(places_name(places, s->name));
		if (!piece.name)
			return err_new("out of memory");
	}
	return add_piece(n, f, &piece);
}

/* Addresses that ascend, in none of the pieces. One that cannot be read now may be the next time. */
static struct err *read_file(struct namer *n, struct file *f, const struct profile_module *m,
			     const uint64_t *addresses, size_t count)
{
	struct image *image = NULL;
	struct places *places = NULL;
	size_t known = f->count;
	err_free(open_file(m, &image, &places));
	struct err *e = NULL;
	if (places)
		places_near(places, addresses, count);
	for (size_t i = 0; places && !e && i < count; i++) {
		const struct piece *last = f->count > known ? &f->pieces[f->count - 1] : NULL;
		if (!last || addresses[i] < last->from || addresses[i] >= last->to)
			e = look_up(n, f, places, addresses[i]);
	}
	if (places)
		qsort(f->pieces, f->count, sizeof *f->pieces, compare_pieces);
	places_close(places);
	image_close(image);
	return e;
}

/* What is new among a module's addresses. */
static struct err *read_new(struct namer *n, struct file *f, const struct profile_module *m,
			    const struct need *needs, size_t count)
{
	uint64_t *addresses = reallocarray(NULL, count, sizeof *addresses);
	size_t used = 0;
	if (!addresses)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++)
		if (!find_piece(f, f->count, needs[i].address))
			addresses[used++] = needs[i].address;
	struct err *e = used ? read_file(n, f, m, addresses, used) : NULL;
	free(addresses);
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
	struct err *e = read_new(n, f, m, needs, count);
	const struct piece *last = NULL;
	for (size_t i = 0; !e && i < count; i++) {
		const struct piece *x = find_piece(f, f->count, needs[i].address);
		if (x && x->name && (!last || x->start != last->start))
			e = add_found(out, module, x->start, x->size, x->name);
		last = x && x->name ? x : last;
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

/* Most addresses are in many contexts: what came lately is left out, so that less is to be sorted. */
static size_t list_needs(const struct profile *p, struct need *needs, struct need *recent)
{
	size_t used = 0;
	for (size_t i = 1; i < p->node_count; i++) {
		const struct profile_node *x = &p->nodes[i];
		struct need need = {x->module, x->address - (x->kind == PROFILE_CALL)};
		struct need *last =
			&recent[hash_number(HASH_START + need.module, need.address) % RECENT];
		if (!need.module || !compare_needs(last, &need))
			continue;
		*last = needs[used++] = need;
	}
	qsort(needs, used, sizeof *needs, compare_needs);
	return used;
}

struct err *namer_find(struct namer *n, const struct profile *p, struct store_symbol **symbols,
		       size_t *count)
{
	struct need *needs = calloc(p->node_count + 1, sizeof *needs);
	struct need *recent = calloc(RECENT, sizeof *recent); /* no module is 0 */
	struct found out = {0};
	struct err *e = needs && recent ? NULL : err_new("out of memory");
	size_t used = e ? 0 : list_needs(p, needs, recent);
	n->calls++;
	for (size_t i = 0, end; !e && i < used; i = end) {
		for (end = i; end < used && needs[end].module == needs[i].module;)
			end++;
		e = find_of_module(n, &p->modules[needs[i].module], needs + i, end - i, &out);
	}
	forget_old(n);
	free(needs);
	free(recent);
	if (e) {
		free(out.items);
		out = (struct found){0};
	}
	*symbols = out.items;
	*count = out.count;
	return e;
}
