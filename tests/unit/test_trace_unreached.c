/* SPDX-License-Identifier: Apache-2.0 */
/* Code that no known way leads to: what it is, and where a procedure begins in it. */
#include "tracing.h"

static void aarch64_code_that_only_data_points_to(void **state)
{
	static const struct line code[] = {
		{"d65f03c0", "1000 ret", "start"},
		{"d2800020", "1004 mov x0, #1", "start"},
		{"d2800040", "1008 second: mov x0, #2", "start"},
		{"d65f03c0", "100c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1008}});
}

static void x86_code_that_only_data_points_to(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"b801000000", "1001 mov $1, %eax", "~entry"},
		{"b802000000", "1006 second: mov $2, %eax", "start"},
		{"c3", "100b ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1006}});
}

static void aarch64_local_symbol_in_a_procedure(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"94001fff", "1004 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"d2800020", "1008 label: mov x0, #1", ""},
		{"f84107fe", "100c ldr x30, [sp], #16", ""},
		{"d65f03c0", "1010 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1008}});
}

static void x86_local_symbol_in_a_procedure(void **state)
{
	static const struct line code[] = {
		{"53", "1000 push %rbx", "start"},
		{"e8fa7f0000", "1001 call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"b801000000", "1006 label: mov $1, %eax", ""},
		{"5b", "100b pop %rbx", ""},
		{"c3", "100c ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1006}});
}

/* What falls into it does not count. */
static void aarch64_global_symbol_in_a_procedure(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 f: str x30, [sp, #-16]!", "start"},
		{"94001fff", "1004 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"d2800020", "1008 label: mov x0, #1", "start"},
		{"d65f03c0", "100c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1008}});
}

static void x86_global_symbol_in_a_procedure(void **state)
{
	static const struct line code[] = {
		{"53", "1000 f: push %rbx", "start"},
		{"e8fa7f0000", "1001 call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"b801000000", "1006 label: mov $1, %eax", "start"},
		{"c3", "100b ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1006}});
}

static void aarch64_unreached_code_that_returns(void **state)
{
	static const struct line code[] = {
		{"d65f03c0", "1000 ret", "start"},
		{"d2800020", "1004 mov x0, #1", "~CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
		{"a8c27bfd", "1008 ldp x29, x30, [sp], #32", ""},
		{"d65f03c0", "100c ret", "~entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_unreached_code_that_returns(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"b801000000", "1001 mov $1, %eax", "~CFA=sp+24 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"4883c408", "1006 add $8, %rsp", ""},
		{"5b", "100a pop %rbx", "~CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"c3", "100b ret", "~entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void x86_unreached_code_that_leaves_by_the_frame_pointer(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"8b45fc", "1001 mov -4(%rbp), %eax", "~CFA=fp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"c9", "1004 leave", ""},
		{"c3", "1005 ret", "~entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_unreached_code_that_jumps_back(void **state)
{
	static const struct line code[] = {
		{"f81e0ffe", "1000 str x30, [sp, #-32]!", "start"},
		{"94001fff", "1004 back: bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"f84207fe", "1008 ldr x30, [sp], #32", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"910043ff", "1010 add sp, sp, #16", "~CFA=sp+48 ra=[CFA-32] fp=same"},
		{"17fffffc", "1014 b back", "~CFA=sp+32 ra=[CFA-32] fp=same"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_unreached_code_that_jumps_back(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"e8f77f0000", "1004 back: call far", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"4883c418", "1009 add $24, %rsp", ""},
		{"c3", "100d ret", "entry"},
		{"59", "100e pop %rcx", "~CFA=sp+40 ra=[CFA-8] fp=same"},
		{"ebf3", "100f jmp back", "~CFA=sp+32 ra=[CFA-8] fp=same"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_unreached_prologue_behind_padding(void **state)
{
	static const struct line code[] = {
		{"d65f03c0", "1000 ret", "start"},
		{"d503201f", "1004 nop", "~entry"},
		{"a9be7bfd", "1008 stp x29, x30, [sp, #-32]!", "start"},
		{"910003fd", "100c mov x29, sp", "CFA=sp+32 ra=[CFA-24] fp=same"},
		{"14000000", "1010 1: b 1b", "CFA=sp+32 ra=[CFA-24] fp=[CFA-32]"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_unreached_prologue_behind_padding(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"66662e0f1f8400000000000f1f4000", "1001 .p2align 4", "~entry"},
		{"55", "1010 push %rbp", "start"},
		{"4889e5", "1011 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"ebfe", "1014 1: jmp 1b", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* Traps are nobody's code. */
static void x86_unreached_prologue_behind_traps(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"cccccccccccccccccccccccccccccc", "1001 .p2align 4, 0xcc", "-"},
		{"55", "1010 push %rbp", "start"},
		{"4889e5", "1011 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"ebfe", "1014 1: jmp 1b", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* A call that may return stands before them, but what comes behind is another procedure all the same. */
static void x86_unreached_procedure_behind_traps(void **state)
{
	static const struct line code[] = {
		{"55", "1000 push %rbp", "start"},
		{"4889e5", "1001 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"e8f77f0000", "1004 call far", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"cccccccccccccc", "1009 .p2align 4, 0xcc", "?"},
		{"488b4df8", "1010 mov -8(%rbp), %rcx", "start"}, /* its caller's */
		{"ffe1", "1014 jmp *%rcx", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* V8 puts arguments and the return address on the stack again, and jumps. */
static void x86_jump_with_arguments_to_a_procedure_behind_traps(void **state)
{
	static const struct line code[] = {
		{"57", "1000 push %rdi", "start"},
		{"ff742408", "1001 push 8(%rsp)", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"eb19", "1005 jmp 1020", "CFA=sp+24 ra=[CFA-8] fp=same"},
		{"cccccccccccccccccccccccccccccccccccccccccccccccccc", "1007 .p2align 5, 0xcc",
		 "-"},
		{"55", "1020 push %rbp", "start"},
		{"4889e5", "1021 mov %rsp, %rbp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"5d", "1024 pop %rbp", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"c3", "1025 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_unreached_code_that_starts_with_a_nop(void **state)
{
	static const struct line code[] = {
		{"d65f03c0", "1000 ret", "start"},
		{"d503201f", "1004 nop", "~entry"},
		{"d2800020", "1008 mov x0, #1", "start"},
		{"d65f03c0", "100c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void aarch64_data_between_procedures(void **state)
{
	static const struct line code[] = {
		{"d65f03c0", "1000 f: ret", "start"},
		{"0000000000000001", "1004 .word 0, 1", "-"},
		{"f81f0ffe", "100c g: str x30, [sp, #-16]!", "start"},
		{"94001ffc", "1010 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1014 ldr x30, [sp], #16", ""},
		{"d65f03c0", "1018 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x100c}});
}

/* Read as code, the data would swallow the begin of the second procedure. */
static void x86_data_between_procedures(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 f: ret", "start"},
		{"0648b8", "1001 .byte 0x06, 0x48, 0xb8", "?"},
		{"53", "1004 g: push %rbx", "start"},
		{"4889fb", "1005 mov %rdi, %rbx", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"e8f37f0000", "1008 call far", "CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"5b", "100d pop %rbx", ""},
		{"c3", "100e ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1004}});
}

/* Code that nothing reaches returns with 48 bytes; its branch comes to where 16 are certain. */
static void aarch64_certain_state_stays(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"94001fff", "1004 back: bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1008 ldr x30, [sp], #16", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"b4ffffa0", "1010 cbz x0, back", "~CFA=sp+48 ra=[CFA-48] fp=same"},
		{"f84307fe", "1014 ldr x30, [sp], #48", ""},
		{"d65f03c0", "1018 ret", "~entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_certain_state_stays(void **state)
{
	static const struct line code[] = {
		{"4883ec08", "1000 sub $8, %rsp", "start"},
		{"e8f77f0000", "1004 back: call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4883c408", "1009 add $8, %rsp", ""},
		{"c3", "100d ret", "entry"},
		{"74f4", "100e je back", "~CFA=sp+48 ra=[CFA-8] fp=same"},
		{"4883c428", "1010 add $40, %rsp", ""},
		{"c3", "1014 ret", "~entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* Some compilers pad with zeros, an odd number of which looks like an instruction that reaches into
   the next procedure. */
static void x86_zeros_between_procedures(void **state)
{
	static const struct line code[] = {
		{"c3", "1000 ret", "start"},
		{"000000", "1001 .zero 15", "?"},
		{"000000", "1004", "?"},
		{"000000", "1007", "?"},
		{"000000", "100a", "?"},
		{"000000", "100d", "?"},
		{"53", "1010 push %rbx", "start"},
		{"4889fb", "1011 mov %rdi, %rbx", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"5b", "1014 pop %rbx", "CFA=sp+16 ra=[CFA-8] fp=same extra=[CFA-16]"},
		{"c3", "1015 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
	trace(&isa_x86_64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1010}});
}

/* Labels of an interpreter, to which it jumps through a table that nothing bounds. They work with
   registers in which a procedure would find nothing of its own. */
static void x86_labels_of_an_interpreter(void **state)
{
	static const struct line code[] = {
		{"4157", "1000 push %r15", "start"},
		{"4989ff", "1002 mov %rdi, %r15", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"41ff27", "1005 jmp *(%r15)", ""},
		{"e8f30f0000", "1008 first: call far", "~CFA=sp+16 ra=[CFA-8] fp=same"},
		{"41ff27", "100d jmp *(%r15)", ""},
		{"49634708", "1010 second: movslq 8(%r15), %rax", "~CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4983c720", "1014 add $32, %r15", ""},
		{"41ff27", "1018 jmp *(%r15)", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1008, 0x1010}});
}

static void aarch64_labels_of_an_interpreter(void **state)
{
	static const struct line code[] = {
		{"a9be7bfd", "1000 stp x29, x30, [sp, #-32]!", "start"},
		{"a90173fb", "1004 stp x27, x28, [sp, #16]", "CFA=sp+32 ra=[CFA-24] fp=same"},
		{"f940001c", "1008 ldr x28, [x0]", ""},
		{"f9400380", "100c ldr x0, [x28]", ""},
		{"d61f0000", "1010 br x0", ""},
		{"940003fb", "1014 first: bl far", "~CFA=sp+32 ra=[CFA-24] fp=same"},
		{"f9400380", "1018 ldr x0, [x28]", ""},
		{"d61f0000", "101c br x0", ""},
		{"aa1c03e0", "1020 second: mov x0, x28", "~CFA=sp+32 ra=[CFA-24] fp=same"},
		{"9100839c", "1024 add x28, x28, #32", ""},
		{"f9401000", "1028 ldr x0, [x0, #32]", ""},
		{"d61f0000", "102c br x0", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1014, 0x1020}});
}

/* The same place, but what stands there could be a procedure of its own. */
static void x86_procedure_behind_an_interpreter(void **state)
{
	static const struct line code[] = {
		{"4157", "1000 push %r15", "start"},
		{"4989ff", "1002 mov %rdi, %r15", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"41ff27", "1005 jmp *(%r15)", ""},
		{"488b07", "1008 thunk: mov (%rdi), %rax", "start"},
		{"ff6010", "100b jmp *16(%rax)", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .hints = {0x1008}});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_code_that_only_data_points_to),
		cmocka_unit_test(x86_code_that_only_data_points_to),
		cmocka_unit_test(aarch64_local_symbol_in_a_procedure),
		cmocka_unit_test(x86_local_symbol_in_a_procedure),
		cmocka_unit_test(aarch64_global_symbol_in_a_procedure),
		cmocka_unit_test(x86_global_symbol_in_a_procedure),
		cmocka_unit_test(aarch64_unreached_code_that_returns),
		cmocka_unit_test(x86_unreached_code_that_returns),
		cmocka_unit_test(x86_unreached_code_that_leaves_by_the_frame_pointer),
		cmocka_unit_test(aarch64_unreached_code_that_jumps_back),
		cmocka_unit_test(x86_unreached_code_that_jumps_back),
		cmocka_unit_test(aarch64_unreached_prologue_behind_padding),
		cmocka_unit_test(x86_unreached_prologue_behind_padding),
		cmocka_unit_test(x86_unreached_prologue_behind_traps),
		cmocka_unit_test(x86_unreached_procedure_behind_traps),
		cmocka_unit_test(x86_jump_with_arguments_to_a_procedure_behind_traps),
		cmocka_unit_test(aarch64_unreached_code_that_starts_with_a_nop),
		cmocka_unit_test(aarch64_data_between_procedures),
		cmocka_unit_test(x86_data_between_procedures),
		cmocka_unit_test(aarch64_certain_state_stays),
		cmocka_unit_test(x86_certain_state_stays),
		cmocka_unit_test(x86_zeros_between_procedures),
		cmocka_unit_test(x86_labels_of_an_interpreter),
		cmocka_unit_test(aarch64_labels_of_an_interpreter),
		cmocka_unit_test(x86_procedure_behind_an_interpreter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
