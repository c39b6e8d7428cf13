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

#include "image/lines.h"

void descriptors_add(struct descriptors *d, struct descriptor descriptor)
{
	if (d->count == d->capacity) {
		size_t wanted = d->capacity ? d->capacity * 2 : 256;
		struct descriptor *grown = realloc(d->items, wanted * sizeof(*grown));

		if (!grown) {
			d->failed = true;
			return;
		}
		d->items = grown;
		d->capacity = wanted;
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
	uint32_t outer = OWNER_NONE;

	if (d->count)
		qsort(d->items, d->count, sizeof(*d->items), by_place);
	for (size_t i = 0; i < d->count; i++) {
		struct descriptor *last = kept ? &d->items[kept - 1] : NULL;

		if (last && last->file == d->items[i].file && last->line == d->items[i].line) {
			last->nested |= d->items[i].nested;
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
	for (uint32_t i = 0; i < kept; i++) {
		struct descriptor *x = &d->items[i];

		if (!x->nested || (outer != OWNER_NONE && d->items[outer].file != x->file))
			outer = OWNER_NONE;
		if (x->nested)
			x->around = outer;
		else
			outer = i;
	}
	return !d->failed;
}

void descriptors_free(struct descriptors *d)
{
	free(d->items);
	memset(d, 0, sizeof(*d));
}

bool descriptor_is_nested(const char *name)
{
	if (!name)
		return false;
	/* Local names of C++; a method without a linker name is of a lambda; Rust, both manglings. */
	return !strncmp(name, "_ZZ", 3) || !strcmp(name, "operator()") ||
	       strstr(name, "{closure") || strstr(name, "$u7b$$u7b$closure") ||
	       !strncmp(name, "_RNC", 4);
}

/* The last one that begins at or before this line. */
static uint32_t begins_before(const struct descriptors *d, uint32_t file, uint32_t line)
{
	size_t low = 0, high = d->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct descriptor *m = &d->items[middle];

		if (m->file < file || (m->file == file && m->line <= line))
			low = middle + 1;
		else
			high = middle;
	}
	return low && d->items[low - 1].file == file ? (uint32_t)(low - 1) : OWNER_NONE;
}

uint32_t descriptors_owner(const struct descriptors *d, uint32_t file, uint32_t line)
{
	uint32_t x = begins_before(d, file, line);

	/* What is written around stands before: this ends. */
	while (x != OWNER_NONE && line > d->items[x].last && d->items[x].around != OWNER_NONE)
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

void descriptors_see_ends(struct descriptors *d, uint32_t file, uint32_t line,
			  const struct line_row *rows, size_t count)
{
	uint32_t self = descriptors_at(d, file, line);
	struct descriptor *x = self == OWNER_NONE ? NULL : &d->items[self];

	for (size_t i = 0; x && i < count; i++)
		if (rows[i].file == file && rows[i].line > x->last &&
		    begins_before(d, file, rows[i].line) == self)
			x->last = rows[i].line;
}

/* What begins between a procedure's beginning and its end is written inside of it. */
void descriptors_see_return(struct descriptors *d, uint32_t file, uint32_t line,
			    const struct line_row *row)
{
	uint32_t self = descriptors_at(d, file, line);
	uint32_t last = self == OWNER_NONE || row->file != file || !row->line
				? OWNER_NONE
				: begins_before(d, file, row->line);

	if (last == self && last != OWNER_NONE && row->line > d->items[self].end)
		d->items[self].end = row->line;
	for (uint32_t x = last; x != OWNER_NONE && x > self; x--) {
		struct descriptor *inner = &d->items[x];

		if (row->line > inner->last &&
		    (inner->around == OWNER_NONE || inner->around < self)) {
			inner->around = self;
			inner->nested = true;
		}
	}
}

/* Is there a line of this procedure, by where it begins, among the rows? */
static bool has_lines_of(const struct descriptors *d, uint32_t x, const struct line_row *rows,
			 size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].file == d->items[x].file && rows[i].line &&
		    begins_before(d, rows[i].file, rows[i].line) == x)
			return true;
	return false;
}

void descriptors_see_nests(struct descriptors *d, uint32_t file, uint32_t line,
			   const struct line_row *rows, size_t count)
{
	uint32_t self = descriptors_at(d, file, line);
	uint32_t asked = OWNER_NONE;
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
		} else if (inner->nested && inner->around != OWNER_NONE && inner->around != self) {
			if (x != asked)
				alone = !has_lines_of(d, inner->around, rows, count);
			asked = x;
			if (alone)
				inner->last = rows[i].line;
		}
	}
}
