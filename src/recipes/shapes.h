/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recipes of code that is known by its shape: the trampolines to which signal
   handlers return (`rt_sigreturn` with nothing else around it), the dynamic
   linker's entry and its lazy binding, where contexts of makecontext begin; and, by
   name, where the stacks of Go's threads and goroutines begin, of which the code does not
   tell, and V8's builtins; and Haskell as GHC compiles it. */
#include <stdbool.h>

struct image;
struct rows;

void shapes_add(struct image *image, struct rows *rows);

/* What is better than nothing, for code about which nothing else is known: to be added last. */
void shapes_add_last(struct image *image, struct rows *rows);

/* Does the entry begin with zeroing FP, as that of a program does? */
bool shapes_zeroes_pointer(struct image *image);
