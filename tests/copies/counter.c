/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small counter library for programs in an emulator: gives the thread a bank, loads the object of copies, and makes the
 * functions jump to them. COPIES names the object and its plan, without suffix. When the program ends, the
 * counters go to a file.
 *
 * COPIES_PLAIN: it does the same, but writes neither jumps nor the file.
 * COPIES_ASK: it only says where things are: the word with the bank, from TPIDR_EL0 on; the functions that run right before
 * and after what is counted; and the files whose names end with this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_WORDS (1u << 20)

static uint64_t spare[1 << 16];
static uint64_t spare_stack[64] = {0, UINT64_MAX};
static __thread uint64_t *volatile bank __attribute__((tls_model("initial-exec"))) = spare + 512;
static uint64_t words, *counters;
static char counts_path[4096];
static bool is_plain;

/* Who follows the instructions sees these. */
__attribute__((noinline)) static void counting_begins(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) static void counting_ends(void)
{
	__asm__ volatile("nop");
}

static void die(const char *what)
{
	fprintf(stderr, "counter: %s\n", what);
	_exit(99);
}

static int tell_one(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *ask = data;
	size_t length = strlen(info->dlpi_name), end = strlen(ask);
	(void)size;
	if (length >= end && !strcmp(info->dlpi_name + length - end, ask))
		printf("%lx\n", (unsigned long)info->dlpi_addr);
	return *ask ? 0 : 1;
}

static void answer(char *ask)
{
	uintptr_t thread;
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
	printf("%lu\n%lx\n%lx\n", (unsigned long)((uintptr_t)&bank - thread),
	       (unsigned long)counting_begins, (unsigned long)counting_ends);
	dl_iterate_phdr(tell_one, ask);
	fflush(stdout);
	_exit(0);
}

static void begin_bank(void)
{
	size_t size = (words + 1024 + STACK_WORDS) * 8;
	uint64_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);
	if (memory == MAP_FAILED)
		die("no memory");
	uint64_t *stack = memory + 1024 + words;
	stack[1] = UINT64_MAX;
	counters = memory + 1024;
	counters[-1] = counters[-3] = (uint64_t)(stack + 2);
	counters[-2] = (uint64_t)(stack + STACK_WORDS / 2);
	bank = counters;
}

static void write_jump(uint64_t at, const char *hex)
{
	uint8_t bytes[16];
	size_t size = strlen(hex) / 2;
	uint64_t page = at & ~4095ull, end = (at + size + 4095) & ~4095ull;
	for (size_t i = 0; i < size; i++)
		sscanf(hex + 2 * i, "%2hhx", &bytes[i]);
	if (mprotect((void *)page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("mprotect");
	memcpy((void *)at, bytes, size);
	__builtin___clear_cache((char *)at, (char *)at + size);
}

struct jump {
	uint64_t at;
	char bytes[33];
};

__attribute__((constructor)) static void begin(void)
{
	char path[4096], *ask = getenv("COPIES_ASK"), *name = getenv("COPIES");
	uint64_t base = 0;
	size_t count = 0;
	spare[511] = spare[509] = (uint64_t)(spare_stack + 2);
	spare[510] = (uint64_t)(spare_stack + sizeof spare_stack / sizeof *spare_stack / 2);
	if (ask)
		answer(ask);
	if (!name)
		return;
	snprintf(counts_path, sizeof counts_path, "%s.counts", name);
	snprintf(path, sizeof path, "%s.plan", name);
	FILE *f = fopen(path, "r");
	if (!f || fscanf(f, "base %lx words %lu", &base, &words) != 2)
		die("no plan");
	struct jump *jumps = NULL, one;
	while (fscanf(f, " jump %lx %32s", &one.at, one.bytes) == 2) {
		jumps = realloc(jumps, (count + 1) * sizeof one);
		jumps[count++] = one;
	}
	fclose(f);
	begin_bank();
	snprintf(path, sizeof path, "%s.so", name);
	struct link_map *map = dlopen(path, RTLD_NOW);
	if (!map)
		die(dlerror());
	if (map->l_addr)
		die("the object is not at its address");
	is_plain = getenv("COPIES_PLAIN");
	for (size_t i = 0; i < count && !is_plain; i++)
		write_jump(jumps[i].at, jumps[i].bytes);
	for (size_t i = 0; i < words; i++) /* not by memset, which may count */
		((volatile uint64_t *)counters)[i] = 0;
	counting_begins();
}

/* By system calls alone: functions of libc may be counted. */
static long call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c, x3 __asm__("x3") = d;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

__attribute__((destructor)) static void end(void)
{
	counting_ends();
	if (!counters || is_plain)
		return;
	long file = call(56, AT_FDCWD, (long)counts_path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	for (size_t done = 0; done < words * 8;) {
		long n = call(64, file, (long)((char *)counters + done), (long)(words * 8 - done),
			      0);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
}
