/* SPDX-License-Identifier: Apache-2.0 */
/* pin N: holds N of the first CPU's counters for itself until it is killed, as a watchdog or another
   profiler may. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .pinned = 1};
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		if (syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0) < 0) {
			perror("pin");
			return 1;
		}
	puts("holds them");
	fflush(stdout);
	pause();
	return 0;
}
