/* SPDX-License-Identifier: Apache-2.0 */
#include "base/amount.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct amount_unit amount_times[] = {
	{"", 1},      {"s", 1},        {"m", 60},     {"min", 60},       {"h", 3600},
	{"d", 86400}, {"days", 86400}, {"w", 604800}, {"weeks", 604800}, {"y", 365 * 86400},
	{0}};

const struct amount_unit amount_sizes[] = {{"", 1},         {"k", 1 << 10},     {"K", 1 << 10},
					   {"M", 1 << 20},  {"G", 1 << 30},     {"kB", 1000},
					   {"MB", 1000000}, {"GB", 1000000000}, {0}};

bool amount_read(const char *text, const struct amount_unit *units, uint64_t *out)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	uint64_t number = strtoull(text, &end, 10);
	while (*end == ' ')
		end++;
	while (units->name && strcmp(units->name, end) != 0)
		units++;
	return !errno && units->name && !__builtin_mul_overflow(number, units->factor, out);
}
