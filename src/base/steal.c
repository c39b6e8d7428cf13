/* SPDX-License-Identifier: Apache-2.0 */
#include "base/steal.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

uint64_t steal_ns(void)
{
	uint64_t ticks = 0;
	long hz = sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	if (!f)
		return 0;
	/* user, nice, system, idle, iowait, irq, softirq, steal */
	int got = fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks);
	fclose(f);
	return got == 1 && hz > 0 ? ticks * (1000000000u / (uint64_t)hz) : 0;
}
