/* SPDX-License-Identifier: Apache-2.0 */
/* calls ROUNDS: CPU time in the program's own code, in system calls, and in the kernel for pages that are
   not there. Says how much of each, and fails where a call did not do all that it was asked for. Exit status 3: the
   machine itself stood still meanwhile (see in_step.c). */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 4 << 20, PAGE = 4096 };

static char memory[LARGE];
static int zero, shorter;
static uint64_t longest;

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void compute(void)
{
	for (volatile int i = 0; i < 400000; i++)
		;
}

__attribute__((noinline)) static void call(void)
{
	for (int i = 0; i < 4; i++)
		shorter += read(zero, memory, LARGE) != LARGE;
}

__attribute__((noinline)) static void touch(void)
{
	char *fresh = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		exit(2);
	madvise(fresh, LARGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < LARGE; i += PAGE)
		((volatile char *)fresh)[i] = 1;
	munmap(fresh, LARGE);
}

/* Not inlined, and no tail call: it stands in all paths. */
__attribute__((noinline)) static uint64_t spend(void (*work)(void))
{
	uint64_t start = cpu_ns();
	work();
	uint64_t spent = cpu_ns() - start;
	longest = spent > longest ? spent : longest;
	return spent;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	uint64_t computed = 0, called = 0, touched = 0;
	zero = open("/dev/zero", O_RDONLY);
	memset(memory, 1, sizeof memory);
	for (int i = 0; i < rounds; i++) {
		computed += spend(compute);
		called += spend(call);
		touched += spend(touch);
	}
	printf("compute %llu\ncall %llu\ntouch %llu\n", (unsigned long long)(computed / 1000),
	       (unsigned long long)(called / 1000), (unsigned long long)(touched / 1000));
	if (shorter)
		fprintf(stderr, "%d reads were shorter than asked for\n", shorter);
	uint64_t usual = (computed + called + touched) / (3 * (uint64_t)rounds);
	return shorter ? 1 : rounds > 100 && longest > 20 * usual ? 3 : 0;
}
