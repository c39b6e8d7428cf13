/* SPDX-License-Identifier: Apache-2.0 */
#include "safe/slowest.h"

#include <stddef.h>

/* The fastest call whose place can be had, and the time of the next one. */
struct ranking {
	struct arena_slow *fastest; /* NULL: none */
	uint64_t mark, next_mark;
};

static struct ranking rank(struct arena_slowest *list)
{
	struct ranking r = {.mark = UINT64_MAX, .next_mark = UINT64_MAX};
	for (uint32_t i = 0; i < list->count; i++) {
		uint64_t mark = atomic_load_explicit(&list->all[i].mark, memory_order_relaxed);
		if (mark & 1)
			continue;
		if (mark < r.mark) {
			r.next_mark = r.mark;
			r.mark = mark;
			r.fastest = &list->all[i];
		} else if (mark < r.next_mark) {
			r.next_mark = mark;
		}
	}
	return r;
}

static void fill(struct arena_slow *place, const struct arena_slow *call)
{
	place->since = call->since;
	place->record = call->record;
	place->generation = call->generation;
	place->sums = call->sums;
	place->process = call->process;
	place->tid = call->tid;
}

/* If somebody else changes the place first, that one has kept a call: so this comes to an end. */
uint64_t slowest_keep(struct arena_slowest *list, uint64_t ns, const struct arena_slow *call)
{
	uint64_t mark = ns << 1;
	for (;;) {
		struct ranking r = rank(list);
		if (!r.fastest)
			return 0;
		if (mark <= r.mark)
			return r.mark >> 1;
		if (!atomic_compare_exchange_strong(&r.fastest->mark, &r.mark, mark | 1))
			continue;
		atomic_thread_fence(memory_order_release);
		fill(r.fastest, call);
		atomic_store_explicit(&r.fastest->mark, mark, memory_order_release);
		return (r.next_mark < mark ? r.next_mark : mark) >> 1;
	}
}

bool slowest_read(const struct arena_slow *place, struct arena_slow *out, uint64_t *ns)
{
	struct arena_slow *from = (struct arena_slow *)place;
	uint64_t mark = atomic_load_explicit(&from->mark, memory_order_acquire);
	if (!mark || mark & 1)
		return false;
	fill(out, from);
	atomic_thread_fence(memory_order_acquire);
	*ns = mark >> 1;
	return atomic_load_explicit(&from->mark, memory_order_relaxed) == mark;
}
