/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which functions cannot be copied, or not counted exactly, and why: as far as it is known before the copy is written. */
#include <stdbool.h>
#include <stdint.h>

struct live;
struct original;
struct copy;
struct graph;

/* Whether a function is nobody's that people would count: what the linker makes, and what returns twice or elsewhere. It is
   left alone without a word. */
bool refusal_leaves_out(const struct original *original, uint32_t procedure);
/* Why a function is refused; NULL: it is not, so far. `copy`: as yet, it has only what is known of the function. */
const char *refusal_of(const struct original *original, const struct graph *graph,
		       const struct copy *copy, const struct live *live);
