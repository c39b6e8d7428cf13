/* SPDX-License-Identifier: Apache-2.0 */
/* What V8's builtins are, by their names and by their instructions. */
#include "flow/builtins.h"

#include <elf.h>
#include <string.h>

#include "image/symbols.h"
#include "isa/insn.h"
#include "made_image.h"

#define TEXT 0x1000u

/* The code is all that the image has. */
static enum builtin_kind kind_in(uint16_t machine, const struct symbol *symbol, const void *code,
				 size_t size)
{
	const struct made_section text = {
		.name = ".text", .address = TEXT, .bytes = code, .size = size, .code = true};
	struct image *image = made_image(machine, 0, &text, 1);
	enum builtin_kind kind = builtin_kind(image, isa_for_machine(machine), symbol);
	image_close(image);
	return kind;
}

static enum builtin_kind kind_of_code(uint16_t machine, const void *code, size_t size)
{
	const struct symbol symbol = {.address = TEXT, .size = size, .name = "Builtins_#17"};
	return kind_in(machine, &symbol, code, size);
}

static const uint32_t direct[] = {
	0xf90003fe, /* str x30,[sp] */
	0xd63f0140, /* blr x10 */
	0xf94003fe, /* ldr x30,[sp] */
	0xd65f03c0, /* ret */
};

/* As V8 has it. */
static const uint32_t entry_aarch64[] = {
	0x6dbf3fee, /* stp d14,d15,[sp,#-16]! */
	0x6dbf37ec, /* stp d12,d13,[sp,#-16]! */
	0x6dbf2fea, /* stp d10,d11,[sp,#-16]! */
	0x6dbf27e8, /* stp d8,d9,[sp,#-16]! */
	0xa9bf73fb, /* stp x27,x28,[sp,#-16]! */
	0xa9bf6bf9, /* stp x25,x26,[sp,#-16]! */
	0xa9bf63f7, /* stp x23,x24,[sp,#-16]! */
	0xa9bf5bf5, /* stp x21,x22,[sp,#-16]! */
	0xa9bf53f3, /* stp x19,x20,[sp,#-16]! */
	0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
	0x9e6703ef, /* fmov d15,xzr */
	0xaa0003fa, /* mov x26,x0 */
	0x910003fd, /* mov x29,sp */
	0xd280004c, /* mov x12,#2 */
	0xa9bf33ff, /* stp xzr,x12,[sp,#-16]! */
	0x9102034b, /* add x11,x26,#0x80 */
	0xd63f0140, /* blr x10 */
};

static const uint8_t entry_x86_64[] = {
	0x55,                   /* push %rbp */
	0x48, 0x89, 0xe5,       /* mov %rsp,%rbp */
	0x6a, 0x02,             /* push $2 */
	0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
	0x41, 0x54,             /* push %r12 */
	0x41, 0x55,             /* push %r13 */
	0x41, 0x56,             /* push %r14 */
	0x41, 0x57,             /* push %r15 */
	0x53,                   /* push %rbx */
	0x49, 0x89, 0xfd,       /* mov %rdi,%r13 */
	0xff, 0xd0,             /* call *%rax */
};

static void names_tell(void **state)
{
	static const struct {
		const char *name;
		enum builtin_kind kind;
	} cases[] = {
		{"Builtins_JSEntry", BUILTIN_ENTRY},
		{"Builtins_JSRunMicrotasksEntry", BUILTIN_ENTRY},
		{"Builtins_DirectCEntry", BUILTIN_DIRECT_ENTRY},
		{"Builtins_CEntry_Return1_ArgvOnStack_NoBuiltinExit", BUILTIN_OTHER},
		{"Builtins_InterpreterEntryTrampoline", BUILTIN_OTHER},
		{"Builtins_InterpreterEnterAtBytecode", BUILTIN_CONTINUATION},
		{"Builtins_ArrayMapLoopLazyDeoptContinuation", BUILTIN_CONTINUATION},
		{"Builtins_ContinueToJavaScriptBuiltin", BUILTIN_CONTINUATION},
		{"Builtins_DeoptimizationEntry_Lazy", BUILTIN_DEOPTIMIZER},
		{"Builtins_AddHandler", BUILTIN_OTHER},
		{"Builtins_", BUILTIN_OTHER},
		{"Builtins", BUILTIN_NONE},
		{"JSEntry", BUILTIN_NONE},
		{"", BUILTIN_NONE},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct symbol symbol = {
			.address = TEXT, .size = sizeof direct, .name = cases[i].name};
		assert_int_equal(kind_in(EM_AARCH64, &symbol, direct, sizeof direct),
				 cases[i].kind);
	}
}

static void entries_save_what_is_not_theirs(void **state)
{
	(void)state;
	assert_int_equal(kind_of_code(EM_AARCH64, entry_aarch64, sizeof entry_aarch64),
			 BUILTIN_ENTRY);
	assert_int_equal(kind_of_code(EM_X86_64, entry_x86_64, sizeof entry_x86_64), BUILTIN_ENTRY);
	assert_int_equal(kind_of_code(EM_X86_64, entry_aarch64, sizeof entry_aarch64),
			 BUILTIN_NUMBERED);
}

/* The entry, with one instruction instead of another. */
static enum builtin_kind kind_with(size_t at, uint32_t word)
{
	uint32_t code[sizeof entry_aarch64 / sizeof *entry_aarch64];
	memcpy(code, entry_aarch64, sizeof code);
	code[at] = word;
	return kind_of_code(EM_AARCH64, code, sizeof code);
}

static void what_saves_less_or_more_is_no_entry(void **state)
{
	uint8_t code[sizeof entry_x86_64];
	(void)state;
	assert_int_equal(kind_with(0, 0xa9bf7bfd), BUILTIN_ENTRY);     /* stp x29,x30,[sp,#-16]! */
	assert_int_equal(kind_with(4, 0xf81f0ffb), BUILTIN_NUMBERED);  /* str x27,[sp,#-16]! */
	assert_int_equal(kind_with(15, 0xa9bf07e0), BUILTIN_NUMBERED); /* stp x0,x1,[sp,#-16]! */
	assert_int_equal(kind_with(0, 0xd2800013), BUILTIN_NUMBERED);  /* mov x19,#0 */
	assert_int_equal(kind_with(8, 0xa90053f3), BUILTIN_ENTRY);     /* stp x19,x20,[sp] */
	assert_int_equal(kind_with(8, 0xa9005013), BUILTIN_NUMBERED);  /* stp x19,x20,[x0] */
	assert_int_equal(kind_with(5, 0xd63f0140), BUILTIN_NUMBERED);  /* blr x10 */
	assert_int_equal(kind_with(5, 0x00000000), BUILTIN_NUMBERED);  /* no instruction */

	/* The five that it saves. */
	for (size_t at = 10; at < 19; at++) {
		memcpy(code, entry_x86_64, sizeof code);
		code[at] = 0x90; /* nop */
		assert_int_equal(kind_of_code(EM_X86_64, code, sizeof code), BUILTIN_NUMBERED);
	}
	memcpy(code, entry_x86_64, sizeof code);
	memset(code + 6, 0x90, 4);
	assert_int_equal(kind_of_code(EM_X86_64, code, sizeof code), BUILTIN_ENTRY);
	memcpy(code + 6, "\x50\x51\x58\x59", 4); /* push %rax; push %rcx; pop %rax; pop %rcx */
	assert_int_equal(kind_of_code(EM_X86_64, code, sizeof code), BUILTIN_NUMBERED);
}

static void entries_save_it_at_once(void **state)
{
	uint32_t code[32];
	(void)state;
	for (size_t late = 0; late < 16; late++) {
		for (size_t i = 0; i < late; i++)
			code[i] = 0x9e6703ef; /* fmov d15,xzr */
		memcpy(code + late, entry_aarch64 + 4, 5 * sizeof *code);
		assert_int_equal(kind_of_code(EM_AARCH64, code, (late + 5) * sizeof *code),
				 late + 5 <= 16 ? BUILTIN_ENTRY : BUILTIN_NUMBERED);
	}
}

static void direct_entries_have_four_instructions(void **state)
{
	static const uint32_t others[] = {
		0xf90007fe, /* str x30,[sp,#8] */
		0x94000004, /* bl */
		0xf94007fe, /* ldr x30,[sp,#8] */
		0xd61f03c0, /* br x30 */
	};
	static const uint32_t registers[] = {0xf90003fd, 0xd503201f, 0xf94003fd, 0xd503201f};
	(void)state;
	assert_int_equal(kind_of_code(EM_AARCH64, direct, sizeof direct), BUILTIN_DIRECT_ENTRY);
	assert_int_equal(kind_of_code(EM_AARCH64, direct, sizeof direct - 4), BUILTIN_NUMBERED);
	for (size_t i = 0; i < 8; i++) {
		uint32_t code[4];
		memcpy(code, direct, sizeof code);
		code[i % 4] = i < 4 ? others[i] : registers[i % 4];
		assert_int_equal(kind_of_code(EM_AARCH64, code, sizeof code), BUILTIN_NUMBERED);
	}
}

static void code_ends_where_the_file_does(void **state)
{
	struct symbol symbol = {.address = TEXT, .size = 4096, .name = "Builtins_#0"};
	(void)state;
	for (size_t size = 0; size <= 9 * 4; size += 4)
		assert_int_equal(kind_in(EM_AARCH64, &symbol, entry_aarch64, size),
				 size < 9 * 4 ? BUILTIN_NUMBERED : BUILTIN_ENTRY);
	for (size_t size = 1; size <= 19; size++)
		assert_int_equal(kind_in(EM_X86_64, &symbol, entry_x86_64, size),
				 size < 19 ? BUILTIN_NUMBERED : BUILTIN_ENTRY);
	symbol.address = TEXT + 4096; /* behind all of it */
	assert_int_equal(kind_in(EM_AARCH64, &symbol, direct, sizeof direct), BUILTIN_NUMBERED);
	symbol = (struct symbol){.address = TEXT, .name = "Builtins_#0"}; /* of no size */
	assert_int_equal(kind_in(EM_AARCH64, &symbol, direct, sizeof direct), BUILTIN_NUMBERED);
}

static void pointers_lead_through_all_but_entries(void **state)
{
	(void)state;
	assert_false(builtin_keeps_pointer(BUILTIN_NONE));
	assert_false(builtin_keeps_pointer(BUILTIN_ENTRY));
	assert_false(builtin_keeps_pointer(BUILTIN_DIRECT_ENTRY));
	assert_true(builtin_keeps_pointer(BUILTIN_CONTINUATION));
	assert_true(builtin_keeps_pointer(BUILTIN_DEOPTIMIZER));
	assert_true(builtin_keeps_pointer(BUILTIN_OTHER));
	assert_true(builtin_keeps_pointer(BUILTIN_NUMBERED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_tell),
		cmocka_unit_test(entries_save_what_is_not_theirs),
		cmocka_unit_test(what_saves_less_or_more_is_no_entry),
		cmocka_unit_test(entries_save_it_at_once),
		cmocka_unit_test(direct_entries_have_four_instructions),
		cmocka_unit_test(code_ends_where_the_file_does),
		cmocka_unit_test(pointers_lead_through_all_but_entries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
