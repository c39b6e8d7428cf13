/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain begins with a thread, and with the thread that most of its wait was for. If that one waited itself for more
 * than half of this time, the chain goes on with what it waits for most, and so on.
 *
 *     main  <-  worker 3  <-  disk
 */
#include "analyze/waits.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyze/attribution.h"
#include "analyze/reasons.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "profile/profile.h"

#define CHAIN_LEAST 0.1 /* share of a thread's waits that a chain begins with */
#define LIMIT 20        /* lines of each kind, if nothing says how many */

bool waits_metric(const struct profile *p, uint32_t *metric)
{
	bool found = false;
	for (size_t i = 0; i < p->wake_count && !found; i++)
		found = p->wakes[i].metric == *metric;
	if (!found && p->wake_count)
		*metric = p->wakes[0].metric;
	return p->wake_count;
}

/* ---- pairs ---- */

static int by_key(const void *a, const void *b)
{
	const struct wait_pair *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->waker != y->waker)
		return x->waker < y->waker ? -1 : 1;
	return (x->reason > y->reason) - (x->reason < y->reason);
}

static int by_count(const void *a, const void *b)
{
	const struct wait_pair *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return by_key(a, b);
}

static struct err *add_pair(struct waits *w, const struct wait_pair *pair)
{
	if (!ARRAY_ROOM(w->pairs, w->pair_count, w->pair_room))
		return err_new("out of memory");
	w->pairs[w->pair_count++] = *pair;
	return NULL;
}

static int compare_places(const struct profile_wake *w, const struct profile_value *v)
{
	if (w->node != v->node)
		return w->node < v->node ? -1 : 1;
	if (w->thread != v->thread)
		return w->thread < v->thread ? -1 : 1;
	return (w->metric > v->metric) - (w->metric < v->metric);
}

/* Both are in the same order. */
static struct err *find_pairs(const struct attribution *a, uint32_t metric, const bool *threads,
			      struct waits *out)
{
	const struct profile *p = a->profile;
	struct err *e = NULL;
	size_t at = 0;
	for (size_t i = 0; i < p->value_count && !e; i++) {
		const struct profile_value *v = &p->values[i];
		enum reason reason = reason_of(p, a->reasons, v);
		uint64_t left = v->count;
		if (v->metric != metric || a->dropped[v->node] || reason == REASON_ON_CPU ||
		    (threads && !threads[v->thread]))
			continue;
		out->total += v->count;
		while (at < p->wake_count && compare_places(&p->wakes[at], v) < 0)
			at++;
		for (; at < p->wake_count && !compare_places(&p->wakes[at], v) && !e; at++) {
			const struct profile_wake *w = &p->wakes[at];
			uint64_t count = w->count < left ? w->count : left;
			left -= count;
			e = add_pair(out, &(struct wait_pair){v->thread, w->waker, (uint8_t)reason,
							      count, w->waited});
		}
		if (!e && left)
			e = add_pair(out, &(struct wait_pair){v->thread, WAITS_UNKNOWN,
							      (uint8_t)reason, left, 0});
	}
	return e;
}

static void join_pairs(struct waits *w)
{
	size_t kept = 0;
	if (w->pair_count)
		qsort(w->pairs, w->pair_count, sizeof *w->pairs, by_key);
	for (size_t i = 0; i < w->pair_count; i++) {
		struct wait_pair *last = kept ? &w->pairs[kept - 1] : NULL;
		if (!last || by_key(last, &w->pairs[i])) {
			w->pairs[kept++] = w->pairs[i];
			continue;
		}
		last->count += w->pairs[i].count;
		last->waited += w->pairs[i].waited;
	}
	w->pair_count = kept;
	if (kept)
		qsort(w->pairs, kept, sizeof *w->pairs, by_count);
}

/* ---- chains ---- */

/* What is known of a thread, from its pairs. */
struct waiter {
	uint64_t total;
	const struct wait_pair *most;   /* NULL: it does not wait */
	const struct wait_pair *thread; /* that for which it waits most for another thread */
};

static void find_waiters(const struct waits *w, struct waiter *waiters)
{
	for (size_t i = 0; i < w->pair_count; i++) { /* the largest first */
		const struct wait_pair *x = &w->pairs[i];
		struct waiter *t = &waiters[x->thread];
		t->total += x->count;
		if (!t->most)
			t->most = x;
		if (!t->thread && x->waker != WAITS_UNKNOWN && x->waker >= PROFILE_WAKERS)
			t->thread = x;
	}
}

static bool is_in(const struct wait_chain *c, uint32_t thread)
{
	for (uint32_t i = 0; i < c->length; i++)
		if (c->threads[i] == thread)
			return true;
	return false;
}

/* Goes on from a wait for another thread. */
static void follow(const struct waiter *waiters, const struct wait_pair *from, struct wait_chain *c)
{
	c->threads[c->length++] = from->thread;
	c->count = from->count;
	for (const struct wait_pair *x = from; c->length < WAIT_CHAIN_MAX;) {
		uint32_t next = x->waker - PROFILE_WAKERS;
		if (is_in(c, next)) {
			c->end = REASON_COUNT;
			return;
		}
		c->threads[c->length++] = next;
		c->end = REASON_ON_CPU;
		if (x->waited < x->count / 2 || !waiters[next].most)
			return;
		x = waiters[next].most;
		c->end = x->reason;
		if (x->waker == WAITS_UNKNOWN || x->waker < PROFILE_WAKERS)
			return;
	}
}

static int compare_chains(const void *a, const void *b)
{
	const struct wait_chain *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (x->threads[0] > y->threads[0]) - (x->threads[0] < y->threads[0]);
}

static struct err *find_chains(const struct profile *p, struct waits *w)
{
	struct waiter *waiters = calloc(p->thread_count + 1, sizeof *waiters);
	w->chains = calloc(p->thread_count + 1, sizeof *w->chains);
	bool good = waiters && w->chains;
	if (good)
		find_waiters(w, waiters);
	for (size_t i = 0; good && i < p->thread_count; i++) {
		const struct waiter *t = &waiters[i];
		if (t->thread && (double)t->thread->count >= CHAIN_LEAST * (double)t->total)
			follow(waiters, t->thread, &w->chains[w->chain_count++]);
	}
	if (good && w->chain_count)
		qsort(w->chains, w->chain_count, sizeof *w->chains, compare_chains);
	free(waiters);
	return good ? NULL : err_new("out of memory");
}

struct err *waits_make(const struct attribution *a, uint32_t metric, const bool *threads,
		       struct waits *out)
{
	*out = (struct waits){0};
	struct err *e = find_pairs(a, metric, threads, out);
	if (e)
		return e;
	join_pairs(out);
	return find_chains(a->profile, out);
}

void waits_free(struct waits *w)
{
	free(w->pairs);
	free(w->chains);
	*w = (struct waits){0};
}

/* ---- output ---- */

static void put_thread(const struct profile *p, uint32_t thread, struct buf *out)
{
	const struct profile_thread *t = &p->threads[thread];
	buf_puts(out, term_text(t->name));
	buf_printf(out, " (thread %" PRId32 ")", t->tid);
}

static const char *waker_kind(uint32_t waker)
{
	static const char *const kinds[] = {[PROFILE_WAKER_INTERRUPT] = "interrupt",
					    [PROFILE_WAKER_KERNEL] = "kernel",
					    [PROFILE_WAKER_OUTSIDER] = "outsider"};
	return waker == WAITS_UNKNOWN   ? "unknown"
	       : waker < PROFILE_WAKERS ? kinds[waker]
					: "thread";
}

static void put_waker(const struct profile *p, uint32_t waker, struct buf *out)
{
	static const char *const words[] = {
		[PROFILE_WAKER_INTERRUPT] = "an interrupt",
		[PROFILE_WAKER_KERNEL] = "a thread of the kernel",
		[PROFILE_WAKER_OUTSIDER] = "a thread that is not recorded"};
	if (waker == WAITS_UNKNOWN)
		buf_puts(out, "what is not known");
	else if (waker < PROFILE_WAKERS)
		buf_puts(out, words[waker]);
	else
		put_thread(p, waker - PROFILE_WAKERS, out);
}

static void put_time(const struct profile *p, uint32_t metric, uint64_t count, struct buf *out)
{
	char time[TERM_UNIT_MAX];
	buf_printf(out, "%10s",
		   term_time(time, (double)count * (double)profile_period(p, metric) / 1e9));
}

static void print_pair(const struct waits *w, const struct profile *p, uint32_t metric,
		       const struct wait_pair *x, struct buf *out)
{
	put_time(p, metric, x->count, out);
	buf_printf(out, " %6.2f%%  ", 100 * (double)x->count / (double)w->total);
	put_thread(p, x->thread, out);
	buf_puts(out, " waited for ");
	put_waker(p, x->waker, out);
	buf_printf(out, ": %s", reason_name((enum reason)x->reason));
	if (x->waker != WAITS_UNKNOWN && x->waker >= PROFILE_WAKERS)
		buf_printf(out, "; that one waited itself for %.0f%% of it",
			   100 * (double)x->waited / (double)x->count);
	buf_puts(out, "\n");
}

static void put_end(const struct wait_chain *c, struct buf *out)
{
	if (c->end == REASON_COUNT)
		buf_puts(out, ", for each other");
	else if (c->end == REASON_ON_CPU)
		buf_puts(out, ", which runs");
	else
		buf_printf(out, " <- %s", reason_name((enum reason)c->end));
}

static void print_chain(const struct profile *p, uint32_t metric, const struct wait_chain *c,
			struct buf *out)
{
	put_time(p, metric, c->count, out);
	buf_puts(out, "  ");
	for (uint32_t i = 0; i < c->length; i++) {
		if (i)
			buf_puts(out, " <- ");
		put_thread(p, c->threads[i], out);
	}
	put_end(c, out);
	buf_puts(out, "\n");
}

void waits_print(const struct waits *w, const struct profile *p, uint32_t metric, uint64_t limit,
		 double min, struct buf *out)
{
	size_t hidden = 0, most = limit ? limit : LIMIT;
	buf_puts(out, "      time   share\n");
	for (size_t i = 0; i < w->pair_count; i++)
		if (i < most && (double)w->pairs[i].count >= min * (double)w->total)
			print_pair(w, p, metric, &w->pairs[i], out);
		else
			hidden++;
	if (hidden)
		buf_printf(out, "%zu more: --min and --limit show more\n", hidden);
	if (w->chain_count)
		buf_puts(out, "\nchains:\n");
	for (size_t i = 0; i < w->chain_count && i < most; i++)
		print_chain(p, metric, &w->chains[i], out);
}

static void json_thread(const struct profile *p, uint32_t thread, struct json *j)
{
	const struct profile_thread *t = &p->threads[thread];
	json_begin_object(j);
	json_put_string(j, "name", t->name);
	json_key(j, "tid");
	json_i64(j, t->tid);
	json_key(j, "pid");
	json_i64(j, p->processes[t->process].pid);
	json_end_object(j);
}

static void json_pair(const struct profile *p, const struct wait_pair *x, struct json *j)
{
	json_begin_object(j);
	json_key(j, "thread");
	json_thread(p, x->thread, j);
	json_put_string(j, "by", waker_kind(x->waker));
	json_key(j, "waker");
	if (x->waker != WAITS_UNKNOWN && x->waker >= PROFILE_WAKERS)
		json_thread(p, x->waker - PROFILE_WAKERS, j);
	else
		json_null(j);
	json_put_string(j, "reason", reason_name((enum reason)x->reason));
	json_put_u64(j, "samples", x->count);
	json_put_u64(j, "waker_waited", x->waited);
	json_end_object(j);
}

static void json_chain(const struct profile *p, const struct wait_chain *c, struct json *j)
{
	json_begin_object(j);
	json_put_u64(j, "samples", c->count);
	json_key(j, "threads");
	json_begin_array(j);
	for (uint32_t i = 0; i < c->length; i++)
		json_thread(p, c->threads[i], j);
	json_end_array(j);
	json_put_string(j, "end",
			c->end == REASON_COUNT ? "each other" : reason_name((enum reason)c->end));
	json_end_object(j);
}

void waits_json(const struct waits *w, const struct profile *p, uint64_t limit, struct json *j)
{
	json_key(j, "waits");
	json_begin_array(j);
	for (size_t i = 0; i < w->pair_count && (!limit || i < limit); i++)
		json_pair(p, &w->pairs[i], j);
	json_end_array(j);
	json_key(j, "chains");
	json_begin_array(j);
	for (size_t i = 0; i < w->chain_count && (!limit || i < limit); i++)
		json_chain(p, &w->chains[i], j);
	json_end_array(j);
}
