/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/structure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "base/parallel.h"
#include "image/debug.h"
#include "image/identity.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/symbols.h"
#include "structure/internal.h"

/* To be raised when the same module would give another structure. */
#define STRUCTURE_VERSION 5

/* ---- the cache's key ---- */

static bool has_dwarf(struct image *image)
{
	return image && image_section(image, ".debug_info");
}

static uint64_t file_size(struct image *image)
{
	const struct image_section *sections;
	size_t count = image ? image_sections(image, &sections) : 0;
	uint64_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += sections[i].size;
	return size;
}

/* What the file is called, and what else the result depends on. */
static void make_key(const struct structure *s, const struct identity *id,
		     uint8_t key[STORE_KEY_SIZE])
{
	uint64_t numbers[] = {file_size(s->debug), s->options.budget_ns};
	memset(key, 0, STORE_KEY_SIZE);
	key[0] = STRUCTURE_VERSION;
	key[1] = (uint8_t)s->options.source;
	key[2] = (uint8_t)(has_dwarf(s->image) | has_dwarf(s->debug) << 1);
	key[3] = id->size;
	key[4] = (uint8_t)id->kind;
	memcpy(key + 8, numbers, sizeof numbers);
	memcpy(key + 32, id->bytes, id->size);
}

/* The directory, -1 where there is none, and the name in it. */
static int cache_file_of(const struct structure *s, uint8_t key[STORE_KEY_SIZE], struct buf *name)
{
	static const char *const sources[] = {"auto", "lines", "lines-code"};
	const struct identity id = identity_of_file(s->image, s->debug);
	int directory;
	make_key(s, &id, key);
	identity_name(&id, name);
	buf_printf(name, ".%s.%d", sources[key[1]], STRUCTURE_VERSION);
	if (name->failed || id.kind == IDENTITY_NONE)
		return -1;
	err_free(cachedir_open("structure", &directory));
	return directory;
}

static bool load(struct structure *s)
{
	uint8_t key[STORE_KEY_SIZE];
	struct buf name = {0};
	int directory = cache_file_of(s, key, &name);
	bool good = directory >= 0 &&
		    store_load(&s->store, directory, buf_text(&name), key, &s->extents);
	if (directory >= 0)
		close(directory);
	buf_free(&name);
	return good;
}

/* Damage and gaps are to be named the next time, too: what they left is not kept. */
static void save(struct structure *s)
{
	uint8_t key[STORE_KEY_SIZE];
	struct buf name = {0};
	int directory;
	if (!s->store.changed || structure_damage(s) || s->extents.gaps)
		return;
	directory = cache_file_of(s, key, &name);
	if (directory >= 0) {
		store_save(&s->store, directory, buf_text(&name), key, &s->extents);
		close(directory);
	}
	buf_free(&name);
}

/* ---- opening ---- */

static bool has_names(struct image *image)
{
	return image && (image_section(image, ".symtab") || image_section(image, ".gnu_debugdata"));
}

/* What is needed to look at code. */
static struct err *prepare(struct structure *s)
{
	struct err *e = NULL;
	if (s->ready)
		return NULL;
	if (!s->symbols)
		e = symbols_read(s->image, s->debug, &s->symbols);
	if (!e && !s->lines)
		e = lines_open(s->image, s->debug, &s->lines);
	if (!e && !s->inlines)
		e = inlines_open(s->image, s->debug, s->lines, &s->inlines);
	if (!e)
		e = control_open(s->image, s->symbols, &s->control);
	s->ready = !e;
	return e;
}

static struct err *find_extents(struct structure *s)
{
	bool named = has_names(s->image) || has_names(s->debug);
	struct err *e = prepare(s);
	if (!e)
		e = extents_find(s->image, s->debug, s->symbols, named ? NULL : s->inlines,
				 s->options.gap_bytes_max, &s->extents);
	if (!e && !store_start(&s->store, s->extents.procedure_count))
		e = err_new("out of memory");
	return e;
}

struct err *structure_open(struct image *image, const struct structure_options *options,
			   struct structure **out)
{
	struct structure *s = calloc(1, sizeof *s);
	struct err *e;
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->image = image;
	if (options)
		s->options = *options;
	pthread_mutex_init(&s->lock, NULL);
	e = debug_find(image, s->options.download, &s->debug);
	if (!e && !load(s))
		e = find_extents(s);
	if (!e) {
		s->found = calloc(s->extents.procedure_count + 1, sizeof *s->found);
		if (!s->found)
			e = err_new("out of memory");
	}
	if (e) {
		structure_close(s);
		return err_context(e, "structure of '%s'", image_path(image));
	}
	*out = s;
	return NULL;
}

void structure_close(struct structure *s)
{
	if (!s)
		return;
	save(s);
	for (size_t i = 0; s->found && i < s->extents.procedure_count; i++)
		structure_procedure_free(s->found[i]);
	free(s->found);
	descriptors_free(&s->descriptors);
	control_close(&s->control);
	inlines_close(s->inlines);
	lines_close(s->lines);
	extents_free(&s->extents);
	store_free(&s->store);
	symbols_free(s->symbols);
	image_close(s->debug);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void structure_procedure_free(struct structure_procedure *p)
{
	if (!p)
		return;
	free(p->scopes);
	free(p->ranges);
	free(p);
}

/* ---- asking ---- */

static struct structure_procedure *take(struct structure *s, uint32_t procedure)
{
	struct structure_procedure *p = store_get(&s->store, procedure);
	struct err *e;
	if (p)
		return p;
	e = prepare(s);
	if (!e)
		e = structure_analyze(s, procedure, &p);
	if (p)
		store_put(&s->store, procedure, p);
	if (e && !*s->damage)
		snprintf(s->damage, sizeof s->damage, "%s", err_text(e));
	err_free(e);
	return p;
}

const struct structure_procedure *structure_find(struct structure *s, uint64_t address)
{
	uint32_t procedure = extents_at(&s->extents, address);
	if (procedure == EXTENT_NONE)
		return NULL;
	if (!s->found[procedure])
		s->found[procedure] = take(s, procedure);
	return s->found[procedure];
}

struct structure_procedure *structure_take(struct structure *s, uint64_t address)
{
	uint32_t procedure = extents_at(&s->extents, address);
	return procedure == EXTENT_NONE ? NULL : take(s, procedure);
}

struct err *structure_graph(struct structure *s, uint64_t address, struct graph *out)
{
	uint32_t procedure = extents_at(&s->extents, address);
	if (procedure == EXTENT_NONE)
		return err_new("no procedure is known at 0x%lx", address);
	struct err *e = prepare(s);
	if (!e && !s->control.isa)
		e = err_new("'%s' is for a CPU that is not known", image_path(s->image));
	return e ? e : control_graph(&s->control, &s->extents, procedure, 0, out);
}

size_t structure_count(const struct structure *s)
{
	return s->extents.procedure_count;
}

uint64_t structure_entry(const struct structure *s, size_t index, const char **name)
{
	*name = s->extents.procedures[index].name;
	return extents_start(&s->extents, (uint32_t)index);
}

bool structure_has_gaps(const struct structure *s)
{
	return s->extents.gaps;
}

uint32_t structure_scope_at(const struct structure_procedure *p, uint64_t address)
{
	size_t found = FIRST_NOT(i, p->range_count, p->ranges[i].end <= address);
	return found < p->range_count && p->ranges[found].start <= address ? p->ranges[found].scope
									   : 0;
}

/* ---- the whole module ---- */

#define BATCH 4096

struct batch {
	struct structure *s;
	size_t from, count;
	atomic_size_t next;
	struct structure_procedure *procedures[BATCH];
	bool stored[BATCH]; /* came from there */
	pthread_mutex_t lock;
	struct err *error; /* the first */
};

static void lane(void *context, size_t index)
{
	struct batch *b = context;
	(void)index;
	for (;;) {
		size_t i = atomic_fetch_add(&b->next, 1);
		struct err *e = NULL;
		if (i >= b->count)
			return;
		b->procedures[i] = store_get(&b->s->store, (uint32_t)(b->from + i));
		b->stored[i] = b->procedures[i] != NULL;
		if (!b->stored[i])
			e = structure_analyze(b->s, (uint32_t)(b->from + i), &b->procedures[i]);
		if (!e)
			continue;
		pthread_mutex_lock(&b->lock);
		if (b->error)
			err_free(e);
		else
			b->error = e;
		pthread_mutex_unlock(&b->lock);
	}
}

static struct err *run_batch(struct batch *b, size_t threads,
			     struct err *(*each)(void *context,
						 const struct structure_procedure *procedure),
			     void *context)
{
	struct err *e;
	memset(b->procedures, 0, sizeof b->procedures);
	atomic_store(&b->next, 0);
	parallel_for(threads, lane, b);
	e = b->error;
	for (size_t i = 0; i < b->count; i++) {
		if (b->procedures[i] && !b->stored[i])
			store_put(&b->s->store, (uint32_t)(b->from + i), b->procedures[i]);
		if (b->procedures[i] && !e)
			e = each(context, b->procedures[i]);
		structure_procedure_free(b->procedures[i]);
	}
	return e;
}

struct err *structure_each(struct structure *s, unsigned threads,
			   struct err *(*each)(void *context,
					       const struct structure_procedure *procedure),
			   void *context)
{
	struct batch *b = calloc(1, sizeof *b);
	struct err *e = b ? prepare(s) : err_new("out of memory");
	if (b) {
		b->s = s;
		pthread_mutex_init(&b->lock, NULL);
	}
	for (size_t from = 0; !e && from < s->extents.procedure_count; from += BATCH) {
		size_t left = s->extents.procedure_count - from;
		b->from = from;
		b->count = left < BATCH ? left : BATCH;
		e = run_batch(b, threads ? threads : 64, each, context);
	}
	if (b)
		pthread_mutex_destroy(&b->lock);
	free(b);
	return e;
}

const char *structure_damage(const struct structure *s)
{
	const char *damage = s->lines ? lines_damage(s->lines) : NULL;
	if (!damage && s->inlines)
		damage = inlines_damage(s->inlines);
	if (!damage && *s->damage)
		damage = s->damage;
	return damage;
}
