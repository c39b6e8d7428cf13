/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often the lines of functions ran, by where these were written, so that it fits a program that is compiled
 * anew: a tree of functions and what was inlined into them.
 *
 * Lines count from that of their function. Discriminators tell the blocks of one line apart. Where a line has
 * several instructions, the one that ran most often counts: the others were moved away, or are of a branch
 * that has no discriminator. Lines that did not run are there, too: else a compiler takes them for unknown.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct executions;

#define SOURCE_NONE UINT32_MAX

struct source_place {
	uint32_t line; /* of 16 bits: behind that of the function, or before it */
	uint32_t discriminator;
};

struct source_function { /* one of the file, or one that was inlined at a place of another */
	uint32_t number, parent; /* parent SOURCE_NONE: of the file */
	struct source_place place;
	const char *name; /* as the linker knows it */
	size_t name_size;
	double total; /* of all lines in it */
	double calls; /* of those of the file */
};

struct source_site { /* instructions of one place */
	uint32_t number, function;
	struct source_place place;
	double count;
};

struct source_called {
	uint32_t site;
	const char *name;
	size_t name_size;
	double count;
};

struct source_counts {
	struct source_function
		*functions;           /* by parent, then place: those of the file are the last */
	struct source_site *sites;    /* by function, then place */
	struct source_called *called; /* by site, then name */
	size_t function_count, site_count, called_count;
	size_t function_room, site_room, called_room;
	struct lines *lines;
	struct inlines *inlines; /* own the names */
};

/* An error where the file has no lines. What is returned is the caller's: source_counts_free. */
struct err *source_counts_make(struct executions *x, struct source_counts *out);
void source_counts_free(struct source_counts *counts);

/* The first that is inlined into a function (SOURCE_NONE: the first of the file), the first place of a function, the
   first that is called at a site, by their numbers. Others follow it, as long as they are of the same. */
size_t source_counts_inlined(const struct source_counts *counts, uint32_t function);
size_t source_counts_sites(const struct source_counts *counts, uint32_t function);
size_t source_counts_called(const struct source_counts *counts, uint32_t site);
