/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The static structure of a module: procedures with their loops and inlined
 * code, each with the addresses that it covers. Made per procedure, when first
 * asked for, or for the whole module by several threads; kept in the cache by
 * build-id.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph;
struct image;
struct structure;

enum scope_type { STRUCTURE_PROCEDURE, STRUCTURE_INLINE, STRUCTURE_LOOP, STRUCTURE_LINE };

struct structure_scope {
	uint8_t type;     /* enum scope_type */
	bool guessed;     /* inlined code that was told from the line map alone */
	bool irreducible; /* of a loop */
	uint32_t parent;  /* index; the procedure is 0 and its own parent */
	const char
		*name; /* of procedure and inlined function, as the file says it; NULL: not known */
	const char *file; /* where it is written (loop: where its header is); NULL: not known */
	uint32_t line, last_line; /* of the loop or statement; of a procedure where it begins */
	const char *call_file;    /* of inlined code: the call that it stands for */
	uint32_t call_line;
	uint64_t header; /* of a loop: address of its header */
};

struct structure_range { /* ascending, without overlaps, over all of the procedure's code */
	uint64_t start, end;
	uint32_t scope; /* the innermost, mostly a STRUCTURE_LINE */
};

struct structure_procedure {
	struct structure_scope *scopes; /* parents before children */
	size_t scope_count;
	struct structure_range *ranges;
	size_t range_count;
	uint64_t start;      /* entry */
	uint32_t unresolved; /* indirect jumps whose targets are not known: loops may be missing */
	bool over_budget;    /* too large for its time: loops are left out */
	bool lines_only;     /* inlining was told from the line map */
};

/* By the lines only, with all procedures that the debug information describes; or with those that have
   code, as where a compiler tells nothing of what it inlined. */
enum structure_source { STRUCTURE_AUTO, STRUCTURE_LINES_ONLY, STRUCTURE_LINES_CODE };

struct structure_options {
	enum structure_source source;
	bool download;      /* ask debuginfod for debug files */
	uint64_t budget_ns; /* per procedure; 0: the default */
	/* More code than this that neither symbols nor unwind information describe is left out, unless the cache
	   knows it: to follow it takes seconds, or minutes. 0: none is. */
	uint64_t gap_bytes_max;
};

/* `image` must outlive the result. */
struct err *structure_open(struct image *image, const struct structure_options *options,
			   struct structure **out);
void structure_close(struct structure *structure); /* NULL is fine */

/* The procedure with this address, owned by `structure`; NULL where there is no code. One thread
   at a time. */
const struct structure_procedure *structure_find(struct structure *structure, uint64_t address);

/* The innermost scope of an address in it. */
uint32_t structure_scope_at(const struct structure_procedure *procedure, uint64_t address);

/* As structure_find, but the caller's own (structure_procedure_free); only its strings are owned by
   `structure`. For whoever goes through many procedures and keeps none. */
struct structure_procedure *structure_take(struct structure *structure, uint64_t address);
void structure_procedure_free(struct structure_procedure *procedure); /* NULL is fine */

/* The control-flow graph of the procedure with this address, which is the caller's (graph_free). The cache
   has none: it is made each time. */
struct err *structure_graph(struct structure *structure, uint64_t address, struct graph *out);

/* How many procedures the module has, and one after the other, ascending by entry: its entry and its
   symbol's name (NULL: has none). Quick: no code is looked at. */
size_t structure_count(const struct structure *structure);
uint64_t structure_entry(const struct structure *structure, size_t index, const char **name);

/* All procedures, by `threads` threads (0: as many as there are CPUs), given to `each` in ascending
   order of address. */
struct err *structure_each(struct structure *structure, unsigned threads,
			   struct err *(*each)(void *context,
					       const struct structure_procedure *procedure),
			   void *context);

/* Whether code was left out, for gap_bytes_max. */
bool structure_has_gaps(const struct structure *structure);

/* What was found broken in the debug information, one sentence, or NULL. */
const char *structure_damage(const struct structure *structure);
