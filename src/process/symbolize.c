/* SPDX-License-Identifier: Apache-2.0 */
#include "process/symbolize.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/names.h"
#include "image/source.h"
#include "image/symbols.h"
#include "process/jit.h"
#include "process/space.h"

#define PLACES_MAX 256

struct names { /* of a module */
	bool opened;
	struct image *debug;
	struct symbols *symbols;
	struct source *source;
};

struct answer {
	uint64_t address;
	bool exact;
	struct symbolize_place *places; /* NULL: an empty slot */
	size_t count;
};

struct symbolizer {
	struct space *space;
	struct symbolize_options options;
	struct names *modules; /* as space->modules */
	size_t module_count;
	struct jit *jit;
	struct answer *answers; /* hash by address */
	size_t answer_count, answer_slots;
};

struct err *symbolizer_open(pid_t pid, struct space *space, const struct symbolize_options *options,
			    struct symbolizer **out)
{
	struct symbolizer *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->space = space;
	s->options = *options;
	s->module_count = space->module_count;
	s->modules = calloc(s->module_count + 1, sizeof *s->modules);
	struct err *e = s->modules ? jit_open(pid, &s->jit) : err_new("out of memory");
	if (e) {
		symbolizer_close(s);
		return e;
	}
	*out = s;
	return NULL;
}

static void free_answer(struct answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		free((char *)a->places[i].function);
	free(a->places);
}

void symbolizer_close(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->answer_slots; i++)
		free_answer(&s->answers[i]);
	for (size_t i = 0; s->modules && i < s->module_count; i++) {
		source_close(s->modules[i].source);
		symbols_free(s->modules[i].symbols);
		image_close(s->modules[i].debug);
	}
	jit_close(s->jit);
	free(s->answers);
	free(s->modules);
	free(s);
}

/* What cannot be opened is left unknown: addresses remain. */
static struct names *open_names(struct symbolizer *s, const struct space_module *module)
{
	size_t index = (size_t)(module - s->space->modules);
	struct names *n = index < s->module_count ? &s->modules[index] : NULL;
	if (!n || n->opened || !module->image)
		return n;
	n->opened = true;
	err_free(debug_find(module->image, s->options.download, &n->debug));
	err_free(symbols_read(module->image, n->debug, &n->symbols));
	err_free(source_open(module->image, n->debug, &n->source));
	return n;
}

const struct symbols *symbolizer_symbols(struct symbolizer *s, const struct space_module *module)
{
	const struct names *n = open_names(s, module);
	return n ? n->symbols : NULL;
}

static char *readable(const char *symbol)
{
	return symbol ? name_demangle(symbol) : NULL;
}

/* The containing function: its symbol says where it begins. */
static void name_outermost(struct symbolize_place *place, const struct symbol *symbol,
			   uint64_t own_address, const char *otherwise)
{
	place->symbol = symbol ? symbol->name : otherwise;
	place->function = readable(place->symbol);
	place->offset = symbol ? own_address - symbol->address : 0;
	place->inlined = false;
}

static size_t find_in_module(struct symbolizer *s, const struct space_module *module,
			     uint64_t address, bool exact, struct symbolize_place *out)
{
	struct names *n = open_names(s, module);
	struct source_place places[PLACES_MAX];
	uint64_t own = address - module->bias, at = own - !exact;
	const struct symbol *symbol = n && n->symbols ? symbols_find(n->symbols, at) : NULL;
	size_t count = n && n->source ? source_places(n->source, at, places, PLACES_MAX) : 0;
	if (!count)
		places[count++] = (struct source_place){0};
	size_t first = s->options.no_inline ? count - 1 : 0;
	for (size_t i = first; i < count; i++) {
		struct symbolize_place *p = &out[i - first];
		*p = (struct symbolize_place){.file = places[i].file, .line = places[i].line};
		if (i + 1 == count) {
			name_outermost(p, symbol, own, places[i].function);
			continue;
		}
		p->symbol = places[i].function;
		p->function = readable(p->symbol);
		p->inlined = true;
	}
	return count - first;
}

static size_t find_places(struct symbolizer *s, uint64_t address, bool exact,
			  struct symbolize_place *out)
{
	const struct space_module *module = space_find(s->space, address - !exact);
	if (module)
		return find_in_module(s, module, address, exact, out);
	const struct jit_code *code = s->jit ? jit_find(s->jit, address - !exact) : NULL;
	out[0] = (struct symbolize_place){0};
	if (code)
		name_outermost(out, &(struct symbol){.address = code->start, .name = code->name},
			       address, NULL);
	return 1;
}

static size_t slot_of(const struct symbolizer *s, uint64_t address, bool exact)
{
	size_t slot = (size_t)((address * 0x9e3779b97f4a7c15ull) >> 32) & (s->answer_slots - 1);
	while (s->answers[slot].places &&
	       (s->answers[slot].address != address || s->answers[slot].exact != exact))
		slot = (slot + 1) & (s->answer_slots - 1);
	return slot;
}

static bool grow_answers(struct symbolizer *s)
{
	struct symbolizer old = *s;
	if (s->answer_count * 2 < s->answer_slots)
		return true;
	size_t slots = old.answer_slots ? old.answer_slots * 2 : 256;
	struct answer *answers = calloc(slots, sizeof *answers);
	if (!answers)
		return false;
	s->answers = answers;
	s->answer_slots = slots;
	for (size_t i = 0; i < old.answer_slots; i++)
		if (old.answers[i].places)
			answers[slot_of(s, old.answers[i].address, old.answers[i].exact)] =
				old.answers[i];
	free(old.answers);
	return true;
}

size_t symbolize(struct symbolizer *s, uint64_t address, bool exact,
		 const struct symbolize_place **out)
{
	static const struct symbolize_place unknown;
	struct symbolize_place found[PLACES_MAX];
	*out = &unknown;
	if (!grow_answers(s))
		return 1;
	struct answer *a = &s->answers[slot_of(s, address, exact)];
	if (!a->places) {
		size_t count = find_places(s, address, exact, found);
		struct answer fresh = {address, exact, malloc(count * sizeof *found), count};
		if (!fresh.places) {
			for (size_t i = 0; i < count; i++)
				free((char *)found[i].function);
			return 1;
		}
		memcpy(fresh.places, found, count * sizeof *found);
		*a = fresh;
		s->answer_count++;
	}
	*out = a->places;
	return a->count;
}
