/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recipes of code that is known by its shape: the trampolines to which signal
   handlers return (`rt_sigreturn` with nothing else around it), the dynamic
   linker's entry and its lazy binding, where contexts of makecontext begin; V8's builtins, by
   name; and all of Go's code (recipes/go.h). */
struct image;
struct rows;

void shapes_add(struct image *image, struct rows *rows);

/* What is better than nothing, for code about which nothing else is known: to be added last. */
void shapes_add_last(struct image *image, struct rows *rows);
