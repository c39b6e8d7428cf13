/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is known by its path and build-id. Of each the pieces that were met are
 * kept, in order, with the function that they are of. A function in which another
 * one lies has several, and so has what lies between functions.
 *
 *    file: path, build-id, pieces: [from, to, start, size, name]…    name NULL: nothing is known there
 *
 * Where an address is in none of them, another process reads the file's symbols and
 * tells of all that are new (library/teller.h); one for all files of a call. What it
 * could not read, or took long for, rests for a while, and files that others could have
 * made come last: who makes files that take long slows down only what he may. When many
 * have come together, files that were not met for longest are forgotten.
 */
#include "daemon/namer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart/apart.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "image/image.h"
#include "image/places.h"
#include "library/pieces.h"
#include "library/teller.h"
#include "process/backing.h"
#include "process/reach.h"
#include "profile/profile.h"
#include "store/store.h"

#define BYTES_MAX ((size_t)6 << 20) /* of all that is kept */
#define RECENT 8192u                /* addresses that are known to be wanted */
#define FAILED_REST_MS 60000u       /* of a file that the process died of, or that takes too much */
#define DOUBLED_MAX 6u              /* how often that becomes twice as long: an hour */
#define LONG_MS 100u                /* of CPU time for a file: then it rests */
#define LONG_REST 50u               /* times what it took */
#define CALL_MS 6000u               /* for all files of a call: others wait for the next one */
#define SHARE 3u                    /* one may take such a part of what is left of that */

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
	uint64_t rests_until_ms;
	unsigned failures; /* one after the other */
};

struct namer {
	struct file *files;
	uint64_t calls;
	size_t bytes;
	struct teller *teller;
	uint64_t until_ms; /* of the call */
	struct namer_account account;
};

struct need { /* an address that was met */
	uint32_t module;
	uint64_t address;
};

struct found {
	struct store_symbol *items;
	size_t count, room;
};

struct err *namer_open(const char *program, struct namer **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? teller_open(program, &(*out)->teller) : err_new("out of memory");
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
	if (n)
		teller_close(n->teller);
	free(n);
}

struct namer_account namer_take_account(struct namer *n)
{
	struct namer_account account = n->account;
	n->account = (struct namer_account){0};
	return account;
}

/* ---- files ---- */

static time_t changed_of(const struct profile_module *m)
{
	struct stat st;
	return *m->build_id || reach_stat(m->path, &st) ? 0 : st.st_mtime;
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
	size_t after = FIRST_NOT(i, count, f->pieces[i].from <= address);
	const struct piece *x = after ? &f->pieces[after - 1] : NULL;
	return x && address < x->to ? x : NULL;
}

/* Takes the name. */
static struct err *add_piece(struct namer *n, struct file *f, const struct piece *piece)
{
	if (!ARRAY_ROOM(f->pieces, f->count, f->room)) {
		free(piece->name);
		return err_new("out of memory");
	}
	size_t bytes = sizeof *piece + (piece->name ? strlen(piece->name) + 1 : 0);
	f->pieces[f->count++] = *piece;
	f->bytes += bytes;
	n->bytes += bytes;
	return NULL;
}

static struct err *add_item(struct namer *n, struct file *f, const struct pieces_item *item)
{
	struct piece piece = {item->from, item->to, item->start, item->size, NULL};
	if (item->name) {
		piece.name = strndup(item->name, item->length);
		if (!piece.name)
			return err_new("out of memory");
	}
	return add_piece(n, f, &piece);
}

/* It is the kernel's, and the same for all. */
static struct err *read_vdso(const uint64_t *addresses, size_t count, struct buf *out)
{
	struct image *image = NULL;
	struct places *places = NULL;
	struct err *e = backing_open_vdso(&image);
	if (!e)
		e = places_open(image, false, &places);
	if (!e && !pieces_write(places, addresses, count, out))
		e = err_new("out of memory");
	places_close(places);
	image_close(image);
	return e;
}

/* What it took, and what becomes of the file for that. */
static void decide_rest(struct namer *n, struct file *f, const struct teller_report *report,
			const struct err *e)
{
	uint64_t ms = report->cpu_ns / 1000000, rest = ms > LONG_MS ? ms * LONG_REST : 0;
	if (report->failed)
		rest = (uint64_t)FAILED_REST_MS
		       << (f->failures < DOUBLED_MAX ? f->failures : DOUBLED_MAX);
	f->rests_until_ms = rest ? now_ms() + rest : 0;
	if (report->memory > n->account.memory)
		n->account.memory = report->memory;
	f->failures = report->failed ? f->failures + 1 : 0;
	if (f->failures != 1)
		return;
	n->account.failed++;
	snprintf(n->account.reason, sizeof n->account.reason, "%s: %s", f->path, err_text(e));
	utf8_tame(n->account.reason);
}

/* Where it still is the file that was met. */
static struct err *read_apart(struct namer *n, struct file *f, const struct profile_module *m,
			      const uint64_t *addresses, size_t count, uint64_t left_ms,
			      struct buf *out)
{
	struct teller_report report = {0};
	struct stat st;
	int fd = reach_open(m->path, 0, &st);
	struct err *e = fd < 0 ? err_errno("cannot open") : NULL;
	if (!e)
		e = teller_ask(n->teller,
			       &(struct teller_question){.path = m->path,
							 .build_id = m->build_id,
							 .file = fd,
							 .addresses = addresses,
							 .count = count,
							 .wait_ms = left_ms / SHARE},
			       out, &report);
	decide_rest(n, f, &report, e);
	if (fd >= 0)
		close(fd);
	return e;
}

/* Addresses that ascend, in none of the pieces. One that cannot be read now may be later. */
static struct err *read_file(struct namer *n, struct file *f, const struct profile_module *m,
			     const uint64_t *addresses, size_t count)
{
	struct buf told = {0};
	struct pieces_item item;
	struct err *e = NULL;
	uint64_t now = now_ms();
	if (now < f->rests_until_ms || now >= n->until_ms)
		return NULL;
	err_free(m->kind == PROFILE_VDSO
			 ? read_vdso(addresses, count, &told)
			 : read_apart(n, f, m, addresses, count, n->until_ms - now, &told));
	struct pieces pieces = {.at = (const uint8_t *)told.data, .left = told.size};
	while (!e && pieces_next(&pieces, &item))
		e = add_item(n, f, &item);
	if (f->count)
		qsort(f->pieces, f->count, sizeof *f->pieces, compare_pieces);
	buf_free(&told);
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

/* ---- results ---- */

static struct err *add_found(struct found *out, uint32_t module, uint64_t start, uint64_t size,
			     const char *name)
{
	if (!ARRAY_ROOM(out->items, out->count, out->room))
		return err_new("out of memory");
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

/* Who could have made a file that takes long on purpose. */
static bool is_of_others(const struct profile_module *m)
{
	struct stat st;
	return m->kind == PROFILE_FILE &&
	       (reach_stat(m->path, &st) || (st.st_uid && st.st_uid != geteuid()) ||
		st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Of modules that are, or are not, of others. */
static struct err *find_of_all(struct namer *n, const struct profile *p, const struct need *needs,
			       size_t count, bool of_others, struct found *out)
{
	struct err *e = NULL;
	for (size_t i = 0, end; !e && i < count; i = end) {
		const struct profile_module *m = &p->modules[needs[i].module];
		for (end = i; end < count && needs[end].module == needs[i].module;)
			end++;
		if (is_of_others(m) == of_others)
			e = find_of_module(n, m, needs + i, end - i, out);
	}
	return e;
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
	n->until_ms = now_ms() + CALL_MS;
	forget_old(n); /* also of what the last call met */
	for (int of_others = 0; !e && of_others < 2; of_others++)
		e = find_of_all(n, p, needs, used, of_others, &out);
	n->account.cpu_ns += teller_rest(n->teller);
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
