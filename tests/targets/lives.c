// SPDX-License-Identifier: Apache-2.0
/*
 * lives ROUNDS [short]: memory whose life is known: how long it lives, who frees it, how it grows, what is wasted, what
 * is mapped. short: only short lives, of which one in eight is timed. Says what must be recorded, a line each:
 *
 *    function metric least most
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))
#define BLOCKS 100
#define BRIEF 10000 /* ns: alloc.brief */

static void *volatile sink; /* so that the compiler leaves no call out */
static unsigned long rounds;
static int is_estimated;

static unsigned long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

static void say(const char *function, const char *metric, unsigned long least, unsigned long most)
{
	printf("%s alloc.%s %lu %lu\n", function, metric, least, most);
}

/* ---- who frees, and when ---- */

static struct block {
	void *at;
	unsigned long before, after; /* the allocation */
	unsigned long least, most;   /* ns of its life */
} blocks[BLOCKS];

KEEP static void *life_take(size_t size)
{
	sink = malloc(size);
	return sink;
}

static void begin(struct block *b, size_t size)
{
	b->before = now();
	b->at = life_take(size);
	b->after = now();
}

KEEP static void life_drop(void *at)
{
	free(at);
}

KEEP static void life_drop_elsewhere(void *at)
{
	free(at);
}

static void end(struct block *b, void drop(void *))
{
	b->least = now() - b->after;
	drop(b->at);
	b->most = now() - b->before;
}

static void *other_thread(void *none)
{
	for (int i = 0; i < BLOCKS / 2; i++)
		end(&blocks[i], life_drop_elsewhere);
	return none;
}

/* Half of the blocks is freed by another thread, and the last one is not freed. */
static void who_frees(void)
{
	unsigned long wasted = 0, bytes = 0, elsewhere = 0, least = 0, most = 0;
	pthread_t other;
	for (int i = 0; i < BLOCKS; i++) {
		size_t size = 100 + (size_t)i;
		begin(&blocks[i], size);
		wasted += malloc_usable_size(blocks[i].at) - size;
		if (i < BLOCKS / 2)
			elsewhere += size;
		else if (i < BLOCKS - 1)
			bytes += size;
	}
	usleep(20000);
	if (pthread_create(&other, NULL, other_thread, NULL))
		abort();
	pthread_join(other, NULL);
	for (int i = BLOCKS / 2; i < BLOCKS - 1; i++)
		end(&blocks[i], life_drop);
	for (int i = 0; i < BLOCKS - 1; i++) {
		least += blocks[i].least;
		most += blocks[i].most;
	}
	say("life_take", "calls", BLOCKS, BLOCKS);
	say("life_take", "freed", BLOCKS - 1, BLOCKS - 1);
	say("life_take", "elsewhere", BLOCKS / 2, BLOCKS / 2);
	say("life_take", "lifetime", least, most);
	say("life_take", "brief", 0, 0);
	say("life_take", "wasted", wasted, wasted);
	say("life_take", "released", 0, 0);
	say("life_drop", "released", bytes, bytes);
	say("life_drop_elsewhere", "released", elsewhere, elsewhere);
}

/* ---- short lives ---- */

KEEP static void life_brief(void)
{
	unsigned long brief = 0, long_ones = 0, least = 0, most = 0;
	double squares = 0;
	for (unsigned long i = 0; i < rounds; i++) {
		struct block b = {.before = now()};
		sink = b.at = malloc(64);
		b.after = now();
		if (i % 10 == 0)
			usleep(100);
		end(&b, free);
		least += b.least;
		most += b.most;
		brief += b.most < BRIEF * 9 / 10;
		long_ones += b.least > BRIEF * 11 / 10;
		squares += (double)b.most * (double)b.most;
	}
	/* What is timed stands for eight. So these are four standard errors: */
	unsigned long times = is_estimated ? (unsigned long)(4 * sqrt(8 * squares)) : 0;
	unsigned long lives = is_estimated ? (unsigned long)(4 * sqrt(8 * (double)rounds)) : 0;
	say("life_brief", "brief", brief - lives, rounds - long_ones + lives);
	say("life_brief", "lifetime", least > times ? least - times : 0, most + times);
	say("life_brief", "temporary", rounds, rounds);
}

/* ---- growth ---- */

KEEP static void life_grow(void)
{
	unsigned long grown = 0, released = 0, wasted = 0;
	char *at = NULL;
	for (unsigned long i = 1; i <= rounds; i++) {
		grown += at && i * 24 > malloc_usable_size(at);
		released += i * 24;
		sink = at = realloc(at, i * 24);
		wasted += malloc_usable_size(at) - i * 24;
	}
	free(at);
	say("life_grow", "grown", grown, grown);
	say("life_grow", "released", released, released);
	say("life_grow", "wasted", wasted, wasted);
	say("life_grow", "freed", rounds, rounds);
}

/* ---- maps ---- */

static size_t page;

KEEP static void *life_map(size_t pages, int protection)
{
	void *at = mmap(NULL, pages * page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		abort();
	return at;
}

KEEP static void *life_remap(void *at, size_t pages, size_t new_pages)
{
	void *moved = mremap(at, pages * page, new_pages * page, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		abort();
	return moved;
}

static void maps(void)
{
	char *all = life_map(16, PROT_READ | PROT_WRITE);
	munmap(all, page);             /* at the front, */
	munmap(all + 4 * page, page);  /* in the middle, */
	munmap(all + 14 * page, page); /* near the end: 13 are left */
	munmap(all + 1, page);         /* refused */
	char *gone = life_map(8, PROT_READ);
	munmap(gone, 8 * page - 1); /* is rounded up */
	life_map(1000, PROT_NONE);  /* only reserved */
	char *moved = life_map(4, PROT_READ | PROT_WRITE);
	moved = life_remap(moved, 4, 10);
	munmap(moved, 3 * page);
	/* In the place of a page of the first one. */
	if (mmap(all + 2 * page, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		abort();
	if (mremap(all + 6 * page, page, (size_t)1 << 60, MREMAP_MAYMOVE) != MAP_FAILED)
		abort();
	say("life_map", "mapped", 28 * page, 28 * page);
	say("life_map", "kept", 12 * page, 12 * page);
	say("life_remap", "mapped", 10 * page, 10 * page);
	say("life_remap", "kept", 7 * page, 7 * page);
}

int main(int count, char **arguments)
{
	rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 100;
	page = (size_t)sysconf(_SC_PAGESIZE);
	static char buffer[4096]; /* so that stdio maps and allocates nothing between */
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	is_estimated = count > 2;
	if (is_estimated) {
		life_brief();
		return 0;
	}
	who_frees();
	life_brief();
	life_grow();
	maps();
	return 0;
}
