/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the beginning of a function is replaced by a jump, without changing what the function does.
 *
 *    the function                       its island, within reach of the jump
 *       entry:  jump ---------------->     count a call
 *               (rest of the window)       the instructions of the window, so that they do the same here
 *       go on:  ...  <----------------     jump back
 *
 * The window is as many whole instructions as the jump needs room for: one on aarch64, at least five bytes on x86-64. An
 * instruction at which an indirect call must land (endbr64, bti, paciasp) stays in its place, and the window begins
 * behind it; on x86-64, so does the first instruction of calls that go through other code, if that is possible (plan_x86_64.c).
 * Instructions that depend on their own address are rewritten.
 *
 * A plan is made from bytes alone: nothing is read or written here. What cannot be patched is refused with a reason.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATCH_WINDOW_MAX 32u /* bytes */
#define PATCH_ISLAND_MAX 256u
#define PATCH_STEPS_MAX 8u
#define PATCH_FAR_MAX 16u

struct patch_input {
	const uint8_t *code; /* of the function, from its first instruction on */
	size_t size;         /* of the function */
	uint64_t address;    /* where it runs */
	uint64_t island;     /* where the island will be; a multiple of 4 */
	uint64_t counter;    /* a word that counts calls; 0: nothing is counted */
	/* A word with the address of code that the island jumps to instead, which goes on at the island's body. That code
	   gets the word right before the island: in x16, or on the stack. 0: there is none. */
	uint64_t through;
	const uint64_t *targets; /* where jumps of the function go to, in any order */
	size_t target_count;
};

struct patch_plan {
	uint64_t at;    /* where the window begins */
	uint8_t window; /* its bytes */
	uint8_t length; /* bytes of these that are replaced by the jump */
	uint8_t original[PATCH_WINDOW_MAX], jump[PATCH_WINDOW_MAX];
	uint8_t island[PATCH_ISLAND_MAX];
	size_t island_size;
	size_t body; /* bytes from the beginning of the island, to where the function goes on */
	/* The instructions of the window, and where they stand in the island: a thread that is about to execute one of
	   them can go on there. */
	struct {
		uint8_t from; /* bytes from `at` */
		uint16_t to;  /* bytes from the beginning of the island */
	} steps[PATCH_STEPS_MAX];
	size_t step_count;
};

enum patch_refusal {
	PATCH_NONE,
	PATCH_TOO_SMALL,   /* the function ends before the jump would */
	PATCH_JUMPED_INTO, /* a jump goes into the window, or to its beginning */
	PATCH_UNKNOWN,     /* bytes that are no instruction, or one that cannot be moved */
	PATCH_TWO_PAGES,   /* the jump would be in two pages, which are not written at once */
	PATCH_OUT_OF_REACH,
};

/* What depends on the CPU. */
struct patch_cpu {
	uint16_t elf_machine;
	uint64_t reach; /* how far an island may be from the function */
	enum patch_refusal (*plan)(const struct patch_input *input, struct patch_plan *out);
	/* Writes a jump to any address, which changes nothing that a function may rely on at its entry. Returns its size. */
	size_t (*far_jump)(uint64_t to, uint8_t out[PATCH_FAR_MAX]);
};

extern const struct patch_cpu patch_x86_64, patch_aarch64;

/* Returns the CPU with this ELF number; NULL: it is none of ours. */
const struct patch_cpu *patch_cpu_for(uint16_t elf_machine);
/* Makes a plan. If it is refused, *out means nothing. */
enum patch_refusal patch_plan(const struct patch_cpu *cpu, const struct patch_input *input,
			      struct patch_plan *out);
/* Says a refusal to people. */
const char *patch_refusal_text(enum patch_refusal refusal);
