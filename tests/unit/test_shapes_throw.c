/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of code that leaves its frames: the end of an unwinder, longjmp, switches of coroutines,
   raises of OCaml. */
#include "shape_rows.h"
#include "isa/insn.h"

static void expect_special(const struct rows *rows, uint64_t offset, unsigned reg, int how,
			   int32_t cfa, unsigned ra, int32_t ra_offset)
{
	const struct recipe *r = at(rows, offset);
	assert_int_equal(r->cfa, RECIPE_SPECIAL);
	assert_int_equal(r->cfa_reg, reg);
	assert_int_equal(r->cfa_vg, how);
	assert_int_equal(r->cfa_offset, cfa);
	assert_int_equal(r->ra, ra);
	assert_int_equal(r->ra_offset, ra_offset);
}

/* From the call that installs the handler's context on, the frame is the handler's. */
static void end_of_the_unwinder_aarch64(void **state)
{
	uint32_t code[] = {
		0x911203f3, /* add x19,sp,#0x480: the context */
		0x94000010, /* bl */
		0xaa0003e4, /* mov x4,x0 */
		0xf943cbe0, /* ldr x0,[sp,#1936]: cfa */
		0xf943cfe1, /* ldr x1,[sp,#1944]: ra */
		0x94000010, /* bl */
		0xf90007a1, /* str x1,[x29,#8] */
		0x14000002, /* b +8 */
		0xd2800004, /* mov x4,#0 */
		0x2a0203e0, /* mov w0,w2 */
		0xa9407bfd, /* ldp x29,x30,[sp] */
		0xa94353f3, /* ldp x19,x20,[sp,#48] */
		0x6d4827e8, /* ldp d8,d9,[sp,#128] */
		0x913b03ff, /* add sp,sp,#0xec0 */
		0x8b2463ff, /* add sp,sp,x4 */
		0xd65f03c0, /* ret */
		0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f,
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	(void)state;
	for (uint64_t offset = 4; offset < 32; offset += 4) {
		expect_special(&rows, offset, 31, RECIPE_WORD | RECIPE_WORD_MORE | RECIPE_RESUMES,
			       1936, RECIPE_AT_BASE, 1944);
		assert_int_equal(at(&rows, offset)->cfa_add, 2000);
		assert_int_equal(at(&rows, offset)->fp, RECIPE_VIA_BASE);
		assert_int_equal(at(&rows, offset)->fp_offset, 0x480 + 8 * 29);
		assert_int_equal(at(&rows, offset)->extra_offset, 0x480 + 8 * 19);
	}
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	for (uint64_t offset = 36; offset < 56; offset += 4) {
		expect_special(&rows, offset, 31, RECIPE_INDEX(4, 0) | RECIPE_RESUMES, 0xec0,
			       RECIPE_AT_SP, 8);
		assert_int_equal(at(&rows, offset)->extra_offset, 48);
	}
	expect_special(&rows, 56, 31, RECIPE_INDEX(4, 0) | RECIPE_RESUMES, 0, RECIPE_SAME, 0);
	expect_special(&rows, 60, 31, RECIPE_RESUMES, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&rows, 64)->cfa, RECIPE_NONE);
	rows_free(&rows);
	/* Where nothing says that a context is there, nothing is said. */
	code[0] = 0x911303f3; /* add x19,sp,#0x4c0 */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 8)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 60)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void end_of_the_unwinder_x86_64(void **state)
{
	uint8_t code[] = {
		0x90, 0x90,                               /* nop: what is the entry */
		0x48, 0x8d, 0x9d, 0x50, 0xfd, 0xff, 0xff, /* lea -0x2b0(%rbp),%rbx: the context */
		0xe8, 0x3b, 0x00, 0x00, 0x00,             /* 9: call */
		0x48, 0x8b, 0xb5, 0xe8, 0xfd, 0xff, 0xff, /* mov -0x218(%rbp),%rsi: ra */
		0x48, 0x8b, 0xbd, 0xe0, 0xfd, 0xff, 0xff, /* mov -0x220(%rbp),%rdi: cfa */
		0x48, 0x89, 0xc2,                         /* mov %rax,%rdx */
		0xe8, 0x3b, 0x00, 0x00, 0x00,             /* call */
		0x48, 0x89, 0xd1,                         /* mov %rdx,%rcx */
		0x48, 0x89, 0x74, 0x15, 0x08,             /* mov %rsi,0x8(%rbp,%rdx,1) */
		0x48, 0x8d, 0x4c, 0x0d, 0x08,             /* lea 0x8(%rbp,%rcx,1),%rcx */
		0x48, 0x8b, 0x5d, 0xd8,                   /* mov -0x28(%rbp),%rbx */
		0x48, 0x8b, 0x6d, 0x00,                   /* 53: mov 0(%rbp),%rbp */
		0x48, 0x89, 0xcc,                         /* 57: mov %rcx,%rsp */
		0x59, 0xff, 0xe1,                         /* pop %rcx; jmp *%rcx */
		0x90, 0x90, 0x90, 0x90,
	};
	struct rows rows = shapes_of(EM_X86_64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 8)->cfa, RECIPE_NONE);
	for (uint64_t offset = 9; offset < 57; offset++) {
		expect_special(&rows, offset, 6, RECIPE_WORD | RECIPE_WORD_MORE | RECIPE_RESUMES,
			       -0x220, RECIPE_AT_BASE, -0x218);
		assert_int_equal(at(&rows, offset)->cfa_add, -0x1e0);
		assert_int_equal(at(&rows, offset)->fp_offset, -0x2b0 + 8 * 6);
		assert_int_equal(at(&rows, offset)->extra_offset, -0x2b0 + 8 * 3);
	}
	expect_special(&rows, 57, 2, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	expect_special(&rows, 60, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	expect_special(&rows, 61, 7, RECIPE_RESUMES, 0, RECIPE_IN_REG, 2);
	assert_int_equal(at(&rows, 63)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[5] = 0x60;
	rows = shapes_of(EM_X86_64, code, sizeof code);
	assert_int_equal(at(&rows, 20)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 60)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void jumpto_of_llvm(void **state)
{
	static const uint32_t arm[] = {
		0xd503201f, 0xd503201f, /* nop; nop */
		0xa9410c02,             /* ldp x2,x3,[x0,#16] */
		0xa94e741c, 0xf940801e, /* ldp x28,x29,[x0,#224]; ldr x30,[x0,#256] */
		0xf9407c10, 0xa9400400,
		0x9100021f,             /* ldr x16,[x0,#248]; ldp x0,x1,[x0]; mov sp,x16 */
		0xd65f03c0, 0xd503201f, /* ret; nop */
	};
	static const uint8_t x86[] = {
		0x90, 0x90,             /* nop */
		0x48, 0x8b, 0x47, 0x38, /* mov 0x38(%rdi),%rax */
		0x48, 0x83, 0xe8, 0x10, /* sub $0x10,%rax */
		0x48, 0x89, 0x47, 0x38, /* mov %rax,0x38(%rdi) */
		0x48, 0x8b, 0x5f, 0x20, /* mov 0x20(%rdi),%rbx */
		0x48, 0x8b, 0x6f, 0x30, /* mov 0x30(%rdi),%rbp */
		0x48, 0x8b, 0x67, 0x38, /* mov 0x38(%rdi),%rsp */
		0x5f, 0x59, 0xff, 0xe1, /* pop %rdi; pop %rcx; jmp *%rcx */
		0x90, 0x90, 0x90, 0x90,
	};
	struct rows rows = shapes_of(EM_AARCH64, arm, sizeof arm);
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	for (uint64_t offset = 8; offset < 28; offset += 4)
		expect_special(&rows, offset, 0, RECIPE_WORD | RECIPE_RESUMES, 248, RECIPE_AT_BASE,
			       256);
	expect_special(&rows, 28, 16, RECIPE_RESUMES, 0, RECIPE_SAME, 0);
	expect_special(&rows, 32, 31, RECIPE_RESUMES, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&rows, 36)->cfa, RECIPE_NONE);
	rows_free(&rows);
	rows = shapes_of(EM_X86_64, x86, sizeof x86);
	expect_special(&rows, 13, 5, RECIPE_WORD | RECIPE_RESUMES, 0x38, RECIPE_AT_BASE, 0x80);
	assert_int_equal(at(&rows, 13)->cfa_add, 0);
	assert_int_equal(at(&rows, 14)->cfa_add, 16); /* two words were put there */
	assert_int_equal(at(&rows, 25)->cfa_add, 16);
	expect_special(&rows, 26, 7, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 27, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	expect_special(&rows, 28, 7, RECIPE_RESUMES, 0, RECIPE_IN_REG, 2);
	assert_int_equal(at(&rows, 30)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void longjmp_aarch64(void **state)
{
	uint32_t code[] = {
		0xd503201f, 0xd503201f, /* nop; nop */
		0xa9405013, 0xa945101d, /* ldp x19,x20,[x0]; ldp x29,x4,[x0,#80] */
		0xf9400043, 0xca03009e, /* ldr x3,[x2]; eor x30,x4,x3 */
		0x6d472408, 0xf9403404,
		0xca030085, /* ldp d8,d9,[x0,#112]; ldr x4,[x0,#104]; eor x5,x4,x3 */
		0x910000bf, 0xf100003f,
		0xd61f03c0, /* mov sp,x5; cmp x1,#0; br x30 */
		0xd503201f, 0xd503201f,
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	assert_int_equal(at(&rows, 12)->cfa, RECIPE_REG); /* as it was called */
	assert_int_equal(at(&rows, 12)->fp, RECIPE_SAME);
	assert_int_equal(at(&rows, 16)->fp, RECIPE_LOST);
	assert_int_equal(at(&rows, 20)->fp, RECIPE_LOST);
	for (uint64_t offset = 24; offset < 36; offset += 4)
		expect_special(&rows, offset, 0, RECIPE_WORD | RECIPE_MIXED | RECIPE_INDEX(3, 0),
			       104, RECIPE_SAME, 0);
	expect_special(&rows, 36, 5, 0, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&rows, 44)->cfa, RECIPE_REG);
	assert_int_equal(at(&rows, 44)->cfa_reg, 31);
	assert_int_equal(at(&rows, 48)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[8] = 0xca0300a5; /* eor x5,x5,x3 */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 24)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

/* ____longjmp_chk calls __longjmp, which loads another x29: SP tells where its frame is. */
static void checked_longjmp_aarch64(void **state)
{
	uint32_t code[] = {
		0xd65f03c0, 0xd100c3ff, 0xaa0003e2, /* ret; sub sp,sp,#48; mov x2,x0 */
		0xa9027bfd, 0x910083fd, 0x54000063,
		0x97ffffff, /* 12: stp x29,x30,[sp,#32]; add x29,sp,#32; b.cc; bl */
		0xaa0203e0, 0x94000003, 0xd503201f,
		0xd503201f, /* 28: mov x0,x2; bl to the next but one; nop; nop */
		0xd503201f, 0xa9405013, 0xa945101d,
		0xf9400043, /* 44: nop; ldp x19,x20,[x0]; ldp x29,x4,[x0,#80]; ldr */
		0xca03009e, 0xf9403404, 0xca030085,
		0x910000bf, /* eor x30,x4,x3; ldr x4,[x0,#104]; eor; mov sp,x5 */
		0xd61f03c0, 0xd503201f, 0xd503201f,
		0xd503201f, /* br x30 */
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	const struct recipe *r = at(&rows, 32);
	(void)state;
	assert_int_equal(at(&rows, 28)->cfa, RECIPE_NONE);
	assert_int_equal(r->cfa, RECIPE_REG);
	assert_int_equal(r->cfa_reg, 31);
	assert_int_equal(r->cfa_offset, 48);
	assert_int_equal(r->ra, RECIPE_AT_CFA);
	assert_int_equal(r->ra_offset, -8);
	assert_int_equal(r->fp, RECIPE_AT_CFA);
	assert_int_equal(r->fp_offset, -16);
	assert_int_equal(at(&rows, 36)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[8] = 0x94000002; /* not to it */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[8] = 0x94000004; /* behind the nop */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 32)->cfa_offset, 48);
	rows_free(&rows);
	code[6] = 0xd10043ff; /* sub sp,sp,#16 */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[6] = 0x97ffffff;
	code[4] = 0x910043fd; /* add x29,sp,#16: not at the upper end */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

/* A coroutine leaves for another one, whose stack is that of the first as soon as SP is. */
static void switches_aarch64(void **state)
{
	uint32_t code[] = {
		0xd503201f, 0xd10183ff, 0xa90053f3,
		0xa9015bf5, /* 4: sub sp,sp,#96; stp x19,x20,[sp]; x21,x22 */
		0xa9027bfd, 0xf9001bfe, 0x910003e2,
		0xf9000002, /* 16: stp x29,x30,[sp,#32]; str x30,[sp,#48]; mov x2,sp; str */
		0xf9400023, 0x9100007f, 0xa94053f3,
		0xa9415bf5, /* 32: ldr x3,[x1]; mov sp,x3; ldp x19,x20; x21,x22 */
		0xa9427bfd, 0xf9401be4, 0x910183ff,
		0xd65f0080, /* 48: ldp x29,x30; ldr x4,[sp,#48]; add sp,sp,#96; ret x4 */
		0xd503201f, 0xd503201f,
	};
	struct rows rows = shapes_of(EM_AARCH64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 36)->cfa, RECIPE_NONE); /* not yet */
	expect_special(&rows, 40, 31, RECIPE_RESUMES, 96, RECIPE_AT_SP, 48);
	assert_int_equal(at(&rows, 40)->fp, RECIPE_AT_SP);
	assert_int_equal(at(&rows, 40)->fp_offset, 32);
	assert_int_equal(at(&rows, 40)->extra, RECIPE_AT_SP);
	assert_int_equal(at(&rows, 44)->extra, RECIPE_SAME);
	assert_int_equal(at(&rows, 48)->fp, RECIPE_AT_SP);
	assert_int_equal(at(&rows, 52)->fp, RECIPE_SAME);
	expect_special(&rows, 56, 31, RECIPE_RESUMES, 96, RECIPE_IN_REG, 4);
	expect_special(&rows, 60, 31, RECIPE_RESUMES, 0, RECIPE_IN_REG, 4);
	assert_int_equal(at(&rows, 64)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[11] = 0xa9425bf5; /* from elsewhere than it was saved to */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 40)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[11] = 0xa9415bf5;
	code[13] = 0xf9401fe4; /* the same for where it goes on */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 40)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[13] = 0xf9401be4;
	code[8] = 0xd503201f;
	code[9] = 0x9100005f; /* mov sp,x2: its own */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 40)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[8] = 0xf9400023;
	code[9] = 0x9100007f;
	code[6] = code[7] = 0xd503201f; /* nobody has its own SP: not to come back */
	rows = shapes_of(EM_AARCH64, code, sizeof code);
	assert_int_equal(at(&rows, 40)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void switches_x86_64(void **state)
{
	uint8_t code[] = {
		0x90, 0x90, 0x55, 0x53, 0x41, 0x54, 0x41, 0x55, /* push %rbp; %rbx; %r12; %r13 */
		0x41, 0x56, 0x41, 0x57, 0x48, 0x89, 0x27, /* push %r14; %r15; mov %rsp,(%rdi) */
		0x48, 0x8b, 0x26, 0x41, 0x5f, 0x41, 0x5e, /* 15: mov (%rsi),%rsp; pop %r15; %r14 */
		0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0x48, 0x89, /* 22: pop %r13; %r12; %rbx; %rbp */
		0xf8, 0xc3, 0x90, 0x90, 0x90, 0x90,             /* 28: mov %rdi,%rax; ret */
	};
	struct rows rows = shapes_of(EM_X86_64, code, sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 17)->cfa, RECIPE_NONE);
	expect_special(&rows, 18, 7, RECIPE_RESUMES, 56, RECIPE_AT_CFA, -8);
	assert_int_equal(at(&rows, 18)->fp, RECIPE_AT_SP);
	assert_int_equal(at(&rows, 18)->fp_offset, 40);
	assert_int_equal(at(&rows, 18)->extra_offset, 32);
	expect_special(&rows, 24, 7, RECIPE_RESUMES, 32, RECIPE_AT_CFA, -8);
	assert_int_equal(at(&rows, 26)->extra_offset, 0);
	assert_int_equal(at(&rows, 27)->extra, RECIPE_SAME);
	assert_int_equal(at(&rows, 27)->fp_offset, 0);
	expect_special(&rows, 28, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	expect_special(&rows, 31, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
	code[19] = 0x5e, code[21] = 0x5f; /* pop %r14; %r15 */
	rows = shapes_of(EM_X86_64, code, sizeof code);
	assert_int_equal(at(&rows, 18)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void plain_longjmp(void **state)
{
	uint32_t pascal[] = {
		0xd503201f, 0xf9403003, /* nop; ldr x3,[x0,#96] */
		0xa9405013, 0xa9457bfd, /* ldp x19,x20,[x0]; (not yet) */
		0x9100007f, 0x6d468c08, /* mov sp,x3; ldp d8,d3,[x0,#104] */
		0xaa0103e0, 0xd65f03c0, /* mov x0,x1; ret */
		0xd503201f, 0xd503201f,
	};
	static const uint32_t musl[] = {
		0xd503201f, 0xa9405013, /* nop; ldp x19,x20,[x0] */
		0xa945781d, 0xf9403402, /* ldp x29,x30,[x0,#80]; ldr x2,[x0,#104] */
		0x9100005f, 0x7100003f, /* mov sp,x2; cmp w1,#0 */
		0x1a9f1420, 0xd61f03c0, /* csinc w0,w1,wzr,ne; br x30 */
		0xd503201f, 0xd503201f,
	};
	static const uint8_t x86[] = {
		0x89, 0xf0, 0x48, 0x8b, 0x1f,       /* mov %esi,%eax; mov (%rdi),%rbx */
		0x48, 0x8b, 0x6f, 0x08, 0x4c, 0x8b, /* mov 8(%rdi),%rbp; mov 16(%rdi),%r12 … */
		0x67, 0x10, 0x4c, 0x8b, 0x6f, 0x18, 0x4c, 0x8b, 0x77, 0x20, 0x4c,
		0x8b, 0x7f, 0x28, 0x48, 0x8b, 0x67, 0x30, 0xff, 0x67, /* mov 48(%rdi),%rsp; jmp *56(%rdi) */
		0x38, 0xc3,
	};
	struct rows rows = shapes_of(EM_AARCH64, pascal, sizeof pascal);
	(void)state;
	assert_int_equal(at(&rows, 16)->cfa, RECIPE_NONE); /* stored relative to SP: not this */
	rows_free(&rows);
	pascal[3] = 0xa945781d; /* ldp x29,x30,[x0,#80] */
	rows = shapes_of(EM_AARCH64, pascal, sizeof pascal);
	assert_int_equal(at(&rows, 12)->cfa, RECIPE_NONE); /* as the code says */
	expect_special(&rows, 16, 3, 0, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&rows, 20)->cfa, RECIPE_REG);
	assert_int_equal(at(&rows, 28)->cfa_reg, 31);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
	rows = shapes_of(EM_AARCH64, musl, sizeof musl);
	assert_int_equal(at(&rows, 8)->cfa, RECIPE_NONE);
	expect_special(&rows, 12, 0, RECIPE_WORD, 104, RECIPE_SAME, 0);
	expect_special(&rows, 16, 2, 0, 0, RECIPE_SAME, 0);
	assert_int_equal(at(&rows, 28)->cfa, RECIPE_REG);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
	rows = shapes_of(EM_X86_64, x86, sizeof x86);
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	for (uint64_t offset = 5; offset < 32; offset++)
		expect_special(&rows, offset, 5, RECIPE_WORD, 48, RECIPE_AT_BASE, 56);
	assert_int_equal(at(&rows, 32)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

static void raises_of_ocaml(void **state)
{
	static const uint32_t arm[] = {
		0xd503201f, 0xd503201f, /* nop; nop */
		0x9100035f, 0xf94007f0,
		0xf84107fa, /* mov sp,x26; ldr x16,[sp,#8]; ldr x26,[sp],#16 */
		0xd61f0200, /* br x16 */
		0x94000010, 0xaa1303e0,
		0x17fffffa, /* bl; mov x0,x19; b to the first */
		0xd503201f, 0xd503201f,
	};
	static const uint8_t x86[] = {
		0x90, 0x90,                   /* nop */
		0x49, 0x8b, 0x66, 0x10,       /* mov 0x10(%r14),%rsp */
		0x41, 0x8f, 0x46, 0x10, 0xc3, /* 6: pop 0x10(%r14); ret */
		0x49, 0x89, 0xc4, 0x5e, 0x48, 0x89,
		0xe2,                         /* 11: mov %rax,%r12; pop %rsi; mov %rsp,%rdx */
		0xe8, 0x3b, 0x00, 0x00, 0x00, /* 18: call */
		0x4c, 0x89, 0xe0, 0x49, 0x8b, 0x66,
		0x10,                               /* 23: mov %r12,%rax; mov 0x10(%r14),%rsp */
		0x41, 0x8f, 0x46, 0x10, 0x41, 0x5b, /* 30: pop 0x10(%r14); pop %r11 */
		0x41, 0xff, 0xe3,                   /* 36: jmp *%r11 */
		0x41, 0x8f, 0x86, 0xd8, 0x00, 0x00,
		0x00, /* 39: pop 0xd8(%r14) */
		0x49, 0x89, 0xa6, 0xd0, 0x00, 0x00,
		0x00,                               /* 46: mov %rsp,0xd0(%r14) */
		0x48, 0x83, 0xec, 0x08, 0xff, 0xe0, /* 53: sub $8,%rsp; jmp *%rax */
		0x90, 0x90, 0x90, 0x90,
	};
	struct rows rows = shapes_of(EM_AARCH64, arm, sizeof arm);
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	expect_special(&rows, 8, 26, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 12, 31, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 16, 31, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 20, 31, RECIPE_RESUMES, 0, RECIPE_IN_REG, 16);
	assert_int_equal(at(&rows, 24)->cfa,
			 RECIPE_NONE); /* the return address is in x30 until then */
	expect_special(&rows, 28, 26, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 32, 26, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	assert_int_equal(at(&rows, 36)->cfa, RECIPE_NONE);
	rows_free(&rows);
	rows = shapes_of(EM_X86_64, x86, sizeof x86);
	assert_int_equal(at(&rows, 5)->cfa, RECIPE_NONE);
	expect_special(&rows, 6, 7, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 10, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	assert_int_equal(at(&rows, 14)->cfa, RECIPE_REG);
	assert_int_equal(at(&rows, 14)->cfa_offset, 8);
	expect_special(&rows, 15, 7, 0, 0, RECIPE_AT_SP, -8); /* popped */
	expect_special(&rows, 22, 7, 0, 0, RECIPE_AT_SP, -8);
	expect_special(&rows, 23, 14, RECIPE_WORD | RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 29, 14, RECIPE_WORD | RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 30, 7, RECIPE_RESUMES, 16, RECIPE_AT_CFA, -8);
	expect_special(&rows, 34, 7, RECIPE_RESUMES, 8, RECIPE_AT_CFA, -8);
	expect_special(&rows, 36, 7, RECIPE_RESUMES, 0, RECIPE_IN_REG, 11);
	assert_int_equal(at(&rows, 39)->cfa, RECIPE_NONE);
	expect_special(&rows, 46, 7, 0, 0, RECIPE_AT_SP, -8);
	expect_special(&rows, 53, 7, 0, 0, RECIPE_AT_SP, -8);
	assert_int_equal(at(&rows, 57)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end_of_the_unwinder_aarch64),
		cmocka_unit_test(end_of_the_unwinder_x86_64),
		cmocka_unit_test(jumpto_of_llvm),
		cmocka_unit_test(longjmp_aarch64),
		cmocka_unit_test(checked_longjmp_aarch64),
		cmocka_unit_test(switches_aarch64),
		cmocka_unit_test(switches_x86_64),
		cmocka_unit_test(plain_longjmp),
		cmocka_unit_test(raises_of_ocaml),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
