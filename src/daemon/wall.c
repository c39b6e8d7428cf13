/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "daemon/wall.h"

#include <time.h>

#define SET_MS 1000              /* what is less is taken for a correction on the way */
#define DAY_MS INT64_C(86400000) /* a machine may have been off for so long */
#define DOUBT_NS (3600 * UINT64_C(1000000000))
#define MOMENT_NS 5000000u /* between two looks at clocks, unless we are held up */
#define LOOKS 16

/* Who is stopped between two looks would take that for a clock that was set. */
struct wall_time wall_now(void)
{
	struct wall_time now;
	for (int i = 0; i < LOOKS; i++) {
		now.steady_ns = clock_ns(CLOCK_BOOTTIME);
		now.wall_ms = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
		if (clock_ns(CLOCK_BOOTTIME) - now.steady_ns < MOMENT_NS)
			break;
	}
	return now;
}

static int64_t offset_of(struct wall_time now)
{
	return now.wall_ms - (int64_t)(now.steady_ns / 1000000);
}

static void doubt(struct wall *w, struct wall_time now, int64_t ms)
{
	w->doubted_ms += ms;
	if (w->doubted_ms < 0)
		w->doubted_ms = 0;
	w->doubted_until_ns = now.steady_ns + DOUBT_NS;
}

void wall_start(struct wall *w, struct wall_time now, int64_t newest_ms)
{
	*w = (struct wall){.offset_ms = offset_of(now), .end_ms = INT64_MIN};
	if (newest_ms != INT64_MIN && newest_ms < now.wall_ms - DAY_MS)
		doubt(w, now, now.wall_ms - newest_ms);
}

int64_t wall_set(struct wall *w, struct wall_time now)
{
	int64_t by = offset_of(now) - w->offset_ms;
	w->offset_ms = offset_of(now);
	if (by > -SET_MS && by < SET_MS)
		return 0;
	w->end_ms = INT64_MIN;
	doubt(w, now, by);
	return by;
}

void wall_span(struct wall *w, struct wall_time now, uint64_t length_ns, int64_t *start_ms,
	       int64_t *end_ms)
{
	*end_ms = now.wall_ms;
	*start_ms = now.wall_ms - (int64_t)(length_ns / 1000000);
	if (*start_ms - 1 <= w->end_ms) /* it is rounded */
		*start_ms = w->end_ms;
	if (*end_ms < *start_ms)
		*end_ms = *start_ms;
	w->end_ms = *end_ms;
}

int64_t wall_age_ms(struct wall *w, struct wall_time now)
{
	if (now.steady_ns >= w->doubted_until_ns)
		w->doubted_ms = 0;
	return now.wall_ms - w->doubted_ms;
}
