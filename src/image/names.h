/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The name a person would write for a linker symbol: C++ and Rust (both manglings)
   demangled, version suffixes (@GLIBC_2.34) cut, .cold/.part/.isra/.constprop clones kept readable. The
   result is malloc'ed and the caller's; a name that is not mangled comes back as a copy. */
char *name_demangle(const char *symbol);
