/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu_id.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_MAX 16

/* The first word of the value of a field, of the first CPU. */
static bool find(const char *text, const char *field, char out[WORD_MAX])
{
	size_t size = strlen(field);
	for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
		if (strncmp(at, field, size) != 0 ||
		    (at[size] != '\t' && at[size] != ' ' && at[size] != ':'))
			continue;
		const char *value = at + size + strspn(at + size, "\t ");
		if (*value != ':')
			continue;
		value += 1 + strspn(value + 1, " ");
		size_t length = strcspn(value, " \n");
		snprintf(out, WORD_MAX, "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX - 1),
			 value);
		return length > 0;
	}
	out[0] = 0;
	return false;
}

/* Whether a word is in the line of features of the first CPU that has one. */
static bool has_flag(const char *text, const char *flag)
{
	const char *at = strstr(text, "\nflags");
	size_t size = strlen(flag);
	size_t end = at ? strcspn(at + 1, "\n") + 1 : 0;
	for (size_t i = 1; i + size <= end; i++)
		if (at[i - 1] == ' ' && !strncmp(at + i, flag, size) &&
		    (at[i + size] == ' ' || at[i + size] == '\n' || !at[i + size]))
			return true;
	return false;
}

/* Virtual machines may be told an older model than theirs. None before Sapphire Rapids has AMX. */
static void reveal(const char *text, const char *family, char model[WORD_MAX])
{
	static const char *const with_amx[] = {"143", "173", "174", "207"};
	if (strcmp(family, "6") != 0 || !has_flag(text, "amx_tile"))
		return;
	for (size_t i = 0; i < sizeof with_amx / sizeof *with_amx; i++)
		if (!strcmp(model, with_amx[i]))
			return;
	snprintf(model, WORD_MAX, "%s", with_amx[0]);
}

void cpu_id_parse(const char *text, char out[CPU_ID_MAX])
{
	char maker[WORD_MAX], model[WORD_MAX], variant[WORD_MAX], revision[WORD_MAX],
		code[WORD_MAX];
	out[0] = 0;
	if (find(text, "CPU implementer", maker) && find(text, "CPU part", model)) {
		find(text, "CPU variant", variant);
		find(text, "CPU revision", revision);
		snprintf(out, CPU_ID_MAX, "%s:%s:r%lup%s", maker, model, strtoul(variant, NULL, 0),
			 revision);
	} else if (find(text, "vendor_id", maker) && find(text, "model", model)) {
		char family[WORD_MAX];
		find(text, "cpu family", family);
		reveal(text, family, model);
		find(text, "stepping", revision);
		find(text, "microcode", code);
		snprintf(out, CPU_ID_MAX, "%s:%s:%s:%s:%s", maker, family, model, revision, code);
	}
}

void cpu_id(char out[CPU_ID_MAX])
{
	char text[8192];
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[size > 0 ? size : 0] = 0;
	cpu_id_parse(text, out);
}
