/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * C++ names for people: without parameters, return types and long template
 * arguments.
 *
 *    void std::__sort<It<A*, std::vector<A> >, bool (*)(A const&)>(It<A*, …  ->  std::__sort<…>
 */
struct buf;

/* Appends the short form of a demangled name; names that are not of C++ stay as they are. */
void name_shorten(const char *name, struct buf *out);
