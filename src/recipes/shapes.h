/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recipes of code that is known by its shape: the trampolines to which signal
   handlers return (`rt_sigreturn` with nothing else around it), the dynamic
   linker's entry and its lazy binding, where contexts of makecontext and hand-made threads begin, the ends of
   unwinders and raises; V8's builtins, by name; Haskell as GHC compiles it; and all of Go's
   code (recipes/go.h). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct rows;

/* Bytes of the signal trampoline that stands at the beginning of `code`; 0: there is none. */
unsigned shapes_trampoline(uint16_t machine, const uint8_t *code, size_t size);

void shapes_add(struct image *image, struct rows *rows);

/* What is better than nothing, for code about which nothing else is known: to be added last. */
void shapes_add_last(struct image *image, struct rows *rows);

/* Does the entry begin with zeroing FP, as that of a program does? */
bool shapes_zeroes_pointer(struct image *image);
