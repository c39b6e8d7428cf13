/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a symbol is what somebody has called a function. choose.c uses it. */
#include <stdbool.h>

enum name_match {             /* the better ones first */
		  NAME_WHOLE, /* the symbol, or the name of C++ or Rust with its parameters */
		  NAME_SHORT, /* without parameters and template arguments */
		  NAME_TAIL,  /* the last parts of the name: "find" for "shop::find(int)" */
		  NAME_NONE,
};

/* Whether the text is a pattern, as of a shell. */
bool name_is_pattern(const char *text);
/* How well the symbol fits. A pattern fits as a whole, or not. */
enum name_match name_matches(const char *symbol, const char *text);
