/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of V8's builtins. */
#include "shape_rows.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "made_image.h"
#include "recipes/analysis.h"

#define BUILTINS 100

/* An image with as many builtins as V8 has at least. The first one has this name and code, all others
   are empty. */
static struct image *image_of_builtin(uint16_t machine, const char *name, const void *code,
				      size_t size)
{
	char strings[64] = "\0Builtins_Other\0";
	uint8_t text[512 + 4 * BUILTINS] = {0};
	Elf64_Sym table[BUILTINS + 1] = {{0}};
	const struct made_section sections[] = {
		{.name = ".text",
		 .address = BARE_START,
		 .bytes = text,
		 .size = sizeof text,
		 .code = true},
		{.name = ".symtab",
		 .bytes = table,
		 .size = sizeof table,
		 .type = SHT_SYMTAB,
		 .link = 3},
		{.name = ".strtab", .bytes = strings, .size = sizeof strings, .type = SHT_STRTAB},
	};
	strcpy(strings + 16, name);
	memcpy(text, code, size);
	for (size_t i = 1; i <= BUILTINS; i++)
		table[i] = (Elf64_Sym){.st_name = i == 1 ? 16 : 1,
				       .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				       .st_shndx = 1,
				       .st_value = BARE_START + (i == 1 ? 0 : 508 + 4 * (i - 1)),
				       .st_size = i == 1 ? size : 4};
	return made_image(machine, 0, sections, sizeof sections / sizeof *sections);
}

static struct rows shapes_of_builtin(uint16_t machine, const char *name, const void *code,
				     size_t size)
{
	return shapes_of_image(image_of_builtin(machine, name, code, size));
}

/* What the analysis alone makes of it. */
static struct rows analysis_of_builtin(uint16_t machine, const char *name, const void *code,
				       size_t size)
{
	struct image *image = image_of_builtin(machine, name, code, size);
	struct symbols *symbols;
	struct analysis analysis;
	struct rows rows;
	rows_init(&rows);
	assert_null(symbols_read(image, NULL, &symbols));
	assert_null(analysis_run(image, symbols, &analysis));
	analysis_rows(&analysis, &rows);
	rows_finish(&rows);
	analysis_free(&analysis);
	symbols_free(symbols);
	image_close(image);
	return rows;
}

/* Callees take arguments off the stack: behind a call only FP tells where the frame is. */
static void frames_of_builtins(void **state)
{
	static const uint32_t code[] = {
		0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
		0x910003fd, /* mov x29,sp */
		0xa9bf0be1, /* stp x1,x2,[sp,#-16]! */
		0xd63f0200, /* blr x16 */
		0xd503201f, /* nop */
		0xa9407bbd, /* ldp x29,x30,[x29] */
		0x910043ff, /* add sp,sp,#16 */
		0xd65f03c0, /* ret */
	};
	static const uint8_t x86_64[] = {0x55, 0x48, 0x89, 0xe5, 0x51,
					 0xff, 0xd0, 0x90, 0xc9, 0xc3};
	struct rows rows = analysis_of_builtin(EM_AARCH64, "Builtins_AddHandler", code,
					       sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 0)->cfa_reg, isa_aarch64.sp);
	assert_int_equal(at(&rows, 0)->ra, RECIPE_SAME);
	assert_int_equal(at(&rows, 4)->cfa_reg, isa_aarch64.sp);
	for (uint64_t offset = 8; offset <= 20; offset += 4) {
		assert_int_equal(at(&rows, offset)->cfa_reg, isa_aarch64.fp);
		assert_int_equal(at(&rows, offset)->cfa_offset, 16);
	}
	rows_free(&rows);
	rows = analysis_of_builtin(EM_AARCH64, "other", code, sizeof code);
	assert_int_equal(at(&rows, 12)->cfa_reg, isa_aarch64.sp);
	rows_free(&rows);
	rows = analysis_of_builtin(EM_X86_64, "Builtins_AddHandler", x86_64, sizeof x86_64);
	assert_int_equal(at(&rows, 0)->cfa_offset, 8);
	for (uint64_t offset = 4; offset <= 8; offset++) {
		assert_int_equal(at(&rows, offset)->cfa_reg, isa_x86_64.fp);
		assert_int_equal(at(&rows, offset)->cfa_offset, 16);
	}
	rows_free(&rows);
}

static void assert_in_object(const struct recipe *r, int slot, int pc, int fp)
{
	assert_int_equal(r->ra, RECIPE_VIA_CFA);
	assert_int_equal(r->fp, RECIPE_VIA_CFA);
	assert_int_equal(RECIPE_VIA_SLOT(r->ra_offset), slot);
	assert_int_equal(RECIPE_VIA_SLOT(r->fp_offset), slot);
	assert_int_equal(RECIPE_VIA_MEMBER(r->ra_offset), pc);
	assert_int_equal(RECIPE_VIA_MEMBER(r->fp_offset), fp);
}

static void deoptimizer_aarch64(void **state)
{
	static const uint32_t code[] = {
		0xd63f0200, /* blr x16: the frame is still there */
		0xf81e835f, /* stur xzr,[x26,#-24] */
		0xf9402401, /* ldr x1,[x0,#72] */
		0xa9bf7fe0, /* stp x0,xzr,[sp,#-16]! */
		0xd63f0200, /* blr x16: it is gone */
		0xf81e835f, /* stur xzr,[x26,#-24] */
		0xa8c17fe4, /* ldp x4,xzr,[sp],#16 */
		0xf9403090, /* ldr x16,[x4,#96] */
		0x9100021f, /* mov sp,x16 */
		0xb9805081, /* ldrsw x1,[x4,#80] */
	};
	struct rows rows = shapes_of_builtin(EM_AARCH64, "Builtins_DeoptimizationEntry_Eager", code,
					     sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 0)->cfa_reg, isa_aarch64.fp);
	assert_int_equal(at(&rows, 4)->cfa, RECIPE_NONE);
	for (uint64_t offset = 16; offset <= 24; offset += 4) {
		assert_int_equal(at(&rows, offset)->cfa, RECIPE_REG);
		assert_int_equal(at(&rows, offset)->cfa_reg, isa_aarch64.sp);
		assert_int_equal(at(&rows, offset)->cfa_offset, 16);
		assert_in_object(at(&rows, offset), -16, 112, 104);
	}
	assert_int_equal(at(&rows, 28)->cfa, RECIPE_NONE);
	rows_free(&rows);
	/* The same code under another name is as any builtin. */
	rows = shapes_of_builtin(EM_AARCH64, "Builtins_Something", code, sizeof code);
	assert_int_equal(at(&rows, 16)->cfa_reg, isa_aarch64.fp);
	rows_free(&rows);
}

static void deoptimizer_x86_64(void **state)
{
	static const uint8_t code[] = {
		0xff, 0xd0,                                  /* call *%rax */
		0x48, 0x8b, 0x24, 0x24,                      /* mov (%rsp),%rsp */
		0x48, 0x8b, 0x58, 0x38,                      /* mov 0x38(%rax),%rbx */
		0x8f, 0x83, 0x88, 0,    0, 0,                /* pop 0x88(%rbx) */
		0xff, 0xd0,                                  /* call *%rax */
		0x49, 0xc7, 0x85, 0x80, 0, 0, 0, 0, 0, 0, 0, /* movq $0,0x80(%r13) */
		0x48, 0x8b, 0x24, 0x24,                      /* mov (%rsp),%rsp */
		0x58,                                        /* pop %rax */
		0x48, 0x8b, 0x60, 0x50,                      /* mov 0x50(%rax),%rsp */
		0x8b, 0x50, 0x40,                            /* mov 0x40(%rax),%edx */
		0x90, 0x90, 0x90, 0x90,
	};
	struct rows rows = shapes_of_builtin(EM_X86_64, "Builtins_DeoptimizationEntry_Lazy", code,
					     sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 1)->cfa_reg, isa_x86_64.fp);
	for (uint64_t offset = 16; offset < 33; offset++) {
		assert_int_equal(at(&rows, offset)->cfa, RECIPE_DEREF);
		assert_int_equal(at(&rows, offset)->cfa_reg, isa_x86_64.sp);
		assert_int_equal(at(&rows, offset)->cfa_offset, 0);
		assert_int_equal(at(&rows, offset)->cfa_add, 8);
		assert_in_object(at(&rows, offset), -8, 0x60, 0x58);
	}
	assert_int_equal(at(&rows, 33)->cfa, RECIPE_NONE); /* SP is another one */
	rows_free(&rows);
}

static void direct_entry_aarch64(void **state)
{
	static const uint32_t code[] = {
		0xf90003fe, /* str x30,[sp] */
		0xd63f0140, /* blr x10 */
		0xf94003fe, /* ldr x30,[sp] */
		0xd65f03c0, /* ret */
	};
	struct rows rows = shapes_of_builtin(EM_AARCH64, "Builtins_DirectCEntry", code,
					     sizeof code);
	(void)state;
	assert_int_equal(at(&rows, 0)->cfa, RECIPE_NONE); /* that is for the analysis */
	for (uint64_t offset = 4; offset <= 8; offset += 4) {
		assert_int_equal(at(&rows, offset)->cfa_reg, isa_aarch64.sp);
		assert_int_equal(at(&rows, offset)->cfa_offset + at(&rows, offset)->ra_offset, 0);
		assert_int_equal(at(&rows, offset)->fp, RECIPE_SAME);
	}
	assert_int_equal(at(&rows, 12)->cfa, RECIPE_NONE);
	rows_free(&rows);
}

/* Of a stripped V8 only numbers are left. */
static void entries_without_names(void **state)
{
	static const uint32_t direct[] = {
		0xf90003fe, /* str x30,[sp] */
		0xd63f0140, /* blr x10 */
		0xf94003fe, /* ldr x30,[sp] */
		0xd65f03c0, /* ret */
	};
	static const uint8_t entry[] = {0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41,
					0x57, 0x53, 0xff, 0xd0, 0x90, 0x90, 0x90};
	struct rows rows = shapes_of_builtin(EM_AARCH64, "Builtins_#7", direct, sizeof direct);
	(void)state;
	assert_int_equal(at(&rows, 4)->cfa_reg, isa_aarch64.sp);
	assert_int_equal(at(&rows, 8)->cfa_reg, isa_aarch64.sp);
	rows_free(&rows);
	rows = shapes_of_builtin(EM_X86_64, "Builtins_#7", entry, sizeof entry);
	assert_int_equal(at(&rows, 9)->cfa, RECIPE_NONE); /* that is for the analysis */
	rows_free(&rows);
	rows = shapes_of_builtin(EM_X86_64, "Builtins_#7", entry + 2, sizeof entry - 2);
	assert_int_equal(at(&rows, 7)->cfa_reg, isa_x86_64.fp);
	rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_builtins),    cmocka_unit_test(deoptimizer_aarch64),
		cmocka_unit_test(deoptimizer_x86_64),    cmocka_unit_test(direct_entry_aarch64),
		cmocka_unit_test(entries_without_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
