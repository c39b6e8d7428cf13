/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/choice.h"

#include <stdlib.h>
#include <string.h>

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

bool path_choice_has_module(const struct path_choice *choice, const char *path, bool program)
{
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
