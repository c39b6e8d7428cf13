/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/process_name.h"

#include <stdio.h>
#include <string.h>

void process_name_make(char *out, size_t size, const char *comm, const char *file)
{
	if (!*comm || !strncmp(comm, file, PROCESS_COMM_MAX))
		snprintf(out, size, "%s", file);
	else
		snprintf(out, size, "%s [%s]", comm, file);
}

static bool is_text(const char *text, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !memcmp(text, wanted, size);
}

/* "comm [file]", or one name alone. */
static bool is_name(const char *name, const char *wanted)
{
	size_t size = strlen(name);
	const char *file = strstr(name, " [");
	if (!file || name[size - 1] != ']')
		return false;
	return is_text(name, (size_t)(file - name), wanted) ||
	       is_text(file + 2, size - (size_t)(file + 2 - name) - 1, wanted);
}

/* "/usr/bin/python3 script", "-bash", "redis-server: what it is at" */
static bool is_argument(const char *arguments, const char *wanted)
{
	const char *start = arguments + (*arguments == '-'), *end = start + strcspn(start, " ");
	const char *slash = memrchr(start, '/', (size_t)(end - start));
	start = slash ? slash + 1 : start;
	end -= end > start && end[-1] == ':';
	return end > start && is_text(start, (size_t)(end - start), wanted);
}

bool process_name_is(const char *name, const char *arguments, const char *wanted)
{
	bool cut = strlen(wanted) == PROCESS_COMM_MAX && !strncmp(name, wanted, PROCESS_COMM_MAX);
	return cut || !strcmp(name, wanted) || is_name(name, wanted) ||
	       (arguments && is_argument(arguments, wanted));
}
