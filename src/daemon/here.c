/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/here.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "process/kernel_names.h"

static void read_cpu(struct here *h)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");
	while (file && !h->cpu[0] && fgets(line, sizeof line, file)) {
		const char *value = strncmp(line, "model name", 10) != 0 ? NULL : strchr(line, ':');
		if (value)
			snprintf(h->cpu, sizeof h->cpu, "%.*s", (int)strcspn(value + 2, "\n"),
				 value + 2);
	}
	if (file)
		fclose(file);
}

void here_read(struct here *h)
{
	struct utsname system = {0};
	*h = (struct here){.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
	uname(&system);
	snprintf(h->host, sizeof h->host, "%.64s", system.nodename);
	snprintf(h->kernel, sizeof h->kernel, "%.64s", system.release);
	snprintf(h->machine, sizeof h->machine, "%.64s", system.machine);
	kernel_names_boot(h->boot);
	read_cpu(h);
}
