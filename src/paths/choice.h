/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which functions are meant: by patterns of their names, by their modules, and by a list of them. */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct path_place { /* of a function: its file, and its entry in the addresses of that */
	const char *module;
	uint64_t entry;
};

struct path_choice {
	const regex_t *
		functions; /* one of these matches the symbol or the demangled name; none: all do */
	size_t function_count;
	/* Paths, names of files, or names up to ".so"; none: only the program itself. */
	const char *const *modules;
	size_t module_count;
	const struct path_place *places; /* only these functions, sorted; NULL: all */
	size_t place_count;
};

void path_places_sort(struct path_place *places, size_t count);
/* `program`: whether this is the program's own file, and no library. */
bool path_choice_has_module(const struct path_choice *choice, const char *path, bool program);
/* `symbol` may be NULL: a function without a name. */
bool path_choice_has_function(const struct path_choice *choice, const char *symbol);
/* Whether the function of this file that begins there is among the places. */
bool path_choice_has_place(const struct path_choice *choice, const char *path, uint64_t entry);
