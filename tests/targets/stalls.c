// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that wait for one known reason: stalls CAUSE ROUNDS. Each cause has a loop of its own, in a
 * function with its name. "clean CAUSE" runs the same instructions without the reason, where that can be
 * done (a ring that fits into the first cache, branches that always go one way, ...): the difference in CPU
 * time is what the reason costs. Prints the rounds that it made, and the nanoseconds of CPU time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define APART __attribute__((noipa))
#define LINE 64
#define PAGE 4096

static volatile uint64_t sink;
static double began;

static double cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* What was before is preparation. */
static void begin(void)
{
	began = cpu_ns();
}

/* ---- memory ---- */

static void *get_memory(size_t size, int huge)
{
	size_t big = (size_t)2 << 20;
	char *at = aligned_alloc(big, (size + big - 1) / big * big);
	if (!at)
		exit(1);
	madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 0, size);
	return at;
}

/* A ring of pointers through all cells, in random order; returns one of them. */
static void **make_ring(size_t size, size_t cell, int huge)
{
	size_t count = size / cell;
	char *memory = get_memory(size, huge);
	uint32_t *order = malloc(count * sizeof *order);
	uint64_t random = 88172645463325252u;
	if (!order)
		exit(1);
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count - 1; i > 0; i--) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		size_t j = random % (i + 1);
		uint32_t other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	for (size_t i = 0; i < count; i++)
		*(void **)(memory + order[i] * cell) = memory + order[(i + 1) % count] * cell;
	void **first = (void **)(memory + order[0] * cell);
	free(order);
	return first;
}

/* What a list is walked for: a little work on each element. */
static APART uint64_t chase(void **at, uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		at = *at;
		sum += i ^ (uintptr_t)at >> 3;
	}
	return sum;
}

static void run_chase(uint64_t rounds, size_t size)
{
	void **ring = make_ring(size, LINE, 1);
	begin();
	sink = chase(ring, rounds);
}

static void chase_l2(uint64_t rounds, int clean)
{
	run_chase(rounds, clean ? 8 << 10 : 384 << 10);
}

static void chase_l3(uint64_t rounds, int clean)
{
	run_chase(rounds, clean ? 8 << 10 : 6 << 20);
}

static void chase_dram(uint64_t rounds, int clean)
{
	run_chase(rounds, clean ? 8 << 10 : 192 << 20);
}

/* One word of each of many pages, more than any TLB has, or about half as many as one has; all lines fit into the second
   cache, and not into the first. (Huge pages would be no better: hosts may give them out in small ones.) */
static APART uint64_t stride(const char *memory, size_t pages, uint64_t rounds)
{
	uint64_t sum = 0;
	while (rounds > pages) {
		const char *at = memory, *end = memory + pages * (PAGE + LINE);
		do {
			sum += *(const uint64_t *)at;
			at += PAGE + LINE;
		} while (at != end);
		rounds -= pages;
	}
	return sum;
}

static void tlb_stride(uint64_t rounds, int clean)
{
	size_t pages = clean ? 1000 : 6000;
	const char *memory = get_memory(pages * (PAGE + LINE), 0);
	begin();
	sink = stride(memory, pages, rounds);
}

/* A column of a matrix whose rows have three pages and a bit: two neighbours of each row. */
static APART double add_column(const char *matrix, size_t rows, uint64_t rounds)
{
	double left = 0, right = 0;
	for (; rounds > rows; rounds -= rows)
		for (size_t i = 0; i < rows; i++) {
			const double *row = (const double *)(matrix + i * (3 * PAGE + 2 * LINE));
			left += row[0];
			right -= row[1] * left;
		}
	return left + right;
}

static void column(uint64_t rounds, int clean)
{
	size_t rows = clean ? 800 : 4000;
	const char *matrix = get_memory(rows * (3 * PAGE + 2 * LINE), 0);
	begin();
	sink = (uint64_t)add_column(matrix, rows, rounds);
}

/* ---- branches and code ---- */

static APART uint64_t flip(uint64_t coin, uint64_t rounds)
{
	uint64_t heads = 1, tails = 1, random = 88172645463325252u;
	for (uint64_t i = 0; i < rounds; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (random & coin) {
			heads += i;
			__asm__ volatile("" : "+r"(heads));
		} else {
			tails ^= i;
			__asm__ volatile("" : "+r"(tails));
		}
	}
	return heads + tails;
}

static void random_branch(uint64_t rounds, int clean)
{
	begin();
	sink = flip(clean ? 0 : 1 << 20, rounds);
}

/* Bytes that are small one time in four: another value is made of these. */
static APART uint64_t sort_out(const uint8_t *bytes, size_t size, uint64_t least, uint64_t rounds)
{
	uint64_t small = 0, other = 0, state = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		uint64_t byte = bytes[(state >> 40) & (size - 1)];
		if (byte < least) {
			small += byte * 3;
			__asm__ volatile("" : "+r"(small));
			small ^= i;
		} else {
			other += byte;
			__asm__ volatile("" : "+r"(other));
		}
	}
	return small + other;
}

static void rare_branch(uint64_t rounds, int clean)
{
	static uint8_t bytes[4096];
	uint64_t random = 88172645463325252u;
	for (size_t i = 0; i < sizeof bytes; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		bytes[i] = (uint8_t)(random >> 24);
	}
	begin();
	sink = sort_out(bytes, sizeof bytes, clean ? 0 : 64, rounds);
}

/* Blocks of a line each, that jump to each other in no order: 2 MB of code, and 16 KB. */
uint64_t walk_code(uint64_t rounds);
uint64_t walk_little(uint64_t rounds);
#if defined __aarch64__
#define WALK_BEGIN "mov x1, #0\n1: subs x0, x0, #1\nb.mi 2f\nb 3f\n2: mov x0, x1\nret\n"
#define WALK_WORK "add x1, x1, #1\neor x2, x1, x0\nadd x3, x2, #5\nadd x1, x1, #1\n"
#define JUMP "b"
#else
#define WALK_BEGIN "xor %eax, %eax\n1: sub $1, %rdi\njs 2f\njmp 3f\n2: ret\n"
#define WALK_WORK "add $1, %rax\nlea (%rax,%rdi), %rdx\nlea 5(%rdx), %rcx\nadd $1, %rax\n"
#define JUMP "jmp"
#endif
#define WALK(name, blocks)                                                                     \
	__asm__(".text\n.balign 4096\n.globl " name "\n.type " name ", %function\n" name       \
		":\n" WALK_BEGIN ".balign 64\n3: " name "_blocks:\n.set at, 0\n.rept " #blocks \
		"\n" WALK_WORK ".set next, (at * 12421 + 1) & (" #blocks                       \
		" - 1)\n.set at, at + 1\n"                                                     \
		".if next\n" JUMP " " name "_blocks + next * 64\n.else\n" JUMP                 \
		" 1b\n.endif\n.balign 64\n.endr\n.size " name ", .-" name "\n")
WALK("walk_code", 32768);
WALK("walk_little", 256);

static void cold_code(uint64_t rounds, int clean)
{
	begin();
	sink = clean ? walk_little(rounds / 256) : walk_code(rounds / 32768);
}

/* ---- units ---- */

static APART uint64_t divide(uint64_t value, uint64_t by, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		value = value / by + (i << 40);
	return value;
}

static APART uint64_t divide_clean(uint64_t value, uint64_t by, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		value = (value >> by) + (i << 40);
	return value;
}

static void division(uint64_t rounds, int clean)
{
	begin();
	sink = clean ? divide_clean(UINT64_MAX, 3, rounds) : divide(UINT64_MAX, 3, rounds);
}

static APART double add_up(double value, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		value = value * 0.999 + 1.5;
	return value;
}

/* No round needs what the one before has made, but each does the same. */
static APART double add_clean(double value, uint64_t rounds)
{
	double last = value;
	for (uint64_t i = 0; i < rounds; i++) {
		double start = value;
#if defined __aarch64__
		__asm__ volatile("" : "+w"(start));
		last = start * 0.999 + 1.5;
		__asm__ volatile("" : : "w"(last));
#else
		__asm__ volatile("" : "+x"(start));
		last = start * 0.999 + 1.5;
		__asm__ volatile("" : : "x"(last));
#endif
	}
	return last;
}

static void dependency(uint64_t rounds, int clean)
{
	begin();
	sink = (uint64_t)(clean ? add_clean(1.0, rounds) : add_up(1.0, rounds));
}

/* ---- stores ---- */

static APART void burst(char *memory, size_t size, uint64_t rounds)
{
	size_t at = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		*(volatile uint64_t *)(memory + at) = i;
		at = (at + 9 * LINE) & (size - 1);
	}
}

static void store_burst(uint64_t rounds, int clean)
{
	size_t size = clean ? 16 << 10 : 64 << 20;
	char *memory = get_memory(size, 1);
	begin();
	burst(memory, size, rounds);
}

/* Two halves are stored, and read as a whole. */
static APART uint64_t forward(volatile uint32_t *at, uint64_t rounds)
{
	uint64_t value = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		at[0] = (uint32_t)value;
		at[1] = (uint32_t)i;
		value = *(volatile uint64_t *)at + 1;
	}
	return value;
}

static APART uint64_t forward_clean(volatile uint64_t *at, uint64_t rounds)
{
	uint64_t value = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		at[0] = value;
		at[1] = i;
		value = at[0] + 1;
	}
	return value;
}

static void forwarding(uint64_t rounds, int clean)
{
	static _Alignas(64) uint64_t memory[8];
	begin();
	sink = clean ? forward_clean(memory, rounds) : forward((volatile uint32_t *)memory, rounds);
}

static APART uint64_t count_up(uint64_t *counter, uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		sum += __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
		sum ^= i;
	}
	return sum;
}

static APART uint64_t count_clean(volatile uint64_t *counter, uint64_t rounds)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t old = *counter;
		*counter = old + 1;
		sum += old;
		sum ^= i;
	}
	return sum;
}

static void atomic(uint64_t rounds, int clean)
{
	static _Alignas(64) uint64_t counter[8];
	begin();
	sink = clean ? count_clean(counter, rounds) : count_up(counter, rounds);
}

struct sharer {
	volatile uint64_t *counter;
	uint64_t rounds;
};

/* Its own words of a line whose other words the other thread has: the even and the odd ones. */
static APART void *share(void *context)
{
	struct sharer *s = context;
	volatile uint64_t *words = s->counter;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < s->rounds; i++) {
		words[0] = words[2] + i;
		sum += words[4];
		words[2] = sum;
	}
	return NULL;
}

static void false_sharing(uint64_t rounds, int clean)
{
	static _Alignas(4096) uint64_t counters[1024];
	struct sharer a = {&counters[0], rounds}, b = {&counters[clean ? 512 : 1], rounds};
	pthread_t thread;
	begin();
	if (pthread_create(&thread, NULL, share, &a))
		exit(1);
	share(&b);
	pthread_join(thread, NULL);
}

/* Two threads count, each for itself, in neighbouring words. */
static APART void *count_words(void *context)
{
	struct sharer *s = context;
	volatile uint64_t *counter = s->counter;
	for (uint64_t i = 0; i < s->rounds; i++) {
		if (i & 3)
			counter[0]++;
		else
			counter[0] += counter[16];
	}
	return NULL;
}

static void counters(uint64_t rounds, int clean)
{
	static _Alignas(4096) uint64_t words[1024];
	struct sharer a = {&words[0], rounds}, b = {&words[clean ? 512 : 3], rounds};
	pthread_t thread;
	begin();
	if (pthread_create(&thread, NULL, count_words, &a))
		exit(1);
	count_words(&b);
	pthread_join(thread, NULL);
}

/* ---- the kernel ---- */

/* A word of each page; the kernel gives out the pages as they are come to, unless it did before. */
static APART uint64_t touch(volatile char *memory, size_t size)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < size; i += LINE) {
		memory[i] = 1;
		sum += sum >> 3 ^ i;
	}
	return sum;
}

static void page_fault(uint64_t rounds, int clean)
{
	size_t size = 16 << 20;
	char *memory = get_memory(size, 0);
	begin();
	while (rounds > size / LINE) {
		if (!clean)
			madvise(memory, size, MADV_DONTNEED);
		sink += touch(memory, size);
		rounds -= size / LINE;
	}
}

/* ---- the command ---- */

static const struct {
	const char *name;
	void (*run)(uint64_t rounds, int clean);
} causes[] = {
	{"chase-l2", chase_l2},       {"chase-l3", chase_l3},
	{"chase-dram", chase_dram},   {"tlb-stride", tlb_stride},
	{"column", column},           {"random-branch", random_branch},
	{"rare-branch", rare_branch}, {"cold-code", cold_code},
	{"division", division},       {"dependency", dependency},
	{"store-burst", store_burst}, {"forwarding", forwarding},
	{"atomic", atomic},           {"false-sharing", false_sharing},
	{"counters", counters},       {"page-fault", page_fault},
};

int main(int argc, char **argv)
{
	int clean = argc == 4 && !strcmp(argv[1], "clean");
	const char *name = argc > 1 + clean ? argv[1 + clean] : "";
	uint64_t rounds = argc > 2 + clean ? strtoull(argv[2 + clean], NULL, 10) : 0;
	for (size_t i = 0; rounds && i < sizeof causes / sizeof *causes; i++) {
		if (strcmp(name, causes[i].name))
			continue;
		causes[i].run(rounds, clean);
		printf("%llu rounds, %.0f ns\n", (unsigned long long)rounds, cpu_ns() - began);
		return 0;
	}
	fprintf(stderr, "stalls [clean] CAUSE ROUNDS, where CAUSE is one of:\n");
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		fprintf(stderr, "  %s\n", causes[i].name);
	return 2;
}
