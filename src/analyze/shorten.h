/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * C++ names for people: without parameters, return types and long template
 * arguments.
 *
 *    void std::__sort<It<A*, std::vector<A> >, bool (*)(A const&)>(It<A*, …  ->  std::__sort<…>
 */
#include <stddef.h>

struct buf;

/* Appends the short form of a demangled name; names that are not of C++ stay as they are. */
void name_shorten(const char *name, struct buf *out);

/* How many characters of a name that begins at `start` are that of an operator at `at`, which may be brackets
   (operator<, operator(), operator->) and have spaces (operator bool); 0: none is. */
size_t name_operator(const char *at, const char *start);
