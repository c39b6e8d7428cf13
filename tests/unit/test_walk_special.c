/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over frames that most code does not have: callers in objects, index registers, popped frames. */
#include "walk_world.h"

/* V8's deoptimizer: the frame is gone from the stack, its caller is in an object. */
static void caller_in_an_object(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(3);
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_DEREF,
					  .cfa_reg = RSP,
					  .cfa_add = 8,
					  .ra = RECIPE_VIA_CFA,
					  .ra_offset = RECIPE_VIA(-8, 96),
					  .fp = RECIPE_VIA_CFA,
					  .fp_offset = RECIPE_VIA(-8, 88)};
	w.stack[2] = RETURN(2);
	w.stack[3] = STACK + 40;      /* SP before it was aligned */
	w.stack[5] = STACK + 800;     /* the object */
	w.stack[111] = STACK + 400;   /* its caller_fp */
	w.stack[112] = RETURN(3) + 7; /* its caller_pc */
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3) + 7, STACK + 48, STACK + 400);
	assert_int_equal(w.walk.slot, 0); /* nothing that could be compared later */
	/* Both are zero as long as nobody has filled them in: that is not the outermost frame. */
	w.stack[111] = w.stack[112] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[5] = 16;
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	assert_int_equal(RECIPE_VIA_SLOT(RECIPE_VIA(-32768, 65535)), -32768);
	assert_int_equal(RECIPE_VIA_MEMBER(RECIPE_VIA(-32768, 65535)), 65535);
}

/* The unwinder of exceptions is about to go on in another frame, which an object describes. */
static void caller_that_resumes(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SPECIAL,
					  .cfa_reg = 31,
					  .cfa_vg = RECIPE_WORD | RECIPE_WORD_MORE | RECIPE_RESUMES,
					  .cfa_offset = 80,
					  .cfa_add = 144,
					  .ra = RECIPE_AT_BASE,
					  .ra_offset = 88,
					  .fp = RECIPE_VIA_BASE,
					  .fp_offset = 40};
	w.stack[5] = STACK + 1600; /* where the handler's FP is */
	w.stack[10] = STACK + 400;
	w.stack[11] = PC(2);
	w.stack[18] = 16; /* what was pushed for the call */
	w.stack[200] = STACK + 512;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	/* It has not called: its recipe is looked up where it goes on, not before. */
	expect_at(&w, PC(2) + 1, STACK + 416, STACK + 512);
	assert_false(w.walk.exact);
	assert_int_equal(w.walk.slot, 0);
	/* The same from a frame that has called something: SP is known there, too. */
	w.file.rules[3] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.registers[30] = RETURN(1);
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, PC(2) + 1, STACK + 416, STACK + 512);
	/* Not further down, not nowhere, and never the outermost. */
	w.stack[10] = STACK - 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[10] = STACK + 400, w.stack[11] = w.stack[200] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[5] = 8; /* FP cannot be read: it is lost, nothing else */
	w.stack[11] = PC(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost);
}

static void index_registers_in_exact_frames(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SPECIAL,
					  .cfa_reg = RSP,
					  .cfa_vg = RECIPE_INDEX(9, 3) | RECIPE_WORD,
					  .cfa_offset = 8,
					  .cfa_add = 8,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8};
	w.registers[9] = 4;
	w.stack[5] = STACK + 80;
	w.stack[10] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	/* Mixed with the word instead, as longjmp's secret is */
	w.file.rules[1].cfa_vg = RECIPE_INDEX(9, 0) | RECIPE_WORD | RECIPE_MIXED;
	w.file.rules[1].cfa_offset = 40;
	w.stack[5] = (STACK + 80) ^ 4;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	/* What it calls may have anything in r9. */
	w.file.rules[3] = x86_frame(1);
	w.stack[0] = RETURN(1);
	w.registers[9] = 3;
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* What the first frame has in a register that it has overwritten is not its caller's. */
static void a_lost_register_is_not_found_near(void **state)
{
	static const struct recipe by_fp = {.cfa = RECIPE_REG,
					    .cfa_reg = 29,
					    .cfa_offset = 16,
					    .ra = RECIPE_AT_CFA,
					    .ra_offset = -8};
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .fp = RECIPE_LOST};
	w.file.rules[2] = by_fp;
	w.registers[30] = RETURN(2);
	w.registers[29] = STACK + 64;
	w.stack[9] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .extra = RECIPE_LOST};
	w.file.rules[2].cfa_reg = 19;
	w.registers[19] = STACK + 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1].extra = RECIPE_SAME;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 80, w.registers[29]);
}

static void popped_return_address(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.registers[RSP] = STACK + 64;
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_SPECIAL, .cfa_reg = RSP, .ra = RECIPE_AT_SP, .ra_offset = -8};
	w.stack[7] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 64, w.registers[RBP]);
	/* Only so far down, where a recipe says so, and before anything else was called. */
	w.file.rules[1].ra_offset = -136;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = RSP, .ra = RECIPE_AT_CFA, .ra_offset = -8};
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_SPECIAL, .cfa_reg = RSP, .ra = RECIPE_AT_SP, .ra_offset = -8};
	w.file.rules[3] = x86_frame(1);
	w.registers[RSP] = STACK + 56;
	w.stack[7] = RETURN(1);
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* OCaml's caml_c_call on aarch64 keeps its return address in x19, whatever is called. */
static void return_address_in_the_extra_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, /* saves x19 */
					  .cfa_reg = 31,
					  .cfa_offset = 32,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .extra = RECIPE_AT_CFA,
					  .extra_offset = -16};
	w.file.rules[2] = w.file.rules[1];
	w.file.rules[3] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 19};
	w.stack[3] = RETURN(2);
	w.stack[6] = RETURN(4);
	w.stack[7] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 64, w.registers[X29]);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(4), STACK + 64, w.registers[X29]);
	/* It cannot be its own caller, again and again. */
	w.stack[6] = RETURN(3);
	world_start(&w, PC(1));
	for (int i = 0; i < 3; i++)
		assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* Nor does any other register do. */
	w.file.rules[3].ra_offset = 20;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caller_in_an_object),
		cmocka_unit_test(caller_that_resumes),
		cmocka_unit_test(index_registers_in_exact_frames),
		cmocka_unit_test(a_lost_register_is_not_found_near),
		cmocka_unit_test(popped_return_address),
		cmocka_unit_test(return_address_in_the_extra_register),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
