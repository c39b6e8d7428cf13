/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which scopes of an attribution are the same code in different builds (compare/keys.h), so that the
 * contexts of several runs become one tree, and the samples of a function one row. Of those that are
 * the same one stands for all: a function rather than an inlined one, and of the last run that has it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct buf;
struct err;
struct modules;
struct runs;

struct matches {
	size_t count;
	uint32_t *same; /* by scope: which stands for it */
	/* By scope that stands for others: */
	char **names;     /* what it is called; NULL: as it is */
	bool *whole;      /* it is all of a module */
	uint32_t *latest; /* the one of the last run, which tells where it is written */
};

/* `old_runs`: the first ones of the runs; 0: there are no sides. Also appends to `notes` which modules are
   compared as a whole. */
struct err *matches_make(const struct runs *runs, size_t old_runs, struct modules *modules,
			 const struct attribution *attribution, struct matches *out,
			 struct buf *notes);
void matches_free(struct matches *matches);
