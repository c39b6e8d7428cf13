/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that gcc -fauto-profile reads (gcc/auto-profile.cc, of gcc 12 and later), of what export/source_counts.h
 * has. It is a row of 32-bit words of this machine; counts are two of them, the lower first:
 *
 *     "gcda" 2 0
 *     NAMES 0 number of names: length with the 0 at its end, bytes ...
 *     FUNCTIONS 0 number of functions: CALLS FUNCTION ...
 *     MODULES 0 0
 *
 *     FUNCTION: name, number of places, number of inlined functions, PLACE ..., (place, FUNCTION) ...
 *     PLACE: place, number of called functions, COUNT, (kind, name COUNT, COUNT) ...
 *
 * A place is the line in the upper half and the discriminator in the lower. gcc 12 knows no discriminators when it
 * asks, later ones do: so a line whose code has discriminators only is there without, too.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "base/err.h"
#include "base/hash.h"
#include "export/executions_of.h"
#include "export/source_counts.h"

#define MAGIC 0x67636461 /* "gcda" */
#define VERSION 2
#define TAG_NAMES 0xaa000000
#define TAG_FUNCTIONS 0xac000000
#define TAG_MODULES 0xae000000
#define INDIRECT_CALLS 7 /* the kind of histogram */

struct gcov {
	const struct source_counts *c;
	FILE *out;
	struct lookup numbers; /* hash of a name -> its number */
	uint32_t name_count;   /* with an empty one, for gcc takes the number 0 for none */
	bool failed;
};

static void put_word(struct gcov *g, uint32_t word)
{
	fwrite(&word, sizeof word, 1, g->out);
}

static void put_count(struct gcov *g, uint64_t count)
{
	put_word(g, (uint32_t)count);
	put_word(g, (uint32_t)(count >> 32));
}

/* ---- names ---- */

static uint64_t key_of(const char *name, size_t size)
{
	uint64_t key = hash_number(0, size);
	for (size_t i = 0; i < size; i++)
		key = hash_number(key, (uint8_t)name[i]);
	return key;
}

static uint32_t number_of(const struct gcov *g, const char *name, size_t size)
{
	return lookup_find(&g->numbers, key_of(name, size));
}

/* Whether it is new. */
static bool number_name(struct gcov *g, const char *name, size_t size)
{
	if (number_of(g, name, size) != LOOKUP_NONE)
		return false;
	g->failed |= !lookup_put(&g->numbers, key_of(name, size), g->name_count);
	g->name_count++;
	return true;
}

static void put_name(struct gcov *g, const char *name, size_t size)
{
	put_word(g, (uint32_t)size + 1);
	fwrite(name, 1, size, g->out);
	fputc(0, g->out);
}

/* All names, once each, in the order of their numbers: counted first, for their number stands before them. */
static void put_names(struct gcov *g)
{
	const struct source_counts *c = g->c;
	bool *first = calloc(c->function_count + c->called_count + 1, sizeof *first);
	if (!first) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < c->function_count; i++)
		first[i] = number_name(g, c->functions[i].name, c->functions[i].name_size);
	for (size_t i = 0; i < c->called_count; i++)
		first[c->function_count + i] = number_name(g, c->called[i].name,
							   c->called[i].name_size);
	put_word(g, TAG_NAMES);
	put_word(g, 0);
	put_word(g, g->name_count);
	put_name(g, "", 0);
	for (size_t i = 0; i < c->function_count; i++)
		if (first[i])
			put_name(g, c->functions[i].name, c->functions[i].name_size);
	for (size_t i = 0; i < c->called_count; i++)
		if (first[c->function_count + i])
			put_name(g, c->called[i].name, c->called[i].name_size);
	free(first);
}

/* ---- functions ---- */

static uint32_t pack_place(struct source_place place)
{
	return place.line << 16 | (place.discriminator & 0xffff);
}

static void put_site(struct gcov *g, const struct source_site *s)
{
	const struct source_counts *c = g->c;
	size_t first = source_counts_called(c, s->number), last = first;
	while (last < c->called_count && c->called[last].site == s->number)
		last++;
	put_word(g, pack_place(s->place));
	put_word(g, (uint32_t)(last - first));
	put_count(g, executions_round(s->count));
	for (size_t i = first; i < last; i++) {
		put_word(g, INDIRECT_CALLS);
		put_count(g, number_of(g, c->called[i].name, c->called[i].name_size));
		put_count(g, executions_round(c->called[i].count));
	}
}

/* The line of sites that have discriminators, all of them: the most of these. False where one has none, or the line
   is not this site's to tell, for another comes before it. */
static bool whole_line(const struct source_counts *c, size_t site, struct source_site *out)
{
	const struct source_site *all = c->sites;
	bool goes_on = site && all[site - 1].function == all[site].function &&
		       all[site - 1].place.line == all[site].place.line;
	if (goes_on || !all[site].place.discriminator)
		return false;
	*out = (struct source_site){.number = SOURCE_NONE, .place = {all[site].place.line, 0}};
	for (size_t i = site; i < c->site_count && all[i].function == all[site].function &&
			      all[i].place.line == all[site].place.line;
	     i++)
		if (out->count < all[i].count)
			out->count = all[i].count;
	return true;
}

static void put_function(struct gcov *g, const struct source_function *f)
{
	const struct source_counts *c = g->c;
	size_t first = source_counts_sites(c, f->number), last = first, whole = 0;
	size_t inside = source_counts_inlined(c, f->number), after = inside;
	struct source_site line;
	for (; last < c->site_count && c->sites[last].function == f->number; last++)
		whole += whole_line(c, last, &line);
	while (after < c->function_count && c->functions[after].parent == f->number)
		after++;
	put_word(g, number_of(g, f->name, f->name_size));
	put_word(g, (uint32_t)(last - first + whole));
	put_word(g, (uint32_t)(after - inside));
	for (size_t i = first; i < last; i++) {
		if (whole_line(c, i, &line))
			put_site(g, &line);
		put_site(g, &c->sites[i]);
	}
	for (size_t i = inside; i < after; i++) {
		put_word(g, pack_place(c->functions[i].place));
		put_function(g, &c->functions[i]);
	}
}

struct err *autofdo_write(struct executions *x)
{
	struct source_counts c;
	struct err *e = source_counts_make(x, &c);
	if (e)
		return e;
	struct gcov g = {.c = &c, .out = x->out, .name_count = 1};
	put_word(&g, MAGIC);
	put_word(&g, VERSION);
	put_word(&g, 0);
	put_names(&g);
	size_t first = source_counts_inlined(&c, SOURCE_NONE);
	put_word(&g, TAG_FUNCTIONS);
	put_word(&g, 0);
	put_word(&g, (uint32_t)(c.function_count - first));
	for (size_t i = first; !g.failed && i < c.function_count; i++) {
		put_count(&g, executions_round(c.functions[i].calls));
		put_function(&g, &c.functions[i]);
	}
	put_word(&g, TAG_MODULES);
	put_word(&g, 0);
	put_word(&g, 0);
	lookup_free(&g.numbers);
	source_counts_free(&c);
	return g.failed ? err_new("out of memory") : NULL;
}
