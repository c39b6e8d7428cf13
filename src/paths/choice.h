/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which functions are meant: by patterns of their names, and by their modules. */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct path_choice {
	const regex_t *
		functions; /* one of these matches the symbol or the demangled name; none: all do */
	size_t function_count;
	/* Paths, names of files, or names up to ".so"; none: only the program itself. */
	const char *const *modules;
	size_t module_count;
};

/* `program`: whether this is the program's own file, and no library. */
bool path_choice_has_module(const struct path_choice *choice, const char *path, bool program);
/* `symbol` may be NULL: a function without a name. */
bool path_choice_has_function(const struct path_choice *choice, const char *symbol);
