/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which function is meant: the functions of a profile, found by what people
 * call them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct modules;
struct profile;

struct annotate_function {
	uint32_t module;
	uint64_t start;
	const char *name; /* for people; NULL: not known. Owned by the modules or the profile */
	uint64_t self;    /* samples */
};

struct annotate_functions {
	const struct profile *profile;
	struct modules *modules;
	struct annotate_function *all; /* that with the most samples of its own first */
	size_t count;
	uint64_t samples; /* of the whole recording */
	uint32_t metric;
	const bool *thread;
};

/* All functions on some path. `thread`: whose samples count; NULL: all. */
struct err *annotate_functions_list(const struct profile *profile, struct modules *modules,
				    uint32_t metric, const bool *thread,
				    struct annotate_functions *out);
void annotate_functions_free(struct annotate_functions *functions);

/* The function that `text` names; the first of these that any fits: MODULE:0xADDRESS or
   MODULE+0xADDRESS; the whole name or the symbol; the name without parameters and template arguments;
   the last parts of the name ("find" for "shop::find(int)"); one that was inlined, then the function
   that it is in, and *inlined is set; a regular expression; another name of a function. Where several
   fit: the one with the most samples if `hottest`, else an error that names them. */
struct err *annotate_functions_find(const struct annotate_functions *functions, const char *text,
				    bool hottest, struct annotate_function *out, bool *inlined);
