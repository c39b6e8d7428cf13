/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of known cost, for `culprit probe --metric arg:1`, and a utility function that is slow for one caller by its
   input. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

static volatile uint32_t sink;

/* A chain of dependent operations: its time does not depend on caches. */
static uint32_t spin(uint64_t steps)
{
	uint32_t x = sink;
	for (uint64_t i = 0; i < steps; i++) {
		x = x * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

APART void constant(uint64_t n)
{
	sink = spin(3000) + (uint32_t)n;
}

APART void linear(uint64_t n)
{
	sink = spin(300 + 4 * n);
}

APART void n_log_n(uint64_t n)
{
	uint64_t log = 0;
	for (uint64_t m = n; m > 1; m /= 2)
		log++;
	/* between powers of two as the logarithm is */
	sink = spin(300 + (n * log + (log ? (n - (1ull << log)) * n / (1ull << log) : 0)));
}

APART void square(uint64_t n)
{
	sink = spin(300 + n * n);
}

static void run_costs(void)
{
	for (unsigned round = 0; round < 25; round++)
		for (uint64_t n = 4; n < 30000; n += n / 2) {
			constant(n);
			linear(n);
			n_log_n(n);
			square(n % 1000);
		}
}

/* ---- one caller by its input ---- */

struct entry {
	uint64_t start, end;
};
#define LARGE 8u /* times as many */
static struct entry entries[33000 * LARGE];
static size_t last, times = 1;

/* The entry that has the address, among the first `count`: that of the last time, or the first that fits. */
APART size_t find_entry(size_t count, uint64_t address)
{
	if (address >= entries[last].start && address < entries[last].end)
		return last;
	for (size_t i = 0; i < count; i++)
		if (address >= entries[i].start && address < entries[i].end)
			return last = i;
	return count;
}

/* Most look among a few, or for what was looked for before. */
APART size_t step_into(unsigned i)
{
	return find_entry(16 + i % 48, 1000 + i % 3) + 1;
}

APART size_t show_line(unsigned i)
{
	return find_entry(32 + i % 64, entries[i % 32].start) + 1;
}

/* Each thread's stack is looked at: among all, and what comes next is elsewhere. */
APART size_t walk_stacks(unsigned i)
{
	size_t count = (2000u << i / 4 % 5) * times;
	return find_entry(count, entries[count - 1 - i % 7].start) + 1;
}

static void run_study(void)
{
	size_t found = 0;
	for (size_t i = 0; i < sizeof entries / sizeof *entries / LARGE * times; i++)
		entries[i] = (struct entry){1000 + 16 * i, 1016 + 16 * i};
	for (unsigned i = 0; i < 4000; i++) {
		found += step_into(i);
		found += show_line(i);
		if (i % 4 == 0)
			found += walk_stacks(i);
	}
	sink = (uint32_t)found;
}

/* ---- a value beyond which one path is slow ---- */

APART uint64_t lookup(uint64_t n)
{
	sink = spin(n > 1000 ? 60000 : 2000);
	return n;
}

APART uint64_t by_small(uint64_t n)
{
	return lookup(n % 900) + 1;
}

APART uint64_t by_any(uint64_t n)
{
	return lookup(n) + 1;
}

static void run_jump(void)
{
	for (unsigned i = 0; i < 400; i++) {
		by_small(i * 2);
		by_any(700 + i * 2);
	}
}

/* ---- results ---- */

APART int outcome(int n)
{
	sink = spin(n % 4 == 3 ? 40000 : 500);
	return n % 4 == 3 ? -1 : n % 4 == 0 ? 0 : 5;
}

static void run_outcomes(void)
{
	for (int i = 0; i < 400; i++)
		outcome(i);
}

/* ---- page faults ---- */

APART void touch(size_t pages, char *at)
{
	for (size_t i = 0; i < pages; i++)
		((volatile char *)at)[i * 65536] = 1;
}

static void run_faults(void)
{
	size_t size = 64 * 65536;
	for (int i = 0; i < 20; i++) {
		char *at = aligned_alloc(65536, size);
		if (at)
			touch(16, at);
		free(at);
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "costs"))
			run_costs();
		if (!strcmp(argv[i], "large"))
			times = LARGE;
		if (!strcmp(argv[i], "study"))
			run_study();
		if (!strcmp(argv[i], "jump"))
			run_jump();
		if (!strcmp(argv[i], "outcomes"))
			run_outcomes();
		if (!strcmp(argv[i], "faults"))
			run_faults();
	}
	return 0;
}
