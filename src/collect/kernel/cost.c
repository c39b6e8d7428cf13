/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/cost.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/cpus.h"
#include "harvest/recording.h"

#define CALIBRATE_NS 20000ull /* period of the clock during the measurement */
#define CALIBRATE_MEMORY (1u << 20)
#define CALIBRATE_ROUNDS 24
#define CALIBRATE_TRIES 9

/* Works for a while on memory that does not stay in the nearest caches, as programs do. Returns the
   time. */
static uint64_t work(volatile uint8_t *memory)
{
	uint64_t start = now_ns(), at = 1;
	for (int round = 0; round < CALIBRATE_ROUNDS; round++)
		for (unsigned i = 0; i < CALIBRATE_MEMORY / 64; i++) {
			at = at * 6364136223846793005u + 1442695040888963407u;
			memory[at >> 44]++;
		}
	return now_ns() - start;
}

static int compare_costs(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Compares the same work with and without the clock. The clock's event runs no program here: the sampler
   measures the time of its program itself. */
uint64_t cost_of_interrupt(void)
{
	const struct recording_event clock = {.type = PERF_TYPE_SOFTWARE,
					      .config = PERF_COUNT_SW_CPU_CLOCK,
					      .period = CALIBRATE_NS};
	int64_t costs[CALIBRATE_TRIES];
	uint8_t *memory = calloc(1, CALIBRATE_MEMORY);
	int fd = memory ? cpus_open_event(&clock, 0, -1) : -1;
	if (fd < 0) {
		free(memory);
		return 0;
	}
	work(memory);
	for (int i = 0; i < CALIBRATE_TRIES; i++) {
		uint64_t count = 0;
		int64_t without = (int64_t)work(memory);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		int64_t with = (int64_t)work(memory);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		count = (uint64_t)with / CALIBRATE_NS;
		costs[i] = count ? (with - without) / (int64_t)count : 0;
	}
	close(fd);
	free(memory);
	qsort(costs, CALIBRATE_TRIES, sizeof *costs, compare_costs);
	int64_t cost = costs[CALIBRATE_TRIES / 2];
	return cost > 0 ? (uint64_t)cost : 0;
}
