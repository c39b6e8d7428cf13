/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls out of the way, at which CFI speaks of another place's frame. OCaml has them behind the body of a
 * procedure, one for each allocation, and describes them as if the end of the body had led there:
 *
 *         cmp …; b.lo away          the frame here, with a handler on the stack, say
 *    back: …
 *         ret
 *    away: bl caml_call_gc         is the frame here, too, whatever the CFI says
 *         b back
 *
 * It is also late by an instruction where a handler is pushed.
 */
struct analysis;
struct rows;

/* Adds rows for calls that are reached by conditional branches alone, all from places where the CFI says the
   same, where it says something else of the call. (It is lost where they differ.) `cfi` is finished. */
void detours_add(const struct analysis *analysis, const struct rows *cfi, struct rows *out);
