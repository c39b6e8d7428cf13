/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose line is it? Debug information has, for each procedure, the file and the
 * line where it begins, and not where it ends. But two procedures do not overlap:
 *
 *  1. A procedure stays inside of those that are written around it.
 *  2. Between siblings, each ends before the next begins.
 *  3. In Fortran, what a procedure contains comes after its own statements, so
 *     the code of all of them is in the order in which they begin (as by 2).
 *
 * So a line belongs to the last procedure that begins before it. That is all that
 * C and Fortran need. In C++ and Rust it is not always right: a lambda (a method
 * of a local class, a closure) ends, and the procedure around it goes on:
 *
 *     10  int f(int *a, int n)                 begins at 10: f
 *     11  {
 *     12          auto by = [](int x, int y) { begins at 12: operator()
 *     13                  return x > y;        the last line in its own code
 *     14          };
 *     15          sort(a, a + n, by);          f again: its code has lines beyond
 *
 * Debug information could say which procedure is written inside of which, but a
 * compiler that does not record inlining mostly leaves that out, too. It is seen
 * in the code: where operator() exists as a procedure of its own, its last line
 * is known, and `f` has lines between that and the next procedure. Where it was
 * inlined everywhere it is known by its name, and its lines are those that are
 * seen where nothing of `f` is.
 *
 * Where debug information has no procedures but those with code, others were
 * inlined everywhere and left no trace (`gaps`). Then a line that no known procedure can
 * have is of one of these: in a file that has none, before the first, or behind the
 * line from which a procedure returns.
 */
#include "structure/descriptors.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/lines.h"

#define DEPTH_MAX 32    /* of procedures inside of each other; beyond, nothing is told */
#define INSIDE_MAX 1024 /* so many are looked for inside of one */
#define ASKED_MAX 64    /* of these, so many may be seen alone in one procedure */

void descriptors_add(struct descriptors *d, struct descriptor descriptor)
{
	if (!ARRAY_ROOM(d->items, d->count, d->capacity)) {
		d->failed = true;
		return;
	}
	d->items[d->count++] = descriptor;
}

static int by_place(const void *a, const void *b)
{
	const struct descriptor *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (int)y->code - (int)x->code;
}

bool descriptors_finish(struct descriptors *d)
{
	size_t kept = 0;
	if (d->count)
		qsort(d->items, d->count, sizeof *d->items, by_place);
	for (size_t i = 0; i < d->count; i++) {
		struct descriptor *last = kept ? &d->items[kept - 1] : NULL;
		if (last && last->file == d->items[i].file && last->line == d->items[i].line) {
			if (d->items[i].level < last->level)
				last->level = d->items[i].level;
			if (last->name != last->plain && last->plain && d->items[i].name &&
			    strcmp(last->name, d->items[i].name) != 0)
				last->name = last->plain; /* instances of a template */
			continue;
		}
		d->items[kept] = d->items[i];
		d->items[kept].last = d->items[i].line;
		d->items[kept].end = 0;
		d->items[kept++].around = OWNER_NONE;
	}
	d->count = kept;
	d->gaps = true;
	for (size_t i = 0; i < kept; i++)
		d->gaps &= d->items[i].code;
	for (uint32_t i = 1; i < kept; i++) {
		uint32_t x = i - 1;
		while (x != OWNER_NONE && d->items[x].level >= d->items[i].level)
			x = d->items[x].around;
		if (x != OWNER_NONE && d->items[x].file == d->items[i].file)
			d->items[i].around = x;
	}
	return !d->failed;
}

void descriptors_free(struct descriptors *d)
{
	free(d->items);
	memset(d, 0, sizeof *d);
}

/* How many closures a name ends with, as `main::{closure#1}::{closure#0}`; closures may also be
   arguments of a template, which says nothing about where it is written. */
static uint32_t closures_at_end(const char *name)
{
	size_t end = strlen(name);
	uint32_t count = 0, open = 0;
	while (end && (name[end - 1] == '>' || open)) { /* the arguments of an instance */
		open += name[end - 1] == '>';
		open -= name[end - 1] == '<';
		end--;
	}
	while (end && name[end - 1] == '}') {
		while (end && name[end - 1] != '{')
			end--;
		if (!end || strncmp(name + end, "closure", 7) != 0)
			break;
		count++;
		end--; /* the bracket, and the dots before it */
		while (end && name[end - 1] == ':')
			end--;
	}
	return count;
}

uint32_t descriptor_level(const char *name)
{
	uint32_t level = 0;
	if (!name)
		return 0;
	/* Local names of C++: _ZZ, and _ZZZ inside of those. */
	if (!strncmp(name, "_ZZ", 3))
		return (uint32_t)strspn(name + 2, "Z");
	/* A method without a linker name is of a lambda. */
	if (!strcmp(name, "operator()"))
		return 1;
	/* Rust, both manglings and as written. */
	if (!strncmp(name, "_RNC", 4)) {
		for (name += 2; !strncmp(name, "NC", 2); name += 2)
			level++;
		return level;
	}
	for (const char *at = name; (at = strstr(at, "$u7b$$u7b$closure")); at++)
		level++;
	return level ? level : closures_at_end(name);
}

/* The last one that begins at or before this line. */
static uint32_t begins_before(const struct descriptors *d, uint32_t file, uint32_t line)
{
	const struct descriptor *all = d->items;
	size_t after = FIRST_NOT(
		i, d->count, all[i].file < file || (all[i].file == file && all[i].line <= line));
	return after && d->items[after - 1].file == file ? (uint32_t)(after - 1) : OWNER_NONE;
}

uint32_t descriptors_owner(const struct descriptors *d, uint32_t file, uint32_t line)
{
	uint32_t x = begins_before(d, file, line);
	/* What is written around stands before: this ends. */
	for (int depth = 0; x != OWNER_NONE && line > d->items[x].last &&
			    d->items[x].around != OWNER_NONE && depth < DEPTH_MAX;
	     depth++)
		x = d->items[x].around;
	if (d->gaps && x != OWNER_NONE && d->items[x].end && line > d->items[x].end)
		return OWNER_NONE;
	return x;
}

uint32_t descriptors_at(const struct descriptors *d, uint32_t file, uint32_t line)
{
	uint32_t x = begins_before(d, file, line);
	return x != OWNER_NONE && d->items[x].line == line ? x : OWNER_NONE;
}

static bool is_within(const struct descriptors *d, uint32_t inner, uint32_t outer)
{
	for (int depth = 0; inner != outer && inner != OWNER_NONE && depth < DEPTH_MAX; depth++)
		inner = d->items[inner].around;
	return inner == outer;
}

void descriptors_see_ends(struct descriptors *d, uint32_t file, uint32_t line,
			  const struct line_row *rows, size_t count)
{
	uint32_t self = descriptors_at(d, file, line);
	struct descriptor *x = self == OWNER_NONE ? NULL : &d->items[self];
	for (size_t i = 0; x && i < count; i++)
		if (rows[i].file == file && rows[i].line > x->last &&
		    is_within(d, begins_before(d, file, rows[i].line), self))
			x->last = rows[i].line;
}

/* A function (no closure, which is an expression) inside of another stands before or behind the
   statements of that. Behind, all lines are its own until the last, where the other ends. */
static bool is_appended(const struct descriptors *d, uint32_t outer, const struct descriptor *inner,
			uint32_t end)
{
	const struct descriptor *o = &d->items[outer];
	return !inner->code && !inner->level && o->last > o->line &&
	       inner->line - o->line > end - inner->line;
}

/* What begins between a procedure's beginning and its end is written inside of it. */
void descriptors_see_return(struct descriptors *d, uint32_t file, uint32_t line, uint32_t last)
{
	uint32_t self = descriptors_at(d, file, line);
	if (self == OWNER_NONE || last < line)
		return;
	if (begins_before(d, file, last) == self)
		d->items[self].end = last;
	for (uint32_t x = self + 1; x < d->count && x - self <= INSIDE_MAX; x++) {
		struct descriptor *inner = &d->items[x];
		if (inner->file != file || inner->line > last)
			break;
		if (last > inner->last && (inner->around == OWNER_NONE || inner->around < self)) {
			inner->around = self;
			if (is_appended(d, self, inner, last))
				inner->last = last - 1;
		}
	}
}

/* Is there a line of what is written around this procedure, by where it begins, among the rows? */
static bool has_lines_around(const struct descriptors *d, uint32_t x, const struct line_row *rows,
			     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t owner = rows[i].file == d->items[x].file && rows[i].line
					 ? begins_before(d, rows[i].file, rows[i].line)
					 : OWNER_NONE;
		if (owner != OWNER_NONE && owner != x && is_within(d, x, owner))
			return true;
	}
	return false;
}

void descriptors_see_nests(struct descriptors *d, uint32_t file, uint32_t line,
			   const struct line_row *rows, size_t count)
{
	uint32_t self = descriptors_at(d, file, line);
	uint32_t asked = OWNER_NONE, questions = 0;
	bool alone = false;
	for (size_t i = 0; self != OWNER_NONE && i < count; i++) {
		uint32_t x = rows[i].line ? begins_before(d, rows[i].file, rows[i].line)
					  : OWNER_NONE;
		struct descriptor *inner = x == OWNER_NONE ? NULL : &d->items[x];
		if (!inner || x == self || rows[i].line <= inner->last)
			continue;
		if (inner->code) {
			/* Beyond the end of what begins after us: we go on there. */
			if (x > self && inner->file == file &&
			    (inner->around == OWNER_NONE || inner->around < self))
				inner->around = self;
		} else if (inner->around != OWNER_NONE && !is_within(d, x, self)) {
			if (x != asked)
				alone = questions++ < ASKED_MAX &&
					!has_lines_around(d, x, rows, count);
			asked = x;
			if (alone)
				inner->last = rows[i].line;
		}
	}
}
