/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes are appended as they come. They are ordered, each key once, when a reader asks, and when the array is full. */
#include <stdlib.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

static int compare(const void *a, const void *b)
{
	const struct profile_wake *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return (x->waker > y->waker) - (x->waker < y->waker);
}

void own_settle_wakes(struct profile *p)
{
	size_t kept = 0;
	if (p->wake_count)
		qsort(p->wakes, p->wake_count, sizeof *p->wakes, compare);
	for (size_t i = 0; i < p->wake_count; i++) {
		struct profile_wake *last = kept ? &p->wakes[kept - 1] : NULL;
		if (!last || compare(last, &p->wakes[i])) {
			p->wakes[kept++] = p->wakes[i];
			continue;
		}
		last->count = sum_add(last->count, p->wakes[i].count);
		last->waited = sum_add(last->waited, p->wakes[i].waited);
	}
	p->wake_count = kept;
}

struct err *own_append_wake(struct profile *p, const struct profile_wake *wake)
{
	if (p->wake_count == p->own->wake_room) {
		own_settle_wakes(p);
		if (p->wake_count >= PROFILE_WAKE_MAX)
			return NULL; /* who woke these threads is not known */
		size_t filled = p->wake_count > p->own->wake_room / 2 ? p->own->wake_room : 0;
		void *moved = own_grow(p->wakes, &p->own->wake_room, filled, sizeof *wake);
		if (!moved)
			return err_new("out of memory");
		p->wakes = moved;
	}
	p->wakes[p->wake_count++] = *wake;
	return NULL;
}

struct err *profile_wake(struct profile *p, const struct profile_wake *wake)
{
	bool thread = wake->waker >= PROFILE_WAKERS;
	if (wake->node >= p->node_count || wake->thread >= p->thread_count ||
	    wake->metric >= p->metric_count ||
	    (thread && wake->waker - PROFILE_WAKERS >= p->thread_count))
		return err_new("no such wake: context %u, thread %u, waker %u", wake->node,
			       wake->thread, wake->waker);
	return wake->count ? own_append_wake(p, wake) : NULL;
}
