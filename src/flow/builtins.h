/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The builtins of V8 (node, Chromium): procedures that V8's own compiler made when V8 was built. What
 * one is for is told by its name; or, where V8's own table only numbers it (image/v8tab.h), by its
 * instructions, as far as these tell.
 */
#include <stdbool.h>
#include <stdint.h>

struct image;
struct isa;
struct symbol;

#define BUILTIN_PREFIX "Builtins_" /* of their names */

enum builtin_kind {
	BUILTIN_NONE,         /* it is no builtin */
	BUILTIN_ENTRY,        /* C++ calls it */
	BUILTIN_DIRECT_ENTRY, /* calls C++, without a frame of its own */
	BUILTIN_CONTINUATION, /* goes on with a frame that the deoptimizer made: callees of optimised
	                         code return to its first instruction */
	BUILTIN_DEOPTIMIZER,  /* replaces the frame of optimised code */
	BUILTIN_OTHER,
	BUILTIN_NUMBERED, /* one of the last three: nothing tells which */
};

/* `symbol` is one of `image`, whose CPU is `isa`. Quick where it is no builtin. */
enum builtin_kind builtin_kind(struct image *image, const struct isa *isa,
			       const struct symbol *symbol);

/* Whether a builtin keeps frame pointers, and all that call it do. Between them and C++ it is not so. */
bool builtin_keeps_pointer(enum builtin_kind kind);

/* Where a direct entry has put its return address to where SP points: from its call on, up to its return.
   False where its instructions are others. */
bool builtin_direct_call(struct image *image, const struct isa *isa, const struct symbol *symbol,
			 uint64_t *start, uint64_t *end);
