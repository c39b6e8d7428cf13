/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/path.h"
#include "image/names.h"

/* "libm" is libm.so.6, and "libm.so.6" and its whole path are, too. */
static bool is_called(const char *path, const char *text)
{
	const char *file = path_file(path), *so = strstr(file, ".so");
	if (strchr(text, '/'))
		return !strcmp(path, text);
	size_t stem = so ? (size_t)(so - file) : 0;
	return !strcmp(file, text) || (stem && strlen(text) == stem && !memcmp(file, text, stem));
}

static int by_place(const void *a, const void *b)
{
	const struct path_place *x = a, *y = b;
	int order = strcmp(x->module, y->module);
	return order ? order : x->entry < y->entry ? -1 : x->entry > y->entry;
}

void path_places_sort(struct path_place *places, size_t count)
{
	if (count)
		qsort(places, count, sizeof *places, by_place);
}

/* The first place that is not before this one. */
static size_t place_after(const struct path_choice *choice, const struct path_place *place)
{
	return FIRST_NOT(i, choice->place_count, by_place(&choice->places[i], place) < 0);
}

/* Whether there are places in the file. */
static bool has_places(const struct path_choice *choice, const char *path)
{
	size_t i = place_after(choice, &(struct path_place){path, 0});
	return i < choice->place_count && !strcmp(choice->places[i].module, path);
}

bool path_choice_has_place(const struct path_choice *choice, const char *path, uint64_t entry)
{
	struct path_place place = {path, entry};
	size_t i = choice->places ? place_after(choice, &place) : 0;
	return !choice->places ||
	       (i < choice->place_count && !by_place(&choice->places[i], &place));
}

bool path_choice_has_module(const struct path_choice *choice, const char *path, bool program)
{
	if (choice->places && !has_places(choice, path))
		return false;
	bool found = program && !choice->module_count;
	for (size_t i = 0; i < choice->module_count && !found; i++) {
		const char *text = choice->modules[i];
		char *whole = strchr(text, '/') ? realpath(text, NULL) : NULL;
		found = is_called(path, text) || (whole && is_called(path, whole));
		free(whole);
	}
	return found;
}

static bool matches(const struct path_choice *choice, const char *name)
{
	for (size_t i = 0; i < choice->function_count; i++)
		if (!regexec(&choice->functions[i], name, 0, NULL, 0))
			return true;
	return false;
}

bool path_choice_has_function(const struct path_choice *choice, const char *symbol)
{
	if (!choice->function_count)
		return true;
	if (!symbol)
		return false;
	if (matches(choice, symbol))
		return true;
	char *name = name_demangle(symbol);
	bool found = name && matches(choice, name);
	free(name);
	return found;
}
