/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/answers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "image/places.h"
#include "image/symbols.h"
#include "structure/structure.h"

/* Places from scopes: every inlined function is a place, its line that of the statement, or of the
   call of what is inlined into it. */
static size_t places_of_scopes(struct places *names, const struct structure_procedure *p,
			       uint32_t scope, struct place *out)
{
	const struct structure_scope *s = &p->scopes[scope];
	bool statement = s->type == STRUCTURE_LINE;
	struct place at = {.file = statement ? s->file : NULL,
			   .line = statement ? (int)s->line : 0};
	size_t count = 0;
	for (; scope && count + 1 < PLACES_MAX; scope = s->parent < scope ? s->parent : 0) {
		s = &p->scopes[scope];
		if (s->type != STRUCTURE_INLINE)
			continue;
		at.symbol = s->name;
		at.function = places_name(names, s->name);
		at.declared_file = s->file;
		at.declared_line = (int)s->line;
		at.inlined = true;
		out[count++] = at;
		at = (struct place){.file = s->call_file, .line = (int)s->call_line};
	}
	at.symbol = p->scopes[0].name;
	at.declared_file = p->scopes[0].file;
	at.declared_line = (int)p->scopes[0].line;
	out[count++] = at;
	return count;
}

static void name_outermost(struct places *names, uint64_t address, struct place *out)
{
	const struct symbol *symbol = places_function(names, address);
	if (symbol) {
		out->symbol = symbol->name;
		out->offset = address - symbol->address;
	}
	out->function = places_name(names, out->symbol);
}

static size_t find(struct places *places, struct structure *structure, uint64_t address,
		   struct answer *a, struct place *out)
{
	a->procedure = structure ? structure_find(structure, address) : NULL;
	if (!a->procedure || !a->procedure->scope_count) {
		a->procedure = NULL;
		return places_find(places, address, out);
	}
	a->scope = structure_scope_at(a->procedure, address);
	if (a->scope >= a->procedure->scope_count)
		a->scope = 0;
	size_t count = places_of_scopes(places, a->procedure, a->scope, out);
	name_outermost(places, address, &out[count - 1]);
	return count;
}

static bool grow(struct answers *as)
{
	if (as->count < as->room)
		return true;
	size_t room = as->room ? as->room * 2 : 64;
	struct answer *moved = reallocarray(as->all, room, sizeof *moved);
	if (!moved || room >= LOOKUP_NONE) {
		as->all = moved ? moved : as->all;
		return false;
	}
	as->all = moved;
	as->room = room;
	return true;
}

static void keep(struct answers *as, uint64_t address, struct answer *a, const struct place *found)
{
	struct place *kept = malloc(a->count * sizeof *kept);
	if (!kept || !lookup_put(&as->by_address, address, (uint32_t)as->count)) {
		free(kept);
		return;
	}
	memcpy(kept, found, a->count * sizeof *kept);
	a->places = kept;
	as->all[as->count++] = *a;
}

void answers_add(struct answers *as, struct places *places, struct structure *structure,
		 uint64_t address)
{
	struct place found[PLACES_MAX];
	struct answer a = {0};
	if (lookup_find(&as->by_address, address) != LOOKUP_NONE || !grow(as))
		return;
	a.count = find(places, structure, address, &a, found);
	keep(as, address, &a, found);
}

void answers_add_at(struct answers *as, struct places *places, uint64_t address, uint64_t at)
{
	struct place found[PLACES_MAX];
	struct answer a = {0};
	if (lookup_find(&as->by_address, address) != LOOKUP_NONE || !grow(as))
		return;
	a.count = places_find(places, at, found);
	keep(as, address, &a, found);
}

void answers_add_place(struct answers *as, uint64_t address, const struct place *place)
{
	struct answer a = {.count = 1};
	if (lookup_find(&as->by_address, address) == LOOKUP_NONE && grow(as))
		keep(as, address, &a, place);
}

const struct answer *answers_find(const struct answers *as, uint64_t address)
{
	uint32_t index = lookup_find(&as->by_address, address);
	return index == LOOKUP_NONE ? NULL : &as->all[index];
}

void answers_free(struct answers *as)
{
	for (size_t i = 0; i < as->count; i++)
		free((struct place *)as->all[i].places);
	free(as->all);
	lookup_free(&as->by_address);
	*as = (struct answers){0};
}
