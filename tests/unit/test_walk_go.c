/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from stack to stack, as Go's runtime leaves them. */
#include "walk_world.h"

/* Go's objects among the words: two of its gs, and the thread. */
#define GO_G0 100
#define GO_G 120
#define GO_M 140
#define GO_AT(word) (STACK + 8u * (word))

static struct recipe go_recipe(const struct unwind_cpu *cpu, int cfa, int second)
{
	bool pushes = cpu->call_pushes;
	return (struct recipe){.cfa = (uint8_t)cfa,
			       .cfa_reg = pushes ? 14 : 28,
			       .cfa_offset = 48,
			       .cfa_vg = 24,
			       .cfa_add = RECIPE_PAIR(56, second),
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = -8};
}

static void go_begin(struct world *w, const struct unwind_cpu *cpu)
{
	world_begin(w, cpu);
	w->stack[GO_G0 + 6] = w->stack[GO_G + 6] = GO_AT(GO_M);
	w->stack[GO_M] = GO_AT(GO_G0);
	w->stack[GO_M + 3] = GO_AT(GO_G);
	w->registers[cpu->call_pushes ? 14 : 28] = GO_AT(GO_G0);
	w->file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					   .cfa_reg = cpu->sp,
					   .cfa_offset = 16,
					   .ra = RECIPE_AT_CFA,
					   .ra_offset = -8};
	w->registers[cpu->sp] = GO_AT(60); /* above the goroutine's stack */
	w->stack[61] = RETURN(2);
}

static void goroutine_that_waits(void **state)
{
	const struct unwind_cpu *cpus[] = {&unwind_cpu_x86_64, &unwind_cpu_aarch64};
	struct world w;
	(void)state;
	for (int i = 0; i < 2; i++) {
		go_begin(&w, cpus[i]);
		w.file.rules[2] = go_recipe(cpus[i], RECIPE_PARKED, 8);
		w.stack[GO_G + 7] = GO_AT(10); /* where it left its stack */
		w.stack[10] = RETURN(3);
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(w.walk.pc, RETURN(3));
		assert_int_equal(w.walk.sp, GO_AT(11));
		assert_int_equal(w.walk.slot, 0); /* another goroutine may have the same words */
		/* A register that holds no g. */
		w.registers[i ? 28 : 14] = GO_AT(200);
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_BAD_MEMORY);
		w.stack[206] = GO_AT(GO_M);
		assert_int_equal(step(&w), WALK_BAD_FRAME);
		/* Nobody waits. */
		w.registers[i ? 28 : 14] = GO_AT(GO_G0);
		w.stack[GO_M + 3] = 0;
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_BAD_FRAME);
		w.file.rules[2].ra = RECIPE_IN_G; /* where that is not a mistake */
		assert_int_equal(step(&w), WALK_COMPLETE);
	}
}

/* The procedure that needs a larger stack has its PC, and on aarch64 its return address, in the g. */
static void goroutine_that_grows(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[2] = go_recipe(w.cpu, RECIPE_PARKED, 0);
	w.file.rules[2].ra = w.file.rules[2].extra = RECIPE_IN_G;
	w.file.rules[2].ra_offset = 64;
	w.file.rules[2].extra_offset = 96;
	w.file.rules[3] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 19};
	w.stack[GO_G + 7] = GO_AT(10);
	w.stack[GO_G + 8] = RETURN(3);
	w.stack[GO_G + 12] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(4));
	assert_int_equal(w.walk.sp, GO_AT(10));
	/* What comes after the goroutine was given up is not its work any more. */
	w.file.rules[1].extra = RECIPE_LOST;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_COMPLETE);
}

/* Go called C (2), which called Go (3), which called C (2), which called Go (3): no register tells. */
static void calls_of_c_in_each_other(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_x86_64);
	w.registers[14] = 77;
	w.file.rules[2] = go_recipe(w.cpu, RECIPE_DEPTH, 8);
	w.file.rules[2].cfa_offset = 8;
	w.file.rules[2].cfa_add = RECIPE_PAIR(16, 8);
	w.file.rules[2].cfa_vg = 0;
	w.file.rules[3] = go_recipe(w.cpu, RECIPE_CALLBACK, 24);
	w.file.rules[3].extra = RECIPE_LOST;
	w.stack[GO_G + 1] = GO_AT(50); /* the end of its stack */
	w.stack[62 + 1] = GO_AT(GO_G); /* whose it was … */
	w.stack[62 + 2] = 8 * 40;      /* … and how deep */
	w.stack[10] = RETURN(3);
	w.stack[GO_G0 + 7] = GO_AT(70); /* SP at the innermost callback, */
	w.stack[70] = GO_AT(80);        /* and at the next one */
	w.stack[70 + 2] = RETURN(2);
	w.stack[73 + 1] = GO_AT(GO_G);
	w.stack[73 + 2] = 8 * 30;
	w.stack[20] = RETURN(3);
	w.stack[80 + 2] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON); /* in C */
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(w.walk.sp, GO_AT(11));
	w.walk.left = 0; /* as if it were the first callback */
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
	assert_int_equal(w.walk.sp, GO_AT(73));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.sp, GO_AT(21));
	assert_int_equal(step(&w), WALK_ON); /* not the innermost one again */
	assert_int_equal(w.walk.pc, RETURN(4));
	assert_int_equal(w.walk.sp, GO_AT(83));
}

/* A handler made it call something between two instructions. */
static void call_between_two_instructions(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_AWAY,
					  .cfa_reg = 31,
					  .cfa_offset = 48,
					  .cfa_add = 1,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -48,
					  .extra_offset = 28};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_SAME};
	w.stack[60] = PC(2);
	w.stack[64] = RETURN(3); /* what was in the link register */
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(2));
	assert_true(w.walk.exact);
	assert_int_equal(w.walk.g, GO_AT(GO_G0));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(w.walk.sp, GO_AT(66));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goroutine_that_waits),
		cmocka_unit_test(goroutine_that_grows),
		cmocka_unit_test(calls_of_c_in_each_other),
		cmocka_unit_test(call_between_two_instructions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
