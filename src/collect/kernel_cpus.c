/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs run. They are switched on and off while a machine works, virtual ones above all. */
#include "base/clock.h"
#include "collect/kernel_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONLINE "/sys/devices/system/cpu/online"
#define LOOK_NS 1000000000ull

/* "0-3,5": numbers and ranges. */
static void read_list(const char *text, bool *online, unsigned cpus)
{
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end == text)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < cpus; i++)
			online[i] = true;
		text = end + (*end == ',');
	}
}

/* Where nobody says which, all are tried. */
void cpus_read(const struct kernel *k, bool *online)
{
	char text[4096] = "";
	FILE *file = fopen(ONLINE, "re");
	memset(online, 0, k->cpus * sizeof *online);
	if (file && !fgets(text, sizeof text, file))
		text[0] = 0;
	if (file)
		fclose(file);
	if (text[0])
		read_list(text, online, k->cpus);
	else
		memset(online, 1, k->cpus * sizeof *online);
}

bool cpus_due(struct kernel *k)
{
	uint64_t now = now_ns();
	if (now - k->cpus_ns < LOOK_NS)
		return false;
	k->cpus_ns = now;
	return true;
}
