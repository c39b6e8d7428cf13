/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of Haskell's code. */
#include "shape_rows.h"
#include "cfi_bytes.h"
#include "isa/insn.h"
#include "made_image.h"

/* Where an instruction of a module stands of which only [0, described) has unwind information, and
   whose entry is nowhere near. */
static struct rows shapes_of_haskell(uint16_t machine, const void *code, size_t size,
				     uint64_t described)
{
	struct bytes frames = {.size = 0};
	size_t cie = put_cie(&frames, machine, "");
	const struct made_section sections[] = {
		{.name = ".text", .address = BARE_START, .bytes = code, .size = size, .code = true},
		{.name = ".eh_frame",
		 .address = 0x8000,
		 .bytes = frames.data,
		 .size = sizeof frames.data},
	};
	struct image *image;
	struct rows rows;
	put_fde(&frames, cie, BARE_START, described, "", 0);
	image = made_image(machine, 0, sections, sizeof sections / sizeof *sections);
	rows_init(&rows);
	shapes_add(image, &rows);
	rows_finish(&rows);
	image_close(image);
	return rows;
}

static void assert_haskell(const struct recipe *r, const struct isa *isa, int size, int ra, int fp)
{
	assert_int_equal(r->cfa, RECIPE_REG);
	assert_int_equal(r->cfa_reg, isa->sp);
	assert_int_equal(r->cfa_offset, size);
	assert_int_equal(r->ra, RECIPE_AT_CFA);
	assert_int_equal(r->ra_offset, ra);
	assert_int_equal(r->fp, RECIPE_AT_CFA);
	assert_int_equal(r->fp_offset, fp);
}

static void haskell_x86_64(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x30,                   /* 0: StgRun: sub $48, %rsp */
		0x48, 0x89, 0xe0,                         /* 4: mov %rsp, %rax */
		0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00, /* 7: sub $16384, %rsp */
		0x48, 0x89, 0x18, 0x48, 0x89, 0x68, 0x08, /* 14: rbx, rbp to (%rax), 8(%rax) */
		0x49, 0x89, 0xf5, 0x48, 0x89, 0xf8,       /* 21: mov %rsi, %r13; mov %rdi, %rax */
		0xff, 0xe0,                               /* 27: jmp *%rax */
		0x48, 0x89, 0xd8,                         /* 29: StgReturn: mov %rbx, %rax */
		0x48, 0x81, 0xc4, 0x00, 0x40, 0x00, 0x00, /* 32: add $16384, %rsp */
		0x48, 0x8b, 0x1c, 0x24,                   /* 39: mov (%rsp), %rbx */
		0x48, 0x8b, 0x6c, 0x24, 0x08,             /* 43: mov 8(%rsp), %rbp */
		0x48, 0x83, 0xc4, 0x30, 0xc3,             /* 48: add $48, %rsp; ret */
		0x48, 0x83, 0xc5, 0x10,                   /* 53: add $16, %rbp */
		0x48, 0x83, 0xec, 0x08,                   /* 57: sub $8, %rsp */
		0xe8, 0xbe, 0xff, 0xff, 0xff,             /* 61: call 0 */
		0x48, 0x83, 0xc4, 0x08,                   /* 66: add $8, %rsp */
		0xff, 0x65, 0x00,                         /* 70: jmp *(%rbp) */
	};
	struct rows rows = shapes_of_haskell(EM_X86_64, code, sizeof code, 53);
	const int size = 16384 + 48 + 8;
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa_offset, 56);
	assert_int_equal(at(&rows, 14)->cfa_offset, size);
	assert_int_equal(at(&rows, 27)->cfa_offset, size);
	assert_int_equal(at(&rows, 27)->fp, RECIPE_SAME);
	assert_haskell(at(&rows, 29), &isa_x86_64, size, -8, -48);
	assert_int_equal(at(&rows, 39)->cfa_offset, 56);
	assert_int_equal(at(&rows, 52)->cfa_offset, 8);
	assert_int_equal(at(&rows, 52)->fp, RECIPE_SAME);
	assert_haskell(at(&rows, 53), &isa_x86_64, size, -8, -48);
	assert_haskell(at(&rows, 57), &isa_x86_64, size, -8, -48);
	assert_haskell(at(&rows, 65), &isa_x86_64, size + 8, -8, -48);
	assert_haskell(at(&rows, 66), &isa_x86_64, size + 8, -8, -48);
	assert_haskell(at(&rows, 70), &isa_x86_64, size, -8, -48);
	rows_free(&rows);
	/* Without the way back it is something else. */
	rows = shapes_of_haskell(EM_X86_64, code, 29, 29);
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static const uint32_t haskell_arm[] = {
	0xa9bd53f3, 0xf90013fe, /* 0: StgRun: stp x19, x20, [sp, #-48]!; str x30, [sp, #32] */
	0xa9bf7bfd, 0x910003fd, /* 8: stp x29, x30, [sp, #-16]!; mov x29, sp */
	0xd14013ff,             /* 16: sub sp, sp, #16384 */
	0xaa0103f3, 0xd61f0000, /* 20: mov x19, x1; br x0 */
	0x914013ff, 0xa8c17bfd, /* 28: add sp, sp, #16384; ldp x29, x30, [sp], #16 */
	0xf94013fe, 0xa8c353f3, /* 36: ldr x30, [sp, #32]; ldp x19, x20, [sp], #48 */
	0xd65f03c0,             /* 44: ret */
	0x91004294, 0xd63f0100, /* 48: add x20, x20, #16; blr x8 */
	0xd65f03c0, 0x97fffff1, /* 56: ret; bl 0 */
};

static void haskell_aarch64(void **state)
{
	struct rows rows = shapes_of_haskell(EM_AARCH64, haskell_arm, sizeof haskell_arm, 48);
	const int size = 16384 + 16 + 48;
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa_offset, 48);
	assert_int_equal(at(&rows, 4)->ra, RECIPE_SAME);
	assert_haskell(at(&rows, 24), &isa_aarch64, size, -16, -64);
	assert_haskell(at(&rows, 28), &isa_aarch64, size, -16, -64);
	assert_int_equal(at(&rows, 44)->cfa_offset, 0);
	for (uint64_t offset = 48; offset < 64; offset += 4)
		assert_haskell(at(&rows, offset), &isa_aarch64, size, -16, -64);
	rows_free(&rows);
}

/* What C calls is assembly that somebody wrote without unwind information. */
static void called_code_is_not_haskell(void **state)
{
	uint32_t code[20];
	struct rows rows;
	(void)state;
	memcpy(code, haskell_arm, sizeof haskell_arm);
	code[11] = 0x94000001; /* bl 48, instead of the return … */
	code[12] = 0xd65f03c0;
	rows = shapes_of_haskell(EM_AARCH64, code, sizeof haskell_arm, 48);
	assert_int_equal(at(&rows, 52)->cfa, RECIPE_NONE); /* … and so there is no StgRun */
	rows_free(&rows);
	memcpy(code, haskell_arm, sizeof haskell_arm);
	memmove(code + 13, haskell_arm + 12, 16);
	code[12] = 0x94000001; /* 48: bl 52, behind StgRun's return */
	rows = shapes_of_haskell(EM_AARCH64, code, sizeof haskell_arm + 4, 52);
	assert_int_equal(at(&rows, 24)->cfa_offset, 16384 + 64);
	assert_int_equal(at(&rows, 56)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

/* A linker moves single instructions away from where some CPUs have trouble with them. */
static void moved_code_of_c_is_not_haskell(void **state)
{
	uint32_t code[18];
	struct rows rows;
	(void)state;
	memcpy(code, haskell_arm, 48);
	code[12] = 0x14000003; /* 48: b 60 */
	code[13] = 0xd65f03c0; /* 52: ret */
	code[14] = 0xd503201f; /* 56: nop, of Haskell */
	code[15] = 0xf9400108; /* 60: ldr x8,[x8] */
	code[16] = 0x17fffffd; /* 64: b 52 */
	code[17] = 0xd503201f;
	rows = shapes_of_haskell(EM_AARCH64, code, sizeof code, 56);
	assert_int_equal(at(&rows, 56)->cfa, RECIPE_REG);
	assert_int_equal(at(&rows, 60)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 64)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 68)->cfa, RECIPE_REG);
	rows_free(&rows);
	code[12] = 0x14000002; /* 48: b 56: not there */
	rows = shapes_of_haskell(EM_AARCH64, code, sizeof code, 56);
	assert_int_equal(at(&rows, 60)->cfa, RECIPE_REG);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(haskell_x86_64),
		cmocka_unit_test(haskell_aarch64),
		cmocka_unit_test(called_code_is_not_haskell),
		cmocka_unit_test(moved_code_of_c_is_not_haskell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
