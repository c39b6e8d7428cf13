/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who ended the waits of the page's rows (view/pack.h): the wakes of a profile, each of one row. */
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct contexts;
struct err;
struct lines;

struct view_wake {
	uint32_t row, metric;
	uint32_t waker; /* enum profile_waker (profile/profile.h) */
	uint64_t count, waited;
};

struct view_wakes {
	struct view_wake *all; /* ascending by row, metric, waker; each once */
	size_t count;
};

struct err *view_wakes_make(const struct attribution *attribution, const struct contexts *contexts,
			    const struct lines *lines, struct view_wakes *out);
void view_wakes_free(struct view_wakes *wakes);
