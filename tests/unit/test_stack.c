/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that were copied while the kernel was about to run a handler, or came back from it. */
#include "unit.h"

#include "cct/cct.h"
#include "harvest/stack.h"
#include "unwind/cpu.h"

#include <elf.h>
#include <string.h>

enum { WORDS = 256, MAX = 16 };

#define SP 0x7fff0000ull
#define PC 0x401234ull

static uint64_t stack[WORDS];

static bool read_stack(void *context, uint64_t address, uint64_t *out)
{
	(void)context;
	if (address < SP || address >= SP + sizeof stack)
		return false;
	memcpy(out, (const char *)stack + (address - SP), sizeof *out);
	return true;
}

/* Walks with no code at all known. */
static enum walk_end walk(uint16_t machine, bool in_kernel, uint64_t *keys, uint32_t *count)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(machine);
	const struct walk_reader reader = {read_stack, NULL};
	const struct stack_code code = {.in_kernel = in_kernel};
	uint64_t registers[32] = {0};
	registers[cpu->sp] = SP;
	return stack_walk(&code, machine, registers, PC, &reader, keys, MAX, count);
}

/* What a signal came with, and the registers of the program. */
static void make_signal_frame(uint16_t machine, uint64_t pc)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(machine);
	memset(stack, 0, sizeof stack);
	stack[0] = 0x10;
	stack[1] = 1; /* as if it had been called from there */
	stack[(cpu->call_pushes + cpu->signal_pc) / sizeof *stack] = pc;
}

static void between_program_and_handler_it_is_the_kernel(void **state)
{
	static const uint16_t machines[] = {EM_AARCH64, EM_X86_64};
	uint64_t keys[MAX];
	uint32_t count;
	(void)state;
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		make_signal_frame(machines[i], PC);
		assert_int_equal(walk(machines[i], true, keys, &count), WALK_COMPLETE);
		assert_int_equal(count, 1);
		assert_int_equal(cct_key_module(keys[0]), CCT_KERNEL);
	}
}

static void another_signals_frame_says_nothing(void **state)
{
	uint64_t keys[MAX];
	uint32_t count;
	(void)state;
	make_signal_frame(EM_AARCH64, PC + 4);
	assert_int_not_equal(walk(EM_AARCH64, true, keys, &count), WALK_COMPLETE);
	make_signal_frame(EM_AARCH64, PC); /* the thread was in its own code */
	assert_int_not_equal(walk(EM_AARCH64, false, keys, &count), WALK_COMPLETE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_program_and_handler_it_is_the_kernel),
		cmocka_unit_test(another_signals_frame_says_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
