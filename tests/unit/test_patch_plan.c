/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of patches, for both CPUs. Small functions are put into programs of their own, as they are and with the plan
 * carried out, and both are run: on this CPU or by an emulator. They must compute the same, with all registers and flags that
 * their callers see, and each call must have been counted.
 *
 * In such a program, all is at fixed places: code that calls the function 20 times and writes 16 bytes (the counter, and a
 * sum of what came back), the function, a helper that it may call, data that it may read, the counter, the island.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patch/plan.h"

#define BASE 0x400000u
#define START 0x100u
#define FUNCTION 0x200u
#define HELPER 0x300u
#define DATA 0x380u
#define COUNTER 0x3f0u
#define ISLAND 0x400u
#define WORD 0x600u
#define SIZE 0x800u
#define CALLS 20u
#define PAGE 4096u

struct snippet {
	const char *what;
	enum patch_refusal refusal;
	size_t size;
	uint8_t code[64];
};

/* clang-format off */
static const uint8_t start_x86_64[] = {0x31, 0xdb, 0x45, 0x31, 0xe4, 0x44, 0x89, 0xe7, 0x4a, 0x8d, 0x34, 0xe5, 0x64, 0x00, 0x00, 0x00, 0xb9, 0x0b, 0x00, 0x00, 0x00, 0xba, 0x0c, 0x00, 0x00, 0x00, 0x41, 0xb8, 0x0d, 0x00, 0x00, 0x00, 0x41, 0xb9, 0x0e, 0x00, 0x00, 0x00, 0x41, 0xba, 0x0f, 0x00, 0x00, 0x00, 0x41, 0xbb, 0x10, 0x00, 0x00, 0x00, 0x31, 0xc0, 0xf9, 0xe8, 0xc6, 0x00, 0x00, 0x00, 0x48, 0x83, 0xd0, 0x00, 0x48, 0x6b, 0xdb, 0x1f, 0x48, 0x01, 0xc3, 0x48, 0x01, 0xcb, 0x48, 0x01, 0xd3, 0x4c, 0x01, 0xc3, 0x4c, 0x01, 0xcb, 0x4c, 0x01, 0xd3, 0x4c, 0x01, 0xdb, 0x48, 0x01, 0xfb, 0x48, 0x01, 0xf3, 0x49, 0xff, 0xc4, 0x49, 0x83, 0xfc, 0x14, 0x75, 0x9f, 0x48, 0x89, 0x1c, 0x25, 0xf8, 0x03, 0x40, 0x00, 0xb8, 0x01, 0x00, 0x00, 0x00, 0xbf, 0x01, 0x00, 0x00, 0x00, 0xbe, 0xf0, 0x03, 0x40, 0x00, 0xba, 0x10, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xb8, 0x3c, 0x00, 0x00, 0x00, 0x31, 0xff, 0x0f, 0x05};
static const struct snippet snippets_x86_64[] = {
	{"pushes", PATCH_NONE, 10, {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}},
	{"pushes a new register", PATCH_NONE, 14, {0x41, 0x54, 0x4c, 0x8d, 0x24, 0x37, 0x90, 0x90, 0x4c, 0x89, 0xe0, 0x41, 0x5c, 0xc3}},
	{"makes room on the stack", PATCH_NONE, 20, {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x3c, 0x24, 0x90, 0x48, 0x8b, 0x04, 0x24, 0x48, 0x83, 0xc4, 0x18, 0x90, 0x90, 0xc3}},
	{"sets a register to zero", PATCH_NONE, 12, {0x31, 0xc0, 0x48, 0x01, 0xf8, 0x48, 0x01, 0xf0, 0x48, 0x11, 0xc8, 0xc3}},
	{"changes its argument", PATCH_NONE, 12, {0x48, 0xff, 0xc7, 0x48, 0x01, 0xf7, 0x48, 0x89, 0xf8, 0x90, 0x90, 0xc3}},
	{"reads what it overwrites", PATCH_NONE, 12, {0x48, 0x8d, 0x3c, 0x3f, 0x48, 0x01, 0xf7, 0x48, 0x89, 0xf8, 0x90, 0xc3}},
	{"reads memory near by", PATCH_NONE, 11, {0x48, 0x8b, 0x05, 0x79, 0x01, 0x00, 0x00, 0x48, 0x01, 0xf8, 0xc3}},
	{"takes an address", PATCH_NONE, 13, {0x48, 0x8d, 0x05, 0x79, 0x01, 0x00, 0x00, 0x8b, 0x00, 0x48, 0x01, 0xf0, 0xc3}},
	{"compares memory with a number", PATCH_NONE, 17, {0x83, 0x3d, 0x79, 0x01, 0x00, 0x00, 0x05, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0x48, 0x01, 0xf8, 0xc3}},
	{"adds to its argument", PATCH_NONE, 12, {0x48, 0x83, 0xc7, 0x05, 0x48, 0x11, 0xf7, 0x48, 0x89, 0xf8, 0x90, 0xc3}},
	{"writes below its stack", PATCH_NONE, 14, {0x48, 0x89, 0x7c, 0x24, 0xf0, 0x48, 0x8b, 0x44, 0x24, 0xf0, 0x48, 0x01, 0xf0, 0xc3}},
	{"begins with a long number", PATCH_NONE, 16, {0xba, 0x02, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x04, 0x37, 0x48, 0x01, 0xd0, 0x90, 0x90, 0x90, 0xc3}},
	{"changes what is the caller's", PATCH_NONE, 14, {0x48, 0xff, 0xc3, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xcb, 0x90, 0x90, 0x90, 0x90, 0xc3}},
	{"branches", PATCH_NONE, 17, {0x40, 0xf6, 0xc7, 0x01, 0x74, 0x06, 0xb8, 0x07, 0x00, 0x00, 0x00, 0xc3, 0x48, 0x8d, 0x46, 0x02, 0xc3}},
	{"branches far", PATCH_NONE, 20, {0x40, 0x84, 0xff, 0x0f, 0x84, 0x06, 0x00, 0x00, 0x00, 0xb8, 0x07, 0x00, 0x00, 0x00, 0xc3, 0x48, 0x8d, 0x46, 0x02, 0xc3}},
	{"jumps", PATCH_NONE, 11, {0x48, 0x89, 0xf7, 0xeb, 0x01, 0x90, 0x48, 0x8d, 0x47, 0x09, 0xc3}},
	{"tail-calls", PATCH_NONE, 5, {0xe9, 0xfb, 0x00, 0x00, 0x00}},
	{"calls at once", PATCH_NONE, 9, {0xe8, 0xfb, 0x00, 0x00, 0x00, 0x48, 0xff, 0xc0, 0xc3}},
	{"calls behind endbr64", PATCH_NONE, 18, {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0xe8, 0xf3, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3}},
	{"uses the flags of its caller", PATCH_NONE, 8, {0x48, 0x83, 0xd7, 0x00, 0x48, 0x89, 0xf8, 0xc3}},
	{"uses the registers of its caller", PATCH_NONE, 10, {0x4c, 0x89, 0xd8, 0x4c, 0x01, 0xd0, 0x48, 0x01, 0xc8, 0xc3}},
	{"returns within the window", PATCH_TOO_SMALL, 3, {0x31, 0xc0, 0xc3}},
	{"ends within the window", PATCH_TOO_SMALL, 3, {0x48, 0x89, 0xf0}},
	{"loops at its beginning", PATCH_JUMPED_INTO, 10, {0xff, 0xcf, 0x75, 0xfc, 0xb8, 0x03, 0x00, 0x00, 0x00, 0xc3}},
	{"calls through memory", PATCH_UNKNOWN, 11, {0x41, 0x57, 0xff, 0x15, 0x78, 0x01, 0x00, 0x00, 0x41, 0x5f, 0xc3}},
	{"calls before the end of the window", PATCH_TOO_SMALL, 7, {0x66, 0xc3, 0xe8, 0xf9, 0x00, 0x00, 0x00}},
	{"has a jump without a long form", PATCH_UNKNOWN, 6, {0xe3, 0x03, 0x90, 0x90, 0x90, 0xc3}},
	{"is no code", PATCH_UNKNOWN, 5, {0x06, 0x06, 0x06, 0x06, 0x06}},
};
static const uint8_t start_aarch64[] = {0x13, 0x00, 0x80, 0xd2, 0x14, 0x00, 0x80, 0xd2, 0x15, 0x08, 0xa0, 0xd2, 0x15, 0x7e, 0x80, 0xf2, 0xe0, 0x03, 0x14, 0xaa, 0x81, 0xf2, 0x7d, 0xd3, 0x21, 0x04, 0x7d, 0x92, 0xc2, 0x0c, 0x80, 0xd2, 0xe3, 0x0c, 0x80, 0xd2, 0x04, 0x0d, 0x80, 0xd2, 0x25, 0x0d, 0x80, 0xd2, 0x46, 0x0d, 0x80, 0xd2, 0x67, 0x0d, 0x80, 0xd2, 0x88, 0x0d, 0x80, 0xd2, 0xa9, 0x0d, 0x80, 0xd2, 0xca, 0x0d, 0x80, 0xd2, 0xeb, 0x0d, 0x80, 0xd2, 0x0c, 0x0e, 0x80, 0xd2, 0x2d, 0x0e, 0x80, 0xd2, 0x4e, 0x0e, 0x80, 0xd2, 0x6f, 0x0e, 0x80, 0xd2, 0x9f, 0x2a, 0x00, 0xf1, 0x5b, 0x00, 0x00, 0x10, 0x29, 0x00, 0x00, 0x94, 0x73, 0x16, 0x13, 0x8b, 0x73, 0x02, 0x00, 0x8b, 0x73, 0x02, 0x01, 0x8b, 0x73, 0x02, 0x02, 0x8b, 0x73, 0x02, 0x03, 0x8b, 0x73, 0x02, 0x04, 0x8b, 0x73, 0x02, 0x05, 0x8b, 0x73, 0x02, 0x06, 0x8b, 0x73, 0x02, 0x07, 0x8b, 0x73, 0x02, 0x08, 0x8b, 0x73, 0x02, 0x09, 0x8b, 0x73, 0x02, 0x0a, 0x8b, 0x73, 0x02, 0x0b, 0x8b, 0x73, 0x02, 0x0c, 0x8b, 0x73, 0x02, 0x0d, 0x8b, 0x73, 0x02, 0x0e, 0x8b, 0x73, 0x02, 0x0f, 0x8b, 0xe2, 0x37, 0x9f, 0x9a, 0x73, 0x02, 0x02, 0x8b, 0x94, 0x06, 0x00, 0x91, 0x9f, 0x52, 0x00, 0xf1, 0xe1, 0xfa, 0xff, 0x54, 0xb3, 0x06, 0x00, 0xf9, 0x08, 0x08, 0x80, 0xd2, 0x20, 0x00, 0x80, 0xd2, 0xe1, 0x03, 0x15, 0xaa, 0x02, 0x02, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4, 0xa8, 0x0b, 0x80, 0xd2, 0x00, 0x00, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
static const struct snippet snippets_aarch64[] = {
	{"pushes", PATCH_NONE, 16, {0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x00, 0x01, 0x8b, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
	{"takes an address", PATCH_NONE, 12, {0x00, 0x0c, 0x00, 0x10, 0x00, 0x00, 0x40, 0xf9, 0xc0, 0x03, 0x5f, 0xd6}},
	{"takes the address of a page", PATCH_NONE, 20, {0x1f, 0x20, 0x03, 0xd5, 0xe0, 0x0b, 0x00, 0x10, 0x00, 0x00, 0x40, 0xf9, 0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"reads a word near by", PATCH_NONE, 12, {0x00, 0x0c, 0x00, 0x58, 0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"reads half a word", PATCH_NONE, 12, {0x00, 0x0c, 0x00, 0x18, 0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"reads half a signed word", PATCH_NONE, 8, {0x00, 0x0c, 0x00, 0x98, 0xc0, 0x03, 0x5f, 0xd6}},
	{"reads a vector", PATCH_NONE, 16, {0x00, 0x0c, 0x00, 0x9c, 0x00, 0x3c, 0x18, 0x4e, 0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"reads a float", PATCH_NONE, 12, {0x00, 0x0c, 0x00, 0x5c, 0x00, 0x00, 0x66, 0x9e, 0xc0, 0x03, 0x5f, 0xd6}},
	{"prefetches", PATCH_NONE, 12, {0x00, 0x0c, 0x00, 0xd8, 0xe0, 0x03, 0x01, 0xaa, 0xc0, 0x03, 0x5f, 0xd6}},
	{"branches if zero", PATCH_NONE, 20, {0x60, 0x00, 0x00, 0xb4, 0x20, 0x14, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6, 0x20, 0x01, 0x80, 0xd2, 0xc0, 0x03, 0x5f, 0xd6}},
	{"branches if not zero", PATCH_NONE, 20, {0x61, 0x00, 0x00, 0x35, 0x20, 0x14, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6, 0x20, 0x01, 0x80, 0xd2, 0xc0, 0x03, 0x5f, 0xd6}},
	{"branches by a bit", PATCH_NONE, 20, {0x60, 0x00, 0x00, 0x37, 0x20, 0x14, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6, 0x20, 0x01, 0x80, 0xd2, 0xc0, 0x03, 0x5f, 0xd6}},
	{"branches by flags of its caller", PATCH_NONE, 20, {0x62, 0x00, 0x00, 0x54, 0x20, 0x14, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6, 0x20, 0x01, 0x80, 0xd2, 0xc0, 0x03, 0x5f, 0xd6}},
	{"tail-calls", PATCH_NONE, 4, {0x40, 0x00, 0x00, 0x14}},
	{"calls at once", PATCH_NONE, 12, {0x40, 0x00, 0x00, 0x94, 0x00, 0x04, 0x00, 0x91, 0x60, 0x03, 0x1f, 0xd6}},
	{"begins with bti", PATCH_NONE, 12, {0x5f, 0x24, 0x03, 0xd5, 0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"signs its return address", PATCH_NONE, 24, {0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x00, 0x01, 0x8b, 0xfd, 0x7b, 0xc1, 0xa8, 0xbf, 0x23, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}},
	{"returns at once", PATCH_NONE, 4, {0xc0, 0x03, 0x5f, 0xd6}},
	{"uses the registers of its caller", PATCH_NONE, 12, {0xe0, 0x01, 0x0e, 0x8b, 0x00, 0x00, 0x09, 0x8b, 0xc0, 0x03, 0x5f, 0xd6}},
	{"is a loop", PATCH_JUMPED_INTO, 4, {0x00, 0x00, 0x00, 0x14}},
	{"calls through a register", PATCH_UNKNOWN, 4, {0x20, 0x00, 0x3f, 0xd6}},
	{"is no code", PATCH_UNKNOWN, 4, {0x00, 0x00, 0x00, 0x00}},
	{"has only a landing pad", PATCH_TOO_SMALL, 4, {0x5f, 0x24, 0x03, 0xd5}},
};
/* clang-format on */

struct cpu {
	const struct patch_cpu *patch;
	const char *emulator;
	bool native;
	const uint8_t *start;
	size_t start_size;
	const uint8_t *helper;
	size_t helper_size;
	const struct snippet *snippets;
	size_t count;
};

static const uint8_t helper_x86_64[] = {0x48, 0x8d, 0x47, 0x03, 0xc3}; /* lea 3(%rdi),%rax; ret */
static const uint8_t helper_aarch64[] = {0x00, 0x0c, 0x00, 0x91,
					 0xc0, 0x03, 0x5f, 0xd6}; /* add x0,x0,#3; ret */

#if defined(__x86_64__)
#define IS_X86_64 true
#else
#define IS_X86_64 false
#endif

#define COUNT(array) (sizeof array / sizeof *array)
static const struct cpu cpus[] = {
	{&patch_x86_64, "qemu-x86_64", IS_X86_64, start_x86_64, sizeof start_x86_64, helper_x86_64,
	 sizeof helper_x86_64, snippets_x86_64, COUNT(snippets_x86_64)},
	{&patch_aarch64, "qemu-aarch64", !IS_X86_64, start_aarch64, sizeof start_aarch64,
	 helper_aarch64, sizeof helper_aarch64, snippets_aarch64, COUNT(snippets_aarch64)},
};

/* ---- plans ---- */

static enum patch_refusal make(const struct cpu *cpu, const struct snippet *s, uint64_t island,
			       struct patch_plan *plan)
{
	const struct patch_input input = {.code = s->code,
					  .size = s->size,
					  .address = BASE + FUNCTION,
					  .island = island,
					  .counter = BASE + COUNTER};
	return patch_plan(cpu->patch, &input, plan);
}

static void refusals_are_right(void **state)
{
	(void)state;
	for (size_t c = 0; c < COUNT(cpus); c++)
		for (size_t i = 0; i < cpus[c].count; i++) {
			const struct snippet *s = &cpus[c].snippets[i];
			struct patch_plan plan;
			enum patch_refusal got = make(&cpus[c], s, BASE + ISLAND, &plan);
			if (got != s->refusal)
				fail_msg("a function that %s: %s", s->what,
					 patch_refusal_text(got));
			if (got)
				continue;
			size_t at = plan.at - (BASE + FUNCTION);
			assert_true(plan.window >= plan.length && plan.step_count >= 1);
			assert_memory_equal(plan.original, s->code + at, plan.window);
			assert_memory_not_equal(plan.jump, s->code + at, plan.length);
			assert_int_equal(plan.steps[0].from, 0);
		}
}

/* A jump from elsewhere in the function, to the beginning of the window, into it, and behind it. */
static void jumps_into_the_window_are_seen(void **state)
{
	(void)state;
	for (size_t c = 0; c < COUNT(cpus); c++) {
		const struct snippet *s = &cpus[c].snippets[0];
		uint64_t target = BASE + FUNCTION;
		struct patch_input input = {.code = s->code,
					    .size = s->size,
					    .address = BASE + FUNCTION,
					    .island = BASE + ISLAND,
					    .targets = &target,
					    .target_count = 1};
		struct patch_plan plan;
		assert_int_equal(patch_plan(cpus[c].patch, &input, &plan), PATCH_JUMPED_INTO);
		target += plan.window - 1;
		assert_int_equal(patch_plan(cpus[c].patch, &input, &plan), PATCH_JUMPED_INTO);
		target += 1;
		assert_int_equal(patch_plan(cpus[c].patch, &input, &plan), PATCH_NONE);
	}
}

static void far_islands_are_refused(void **state)
{
	(void)state;
	for (size_t c = 0; c < COUNT(cpus); c++) {
		struct patch_plan plan;
		const struct snippet *s = &cpus[c].snippets[0];
		uint64_t reach = cpus[c].patch->reach;
		assert_int_equal(make(&cpus[c], s, BASE + FUNCTION + reach, &plan),
				 PATCH_OUT_OF_REACH);
		assert_int_equal(make(&cpus[c], s, BASE + FUNCTION + 2 * reach, &plan),
				 PATCH_OUT_OF_REACH);
		assert_int_equal(
			patch_plan(cpus[c].patch,
				   &(struct patch_input){.code = s->code,
							 .size = s->size,
							 .address = 1ull << 40,
							 .island = (1ull << 40) + reach - 4096},
				   &plan),
			PATCH_NONE);
	}
}

/* The kernel writes a page at a time, and whoever writes may be killed in between. */
static void jumps_are_in_one_page(void **state)
{
	unsigned refused[COUNT(cpus)] = {0}, planned[COUNT(cpus)] = {0};
	(void)state;
	for (size_t c = 0; c < COUNT(cpus); c++)
		for (uint64_t at = BASE + PAGE - 32; at < BASE + PAGE + 16; at += c ? 4 : 1) {
			const struct snippet *s = &cpus[c].snippets[0];
			const struct patch_input input = {.code = s->code,
							  .size = s->size,
							  .address = at,
							  .island = BASE + ISLAND,
							  .through = BASE + WORD};
			struct patch_plan plan;
			enum patch_refusal refusal = patch_plan(cpus[c].patch, &input, &plan);
			planned[c] += !refusal;
			refused[c] += refusal == PATCH_TWO_PAGES;
			if (!refusal)
				assert_int_equal(plan.at / PAGE,
						 (plan.at + plan.length - 1) / PAGE);
			else
				assert_int_equal(refusal, PATCH_TWO_PAGES);
		}
	/* The jump may be at the beginning of the function, or behind its first instruction, which has one byte. */
	assert_int_equal(refused[0], 3);
	assert_int_equal(planned[0], 48 - 3);
	assert_int_equal(refused[1], 0);
	assert_int_equal(planned[1], 48 / 4);
}

/* Nothing that bytes say leads out of bounds. */
static void any_bytes_can_be_planned(void **state)
{
	uint64_t random = 88172645463325252ull;
	(void)state;
	for (int i = 0; i < 200000; i++) {
		struct snippet s = {.size = (size_t)i % 33};
		for (size_t k = 0; k < s.size; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			s.code[k] = (uint8_t)random;
		}
		uint8_t *exact = malloc(s.size + 1);
		memcpy(exact, s.code, s.size);
		for (size_t c = 0; c < COUNT(cpus); c++) {
			const struct patch_input input = {.code = exact,
							  .size = s.size,
							  .address = BASE + FUNCTION,
							  .island = BASE + ISLAND,
							  .counter = BASE + COUNTER};
			struct patch_input through = input;
			struct patch_plan plan;
			through.counter = 0;
			through.through = BASE + WORD;
			for (int k = 0; k < 2; k++) {
				if (patch_plan(cpus[c].patch, k ? &through : &input, &plan))
					continue;
				assert_true(plan.island_size <= PATCH_ISLAND_MAX);
				assert_true(plan.body <= plan.island_size);
				assert_true(plan.at + plan.length <= BASE + FUNCTION + s.size);
			}
		}
		free(exact);
	}
}

/* ---- programs ---- */

static void put_headers(uint8_t *bytes, uint16_t machine)
{
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = machine,
			   .e_version = EV_CURRENT,
			   .e_entry = BASE + START,
			   .e_phoff = sizeof head,
			   .e_ehsize = sizeof head,
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1};
	const Elf64_Phdr segment = {.p_type = PT_LOAD,
				    .p_flags = PF_R | PF_W | PF_X,
				    .p_vaddr = BASE,
				    .p_paddr = BASE,
				    .p_filesz = SIZE,
				    .p_memsz = SIZE,
				    .p_align = 0x1000};
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, &segment, sizeof segment);
}

static void put_program(const struct cpu *cpu, const struct snippet *s,
			const struct patch_plan *plan, uint8_t bytes[SIZE])
{
	static const uint64_t data[] = {0xfedcba9880000005ull, 0x123456789abcdef0ull};
	memset(bytes, 0, SIZE);
	put_headers(bytes, cpu->patch->elf_machine);
	assert_true(cpu->start_size <= FUNCTION - START);
	memcpy(bytes + START, cpu->start, cpu->start_size);
	memcpy(bytes + FUNCTION, s->code, s->size);
	memcpy(bytes + HELPER, cpu->helper, cpu->helper_size);
	memcpy(bytes + DATA, data, sizeof data);
	if (!plan)
		return;
	memcpy(bytes + (plan->at - BASE), plan->jump, plan->length);
	memcpy(bytes + ISLAND, plan->island, plan->island_size);
}

static bool has_emulator(const struct cpu *cpu)
{
	char command[128];
	snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", cpu->emulator);
	return cpu->native || system(command) == 0;
}

/* Runs a program and reads what it writes. False: it died. */
static bool run(const struct cpu *cpu, const uint8_t bytes[SIZE], uint64_t out[2])
{
	char path[] = "/tmp/culprit-patch-XXXXXX", command[128];
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, bytes, SIZE) == SIZE && !fchmod(fd, 0700));
	close(fd);
	snprintf(command, sizeof command, "exec %s%s%s", cpu->native ? "" : cpu->emulator,
		 cpu->native ? "" : " ", path);
	FILE *pipe = popen(command, "r");
	size_t got = pipe ? fread(out, sizeof *out, 2, pipe) : 0;
	bool good = pipe && pclose(pipe) == 0 && got == 2;
	unlink(path);
	return good;
}

static void moved_code_does_the_same(void **state)
{
	const struct cpu *cpu = *state;
	if (!has_emulator(cpu))
		skip();
	for (size_t i = 0; i < cpu->count; i++) {
		const struct snippet *s = &cpu->snippets[i];
		uint8_t bytes[SIZE];
		uint64_t before[2], after[2];
		struct patch_plan plan;
		if (make(cpu, s, BASE + ISLAND, &plan))
			continue;
		put_program(cpu, s, NULL, bytes);
		if (!run(cpu, bytes, before))
			fail_msg("a function that %s: dies by itself", s->what);
		put_program(cpu, s, &plan, bytes);
		if (!run(cpu, bytes, after))
			fail_msg("a function that %s: dies of its patch", s->what);
		assert_int_equal(before[0], 0);
		if (after[0] != CALLS || after[1] != before[1])
			fail_msg("a function that %s: %u calls counted, and another result: %d",
				 s->what, (unsigned)after[0], after[1] != before[1]);
	}
}

/* ---- calls that go through other code ---- */

#define THROUGH_ISLAND 0x480u
#define OTHER 0x610u
#define STEPPED 0x640u
#define CALL_AT 53u /* where the call of the function is in start_x86_64 */

static enum patch_refusal make_through(const struct snippet *s, struct patch_plan *plan)
{
	const struct patch_input input = {.code = s->code,
					  .size = s->size,
					  .address = BASE + FUNCTION,
					  .island = BASE + THROUGH_ISLAND,
					  .through = BASE + WORD};
	return patch_plan(&patch_x86_64, &input, plan);
}

/* lea 8(%rsp), %rsp; pushfq; incq counter; popfq; jmp body */
static void put_other(const struct patch_plan *plan, uint8_t bytes[SIZE])
{
	static const uint8_t other[] = {0x48,       0x8d, 0x64, 0x24, 0x08,           0x9c,
					0x48,       0xff, 0x04, 0x25, COUNTER & 0xff, COUNTER >> 8,
					BASE >> 16, 0x00, 0x9d, 0xe9};
	const uint64_t word = BASE + OTHER;
	const uint32_t distance = THROUGH_ISLAND + (uint32_t)plan->body -
				  (OTHER + (uint32_t)sizeof other + 4);
	memcpy(bytes + WORD, &word, sizeof word);
	memcpy(bytes + OTHER, other, sizeof other);
	memcpy(bytes + OTHER + sizeof other, &distance, sizeof distance);
	memcpy(bytes + (plan->at - BASE), plan->jump, plan->length);
	memcpy(bytes + THROUGH_ISLAND, plan->island, plan->island_size);
}

/* Where the first instruction has the distance to its operand in memory: lea, mov, cmp; 0: nowhere. */
static unsigned distance_in(const uint8_t *code)
{
	if (code[0] == 0x48 && (code[1] == 0x8b || code[1] == 0x8d) && code[2] == 0x05)
		return 3;
	return code[0] == 0x83 && code[1] == 0x3d ? 2 : 0;
}

/* As with an uprobe at the first instruction: its first byte is a breakpoint, the instruction is executed elsewhere, and it goes on
   behind it. */
static void put_breakpoint(const struct snippet *s, const struct patch_plan *plan,
			   uint8_t bytes[SIZE])
{
	uint32_t size = (uint32_t)(plan->at - BASE - FUNCTION);
	const uint32_t call = STEPPED - (START + CALL_AT + 5);
	const uint32_t back = FUNCTION + size - (STEPPED + size + 5);
	assert_int_equal(bytes[START + CALL_AT], 0xe8);
	memcpy(bytes + START + CALL_AT + 1, &call, sizeof call);
	memcpy(bytes + STEPPED, s->code, size);
	unsigned to = distance_in(s->code);
	uint32_t distance;
	if (to) {
		memcpy(&distance, s->code + to, sizeof distance);
		distance -= STEPPED - FUNCTION;
		memcpy(bytes + STEPPED + to, &distance, sizeof distance);
	}
	bytes[STEPPED + size] = 0xe9;
	memcpy(bytes + STEPPED + size + 1, &back, sizeof back);
	bytes[FUNCTION] = 0xcc;
}

static bool is_among(const struct snippet *s, const char *const *names)
{
	while (*names && strcmp(*names, s->what))
		names++;
	return *names;
}

static void calls_can_have_a_breakpoint(void **state)
{
	static const char *const stays[] = {"pushes",
					    "makes room on the stack",
					    "sets a register to zero",
					    "changes its argument",
					    "takes an address",
					    "compares memory with a number",
					    "adds to its argument",
					    "begins with a long number",
					    NULL};
	static const char *const goes[] = {"changes what is the caller's", "writes below its stack",
					   "tail-calls", "calls at once", NULL};
	const struct cpu *cpu = &cpus[0];
	unsigned kept = 0;
	(void)state;
	if (!has_emulator(cpu))
		skip();
	for (size_t i = 0; i < cpu->count; i++) {
		const struct snippet *s = &cpu->snippets[i];
		uint8_t bytes[SIZE];
		uint64_t before[2], after[2];
		struct patch_plan plan;
		if (make_through(s, &plan))
			continue;
		/* When a breakpoint goes, the kernel makes the first byte that of the file. */
		assert_true(plan.at > BASE + FUNCTION || !is_among(s, stays));
		assert_true(plan.at == BASE + FUNCTION || !is_among(s, goes));
		bool landing = s->code[0] == 0xf3 && s->code[1] == 0x0f && s->code[2] == 0x1e;
		put_program(cpu, s, NULL, bytes);
		assert_true(run(cpu, bytes, before));
		for (int breakpoint = 0; breakpoint < 2; breakpoint++) {
			if (breakpoint && (landing || plan.at == BASE + FUNCTION))
				continue;
			kept += breakpoint;
			put_program(cpu, s, NULL, bytes);
			put_other(&plan, bytes);
			if (breakpoint)
				put_breakpoint(s, &plan, bytes);
			if (!run(cpu, bytes, after))
				fail_msg("a function that %s: dies%s", s->what,
					 breakpoint ? " of a breakpoint" : "");
			if (after[0] != CALLS || after[1] != before[1])
				fail_msg("a function that %s: %u calls counted%s", s->what,
					 (unsigned)after[0], breakpoint ? ", breakpoint" : "");
		}
	}
	assert_true(kept >= 3);
}

/* The island jumps to other code first, with the word before it, and that goes on at the body. */
static void islands_go_through_other_code(void **state)
{
	static const uint8_t x86_64[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55,
					 0x48, 0x89, 0xe5, 0x53, 0xc3};
	static const uint32_t aarch64[] = {0xd503233f, 0xd10043ff,
					   0xd65f03c0}, /* paciasp; sub; ret */
		wanted[] = {0x58ffffd0, 0x58ffff31, 0xd61f0220, 0xd503233f, 0xd10043ff};
	static const uint8_t through[] = {0xff, 0x35, 0xf2, 0xff, 0xff, 0xff,
					  0xff, 0x25, 0xdc, 0xff, 0xff, 0xff};
	struct patch_input input = {.code = x86_64,
				    .size = sizeof x86_64,
				    .address = 0x10000,
				    .island = 0x20018,
				    .through = 0x20000};
	struct patch_plan plan;
	(void)state;
	assert_int_equal(patch_plan(&patch_x86_64, &input, &plan), PATCH_NONE);
	assert_int_equal(plan.at, 0x10004);
	assert_int_equal(plan.body, sizeof through);
	assert_memory_equal(plan.island, through, sizeof through);
	assert_memory_equal(plan.island + plan.body, x86_64 + 4, 5);
	input.code = (const uint8_t *)aarch64;
	input.size = sizeof aarch64;
	assert_int_equal(patch_plan(&patch_aarch64, &input, &plan), PATCH_NONE);
	assert_int_equal(plan.at, 0x10004);
	assert_int_equal(plan.body, 12);
	assert_memory_equal(plan.island, wanted, sizeof wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_right),
		cmocka_unit_test(jumps_into_the_window_are_seen),
		cmocka_unit_test(far_islands_are_refused),
		cmocka_unit_test(jumps_are_in_one_page),
		cmocka_unit_test(any_bytes_can_be_planned),
		cmocka_unit_test(islands_go_through_other_code),
		cmocka_unit_test(calls_can_have_a_breakpoint),
		{"moved_code_does_the_same on x86-64", moved_code_does_the_same, NULL, NULL,
		 (void *)&cpus[0]},
		{"moved_code_does_the_same on aarch64", moved_code_does_the_same, NULL, NULL,
		 (void *)&cpus[1]},
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
