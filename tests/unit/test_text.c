/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "isa/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "isa/insn.h"

#define ADDRESS 0x400000

struct sample {
	const char *bytes;
	size_t size;
	const char *text;
};
#define BYTES(b, t)                \
	{                          \
		b, sizeof b - 1, t \
	}

static void check(const struct isa *isa, const struct sample *samples, size_t count)
{
	struct text *text;
	assert_null(text_open(isa, &text));
	for (size_t i = 0; i < count; i++) {
		const uint8_t *code = (const uint8_t *)samples[i].bytes;
		struct insn insn;
		isa->decode(code, samples[i].size, ADDRESS, &insn);
		assert_string_equal(text_insn(text, code, samples[i].size, &insn, NULL),
				    samples[i].text);
	}
	text_close(text);
}

static void x86_64_in_the_words_of_its_assembler(void **state)
{
	static const struct sample samples[] = {
		BYTES("\x55", "push %rbp"),
		BYTES("\xe8\x00\x01\x00\x00", "call 0x400105"),
		BYTES("\x74\x10", "je 0x400012"),
		BYTES("\x0f\x87\x00\x01\x00\x00", "ja 0x400106"),
		BYTES("\x48\x8d\x3d\xd2\x2e\x00\x00", "lea 0x2ed2(%rip), %rdi"),
		BYTES("\xff\x25\x00\x10\x00\x00", "jmp *0x1000(%rip)"),
		BYTES("\x41\xff\x14\xdf", "call *(%r15,%rbx,8)"),
		BYTES("\xff\xd0", "call *%rax"),
		BYTES("\x48\x83\xec\x08", "sub $0x8, %rsp"),
		BYTES("\x0f\x94\xc0", "sete %al"),
		BYTES("\x0f\xb6\x04\x24", "movzbl (%rsp), %eax"),
		BYTES("\x48\x0f\xbe\x0c\x56", "movsbq (%rsi,%rdx,2), %rcx"),
		BYTES("\x48\x98", "cltq"),
		BYTES("\x62\xf1\x7c\x48\x28\x04\x07", "vmovaps (%rdi,%rax,1), %zmm0"),
		BYTES("\xf2\x0f\x10\x06", "movsd (%rsi), %xmm0"),
		BYTES("\xf0\x0f\xb1\x0a", "lock cmpxchg %ecx, (%rdx)"),
		BYTES("\xf3\x48\xa5", "rep movsq"),
		BYTES("\x66\x0f\x1f\x44\x00\x00", "nop"),
		BYTES("\xc3", "ret"),
		BYTES("\x06", ".byte 0x06"),
	};
	(void)state;
	check(&isa_x86_64, samples, sizeof samples / sizeof *samples);
}

static void aarch64_in_the_words_of_its_assembler(void **state)
{
	static const struct sample samples[] = {
		BYTES("\x40\x00\x00\x94", "bl 0x400100"),
		BYTES("\x61\x00\x00\x54", "b.ne 0x40000c"),
		BYTES("\x40\x00\x18\x36", "tbz w0, #3, 0x400008"),
		BYTES("\xfd\x7b\xbf\xa9", "stp x29, x30, [sp, #-0x10]!"),
		BYTES("\x10\x00\x00\x90", "adrp x16, #0x400000"),
		BYTES("\xc0\x03\x5f\xd6", "ret"),
		BYTES("\x3f\x23\x03\xd5", "paciasp"),
		BYTES("\x5f\x24\x03\xd5", "bti c"),
		BYTES("\x1f\x20\x03\xd5", "nop"),
		BYTES("\x00\x00\x80\xd2", "mov x0, #0x0"),
		BYTES("\x20\x00\xa0\xd2", "mov x0, #0x10000"),
		BYTES("\x00\x00\x80\x12", "mov w0, #0xffffffff"),
		BYTES("\xe0\xbb\x40\xb2", "mov x0, #0x7fffffffffff"),
		BYTES("\x41\x00\x20\xb8", "ldadd w0, w1, [x2]"),
		BYTES("\x3f\x00\x60\xf8", "staddl x0, [x1]"),
		BYTES("\x41\x80\xa0\x38", "swpab w0, w1, [x2]"),
		BYTES("\xe1\xff\xe0\xc8", "casal x0, x1, [sp]"),
		BYTES("\x00\x1c\x20\x6e", "eor v0.16b, v0.16b, v0.16b"),
		BYTES("\x00\x00\x00\x00", ".inst 0x00000000"),
	};
	(void)state;
	check(&isa_aarch64, samples, sizeof samples / sizeof *samples);
}

static void a_name_stands_for_the_target(void **state)
{
	static const uint8_t call[] = {0xe8, 0, 1, 0, 0}, branch[] = {0x40, 0, 0x18, 0x36};
	static const uint8_t load[] = {0x48, 0x8b, 5, 0, 0x10, 0, 0};
	char longest[2 * TEXT_MAX];
	struct text *text;
	struct insn insn;
	(void)state;
	assert_null(text_open(&isa_x86_64, &text));
	isa_x86_64.decode(call, sizeof call, ADDRESS, &insn);
	assert_string_equal(text_insn(text, call, sizeof call, &insn, "memcpy@plt"),
			    "call memcpy@plt");
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = 0;
	assert_int_equal(strlen(text_insn(text, call, sizeof call, &insn, longest)), TEXT_MAX - 1);
	isa_x86_64.decode(load, sizeof load, ADDRESS, &insn);
	assert_string_equal(text_insn(text, load, sizeof load, &insn, "nothing"),
			    "mov 0x1000(%rip), %rax");
	text_close(text);
	assert_null(text_open(&isa_aarch64, &text));
	isa_aarch64.decode(branch, sizeof branch, ADDRESS, &insn);
	assert_string_equal(text_insn(text, branch, sizeof branch, &insn, ".L3"),
			    "tbz w0, #3, .L3");
	text_close(text);
	text_close(NULL);
}

static void intel_syntax_where_there_is_one(void **state)
{
	static const struct {
		uint8_t code[8];
		const char *text;
	} samples[] = {
		{{0x48, 0x8b, 5, 0, 0x10, 0, 0}, "mov rax, [rip+0x1000]"},
		{{0x48, 0x89, 0xd8}, "mov rax, rbx"},
		{{0x74, 0x10}, "je there"},
		{{0x0f, 0x97, 0xc0}, "seta al"},
		{{0x48, 0x98}, "cdqe"},
		{{0x83, 0xc0, 1}, "add eax, 0x1"},
		{{0xe8, 0, 1, 0, 0}, "call there"},
	};
	struct text *text;
	(void)state;
	assert_null(text_open_intel(&isa_x86_64, &text));
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct insn insn;
		isa_x86_64.decode(samples[i].code, sizeof samples[i].code, ADDRESS, &insn);
		assert_string_equal(
			text_insn(text, samples[i].code, sizeof samples[i].code, &insn, "there"),
			samples[i].text);
	}
	text_close(text);
	assert_null(text_open_intel(&isa_aarch64, &text));
	assert_null(text);
}

/* Bytes of all kinds, also cut short: some text, and within bounds. */
static void any_bytes_have_a_text(void **state)
{
	static const struct isa *const cpus[] = {&isa_x86_64, &isa_aarch64};
	uint8_t code[16];
	uint64_t seed = 1;
	(void)state;
	for (size_t c = 0; c < 2; c++) {
		struct text *text;
		assert_null(text_open(cpus[c], &text));
		for (unsigned i = 0; i < 50000; i++) {
			struct insn insn;
			for (size_t k = 0; k < sizeof code; k++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				code[k] = (uint8_t)(seed >> 56);
			}
			size_t size = 1 + i % sizeof code;
			uint8_t *exact = malloc(size); /* so that a sanitizer sees what is read */
			memcpy(exact, code, size);
			cpus[c]->decode(exact, size, ADDRESS, &insn);
			const char *words = text_insn(text, exact, size, &insn, NULL);
			assert_true(*words && strlen(words) < TEXT_MAX);
			free(exact);
		}
		text_close(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64_in_the_words_of_its_assembler),
		cmocka_unit_test(aarch64_in_the_words_of_its_assembler),
		cmocka_unit_test(a_name_stands_for_the_target),
		cmocka_unit_test(intel_syntax_where_there_is_one),
		cmocka_unit_test(any_bytes_have_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
