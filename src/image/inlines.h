/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Procedures and what was inlined into them, as DWARF (2 to 5, split into .dwo
 * and .dwp files, shared by dwz, compressed, separate) says in .debug_info. Read
 * by our own code, bounded, unit by unit when first asked for. Without it, code of Go has what Go's
 * own table says (gotab.h), but for inlines_each().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct inlines;
struct line_row;
struct lines;

struct inline_range {
	uint64_t start, end;
};

struct inline_scope {      /* lies inside its parent, unless the file is broken */
	uint32_t parent;   /* index of the scope it was inlined into; the procedure itself is 0 */
	uint32_t depth;    /* 0: the procedure */
	const char *name;  /* linkage name; else the plain one, in C++ with what it lies in;
			      NULL: not known */
	const char *plain; /* as written in the source; NULL: not known */
	uint32_t file;     /* where it is written: lines_file(); 0: not known */
	uint32_t line;
	uint32_t call_file; /* of the call that was replaced; 0 for the procedure */
	uint32_t call_line;
	uint16_t call_column;
	uint32_t call_discriminator; /* tells calls of one line apart */
	bool own;                    /* is part of its parent, that was split: nothing called it */
	uint32_t first, count;       /* of its ranges */
};

struct inline_procedure {
	struct inline_scope *scopes; /* parents before children */
	size_t scope_count;
	struct inline_range *ranges; /* of each scope ascending */
	size_t range_count;
	bool records_inlining; /* its unit's producer records what it inlines */
	uint16_t language;     /* DW_LANG_… */
	uint64_t entry;        /* where it begins; a part that is seldom run may lie before it */
};

/* `lines`, of the same image and debug file, gives the numbers of files and owns what was read; all
   must outlive the result. Without DWARF: inlines that know nothing. Several threads may use one. */
struct err *inlines_open(struct image *image, struct image *debug, struct lines *lines,
			 struct inlines **out);
void inlines_close(struct inlines *inlines); /* NULL is fine */

/* The procedure whose code has this address. *found is false where DWARF knows none. Names are owned
   by `inlines`. */
struct err *inlines_find(struct inlines *inlines, uint64_t address, struct inline_procedure *out,
			 bool *found);
void inline_procedure_free(struct inline_procedure *procedure);

/* Where the code ends that only opens the procedure, and is its own even where DWARF counts it to the
   inlined function whose code comes first; 0: nothing is known of such code. The rows are those of its code from
   the entry on, of which two are enough. */
uint64_t inline_procedure_opening(const struct inline_procedure *procedure,
				  const struct line_row *rows, size_t count);

/* Calls `each` for every procedure (concrete, with code) of the module, in ascending order of
   their first address; stops where it returns an error. Of several that the linker folded into one
   it is the one that inlines_find gives. */
struct err *inlines_each(struct inlines *inlines,
			 struct err *(*each)(void *context,
					     const struct inline_procedure *procedure),
			 void *context);

/* What was found broken or missing so far, one sentence, or NULL. */
const char *inlines_damage(const struct inlines *inlines);
