/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What makes code of different builds the same. Scopes (analyze/scopes.h) with equal keys are:
 *
 *    function   its plain name (compare/names.h) and the file name of its module, inlined or not
 *    loop       its function, and the how-manieth it is of the loops there, by the lines that they
 *               begin in (a compiler makes several of one, all with its line); by address where
 *               there are no lines
 *    line       its function and how far below the function's first line it is
 *    module     the file name
 *
 * A function without a name is known by its address as long as all runs have the same file; else all
 * such functions of a module are the same. And where one build of a module cannot be read any more
 * but another can, all of the module is one: half of it without names would look as if everything had
 * changed.
 */
#include <stdbool.h>
#include <stdint.h>

#include "analyze/lookup.h"
#include "base/buf.h"

struct answer;
struct err;
struct modules;
struct profile;
struct scope;
struct scopes;

struct keys {
	const struct profile *profile;
	struct modules *modules;
	const struct scopes *scopes;
	bool no_inline;       /* lines are of the function that others are inlined into */
	struct lookup files;  /* hash of a module's file name -> a module */
	bool *rebuilt;        /* by that module: others of the name have another build-id */
	bool *unreadable;     /* by that module: and the file of one of them is gone */
	struct buf key, text; /* at work; a failure in them is one of memory */
};

/* All three must outlive the keys. */
struct err *keys_open(const struct profile *profile, struct modules *modules,
		      const struct scopes *scopes, bool no_inline, struct keys *out);
void keys_close(struct keys *keys);

/* The key of a scope that is met at an instruction of which `answer` (may be NULL) tells. */
uint64_t keys_of(struct keys *keys, const struct scope *scope, const struct answer *answer);

/* Whether a module can only be compared as a whole: all of its scopes have the key, and the name,
   of a function `keys_whole_scope`. */
bool keys_whole(struct keys *keys, uint32_t module);
struct scope keys_whole_scope(uint32_t module);
/* A line for each such module. */
void keys_note_wholes(struct keys *keys, struct buf *notes);

/* What a function is called in all builds; a name without what differs; the file name of a module.
   Each stays until the next of these. */
const char *keys_function_name(struct keys *keys, const struct scope *function);
const char *keys_plain(struct keys *keys, const char *name);
const char *keys_module_name(struct keys *keys, uint32_t module);
