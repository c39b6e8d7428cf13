/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/inside.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/scopes.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/path.h"
#include "structure/structure.h"

#define SCOPES_MAX 20000 /* of a procedure; in larger ones only what has samples is known */

/* Two loops that have only their nesting in common are still better than none. */
static const struct piece_weights loop_weights = {
	.traits = {[PIECE_OFFSET] = 400,
		   [PIECE_LENGTH] = 200,
		   [PIECE_DEPTH] = 200,
		   [PIECE_HEIGHT] = 100},
	.content = 1000,
	.least = 200,
};

/* A line that is as far from the function's first line as before is the same, if nothing speaks for another. */
static const struct piece_weights line_weights = {
	.traits = {[PIECE_OFFSET] = 200,
		   [PIECE_DEPTH] = 100,
		   [PIECE_INSIDE] = 300,
		   [PIECE_BEFORE] = 80,
		   [PIECE_AFTER] = 80,
		   [PIECE_REST] = 150},
	.content = 600,
	.least = 200,
};

struct inside_line {
	uint32_t line, loop;
};

/* ---- pieces ---- */

static uint64_t hash_file(const char *file)
{
	return hash_text(HASH_START, path_file(file));
}

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* A piece at a line, or at an address where that is not known. */
static struct piece describe(const struct inside_where *w, const char *file, uint64_t line,
			     uint64_t address)
{
	bool placed = file && line;
	struct piece p = {
		.function = w->function,
		.module = w->module,
		.last_run = w->last_run,
		.file = placed ? hash_file(file) : 0,
		.position = placed ? line : address,
	};
	for (int i = 0; i < PIECE_TRAITS; i++)
		p.traits[i] = PIECE_UNKNOWN;
	if (placed && w->first_file && w->first_line > 0 && (uint64_t)w->first_line <= line &&
	    hash_file(w->first_file) == p.file)
		p.traits[PIECE_OFFSET] = line - (uint64_t)w->first_line;
	else if (placed)
		p.traits[PIECE_OFFSET] = hash_number(p.file,
						     line); /* it is at least the same line */
	return p;
}

static void raise_to(uint64_t *trait, uint64_t value)
{
	if (*trait == PIECE_UNKNOWN || *trait < value)
		*trait = value;
}

static void lower_to(uint64_t *trait, uint64_t value)
{
	if (*trait == PIECE_UNKNOWN || *trait > value)
		*trait = value;
}

/* ---- all that a function has in a procedure ---- */

struct scan { /* arrays are by scope of the procedure */
	struct inside *in;
	const struct inside_where *w;
	const struct structure_procedure *p;
	const char *name;  /* the function, as the procedure calls it */
	bool lines;        /* these are wanted, too */
	uint32_t *inlined; /* the inlined function that it is in, or 0 */
	uint32_t *
		around; /* the loop that it is or is in, without leaving the inlined function; or 0 */
	uint32_t *depth;  /* how many of these */
	uint32_t *number; /* of a loop of the function, plus 1 */
};

static uint32_t parent_of(const struct structure_procedure *p, uint32_t scope)
{
	return p->scopes[scope].parent < scope ? p->scopes[scope].parent : 0;
}

/* Parents stand before their children. */
static void find_nesting(struct scan *s)
{
	for (uint32_t i = 1; i < s->p->scope_count; i++) {
		uint32_t up = parent_of(s->p, i);
		bool inlined = s->p->scopes[i].type == STRUCTURE_INLINE,
		     loop = s->p->scopes[i].type == STRUCTURE_LOOP;
		s->inlined[i] = inlined ? i : s->inlined[up];
		s->around[i] = inlined ? 0 : loop ? i : s->around[up];
		s->depth[i] = inlined ? 0 : s->depth[up] + loop;
	}
}

/* Whether what is directly in a scope is of the function. */
static bool is_within(const struct scan *s, uint32_t scope)
{
	return equal(s->p->scopes[s->inlined[scope]].name, s->name);
}

static struct err *scan_loop(struct scan *s, uint32_t i)
{
	const struct structure_scope *x = &s->p->scopes[i];
	struct piece piece = describe(s->w, x->file, x->line, x->header);
	uint32_t number;
	struct err *e = pieces_add(&s->in->loops, &piece, &number);
	if (e)
		return e;
	struct piece *found = &s->in->loops.all[number];
	lower_to(&found->traits[PIECE_DEPTH], s->depth[i]);
	raise_to(&found->traits[PIECE_HEIGHT], 0);
	if (x->file && x->line && x->last_line >= x->line)
		raise_to(&found->traits[PIECE_LENGTH], x->last_line - x->line);
	s->number[i] = number + 1;
	return NULL;
}

/* A line in a scope, that has (or where is called) `what`; 0: nothing. */
static struct err *scan_line(struct scan *s, uint32_t in, const char *file, uint32_t line,
			     uint64_t what)
{
	const struct structure_scope *loop = &s->p->scopes[s->around[in]];
	struct piece piece = describe(s->w, file, line, 0);
	uint32_t number;
	if (!file || !line)
		return NULL;
	struct err *e = pieces_add(&s->in->lines, &piece, &number);
	if (e)
		return e;
	struct piece *found = &s->in->lines.all[number];
	raise_to(&found->traits[PIECE_DEPTH], s->depth[in]);
	if (s->around[in] && equal(loop->file, file) && line >= loop->line)
		lower_to(&found->traits[PIECE_INSIDE], line - loop->line);
	if (s->number[s->around[in]]) {
		if (!ARRAY_ROOM(s->in->inner, s->in->inner_count, s->in->inner_room))
			return err_new("out of memory");
		s->in->inner[s->in->inner_count++] = (struct inside_line){
			number, s->number[s->around[in]] - 1};
	}
	return what ? pieces_contain(&s->in->lines, number, what) : NULL;
}

static struct err *scan_scope(struct scan *s, uint32_t i)
{
	const struct structure_scope *x = &s->p->scopes[i];
	uint32_t up = parent_of(s->p, i);
	if (!is_within(s, up))
		return NULL;
	switch (x->type) {
	case STRUCTURE_LOOP:
		return scan_loop(s, i);
	case STRUCTURE_LINE:
		return s->lines ? scan_line(s, up, x->file, x->line, 0) : NULL;
	case STRUCTURE_INLINE:
		return s->lines ? scan_line(s, up, x->call_file, x->call_line,
					    hash_text(STRUCTURE_INLINE, x->name))
				: NULL;
	default:
		return NULL;
	}
}

/* What is directly in a loop, which is around a scope. */
static struct err *scan_content(struct scan *s, uint32_t i, uint32_t around)
{
	const struct structure_scope *x = &s->p->scopes[i], *loop = &s->p->scopes[around];
	uint32_t number = s->number[around] - 1;
	struct pieces *loops = &s->in->loops;
	if (x->type == STRUCTURE_INLINE)
		return pieces_contain(loops, number, hash_text(STRUCTURE_INLINE, x->name));
	if (x->type == STRUCTURE_LINE && equal(x->file, loop->file))
		return pieces_contain(loops, number,
				      hash_number(STRUCTURE_LINE, (uint64_t)x->line - loop->line));
	if (x->type == STRUCTURE_LOOP && s->number[i] && s->number[i] - 1 != number)
		raise_to(&loops->all[number].traits[PIECE_HEIGHT],
			 loops->all[s->number[i] - 1].traits[PIECE_HEIGHT] + 1);
	return NULL;
}

static struct err *scan_all(struct scan *s)
{
	struct err *e = NULL;
	find_nesting(s);
	for (uint32_t i = 1; i < s->p->scope_count && !e; i++)
		e = scan_scope(s, i);
	for (uint32_t i = (uint32_t)s->p->scope_count; i-- > 1 && !e;) { /* children first */
		uint32_t around = s->around[parent_of(s->p, i)];
		if (around && s->number[around])
			e = scan_content(s, i, around);
	}
	return e;
}

/* Once for each function in a procedure. */
static struct err *scan(struct inside *in, const struct inside_where *w,
			const struct structure_procedure *p, const char *name, bool lines)
{
	size_t count = p->scope_count;
	uint64_t key = hash_number(hash_number(HASH_START, w->module), p->start);
	key = hash_text(hash_number(hash_number(key, w->function), lines), name);
	if (count > SCOPES_MAX || w->nameless || lookup_find(&in->scanned, key) != LOOKUP_NONE)
		return NULL;
	uint32_t *memory = calloc(count + 1, 4 * sizeof *memory);
	struct scan s = {.in = in,
			 .w = w,
			 .p = p,
			 .name = name,
			 .lines = lines,
			 .inlined = memory,
			 .around = memory + count,
			 .depth = memory + 2 * count,
			 .number = memory + 3 * count};
	struct err *e = memory && lookup_put(&in->scanned, key, 0) ? scan_all(&s)
								   : err_new("out of memory");
	free(memory);
	return e;
}

/* ---- what was met ---- */

struct err *inside_add_loop(struct inside *in, const struct scope *s, const struct inside_where *w,
			    uint32_t *number)
{
	const struct structure_procedure *p = w->answer ? w->answer->procedure : NULL;
	struct piece piece = describe(w, s->file, s->line > 0 ? (uint64_t)s->line : 0, s->address);
	struct err *e = NULL;
	if (p && p->scope_count) {
		uint32_t scope = w->answer->scope;
		while (scope && (p->scopes[scope].type != STRUCTURE_LOOP ||
				 p->scopes[scope].header != s->address))
			scope = parent_of(p, scope);
		while (scope && p->scopes[scope].type != STRUCTURE_INLINE)
			scope = parent_of(p, scope);
		e = scan(in, w, p, p->scopes[scope].name, false);
	}
	if (w->nameless)
		piece.file = piece.position = 0;
	return e ? e : pieces_add(&in->loops, &piece, number);
}

struct err *inside_add_line(struct inside *in, const struct scope *s, uint32_t inlined,
			    const struct inside_where *w, uint32_t *number)
{
	const struct structure_procedure *p = w->answer ? w->answer->procedure : NULL;
	struct piece piece = describe(w, s->file, s->line > 0 ? (uint64_t)s->line : 0, 0);
	struct err *e = NULL;
	if (p && p->scope_count && s->file && s->line > 0 && inlined < w->answer->count) {
		size_t left = w->answer->count - 1 - inlined; /* that are inlined into it */
		uint32_t scope = w->answer->scope;
		for (; scope; scope = parent_of(p, scope))
			if (p->scopes[scope].type == STRUCTURE_INLINE && !left--)
				break;
		e = scan(in, w, p, p->scopes[scope].name, true);
	}
	if (!s->file || s->line <= 0) /* all that is not known to be in one is the same */
		piece.traits[PIECE_OFFSET] = 0;
	return e ? e : pieces_add(&in->lines, &piece, number);
}

struct err *inside_match(struct inside *in)
{
	struct err *e = pieces_match(&in->loops, &loop_weights);
	for (size_t i = 0; i < in->inner_count && !e; i++) {
		uint32_t loop = in->loops.all[in->inner[i].loop].same;
		e = pieces_contain(&in->lines, in->inner[i].line,
				   hash_number(STRUCTURE_LOOP, loop));
	}
	return e ? e : pieces_match(&in->lines, &line_weights);
}

void inside_free(struct inside *in)
{
	pieces_free(&in->loops);
	pieces_free(&in->lines);
	free(in->inner);
	lookup_free(&in->scanned);
	*in = (struct inside){0};
}
