/* SPDX-License-Identifier: Apache-2.0 */
/* Where control goes in a module, and what is known about frames on the way. */
#include "flow/trace.h"

#include <elf.h>
#include <stdlib.h>

#include "listing.h"
#include "made_image.h"

/* What is known before; lists end with 0. NULL: that a procedure begins at the first line. */
struct given {
	uint64_t entries[4], hints[4], noreturn[4];
	struct trace_landing landing;
	struct trace_slot slot;
	const char *data; /* at 0x2000 */
	size_t data_size;
};

static size_t list_length(const uint64_t *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

static struct trace *run(struct image *image, const struct isa *isa,
			 const struct trace_input *input)
{
	struct trace *t;
	struct err *e = trace_run(image, isa, input, &t);

	if (e)
		fail_msg("%s", err_text(e));
	return t;
}

static bool is_start(const struct trace *t, uint64_t at)
{
	const uint64_t *starts;
	size_t count = trace_starts(t, &starts);

	for (size_t i = 0; i < count; i++)
		if (starts[i] == at)
			return true;
	return false;
}

static void check(const struct trace *t, const struct isa *isa, const struct line *lines,
		  size_t count)
{
	const char *expected = "";
	char words[WORDS_MAX];
	uint64_t at = LISTING_START;

	for (size_t i = 0; i < count; at += strlen(lines[i++].bytes) / 2) {
		bool start = !strcmp(lines[i].expected, "start");

		expected = expected_words(isa, lines[i].expected, expected);
		if (!strcmp(expected, "?"))
			continue;
		if (strcmp(state_words(isa, trace_at(t, at), words), expected) != 0)
			fail_msg("%s: %s, expected %s", lines[i].text, words, expected);
		if (is_start(t, at) != start)
			fail_msg("%s: %s", lines[i].text, start ? "no start" : "a start");
	}
}

static void trace(const struct isa *isa, const struct line *lines, size_t count,
		  const struct given *given)
{
	static const struct given first = {.entries = {LISTING_START}};
	uint8_t code[LISTING_MAX];
	struct made_section sections[] = {
		{.name = ".text", .address = LISTING_START, .bytes = code, .code = true},
		{.name = ".rodata", .address = 0x2000},
	};
	struct image *image;
	struct trace *t;

	given = given ? given : &first;
	sections[0].size = listing_bytes(isa, lines, count, code);
	sections[1].bytes = given->data;
	sections[1].size = given->data_size;
	image = made_image(isa->elf_machine, 0, sections, given->data ? 2 : 1);
	t = run(image, isa,
		&(struct trace_input){
			.entries = given->entries,
			.entry_count = list_length(given->entries),
			.hints = given->hints,
			.hint_count = list_length(given->hints),
			.noreturn = given->noreturn,
			.noreturn_count = list_length(given->noreturn),
			.slots = &given->slot,
			.slot_count = given->slot.address != 0,
			.landings = &given->landing,
			.landing_count = given->landing.target != 0,
		});
	check(t, isa, lines, count);
	trace_free(t);
	image_close(image);
}

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

/* ---- code larger than what one thread takes at a time ---- */

#define BORDER 0x20000u /* instruction words of aarch64 up to the first border */

static struct image *text_image(const struct isa *isa, const void *code, size_t size)
{
	const struct made_section text = {
		.name = ".text",
		.address = LISTING_START,
		.bytes = code,
		.size = size,
		.code = true,
	};

	return made_image(isa->elf_machine, 0, &text, 1);
}

static void assert_state(const struct trace *t, const struct isa *isa, uint64_t at,
			 const char *expected)
{
	char words[WORDS_MAX];

	if (strcmp(state_words(isa, trace_at(t, at), words), expected) != 0)
		fail_msg("%lx: %s, expected %s", (unsigned long)at, words, expected);
}

static uint64_t word_address(size_t index)
{
	return LISTING_START + 4 * index;
}

static const uint64_t first_entry[] = {LISTING_START};
static const struct trace_input first_only = {.entries = first_entry, .entry_count = 1};

/* Falls over a border, branches over another, and calls what is behind both. */
static void aarch64_across_borders(void **state)
{
	enum { COLD = 2 * BORDER + 100, END = 2 * BORDER + 200 };
	uint32_t *code = malloc((END + 1) * sizeof(*code));
	const uint64_t *starts;
	struct image *image;
	struct trace *t;

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < END; i++)
		code[i] = 0x91000400;                                     /* add x0, x0, #1 */
	code[0] = 0xf81e0ffe;                                             /* str x30, [sp, #-32]! */
	code[1] = 0x94000000 | (END - 1);                                 /* bl END */
	code[2] = 0xb4000000 | (BORDER - 2) << 5;                         /* cbz x0, BORDER */
	code[100] = 0xf84207fe;                                           /* ldr x30, [sp], #32 */
	code[101] = 0xd65f03c0;                                           /* ret */
	code[BORDER + 100] = 0xb4000000 | (COLD - BORDER - 100) << 5;     /* cbz x0, COLD */
	code[BORDER + 101] = 0x17ffffff & (0x14000000 | (0x4000000 - 1)); /* b . - 4 */
	code[COLD + 10] = 0xf84207fe;
	code[COLD + 11] = 0xd65f03c0;
	code[END] = 0xd65f03c0;
	image = text_image(&isa_aarch64, code, (END + 1) * sizeof(*code));
	t = run(image, &isa_aarch64, &first_only);
	assert_state(t, &isa_aarch64, word_address(2), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(101), "CFA=sp ra=lr fp=same");
	assert_state(t, &isa_aarch64, word_address(BORDER), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(BORDER + 101), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(COLD), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(COLD + 11), "CFA=sp ra=lr fp=same");
	assert_true(is_start(t, word_address(END)));
	assert_false(is_start(t, word_address(BORDER)));
	assert_false(is_start(t, word_address(COLD)));
	assert_true(trace_starts(t, &starts) >= 2);
	assert_int_equal(starts[0], LISTING_START);
	trace_free(t);
	image_close(image);
	free(code);
}

/* One long way through all regions; an instruction stands on each border. */
static void x86_across_borders(void **state)
{
	enum { COUNT_LONG = 120000, SIZE = 1 + 10 * COUNT_LONG + 2 };
	const char *frame = "CFA=sp+16 ra=[CFA-8] fp=same";
	uint8_t *code = calloc(1, SIZE);
	struct image *image;
	struct trace *t;

	(void)state;
	assert_non_null(code);
	code[0] = 0x53; /* push %rbx */
	for (size_t i = 0; i < COUNT_LONG; i++) {
		code[1 + 10 * i] = 0x48; /* movabs $0, %rax */
		code[2 + 10 * i] = 0xb8;
	}
	code[SIZE - 2] = 0x5b; /* pop %rbx */
	code[SIZE - 1] = 0xc3; /* ret */
	image = text_image(&isa_x86_64, code, SIZE);
	t = run(image, &isa_x86_64, &first_only);
	for (size_t i = 0; i < COUNT_LONG; i++)
		assert_state(t, &isa_x86_64, LISTING_START + 1 + 10 * i, frame);
	assert_state(t, &isa_x86_64, LISTING_START + SIZE - 2, frame);
	assert_state(t, &isa_x86_64, LISTING_START + SIZE - 1, "CFA=sp+8 ra=[CFA-8] fp=same");
	trace_free(t);
	image_close(image);
	free(code);
}

/* ---- the number of threads ---- */

struct places {
	struct {
		uint64_t address;
		unsigned length;
		bool start, fresh;
		char words[WORDS_MAX];
	} * all;
	size_t count, capacity;
	const struct isa *isa;
};

static void note_place(void *context, const struct trace_place *p)
{
	struct places *places = context;

	if (places->count == places->capacity) {
		places->capacity = places->capacity ? 2 * places->capacity : 1024;
		places->all = realloc(places->all, places->capacity * sizeof(*places->all));
		assert_non_null(places->all);
	}
	memset(&places->all[places->count], 0, sizeof(*places->all));
	places->all[places->count].address = p->address;
	places->all[places->count].length = p->length;
	places->all[places->count].start = p->start;
	places->all[places->count].fresh = p->fresh;
	state_words(places->isa, p->state, places->all[places->count].words);
	places->count++;
}

static struct places trace_with(const char *threads, struct image *image, const struct isa *isa)
{
	struct places places = {.isa = isa};
	struct trace *t;

	setenv("CULPRIT_THREADS", threads, 1);
	t = run(image, isa, &first_only);
	unsetenv("CULPRIT_THREADS");
	trace_each(t, true, note_place, &places);
	trace_free(t);
	return places;
}

static uint32_t random_number(void)
{
	static uint32_t seed = 1;

	seed = seed * 1103515245 + 12345;
	return seed >> 16;
}

#define PROCEDURE 8 /* words */
#define PROCEDURES (4 * BORDER / PROCEDURE + 77)

static uint32_t to_procedure(uint32_t op, size_t from)
{
	size_t to = PROCEDURE * (random_number() * 7 % PROCEDURES);

	return op | ((uint32_t)(to - from) & 0x3ffffff);
}

/* Procedures that call, jump to and fall into each other all over the place; some nothing leads to,
   some never return. */
static void make_procedure(uint32_t *code, size_t at)
{
	uint32_t kind = random_number() % 8, size = 1 + random_number() % 4;

	code[at] = 0xf8000ffe | (512 - 16 * size) << 12; /* str x30, [sp, #-size]! */
	code[at + 1] = 0xb4000080;                       /* cbz x0, . + 16 */
	code[at + 2] = to_procedure(0x94000000, at + 2); /* bl */
	code[at + 3] = kind < 2 ? to_procedure(0x14000000, at + 3) : 0x91000400; /* b, add */
	code[at + 4] = kind == 2 ? 0xd4200000 : 0x91000400;                      /* brk, add */
	code[at + 5] = 0xf84007fe | 16 * size << 12; /* ldr x30, [sp], #size */
	code[at + 6] = kind == 3   ? to_procedure(0x14000000, at + 6)
		       : kind == 4 ? 0xd61f0000    /* br x0 */
				   : 0xd65f03c0;   /* ret */
	code[at + 7] = kind == 5 ? 0 : 0xd503201f; /* no instruction, nop */
}

static void any_number_of_threads(void **state)
{
	uint32_t *code = malloc(PROCEDURES * PROCEDURE * sizeof(*code));
	struct image *image;
	struct places one, four;

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < PROCEDURES; i++)
		make_procedure(code, i * PROCEDURE);
	image = text_image(&isa_aarch64, code, PROCEDURES * PROCEDURE * sizeof(*code));
	one = trace_with("1", image, &isa_aarch64);
	four = trace_with("4", image, &isa_aarch64);
	assert_true(one.count > PROCEDURES * (PROCEDURE - 1));
	assert_int_equal(one.count, four.count);
	for (size_t i = 0; i < one.count; i++)
		assert_memory_equal(&one.all[i], &four.all[i], sizeof(one.all[i]));
	image_close(image);
	free(one.all);
	free(four.all);
	free(code);
}

/* ---- what a trace tells ---- */

/* 1000 ret; 1004 data; 100c ret */
static const uint32_t with_gap[] = {0xd65f03c0, 0, 1, 0xd65f03c0};
static const uint64_t gap_entries[] = {0x1000, 0x100c};
static const struct trace_input gap_input = {.entries = gap_entries, .entry_count = 2};

static void each_place_once(void **state)
{
	struct image *image = text_image(&isa_aarch64, with_gap, sizeof(with_gap));
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	struct places all = {.isa = &isa_aarch64}, reached = {.isa = &isa_aarch64};

	(void)state;
	trace_each(t, true, note_place, &all);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.all[0].address, 0x1000);
	assert_int_equal(all.all[0].length, 4);
	assert_true(all.all[0].start && all.all[0].fresh);
	assert_int_equal(all.all[1].address, 0x1004);
	assert_int_equal(all.all[1].length, 8);
	assert_string_equal(all.all[1].words, "-");
	assert_false(all.all[1].start || all.all[1].fresh);
	assert_int_equal(all.all[2].address, 0x100c);
	assert_true(all.all[2].start && !all.all[2].fresh);
	trace_each(t, false, note_place, &reached);
	assert_int_equal(reached.count, 2);
	assert_int_equal(reached.all[1].address, 0x100c);
	free(all.all);
	free(reached.all);
	trace_free(t);
	image_close(image);
}

static void bytes_are_those_of_the_code(void **state)
{
	struct image *image = text_image(&isa_aarch64, with_gap, sizeof(with_gap));
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	size_t size;

	(void)state;
	assert_memory_equal(trace_bytes(t, 0x1008, &size), &with_gap[2], 8);
	assert_int_equal(size, 8);
	assert_null(trace_bytes(t, 0xfff, &size));
	assert_int_equal(size, 0);
	assert_null(trace_bytes(t, 0x1010, &size));
	assert_null(trace_at(t, 0x1002));
	assert_null(trace_at(t, 0xffc));
	assert_null(trace_at(t, 0x1010));
	assert_non_null(trace_at(t, 0x100c));
	trace_free(t);
	image_close(image);
}

static void no_code_at_all(void **state)
{
	const struct made_section data = {
		.name = ".data", .address = 0x1000, .bytes = with_gap, .size = sizeof(with_gap)};
	struct image *image = made_image(EM_AARCH64, 0x1000, &data, 1);
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	struct places places = {.isa = &isa_aarch64};
	const uint64_t *starts;

	(void)state;
	assert_int_equal(trace_starts(t, &starts), 0);
	trace_each(t, true, note_place, &places);
	assert_int_equal(places.count, 0);
	trace_free(t);
	trace_free(NULL);
	image_close(image);
}

/* Entries that lie outside, between instructions, or twice in the list. */
static void entries_that_make_no_sense(void **state)
{
	static const uint64_t entries[] = {0, 0x1002, 0x1000, 0x1000, 0x5000, UINT64_MAX};
	struct image *image = text_image(&isa_aarch64, with_gap, 4);
	struct trace *t = run(image, &isa_aarch64,
			      &(struct trace_input){.entries = entries, .entry_count = 6});
	const uint64_t *starts;

	(void)state;
	assert_int_equal(trace_starts(t, &starts), 1);
	assert_int_equal(starts[0], 0x1000);
	trace_free(t);
	image_close(image);
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
		cmocka_unit_test(aarch64_unreached_code_that_starts_with_a_nop),
		cmocka_unit_test(aarch64_data_between_procedures),
		cmocka_unit_test(x86_data_between_procedures),
		cmocka_unit_test(aarch64_certain_state_stays),
		cmocka_unit_test(x86_certain_state_stays),
		cmocka_unit_test(aarch64_outermost_procedure),
		cmocka_unit_test(x86_outermost_procedure),
		cmocka_unit_test(aarch64_loop_that_touches_pages),
		cmocka_unit_test(x86_loop_that_touches_pages),
		cmocka_unit_test(aarch64_loop),
		cmocka_unit_test(x86_call_of_the_next_instruction_calls_nothing),
		cmocka_unit_test(aarch64_across_borders),
		cmocka_unit_test(x86_across_borders),
		cmocka_unit_test(any_number_of_threads),
		cmocka_unit_test(each_place_once),
		cmocka_unit_test(bytes_are_those_of_the_code),
		cmocka_unit_test(no_code_at_all),
		cmocka_unit_test(entries_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
