/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM gives line 0 to an eighth of its code, of two kinds:
 *
 *  - Code that was made of several places gets what these have in common: the
 *    innermost function around all of them, without a line. The line map has the
 *    file of that function (`placed`), so the code belongs to a function of this
 *    file that is around here, or to the procedure itself.
 *  - Code that comes from nowhere (copies between registers, spills) has no place at
 *    all. Inside of a block it counts to what stands before it. At the beginning of a
 *    block it belongs to every function that goes on behind it, that is to what
 *    the code before and the code behind it have in common:
 *
 *        procedure   find, line 80   less   (none)   swap   find, line 83   procedure
 *                    |______________________________________________|
 *                               in find, not in less or swap
 *
 * What was inlined into what is not in the line map. But a function that is
 * seen before and behind a place, and nothing of the procedure itself in between, is
 * around that place, if it went on to a later line; a small one that is seen twice
 * with the same line was rather called twice.
 */
#include "structure/unlined.h"

#include <stdlib.h>

#define NONE UINT32_MAX
/* So far back is a function looked for that goes on. */
#define WINDOW 64

struct unlined {
	struct weave_piece *pieces;
	size_t count;
	const struct weave_context *contexts;
	uint32_t file;
	uint32_t *next; /* of a known piece: the next one of its context, before any of the
			   procedure's own; NONE */
	bool *several;  /* by context: it is seen with more than one line */
};

/* Fills `next` and `several`, from the end. */
static bool look_ahead(struct unlined *u, size_t context_count)
{
	uint32_t *seen = malloc(context_count * sizeof *seen);
	size_t own = u->count; /* the procedure's own code that comes next */
	if (!seen)
		return false;
	for (size_t c = 0; c < context_count; c++)
		seen[c] = NONE;
	for (size_t i = u->count; i-- > 0;) {
		const struct weave_piece *p = &u->pieces[i];
		uint32_t later;
		u->next[i] = NONE;
		if (!p->known)
			continue;
		if (!p->context) {
			own = i;
			continue;
		}
		later = seen[p->context];
		seen[p->context] = (uint32_t)i;
		if (later == NONE || !u->contexts[p->context].name)
			continue; /* without a name it may be several functions of one file */
		if (later < own)
			u->next[i] = later;
		u->several[p->context] |= u->pieces[later].line != p->line;
	}
	free(seen);
	return true;
}

/* The innermost context around place `at` by what is known up to `before`: one that goes on behind
   it, and is written in `file` (0: anywhere). 0: none. */
static uint32_t context_around(const struct unlined *u, uint32_t before, size_t at, uint32_t file)
{
	unsigned steps = 0;
	for (size_t k = (size_t)before + 1; k-- > 0 && steps < WINDOW;) {
		const struct weave_piece *p = &u->pieces[k];
		uint32_t next = u->next[k];
		if (!p->known)
			continue;
		if (!p->context)
			break;
		steps++;
		if (next != NONE && next > at && p->line < u->pieces[next].line &&
		    (!file || u->contexts[p->context].file == file))
			return p->context;
	}
	return 0;
}

/* A context of this file near by. 0: none. */
static uint32_t context_in_file(const struct unlined *u, size_t at, uint32_t file)
{
	for (size_t d = 1; d <= WINDOW; d++) {
		const struct weave_piece *before = at >= d ? &u->pieces[at - d] : NULL;
		const struct weave_piece *behind = at + d < u->count ? &u->pieces[at + d] : NULL;
		if (before && before->known && u->contexts[before->context].file == file)
			return before->context;
		if (behind && behind->known && u->contexts[behind->context].file == file)
			return behind->context;
	}
	return 0;
}

/* before, behind: pieces that are known, or NONE. */
static uint32_t context_of_placed(const struct unlined *u, size_t i, uint32_t before,
				  uint32_t behind)
{
	uint32_t file = u->pieces[i].file;
	uint32_t a = before == NONE ? 0 : u->pieces[before].context;
	uint32_t b = behind == NONE ? 0 : u->pieces[behind].context;
	uint32_t found = 0;
	if (a && a == b && u->contexts[a].file == file)
		return a;
	if (a && b)
		found = context_around(u, before, i, file);
	if (found || file == u->file)
		return found;
	found = context_in_file(u, i, file);
	return found ? found : a ? a : b;
}

static uint32_t context_of_made(const struct unlined *u, size_t i, uint32_t before, uint32_t behind)
{
	const struct weave_piece *p = &u->pieces[i];
	uint32_t a = before == NONE ? 0 : u->pieces[before].context;
	uint32_t b = behind == NONE ? 0 : u->pieces[behind].context;
	if (!p->leads)
		return a;
	if (!a || !b)
		return 0;
	if (a == b && (p->follows || u->several[a]))
		return a;
	return context_around(u, before, i, 0);
}

bool unlined_mark(struct weave_piece *pieces, size_t count, const struct weave_context *contexts,
		  size_t context_count, uint32_t file)
{
	struct unlined u = {
		.pieces = pieces,
		.count = count,
		.contexts = contexts,
		.file = file,
		.next = malloc((count + 1) * sizeof *u.next),
		.several = calloc(context_count, sizeof *u.several),
	};
	bool good = u.next && u.several && count < NONE && look_ahead(&u, context_count);
	uint32_t before = NONE, behind = 0;
	for (size_t i = 0; good && i < count; i++) {
		struct weave_piece *p = &pieces[i];
		if (p->known) {
			before = (uint32_t)i;
			continue;
		}
		if (behind <= i || behind == NONE) {
			for (behind = (uint32_t)i + 1; behind < count && !pieces[behind].known;)
				behind++;
		}
		p->context = (p->placed ? context_of_placed : context_of_made)(
			&u, i, before, behind < count ? behind : NONE);
	}
	free(u.next);
	free(u.several);
	return good;
}
