/* SPDX-License-Identifier: Apache-2.0 */
#include "image/places.h"

#include <stdlib.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/names.h"
#include "image/source.h"
#include "image/symbols.h"

struct name { /* one that was asked for: the same pointer is the same name */
	const char *symbol;
	char *text;
};

struct places {
	struct image *image, *debug;
	bool download, has_debug, has_symbols, has_source; /* has: was looked for */
	struct symbols *symbols;
	struct source *source;
	struct name *names; /* hash by pointer */
	size_t name_count, name_slots;
};

struct err *places_open(struct image *image, bool download, struct places **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	(*out)->image = image;
	(*out)->download = download;
	return NULL;
}

void places_close(struct places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->name_slots; i++)
		free(p->names[i].text);
	free(p->names);
	source_close(p->source);
	symbols_free(p->symbols);
	image_close(p->debug);
	free(p);
}

struct image *places_debug(struct places *p)
{
	if (!p->has_debug)
		err_free(debug_find(p->image, p->download, &p->debug));
	p->has_debug = true;
	return p->debug;
}

const struct symbols *places_symbols(struct places *p)
{
	if (!p->has_symbols)
		err_free(symbols_read(p->image, places_debug(p), &p->symbols));
	p->has_symbols = true;
	return p->symbols;
}

void places_near(struct places *p, const uint64_t *addresses, size_t count)
{
	if (p->has_symbols)
		return;
	p->has_symbols = true;
	err_free(symbols_read_near(p->image, places_debug(p), addresses, count, &p->symbols));
}

static struct source *places_source(struct places *p)
{
	if (!p->has_source)
		err_free(source_open(p->image, places_debug(p), &p->source));
	p->has_source = true;
	return p->source;
}

/* ---- names ---- */

static struct name *name_slot(const struct places *p, const char *symbol)
{
	size_t slot = (size_t)(((uintptr_t)symbol * 0x9e3779b97f4a7c15ull) >> 32);
	while (p->names[slot &= p->name_slots - 1].symbol && p->names[slot].symbol != symbol)
		slot++;
	return &p->names[slot];
}

static bool grow_names(struct places *p)
{
	struct places old = *p;
	if (p->name_count * 2 < p->name_slots)
		return true;
	size_t slots = old.name_slots ? old.name_slots * 2 : 64;
	struct name *names = calloc(slots, sizeof *names);
	if (!names)
		return false;
	p->names = names;
	p->name_slots = slots;
	for (size_t i = 0; i < old.name_slots; i++)
		if (old.names[i].symbol)
			*name_slot(p, old.names[i].symbol) = old.names[i];
	free(old.names);
	return true;
}

const char *places_name(struct places *p, const char *symbol)
{
	if (!symbol || !grow_names(p))
		return symbol;
	struct name *n = name_slot(p, symbol);
	if (!n->symbol) {
		char *text = name_demangle(symbol);
		if (!text)
			return symbol;
		*n = (struct name){symbol, text};
		p->name_count++;
	}
	return n->text;
}

/* ---- places ---- */

const struct symbol *places_function(struct places *p, uint64_t address)
{
	const struct symbols *symbols = places_symbols(p);
	return symbols ? symbols_find(symbols, address) : NULL;
}

size_t places_find(struct places *p, uint64_t address, struct place *out)
{
	struct source_place found[PLACES_MAX];
	struct source *source = places_source(p);
	size_t count = source ? source_places(source, address, found, PLACES_MAX) : 0;
	if (!count)
		found[count++] = (struct source_place){0};
	for (size_t i = 0; i < count; i++)
		out[i] = (struct place){
			.symbol = found[i].function,
			.function = places_name(p, found[i].function),
			.file = found[i].file,
			.line = found[i].line,
			.declared_file = found[i].declared_file,
			.declared_line = found[i].declared_line,
			.inlined = i + 1 < count,
		};
	/* The containing function: its symbol says where it begins. */
	const struct symbol *symbol = places_function(p, address);
	if (symbol) {
		out[count - 1].symbol = symbol->name;
		out[count - 1].function = places_name(p, symbol->name);
		out[count - 1].offset = address - symbol->address;
	}
	return count;
}
