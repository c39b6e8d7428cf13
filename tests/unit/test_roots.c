/* SPDX-License-Identifier: Apache-2.0 */
/* The procedure at the entry of a program is a root, up to where another one begins. */
#include "recipes/roots.h"

#include "isa/insn.h"
#include "made_image.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"
#include "unit.h"

#define START 0x1000u

/* `flags` of .dynamic; 0: there is none, it is a library. */
static struct rows roots_of(uint16_t machine, const void *code, size_t size, uint64_t flags,
			    uint64_t pointer)
{
	const Elf64_Dyn dynamic[] = {{.d_tag = DT_FLAGS_1, .d_un.d_val = flags},
				     {.d_tag = DT_NULL}};
	const struct made_section sections[] = {
		{.name = ".text", .address = START, .bytes = code, .size = size, .code = true},
		{.name = ".data", .address = 0x4000, .bytes = &pointer, .size = sizeof pointer},
		{.name = ".dynamic",
		 .address = 0x5000,
		 .bytes = dynamic,
		 .size = sizeof dynamic,
		 .type = SHT_DYNAMIC},
	};
	struct image *image = made_image(machine, START, sections, flags ? 3 : 2);
	struct analysis analysis;
	struct rows rows;
	struct err *e = analysis_run(image, NULL, &analysis);
	if (e)
		fail_msg("%s", err_text(e));
	rows_init(&rows);
	roots_add(image, &analysis, &rows);
	rows_finish(&rows);
	analysis_free(&analysis);
	image_close(image);
	return rows;
}

static bool is_root(const struct rows *rows, uint64_t offset)
{
	return rows->rules[rows_find(rows, START + offset)].cfa == RECIPE_ROOT;
}

/* Checks that exactly what stands before `end` is a root. */
static void expect(uint16_t machine, const void *code, size_t size, uint64_t flags,
		   uint64_t pointer, uint64_t end)
{
	struct rows rows = roots_of(machine, code, size, flags, pointer);
	for (uint64_t offset = 0; offset < size; offset += machine == EM_AARCH64 ? 4 : 1)
		if (is_root(&rows, offset) != (offset < end))
			fail_msg("0x%llx: %s", (unsigned long long)(START + offset),
				 offset < end ? "no root" : "a root");
	rows_free(&rows);
}

static const uint8_t x86_start[] = {
	0x6a, 0x01,                /* 0: push $1 */
	0xe8, 0x0b, 0,    0,    0, /* 2: call 18 */
	0x75, 0xf7,                /* 7: jne 0 */
	0xb8, 0x3c, 0,    0,    0, /* 9: mov $60, %eax */
	0x0f, 0x05,                /* 14: syscall */
	0xeb, 0xfe,                /* 16: jmp 16 */
	0x48, 0xff, 0xc0, 0xc3,    /* 18: inc %rax; ret */
};

static const uint32_t arm_start[] = {
	0xd10083ff, /* 0: sub sp, sp, #32 */
	0x94000005, /* 4: bl 24 */
	0x54ffffc1, /* 8: b.ne 0 */
	0xd2800ba8, /* 12: mov x8, #93 */
	0xd4000001, /* 16: svc #0 */
	0x14000000, /* 20: b 20 */
	0x91000400, /* 24: add x0, x0, #1 */
	0xd65f03c0, /* 28: ret */
};

static void ends_at_the_last_system_call(void **state)
{
	(void)state;
	expect(EM_X86_64, x86_start, sizeof x86_start, DF_1_PIE, 0, 16);
	expect(EM_AARCH64, arm_start, sizeof arm_start, DF_1_PIE, 0, 20);
}

/* Their headers may name any address. */
static void a_library_has_none(void **state)
{
	(void)state;
	expect(EM_X86_64, x86_start, sizeof x86_start, 0, 0, 0);
	expect(EM_AARCH64, arm_start, sizeof arm_start, 0, 0, 0);
	expect(EM_X86_64, x86_start, sizeof x86_start, DF_1_NOW, 0, 0);
}

/* _start: jmp main. It is a part of the entry, as long as nobody calls it. */
static void a_jump_goes_on(void **state)
{
	static const uint8_t x86[] = {
		0xeb, 0x02,             /* 0: jmp 4 */
		0x0f, 0x0b,             /* 2: ud2 */
		0x48, 0x83, 0xec, 0x18, /* 4: sub $24, %rsp */
		0xff, 0xd0,             /* 8: call *%rax */
		0x0f, 0x0b,             /* 10: ud2 */
	};
	static const uint32_t arm[] = {
		0x14000001, /* 0: b 4 */
		0xd10083ff, /* 4: sub sp, sp, #32 */
		0xd63f0000, /* 8: blr x0 */
		0xd4200000, /* 12: brk #0 */
	};
	struct rows rows = roots_of(EM_X86_64, x86, sizeof x86, DF_1_PIE, 0);
	(void)state;
	assert_true(is_root(&rows, 0));
	assert_false(is_root(&rows, 2));
	assert_true(is_root(&rows, 8));
	rows_free(&rows);
	expect(EM_AARCH64, arm, sizeof arm, DF_1_PIE, 0, 16);
}

/* The same, but it calls itself: in most of its frames it has a caller. */
static void what_is_called_is_none(void **state)
{
	static const uint8_t x86[] = {
		0xeb, 0x02,                   /* 0: jmp 4 */
		0x0f, 0x0b,                   /* 2: ud2 */
		0x48, 0x83, 0xec, 0x18,       /* 4: sub $24, %rsp */
		0xe8, 0xf7, 0xff, 0xff, 0xff, /* 8: call 4 */
		0x48, 0x83, 0xc4, 0x18,       /* 13: add $24, %rsp */
		0xc3,                         /* 17: ret */
	};
	static const uint32_t arm[] = {
		0x14000001, /* 0: b 4 */
		0xf81f0ffe, /* 4: str x30, [sp, #-16]! */
		0x97ffffff, /* 8: bl 4 */
		0xf84107fe, /* 12: ldr x30, [sp], #16 */
		0xd65f03c0, /* 16: ret */
	};
	(void)state;
	expect(EM_X86_64, x86, sizeof x86, DF_1_PIE, 0, 2);
	expect(EM_AARCH64, arm, sizeof arm, DF_1_PIE, 0, 4);
}

/* The same, but a word of the data points to it: it may be called through that. */
static void what_is_pointed_to_is_none(void **state)
{
	static const uint8_t x86[] = {
		0xe9, 0x0b, 0,    0,    0,                /* 0: jmp 16 */
		0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, /* */
		0xcc, 0xcc, 0xcc, 0xcc,                   /* */
		0x55, 0x48, 0x89, 0xe5,                   /* 16: push %rbp; mov %rsp, %rbp */
		0xff, 0xd0, 0x5d, 0xc3,                   /* 20: call *%rax; pop %rbp; ret */
	};
	(void)state;
	expect(EM_X86_64, x86, sizeof x86, DF_1_PIE, START + 16, 5);
}

/* Who calls the entry makes it a procedure as any other. */
static void an_entry_that_is_called_is_none(void **state)
{
	static const uint8_t x86[] = {
		0xff, 0xc8,                   /* 0: dec %eax */
		0x74, 0x05,                   /* 2: je 9 */
		0xe8, 0xf7, 0xff, 0xff, 0xff, /* 4: call 0 */
		0xc3,                         /* 9: ret */
	};
	(void)state;
	expect(EM_X86_64, x86, sizeof x86, DF_1_PIE, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_at_the_last_system_call),
		cmocka_unit_test(a_library_has_none),
		cmocka_unit_test(a_jump_goes_on),
		cmocka_unit_test(what_is_called_is_none),
		cmocka_unit_test(what_is_pointed_to_is_none),
		cmocka_unit_test(an_entry_that_is_called_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
