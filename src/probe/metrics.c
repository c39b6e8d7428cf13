/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/metrics.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "harvest/measures.h"

/* Reads the type of a value; "": the whole register. */
static bool read_type(const char *text, struct probe_metric *out)
{
	static const char *const types[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
	out->bits = 64;
	out->is_signed = true;
	if (!*text)
		return true;
	for (unsigned i = 0; *text == ':' && i < sizeof types / sizeof *types; i++)
		if (!strcmp(text + 1, types[i])) {
			out->bits = (uint8_t)(8u << i % 4);
			out->is_signed = i < 4;
			return true;
		}
	return false;
}

static struct err *parse_argument(const char *text, struct probe_metric *out)
{
	char *end;
	unsigned long number = strtoul(text + 4, &end, 10);
	out->kind = PROBE_ARGUMENT;
	if (end == text + 4 || number < 1 || number > PROBE_PARAMETERS)
		return err_new("--metric %.40s: N of arg:N is from 1 to %u: more arguments are not "
			       "in registers",
			       text, PROBE_PARAMETERS);
	out->number = (uint8_t)number;
	if (!read_type(end, out))
		return err_new(
			"--metric %.40s: behind arg:N there may be a type: i8, i16, i32, i64, "
			"u8, u16, u32, u64",
			text);
	return NULL;
}

struct err *probe_metric_parse(const char *text, struct probe_metric *out, bool *known)
{
	struct err *e = NULL;
	*out = (struct probe_metric){0};
	*known = true;
	snprintf(out->name, sizeof out->name, "%s", text);
	if (!strcmp(text, "cpu") || !strcmp(text, "blocked")) {
		out->kind = *text == 'c' ? PROBE_CPU : PROBE_BLOCKED;
		snprintf(out->unit, sizeof out->unit, "ns");
	} else if (!strncmp(text, "arg:", 4)) {
		e = parse_argument(text, out);
	} else if (!strncmp(text, "return", 6) && (!text[6] || text[6] == ':')) {
		out->kind = PROBE_RETURN;
		if (!read_type(text + 6, out))
			e = err_new(
				"--metric %.40s: behind return there may be a type: i8, i16, i32, "
				"i64, u8, u16, u32, u64",
				text);
	} else {
		*known = false;
	}
	return e;
}
