/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/references.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "image/relocs.h"
#include "isa/insn.h"

struct references {
	struct image *image;
	const struct isa *isa;
	pthread_mutex_t lock;
	bool known;        /* all below is, and changes no more */
	uint64_t *targets; /* ascending, without repeats */
	size_t count, capacity;
	struct reloc *words; /* ascending by offset */
	size_t word_count;
};

struct err *references_open(struct image *image, const struct isa *isa, struct references **out)
{
	struct references *r = calloc(1, sizeof *r);
	if (!r)
		return err_new("out of memory");
	r->image = image;
	r->isa = isa;
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return NULL;
}

void references_close(struct references *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r->targets);
	free(r->words);
	free(r);
}

/* Without memory it is left out: fewer tables are read, or none. */
static void add(void *context, uint64_t to)
{
	struct references *r = context;
	if (!ARRAY_ROOM(r->targets, r->count, r->capacity))
		return;
	r->targets[r->count++] = to;
}

/* What code refers to: all of it, accidents too, so only data counts. */
static void add_data(void *context, uint64_t to)
{
	struct references *r = context;
	const struct image_section *sections;
	size_t count = image_sections(r->image, &sections);
	for (size_t i = 0; i < count; i++)
		if ((sections[i].flags & SHF_ALLOC) && !(sections[i].flags & SHF_EXECINSTR) &&
		    to - sections[i].address < sections[i].size) {
			add(r, to);
			return;
		}
}

static void add_sections(struct references *r)
{
	const struct image_section *sections;
	size_t size, count = image_sections(r->image, &sections);
	for (size_t i = 0; i < count; i++) {
		const struct image_section *s = &sections[i];
		if (!(s->flags & SHF_ALLOC))
			continue;
		add(r, s->address);
		add(r, s->address + s->size);
		const uint8_t *code = (s->flags & SHF_EXECINSTR) && s->type == SHT_PROGBITS
					      ? image_bytes_at(r->image, s->address, &size)
					      : NULL;
		if (code)
			r->isa->find_references(code, size < s->size ? size : s->size, s->address,
						add_data, r);
	}
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static void learn(struct references *r)
{
	size_t kept = 0;
	struct err *e = relocs_read(r->image, &r->words, &r->word_count);
	if (e) {
		err_free(e);
		r->word_count = 0;
	}
	add_sections(r);
	for (size_t i = 0; i < r->word_count; i++)
		if (r->words[i].value)
			add(r, r->words[i].value);
	if (r->count)
		qsort(r->targets, r->count, sizeof *r->targets, by_number);
	for (size_t i = 0; i < r->count; i++)
		if (!kept || r->targets[kept - 1] != r->targets[i])
			r->targets[kept++] = r->targets[i];
	r->count = kept;
}

static void know(struct references *r)
{
	if (__atomic_load_n(&r->known, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&r->lock);
	if (!r->known) {
		learn(r);
		__atomic_store_n(&r->known, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&r->lock);
}

uint64_t references_next(struct references *r, uint64_t address)
{
	know(r);
	size_t after = FIRST_NOT(i, r->count, r->targets[i] <= address);
	return after < r->count ? r->targets[after] : UINT64_MAX;
}

bool references_word(struct references *r, uint64_t address, uint64_t *value)
{
	know(r);
	size_t found = FIRST_NOT(i, r->word_count, r->words[i].offset < address);
	if (found == r->word_count || r->words[found].offset != address)
		return false;
	*value = r->words[found].value;
	return true;
}
