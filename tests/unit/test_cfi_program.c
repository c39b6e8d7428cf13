/* SPDX-License-Identifier: Apache-2.0 */
/* What single programs of call-frame instructions and expressions mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cfi_bytes.h"

/* x86-64 with the return address where it always is. */
#define X86(...) \
	((struct recipe){.cfa = RECIPE_REG, .ra = RECIPE_AT_CFA, .ra_offset = -8, __VA_ARGS__})
#define ARM(...) ((struct recipe){.cfa = RECIPE_REG, __VA_ARGS__})
#define COMPLEX ((struct recipe){.cfa = RECIPE_COMPLEX})

static void expect_first(uint16_t machine, const char *program, size_t size, struct recipe wanted)
{
	struct outcome out;
	run_program(machine, program, size, &out);
	assert_int_equal(out.stats.entries, 1);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x1000), wanted);
	assert_recipe(recipe_at(&out, 0x10fc), wanted);
	assert_int_equal(recipe_at(&out, 0x1100).cfa, RECIPE_NONE);
	assert_int_equal(out.stats.complex_rows, wanted.cfa == RECIPE_COMPLEX);
	rows_free(&out.rows);
}
#define FIRST_X86(program, ...) expect_first(EM_X86_64, program, sizeof program - 1, __VA_ARGS__)
#define FIRST_ARM(program, ...) expect_first(EM_AARCH64, program, sizeof program - 1, __VA_ARGS__)

static void usual_prologue_and_epilogue(void **state)
{
	struct outcome out;
	(void)state;
	/* push rbp; mov rbp, rsp; …; remember; leave; restore; nops pad */
	RUN(EM_X86_64,
	    "\x41\x0e\x10\x86\x02\x43\x0d\x06\x02\x80\x0a\x0c\x07\x08\xc6\x41\x0b\x00\x00", &out);
	assert_recipe(recipe_at(&out, 0x1000), X86(.cfa_reg = 7, .cfa_offset = 8));
	assert_recipe(recipe_at(&out, 0x1001),
		      X86(.cfa_reg = 7, .cfa_offset = 16, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	assert_recipe(recipe_at(&out, 0x1004),
		      X86(.cfa_reg = 6, .cfa_offset = 16, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	assert_recipe(recipe_at(&out, 0x1084), X86(.cfa_reg = 7, .cfa_offset = 8));
	assert_recipe(recipe_at(&out, 0x1085),
		      X86(.cfa_reg = 6, .cfa_offset = 16, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	rows_free(&out.rows);

	/* stp x29, x30, [sp, -32]!; negate_ra_state; x19 too */
	RUN(EM_AARCH64, "\x2d\x2c\x41\x0e\x20\x9d\x04\x9e\x03\x93\x02\x41\x0d\x1d", &out);
	assert_recipe(recipe_at(&out, 0x1000), ARM(.cfa_reg = 31));
	assert_recipe(recipe_at(&out, 0x1008),
		      ARM(.cfa_reg = 29, .cfa_offset = 32, .ra = RECIPE_AT_CFA, .ra_offset = -24,
			  .fp = RECIPE_AT_CFA, .fp_offset = -32, .extra = RECIPE_AT_CFA,
			  .extra_offset = -16));
	rows_free(&out.rows);
}

static void every_way_to_advance(void **state)
{
	struct outcome out;
	(void)state;
	RUN(EM_X86_64,
	    "\x02\x01\x0e\x10"                              /* advance_loc1 1 */
	    "\x03\x01\x00\x0e\x18"                          /* advance_loc2 1 */
	    "\x04\x01\x00\x00\x00\x0e\x20"                  /* advance_loc4 1 */
	    "\x1d\x01\x00\x00\x00\x00\x00\x00\x00\x0e\x28"  /* advance_loc8 1 */
	    "\x01\x10\x10\x00\x00\x00\x00\x00\x00\x0e\x30", /* set_loc 0x1010 */
	    &out);
	for (int i = 0; i < 5; i++)
		assert_int_equal(recipe_at(&out, 0x1000 + (uint64_t)i).cfa_offset, 8 + 8 * i);
	assert_int_equal(recipe_at(&out, 0x100f).cfa_offset, 0x28);
	assert_int_equal(recipe_at(&out, 0x1010).cfa_offset, 0x30);
	rows_free(&out.rows);
}

static void register_rules(void **state)
{
	(void)state;
	/* offset_extended, offset_extended_sf, GNU_negative_offset_extended of rbp */
	FIRST_X86("\x05\x06\x03",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = -24));
	FIRST_X86("\x11\x06\x7e",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = 16));
	FIRST_X86("\x2f\x06\x02",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = 16));
	/* undefined, register, same_value, val_offset of rbp; rbx at CFA - 16 then restored */
	FIRST_X86("\x07\x06", X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_LOST));
	FIRST_X86("\x09\x06\x0c",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_IN_REG, .fp_offset = 12));
	FIRST_X86("\x86\x02\x08\x06", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x14\x06\x02", X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_LOST));
	FIRST_X86("\x15\x06\x02", X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_LOST));
	FIRST_X86("\x83\x02\xc3", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x83\x02\x06\x03", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x83\x02",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .extra = RECIPE_AT_CFA, .extra_offset = -16));
	/* registers that nobody follows; args_size */
	FIRST_X86("\x8c\x04\x2e\x10\x09\x0d\x0e", X86(.cfa_reg = 7, .cfa_offset = 8));
	/* def_cfa_sf, def_cfa_offset_sf */
	FIRST_X86("\x12\x06\x7e", X86(.cfa_reg = 6, .cfa_offset = 16));
	FIRST_X86("\x13\x7c", X86(.cfa_reg = 7, .cfa_offset = 32));
}

static void return_address_rules(void **state)
{
	(void)state;
	FIRST_X86("\x07\x10", (struct recipe){.cfa = RECIPE_ROOT});
	FIRST_ARM("\x07\x1e", (struct recipe){.cfa = RECIPE_ROOT});
	FIRST_X86("\x09\x10\x05", (struct recipe){.cfa = RECIPE_REG,
						  .cfa_reg = 7,
						  .cfa_offset = 8,
						  .ra = RECIPE_IN_REG,
						  .ra_offset = 5});
	FIRST_X86("\x08\x10", COMPLEX);
	FIRST_X86("\x09\x10\x32", COMPLEX);
	FIRST_ARM("\x08\x1e", ARM(.cfa_reg = 31));
	FIRST_ARM("\x09\x1e\x0f", ARM(.cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 15));
	FIRST_ARM("\x09\x1e\x1e", ARM(.cfa_reg = 31));
}

static void stack_pointer_rules(void **state)
{
	(void)state;
	/* val_expression of rsp: the CFA itself; rsp + 8, which is the CFA; something else */
	FIRST_X86("\x16\x07\x01\x9c", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x16\x07\x02\x77\x08", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x14\x07\x00", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x16\x07\x02\x73\x08\x0c\x05\x00", COMPLEX);
	/* As in longjmp: the CFA is jmp_buf, SP in r8, RA in rdx, FP in r9. */
	FIRST_X86("\x0c\x05\x00\x09\x07\x08\x09\x10\x01\x09\x06\x09\x83\x00",
		  (struct recipe){.cfa = RECIPE_REG,
				  .cfa_reg = 8,
				  .ra = RECIPE_IN_REG,
				  .ra_offset = 1,
				  .fp = RECIPE_IN_REG,
				  .fp_offset = 9,
				  .extra = RECIPE_LOST});
	/* SP = CFA + 16, so that RA, at CFA - 8, is 24 below it. */
	FIRST_X86("\x15\x07\x7e", (struct recipe){.cfa = RECIPE_REG,
						  .cfa_reg = 7,
						  .cfa_offset = 24,
						  .ra = RECIPE_AT_SP,
						  .ra_offset = 0});
}

static void expressions_of_the_cfa(void **state)
{
	(void)state;
	/* breg7 8; breg7 16, plus_uconst 8; breg6 -16, lit8, minus */
	FIRST_X86("\x0f\x02\x77\x08", X86(.cfa_reg = 7, .cfa_offset = 8));
	FIRST_X86("\x0f\x04\x77\x10\x23\x08", X86(.cfa_reg = 7, .cfa_offset = 24));
	FIRST_X86("\x0f\x04\x76\x70\x38\x1c", X86(.cfa_reg = 6, .cfa_offset = -24));
	/* breg7 120, deref, plus_uconst 8 (with rbp, and as const1u 8, plus) */
	FIRST_X86("\x0f\x06\x77\xf8\x00\x06\x23\x08", (struct recipe){.cfa = RECIPE_DEREF,
								      .cfa_reg = 7,
								      .cfa_offset = 120,
								      .cfa_add = 8,
								      .ra = RECIPE_AT_CFA,
								      .ra_offset = -8});
	FIRST_X86("\x0f\x06\x76\x68\x06\x08\x08\x22", (struct recipe){.cfa = RECIPE_DEREF,
								      .cfa_reg = 6,
								      .cfa_offset = -24,
								      .cfa_add = 8,
								      .ra = RECIPE_AT_CFA,
								      .ra_offset = -8});
	/* dup, drop, swap, over, pick, rot, skip, bra around a bad operation */
	FIRST_X86("\x0f\x14\x38\x77\x00\x16\x22\x12\x13\x12\x30\x14\x13\x17\x15\x01\x13\x13"
		  "\x2f\x01\x00\xff",
		  X86(.cfa_reg = 7, .cfa_offset = 8));
	/* breg7 8, breg9 0, plus; the same with r9 * 8 and deref, plus_uconst 8, as OpenSSL has it */
	FIRST_X86("\x0f\x05\x77\x08\x79\x00\x22", (struct recipe){.cfa = RECIPE_SPECIAL,
								  .cfa_vg = RECIPE_INDEX(9, 0),
								  .cfa_reg = 7,
								  .cfa_offset = 8,
								  .ra = RECIPE_AT_CFA,
								  .ra_offset = -8});
	FIRST_X86("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08",
		  (struct recipe){.cfa = RECIPE_SPECIAL,
				  .cfa_vg = RECIPE_INDEX(9, 3) | RECIPE_WORD,
				  .cfa_reg = 7,
				  .cfa_offset = 8,
				  .cfa_add = 8,
				  .ra = RECIPE_AT_CFA,
				  .ra_offset = -8});
	/* rbp at [CFA - 16] goes with it, at an address by rsp and r9 it does not */
	FIRST_X86("\x0f\x05\x77\x08\x79\x00\x22\x86\x02",
		  (struct recipe){.cfa = RECIPE_SPECIAL,
				  .cfa_vg = RECIPE_INDEX(9, 0),
				  .cfa_reg = 7,
				  .cfa_offset = 8,
				  .ra = RECIPE_AT_CFA,
				  .ra_offset = -8,
				  .fp = RECIPE_AT_CFA,
				  .fp_offset = -16});
	FIRST_X86("\x10\x06\x05\x77\x08\x79\x00\x22",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_LOST));
	/* Two derefs, three registers, r9 * 3, r9 * 8 alone, alignment: no recipe says that. */
	FIRST_X86("\x0f\x04\x77\x08\x06\x06", COMPLEX);
	FIRST_X86("\x0f\x08\x77\x08\x79\x00\x22\x78\x00\x22", COMPLEX);
	FIRST_X86("\x0f\x07\x77\x08\x79\x00\x33\x1e\x22", COMPLEX);
	FIRST_X86("\x0f\x04\x79\x00\x38\x1e", COMPLEX);
	FIRST_X86("\x0f\x05\x77\x08\x09\xf0\x1a", COMPLEX);
	FIRST_X86("\x0f\x06\x77\x80\x80\x80\x80\x20", COMPLEX); /* offset past 32 bits */
	FIRST_X86("\x0f\x00", COMPLEX);
	FIRST_X86("\x0f\x01\x22", COMPLEX);
	FIRST_X86("\x0f\x03\x2f\xfd\xff", COMPLEX); /* jumps to itself for ever */
}

static void expressions_of_registers(void **state)
{
	(void)state;
	/* rbp at rbp + 0, as gcc writes it for realigned stacks; CFA = [rbp - 8] */
	FIRST_X86("\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", (struct recipe){.cfa = RECIPE_DEREF,
									      .cfa_reg = 6,
									      .cfa_offset = -8,
									      .ra = RECIPE_AT_CFA,
									      .ra_offset = -8,
									      .fp = RECIPE_AT_FP});
	FIRST_X86("\x10\x06\x02\x77\x10",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_SP, .fp_offset = 16));
	/* the CFA is on the stack already; or call_frame_cfa pushes it */
	FIRST_X86("\x10\x06\x03\x09\xf0\x22",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	FIRST_X86("\x10\x06\x03\x9c\x40\x1c",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	/* by way of the CFA's own register: r10 - 16 where CFA = r10 + 0 */
	FIRST_X86("\x0c\x0a\x00\x10\x06\x02\x7a\x70",
		  X86(.cfa_reg = 10, .fp = RECIPE_AT_CFA, .fp_offset = -16));
	/* val_expression: a register, or the word at CFA - 24 */
	FIRST_X86("\x16\x06\x02\x7c\x00",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_IN_REG, .fp_offset = 12));
	FIRST_X86("\x16\x06\x04\x09\xe8\x22\x06",
		  X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_AT_CFA, .fp_offset = -24));
	/* no recipe: FP is lost, without RA the row is */
	FIRST_X86("\x10\x06\x02\x79\x00", X86(.cfa_reg = 7, .cfa_offset = 8, .fp = RECIPE_LOST));
	FIRST_X86("\x10\x10\x02\x79\x00", COMPLEX);
	FIRST_X86("\x10\x10\x02\x77\x28", (struct recipe){.cfa = RECIPE_REG,
							  .cfa_reg = 7,
							  .cfa_offset = 8,
							  .ra = RECIPE_AT_SP,
							  .ra_offset = 40});
}

static void vector_length(void **state)
{
	(void)state;
	/* sp + 32 + 8 * vg, as clang writes it: breg31 0, plus_uconst 32, consts 8, bregx 46 0,
	   mul, plus */
	FIRST_ARM("\x0f\x0c\x8f\x00\x23\x20\x11\x08\x92\x2e\x00\x1e\x22\x96",
		  ARM(.cfa_reg = 31, .cfa_offset = 32, .cfa_vg = 8));
	/* the same by a shift, and with FP */
	FIRST_ARM("\x0f\x08\x8d\x10\x92\x2e\x00\x33\x24\x22",
		  ARM(.cfa_reg = 29, .cfa_offset = 16, .cfa_vg = 8));
	/* x30 at CFA - 8 - 8 * vg, that is SP + 24 */
	FIRST_ARM("\x0f\x0c\x8f\x00\x23\x20\x11\x08\x92\x2e\x00\x1e\x22\x96"
		  "\x10\x1e\x0a\x11\x78\x22\x11\x78\x92\x2e\x00\x1e\x22",
		  ARM(.cfa_reg = 31, .cfa_offset = 32, .cfa_vg = 8, .ra = RECIPE_AT_SP,
		      .ra_offset = 24));
	/* x30 at CFA - 8 * vg where the CFA has none */
	FIRST_ARM("\x10\x1e\x07\x11\x78\x92\x2e\x00\x1e\x22", COMPLEX);
}

/* The PLT: 16-byte entries that push a word from the 11th byte on (the 10th under IBT). */
static void expect_plt(const char *program, size_t size, unsigned pushed_at)
{
	struct outcome out;
	run_program(EM_X86_64, program, size, &out);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_int_equal(out.stats.complex_rows, 0);
	for (uint64_t at = 0x1000; at < 0x1100; at++)
		assert_recipe(recipe_at(&out, at),
			      X86(.cfa_reg = 7, .cfa_offset = (at & 15) >= pushed_at ? 16 : 8));
	assert_int_equal(out.rows.count, 33);
	rows_free(&out.rows);
}
#define PLT(program, pushed_at) expect_plt(program, sizeof program - 1, pushed_at)

static void plt_entries_become_exact_rows(void **state)
{
	(void)state;
	PLT("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 11);
	PLT("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3a\x2a\x33\x24\x22", 10);
	PLT("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x35\x2a\x33\x24\x22", 5);
}

static void enormous_plt_is_complex(void **state)
{
	static const char program[] = "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22";
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, "");
	struct outcome out;
	(void)state;
	put_fde(&b, cie, 0x1000, UINT64_C(1) << 40, program, sizeof program - 1);
	for (int i = 0; i < 100; i++) /* together more than may be computed */
		put_fde(&b, cie, 0x1000, UINT64_C(2) << 20, program, sizeof program - 1);
	read_bytes(&b, EM_X86_64, true, &out);
	assert_recipe(recipe_at(&out, 0x2000), COMPLEX);
	assert_int_equal(out.rows.count, 2);
	rows_free(&out.rows);
}

static void remembered_states_nest(void **state)
{
	struct outcome out;
	(void)state;
	RUN(EM_X86_64, "\x0a\x41\x0e\x10\x0a\x41\x0e\x18\x41\x0b\x41\x0b", &out);
	assert_int_equal(recipe_at(&out, 0x1000).cfa_offset, 8);
	assert_int_equal(recipe_at(&out, 0x1001).cfa_offset, 16);
	assert_int_equal(recipe_at(&out, 0x1002).cfa_offset, 24);
	assert_int_equal(recipe_at(&out, 0x1003).cfa_offset, 16);
	assert_int_equal(recipe_at(&out, 0x1004).cfa_offset, 8);
	rows_free(&out.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_prologue_and_epilogue),
		cmocka_unit_test(every_way_to_advance),
		cmocka_unit_test(register_rules),
		cmocka_unit_test(return_address_rules),
		cmocka_unit_test(stack_pointer_rules),
		cmocka_unit_test(expressions_of_the_cfa),
		cmocka_unit_test(expressions_of_registers),
		cmocka_unit_test(vector_length),
		cmocka_unit_test(plt_entries_become_exact_rows),
		cmocka_unit_test(enormous_plt_is_complex),
		cmocka_unit_test(remembered_states_nest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
