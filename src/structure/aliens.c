/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/aliens.h"

#include <stdlib.h>

#include "structure/descriptors.h"
#include "structure/keys.h"

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
		struct weave_context *grown = realloc(m->contexts, wanted * sizeof(*grown));

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

/* Of a procedure's code with lines, that much must be alien for code without to be taken for alien
   in doubt. */
#define MOSTLY_PER_CENT 90

static bool is_mostly_alien(const struct weave_piece *pieces, size_t count)
{
	uint64_t all = 0, alien = 0;

	for (size_t i = 0; i < count; i++)
		if (pieces[i].known) {
			all += pieces[i].end - pieces[i].start;
			alien += pieces[i].context ? pieces[i].end - pieces[i].start : 0;
		}
	return alien * 100 > all * MOSTLY_PER_CENT;
}

/*
 * Code without a line (compilers give line 0 to what they merged, moved or made) is of the context
 * around it, where that is clear. In the middle of a block it goes on with what stands before it. At
 * the beginning of a block it is mostly made for the procedure (copies into registers, landing pads),
 * unless the same context is before and behind it.
 */
static void carry_over(struct weave_piece *pieces, size_t count)
{
	bool mostly = is_mostly_alien(pieces, count);
	uint32_t before = 0, behind = 0;
	size_t next = 0;

	for (size_t i = 0; i < count; i++) {
		struct weave_piece *p = &pieces[i];
		bool in_block, go_on;

		if (p->known) {
			before = p->context;
			continue;
		}
		if (next <= i) {
			for (next = i + 1; next < count && !pieces[next].known;)
				next++;
			behind = next < count ? pieces[next].context : 0;
		}
		/* Is what is behind it in the same block? */
		in_block = next == i + 1 && next < count && !pieces[next].leads;
		if (!p->leads)
			go_on = before && (behind || !in_block);
		else
			go_on = before == behind ? p->follows || in_block
						 : mostly && p->follows && before && behind;
		if (go_on)
			p->context = before;
	}
}

bool aliens_mark(const struct descriptors *d, uint32_t file, uint32_t line,
		 struct weave_piece *pieces, size_t count, struct weave_context **contexts,
		 size_t *context_count)
{
	uint32_t self = file ? descriptors_at(d, file, line) : OWNER_NONE;
	struct marker m = {.descriptors = d, .count = 1, .capacity = 16};
	bool good;

	m.contexts = calloc(m.capacity, sizeof(*m.contexts));
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
	if (good)
		carry_over(pieces, count);
	if (!good) {
		free(m.contexts);
		m.contexts = NULL;
	}
	*contexts = m.contexts;
	*context_count = m.count;
	return good;
}
