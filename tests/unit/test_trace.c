/* SPDX-License-Identifier: Apache-2.0 */
/* Where control goes in a procedure and between them, and what is known about frames on the way. */
#include "tracing.h"

static void aarch64_epilogue_in_the_middle(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"b4000060", "1004 cbz x0, 1f", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1008 ldr x30, [sp], #16", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"94001ffc", "1010 1: bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1014 ldr x30, [sp], #16", ""},
		{"d65f03c0", "1018 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_epilogue_in_the_middle(void **state)
{
	static const struct line code[] = {
		{"53", "1000 push %rbx", "start"},
		{"85ff", "1001 test %edi, %edi", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"7402", "1003 je 1f", ""},
		{"5b", "1005 pop %rbx", ""},
		{"c3", "1006 ret", "entry"},
		{"e8f47f0000", "1007 1: call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"5b", "100c pop %rbx", ""},
		{"c3", "100d ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_return_before_the_frame_is_made(void **state)
{
	static const struct line code[] = {
		{"b40000a0", "1000 cbz x0, 1f", "start"},
		{"f81f0ffe", "1004 str x30, [sp, #-16]!", "entry"},
		{"94001ffe", "1008 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "100c ldr x30, [sp], #16", ""},
		{"d65f03c0", "1010 ret", "entry"},
		{"d2800020", "1014 1: mov x0, #1", ""},
		{"d65f03c0", "1018 ret", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_return_before_the_frame_is_made(void **state)
{
	static const struct line code[] = {
		{"85ff", "1000 test %edi, %edi", "start"},
		{"740e", "1002 je 1f", "entry"},
		{"4883ec08", "1004 sub $8, %rsp", ""},
		{"e8f37f0000", "1008 call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"4883c408", "100d add $8, %rsp", ""},
		{"c3", "1011 ret", "entry"},
		{"b801000000", "1012 1: mov $1, %eax", ""},
		{"c3", "1017 ret", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* Nothing calls the last procedure: it is where another one ends with a jump to. */
static void aarch64_tail_call(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 f: str x30, [sp, #-16]!", "start"},
		{"94001fff", "1004 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1008 ldr x30, [sp], #16", ""},
		{"14000003", "100c b h", "entry"},
		{"d2800020", "1010 g: mov x0, #1", "start"},
		{"d65f03c0", "1014 ret", "entry"},
		{"d2800040", "1018 h: mov x0, #2", "start"},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1010}});
}

static void x86_tail_call(void **state)
{
	static const struct line code[] = {
		{"53", "1000 f: push %rbx", "start"},
		{"e8fa7f0000", "1001 call far", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"5b", "1006 pop %rbx", ""},
		{"eb06", "1007 jmp h", "entry"},
		{"b801000000", "1009 g: mov $1, %eax", "start"},
		{"c3", "100e ret", "entry"},
		{"b802000000", "100f h: mov $2, %eax", "start"},
		{"c3", "1014 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1009}});
}

static void aarch64_jump_within_a_procedure_is_no_tail_call(void **state)
{
	static const struct line code[] = {
		{"b4000040", "1000 cbz x0, 1f", "start"},
		{"14000002", "1004 b 2f", "entry"},
		{"d2800020", "1008 1: mov x0, #1", ""},
		{"d2800040", "100c 2: mov x0, #2", ""},
		{"d65f03c0", "1010 ret", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void aarch64_tail_call_through_a_register(void **state)
{
	static const struct line code[] = {
		{"f9400010", "1000 ldr x16, [x0]", "start"},
		{"d61f0200", "1004 br x16", "entry"},
		{"f81f0ffe", "1008 str x30, [sp, #-16]!", "start"},
		{"94001ffd", "100c bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"f84107fe", "1010 ldr x30, [sp], #16", ""},
		{"d65f03c0", "1014 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_tail_call_through_a_register(void **state)
{
	static const struct line code[] = {
		{"53", "1000 push %rbx", "start"},
		{"488b07", "1001 mov (%rdi), %rax", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"5b", "1004 pop %rbx", ""},
		{"ffe0", "1005 jmp *%rax", "entry"},
		{"660f1f840000000000", "1007 .p2align 4", "?"},
		{"4883ec18", "1010 sub $24, %rsp", "start"},
		{"e8e77f0000", "1014 call far", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"4883c418", "1019 add $24, %rsp", ""},
		{"c3", "101d ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* The last procedure ends like any other, but it is known not to return. */
static void aarch64_call_that_never_returns_by_name(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"94000003", "1004 bl die", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"d2800020", "1008 mov x0, #1", "start"},
		{"14001ffd", "100c b far", "entry"},
		{"d2800021", "1010 die: mov x1, #1", "start"},
		{"d65f03c0", "1014 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .noreturn = {0x1010}});
}

static void x86_call_that_never_returns_by_name(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"e806000000", "1004 call die", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "1009 mov $1, %eax", "start"},
		{"c3", "100e ret", "entry"},
		{"b802000000", "100f die: mov $2, %eax", "start"},
		{"c3", "1014 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .noreturn = {0x100f}});
}

static void aarch64_call_that_never_returns_by_what_it_does(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"94000003", "1004 bl die", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"d2800020", "1008 mov x0, #1", "start"},
		{"14001ffd", "100c b far", "entry"},
		{"b4000040", "1010 die: cbz x0, 1f", "start"},
		{"d4200020", "1014 brk #1", "entry"},
		{"14000000", "1018 1: b 1b", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_call_that_never_returns_by_what_it_does(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"e806000000", "1004 call die", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "1009 mov $1, %eax", "start"},
		{"c3", "100e ret", "entry"},
		{"85ff", "100f die: test %edi, %edi", "start"},
		{"7402", "1011 je 1f", "entry"},
		{"0f0b", "1013 ud2", ""},
		{"ebfe", "1015 1: jmp 1b", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* For comparison: the same with one that does. */
static void x86_call_that_returns(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"e807000000", "1004 call live", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "1009 mov $1, %eax", ""},
		{"0f0b", "100e ud2", ""},
		{"c3", "1010 live: ret", "start"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void x86_call_that_never_returns_through_a_word(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"ff15f61f0000", "1004 call *word(%rip)", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "100a mov $1, %eax", "start"},
		{"c3", "100f ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .slot = {0x3000, TRACE_NO_RETURN}});
}

static void x86_call_of_its_own_procedure_through_a_word(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 f: sub $24, %rsp", "start"},
		{"ff15f61f0000", "1004 call *word(%rip)", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "100a mov $1, %eax", "start"},
		{"c3", "100f ret", "entry"},
		{"0f0b", "1010 die: ud2", "start"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.slot = {0x3000, 0x1010}, .entries = {0x1000, 0x1010}});
}

static void x86_call_through_an_unknown_word(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"ff15f61f0000", "1004 call *word(%rip)", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "100a mov $1, %eax", ""},
		{"4883c418", "100f add $24, %rsp", ""},
		{"c3", "1013 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .slot = {0x3008, TRACE_NO_RETURN}});
}

static void aarch64_second_prologue_shows_that_the_call_never_returned(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"94001fff", "1004 bl far", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"d2800020", "1008 mov x0, #1", "start"},
		{"f81e0ffe", "100c str x30, [sp, #-32]!", "entry"},
		{"94001ffc", "1010 bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"f84207fe", "1014 ldr x30, [sp], #32", ""},
		{"d65f03c0", "1018 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

/* The call seems to return with a frame to where a branch comes without one. */
static void aarch64_branch_shows_that_the_call_never_returned(void **state)
{
	static const struct line code[] = {
		{"b4000060", "1000 cbz x0, 1f", "start"},
		{"f81e0ffe", "1004 str x30, [sp, #-32]!", "entry"},
		{"94001ffe", "1008 bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"d2800020", "100c 1: mov x0, #1", "entry"},
		{"d65f03c0", "1010 ret", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_branch_shows_that_the_call_never_returned(void **state)
{
	static const struct line code[] = {
		{"85ff", "1000 test %edi, %edi", "start"},
		{"7409", "1002 je 1f", "entry"},
		{"4883ec18", "1004 sub $24, %rsp", ""},
		{"e8f37f0000", "1008 call far", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"b801000000", "100d 1: mov $1, %eax", "entry"},
		{"c3", "1012 ret", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_cold_part(void **state)
{
	static const struct line code[] = {
		{"f81e0ffe", "1000 f: str x30, [sp, #-32]!", "start"},
		{"b4000080", "1004 cbz x0, cold", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"f84207fe", "1008 back: ldr x30, [sp], #32", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"d65f03c0", "1010 g: ret", "start"},
		{"94001ffb", "1014 cold: bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"17fffffc", "1018 b back", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x1010}});
}

static void x86_cold_part(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 f: sub $24, %rsp", "start"},
		{"85ff", "1004 test %edi, %edi", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"7402", "1006 je back", ""},
		{"eb06", "1008 jmp cold", ""},
		{"4883c418", "100a back: add $24, %rsp", ""},
		{"c3", "100e ret", "entry"},
		{"c3", "100f g: ret", "start"},
		{"e8eb7f0000", "1010 cold: call far", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"ebf3", "1015 jmp back", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), &(struct given){.entries = {0x1000, 0x100f}});
}

static void aarch64_landing_pad(void **state)
{
	static const struct line code[] = {
		{"f81e0ffe", "1000 str x30, [sp, #-32]!", "start"},
		{"94001fff", "1004 call: bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"f84207fe", "1008 after: ldr x30, [sp], #32", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"94001ffc", "1010 pad: bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"17fffffd", "1014 b after", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .landing = {0x1004, 0x1008, 0x1010}});
}

/* While arguments are pushed, SP at the pad is that of the call. */
static void x86_landing_pad(void **state)
{
	static const struct line code[] = {
		{"4883ec08", "1000 sub $8, %rsp", "start"},
		{"6a01", "1004 push $1", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"e8f57f0000", "1006 call: call far", "CFA=sp+24 ra=[CFA-8] fp=same"},
		{"4883c410", "100b after: add $16, %rsp", ""},
		{"c3", "100f ret", "entry"},
		{"b801000000", "1010 pad: mov $1, %eax", "CFA=sp+24 ra=[CFA-8] fp=same"},
		{"ebf9", "1015 jmp pad", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .landing = {0x1006, 0x100b, 0x1010}});
}

static void aarch64_no_landing_pad_of_other_calls(void **state)
{
	static const struct line code[] = {
		{"f81e0ffe", "1000 str x30, [sp, #-32]!", "start"},
		{"94001fff", "1004 bl far", "CFA=sp+32 ra=[CFA-32] fp=same"},
		{"f84207fe", "1008 after: ldr x30, [sp], #32", ""},
		{"d65f03c0", "100c ret", "entry"},
		{"94001ffc", "1010 pad: bl far", "~CFA=sp+32 ra=[CFA-32] fp=same"},
		{"17fffffd", "1014 b after", ""},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .landing = {0x2000, 0x2010, 0x1010}});
}

static void aarch64_jump_table(void **state)
{
	static const struct line code[] = {
		{"f81f0ffe", "1000 str x30, [sp, #-16]!", "start"},
		{"7100081f", "1004 cmp w0, #2", "CFA=sp+16 ra=[CFA-16] fp=same"},
		{"540001a8", "1008 b.hi 9f", ""},
		{"b0000001", "100c adrp x1, table", ""},
		{"91000021", "1010 add x1, x1, :lo12:table", ""},
		{"38604820", "1014 ldrb w0, [x1, w0, uxtw]", ""},
		{"10000061", "1018 adr x1, one", ""},
		{"8b208820", "101c add x0, x1, w0, sxtb #2", ""},
		{"d61f0000", "1020 br x0", ""},
		{"d2800020", "1024 one: mov x0, #1", ""},
		{"d4200020", "1028 brk #1", ""},
		{"d2800040", "102c two: mov x0, #2", ""},
		{"d4200020", "1030 brk #1", ""},
		{"d2800060", "1034 three: mov x0, #3", ""},
		{"d4200020", "1038 brk #1", ""},
		{"f84107fe", "103c 9: ldr x30, [sp], #16", ""},
		{"d65f03c0", "1040 ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code),
	      &(struct given){.entries = {0x1000}, .data = "\x00\x02\x04", .data_size = 3});
}

/* The last case is where a procedure could begin: it is not taken for one. */
static void x86_jump_table(void **state)
{
	static const struct line code[] = {
		{"4883ec18", "1000 sub $24, %rsp", "start"},
		{"83ff02", "1004 cmp $2, %edi", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"7720", "1007 ja 9f", ""},
		{"89f8", "1009 mov %edi, %eax", ""},
		{"488d15ee0f0000", "100b lea table(%rip), %rdx", ""},
		{"48630482", "1012 movslq (%rdx,%rax,4), %rax", ""},
		{"4801d0", "1016 add %rdx, %rax", ""},
		{"ffe0", "1019 jmp *%rax", ""},
		{"b801000000", "101b one: mov $1, %eax", ""},
		{"0f0b", "1020 ud2", ""},
		{"b802000000", "1022 two: mov $2, %eax", ""},
		{"0f0b", "1027 ud2", ""},
		{"4883c418", "1029 9: add $24, %rsp", ""},
		{"c3", "102d ret", "entry"},
		{"6690", "102e .p2align 4", "-"},
		{"b803000000", "1030 three: mov $3, %eax", "CFA=sp+32 ra=[CFA-8] fp=same"},
		{"0f0b", "1035 ud2", ""},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code),
	      &(struct given){.entries = {0x1000},
			      .data = "\x1b\xf0\xff\xff\x22\xf0\xff\xff\x30\xf0\xff\xff",
			      .data_size = 12});
}

/* The trap behind the call tells that nothing comes back. */
static void aarch64_outermost_procedure(void **state)
{
	static const struct line code[] = {
		{"d280001d", "1000 mov x29, #0", "start"},
		{"d280001e", "1004 mov x30, #0", "outermost"},
		{"aa0003e5", "1008 mov x5, x0", ""},
		{"94001ffd", "100c bl far", ""},
		{"d4200000", "1010 brk #0", "-"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_outermost_procedure(void **state)
{
	static const struct line code[] = {
		{"31ed", "1000 xor %ebp, %ebp", "start"},
		{"4989d1", "1002 mov %rdx, %r9", "outermost"},
		{"e8f67f0000", "1005 call far", ""},
		{"f4", "100a hlt", "-"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

static void aarch64_loop_that_touches_pages(void **state)
{
	static const struct line code[] = {
		{"d14083e9", "1000 sub x9, sp, #0x20, lsl #12", "start"},
		{"d14043ff", "1004 1: sub sp, sp, #0x10, lsl #12", "CFA=r9+131072 ra=lr fp=same"},
		{"f90203ff", "1008 str xzr, [sp, #1024]", ""},
		{"eb2963ff", "100c cmp sp, x9", ""},
		{"54ffffa1", "1010 b.ne 1b", ""},
		{"d10043ff", "1014 sub sp, sp, #16", "CFA=sp+131072 ra=lr fp=same"},
		{"f90003fe", "1018 str x30, [sp]", "CFA=sp+131088 ra=lr fp=same"},
		{"94001ff9", "101c bl far", "CFA=sp+131088 ra=[CFA-131088] fp=same"},
		{"f94003fe", "1020 ldr x30, [sp]", ""},
		{"910043ff", "1024 add sp, sp, #16", ""},
		{"914083ff", "1028 add sp, sp, #0x20, lsl #12", "CFA=sp+131072 ra=lr fp=same"},
		{"d65f03c0", "102c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_loop_that_touches_pages(void **state)
{
	static const struct line code[] = {
		{"4c8d9c2400c0ffff", "1000 lea -0x4000(%rsp), %r11", "start"},
		{"4881ec00100000", "1008 1: sub $0x1000, %rsp", "CFA=r11+16392 ra=[CFA-8] fp=same"},
		{"48830c2400", "100f orq $0, (%rsp)", ""},
		{"4c39dc", "1014 cmp %r11, %rsp", ""},
		{"75ef", "1017 jne 1b", ""},
		{"4883ec08", "1019 sub $8, %rsp", "CFA=sp+16392 ra=[CFA-8] fp=same"},
		{"e8de7f0000", "101d call far", "CFA=sp+16400 ra=[CFA-8] fp=same"},
		{"4881c408400000", "1022 add $0x4008, %rsp", ""},
		{"c3", "1029 ret", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* The state at its head is what holds on all ways to it. */
static void aarch64_loop(void **state)
{
	static const struct line code[] = {
		{"a9bf7bfd", "1000 stp x29, x30, [sp, #-16]!", "start"},
		{"910003fd", "1004 mov x29, sp", "CFA=sp+16 ra=[CFA-8] fp=same"},
		{"910003e9", "1008 mov x9, sp", "CFA=sp+16 ra=[CFA-8] fp=[CFA-16]"},
		{"94001ffd", "100c 1: bl far", ""},
		{"d1000400", "1010 sub x0, x0, #1", ""},
		{"b5ffffc0", "1014 cbnz x0, 1b", ""},
		{"a8c17bfd", "1018 ldp x29, x30, [sp], #16", ""},
		{"d65f03c0", "101c ret", "entry"},
	};
	(void)state;
	trace(&isa_aarch64, code, COUNT(code), NULL);
}

static void x86_call_of_the_next_instruction_calls_nothing(void **state)
{
	static const struct line code[] = {
		{"e800000000", "1000 call 1f", "start"},
		{"b801000000", "1005 1: mov $1, %eax", "entry"},
	};
	(void)state;
	trace(&isa_x86_64, code, COUNT(code), NULL);
}

/* Where FP is set to zero the stack ends, unless the code returns: then the register is one as any
   other. */
static void x86_zeroed_frame_pointer(void **state)
{
	static const struct line start[] = {
		{"31ed", "1000 xor %ebp, %ebp", "start"},
		{"ffd0", "1002 call *%rax", "outermost"},
		{"b83c000000", "1004 mov $60, %eax", ""},
		{"0f05", "1009 syscall", ""},
		{"c3", "100b ret", "?"},
	};
	static const struct line other[] = {
		{"31ed", "1000 xor %ebp, %ebp", "start"},
		{"ffd0", "1002 call *%rax", "CFA=sp+8 ra=[CFA-8] fp=lost"},
		{"c3", "1004 ret", ""},
	};
	(void)state;
	trace(&isa_x86_64, start, COUNT(start), NULL);
	trace(&isa_x86_64, other, COUNT(other), NULL);
}

/* Haskell, as LLVM compiles it: calls that never come back, by code that has not saved where it
   would have to. */
static void aarch64_calls_without_having_saved(void **state)
{
	static const struct line start[] = {
		{"d2800013", "1000 mov x19, #0", "start"},
		{"d63f0000", "1004 blr x0", "?"},
		{"d2800ba8", "1008 mov x8, #93", "outermost"},
		{"d4000001", "100c svc #0", ""},
		{"d65f03c0", "1010 ret", "?"},
	};
	static const struct line other[] = {
		{"f8408e88", "1000 ldr x8, [x20, #8]!", "start"},
		{"d63f0100", "1004 blr x8", "entry"},
		{"d65f03c0", "1008 ret", "nothing"},
	};
	(void)state;
	trace(&isa_aarch64, start, COUNT(start), NULL);
	trace(&isa_aarch64, other, COUNT(other), NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_epilogue_in_the_middle),
		cmocka_unit_test(x86_epilogue_in_the_middle),
		cmocka_unit_test(aarch64_return_before_the_frame_is_made),
		cmocka_unit_test(x86_return_before_the_frame_is_made),
		cmocka_unit_test(aarch64_tail_call),
		cmocka_unit_test(x86_tail_call),
		cmocka_unit_test(aarch64_jump_within_a_procedure_is_no_tail_call),
		cmocka_unit_test(aarch64_tail_call_through_a_register),
		cmocka_unit_test(x86_tail_call_through_a_register),
		cmocka_unit_test(aarch64_call_that_never_returns_by_name),
		cmocka_unit_test(x86_call_that_never_returns_by_name),
		cmocka_unit_test(aarch64_call_that_never_returns_by_what_it_does),
		cmocka_unit_test(x86_call_that_never_returns_by_what_it_does),
		cmocka_unit_test(x86_call_that_returns),
		cmocka_unit_test(x86_call_that_never_returns_through_a_word),
		cmocka_unit_test(x86_call_of_its_own_procedure_through_a_word),
		cmocka_unit_test(x86_call_through_an_unknown_word),
		cmocka_unit_test(aarch64_second_prologue_shows_that_the_call_never_returned),
		cmocka_unit_test(aarch64_branch_shows_that_the_call_never_returned),
		cmocka_unit_test(x86_branch_shows_that_the_call_never_returned),
		cmocka_unit_test(aarch64_cold_part),
		cmocka_unit_test(x86_cold_part),
		cmocka_unit_test(aarch64_landing_pad),
		cmocka_unit_test(x86_landing_pad),
		cmocka_unit_test(aarch64_no_landing_pad_of_other_calls),
		cmocka_unit_test(aarch64_jump_table),
		cmocka_unit_test(x86_jump_table),
		cmocka_unit_test(aarch64_outermost_procedure),
		cmocka_unit_test(x86_outermost_procedure),
		cmocka_unit_test(aarch64_loop_that_touches_pages),
		cmocka_unit_test(x86_loop_that_touches_pages),
		cmocka_unit_test(aarch64_loop),
		cmocka_unit_test(x86_call_of_the_next_instruction_calls_nothing),
		cmocka_unit_test(x86_zeroed_frame_pointer),
		cmocka_unit_test(aarch64_calls_without_having_saved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
