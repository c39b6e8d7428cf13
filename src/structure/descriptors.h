/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the procedures of a module are written, and so which of them a source
 * line belongs to. Debug information says where a procedure begins; where it
 * ends follows from the others, because source code does not overlap. See descriptors.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWNER_NONE UINT32_MAX

struct line_row;

struct descriptor { /* a procedure as it is written */
	uint32_t file, line;
	uint32_t last;     /* the last line that is certainly its own, as far as known */
	uint32_t end;      /* the last line that it returns from, 0: not known */
	uint32_t around;   /* the procedure that it is written inside of; OWNER_NONE: none */
	const char *name;  /* NULL: not known */
	const char *plain; /* as written, without what makes an instance of a template */
	uint32_t
		level; /* so many others is it written inside of, by its name: a lambda, a closure */
	bool code;     /* exists as a procedure of its own, too */
};

struct descriptors {
	struct descriptor *items; /* after descriptors_finish: ascending by file and line */
	size_t count, capacity;
	bool failed;
	bool gaps; /* procedures without code are not among them: what was inlined everywhere is missing */
};

/* `around`, `last` and `end` need not be set. */
void descriptors_add(struct descriptors *descriptors, struct descriptor descriptor);
/* Sorts, and joins those that begin in one place. False: memory ran out before. */
bool descriptors_finish(struct descriptors *descriptors);
void descriptors_free(struct descriptors *descriptors);

/* Inside of how many others a procedure is written, as far as its name says. */
uint32_t descriptor_level(const char *name);

/* What the code of the procedure that begins at this line shows: first, for all procedures, how far
   each goes; then the last line that each returns from: its own last; then, again for all, what is
   written inside of what. */
void descriptors_see_ends(struct descriptors *descriptors, uint32_t file, uint32_t line,
			  const struct line_row *rows, size_t count);
void descriptors_see_return(struct descriptors *descriptors, uint32_t file, uint32_t line,
			    uint32_t last);
void descriptors_see_nests(struct descriptors *descriptors, uint32_t file, uint32_t line,
			   const struct line_row *rows, size_t count);

/* The innermost procedure that this line belongs to, or OWNER_NONE: it stands before all of them, or
   the file has none, or, where there are gaps, it stands behind the end of a procedure. */
uint32_t descriptors_owner(const struct descriptors *descriptors, uint32_t file, uint32_t line);
/* The one that begins in exactly this line, or OWNER_NONE. */
uint32_t descriptors_at(const struct descriptors *descriptors, uint32_t file, uint32_t line);
