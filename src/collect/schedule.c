/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/schedule.h"

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HURRY_NICE (-10)
#define HURRY_SLICE_NS 100000u

/* As in <linux/sched/types.h>. Some libcs have headers that do not go together with that one. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
#define RESET_ON_FORK 1u

void schedule_soon(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	struct scheduling wish = {.size = sizeof wish,
				  .policy = SCHED_OTHER,
				  .flags = RESET_ON_FORK,
				  .nice = nice ? nice : HURRY_NICE,
				  .runtime = HURRY_SLICE_NS};
	/* Somebody has chosen a priority already. */
	if (nice < 0 || sched_getscheduler(0) != SCHED_OTHER)
		return;
	if (syscall(SYS_sched_setattr, 0, &wish, 0) && !nice) { /* only root may ask for this */
		wish.nice = 0;
		syscall(SYS_sched_setattr, 0, &wish, 0);
	}
}
