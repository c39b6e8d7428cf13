/* SPDX-License-Identifier: Apache-2.0 */
/* What a module tells about its procedures before any code is followed. */
#include "flow/survey.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "flow/frame.h"
#include "flow/trace.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "made_image.h"
#include "scratch.h"

#define COUNT(array) (sizeof array / sizeof *(array))

static struct survey survey(struct image *image, const struct symbols *symbols)
{
	struct survey out;
	struct err *e = survey_take(image, isa_for_machine(image_machine(image)), symbols, &out);
	if (e)
		fail_msg("%s", err_text(e));
	return out;
}

static struct survey survey_sections(uint16_t machine, uint64_t entry,
				     const struct made_section *sections, size_t count,
				     struct image **image)
{
	*image = made_image(machine, entry, sections, count);
	return survey(*image, NULL);
}

static void assert_addresses(const uint64_t *found, size_t found_count, const uint64_t *expected,
			     size_t count)
{
	assert_int_equal(found_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(found[i], expected[i]);
}

#define ASSERT_SAME(found, count, ...)                                  \
	assert_addresses(found, count, (const uint64_t[]){__VA_ARGS__}, \
			 COUNT(((const uint64_t[]){__VA_ARGS__})))
#define ASSERT_ENTRIES(s, ...) ASSERT_SAME((s).entries, (s).entry_count, __VA_ARGS__)
#define ASSERT_HINTS(s, ...) ASSERT_SAME((s).hints, (s).hint_count, __VA_ARGS__)
#define ASSERT_NORETURN(s, ...) ASSERT_SAME((s).noreturn, (s).noreturn_count, __VA_ARGS__)

static void assert_stubs(const struct survey *s, const struct survey_stub *expected, size_t count)
{
	assert_int_equal(s->stub_count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(s->stubs[i].address, expected[i].address);
		assert_string_equal(s->stubs[i].import, expected[i].import);
	}
}

static void assert_slots(const struct survey *s, const struct trace_slot *expected, size_t count)
{
	assert_int_equal(s->slot_count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(s->slots[i].address, expected[i].address);
		assert_int_equal(s->slots[i].procedure, expected[i].procedure);
	}
}

/* ---- imports ---- */

static const char names[] = "\0puts\0abort\0exit\0own";
static const Elf64_Sym dynamic_symbols[] = {
	{0},
	{.st_name = 1},
	{.st_name = 6},
	{.st_name = 12},
	{.st_name = 17, .st_value = 0x1400, .st_shndx = 1},
};
enum { PUTS = 1, ABORT, EXIT, OWN };

#define RELOC(offset, symbol, type, addend)                                                      \
	{                                                                                        \
		.r_offset = (offset), .r_info = ELF64_R_INFO(symbol, type), .r_addend = (addend) \
	}

static const uint8_t procedures[256];

/* The words at 0x3018: puts, abort, exit, 0x1404, no code, own. */
#define DYNAMIC(plt_relocs, other_relocs)                                                      \
	{.name = ".text", .address = 0x1400, .bytes = procedures, .size = 256, .code = true},  \
		{.name = ".dynsym",                                                            \
		 .bytes = dynamic_symbols,                                                     \
		 .size = sizeof dynamic_symbols,                                               \
		 .type = SHT_DYNSYM,                                                           \
		 .link = 3},                                                                   \
		{.name = ".dynstr", .bytes = names, .size = sizeof names, .type = SHT_STRTAB}, \
		{.name = ".rela.plt",                                                          \
		 .bytes = plt_relocs,                                                          \
		 .size = sizeof plt_relocs,                                                    \
		 .type = SHT_RELA},                                                            \
	{                                                                                      \
		.name = ".rela.dyn", .bytes = other_relocs, .size = sizeof other_relocs,       \
		.type = SHT_RELA                                                               \
	}

static const Elf64_Rela aarch64_plt_relocs[] = {
	RELOC(0x3020, ABORT, R_AARCH64_JUMP_SLOT, 0),
	RELOC(0x3018, PUTS, R_AARCH64_JUMP_SLOT, 0),
};
static const Elf64_Rela aarch64_relocs[] = {
	RELOC(0x3030, 0, R_AARCH64_RELATIVE, 0x1404), RELOC(0x3038, 0, R_AARCH64_RELATIVE, 0x3000),
	RELOC(0x3040, OWN, R_AARCH64_GLOB_DAT, 0),    RELOC(0x3028, EXIT, R_AARCH64_GLOB_DAT, 0),
	RELOC(0x3048, 0, R_AARCH64_TLSDESC, 0x1408),
};
static const Elf64_Rela x86_plt_relocs[] = {
	RELOC(0x3018, PUTS, R_X86_64_JUMP_SLOT, 0),
	RELOC(0x3020, ABORT, R_X86_64_JUMP_SLOT, 0),
};
static const Elf64_Rela x86_relocs[] = {
	RELOC(0x3028, EXIT, R_X86_64_GLOB_DAT, 0),   RELOC(0x3030, 0, R_X86_64_RELATIVE, 0x1404),
	RELOC(0x3038, 0, R_X86_64_RELATIVE, 0x3000), RELOC(0x3040, OWN, R_X86_64_GLOB_DAT, 0),
	RELOC(0x3048, 0, R_X86_64_DTPMOD64, 0x1408),
};

/* What both CPUs' images have in common. */
static void assert_relocations(const struct survey *s)
{
	static const struct trace_slot slots[] = {
		{0x3020, TRACE_NO_RETURN},
		{0x3028, TRACE_NO_RETURN},
		{0x3030, 0x1404},
		{0x3040, 0x1400},
	};
	assert_slots(s, slots, COUNT(slots));
	ASSERT_HINTS(*s, 0x1400, 0x1404);
}

static void aarch64_imports(void **state)
{
	static const uint32_t plt[] = {
		0xa9bf7bf0, /* 1000 stp x16, x30, [sp, #-16]! */
		0xd0000010, /* 1004 adrp x16, 3000 */
		0xf9400a11, /* 1008 ldr x17, [x16, #16] */
		0x91004210, /* 100c add x16, x16, #16 */
		0xd61f0220, /* 1010 br x17 */
		0xd503201f, /* 1014 nop */
		0xd503201f, /* 1018 nop */
		0xd503201f, /* 101c nop */
		0xd0000010, /* 1020 adrp x16, 3000 */
		0xf9400e11, /* 1024 ldr x17, [x16, #24] */
		0x91006210, /* 1028 add x16, x16, #24 */
		0xd61f0220, /* 102c br x17 */
		0xd0000010, /* 1030 adrp x16, 3000 */
		0xf9401211, /* 1034 ldr x17, [x16, #32] */
		0x91008210, /* 1038 add x16, x16, #32 */
		0xd61f0220, /* 103c br x17 */
		0xd503245f, /* 1040 bti c */
		0xd0000010, /* 1044 adrp x16, 3000 */
		0xf9401611, /* 1048 ldr x17, [x16, #40] */
		0x9100a210, /* 104c add x16, x16, #40 */
		0xd61f0220, /* 1050 br x17 */
		0xd503201f, /* 1054 nop */
	};
	static const struct made_section sections[] = {
		DYNAMIC(aarch64_plt_relocs, aarch64_relocs),
		{.name = ".plt", .address = 0x1000, .bytes = plt, .size = sizeof plt, .code = true},
	};
	static const struct survey_stub stubs[] = {
		{0x1020, "puts"}, {0x1030, "abort"}, {0x1040, "exit"}};
	struct image *image;
	struct survey s = survey_sections(EM_AARCH64, 0, sections, COUNT(sections), &image);
	(void)state;
	assert_stubs(&s, stubs, COUNT(stubs));
	ASSERT_ENTRIES(s, 0x1020, 0x1030, 0x1040);
	ASSERT_NORETURN(s, 0x1030, 0x1040);
	assert_relocations(&s);
	survey_free(&s);
	image_close(image);
}

static void x86_imports(void **state)
{
	static const uint8_t plt[] = {
		0xff, 0x35, 0x02, 0x20, 0,    0, /* 1000 push 0x3008 */
		0xff, 0x25, 0x04, 0x20, 0,    0, /* 1006 jmp *0x3010 */
		0x0f, 0x1f, 0x40, 0,             /* 100c nopl */
		0xff, 0x25, 0x02, 0x20, 0,    0, /* 1010 jmp *0x3018 */
		0x68, 0,    0,    0,    0,       /* 1016 push $0 */
		0xe9, 0xe0, 0xff, 0xff, 0xff,    /* 101b jmp 1000 */
		0xff, 0x25, 0xfa, 0x1f, 0,    0, /* 1020 jmp *0x3020 */
		0x68, 1,    0,    0,    0,       /* 1026 push $1 */
		0xe9, 0xd0, 0xff, 0xff, 0xff,    /* 102b jmp 1000 */
	};
	static const uint8_t secure[] = {
		0xf3, 0x0f, 0x1e, 0xfa,             /* 1100 endbr64 */
		0xf2, 0xff, 0x25, 0x0d, 0x1f, 0, 0, /* 1104 bnd jmp *0x3018 */
		0x0f, 0x1f, 0x44, 0,    0,          /* 110b nopl */
		0xf3, 0x0f, 0x1e, 0xfa,             /* 1110 endbr64 */
		0xf2, 0xff, 0x25, 0x05, 0x1f, 0, 0, /* 1114 bnd jmp *0x3020 */
		0x0f, 0x1f, 0x44, 0,    0,          /* 111b nopl */
	};
	static const uint8_t got[] = {
		0xff, 0x25, 0x22, 0x1e, 0, 0, /* 1200 jmp *0x3028 */
		0x66, 0x90,                   /* 1206 xchg %ax, %ax */
	};
	static const struct made_section sections[] = {
		DYNAMIC(x86_plt_relocs, x86_relocs),
		{.name = ".plt", .address = 0x1000, .bytes = plt, .size = sizeof plt, .code = true},
		{.name = ".plt.sec",
		 .address = 0x1100,
		 .bytes = secure,
		 .size = sizeof secure,
		 .code = true},
		{.name = ".plt.got",
		 .address = 0x1200,
		 .bytes = got,
		 .size = sizeof got,
		 .code = true},
	};
	static const struct survey_stub stubs[] = {
		{0x1010, "puts"},  {0x1020, "abort"}, {0x1100, "puts"},
		{0x1110, "abort"}, {0x1200, "exit"},
	};
	struct image *image;
	struct survey s = survey_sections(EM_X86_64, 0, sections, COUNT(sections), &image);
	(void)state;
	assert_stubs(&s, stubs, COUNT(stubs));
	ASSERT_NORETURN(s, 0x1020, 0x1110, 0x1200);
	assert_relocations(&s);
	survey_free(&s);
	image_close(image);
}

/* What is known of SP in the first entry of the table, which stubs come to as `.got.plt` says. */
static int32_t sp_in_first_entry(uint16_t machine, const struct made_section *sections,
				 size_t count, uint64_t at)
{
	struct image *image;
	struct survey s = survey_sections(machine, 0, sections, count, &image);
	const struct trace_input input = {
		.entries = s.entries,
		.entry_count = s.entry_count,
		.hints = s.hints,
		.hint_count = s.hint_count,
	};
	struct trace *t;
	struct err *e = trace_run(image, isa_for_machine(machine), &input, &t);
	if (e)
		fail_msg("%s", err_text(e));
	const struct frame_state *found = trace_at(t, at);
	assert_non_null(found);
	assert_int_equal(found->sp.kind, FRAME_CFA);
	int32_t offset = found->sp.offset;
	trace_free(t);
	survey_free(&s);
	image_close(image);
	return offset;
}

#define GOT(words)                                                                          \
	{                                                                                   \
		.name = ".got.plt", .address = 0x3000, .bytes = words, .size = sizeof words \
	}

/* It is entered after a push, and pushes once more. */
static void x86_first_entry_of_the_plt(void **state)
{
	static const uint8_t plain[] = {
		0xff, 0x35, 0x02, 0x20, 0,    0, /* 1000 push 0x3008 */
		0xff, 0x25, 0x04, 0x20, 0,    0, /* 1006 jmp *0x3010 */
		0x0f, 0x1f, 0x40, 0,             /* 100c nopl */
		0xff, 0x25, 0x02, 0x20, 0,    0, /* 1010 jmp *0x3018 */
		0x68, 0,    0,    0,    0,       /* 1016 push $0 */
		0xe9, 0xe0, 0xff, 0xff, 0xff,    /* 101b jmp 1000 */
		0xff, 0x25, 0xfa, 0x1f, 0,    0, /* 1020 jmp *0x3020 */
		0x68, 1,    0,    0,    0,       /* 1026 push $1 */
		0xe9, 0xd0, 0xff, 0xff, 0xff,    /* 102b jmp 1000 */
	};
	static const uint8_t branch_tracking[] = {
		0xff, 0x35, 0x02, 0x20, 0,    0,       /* 1000 push 0x3008 */
		0xf2, 0xff, 0x25, 0x03, 0x20, 0,    0, /* 1006 bnd jmp *0x3010 */
		0x0f, 0x1f, 0,                         /* 100d nopl */
		0xf3, 0x0f, 0x1e, 0xfa,                /* 1010 endbr64 */
		0x68, 0,    0,    0,    0,             /* 1014 push $0 */
		0xf2, 0xe9, 0xe1, 0xff, 0xff, 0xff,    /* 1019 bnd jmp 1000 */
		0x90,                                  /* 101f nop */
		0xf3, 0x0f, 0x1e, 0xfa,                /* 1020 endbr64 */
		0x68, 1,    0,    0,    0,             /* 1024 push $1 */
		0xf2, 0xe9, 0xd1, 0xff, 0xff, 0xff,    /* 1029 bnd jmp 1000 */
		0x90,                                  /* 102f nop */
	};
	static const uint64_t rest[] = {0, 0, 0, 0x1016, 0x1026, 0, 0, 0, 0, 0};
	static const uint64_t whole[] = {0, 0, 0, 0x1010, 0x1020, 0, 0, 0, 0, 0};
	static const struct made_section by_jump[] = {
		DYNAMIC(x86_plt_relocs, x86_relocs),
		{.name = ".plt",
		 .address = 0x1000,
		 .bytes = plain,
		 .size = sizeof plain,
		 .code = true},
		GOT(rest),
	};
	static const struct made_section by_branch[] = {
		DYNAMIC(x86_plt_relocs, x86_relocs),
		{.name = ".plt",
		 .address = 0x1000,
		 .bytes = branch_tracking,
		 .size = sizeof branch_tracking,
		 .code = true},
		GOT(whole),
	};
	(void)state;
	assert_int_equal(sp_in_first_entry(EM_X86_64, by_jump, COUNT(by_jump), 0x1000), -16);
	assert_int_equal(sp_in_first_entry(EM_X86_64, by_jump, COUNT(by_jump), 0x1006), -24);
	assert_int_equal(sp_in_first_entry(EM_X86_64, by_branch, COUNT(by_branch), 0x1000), -16);
	assert_int_equal(sp_in_first_entry(EM_X86_64, by_branch, COUNT(by_branch), 0x1006), -24);
}

/* There the word leads to the first entry itself, with the stack as the caller left it. */
static void aarch64_first_entry_of_the_plt(void **state)
{
	static const uint32_t plt[] = {
		0xa9bf7bf0, /* 1000 stp x16, x30, [sp, #-16]! */
		0xd0000010, /* 1004 adrp x16, 3000 */
		0xf9400a11, /* 1008 ldr x17, [x16, #16] */
		0x91004210, /* 100c add x16, x16, #16 */
		0xd61f0220, /* 1010 br x17 */
		0xd503201f, /* 1014 nop */
		0xd503201f, /* 1018 nop */
		0xd503201f, /* 101c nop */
		0xd0000010, /* 1020 adrp x16, 3000 */
		0xf9400e11, /* 1024 ldr x17, [x16, #24] */
		0x91006210, /* 1028 add x16, x16, #24 */
		0xd61f0220, /* 102c br x17 */
	};
	static const uint64_t words[] = {0, 0, 0, 0x1000, 0x1000, 0, 0, 0, 0, 0};
	static const struct made_section sections[] = {
		DYNAMIC(aarch64_plt_relocs, aarch64_relocs),
		{.name = ".plt", .address = 0x1000, .bytes = plt, .size = sizeof plt, .code = true},
		GOT(words),
	};
	(void)state;
	assert_int_equal(sp_in_first_entry(EM_AARCH64, sections, COUNT(sections), 0x1000), 0);
	assert_int_equal(sp_in_first_entry(EM_AARCH64, sections, COUNT(sections), 0x1004), -16);
}

/* Words that no relocation names are not imports. */
static void stubs_without_relocations(void **state)
{
	static const uint8_t plt[] = {0xff, 0x25, 0x02, 0x20, 0, 0, 0xff, 0x25};
	static const struct made_section sections[] = {
		{.name = ".plt", .address = 0x1000, .bytes = plt, .size = sizeof plt, .code = true},
	};
	struct image *image;
	struct survey s = survey_sections(EM_X86_64, 0, sections, 1, &image);
	(void)state;
	assert_int_equal(s.stub_count, 0);
	assert_int_equal(s.entry_count, 0);
	assert_int_equal(s.slot_count, 0);
	survey_free(&s);
	image_close(image);
}

/* ---- procedures ---- */

static void initialisers_and_the_entry(void **state)
{
	static const uint64_t first[] = {0x1408, 0, UINT64_MAX, 0x4000, 0x1404}, last[] = {0x1418};
	static const struct made_section sections[] = {
		{.name = ".text",
		 .address = 0x1400,
		 .bytes = procedures,
		 .size = 256,
		 .code = true},
		{.name = ".init", .address = 0x1500, .bytes = procedures, .size = 4, .code = true},
		{.name = ".fini", .address = 0x1504, .bytes = procedures, .size = 4, .code = true},
		{.name = ".init_array", .address = 0x4000, .bytes = first, .size = sizeof first},
		{.name = ".fini_array", .address = 0x4100, .bytes = last, .size = 8},
		{.name = ".ctors", .address = 0x4200, .bytes = last, .size = 7}, /* cut short */
	};
	struct image *image;
	struct survey s = survey_sections(EM_AARCH64, 0x1410, sections, COUNT(sections), &image);
	(void)state;
	ASSERT_ENTRIES(s, 0x1404, 0x1408, 0x1410, 0x1418, 0x1500, 0x1504);
	assert_int_equal(s.hint_count, 0);
	assert_int_equal(s.noreturn_count, 0);
	survey_free(&s);
	image_close(image);
}

#define SYMBOL(name, binding, address)                                                         \
	{                                                                                      \
		.st_name = (name), .st_info = ELF64_ST_INFO(binding, STT_FUNC), .st_shndx = 1, \
		.st_value = (address), .st_size = 4                                            \
	}

static void symbols_of_all_kinds(void **state)
{
	static const char strings[] = "\0main\0helper\0main.cold\0main.cold.1\0main.colder\0"
				      "abort\0_ZSt20__throw_length_errorPKc\0_ZSt4cout\0"
				      "Builtins_AddHandler\0Builtins_InterpreterEnterAtBytecode";
	static const Elf64_Sym table[] = {
		{0},
		SYMBOL(6, STB_LOCAL, 0x1414),   /* helper */
		SYMBOL(13, STB_LOCAL, 0x1418),  /* main.cold: a part */
		SYMBOL(23, STB_LOCAL, 0x141c),  /* main.cold.1 */
		SYMBOL(35, STB_LOCAL, 0x1420),  /* main.colder: only named so */
		SYMBOL(47, STB_LOCAL, 0x1424),  /* abort */
		SYMBOL(93, STB_LOCAL, 0x1434),  /* V8's: a procedure that is jumped to */
		SYMBOL(113, STB_LOCAL, 0x1438), /* and one that is returned to */
		SYMBOL(1, STB_GLOBAL, 0x1428),  /* main */
		SYMBOL(53, STB_WEAK, 0x142c),   /* throws */
		SYMBOL(83, STB_GLOBAL, 0x1430), /* _ZSt4cout */
	};
	static const struct made_section sections[] = {
		{.name = ".text",
		 .address = 0x1400,
		 .bytes = procedures,
		 .size = 256,
		 .code = true},
		{.name = ".symtab",
		 .bytes = table,
		 .size = sizeof table,
		 .type = SHT_SYMTAB,
		 .link = 3},
		{.name = ".strtab", .bytes = strings, .size = sizeof strings, .type = SHT_STRTAB},
	};
	struct image *image = made_image(EM_AARCH64, 0, sections, COUNT(sections));
	struct symbols *symbols;
	struct survey s;
	(void)state;
	assert_null(symbols_read(image, NULL, &symbols));
	s = survey(image, symbols);
	ASSERT_ENTRIES(s, 0x1428, 0x142c, 0x1430, 0x1434);
	ASSERT_HINTS(s, 0x1414, 0x1420, 0x1424, 0x1438);
	ASSERT_NORETURN(s, 0x1424, 0x142c);
	survey_free(&s);
	s = survey(image, NULL); /* stripped */
	assert_int_equal(s.entry_count + s.hint_count + s.noreturn_count, 0);
	survey_free(&s);
	symbols_free(symbols);
	image_close(image);
}

/* ---- a file that the linker of this machine made ---- */

static const char *stub_name(const struct survey *s, uint64_t address)
{
	for (size_t i = 0; i < s->stub_count; i++)
		if (s->stubs[i].address == address)
			return s->stubs[i].import;
	return "none";
}

static void native_program(void **state)
{
	static const char text[] = "#include <stdio.h>\n#include <stdlib.h>\n"
				   "int main(int argc, char **argv) {\n"
				   "puts(argv[0]); if (argc > 1) abort(); exit(argc); }\n";
	static const char *const wanted[] = {"puts", "abort", "exit"};
	unsigned found = 0, never = 0;
	struct image *image;
	struct survey s;
	(void)state;
	scratch_compile("native", text, "-O1 -Wl,-z,lazy");
	assert_null(image_open(scratch("native"), &image));
	s = survey(image, NULL);
	for (size_t i = 0; i < s.stub_count; i++)
		for (unsigned k = 0; k < COUNT(wanted); k++)
			found |= (unsigned)!strcmp(s.stubs[i].import, wanted[k]) << k;
	assert_int_equal(found, 7);
	for (size_t i = 0; i < s.noreturn_count; i++) {
		const char *name = stub_name(&s, s.noreturn[i]);
		assert_string_not_equal(name, "puts");
		never += !strcmp(name, "abort") || !strcmp(name, "exit");
	}
	assert_int_equal(never, 2);
	for (size_t i = 0, seen = 0; i < s.entry_count; i++) {
		seen += s.entries[i] == image_entry(image);
		assert_true(i == 0 || s.entries[i - 1] < s.entries[i]);
		assert_true(i + 1 < s.entry_count || seen == 1);
	}
	survey_free(&s);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_imports),
		cmocka_unit_test(x86_imports),
		cmocka_unit_test(x86_first_entry_of_the_plt),
		cmocka_unit_test(aarch64_first_entry_of_the_plt),
		cmocka_unit_test(stubs_without_relocations),
		cmocka_unit_test(initialisers_and_the_entry),
		cmocka_unit_test(symbols_of_all_kinds),
		cmocka_unit_test(native_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
