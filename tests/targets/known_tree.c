/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose profile is known beforehand: three processes, six threads, a
 * library that is loaded late, and in each context a fixed number of equal
 * pieces of work, done by one loop. What a piece costs is not the same
 * everywhere: CPUs differ, and so does what else they do. So the program
 * measures the CPU time of each context by itself. tests/e2e/known_tree.py
 * compares.
 *
 * The machine may stand still: its host has no CPU for it, or fetches a page of
 * its memory. That is no work of a context, and no clock ticks meanwhile, but
 * the kernel may count it as CPU time. So pieces are worked in short strides,
 * and what one of them takes beyond any reason is left out.
 *
 *    known_tree ROUNDS PLUGIN
 *
 * Compiled with -DPLUGIN it is that library. Each process ends by saying how
 * much CPU time it used, and how much of it in which context.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PERTURB
#define PERTURB 0 /* for the test's own test: a context has more than the program says */
#endif
#ifndef PIECE
#define PIECE 4000000ull /* rounds of the loop: about 5 ms */
#endif
/* What stands after a call keeps it from being the last thing of its caller: no tail calls. */
#define CALL(call) ((call), ({ __asm__ volatile(""); }))
#define STRIDE 20000u        /* rounds: about 25 us */
#define STRIDE_WASTE 100000u /* ns that a stride may take longer than four usual ones */
#define NOINLINE __attribute__((noinline))

void plugin_entry(void (*work)(unsigned), unsigned pieces);

#ifdef PLUGIN
static NOINLINE void plugin_inner(void (*work)(unsigned), unsigned pieces)
{
	CALL(work(pieces));
}

void plugin_entry(void (*work)(unsigned), unsigned pieces)
{
	CALL(plugin_inner(work, pieces));
}
#else

typedef void plugin_function(void (*)(unsigned), unsigned);
static plugin_function *plugin;
static int rounds;

/* Where a thread is: the functions that it is in, four bits each. */
enum place {
	MAIN = 1,
	MAIN_PART,
	PHASE_A,
	PHASE_B,
	LEAF_ONE,
	LEAF_TWO,
	RECURSE,
	PLUGIN_ENTRY,
	THREAD_ALPHA,
	THREAD_BETA,
	CHILD_MAIN,
	GRANDCHILD_MAIN,
};
static const char *const names[] = {
	[MAIN] = "main",
	[MAIN_PART] = "main_part",
	[PHASE_A] = "phase_a",
	[PHASE_B] = "phase_b",
	[LEAF_ONE] = "leaf_one",
	[LEAF_TWO] = "leaf_two",
	[RECURSE] = "recurse",
	[PLUGIN_ENTRY] = "plugin_entry plugin_inner",
	[THREAD_ALPHA] = "thread_alpha",
	[THREAD_BETA] = "thread_beta",
	[CHILD_MAIN] = "child_main",
	[GRANDCHILD_MAIN] = "grandchild_main",
};
static __thread uint64_t trail = MAIN;
#define STEP(place, call) (trail = trail << 4 | (place), CALL(call), (void)(trail >>= 4))

#define CONTEXTS 64
static struct {
	_Atomic uint64_t trail, ns;
} spent[CONTEXTS];

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note(uint64_t ns)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&spent[i].trail, &none, trail) ||
		    none == trail) {
			atomic_fetch_add(&spent[i].ns, ns);
			return;
		}
	}
	abort();
}

static _Atomic uint64_t stood_ns; /* while the machine stood still */

/* What a stride counts for. `usual`: the shortest one until now. */
static uint64_t worked(uint64_t ns, uint64_t *usual)
{
	if (ns < *usual)
		*usual = ns;
	if (ns < 4 * *usual + STRIDE_WASTE)
		return ns;
	atomic_fetch_add(&stood_ns, ns - *usual);
	return *usual;
}

static NOINLINE void work(unsigned pieces)
{
	static __thread uint64_t usual = UINT64_MAX / 8;
	uint64_t x = 88172645463325252ull, ns = 0, from = cpu_ns();

	for (uint64_t left = pieces * PIECE; left;) {
		uint64_t stride = left < STRIDE ? left : STRIDE, now;

		for (uint64_t i = 0; i < stride; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			__asm__ volatile("" : "+r"(x));
		}
		left -= stride;
		now = cpu_ns();
		ns += stride == STRIDE ? worked(now - from, &usual) : now - from;
		from = now;
	}
	if (PERTURB && pieces == 2 + PERTURB && (trail & 15) == LEAF_TWO)
		ns = ns * 2 / (2 + PERTURB);
	note(ns);
}

static NOINLINE void leaf_one(unsigned pieces)
{
	CALL(work(pieces));
}

static NOINLINE void leaf_two(unsigned pieces)
{
	__asm__ volatile("nop"); /* two equal functions would become one */
	CALL(work(pieces));
}

static NOINLINE void phase_a(void)
{
	STEP(LEAF_ONE, leaf_one(3));
	STEP(LEAF_TWO, leaf_two(2 + PERTURB));
}

static NOINLINE void phase_b(unsigned pieces)
{
	STEP(LEAF_ONE, leaf_one(pieces));
}

static NOINLINE void recurse(int depth)
{
	if (depth > 1)
		STEP(RECURSE, recurse(depth - 1));
	else
		STEP(LEAF_TWO, leaf_two(2));
}

static void *thread_alpha(void *unused)
{
	trail = THREAD_ALPHA;
	for (int i = 0; i < rounds; i++) {
		STEP(LEAF_ONE, leaf_one(2));
		STEP(PLUGIN_ENTRY, plugin(work, 1));
	}
	return unused;
}

static void *thread_beta(void *unused)
{
	trail = THREAD_BETA;
	for (int i = 0; i < rounds; i++)
		STEP(PHASE_B, phase_b(3));
	return unused;
}

static NOINLINE void main_part(void)
{
	for (int i = 0; i < rounds; i++) {
		STEP(PHASE_A, phase_a());
		STEP(PHASE_B, phase_b(1));
		STEP(RECURSE, recurse(3));
		STEP(PLUGIN_ENTRY, plugin(work, 2));
	}
}

static void start(pthread_t *thread, const char *name, void *(*body)(void *))
{
	if (pthread_create(thread, NULL, body, NULL))
		abort();
	pthread_setname_np(*thread, name);
}

static void say_cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("stood %lld us\n", (long long)(stood_ns / 1000));
	printf("cpu %lld us\n", (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ll +
					usage.ru_utime.tv_usec + usage.ru_stime.tv_usec -
					(long long)(stood_ns / 1000));
	for (unsigned i = 0; i < CONTEXTS && spent[i].trail; i++) {
		printf("context %llu ns", (unsigned long long)spent[i].ns);
		for (int shift = 60; shift >= 0; shift -= 4)
			if (spent[i].trail >> shift & 15)
				printf(" %s", names[spent[i].trail >> shift & 15]);
		printf("\n");
	}
	fflush(stdout);
}

static NOINLINE void grandchild_main(void)
{
	for (int i = 0; i < rounds; i++)
		STEP(PHASE_A, phase_a());
}

static NOINLINE void child_main(void)
{
	pthread_t alpha;
	pid_t pid = fork();

	if (pid == 0) {
		STEP(GRANDCHILD_MAIN, grandchild_main());
		say_cpu();
		_exit(0);
	}
	start(&alpha, "alpha", thread_alpha);
	for (int i = 0; i < rounds; i++)
		STEP(LEAF_TWO, leaf_two(2));
	pthread_join(alpha, NULL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	pthread_t alpha, beta;
	void *library = argc == 3 ? dlopen(argv[2], RTLD_NOW) : NULL;
	pid_t pid;

	if (!library)
		return 2;
	rounds = atoi(argv[1]);
	plugin = (plugin_function *)dlsym(library, "plugin_entry");
	pid = fork();
	if (pid == 0) {
		STEP(CHILD_MAIN, child_main());
		say_cpu();
		_exit(0);
	}
	start(&alpha, "alpha", thread_alpha);
	start(&beta, "beta", thread_beta);
	STEP(MAIN_PART, main_part());
	pthread_join(alpha, NULL);
	pthread_join(beta, NULL);
	waitpid(pid, NULL, 0);
	say_cpu();
	return 0;
}
#endif
