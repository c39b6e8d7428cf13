/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a function in one build are a list. The lists of two builds are laid beside each other as
 * texts are by diff: of all ways to pair loops without crossing, the one with the largest sum of scores
 * is taken. With more than two builds, those of the last run come first, and each further one is laid
 * beside what the ones before gave.
 */
#include "compare/loop_lists.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/scopes.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/path.h"
#include "structure/structure.h"

#define SCOPES_MAX 20000     /* of a procedure; in larger ones only loops with samples are known */
#define TABLE_MAX (1u << 18) /* pairs of loops that are looked at; more are paired as they come */
#define NOT_KNOWN UINT64_MAX

/* What makes two loops alike. Two that have only their nesting in common are still better than none. */
enum {
	SAME_CONTENT = 1000, /* if all of it is the same, else less */
	SAME_OFFSET = 400,   /* from the function's first line */
	SAME_LENGTH = 200,
	SAME_DEPTH = 200,
	SAME_HEIGHT = 100,
	LEAST = 200,
};

struct loop {
	uint32_t function, module, last_run;
	uint64_t file;     /* hash of its name */
	uint64_t position; /* line; address of the header where that is not known */
	uint64_t offset;   /* from the function's first line, or NOT_KNOWN */
	uint64_t length;   /* lines, or NOT_KNOWN */
	uint32_t depth;    /* loops around it in its function */
	uint32_t height;   /* of the loops in it */
	uint32_t same;
	size_t first, content; /* part of the contents, once they are in order */
};

struct loop_content {
	uint32_t loop;
	uint64_t what;
};

/* ---- adding ---- */

static uint64_t hash_file(const char *file)
{
	return hash_text(HASH_START, path_file(file));
}

static struct err *find_or_add(struct loop_lists *l, const struct loop *wanted, uint32_t *number)
{
	uint64_t key = hash_number(hash_number(HASH_START, wanted->function), wanted->module);
	key = hash_number(hash_number(key, wanted->file), wanted->position);
	*number = lookup_find(&l->by_place, key);
	if (*number == LOOKUP_NONE) {
		if (!ARRAY_ROOM(l->all, l->count, l->room) ||
		    !lookup_put(&l->by_place, key, (uint32_t)l->count))
			return err_new("out of memory");
		*number = (uint32_t)l->count++;
		l->all[*number] = *wanted;
		l->all[*number].same = *number;
	}
	struct loop *found = &l->all[*number];
	if (found->last_run < wanted->last_run)
		found->last_run = wanted->last_run;
	if (found->length == NOT_KNOWN ||
	    (wanted->length != NOT_KNOWN && found->length < wanted->length))
		found->length = wanted->length;
	if (found->depth > wanted->depth)
		found->depth = wanted->depth;
	return NULL;
}

/* Where a loop is written, in a function that is written there. */
static struct loop describe(const struct loop_where *w, const char *file, uint64_t line,
			    uint64_t last_line, uint64_t header)
{
	bool placed = file && line;
	struct loop loop = {
		.function = w->function,
		.module = w->module,
		.last_run = w->last_run,
		.file = placed ? hash_file(file) : 0,
		.position = placed ? line : header,
		.offset = NOT_KNOWN,
		.length = placed && last_line >= line ? last_line - line : NOT_KNOWN,
	};
	const struct scope *f = w->written;
	if (placed && f->file && f->line > 0 && (uint64_t)f->line <= line &&
	    hash_file(f->file) == loop.file)
		loop.offset = line - (uint64_t)f->line;
	if (w->nameless)
		loop.file = loop.position = 0;
	return loop;
}

struct err *loop_lists_contain(struct loop_lists *l, uint32_t number, uint64_t what)
{
	if (!ARRAY_ROOM(l->contents, l->content_count, l->content_room))
		return err_new("out of memory");
	l->contents[l->content_count++] = (struct loop_content){number, what};
	return NULL;
}

/* ---- all loops of a function in a procedure ---- */

struct scan { /* by scope of the procedure */
	const struct structure_procedure *p;
	uint32_t *inlined; /* the inlined function that it is in, or 0 */
	uint32_t *
		around; /* the loop that it is or is in, without leaving the inlined function; or 0 */
	uint32_t *depth;  /* of a loop */
	uint32_t *number; /* of a loop that is wanted, plus 1 */
};

static uint32_t parent_of(const struct structure_procedure *p, uint32_t scope)
{
	return p->scopes[scope].parent < scope ? p->scopes[scope].parent : 0;
}

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
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
		s->depth[i] = loop && s->around[up] ? s->depth[s->around[up]] + 1 : 0;
	}
}

static struct err *add_loops(struct loop_lists *l, struct scan *s, const struct loop_where *w,
			     const char *within)
{
	struct err *e = NULL;
	for (uint32_t i = 1; i < s->p->scope_count && !e; i++) {
		const struct structure_scope *x = &s->p->scopes[i];
		uint32_t number;
		if (x->type != STRUCTURE_LOOP || !equal(s->p->scopes[s->inlined[i]].name, within))
			continue;
		struct loop loop = describe(w, x->file, x->line, x->last_line, x->header);
		loop.depth = s->depth[i];
		e = find_or_add(l, &loop, &number);
		s->number[i] = e ? 0 : number + 1;
	}
	return e;
}

/* Heights, and what is directly in each loop. */
static struct err *add_contents(struct loop_lists *l, struct scan *s)
{
	struct err *e = NULL;
	for (uint32_t i = (uint32_t)s->p->scope_count; i-- > 1 && !e;) {
		const struct structure_scope *x = &s->p->scopes[i];
		uint32_t loop = s->around[parent_of(s->p, i)], number = loop ? s->number[loop] : 0;
		if (!number--)
			continue;
		const struct structure_scope *around = &s->p->scopes[loop];
		if (x->type == STRUCTURE_LOOP && s->number[i]) {
			uint32_t height = l->all[s->number[i] - 1].height + 1;
			if (l->all[number].height < height && s->number[i] - 1 != number)
				l->all[number].height = height;
		} else if (x->type == STRUCTURE_INLINE) {
			e = loop_lists_contain(l, number, hash_text(STRUCTURE_INLINE, x->name));
		} else if (x->type == STRUCTURE_LINE && equal(x->file, around->file)) {
			e = loop_lists_contain(
				l, number,
				hash_number(STRUCTURE_LINE, (uint64_t)x->line - around->line));
		}
	}
	return e;
}

static struct err *scan_procedure(struct loop_lists *l, const struct structure_procedure *p,
				  const struct loop_where *w, const char *within)
{
	uint32_t *memory = calloc(p->scope_count, 4 * sizeof *memory);
	struct scan s = {.p = p,
			 .inlined = memory,
			 .around = memory + p->scope_count,
			 .depth = memory + 2 * p->scope_count,
			 .number = memory + 3 * p->scope_count};
	if (!memory)
		return err_new("out of memory");
	find_nesting(&s);
	struct err *e = add_loops(l, &s, w, within);
	if (!e)
		e = add_contents(l, &s);
	free(memory);
	return e;
}

/* The function, inlined or not, that a loop of a procedure is in, as the procedure calls it. */
static const char *find_within(const struct structure_procedure *p, uint32_t scope, uint64_t header)
{
	while (scope &&
	       (p->scopes[scope].type != STRUCTURE_LOOP || p->scopes[scope].header != header))
		scope = parent_of(p, scope);
	while (scope && p->scopes[scope].type != STRUCTURE_INLINE)
		scope = parent_of(p, scope);
	return p->scopes[scope].name;
}

static struct err *scan_once(struct loop_lists *l, uint64_t header, const struct loop_where *w)
{
	const struct structure_procedure *p = w->answer ? w->answer->procedure : NULL;
	if (!p || !p->scope_count || p->scope_count > SCOPES_MAX || w->nameless)
		return NULL;
	const char *within = find_within(p, w->answer->scope, header);
	uint64_t key = hash_number(hash_number(HASH_START, w->module), p->start);
	key = hash_text(hash_number(key, w->function), within);
	if (lookup_find(&l->procedures, key) != LOOKUP_NONE)
		return NULL;
	if (!lookup_put(&l->procedures, key, 0))
		return err_new("out of memory");
	return scan_procedure(l, p, w, within);
}

struct err *loop_lists_add(struct loop_lists *l, const struct scope *s, const struct loop_where *w,
			   uint32_t *number)
{
	struct loop loop = describe(w, s->file, s->line > 0 ? (uint64_t)s->line : 0,
				    s->last_line > 0 ? (uint64_t)s->last_line : 0, s->address);
	struct err *e = scan_once(l, s->address, w);
	loop.depth = UINT32_MAX; /* what the scan says is less */
	return e ? e : find_or_add(l, &loop, number);
}

/* ---- how alike two loops are ---- */

static int compare_contents(const void *a, const void *b)
{
	const struct loop_content *x = a, *y = b;
	if (x->loop != y->loop)
		return x->loop < y->loop ? -1 : 1;
	return (x->what > y->what) - (x->what < y->what);
}

/* Puts what a loop contains together, each thing once. */
static void order_contents(struct loop_lists *l)
{
	size_t kept = 0;
	if (l->content_count)
		qsort(l->contents, l->content_count, sizeof *l->contents, compare_contents);
	for (size_t i = 0; i < l->content_count; i++)
		if (!kept || compare_contents(&l->contents[kept - 1], &l->contents[i]) != 0)
			l->contents[kept++] = l->contents[i];
	l->content_count = kept;
	for (size_t i = 0; i < kept; i++) {
		struct loop *loop = &l->all[l->contents[i].loop];
		if (!loop->content++)
			loop->first = i;
	}
}

/* How much two loops contain is the same: the part of what either does that both do. */
static uint32_t compare_content(const struct loop_lists *l, const struct loop *a,
				const struct loop *b)
{
	size_t i = 0, j = 0, both = 0;
	while (i < a->content && j < b->content) {
		uint64_t x = l->contents[a->first + i].what, y = l->contents[b->first + j].what;
		both += x == y;
		i += x <= y;
		j += y <= x;
	}
	size_t either = a->content + b->content - both;
	return either ? (uint32_t)(SAME_CONTENT * both / either) : 0;
}

static uint32_t score(const struct loop_lists *l, uint32_t first, uint32_t second)
{
	const struct loop *a = &l->all[first], *b = &l->all[second];
	uint32_t sum = compare_content(l, a, b);
	sum += a->offset == b->offset && a->offset != NOT_KNOWN ? SAME_OFFSET : 0;
	sum += a->length == b->length && a->length != NOT_KNOWN ? SAME_LENGTH : 0;
	sum += a->depth == b->depth ? SAME_DEPTH : 0;
	sum += a->height == b->height ? SAME_HEIGHT : 0;
	return sum >= LEAST ? sum : 0;
}

/* ---- lists beside each other ---- */

struct list {
	uint32_t *loops;
	size_t count;
};

/* An order of lists in which it does not matter which one is older. */
static int compare_lists(const struct loop_lists *l, const struct list *a, const struct list *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (size_t i = 0; i < a->count; i++) {
		const struct loop *x = &l->all[a->loops[i]], *y = &l->all[b->loops[i]];
		if (x->position != y->position)
			return x->position < y->position ? -1 : 1;
	}
	return 0;
}

/* The best sums of scores of what is left from (i, j) on. */
static void fill_table(const struct loop_lists *l, const struct list *a, const struct list *b,
		       uint32_t *table)
{
	size_t width = b->count + 1;
	for (size_t i = a->count; i-- > 0;)
		for (size_t j = b->count; j-- > 0;) {
			uint32_t pair = score(l, a->loops[i], b->loops[j]), best;
			best = pair ? pair + table[(i + 1) * width + j + 1] : 0;
			if (best < table[(i + 1) * width + j])
				best = table[(i + 1) * width + j];
			if (best < table[i * width + j + 1])
				best = table[i * width + j + 1];
			table[i * width + j] = best;
		}
}

/* Joins pairs, and puts both lists into one, in order. */
static void join_lists(struct loop_lists *l, const struct list *a, const struct list *b,
		       const uint32_t *table, const struct list *into, struct list *out)
{
	size_t i = 0, j = 0, width = b->count + 1;
	out->count = 0;
	while (i < a->count && j < b->count) {
		uint32_t here = table[i * width + j], pair = score(l, a->loops[i], b->loops[j]);
		if (pair && here == pair + table[(i + 1) * width + j + 1]) {
			uint32_t kept = into == a ? a->loops[i] : b->loops[j],
				 joined = into == a ? b->loops[j] : a->loops[i];
			l->all[joined].same = l->all[kept].same;
			out->loops[out->count++] = kept;
			i++;
			j++;
		} else if (here == table[(i + 1) * width + j]) {
			out->loops[out->count++] = a->loops[i++];
		} else {
			out->loops[out->count++] = b->loops[j++];
		}
	}
	while (i < a->count)
		out->loops[out->count++] = a->loops[i++];
	while (j < b->count)
		out->loops[out->count++] = b->loops[j++];
}

/* Too many for a table. */
static void join_by_order(struct loop_lists *l, const struct list *known, const struct list *more,
			  struct list *out)
{
	out->count = 0;
	for (size_t i = 0; i < known->count || i < more->count; i++) {
		if (i < known->count && i < more->count)
			l->all[more->loops[i]].same = l->all[known->loops[i]].same;
		out->loops[out->count++] = i < known->count ? known->loops[i] : more->loops[i];
	}
}

/* Adds a further build to what is known of a function. */
static struct err *add_list(struct loop_lists *l, struct list *known, const struct list *more)
{
	size_t size = (known->count + 1) * (more->count + 1);
	struct list out = {calloc(known->count + more->count + 1, sizeof *out.loops), 0};
	uint32_t *table = size <= TABLE_MAX ? calloc(size, sizeof *table) : NULL;
	if (!out.loops || (!table && size <= TABLE_MAX)) {
		free(out.loops);
		free(table);
		return err_new("out of memory");
	}
	bool turned = compare_lists(l, known, more) > 0;
	const struct list *a = turned ? more : known, *b = turned ? known : more;
	if (table) {
		fill_table(l, a, b, table);
		join_lists(l, a, b, table, known, &out);
	} else {
		join_by_order(l, known, more, &out);
	}
	free(table);
	free(known->loops);
	*known = out;
	return NULL;
}

/* ---- all functions ---- */

/* By function; the builds of the last run first; then as they are written. */
static int compare_loops(const void *a, const void *b, void *context)
{
	const struct loop_lists *l = context;
	const struct loop *x = &l->all[*(const uint32_t *)a], *y = &l->all[*(const uint32_t *)b];
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->last_run != y->last_run)
		return x->last_run > y->last_run ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

/* Loops of one function, in order. */
static struct err *match_function(struct loop_lists *l, uint32_t *order, size_t count)
{
	struct list known = {0};
	struct err *e = NULL;
	for (size_t i = 0, end; i < count && !e; i = end) {
		for (end = i + 1;
		     end < count && l->all[order[end]].module == l->all[order[i]].module; end++)
			;
		e = add_list(l, &known, &(struct list){order + i, end - i});
	}
	free(known.loops);
	return e;
}

/* A build has the last run of any of its loops. */
static struct err *spread_last_runs(struct loop_lists *l)
{
	struct lookup last = {0};
	bool good = true;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->count && good; i++) {
			struct loop *loop = &l->all[i];
			uint64_t key = hash_number(HASH_START, loop->module);
			uint32_t known = lookup_find(&last, key);
			if (pass)
				loop->last_run = known;
			else if (known == LOOKUP_NONE || known < loop->last_run)
				good = lookup_put(&last, key, loop->last_run);
		}
	lookup_free(&last);
	return good ? NULL : err_new("out of memory");
}

struct err *loop_lists_match(struct loop_lists *l)
{
	uint32_t *order = calloc(l->count + 1, sizeof *order);
	struct err *e = order ? spread_last_runs(l) : err_new("out of memory");
	if (!e)
		order_contents(l);
	for (uint32_t i = 0; i < l->count && order; i++)
		order[i] = i;
	if (!e && l->count)
		qsort_r(order, l->count, sizeof *order, compare_loops, l);
	for (size_t i = 0, end; i < l->count && !e; i = end) {
		for (end = i + 1;
		     end < l->count && l->all[order[end]].function == l->all[order[i]].function;
		     end++)
			;
		e = match_function(l, order + i, end - i);
	}
	free(order);
	return e;
}

uint32_t loop_lists_same(const struct loop_lists *l, uint32_t number)
{
	return l->all[number].same;
}

void loop_lists_free(struct loop_lists *l)
{
	free(l->all);
	free(l->contents);
	lookup_free(&l->by_place);
	lookup_free(&l->procedures);
	*l = (struct loop_lists){0};
}
