/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/coverage.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/sum.h"

#define WHOLE 0.999

double coverage_share(struct coverage c)
{
	double share = c.enabled_ns ? (double)c.running_ns / (double)c.enabled_ns : 1;
	return share >= WHOLE ? 1 : share;
}

bool coverage_never(struct coverage c)
{
	return c.enabled_ns && !c.running_ns;
}

uint64_t coverage_period(struct coverage c, uint64_t period)
{
	double share = coverage_share(c);
	double scaled = share > 0 ? (double)period / share + 0.5 : 0;
	if (share == 1 || share == 0) /* of what was never counted there are no samples */
		return period;
	return scaled < (double)UINT64_MAX ? (uint64_t)scaled : UINT64_MAX;
}

void coverage_add(struct coverage *into, uint64_t samples, struct coverage from, uint64_t more)
{
	double a = coverage_share(*into), b = coverage_share(from);
	struct coverage sum = {sum_add(into->enabled_ns, from.enabled_ns),
			       sum_add(into->running_ns, from.running_ns)};
	/* Where both are alike, or one is empty, nothing is to be weighed. */
	if (a != b && a > 0 && b > 0 && (samples || more)) {
		double all = (double)samples + (double)more;
		double amount = (double)samples / a + (double)more / b;
		double running = (double)sum.enabled_ns * all / amount;
		sum.running_ns = running < 1 ? 1 : (uint64_t)(running + 0.5);
	}
	*into = sum;
}

bool coverage_note(struct coverage c, const char *event, const char *unit, uint64_t period,
		   struct buf *out)
{
	double share = coverage_share(c);
	if (coverage_never(c))
		buf_printf(
			out,
			"%s was never counted: all counters that can were taken by other events; "
			"fewer at once leave it one, on x86-64 also sudo sysctl "
			"kernel.nmi_watchdog=0\n",
			event);
	else if (share < 1)
		buf_printf(
			out,
			"%s was counted %.1f%% of the time, in turns with other events: scaled, a "
			"sample stands for %" PRIu64 " %s instead of %" PRIu64 "\n",
			event, 100 * share, coverage_period(c, period), unit, period);
	return share < 1;
}
