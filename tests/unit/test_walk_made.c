/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over code that was made at run time: by frame pointers, and by what its instructions show. */
#include "walk_world.h"

#include "unwind/step.h"

/* From code that is walked by FP to compiled code: where its SP is, its recipe says. */
static void stack_pointer_from_the_frame_record(void **state)
{
	struct recipe r = {.cfa = RECIPE_REG,
			   .cfa_reg = 31,
			   .cfa_offset = 128,
			   .ra = RECIPE_AT_CFA,
			   .ra_offset = -104,
			   .fp = RECIPE_AT_CFA,
			   .fp_offset = -112};
	struct walk w = {.cpu = &unwind_cpu_aarch64, .sp = STACK, .fp = STACK + 96};
	(void)state;
	assert_true(step_pointer_compiled(&w, &r, false)); /* an argument lies below its record */
	assert_int_equal(w.sp, STACK + 80);
	w.sp = STACK;
	r.fp_offset = -128, r.ra_offset = -120; /* the record is at the bottom */
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK + 96);
	w.sp = STACK;
	r.ra_offset = -8; /* that is no record: FP is that of somebody farther out */
	assert_false(step_pointer_compiled(&w, &r, false));
	r.ra_offset = 8, r.fp_offset = 0; /* that would be below the callee's record */
	assert_false(step_pointer_compiled(&w, &r, false));
	w.sp = STACK + 104; /* the caller has none */
	assert_false(step_pointer_compiled(&w, &r, false));
	r.cfa_reg = 29; /* SP is not needed */
	w.sp = STACK;
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK + 96);
	r = (struct recipe){.cfa = RECIPE_SIGNAL};
	assert_false(step_pointer_compiled(&w, &r, false));
	r.cfa = RECIPE_ROOT;
	assert_true(step_pointer_compiled(&w, &r, false));
}

/* Where nothing of the callee's lies above its record, SP is known whatever the caller does with FP. */
static void stack_pointer_above_the_frame_record(void **state)
{
	struct recipe r = {.cfa = RECIPE_REG, .cfa_reg = 31, .cfa_offset = 64};
	struct walk w = {.cpu = &unwind_cpu_aarch64, .sp = STACK, .fp = STACK + 96};
	(void)state;
	r.ra = RECIPE_AT_CFA, r.ra_offset = -16;
	assert_true(step_pointer_compiled(&w, &r, true));
	assert_int_equal(w.sp, STACK);
	w.fp_lost = true;
	assert_true(step_pointer_compiled(&w, &r, true));
	assert_int_equal(w.sp, STACK);
	w = (struct walk){.cpu = &unwind_cpu_x86_64, .sp = STACK, .fp = STACK + 96};
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK);
}

/* What is known of a frame by the code ahead. */
static void made_frames_on_aarch64(void **state)
{
	const uint32_t stp = 0xa9bf7bfd, below = 0xa9037bfd, mov = 0x910003fd, add = 0x910303fd,
		       ldp = 0xa8c17bfd, ret = 0xd65f03c0, sub = 0xd10103ff, nop = 0xd503201f,
		       udiv = 0x9ac10929, b_ne = 0x54000041, cbz = 0xb4000041, tbz = 0x36000041,
		       call = 0x94000010, jump = 0x14000010, blr = 0xd63f0040, ldr = 0xf84107fe,
		       other = 0xa9bf53f3; /* stp x19, x20 */
	const struct {
		uint32_t code[MADE_BYTES / 4];
		enum made_frame made;
	} cases[] = {
		{{stp, mov, call}, MADE_NO_FRAME},
		{{mov, call}, MADE_NO_FRAME},
		{{sub, below, add, call}, MADE_NO_FRAME},
		{{nop, udiv, cbz, b_ne, tbz, other, stp}, MADE_NO_FRAME},
		{{udiv, tbz + 0x20, udiv, jump, stp, mov}, MADE_NO_FRAME}, /* around the jump */
		{{udiv, tbz, udiv, jump, stp, mov}, MADE_FRAME},           /* to the jump */
		{{udiv, 0x36ffffe1, udiv, jump, stp, mov}, MADE_FRAME},    /* backwards */
		{{ret}, MADE_NO_FRAME},
		{{udiv, b_ne, ret}, MADE_NO_FRAME},
		{{ldp, ret}, MADE_FRAME},
		{{ldr, ret}, MADE_FRAME},
		{{call, ldp, ret}, MADE_FRAME},
		{{blr, stp, mov}, MADE_FRAME},
		{{jump, stp, mov}, MADE_FRAME},
		{{udiv, udiv, udiv, udiv, udiv, udiv, udiv, udiv}, MADE_FRAME},
		{{0, ret}, MADE_FRAME}, /* the end of what could be read */
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(made_frame_aarch64(cases[i].code), cases[i].made);
}

static void made_frames_on_x86_64(void **state)
{
	static const uint8_t push[MADE_BYTES] = {0x55, 0x48, 0x89, 0xe5},
			     mov[MADE_BYTES] = {0x48, 0x89, 0xe5, 0x5d},
			     other_mov[MADE_BYTES] = {0x48, 0x8b, 0xec},
			     endbr[MADE_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55},
			     ret[MADE_BYTES] = {0xc3}, ret_n[MADE_BYTES] = {0xc2, 0x10, 0},
			     pop[MADE_BYTES] = {0x5d, 0xc3},
			     sub[MADE_BYTES] = {0x48, 0x83, 0xec, 0x10};
	(void)state;
	assert_int_equal(made_frame_x86_64(push), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(endbr), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(ret), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(ret_n), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(mov), MADE_PUSHED);
	assert_int_equal(made_frame_x86_64(other_mov), MADE_PUSHED);
	assert_int_equal(made_frame_x86_64(pop), MADE_FRAME);
	assert_int_equal(made_frame_x86_64(sub), MADE_FRAME);
}

/* The same, where some instructions come first that say nothing. */
static void made_frames_ahead_on_x86_64(void **state)
{
	static const struct {
		uint8_t code[MADE_BYTES];
		enum made_frame made;
	} cases[] = {
		/* mov -0x30(%rcx), %rbx; testl $1, 0xf(%rbx); jne; push %rbp */
		{{0x48, 0x8b, 0x59, 0xd0, 0xf7, 0x43, 0x0f, 1, 0, 0, 0, 0x0f, 0x85, 1, 2, 3, 4,
		  0x55},
		 MADE_NO_FRAME},
		/* mov %eax, -0x14000(%rsp); push %rbp */
		{{0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55}, MADE_NO_FRAME},
		/* mov 8(%rsi), %r10d; movabs $, %r11; cmp %r11, %r10; jne; nopw 0(%rax,%rax); push %rbp */
		{{0x44, 0x8b, 0x56, 8,    0x49, 0xbb, 1,    2,    3,    4,   5,
		  6,    7,    8,    0x4d, 0x3b, 0xd3, 0x75, 0x20, 0x90, 0x55},
		 MADE_NO_FRAME},
		/* cmp 0x338(%r15), %rsp; ja; ret */
		{{0x49, 0x3b, 0xa7, 0x38, 3, 0, 0, 0x0f, 0x87, 1, 2, 3, 4, 0xc3}, MADE_NO_FRAME},
		/* mov 0x108(%r15), %r10; test %eax, (%r10); ret */
		{{0x4d, 0x8b, 0x97, 8, 1, 0, 0, 0x41, 0x85, 2, 0xc3}, MADE_NO_FRAME},
		/* test %eax, (%r10); pop %rbp; ret: there is a frame until then */
		{{0x41, 0x85, 2, 0x5d, 0xc3}, MADE_FRAME},
		/* mov %rax, %rbx; mov %rbp, %rsp; ret */
		{{0x48, 0x89, 0xc3, 0x48, 0x89, 0xec, 0xc3}, MADE_FRAME},
		/* mov $1, %ebp; ret */
		{{0xbd, 1, 0, 0, 0, 0xc3}, MADE_FRAME},
		/* lea 8(%rsp), %rsp; ret */
		{{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}, MADE_FRAME},
		/* cmp $5, %rax; call; push %rbp */
		{{0x48, 0x83, 0xf8, 5, 0xe8, 1, 2, 3, 4, 0x55}, MADE_FRAME},
		/* as many as are looked at */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, MADE_NO_FRAME},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, MADE_FRAME},
		/* as far as code was read */
		{{0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8,    0x49,
		  0xbb, 1,    2, 3, 4, 5, 6, 7, 8, 0x49, 0xbb},
		 MADE_FRAME},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(made_frame_x86_64(cases[i].code), cases[i].made);
}

static bool read_small(void *context, uint64_t address, uint64_t *out)
{
	if (address < STACK || address - STACK >= 64)
		return false;
	*out = ((const uint64_t *)context)[(address - STACK) / 8];
	return true;
}

/* The caller is where the call left it, not where FP leads to. */
static void steps_without_a_frame(void **state)
{
	uint64_t stack[8] = {STACK + 96, 0x1234, 0x5678}, registers[CPU_REGISTERS] = {0};
	struct walk w;
	(void)state;
	registers[30] = 0x4444;
	registers[31] = STACK;
	registers[29] = STACK + 96;
	walk_begin(&w, &unwind_cpu_aarch64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_FRAME, read_small, stack));
	assert_true(step_unmade(&w, MADE_NO_FRAME, read_small, stack));
	assert_int_equal(w.pc, 0x4444);
	assert_int_equal(w.sp, STACK);
	assert_int_equal(w.fp, STACK + 96);
	assert_int_equal(w.slot, 0);
	assert_false(w.exact);
	assert_false(step_unmade(&w, MADE_NO_FRAME, read_small, stack)); /* only the first one */
	registers[30] = 0;
	walk_begin(&w, &unwind_cpu_aarch64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_NO_FRAME, read_small, stack));

	registers[6] = STACK + 96; /* rbp */
	registers[7] = STACK + 8;
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_true(step_unmade(&w, MADE_NO_FRAME, read_small, stack));
	assert_int_equal(w.pc, 0x1234);
	assert_int_equal(w.sp, STACK + 16);
	assert_int_equal(w.slot, STACK + 8);
	registers[7] = STACK;
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_true(step_unmade(&w, MADE_PUSHED, read_small, stack));
	assert_int_equal(w.pc, 0x1234);
	assert_int_equal(w.sp, STACK + 16);
	assert_int_equal(w.fp, STACK + 96);
	stack[0]++; /* that was not pushed */
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_PUSHED, read_small, stack));
	assert_int_equal(w.pc, 0x8000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_pointer_from_the_frame_record),
		cmocka_unit_test(stack_pointer_above_the_frame_record),
		cmocka_unit_test(made_frames_on_aarch64),
		cmocka_unit_test(made_frames_on_x86_64),
		cmocka_unit_test(made_frames_ahead_on_x86_64),
		cmocka_unit_test(steps_without_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
