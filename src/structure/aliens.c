/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/aliens.h"

#include <stdlib.h>

#include "structure/descriptors.h"
#include "structure/keys.h"
#include "structure/unlined.h"

struct marker {
	const struct descriptors *descriptors;
	struct weave_context *contexts;
	size_t count, capacity;
	struct keys of_owner;
};

/* The context of code from that procedure, or from an unknown one of that file; WEAVE_NONE: out of
   memory. */
static uint32_t context_of(struct marker *m, uint32_t owner, const struct weave_piece *piece)
{
	const struct descriptor unknown = {.file = piece->file, .line = piece->line};
	const struct descriptor *d = owner == OWNER_NONE ? &unknown : &m->descriptors->items[owner];
	uint32_t *at = keys_at(&m->of_owner,
			       (struct key){owner, owner == OWNER_NONE ? piece->file : 0, 0, 0});
	if (!at)
		return WEAVE_NONE;
	if (*at != KEYS_NONE)
		return *at;
	if (m->count == m->capacity) {
		size_t wanted = m->capacity * 2;
		struct weave_context *grown = realloc(m->contexts, wanted * sizeof *grown);
		if (!grown)
			return *at = 0, WEAVE_NONE;
		m->contexts = grown;
		m->capacity = wanted;
	}
	*at = (uint32_t)m->count;
	m->contexts[m->count++] = (struct weave_context){
		.file = d->file, .line = d->line, .name = d->name};
	return *at;
}

bool aliens_mark(const struct descriptors *d, uint32_t file, uint32_t line,
		 struct weave_piece *pieces, size_t count, struct weave_context **contexts,
		 size_t *context_count)
{
	uint32_t self = file ? descriptors_at(d, file, line) : OWNER_NONE;
	struct marker m = {.descriptors = d, .count = 1, .capacity = 16};
	bool good;
	m.contexts = calloc(m.capacity, sizeof *m.contexts);
	good = m.contexts != NULL;
	for (size_t i = 0; good && i < count; i++) {
		struct weave_piece *p = &pieces[i];
		uint32_t owner = p->known ? descriptors_owner(d, p->file, p->line) : OWNER_NONE;
		p->context = 0;
		if (self == OWNER_NONE || owner == self)
			continue;
		if (!p->known)
			continue;
		if (owner == OWNER_NONE && !d->gaps) {
			/* Of no procedure: in the same file a line that the preprocessor moved; in
			   another one something included, or a macro, that may stand anywhere. */
			p->known &= p->file == file;
			continue;
		}
		p->context = context_of(&m, owner, p);
		good = p->context != WEAVE_NONE;
	}
	keys_free(&m.of_owner);
	good = good && unlined_mark(pieces, count, m.contexts, m.count, file);
	if (!good) {
		free(m.contexts);
		m.contexts = NULL;
	}
	*contexts = m.contexts;
	*context_count = m.count;
	return good;
}
