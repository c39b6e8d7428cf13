/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over plain frames and signal frames, and how a walk ends. */
#include "walk_world.h"

#include <elf.h>

/* ---- frames, in x86-64's shapes ---- */

static void x86_three_frames(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(1); /* at a procedure's entry */
	w.file.rules[2] = x86_frame(4); /* rbp pushed, two words of locals */
	w.file.rules[2].fp = RECIPE_AT_CFA;
	w.file.rules[2].fp_offset = -16;
	w.file.rules[3].cfa = RECIPE_ROOT;
	w.stack[0] = RETURN(2);
	w.stack[3] = 0x1234; /* saved rbp */
	w.stack[4] = RETURN(3);
	world_start(&w, PC(1));
	assert_true(w.walk.exact);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 8, w.registers[RBP]);
	assert_false(w.walk.exact);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 40, 0x1234);
	assert_ptr_equal(w.walk.recipe, &w.file.rules[2]);
	assert_int_equal(step(&w), WALK_COMPLETE);
	expect_at(&w, RETURN(3), STACK + 40, 0x1234); /* it stays on the root */
}

static void x86_by_frame_pointer(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBP,
					  .cfa_offset = 16,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .fp = RECIPE_AT_FP,
					  .fp_offset = 0};
	w.file.rules[2] = w.file.rules[1];
	w.registers[RBP] = STACK + 80;
	w.stack[10] = STACK + 160;
	w.stack[11] = RETURN(2);
	w.stack[20] = 77;
	w.stack[21] = RETURN(3);
	world_start(&w, PC(1) + 7);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 96, STACK + 160);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 176, 77);
}

/* The PLT's lazy resolver hangs its frame on rbx; a realigned one on a saved pointer. */
static void x86_extra_register_and_deref(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBX,
					  .cfa_offset = 24,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .extra = RECIPE_AT_SP,
					  .extra_offset = 16};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_DEREF,
					  .cfa_reg = RBX,
					  .cfa_offset = -16,
					  .cfa_add = 8,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8};
	w.registers[RBX] = STACK + 64;
	w.stack[2] = STACK + 200; /* rbx of the caller */
	w.stack[10] = RETURN(2);
	w.stack[23] = STACK + 400; /* at STACK + 200 - 16 */
	w.stack[50] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	assert_int_equal(w.walk.extra, STACK + 200);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 408, w.registers[RBP]);
}

/* Other registers than the three that are carried are known in the first frame only. */
static void other_registers_in_the_first_frame(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(0);
	w.file.rules[1].cfa_reg = 10;
	w.file.rules[1].cfa_offset = 16;
	w.file.rules[1].fp = RECIPE_IN_REG;
	w.file.rules[1].fp_offset = 12;
	w.registers[10] = STACK + 32;
	w.stack[5] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(1), STACK + 48, w.registers[12]);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	expect_at(&w, RETURN(1), STACK + 48, w.registers[12]);
}

static void lost_register_is_harmful_only_when_used(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].fp = RECIPE_LOST;
	w.file.rules[2] = x86_frame(2);
	w.file.rules[3] = x86_frame(2);
	w.file.rules[3].cfa_reg = RBP;
	w.stack[1] = RETURN(2);
	w.stack[3] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost);
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost); /* unchanged: still lost */
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* And where it is known again, it may be used. */
	w.file.rules[2].fp = RECIPE_AT_CFA;
	w.file.rules[2].fp_offset = 64;
	w.stack[12] = STACK + 128;
	w.stack[17] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_false(w.walk.fp_lost);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(4), STACK + 144, STACK + 128);
}

/* A saved register that cannot be read is lost; the walk goes on without. */
static void unreadable_register_is_lost(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].fp = RECIPE_AT_CFA;
	w.file.rules[1].fp_offset = 1 << 20;
	w.file.rules[1].extra = RECIPE_AT_CFA;
	w.file.rules[1].extra_offset = -(1 << 20);
	w.stack[1] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost && w.walk.extra_lost);
}

/* ---- frames, in aarch64's shapes ---- */

static struct recipe a64_frame(int bytes)
{
	return (struct recipe){.cfa = RECIPE_REG,
			       .cfa_reg = 31,
			       .cfa_offset = bytes,
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = 8 - bytes,
			       .fp = RECIPE_AT_CFA,
			       .fp_offset = -bytes};
}

static void a64_leaf_in_link_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.file.rules[2] = a64_frame(32);
	w.registers[X29] = STACK;
	w.registers[X30] = RETURN(2);
	w.stack[0] = STACK + 96;
	w.stack[1] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK, STACK); /* nothing was pushed: SP stays */
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 32, STACK + 96);
}

/* Only the innermost frame can have its return address in the link register. */
static void a64_no_leaf_in_the_middle(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .cfa_offset = 16};
	w.registers[X30] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.registers[X30] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* Return addresses may carry a signature. */
static void a64_signed_return_address(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = a64_frame(16);
	w.stack[1] = RETURN(2) | UINT64_C(0xabcd) << 48;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.registers[X30] = RETURN(3) | UINT64_C(0x1a) << 52;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
}

/* Outlined code is called with the return address of its caller in another register. */
static void a64_return_address_in_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 9};
	w.registers[9] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK, w.registers[X29]);
	/* A register that does not exist is none. */
	w.file.rules[1].ra_offset = 32;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1].ra_offset = -1;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

static void vector_frames_are_complex(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = a64_frame(16);
	w.file.rules[1].cfa_vg = 8;
	w.file.rules[2].cfa = RECIPE_COMPLEX;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_COMPLEX);
	world_start(&w, PC(2));
	assert_int_equal(step(&w), WALK_COMPLEX);
}

/* ---- signal frames ---- */

/* The kernel's frame, with what the interrupted code had in its registers. */
static void push_signal_frame(struct world *w, unsigned word, uint64_t pc, uint64_t sp)
{
	uint64_t at = 8 * word;
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		if (w->cpu->signal_registers[i])
			w->stack[(at + w->cpu->signal_registers[i]) / 8] = 0x51600 + i;
	w->stack[(at + w->cpu->signal_registers[w->cpu->sp]) / 8] = sp;
	w->stack[(at + w->cpu->signal_pc) / 8] = pc;
}

static void signal_on(const struct unwind_cpu *cpu, uint64_t interrupted_sp)
{
	struct world w;
	uint64_t link = RETURN(5);
	world_begin(&w, cpu);
	w.file.rules[1] = cpu->call_pushes ? x86_frame(2) : a64_frame(16);
	w.file.rules[2].cfa = RECIPE_SIGNAL;
	w.file.rules[4] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = 12, /* known: the frame was interrupted */
					  .ra = RECIPE_IN_REG,
					  .ra_offset = 13};
	w.stack[1] = PC(
		2); /* the handler returns to the trampoline's beginning: one before is no code of it */
	w.file.rules[1].extra = RECIPE_LOST;
	push_signal_frame(&w, 2, PC(4), interrupted_sp);
	w.stack[2 + cpu->signal_registers[12] / 8] = interrupted_sp;
	w.stack[2 + cpu->signal_registers[13] / 8] = link;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(2));
	/* The recipe is looked up one byte before a return address, so tables cover that, too. */
	w.file.rows[1] = 1u * 16 << TABLE_RULE_BITS | 2;
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, PC(4), interrupted_sp, 0x51600 + cpu->fp);
	assert_int_equal(w.walk.extra, 0x51600 + cpu->extra);
	assert_true(w.walk.exact && !w.walk.extra_lost);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, link, interrupted_sp, 0x51600 + cpu->fp);
	assert_false(w.walk.exact);
}

static void signal_frames(void **state)
{
	(void)state;
	signal_on(&unwind_cpu_x86_64, STACK + 1600);
	signal_on(&unwind_cpu_aarch64, STACK + 1600);
	/* The handler ran on an alternate stack: the way goes to lower addresses. */
	signal_on(&unwind_cpu_x86_64, STACK - 0x100000);
	signal_on(&unwind_cpu_aarch64, STACK - 0x100000);
}

/* What stands before a trampoline is another's code, for whoever is there. */
static void code_before_a_trampoline(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SIGNAL, .cfa_add = RECIPE_RETURNED};
	push_signal_frame(&w, 0, PC(4), STACK + 1600);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, PC(1));
	w.walk.exact = false;
	w.walk.pc++;
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(4));
}

static void signal_frame_cut_off(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1].cfa = RECIPE_SIGNAL;
	w.registers[31] = STACK + 8 * (WORDS - 60);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	expect_at(&w, PC(1), w.registers[31], w.registers[X29]);
}

/* ---- ends ---- */

static void zero_return_address_is_complete(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.registers[RBP] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_COMPLETE);
	expect_at(&w, PC(1), STACK, 0);
}

/* Zero is what most words of a stack are: alone it proves nothing. */
static void zero_return_address_with_a_frame_pointer(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.registers[RBP] = STACK + 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	expect_at(&w, PC(1), STACK, STACK + 64);
}

/* SP must go up, whatever a table says. */
static void no_progress(void **state)
{
	static const int32_t offsets[] = {0, -8, -(1 << 30)};
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		w.file.rules[1] = x86_frame(0);
		w.file.rules[1].cfa_offset = offsets[i];
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_BAD_FRAME);
	}
	/* Nor may a loop of frame pointers go round. */
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBP,
					  .cfa_offset = 16,
					  .ra = RECIPE_AT_FP,
					  .ra_offset = 8,
					  .fp = RECIPE_AT_FP};
	w.registers[RBP] = STACK + 16;
	w.stack[2] = STACK + 16;
	w.stack[3] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* A CFA that wraps around the address space is below SP. */
	w.registers[RBP] = UINT64_MAX - 4;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

static void bad_memory(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(WORDS + 2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	expect_at(&w, PC(1), STACK, w.registers[RBP]);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].cfa = RECIPE_DEREF;
	w.file.rules[1].cfa_offset = -64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
}

static void no_recipe_and_no_module(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1].cfa = 200; /* not of ours */
	world_start(&w, PC(0));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, w.module.end);
	assert_int_equal(step(&w), WALK_NO_MODULE);
	world_start(&w, w.module.start - 1);
	assert_int_equal(step(&w), WALK_NO_MODULE);
	w.space.count = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_MODULE);
}

/* A call that is a module's last instruction returns to an address outside of it. */
static void return_address_at_the_end(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(1);
	w.file.rules[RULES - 1] = x86_frame(3);
	w.stack[0] = RETURN(RULES - 1);
	w.stack[3] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, w.module.end);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
}

static void modules_are_found(void **state)
{
	struct walk_module modules[9];
	struct walk_space space = {modules, 9};
	(void)state;
	memset(modules, 0, sizeof modules);
	for (unsigned i = 0; i < 9; i++) {
		modules[i].start = 0x1000 * (i + 1);
		modules[i].end = modules[i].start + (i % 2 ? 0x1000 : 0x800);
	}
	for (; space.count; space.count--) {
		for (uint64_t at = 0; at < 0xc000; at += 0x400) {
			size_t i = at / 0x1000 - 1;
			bool inside = at >= 0x1000 && i < space.count && at < modules[i].end;
			assert_ptr_equal(walk_find_module(&space, at), inside ? &modules[i] : NULL);
		}
	}
	assert_null(walk_find_module(&space, 0x1000));
}

static void ends_have_names(void **state)
{
	(void)state;
	for (int end = WALK_ON; end <= WALK_COUNTED; end++)
		assert_true(strlen(walk_end_name((enum walk_end)end)) > 1);
	assert_string_equal(walk_end_name(WALK_COMPLETE), "complete");
	assert_string_equal(walk_end_name((enum walk_end)99), "unknown");
	assert_ptr_equal(unwind_cpu_for(EM_X86_64), &unwind_cpu_x86_64);
	assert_ptr_equal(unwind_cpu_for(EM_AARCH64), &unwind_cpu_aarch64);
	assert_null(unwind_cpu_for(EM_386));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_three_frames),
		cmocka_unit_test(x86_by_frame_pointer),
		cmocka_unit_test(x86_extra_register_and_deref),
		cmocka_unit_test(other_registers_in_the_first_frame),
		cmocka_unit_test(lost_register_is_harmful_only_when_used),
		cmocka_unit_test(unreadable_register_is_lost),
		cmocka_unit_test(a64_leaf_in_link_register),
		cmocka_unit_test(a64_no_leaf_in_the_middle),
		cmocka_unit_test(a64_signed_return_address),
		cmocka_unit_test(a64_return_address_in_register),
		cmocka_unit_test(vector_frames_are_complex),
		cmocka_unit_test(signal_frames),
		cmocka_unit_test(signal_frame_cut_off),
		cmocka_unit_test(code_before_a_trampoline),
		cmocka_unit_test(zero_return_address_is_complete),
		cmocka_unit_test(zero_return_address_with_a_frame_pointer),
		cmocka_unit_test(no_progress),
		cmocka_unit_test(bad_memory),
		cmocka_unit_test(no_recipe_and_no_module),
		cmocka_unit_test(return_address_at_the_end),
		cmocka_unit_test(modules_are_found),
		cmocka_unit_test(ends_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
