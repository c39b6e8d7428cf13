/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose profile is known beforehand: three processes, six threads, a
 * library that is loaded late, and in each context a fixed number of equal
 * pieces of work. All of them are done by one loop, so that a piece costs the
 * same everywhere, and in turn, so that a machine that slows down does so for
 * all. tests/e2e/known_tree.py has the shares.
 *
 *    known_tree ROUNDS PLUGIN
 *
 * Compiled with -DPLUGIN it is that library. It ends by saying how much CPU
 * time each process used.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PERTURB
#define PERTURB 0 /* for the test's own test: a context that has more than it should */
#endif
#ifndef PIECE
#define PIECE 4000000ull /* rounds of the loop: about 5 ms */
#endif
/* What stands after a call keeps it from being the last thing of its caller: no tail calls. */
#define CALL(call) ((call), ({ __asm__ volatile(""); }))
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

static NOINLINE void work(unsigned pieces)
{
	uint64_t x = 88172645463325252ull;

	for (uint64_t i = 0; i < pieces * PIECE; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__asm__ volatile("" : "+r"(x));
	}
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
	CALL(leaf_one(3));
	CALL(leaf_two(2 + PERTURB));
}

static NOINLINE void phase_b(unsigned pieces)
{
	CALL(leaf_one(pieces));
}

static NOINLINE void recurse(int depth)
{
	if (depth > 1)
		CALL(recurse(depth - 1));
	else
		CALL(leaf_two(2));
}

static void *thread_alpha(void *unused)
{
	for (int i = 0; i < rounds; i++) {
		CALL(leaf_one(2));
		CALL(plugin(work, 1));
	}
	return unused;
}

static void *thread_beta(void *unused)
{
	for (int i = 0; i < rounds; i++)
		CALL(phase_b(3));
	return unused;
}

static NOINLINE void main_part(void)
{
	for (int i = 0; i < rounds; i++) {
		CALL(phase_a());
		CALL(phase_b(1));
		CALL(recurse(3));
		CALL(plugin(work, 2));
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
	printf("cpu %lld us\n", (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ll +
					usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	fflush(stdout);
}

static NOINLINE void grandchild_main(void)
{
	for (int i = 0; i < rounds; i++)
		CALL(phase_a());
}

static NOINLINE void child_main(void)
{
	pthread_t alpha;
	pid_t pid = fork();

	if (pid == 0) {
		CALL(grandchild_main());
		say_cpu();
		_exit(0);
	}
	start(&alpha, "alpha", thread_alpha);
	for (int i = 0; i < rounds; i++)
		CALL(leaf_two(2));
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
		CALL(child_main());
		say_cpu();
		_exit(0);
	}
	start(&alpha, "alpha", thread_alpha);
	start(&beta, "beta", thread_beta);
	CALL(main_part());
	pthread_join(alpha, NULL);
	pthread_join(beta, NULL);
	waitpid(pid, NULL, 0);
	say_cpu();
	return 0;
}
#endif
