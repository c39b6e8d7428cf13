/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_hostile ROUNDS: what a profiler that follows the code must not touch. A page that each read of it takes from the
 * program by a signal, data at the end of a mapping, memory that another thread unmaps all the time, code that the
 * program makes and changes. Prints sums, and how many signals came: always the same.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

static volatile unsigned char *guarded;
static volatile long faults, work;
static atomic_int done;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if ((uintptr_t)info->si_addr - (uintptr_t)guarded >= PAGE)
		_Exit(99);
	faults++;
	mprotect((void *)guarded, PAGE, PROT_READ | PROT_WRITE);
}

/* Each round reads a page that cannot be read: the handler lets it. */
static long read_guarded(int rounds)
{
	long sum = 0;
	for (int i = 0; i < rounds; i++) {
		mprotect((void *)guarded, PAGE, PROT_NONE);
		for (int k = 0; k < 40; k++) /* samples come here, right before the read */
			work += k ^ i;
		sum += guarded[i % PAGE];
		if (guarded[0] != 7)
			sum++;
	}
	return sum;
}

/* Up to the last byte before a page that cannot be read. */
static long read_end(const unsigned char *bytes, int rounds)
{
	long sum = 0;
	for (int i = 0; i < rounds; i++)
		for (int k = PAGE - 64; k < PAGE && bytes[k] != 255; k++)
			sum += bytes[k];
	return sum;
}

static void *unmap_all_the_time(void *nothing)
{
	while (!atomic_load(&done)) {
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		page[5] = 1;
		for (volatile int i = 0; i < 200; i++)
			page[i % 50]++;
		munmap(page, PAGE);
	}
	return nothing;
}

#if defined(__aarch64__)
static void make_code(uint32_t *code, int value) /* mov w0, #value; ret */
{
	code[0] = 0x52800000u | (uint32_t)value << 5;
	code[1] = 0xd65f03c0u;
	__builtin___clear_cache((char *)code, (char *)(code + 2));
}
#else
static void make_code(uint32_t *code, int value) /* mov eax, value; ret */
{
	unsigned char *bytes = (unsigned char *)code;
	bytes[0] = 0xb8;
	memcpy(bytes + 1, &value, 4);
	bytes[5] = 0xc3;
}
#endif

/* At the very end of its mapping. */
static long run_made(int rounds)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *code = (uint32_t *)(pages + PAGE - 8);
	int (*function)(void);
	long sum = 0;
	memcpy(&function, &code, sizeof function);
	mprotect(pages + PAGE, PAGE, PROT_NONE);
	for (int i = 0; i < rounds; i++) {
		make_code(code, i % 100);
		for (int k = 0; k < 50; k++)
			sum += function() > 50 ? 1 : 2;
	}
	return sum;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	unsigned char *end = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t other;
	guarded = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(end, 3, PAGE);
	mprotect(end + PAGE, PAGE, PROT_NONE);
	sigaction(SIGSEGV, &action, NULL);
	pthread_create(&other, NULL, unmap_all_the_time, NULL);
	printf("%ld", read_guarded(rounds));
	printf(" %ld", read_end(end, rounds * 20));
	printf(" %ld\n", run_made(rounds * 4));
	printf("%ld signals\n", faults);
	atomic_store(&done, 1);
	pthread_join(other, NULL);
	return 0;
}
