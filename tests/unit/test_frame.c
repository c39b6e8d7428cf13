/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that frames have, instruction by instruction. */
#include "flow/frame.h"

#include "listing.h"

/* Applies the instructions one after the other, from the entry on. */
static void apply(const struct isa *isa, const struct line *lines, size_t count)
{
	uint8_t code[LISTING_MAX];
	size_t size = listing_bytes(isa, lines, count, code), at = 0;
	const char *expected = "";
	struct frame_state s;
	struct insn insn;
	char words[WORDS_MAX];
	frame_entry(isa, &s);
	for (size_t i = 0; i < count; i++) {
		expected = expected_words(isa, lines[i].expected, expected);
		if (strcmp(state_words(isa, &s, words), expected) != 0)
			fail_msg("%s: %s, expected %s", lines[i].text, words, expected);
		isa->decode(code + at, size - at, LISTING_START + at, &insn);
		assert_int_equal(insn.length, strlen(lines[i].bytes) / 2);
		frame_apply(isa, &s, &insn);
		at += insn.length;
	}
}

static void aarch64_leaf(void **state)
{
	static const struct line code[] = {
		{"aa0103e0", "1000 mov x0, x1", "entry"},
		{"d65f03c0", "1004 ret", ""},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_frame_record_pushed(void **state)
{
	static const struct line code[] = {
		{"a9be7bfd", "1000 stp x29, x30, [sp, #-32]!", "entry"},
		{"910003fd", "1004 mov x29, sp", "CFA=sp+32 ra=[CFA-24] fp=same"},
		{"f9000bf3", "1008 str x19, [sp, #16]", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"aa0003f3", "100c mov x19, x0", ""},
		{"94001ffc", "1010 bl far", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32] extra=[CFA-16]"},
		{"f9400bf3", "1014 ldr x19, [sp, #16]", ""},
		{"a8c27bfd", "1018 ldp x29, x30, [sp], #32", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_frame_record_at_an_offset(void **state)
{
	static const struct line code[] = {
		{"d10103ff", "1000 sub sp, sp, #64", "entry"},
		{"a9037bfd", "1004 stp x29, x30, [sp, #48]", "CFA=sp+64 ra=lr fp=same"},
		{"9100c3fd", "1008 add x29, sp, #48", "CFA=sp+64 ra=[CFA-8] fp=same"},
		{"94001ffd", "100c bl far", "CFA=sp+64 ra=[CFA-8] fp=[CFA-16]"},
		{"a9437bfd", "1010 ldp x29, x30, [sp, #48]", ""},
		{"910103ff", "1014 add sp, sp, #64", "CFA=sp+64 ra=[CFA-8] fp=same"},
		{"d65f03c0", "1018 ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_frame_larger_than_an_immediate(void **state)
{
	static const struct line code[] = {
		{"d284040c", "1000 mov x12, #8224", "entry"},
		{"cb2c63ff", "1004 sub sp, sp, x12", ""},
		{"a9007bfd", "1008 stp x29, x30, [sp]", "CFA=sp+8224 ra=lr fp=same"},
		{"910003fd", "100c mov x29, sp", "CFA=sp+8224 ra=[CFA-8216] fp=same"},
		{"d284040c", "1010 mov x12, #8224", "CFA=sp+8224 ra=[CFA-8216] fp=[CFA-8224]"},
		{"a9407bfd", "1014 ldp x29, x30, [sp]", ""},
		{"8b2c63ff", "1018 add sp, sp, x12", "CFA=sp+8224 ra=[CFA-8216] fp=same"},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_frame_size_in_two_instructions(void **state)
{
	static const struct line code[] = {
		{"d2824610", "1000 mov x16, #0x1230", "entry"},
		{"f2a00030", "1004 movk x16, #1, lsl #16", ""},
		{"cb3063ff", "1008 sub sp, sp, x16", ""},
		{"8b3063ff", "100c add sp, sp, x16", "CFA=sp+70192 ra=lr fp=same"},
		{"d65f03c0", "1010 ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

/* x16 may be anything after the call: SP is known by the frame pointer alone. */
static void aarch64_call_destroys_the_frame_size(void **state)
{
	static const struct line code[] = {
		{"a9bf7bfd", "1000 stp x29, x30, [sp, #-16]!", "entry"},
		{"910003fd", "1004 mov x29, sp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"d2840010", "1008 mov x16, #8192", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"94001ffd", "100c bl far", ""},
		{"cb3063ff", "1010 sub sp, sp, x16", ""},
		{"910003bf", "1014 mov sp, x29", "CFA=fp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"a8c17bfd", "1018 ldp x29, x30, [sp], #16", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_signed_return_address(void **state)
{
	static const struct line code[] = {
		{"d503233f", "1000 paciasp", "entry"},
		{"a9bf7bfd", "1004 stp x29, x30, [sp, #-16]!", ""},
		{"910003fd", "1008 mov x29, sp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"94001ffd", "100c bl far", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"a8c17bfd", "1010 ldp x29, x30, [sp], #16", ""},
		{"d50323bf", "1014 autiasp", "entry"},
		{"d65f03c0", "1018 ret", ""},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_signed_and_returned_at_once(void **state)
{
	static const struct line code[] = {
		{"d503233f", "1000 paciasp", "entry"},
		{"f81f0ffe", "1004 str x30, [sp, #-16]!", ""},
		{"94001ffe", "1008 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "100c ldr x30, [sp], #16", ""},
		{"d65f0bff", "1010 retaa", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_alloca(void **state)
{
	static const struct line code[] = {
		{"a9be7bfd", "1000 stp x29, x30, [sp, #-32]!", "entry"},
		{"910003fd", "1004 mov x29, sp", "CFA=sp+32 ra=[CFA-24] fp=same"},
		{"cb2063ff", "1008 sub sp, sp, x0", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"f90007e0", "100c str x0, [sp, #8]", "CFA=fp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"94001ffc", "1010 bl far", ""},
		{"910003bf", "1014 mov sp, x29", ""},
		{"a8c27bfd", "1018 ldp x29, x30, [sp], #32", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_link_register_as_any_other(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "entry"},
		{"aa0103fe", "1004 mov x30, x1", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"8b0003c0", "1008 add x0, x30, x0", ""},
		{"f84107fe", "100c ldr x30, [sp], #16", ""},
		{"d65f03c0", "1010 ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_link_register_kept_in_another(void **state)
{
	static const struct line code[] = {
		{"aa1e03e9", "1000 mov x9, x30", "entry"},
		{"aa0103fe", "1004 mov x30, x1", "CFA=sp ra=r9 fp=same"},
		{"aa0903fe", "1008 mov x30, x9", ""},
		{"aa0003e9", "100c mov x9, x0", ""},
		{"d65f03c0", "1010 ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_link_register_lost(void **state)
{
	static const struct line code[] = {
		{"aa0103fe", "1000 mov x30, x1", "entry"},
		{"aa1e03e0", "1004 mov x0, x30", "nothing"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_link_register_saved_alone(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "entry"},
		{"94001fff", "1004 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1008 ldr x30, [sp], #16", ""},
		{"d65f03c0", "100c ret", "entry"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_store_over_the_return_address(void **state)
{
	static const struct line code[] = {
		{"a9bf7bfd", "1000 stp x29, x30, [sp, #-16]!", "entry"},
		{"910003fd", "1004 mov x29, sp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"94001ffe", "1008 bl far", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"f90007e0", "100c str x0, [sp, #8]", ""},
		{"d503201f", "1010 nop", "nothing"},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void aarch64_outermost(void **state)
{
	static const struct line code[] = {
		{"d280001d", "1000 mov x29, #0", "entry"},
		{"d280001e", "1004 mov x30, #0", "outermost"},
		{"910003e0", "1008 mov x0, sp", ""},
	};
	(void)state;
	apply(&isa_aarch64, code, COUNT(code));
}

static void x86_push_and_pop(void **state)
{
	static const struct line code[] = {
		{"53", "1000 push %rbx", "entry"},
		{"4883ec10", "1001 sub $16, %rsp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4889fb", "1005 mov %rdi, %rbx", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"e8f37f0000", "1008 call far", "CFA=sp+32 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"4883c410", "100d add $16, %rsp", ""},
		{"5b", "1011 pop %rbx", "CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"c3", "1012 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

/* That it is set to zero means nothing where it was saved. */
static void x86_rbp_as_any_other(void **state)
{
	static const struct line code[] = {
		{"55", "1000 push %rbp", "entry"},
		{"31ed", "1001 xor %ebp, %ebp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"e8f87f0000", "1003 call far", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"5d", "1008 pop %rbp", ""},
		{"c3", "1009 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_frame_pointer(void **state)
{
	static const struct line code[] = {
		{"55", "1000 push %rbp", "entry"},
		{"4889e5", "1001 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4883ec20", "1004 sub $32, %rsp", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"e8f37f0000", "1008 call far", "CFA=sp+48 ra=[CFA-8] fp=[CFA-16]"},
		{"c9", "100d leave", ""},
		{"c3", "100e ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_arguments_pushed_around_a_call(void **state)
{
	static const struct line code[] = {
		{"4883ec08", "1000 sub $8, %rsp", "entry"},
		{"50", "1004 push %rax", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"6a05", "1005 push $5", "CFA=sp+24 ra=[CFA-8] fp=same"},
		{"e8f47f0000", "1007 call far", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"4883c410", "100c add $16, %rsp", ""},
		{"59", "1010 pop %rcx", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"c3", "1011 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

/* The caller's frame is known by r10, then by the word that keeps r10. */
static void x86_realigned_stack(void **state)
{
	static const struct line code[] = {
		{"4c8d542408", "1000 lea 8(%rsp), %r10", "entry"},
		{"4883e4e0", "1005 and $-32, %rsp", ""},
		{"41ff72f8", "1009 pushq -8(%r10)", "CFA=r10 ra=[CFA-8] fp=same"},
		{"55", "100d push %rbp", ""},
		{"4889e5", "100e mov %rsp, %rbp", ""},
		{"4152", "1011 push %r10", "CFA=r10 ra=[CFA-8] fp=[fp]"},
		{"4883ec28", "1013 sub $40, %rsp", "CFA=[fp-8] ra=[CFA-8] fp=[fp]"},
		{"e8e47f0000", "1017 call far", ""},
		{"4c8b55f8", "101c mov -8(%rbp), %r10", ""},
		{"c9", "1020 leave", ""},
		{"498d62f8", "1021 lea -8(%r10), %rsp", "CFA=[sp-16] ra=[CFA-8] fp=same"},
		{"c3", "1025 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_stack_pointer_saved_in_memory(void **state)
{
	static const struct line code[] = {
		{"4889e0", "1000 mov %rsp, %rax", "entry"},
		{"53", "1003 push %rbx", ""},
		{"4881ec00010000", "1004 sub $0x100, %rsp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4883e4c0", "100b and $-64, %rsp", "CFA=sp+272 ra=[CFA-8] fp=same"},
		{"4889842498000000", "100f mov %rax, 0x98(%rsp)", "CFA=r0+8 ra=[CFA-8] fp=same"},
		{"31c0", "1017 xor %eax, %eax", "CFA=[sp+152]+8 ra=[CFA-8] fp=same"},
		{"4889fb", "1019 mov %rdi, %rbx", ""},
		{"e8df7f0000", "101c call far", "CFA=[sp+152]+8 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"488bb42498000000", "1021 mov 0x98(%rsp), %rsi", ""},
		{"488b5ef8", "1029 mov -8(%rsi), %rbx", ""},
		{"488d26", "102d lea (%rsi), %rsp", "CFA=[sp+152]+8 ra=[CFA-8] fp=same"},
		{"c3", "1030 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_alloca(void **state)
{
	static const struct line code[] = {
		{"55", "1000 push %rbp", "entry"},
		{"4889e5", "1001 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4829c4", "1004 sub %rax, %rsp", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"e8f47f0000", "1007 call far", "CFA=fp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"c9", "100c leave", ""},
		{"c3", "100d ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_rbx_as_the_base_of_the_frame(void **state)
{
	static const struct line code[] = {
		{"53", "1000 push %rbx", "entry"},
		{"4889e3", "1001 mov %rsp, %rbx", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4883e4c0", "1004 and $-64, %rsp", "CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"482b25f11f0000", "1008 sub word(%rip), %rsp",
		 "CFA=r3+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"e8ec7f0000", "100f call far", ""},
		{"4889dc", "1014 mov %rbx, %rsp", ""},
		{"488b1c24", "1017 mov (%rsp), %rbx",
		 "CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"4883c408", "101b add $8, %rsp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"41ffe3", "101f jmp *%r11", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

/* The size of the frame survives the call that is made only for it. */
static void x86_helper_touches_the_pages(void **state)
{
	static const struct line code[] = {
		{"b818200000", "1000 mov $0x2018, %eax", "entry"},
		{"e8f67f0000", "1005 call far", ""},
		{"4829c4", "100a sub %rax, %rsp", ""},
		{"48893c24", "100d mov %rdi, (%rsp)", "CFA=sp+8224 ra=[CFA-8] fp=same"},
		{"4881c418200000", "1011 add $0x2018, %rsp", ""},
		{"c3", "1018 ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_result_of_a_call_is_no_frame_size(void **state)
{
	static const struct line code[] = {
		{"55", "1000 push %rbp", "entry"},
		{"4889e5", "1001 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"e8f77f0000", "1004 call far", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"4829c4", "1009 sub %rax, %rsp", ""},
		{"c9", "100c leave", "CFA=fp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"c3", "100d ret", "entry"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_frame_without_frame_pointer_of_unknown_size(void **state)
{
	static const struct line code[] = {
		{"4829c4", "1000 sub %rax, %rsp", "entry"},
		{"e8f87f0000", "1003 call far", "nothing"},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

static void x86_outermost(void **state)
{
	static const struct line code[] = {
		{"31ed", "1000 xor %ebp, %ebp", "entry"},
		{"4989d1", "1002 mov %rdx, %r9", "outermost"},
		{"5e", "1005 pop %rsi", ""},
	};
	(void)state;
	apply(&isa_x86_64, code, COUNT(code));
}

/* ---- states ---- */

static const struct isa *const both[] = {&isa_aarch64, &isa_x86_64};

static struct frame_value cfa(int32_t offset)
{
	return (struct frame_value){FRAME_CFA, offset};
}

static void assert_value(struct frame_value v, uint32_t kind, int32_t offset)
{
	assert_int_equal(v.kind, kind);
	assert_int_equal(v.offset, offset);
}

/* A state with a frame of 32 bytes: the record at its lower end, and FP there. */
static struct frame_state framed(const struct isa *isa)
{
	struct frame_state s;
	frame_entry(isa, &s);
	s.sp = s.fp = cfa(-32);
	s.slots[s.slot_count++] = (struct frame_slot){cfa(-32), {FRAME_FP, 0}};
	if (!isa->call_pushes)
		s.slots[s.slot_count++] = (struct frame_slot){cfa(-24), {FRAME_RA, 0}};
	return s;
}

static void entry_is_an_entry(void **state)
{
	struct frame_state s;
	(void)state;
	for (unsigned i = 0; i < COUNT(both); i++) {
		frame_entry(both[i], &s);
		assert_true(frame_is_entry(both[i], &s));
		assert_value(frame_register(both[i], &s, both[i]->sp), FRAME_CFA,
			     -both[i]->call_pushes);
		assert_value(frame_register(both[i], &s, both[i]->fp), FRAME_FP, 0);
		assert_value(frame_register(both[i], &s, 0), FRAME_UNKNOWN, 0);
		s.fp = cfa(0);
		assert_false(frame_is_entry(both[i], &s));
		s = framed(both[i]);
		assert_false(frame_is_entry(both[i], &s));
	}
	frame_entry(&isa_aarch64, &s);
	s.link.kind = FRAME_UNKNOWN;
	assert_false(frame_is_entry(&isa_aarch64, &s));
	frame_entry(&isa_x86_64, &s);
	s.slot_count = 0;
	assert_false(frame_is_entry(&isa_x86_64, &s));
}

static void saved_is_where_it_was_saved(void **state)
{
	struct frame_state s = framed(&isa_aarch64);
	(void)state;
	assert_value(frame_saved(&s, FRAME_FP), FRAME_CFA, -32);
	assert_value(frame_saved(&s, FRAME_RA), FRAME_CFA, -24);
	assert_value(frame_saved(&s, FRAME_EXTRA), FRAME_UNKNOWN, 0);
}

/* Words that SP has left behind belong to nobody. */
static void given_back_is_forgotten(void **state)
{
	struct insn insn = {.kind = INSN_OTHER, .effect_count = 1};
	struct frame_state s = framed(&isa_aarch64);
	(void)state;
	insn.effects[0] = (struct effect){EFFECT_MOVE, 31, 31, INSN_NO_REG, 32};
	frame_apply(&isa_aarch64, &s, &insn);
	assert_value(frame_saved(&s, FRAME_FP), FRAME_UNKNOWN, 0);
	assert_value(frame_saved(&s, FRAME_RA), FRAME_UNKNOWN, 0);
}

static void meeting_an_equal_state_changes_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(both); i++) {
		struct frame_state s = framed(both[i]), before = s;
		bool conflict = true;
		assert_false(frame_meet(&s, &before, &conflict));
		assert_false(conflict);
		assert_memory_equal(&s, &before, sizeof s);
	}
}

/* What only one of two ways knows is not known where they meet. */
static void meeting_keeps_what_both_know(void **state)
{
	struct frame_state s = framed(&isa_aarch64), t = s;
	bool conflict;
	(void)state;
	s.other[s.other_count].reg = 9;
	s.other[s.other_count++].value = cfa(0);
	s.other[s.other_count].reg = 10;
	s.other[s.other_count++].value = cfa(-8);
	s.root = 1;
	t.other[t.other_count].reg = 10;
	t.other[t.other_count++].value = cfa(-8);
	t.fp = (struct frame_value){FRAME_FP, 0};
	t.slot_count = 1;
	assert_true(frame_meet(&s, &t, &conflict));
	assert_false(conflict);
	assert_value(s.sp, FRAME_CFA, -32);
	assert_value(s.fp, FRAME_UNKNOWN, 0);
	assert_value(frame_register(&isa_aarch64, &s, 9), FRAME_UNKNOWN, 0);
	assert_value(frame_register(&isa_aarch64, &s, 10), FRAME_CFA, -8);
	assert_value(frame_saved(&s, FRAME_FP), FRAME_CFA, -32);
	assert_value(frame_saved(&s, FRAME_RA), FRAME_UNKNOWN, 0);
	assert_int_equal(s.root, 0);
	assert_false(frame_meet(&s, &t, &conflict));
}

static void meeting_another_depth_is_a_conflict(void **state)
{
	struct frame_state s = framed(&isa_aarch64), before = s, t = s;
	bool conflict = false;
	(void)state;
	s.fp = before.fp = t.fp = (struct frame_value){FRAME_FP, 0};
	t.sp = cfa(-48);
	assert_false(frame_meet(&s, &t, &conflict));
	assert_true(conflict);
	assert_memory_equal(&s, &before, sizeof s);
}

/* Unless FP leads to the frame and SP was moved by an unknown amount on one of the ways. */
static void meeting_after_alloca_on_one_way(void **state)
{
	struct frame_state s = framed(&isa_aarch64), t = s;
	bool conflict = true;
	char words[WORDS_MAX];
	(void)state;
	t.sp = (struct frame_value){FRAME_ALIGNED, 0};
	assert_true(frame_meet(&s, &t, &conflict));
	assert_false(conflict);
	assert_string_equal(state_words(&isa_aarch64, &s, words),
			    "CFA=fp+32 ra=[CFA-24] fp=[CFA-32]");
}

/* Or a register tells both where the frame will end: a loop that touches its pages. */
static void meeting_in_a_loop_that_moves_sp(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(both); i++) {
		struct frame_state s, t;
		bool conflict = true;
		frame_entry(both[i], &s);
		s.other[s.other_count].reg = 9;
		s.other[s.other_count++].value = cfa(-16384);
		t = s;
		t.sp.offset -= 4096;
		assert_true(frame_meet(&s, &t, &conflict));
		assert_false(conflict);
		assert_value(s.sp, FRAME_UNKNOWN, 0);
		frame_equal_sp(both[i], &s, 10); /* nothing is known of it */
		assert_value(s.sp, FRAME_UNKNOWN, 0);
		frame_equal_sp(both[i], &s, 9);
		assert_value(s.sp, FRAME_CFA, -16384);
	}
}

/* More registers are saved than there is room for: the first ones stay. */
static void full_of_slots(void **state)
{
	struct frame_state s = framed(&isa_aarch64);
	struct insn store = {.kind = INSN_OTHER, .effect_count = 1};
	(void)state;
	for (int i = 0; i < 2 * FRAME_SLOTS; i++) {
		store.effects[0] = (struct effect){EFFECT_STORE, 31, 30, INSN_NO_REG, 16 + 8 * i};
		frame_apply(&isa_aarch64, &s, &store);
	}
	assert_int_equal(s.slot_count, FRAME_SLOTS);
	assert_value(frame_saved(&s, FRAME_FP), FRAME_CFA, -32);
	assert_value(frame_saved(&s, FRAME_RA), FRAME_CFA, -24);
}

/* Copies of SP count more than constants, which come and go. */
static void full_of_registers(void **state)
{
	struct insn insn = {.kind = INSN_OTHER, .effect_count = 1};
	struct frame_state s;
	(void)state;
	frame_entry(&isa_aarch64, &s);
	for (uint8_t i = 0; i < FRAME_REGS; i++) {
		insn.effects[0] = (struct effect){EFFECT_CONST, i, INSN_NO_REG, INSN_NO_REG, 4096};
		frame_apply(&isa_aarch64, &s, &insn);
	}
	for (uint8_t i = 0; i < 2 * FRAME_REGS; i++) {
		insn.effects[0] = (struct effect){EFFECT_MOVE, (uint8_t)(10 + i), 31, INSN_NO_REG,
						  0};
		frame_apply(&isa_aarch64, &s, &insn);
	}
	assert_int_equal(s.other_count, FRAME_REGS);
	for (unsigned i = 0; i < FRAME_REGS; i++)
		assert_value(frame_register(&isa_aarch64, &s, 10 + i), FRAME_CFA, 0);
}

/* A frame that no stack could hold. */
static void offsets_do_not_overflow(void **state)
{
	struct insn insn = {.kind = INSN_OTHER, .effect_count = 1};
	struct frame_state s;
	char words[WORDS_MAX];
	(void)state;
	frame_entry(&isa_aarch64, &s);
	insn.effects[0] = (struct effect){EFFECT_MOVE, 31, 31, INSN_NO_REG, -0x7fffff00};
	frame_apply(&isa_aarch64, &s, &insn);
	assert_value(s.sp, FRAME_CFA, -0x7fffff00);
	frame_apply(&isa_aarch64, &s, &insn);
	assert_int_not_equal(s.sp.kind, FRAME_CFA);
	insn.effects[0].imm = INT64_MIN;
	frame_apply(&isa_aarch64, &s, &insn);
	assert_string_equal(state_words(&isa_aarch64, &s, words), "nothing");
}

/* In a blank state everything is named by where it was. */
static void blank_state_names_words(void **state)
{
	/* ldp x29, x30, [sp], #32; ldr x19, [x29, #8] of the old FP comes first */
	struct insn insn = {.kind = INSN_OTHER, .effect_count = 4};
	struct frame_state s;

	(void)state;
	frame_blank(&s);
	insn.effects[0] = (struct effect){EFFECT_LOAD, 19, 29, INSN_NO_REG, 8};
	insn.effects[1] = (struct effect){EFFECT_LOAD, 29, 31, INSN_NO_REG, 0};
	insn.effects[2] = (struct effect){EFFECT_LOAD, 30, 31, INSN_NO_REG, 8};
	insn.effects[3] = (struct effect){EFFECT_MOVE, 31, 31, INSN_NO_REG, 32};
	frame_apply(&isa_aarch64, &s, &insn);
	assert_value(s.extra, FRAME_FP_WORD, 8);
	assert_value(s.fp, FRAME_WORD, 0);
	assert_value(s.link, FRAME_WORD, 8);
	assert_value(s.sp, FRAME_CFA, 32);
}

static void nothing_changed_is_told(void **state)
{
	struct insn insn = {.kind = INSN_OTHER, .writes = 1u << 5};
	struct frame_state s = framed(&isa_aarch64);
	(void)state;
	assert_false(frame_apply(&isa_aarch64, &s, &insn));
	insn.writes = 1u << 29;
	assert_true(frame_apply(&isa_aarch64, &s, &insn));
	assert_false(frame_apply(&isa_aarch64, &s, &insn));
}

/* ---- verdicts about recipes from elsewhere ---- */

static const struct recipe by_sp = {.cfa = RECIPE_REG,
				    .cfa_reg = 31,
				    .cfa_offset = 32,
				    .ra = RECIPE_AT_CFA,
				    .ra_offset = -24,
				    .fp = RECIPE_AT_CFA,
				    .fp_offset = -32};

static enum frame_verdict verdict(const struct frame_state *s, struct recipe r)
{
	return frame_confirms(&isa_aarch64, s, &r);
}

static void another_way_to_the_same_caller(void **state)
{
	struct frame_state s = framed(&isa_aarch64);
	struct recipe r = by_sp;
	(void)state;
	assert_int_equal(verdict(&s, r), FRAME_AGREES);
	r.cfa_reg = 29;
	assert_int_equal(verdict(&s, r), FRAME_AGREES);
	r.ra = RECIPE_AT_FP, r.ra_offset = 8;
	r.fp = RECIPE_AT_SP, r.fp_offset = 0;
	assert_int_equal(verdict(&s, r), FRAME_AGREES);
	r = by_sp;
	r.ra = RECIPE_SAME, r.ra_offset = 0; /* the link register still has it */
	assert_int_equal(verdict(&s, r), FRAME_AGREES);
	s.link.kind = FRAME_UNKNOWN;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_RA);
}

static void another_caller(void **state)
{
	struct frame_state s = framed(&isa_aarch64);
	struct recipe r = by_sp;
	(void)state;
	r.cfa_offset = 40;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_CFA);
	r = by_sp;
	r.ra_offset = -16;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_RA);
	r = by_sp;
	r.fp_offset = -16;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_FP);
	r.fp = RECIPE_SAME;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_FP);
	r.fp = RECIPE_LOST;
	assert_int_equal(verdict(&s, r), FRAME_OTHER_FP);
	assert_int_equal(verdict(&s, (struct recipe){.cfa = RECIPE_ROOT}), FRAME_OTHER_CFA);
}

static void no_verdict(void **state)
{
	struct frame_state s = framed(&isa_aarch64), lost = {0};
	struct recipe r = by_sp;
	(void)state;
	assert_int_equal(verdict(&lost, r), FRAME_NO_STATE);
	r.cfa_vg = 1;
	assert_int_equal(verdict(&s, r), FRAME_NOT_SAYABLE);
	assert_int_equal(verdict(&s, (struct recipe){.cfa = RECIPE_COMPLEX}), FRAME_NOT_SAYABLE);
	assert_int_equal(verdict(&s, (struct recipe){.cfa = RECIPE_SIGNAL}), FRAME_NOT_SAYABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_leaf),
		cmocka_unit_test(aarch64_frame_record_pushed),
		cmocka_unit_test(aarch64_frame_record_at_an_offset),
		cmocka_unit_test(aarch64_frame_larger_than_an_immediate),
		cmocka_unit_test(aarch64_frame_size_in_two_instructions),
		cmocka_unit_test(aarch64_call_destroys_the_frame_size),
		cmocka_unit_test(aarch64_signed_return_address),
		cmocka_unit_test(aarch64_signed_and_returned_at_once),
		cmocka_unit_test(aarch64_alloca),
		cmocka_unit_test(aarch64_link_register_as_any_other),
		cmocka_unit_test(aarch64_link_register_kept_in_another),
		cmocka_unit_test(aarch64_link_register_lost),
		cmocka_unit_test(aarch64_link_register_saved_alone),
		cmocka_unit_test(aarch64_store_over_the_return_address),
		cmocka_unit_test(aarch64_outermost),
		cmocka_unit_test(x86_push_and_pop),
		cmocka_unit_test(x86_rbp_as_any_other),
		cmocka_unit_test(x86_frame_pointer),
		cmocka_unit_test(x86_arguments_pushed_around_a_call),
		cmocka_unit_test(x86_realigned_stack),
		cmocka_unit_test(x86_stack_pointer_saved_in_memory),
		cmocka_unit_test(x86_alloca),
		cmocka_unit_test(x86_rbx_as_the_base_of_the_frame),
		cmocka_unit_test(x86_helper_touches_the_pages),
		cmocka_unit_test(x86_result_of_a_call_is_no_frame_size),
		cmocka_unit_test(x86_frame_without_frame_pointer_of_unknown_size),
		cmocka_unit_test(x86_outermost),
		cmocka_unit_test(entry_is_an_entry),
		cmocka_unit_test(saved_is_where_it_was_saved),
		cmocka_unit_test(given_back_is_forgotten),
		cmocka_unit_test(meeting_an_equal_state_changes_nothing),
		cmocka_unit_test(meeting_keeps_what_both_know),
		cmocka_unit_test(meeting_another_depth_is_a_conflict),
		cmocka_unit_test(meeting_after_alloca_on_one_way),
		cmocka_unit_test(meeting_in_a_loop_that_moves_sp),
		cmocka_unit_test(full_of_slots),
		cmocka_unit_test(full_of_registers),
		cmocka_unit_test(offsets_do_not_overflow),
		cmocka_unit_test(blank_state_names_words),
		cmocka_unit_test(nothing_changed_is_told),
		cmocka_unit_test(another_way_to_the_same_caller),
		cmocka_unit_test(another_caller),
		cmocka_unit_test(no_verdict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
