/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind [ROUNDS]: nanoseconds per frame of walks of this program's own stacks,
 * by each method. Every round runs all methods one after the other, so that
 * what else the machine does meets all of them; a line per round and method:
 *
 *     SHAPE METHOD FRAMES CPU_NS WALL_NS
 *
 * Before any time is taken the methods must have found the same frames.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "callbacks.h"
#include "hops.h"
#include "methods.h"

#define ROUND_NS 4000000.0

uintptr_t stack_top;

static const struct method *const all_methods[] = {
	&method_culprit,  &method_culprit_tables,
#ifdef HAVE_LIBUNWIND
	&method_unw_step, &method_unw_backtrace,
#endif
	&method_elfutils, &method_glibc,
};
#define METHODS (sizeof all_methods / sizeof *all_methods)

static const struct method *methods[METHODS];
static size_t method_count;
static int rounds = 15;

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct trial {
	uintptr_t frames[FRAMES_MAX];
	size_t count;
	unsigned repeat;
};

static void dump(const struct trial *t, const char *name)
{
	fprintf(stderr, "%s:", name);
	for (size_t i = 0; i < t->count; i++)
		fprintf(stderr, " %lx", (unsigned long)t->frames[i]);
	fprintf(stderr, "\n");
}

/* libunwind's fast trace gives the address before the return address on some CPUs. */
static bool same_place(uintptr_t a, uintptr_t b)
{
	return a == b || a - 1 == b || a == b - 1;
}

/* The frames from `caller` on; 0 where it is not among them. */
static size_t frames_from(const struct trial *t, uintptr_t caller, const uintptr_t **from)
{
	for (size_t i = 0; i < t->count; i++) {
		if (same_place(t->frames[i], caller)) {
			*from = t->frames + i;
			return t->count - i;
		}
	}
	return 0;
}

static bool same_frames(const uintptr_t *a, const uintptr_t *b, size_t count)
{
	while (count && same_place(a[count - 1], b[count - 1]))
		count--;
	return !count;
}

static void check_same(const char *shape, const struct trial *trials, uintptr_t caller)
{
	const uintptr_t *mine = NULL, *other = NULL;
	size_t count = frames_from(&trials[0], caller, &mine);
	for (size_t i = 1; i < method_count; i++) {
		size_t n = frames_from(&trials[i], caller, &other);
		if (count && n == count && same_frames(mine, other, n))
			continue;
		fprintf(stderr, "%s: %s and %s differ\n", shape, methods[0]->name,
			methods[i]->name);
		dump(&trials[0], methods[0]->name);
		dump(&trials[i], methods[i]->name);
		exit(1);
	}
}

static void run_round(const char *shape, struct trial *trials, bool print)
{
	for (size_t i = 0; i < method_count; i++) {
		struct trial *t = &trials[i];
		double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
		for (unsigned k = 0; k < t->repeat; k++)
			t->count = methods[i]->walk(t->frames);
		cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
		wall = now(CLOCK_MONOTONIC) - wall;
		if (print) {
			double frames = (double)t->count * t->repeat;
			printf("%s %s %zu %.2f %.2f\n", shape, methods[i]->name, t->count,
			       cpu / frames, wall / frames);
		} else {
			double factor = ROUND_NS / (cpu > 100 ? cpu / t->repeat : 100);
			t->repeat = factor > 100000 ? 100000 : factor < 1 ? 1 : (unsigned)factor;
		}
	}
}

/* What every stack ends with. */
static __attribute__((noinline)) void measure(void *context)
{
	struct trial *trials = calloc(METHODS, sizeof *trials);
	const char *shape = context;
	for (size_t i = 0; i < method_count; i++)
		trials[i].repeat = 2;
	run_round(shape, trials, false); /* warms up */
	check_same(shape, trials,
		   (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
	run_round(shape, trials, false);
	for (int r = 0; r < rounds; r++)
		run_round(shape, trials, true);
	free(trials);
}

static hop *next_hop(unsigned left)
{
	static hop *const *const libraries[] = {hops_a, hops_b, hops_c};
	static unsigned seed = 1;
	seed = (seed + left) * 1664525u + 1013904223u;
	return libraries[(seed >> 16) % 3][seed >> 27];
}

static void *on_own_stack(void *unused)
{
	static char deep[] = "deep", callbacks[] = "callbacks", shallow[] = "shallow";
	struct hops hops = {.next = next_hop, .end = measure, .context = deep};
	pthread_attr_t attributes;
	void *low;
	size_t size;
	(void)unused;
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &low, &size);
	pthread_attr_destroy(&attributes);
	stack_top = (uintptr_t)low + size;
	hops_a[0](&hops, 199);
	callbacks_run(3, measure, callbacks);
	hops.context = shallow;
	hops_a[0](&hops, 3);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc > 1)
		rounds = atoi(argv[1]);
	for (size_t i = 0; i < METHODS; i++) {
		if (!all_methods[i]->prepare || all_methods[i]->prepare())
			methods[method_count++] = all_methods[i];
		else
			fprintf(stderr, "%s: does not work here, left out\n", all_methods[i]->name);
	}
	if (!method_count || methods[0] != &method_culprit)
		return 1;
	if (pthread_create(&thread, NULL, on_own_stack, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
