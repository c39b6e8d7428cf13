/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What makes code of different builds the same. Scopes (analyze/scopes.h) with equal keys are:
 *
 *    function   its plain name (compare/names.h) and its module (compare/builds.h), inlined or not. Of
 *               functions that only one side has, one of each side that are of one family (other
 *               template arguments, other parameters)
 *    loop       its function, and which of the function's loops it is (compare/inside.h)
 *    line       its function, and which of the function's lines it is
 *    module     the file name
 *
 * A function without a name is known by its address as long as all runs have the same file; else all
 * such functions of a module are the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"
#include "base/buf.h"
#include "compare/builds.h"

struct err;
struct modules;
struct profile;
struct scope;
struct scopes;

struct key_function { /* a function of all builds */
	uint64_t key, family;
	uint32_t same; /* the function of the new side that it is the same as, or itself */
	uint8_t sides;
	bool known; /* by its name, or by an address that means the same in all runs */
};

struct keys {
	const struct scopes *scopes;
	struct builds builds;
	struct key_function *functions;
	size_t function_count, function_room;
	struct lookup by_key; /* -> function */
	struct buf text;      /* at work; a failure in it is one of memory */
};

/* All must outlive the keys. `sides`: as for builds_find. */
struct err *keys_open(const struct profile *profile, struct modules *modules,
		      const struct scopes *scopes, const uint8_t *sides, struct keys *out);
void keys_close(struct keys *keys);

/* The number of the function that a scope is, or is in, which has samples of these sides. */
struct err *keys_function(struct keys *keys, const struct scope *scope, uint8_t sides,
			  uint32_t *number);
/* Finds families, after keys_function was asked for all scopes: sets `same`. */
struct err *keys_join_families(struct keys *keys);

/* The key of a function (a number that is `same`); that of a loop or a line in it, which has this number in
   all builds; that of anything else. */
uint64_t keys_of_function(const struct keys *keys, uint32_t number);
uint64_t keys_of_piece(const struct keys *keys, uint32_t number, const struct scope *piece,
		       uint32_t same);
uint64_t keys_of_other(struct keys *keys, const struct scope *scope);
/* That of all of a module. */
uint64_t keys_of_whole(const struct keys *keys, uint32_t module);

/* What a function is called in all builds. Stays until the next such question. */
const char *keys_function_name(struct keys *keys, const struct scope *function);
