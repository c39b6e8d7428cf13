/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The wall clock, which people and other programs set, beside a clock that nobody
 * sets. What was counted keeps its length whatever happens to the wall clock; where that
 * was set, an epoch ends, so that in each of them time only goes on. And since a clock
 * may be set wrong, and right again, nothing becomes old by it at once.
 */
#include <stdbool.h>
#include <stdint.h>

struct wall_time {
	int64_t wall_ms;    /* since 1970 */
	uint64_t steady_ns; /* CLOCK_BOOTTIME: goes on while the machine sleeps */
};

struct wall {
	int64_t offset_ms;         /* of the wall clock to the other one, as it was last */
	int64_t end_ms;            /* of the last span; INT64_MIN: there is none on this clock */
	int64_t doubted_ms;        /* so much has the clock been set forward … */
	uint64_t doubted_until_ns; /* … and until then that may have been a mistake */
};

/* Both at one moment. */
struct wall_time wall_now(void);

/* `newest_ms`: when what is stored already ends; INT64_MIN: nothing is. */
void wall_start(struct wall *wall, struct wall_time now, int64_t newest_ms);
/* How much the clock was set forward since this was asked last, in ms; negative: back; 0: it was not. */
int64_t wall_set(struct wall *wall, struct wall_time now);
/* The while of the last `length_ns` until now, which begins where the one before ended at the earliest. */
void wall_span(struct wall *wall, struct wall_time now, uint64_t length_ns, int64_t *start_ms,
	       int64_t *end_ms);
/* The time by which to tell how old something is. */
int64_t wall_age_ms(struct wall *wall, struct wall_time now);
