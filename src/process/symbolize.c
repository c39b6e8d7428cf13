/* SPDX-License-Identifier: Apache-2.0 */
#include "process/symbolize.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/places.h"
#include "image/symbols.h"
#include "process/jit.h"
#include "process/space.h"

struct answer {
	uint64_t address;
	bool exact;
	struct place *places; /* NULL: an empty slot */
	size_t count;
};

struct symbolizer {
	struct space *space;
	struct symbolize_options options;
	struct places **modules; /* by index in space->modules; NULL: not opened */
	size_t module_count;
	struct jit *jit;
	struct answer *answers; /* hash table by address */
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

void symbolizer_close(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->answer_slots; i++)
		free(s->answers[i].places);
	for (size_t i = 0; s->modules && i < s->module_count; i++)
		places_close(s->modules[i]);
	jit_close(s->jit);
	free(s->answers);
	free(s->modules);
	free(s);
}

/* If it cannot be opened, there are no names: then only addresses are shown. */
static struct places *open_places(struct symbolizer *s, const struct space_module *module)
{
	size_t index = (size_t)(module - s->space->modules);
	if (index >= s->module_count || !module->image)
		return NULL;
	if (!s->modules[index])
		err_free(places_open(module->image, s->options.download, &s->modules[index]));
	return s->modules[index];
}

const struct symbols *symbolizer_symbols(struct symbolizer *s, const struct space_module *module)
{
	struct places *p = open_places(s, module);
	return p ? places_symbols(p) : NULL;
}

static size_t find_in_module(struct symbolizer *s, const struct space_module *module,
			     uint64_t address, bool exact, struct place *out)
{
	struct places *p = open_places(s, module);
	uint64_t at = address - module->bias - !exact;
	size_t count = p ? places_find(p, at, out) : 1;
	if (!p)
		out[0] = (struct place){0};
	else if (places_function(p, at))
		out[count - 1].offset += !exact;
	if (s->options.no_inline && count > 1) {
		out[0] = out[count - 1];
		count = 1;
	}
	return count;
}

static size_t find_places(struct symbolizer *s, uint64_t address, bool exact, struct place *out)
{
	const struct space_module *module = space_find(s->space, address - !exact);
	if (module)
		return find_in_module(s, module, address, exact, out);
	const struct jit_code *code = s->jit ? jit_find(s->jit, address - !exact) : NULL;
	out[0] = (struct place){0};
	if (code)
		out[0] = (struct place){.function = code->name,
					.symbol = code->name,
					.offset = address - code->start};
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

size_t symbolize(struct symbolizer *s, uint64_t address, bool exact, const struct place **out)
{
	static const struct place unknown;
	struct place found[PLACES_MAX];
	*out = &unknown;
	if (!grow_answers(s))
		return 1;
	struct answer *a = &s->answers[slot_of(s, address, exact)];
	if (!a->places) {
		size_t count = find_places(s, address, exact, found);
		struct answer fresh = {address, exact, malloc(count * sizeof *found), count};
		if (!fresh.places)
			return 1;
		memcpy(fresh.places, found, count * sizeof *found);
		*a = fresh;
		s->answer_count++;
	}
	*out = a->places;
	return a->count;
}
