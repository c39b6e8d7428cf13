/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations are sampled by bytes. From sample to sample, a random number of bytes is allocated, with an
 * exponential distribution. So an allocation of s bytes has a sample with the chance P = 1 - exp(-s / period),
 * and stands for 1 / P allocations and s / P bytes: the sums are right on average, whatever the sizes are. The
 * period of a thread follows its rate of samples, which is bounded so. It changes only for gaps that are still
 * to come, so that it does not bias what has been counted.
 *
 * Blocks that have a sample are in a table, by address, until they are freed (agent/blocks.h). It is private memory:
 * a forked child has a copy of the heap, but has allocated nothing of it. A thread never waits for itself at a lock of
 * it: what a handler of the program does while the thread is in here is not counted.
 *
 * The peak: what each site had when the process had most. When memory is freed for the first time after a new
 * peak, the heap's serial is raised. A site notes what it had (`peak`) before its first change with a new serial.
 */
#include "agent/heap.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/alone.h"
#include "agent/guard.h"
#include "safe/exponential.h"
#include "safe/heap.h"
#include "safe/syscall.h"
#include "safe/ticks.h"

#define PERIOD_FIRST (UINT64_C(512) << 10)
#define PERIOD_LEAST (UINT64_C(8) << 10)
#define PERIOD_MOST (UINT64_C(16) << 20)
#define RATE 1000u         /* samples per second of a thread */
#define FREES_EXACT 10000u /* paths of a thread that frees, before only some are looked for */
#define LARGE 4096u        /* bytes: of such blocks there are few */
#define LIVES_EXACT 10000u /* calls of a site, before only some blocks have their lives timed: */
#define LIVES_BITS 3u      /* one of 2^LIVES_BITS */

AGENT_OWN struct heap_own heap_own;
uint64_t heap_filter[(1u << HEAP_FILTER_BITS) / 64];
uint64_t heap_filter_mask = (UINT64_C(1) << HEAP_FILTER_BITS) - 1;

static struct arena_heap *_Atomic heap;

/* ---- sampled blocks that are not freed yet ---- */

/* The blocks of each place of the filter. A count that has reached its limit stays there. */
static uint8_t filter_counts[1u << HEAP_FILTER_BITS];
static _Atomic uint32_t filter_guard;

static void filter_set(uint64_t place, uint8_t count)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)&heap_filter[place / 64];
	uint64_t bit = UINT64_C(1) << (place % 64), old = *word;
	filter_counts[place] = count;
	atomic_store_explicit(word, count ? old | bit : old & ~bit, memory_order_relaxed);
}

static void filter_add(const void *address, int more)
{
	uint64_t place = heap_filter_place(address);
	if (agent.heap.bytes == 1) /* the bit of all is set */
		return;
	guard_lock(&filter_guard);
	if (filter_counts[place] != UINT8_MAX)
		filter_set(place, (uint8_t)(filter_counts[place] + more));
	guard_unlock(&filter_guard);
}

void heap_always_ask(const void *block)
{
	guard_lock(&filter_guard);
	filter_set(heap_filter_place(block), UINT8_MAX);
	guard_unlock(&filter_guard);
}

static bool table_add(const struct heap_block *block, struct heap_block *old)
{
	if (!blocks_add(block, old))
		return false;
	if (!old->address)
		filter_add((void *)block->address, 1);
	return true;
}

static bool table_take(const void *address, struct heap_block *out)
{
	if (!blocks_take(address, out))
		return false;
	filter_add(address, -1);
	return true;
}

/* ---- sites ---- */

/* Made when it is needed first. */
struct arena_heap *heap_here(void)
{
	struct arena_heap *here = atomic_load_explicit(&heap, memory_order_acquire), *none = NULL;
	if (here)
		return here;
	here = arena_heap_take(agent.arena, getpid());
	if (!here || atomic_compare_exchange_strong(&heap, &none, here))
		return here;
	arena_heap_free(agent.arena, here); /* another thread was faster */
	return none;
}

void heap_start(void)
{
	if (!agent.heap.wanted)
		return;
	const char *other = alloc_other();
	alone_start();
	alloc_start();
	maps_start();
	if (agent.heap.bytes == 1) {
		heap_filter_mask = 0;
		heap_filter[0] = 1;
	}
	struct arena_heap *here = other ? heap_here() : NULL;
	for (size_t i = 0; here && i < HEAP_NAME - 1 && (here->other[i] = other[i]); i++)
		here->other[i + 1] = 0;
}

/* Before a change of what lives. */
static void site_see(struct arena_heap *h, struct arena_site *site)
{
	uint32_t serial = atomic_load_explicit(&h->serial, memory_order_relaxed);
	if (atomic_load_explicit(&site->serial, memory_order_relaxed) == serial)
		return;
	atomic_store_explicit(&site->peak, arena_site_live(site), memory_order_relaxed);
	atomic_store_explicit(&site->serial, serial, memory_order_relaxed);
}

/* The memory lives that was counted for a site. */
static void heap_add(struct arena_heap *h, uint64_t bytes)
{
	uint64_t live = alone_add(&h->live, bytes) + bytes;
	if (live > atomic_load_explicit(&h->peak, memory_order_relaxed)) {
		atomic_store_explicit(&h->peak, live, memory_order_relaxed);
		atomic_store_explicit(&h->at_peak, 1, memory_order_relaxed);
	}
}

/* The memory of a block lives no longer. */
static void heap_remove(struct arena_heap *h, const struct heap_block *block)
{
	struct arena_site *site = arena_site(agent.arena, block->site);
	if (atomic_load_explicit(&h->at_peak, memory_order_relaxed) &&
	    atomic_exchange(&h->at_peak, 0))
		atomic_fetch_add(&h->serial, 1);
	site_see(h, site);
	if (site->thread == heap_own.number)
		counter_add(&site->freed, block->bytes);
	else
		alone_add(&site->freed_elsewhere, block->bytes);
	alone_add(&h->live, -block->bytes);
}

/* How the life of a block begins, that was counted at its site: 0: it is not timed; else in ticks. The last bit is set
   if it stands for as many as LIVES_BITS say. To read the clock is a quarter of what an allocation costs if all are
   counted. So after some of a site, of so many in a row only one is timed, by chance. Large blocks always are. */
static uint64_t life_begin(const struct arena_site *site, const struct heap_block *block)
{
	uint64_t number = atomic_load_explicit(&site->calls, memory_order_relaxed);
	if (agent.heap.bytes != 1 || number <= LIVES_EXACT || block->bytes >= LARGE)
		return ticks_now() & ~UINT64_C(1);
	uint64_t chosen = ((number >> LIVES_BITS) + block->site) * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t which = number ^ chosen >> (64 - LIVES_BITS);
	return which & ((1u << LIVES_BITS) - 1) ? 0 : ticks_now() | 1;
}

/* The life of a block ends. Only its own thread adds to `brief`. */
static void life_end(const struct heap_block *block, _Atomic uint64_t *sum, _Atomic uint64_t *brief)
{
	uint64_t ticks = ticks_now() - block->ticks;
	uint64_t lives = (uint64_t)block->calls << (block->ticks & 1 ? LIVES_BITS : 0);
	if (!brief) {
		alone_add(sum, ticks * lives);
		return;
	}
	counter_add(sum, ticks * lives);
	if (ticks < agent.heap.brief)
		counter_add(brief, lives);
}

/* The thread has freed a block. */
static void site_end(const struct heap_taken *taken)
{
	const struct heap_block *block = &taken->block;
	struct arena_site *site = arena_site(agent.arena, block->site);
	bool own = site->thread == heap_own.number;
	if (block->ticks)
		life_end(block, own ? &site->lifetime : &site->lifetime_elsewhere,
			 own ? &site->brief : NULL);
	if (!own) {
		alone_add(&site->ended_elsewhere, block->calls);
		return;
	}
	counter_add(&site->ended, block->calls);
	if (taken->temporary)
		counter_add(&site->temporary, block->calls);
}

/* ---- samples ---- */

static uint64_t random_next(void)
{
	heap_own.random ^= heap_own.random << 13;
	heap_own.random ^= heap_own.random >> 7;
	heap_own.random ^= heap_own.random << 17;
	/* Its bits are not all equally good: mix them. */
	return heap_own.random * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t next_gap(void)
{
	if (agent.heap.bytes == 1)
		return 0;
	return (uint64_t)(exponential_gap(random_next()) * (double)heap_own.period) + 1;
}

static void begin(const struct agent_thread *t)
{
	static _Atomic uint32_t threads;
	heap_own.begun = true;
	heap_own.number = atomic_fetch_add(&threads, 1) + 1;
	heap_own.period = agent.heap.bytes ? agent.heap.bytes : PERIOD_FIRST;
	heap_own.last_ns = agent_ns(CLOCK_MONOTONIC);
	heap_own.random = (heap_own.last_ns ^ (uint64_t)t->shared.tid << 32) *
				  UINT64_C(0x9e3779b97f4a7c15) |
			  1;
	heap_own.left = next_gap();
}

/* Half of the gaps shall be shorter than 1 / RATE seconds. */
static void adapt(void)
{
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	uint64_t step = heap_own.period / 5;
	if (now - heap_own.last_ns < 1000000000u / RATE)
		heap_own.period += step;
	else
		heap_own.period -= step;
	if (heap_own.period < PERIOD_LEAST)
		heap_own.period = PERIOD_LEAST;
	if (heap_own.period > PERIOD_MOST)
		heap_own.period = PERIOD_MOST;
	heap_own.last_ns = now;
}

/* Rounds up or down by chance, so that sums are right on average. */
static uint64_t round_by_chance(double number)
{
	uint64_t whole = (uint64_t)number;
	return whole + ((double)(random_next() >> 11) / (double)(UINT64_C(1) << 53) <
			number - (double)whole);
}

/* What a block of this size stands for. */
static void weigh(struct heap_block *block, size_t size)
{
	block->bytes = blocks_bytes(size);
	block->calls = 1;
	if (agent.heap.bytes == 1)
		return;
	double chance = exponential_chance((double)(size + HEAP_BESIDES) / (double)heap_own.period);
	block->bytes = blocks_bytes(round_by_chance((double)size / chance));
	block->calls = blocks_calls(round_by_chance(1 / chance));
}

static void count(struct arena_heap *h, const struct heap_block *block, size_t size, bool grown)
{
	struct arena_site *site = arena_site(agent.arena, block->site);
	size_t usable = alloc_usable((void *)block->address);
	site_see(h, site);
	site->thread = heap_own.number;
	counter_add(&site->bytes, block->bytes);
	counter_add(&site->calls, block->calls);
	if (usable > size)
		counter_add(&site->wasted, (usable - size) * block->calls);
	if (grown)
		counter_add(&site->grown, block->calls);
}

static void take(struct agent_thread *t, uint64_t pc, void *address, size_t size, bool grown)
{
	struct arena_heap *h = heap_here();
	struct heap_block old, block = {.address = (uint64_t)address};
	blocks_prefetch(address);
	weigh(&block, size);
	block.site = h ? sample_by_call(t, pc, h) : 0;
	if (!block.site) {
		atomic_fetch_add(h ? &h->untracked : &agent.arena->unsampled, 1);
		return;
	}
	count(h, &block, size, grown);
	block.ticks = life_begin(arena_site(agent.arena, block.site), &block);
	if (!table_add(&block, &old)) {
		counter_add(&arena_site(agent.arena, block.site)->freed, block.bytes);
		atomic_fetch_add(&h->untracked, 1);
		return;
	}
	if (old.address)
		heap_remove(h, &old);
	heap_add(h, block.bytes);
}

struct agent_thread *heap_enter(void)
{
	struct agent_thread *t = agent.heap.wanted ? call_enter() : NULL;
	if (agent.on && !agent.heap.wanted)
		heap_own.left = UINT64_MAX; /* it is never asked again */
	else if (!t) /* this one is not counted; the next gap begins behind it */
		heap_own.left = heap_own.begun ? next_gap() : 0;
	return t;
}

void heap_note(struct agent_thread *t, uint64_t pc, void *block, size_t size, bool grown)
{
	int saved = errno;
	if (!heap_own.begun)
		begin(t);
	if (heap_count(size)) {
		take(t, pc, block, size, grown);
		if (!agent.heap.bytes)
			adapt();
		heap_own.left = heap_own.last_left = next_gap();
		heap_own.last = (uint64_t)block;
	}
	call_leave();
	errno = saved;
}

void heap_after_fork(void)
{
	blocks_after_fork();
	atomic_store(&heap, NULL);
	/* The filter may stay as it is: then some blocks are looked for in vain. */
	atomic_store(&filter_guard, 0);
	maps_after_fork();
	if (!heap_own.begun)
		return;
	/* Children of one parent shall not all have their first sample at the same place. */
	heap_own.random ^= (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15);
	heap_own.random |= !heap_own.random;
	heap_own.left = next_gap();
	heap_own.last = 0;
}

/* ---- memory that is freed ---- */

static bool take_block(void *block, struct heap_taken *out)
{
	if (!atomic_load(&heap) || !table_take(block, &out->block))
		return false;
	out->temporary = heap_own.last == out->block.address && heap_own.left == heap_own.last_left;
	heap_own.last = 0;
	return true;
}

/* The number of frees until the next path, and what that one stands for: at most one path in the time of a short
   life (wire_heap.brief). */
static void next_free(void)
{
	uint64_t now = ticks_now(), step = heap_own.free_weight / 4;
	if (now - heap_own.free_ticks < agent.heap.brief)
		heap_own.free_weight += step + 1;
	else
		heap_own.free_weight -= step;
	heap_own.free_ticks = now;
	heap_own.random |= !heap_own.random; /* the thread may have allocated nothing */
	heap_own.free_rest = random_next() % (2 * heap_own.free_weight - 1);
}

/* How many frees the path of this one stands for; 0: it is not looked for. If all allocations are counted, paths of
   all frees would cost as much again. So after some, only a few have one, by chance, and large blocks, which are few. */
static uint64_t weigh_free(uint64_t bytes)
{
	uint64_t weight = heap_own.free_weight;
	if (agent.heap.bytes != 1 || bytes >= LARGE)
		return 1;
	if (heap_own.frees++ < FREES_EXACT)
		return heap_own.free_weight = 1;
	if (heap_own.free_rest) {
		heap_own.free_rest--;
		return 0;
	}
	next_free();
	return weight;
}

/* At the path that has allocated, and at the path that frees. */
static void count_freed(struct agent_thread *t, uint64_t pc, const struct heap_taken *taken)
{
	uint64_t weight = weigh_free(taken->block.bytes);
	struct sample_value released = {agent.heap.released, taken->block.bytes * weight};
	site_end(taken);
	heap_remove(atomic_load(&heap), &taken->block);
	if (weight)
		sample_values(t, pc, 0, &released, 1);
}

struct agent_thread *heap_enter_free(void)
{
	return agent.heap.wanted ? call_enter() : NULL;
}

void heap_free(struct agent_thread *t, uint64_t pc, void *block)
{
	int saved = errno;
	struct heap_taken taken;
	if (take_block(block, &taken))
		count_freed(t, pc, &taken);
	call_leave();
	errno = saved;
}

bool heap_take(void *block, struct heap_taken *out)
{
	int saved = errno;
	if (!heap_enter_free())
		return false;
	bool known = take_block(block, out);
	call_leave();
	errno = saved;
	return known;
}

void heap_freed(struct agent_thread *t, uint64_t pc, const struct heap_taken *taken)
{
	int saved = errno;
	if (atomic_load(&heap))
		count_freed(t, pc, taken);
	call_leave();
	errno = saved;
}

void heap_keep(const struct heap_taken *taken)
{
	struct heap_block old;
	if (!heap_enter_free())
		return;
	if (atomic_load(&heap))
		table_add(&taken->block, &old);
	call_leave();
}
