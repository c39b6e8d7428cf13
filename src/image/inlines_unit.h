/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One unit's part of inlines.c: which functions with code it has, and the tree
 * of what was inlined into one of them.
 */
#include "image/dwarf_module.h"
#include "image/inlines.h"

struct inlines;
struct lines;
struct lines_files;

/* The two steps of inlines_find: which function has the address, and its tree. */
bool inlines_function(struct inlines *inlines, uint64_t address, uint64_t *which);
bool inlines_build(struct inlines *inlines, uint64_t which, struct inline_procedure *out);

struct inline_function {
	uint64_t offset; /* of its DIE */
	uint64_t start;  /* its lowest address */
};

struct inline_unit {
	struct dwarf_unit *unit; /* where the DIEs are; NULL: missing */
	struct inline_function *functions;
	size_t count, room;
	struct dwarf_points points; /* from address to function */
	bool records;               /* what was inlined */
};

/* Lists the functions of `unit`. */
void inline_unit_read(struct inline_unit *out, struct dwarf_module *module,
		      struct dwarf_unit *unit);
void inline_unit_free(struct inline_unit *unit);

struct inline_names {       /* of a function, whatever DIE it was found by */
	const uint8_t *die; /* NULL: nothing is kept here */
	const char *name, *plain;
	uint32_t file, line, column;
};

/* What was learnt about functions, for the next ones: the caller's, one thread at a time. */
struct inline_memory {
	struct inline_names *all;
	size_t mask; /* one less than how many there are, a power of two */
};

struct inline_tools {
	struct dwarf_module *module;
	struct lines *lines;
	struct lines_files *names; /* where made-up ones are kept */
};

/* Makes the tree of one function. False: no memory. */
bool inline_unit_build(struct inline_unit *unit, const struct inline_tools *tools,
		       struct inline_memory *memory, const struct inline_function *function,
		       struct inline_procedure *out);
