/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/graph.h"
#include "flow/references.h"
#include "image/image.h"
#include "isa/insn.h"
#include "made_image.h"

#define CODE 0x1000u
#define TABLE 0x2000u
#define NO_RETURN 0x1204u /* what is called there never returns */

struct example {
	const char *name;
	const struct isa *isa;
	const char *code;
	size_t size;
	const char *table; /* constant data at TABLE; NULL: none */
	size_t table_size;
	struct graph_part parts[2]; /* {0}: all of the code */
	struct graph_landing landing;
	uint32_t max_blocks;
	/* Blocks: START-END ENDS TARGET…; "?": not reached, "!": a landing pad */
	const char *expected;
};

/* clang-format off */
static const struct example examples[] = {
	{.name = "a loop with a call", .isa = &isa_x86_64,
	 /* test %edi,%edi; jle 100d; 1004: call; dec %edi; jne 1004; 100d: ret */
	 .code = "\x85\xff\x7e\x09\xe8\xfb\x00\x00\x00\xff\xcf\x75\xf7\xc3", .size = 14,
	 .expected = "1000-1004 branches 1004 100d\n1004-100d branches 1004 100d\n100d-100e returns\n"},
	{.name = "a loop with a call", .isa = &isa_aarch64,
	 .code = "\x1f\x00\x00\x71\x8d\x00\x00\x54\x40\x00\x00\x94\x00\x04\x00\x71\xc1\xff\xff\x54\xc0\x03\x5f\xd6", .size = 24,
	 .expected = "1000-1008 branches 1008 1014\n1008-1014 branches 1008 1014\n1014-1018 returns\n"},
	{.name = "a call that never returns, a trap, a tail call", .isa = &isa_x86_64,
	 /* test %edi,%edi; je 1009; call 1204; 1009: js 100d; ud2; 100d: jmp 130d */
	 .code = "\x85\xff\x74\x05\xe8\xfb\x01\x00\x00\x78\x02\x0f\x0b\xe9\xfb\x02\x00\x00", .size = 18,
	 .expected = "1000-1004 branches 1004 1009\n1004-1009 stops\n1009-100b branches 100b 100d\n100b-100d stops\n100d-1012 tail\n"},
	{.name = "a call that never returns, a trap, a tail call", .isa = &isa_aarch64,
	 .code = "\x40\x00\x00\x34\x80\x00\x00\x94\x40\x00\xf8\x37\x20\x00\x20\xd4\xc0\x00\x00\x14", .size = 20,
	 .expected = "1000-1004 branches 1004 1008\n1004-1008 stops\n1008-100c branches 100c 1010\n100c-1010 stops\n1010-1014 tail\n"},
	{.name = "a jump over a prefix", .isa = &isa_x86_64,
	 /* test %edi,%edi; je 1005; 1004: lock incl (%rsi); ret */
	 .code = "\x85\xff\x74\x01\xf0\xff\x06\xc3", .size = 8,
	 .expected = "1000-1004 branches 1004 1005\n1004-1005 falls 1005\n1005-1008 returns\n"},
	{.name = "a switch", .isa = &isa_x86_64,
	 /* cmp $3,%edi; ja 101b; mov %edi,%eax; lea 2000,%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax;
	    1017: inc %esi; 1019: inc %esi; 101b: mov %esi,%eax; ret */
	 .code = "\x83\xff\x03\x77\x16\x89\xf8\x48\x8d\x15\xf2\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xff\xc6\xff\xc6\x89\xf0\xc3", .size = 30,
	 .table = "\x17\xf0\xff\xff\x19\xf0\xff\xff\x1b\xf0\xff\xff\x17\xf0\xff\xff", .table_size = 16,
	 .expected = "1000-1005 branches 1005 101b\n1005-1017 switches 1017 1019 101b\n1017-1019 falls 1019\n1019-101b falls 101b\n101b-101e returns\n"},
	{.name = "a switch whose table is too short", .isa = &isa_x86_64,
	 .code = "\x83\xff\x03\x77\x16\x89\xf8\x48\x8d\x15\xf2\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xff\xc6\xff\xc6\x89\xf0\xc3", .size = 30,
	 .table = "\x17\xf0\xff\xff\x19\xf0\xff\xff\x1b\xf0\xff\xff", .table_size = 12,
	 .expected = "1000-1005 branches 1005 101b\n1005-1017 unresolved\n1017-101b falls 101b ?\n101b-101e returns\n"},
	{.name = "no bound but the next thing that is referred to", .isa = &isa_x86_64,
	 /* movzbl (%rdi),%eax; lea 2000,%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax;
	    1013: inc %esi; 1015: inc %esi; 1017: mov %esi,%eax; ret; another procedure: lea 2010,%rax; ret */
	 .code = "\x0f\xb6\x07\x48\x8d\x15\xf6\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xff\xc6\xff\xc6\x89\xf0\xc3\x48\x8d\x05\xef\x0f\x00\x00\xc3", .size = 34,
	 .table = "\x17\xf0\xff\xff\x15\xf0\xff\xff\x17\xf0\xff\xff\x17\xf0\xff\xff\x13\xf0\xff\xff", .table_size = 20,
	 .parts = {{0x1000, 0x101a}},
	 .expected = "1000-1013 switches 1015 1017\n1013-1015 falls 1015 ?\n1015-1017 falls 1017\n1017-101a returns\n"},
	{.name = "a case that cannot happen leads to the end", .isa = &isa_x86_64,
	 .code = "\x0f\xb6\x07\x48\x8d\x15\xf6\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xff\xc6\xff\xc6\x89\xf0\xc3\x48\x8d\x05\xef\x0f\x00\x00\xc3", .size = 34,
	 .table = "\x17\xf0\xff\xff\x13\xf0\xff\xff\x1a\xf0\xff\xff\x15\xf0\xff\xff\x13\xf0\xff\xff", .table_size = 20,
	 .parts = {{0x1000, 0x101a}},
	 .expected = "1000-1013 switches 1013 1015 1017\n1013-1015 falls 1015\n1015-1017 falls 1017\n1017-101a returns\n"},
	{.name = "an entry that leads to data is none", .isa = &isa_x86_64,
	 .code = "\x0f\xb6\x07\x48\x8d\x15\xf6\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xff\xc6\xff\xc6\x89\xf0\xc3\x48\x8d\x05\xef\x0f\x00\x00\xc3", .size = 34,
	 .table = "\x17\xf0\xff\xff\x13\xf0\xff\xff\x00\x10\x00\x00\x15\xf0\xff\xff\x13\xf0\xff\xff", .table_size = 20,
	 .parts = {{0x1000, 0x101a}},
	 .expected = "1000-1013 switches 1013 1017\n1013-1017 falls 1017\n1017-101a returns\n"},
	{.name = "bytes, no bound but the next thing that is referred to", .isa = &isa_aarch64,
	 /* ldrb w0,[x0]; x1 = 2000; adr x2,101c; ldrb w0,[x1,x0]; add x2,x2,x0,lsl 2; br x2;
	    101c: add; 1020: add; 1024: mov; ret; another procedure: x1 = 2004; ret */
	 .code = "\x00\x00\x40\x39\x01\x00\x00\xb0\x21\x00\x00\x91\x82\x00\x00\x10\x20\x68\x60\x38\x42\x08\x00\x8b\x40\x00\x1f\xd6\x63\x04\x00\x11"
		 "\x63\x04\x00\x11\xe0\x03\x03\x2a\xc0\x03\x5f\xd6\x01\x00\x00\xb0\x21\x10\x00\x91\xc0\x03\x5f\xd6", .size = 56,
	 .table = "\x00\x02\x02\x00\x01\x01\x01\x01", .table_size = 8,
	 .parts = {{0x1000, 0x102c}},
	 .expected = "1000-101c switches 101c 1024\n101c-1024 falls 1024\n1024-102c returns\n"},
	{.name = "a tail call through a register, and a jump from a frame", .isa = &isa_x86_64,
	 /* test %edi,%edi; je 1009; mov (%rsi),%rax; jmp *%rax; 1009: push %rbx; jmp *8(%rsi) */
	 .code = "\x85\xff\x74\x05\x48\x8b\x06\xff\xe0\x53\xff\x66\x08", .size = 13,
	 .expected = "1000-1004 branches 1004 1009\n1004-1009 tail\n1009-100d unresolved\n"},
	{.name = "a tail call through a register, and a jump from a frame", .isa = &isa_aarch64,
	 .code = "\x60\x00\x00\x34\x30\x00\x40\xf9\x00\x02\x1f\xd6\xfd\x7b\xbf\xa9\x22\x04\x40\xf9\x40\x00\x1f\xd6", .size = 24,
	 .expected = "1000-1004 branches 1004 100c\n1004-100c tail\n100c-1018 unresolved\n"},
	{.name = "a landing pad", .isa = &isa_x86_64,
	 /* push %rbx; call; 1006: xor %eax,%eax; 1008: pop %rbx; ret; 100a: mov %rax,%rdi; call; jmp 1008 */
	 .code = "\x53\xe8\xfb\x00\x00\x00\x31\xc0\x5b\xc3\x48\x89\xc7\xe8\x0b\x01\x00\x00\xeb\xf4", .size = 20,
	 .landing = {0x1001, 0x1006, 0x100a},
	 .expected = "1000-1006 calls 1006 100a\n1006-1008 falls 1008\n1008-100a returns\n100a-1014 jumps 1008 !\n"},
	{.name = "a landing pad", .isa = &isa_aarch64,
	 .code = "\xfd\x7b\xbf\xa9\x40\x00\x00\x94\x00\x00\x80\x52\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6\xe0\x03\x00\xaa\x44\x00\x00\x94\xfc\xff\xff\x17", .size = 32,
	 .landing = {0x1004, 0x1008, 0x1014},
	 .expected = "1000-1008 calls 1008 1014\n1008-100c falls 100c\n100c-1014 returns\n1014-1020 jumps 100c !\n"},
	{.name = "without it the code there is not reached", .isa = &isa_x86_64,
	 .code = "\x53\xe8\xfb\x00\x00\x00\x31\xc0\x5b\xc3\x48\x89\xc7\xe8\x0b\x01\x00\x00\xeb\xf4", .size = 20,
	 .expected = "1000-1008 falls 1008\n1008-100a returns\n100a-1014 jumps 1008 ?\n"},
	{.name = "a part that was moved away, before the entry", .isa = &isa_x86_64,
	 /* 1000: dec %eax; jmp 100f; the entry, 1007: test %edi,%edi; je 1000; 100f: inc %eax; ret */
	 .code = "\xff\xc8\xe9\x08\x00\x00\x00\x85\xff\x0f\x84\xf1\xff\xff\xff\xff\xc0\xc3", .size = 18,
	 .parts = {{0x1007, 0x1012}, {0x1000, 0x1007}},
	 .expected = "1000-1007 jumps 100f\n1007-100f branches 1000 100f\n100f-1012 returns\n"},
	{.name = "a branch out of the procedure", .isa = &isa_x86_64,
	 .code = "\xff\xc8\xe9\x08\x00\x00\x00\x85\xff\x0f\x84\xf1\xff\xff\xff\xff\xc0\xc3", .size = 18,
	 .parts = {{0x1007, 0x1012}},
	 .expected = "1007-100f branches 100f\n100f-1012 returns\n"},
	{.name = "the end of the bytes; a call has nowhere to return to there", .isa = &isa_x86_64,
	 .code = "\x85\xff\x74\x05\xe8\xfb\x00\x00\x00\xff\xcf", .size = 11,
	 .parts = {{0x1000, 0x1009}},
	 .expected = "1000-1004 branches 1004\n1004-1009 stops\n"},
	{.name = "bytes that are no instruction", .isa = &isa_x86_64,
	 .code = "\xff\xc0\x06\xc3", .size = 4,
	 .expected = "1000-1003 bad\n1003-1004 returns ?\n"},
	{.name = "too many blocks", .isa = &isa_x86_64,
	 .code = "\x85\xff\x7e\x09\xe8\xfb\x00\x00\x00\xff\xcf\x75\xf7\xc3", .size = 14, .max_blocks = 2,
	 .expected = "1000-1004 branches 100d\n100d-100e returns\ntruncated\n"},
};
/* clang-format on */

static const char *const ends[] = {
	[GRAPH_FALLS] = "falls",           [GRAPH_JUMPS] = "jumps",
	[GRAPH_BRANCHES] = "branches",     [GRAPH_SWITCHES] = "switches",
	[GRAPH_UNRESOLVED] = "unresolved", [GRAPH_TAIL_CALLS] = "tail",
	[GRAPH_RETURNS] = "returns",       [GRAPH_STOPS] = "stops",
	[GRAPH_CALLS] = "calls",           [GRAPH_BAD] = "bad",
};

static void describe(const struct graph *g, FILE *out)
{
	for (size_t i = 0; i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		fprintf(out, "%lx-%lx %s", (unsigned long)b->start, (unsigned long)b->end,
			ends[b->ends]);
		for (uint32_t k = 0; k < b->count; k++) {
			const struct graph_edge *e = &g->edges[b->first + k];
			assert_int_equal(e->from, i);
			fprintf(out, " %lx", (unsigned long)g->blocks[e->to].start);
		}
		fprintf(out, "%s%s\n", b->landing ? " !" : "", b->reached ? "" : " ?");
	}
	if (g->truncated)
		fprintf(out, "truncated\n");
}

static bool never_returns(const void *context, uint64_t address)
{
	(void)context;
	return address == NO_RETURN;
}

static void check(const struct example *x)
{
	const struct made_section sections[] = {
		{.name = ".text", .address = CODE, .bytes = x->code, .size = x->size, .code = true},
		{.name = ".rodata", .address = TABLE, .bytes = x->table, .size = x->table_size},
	};
	const struct graph_part whole = {CODE, CODE + x->size};
	struct image *image = made_image(x->isa->elf_machine, CODE, sections, x->table ? 2 : 1);
	struct graph_input in = {
		.image = image,
		.isa = x->isa,
		.parts = x->parts[0].end ? x->parts : &whole,
		.part_count = x->parts[1].end ? 2 : 1,
		.landings = &x->landing,
		.landing_count = x->landing.target != 0,
		.never_returns = never_returns,
		.max_blocks = x->max_blocks,
	};
	struct graph g;
	char *text;
	size_t size;
	assert_null(references_open(image, x->isa, &in.references));
	assert_null(graph_build(&in, &g));
	FILE *out = open_memstream(&text, &size);
	describe(&g, out);
	fclose(out);
	if (strcmp(text, x->expected))
		fail_msg("%s, %s:\n%sexpected:\n%s", x->isa->name, x->name, text, x->expected);
	assert_int_equal(g.blocks[g.entry].start, in.parts[0].start);
	for (size_t i = 0; i < g.block_count; i++) {
		assert_int_equal(graph_find(&g, g.blocks[i].start), i);
		assert_int_equal(graph_find(&g, g.blocks[i].end - 1), i);
	}
	assert_int_equal(graph_find(&g, 0), GRAPH_NONE);
	assert_int_equal(graph_find(&g, CODE + x->size), GRAPH_NONE);
	free(text);
	graph_free(&g);
	references_close(in.references);
	image_close(image);
}

static void test_graphs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		check(&examples[i]);
}

static void test_nothing(void **state)
{
	(void)state;
	const struct made_section section = {
		.name = ".text", .address = CODE, .bytes = "\xc3", .size = 1, .code = true};
	struct image *image = made_image(EM_X86_64, CODE, &section, 1);
	static const struct graph_part parts[] = {
		{0, 0}, {0x9000, 0x9010}, {CODE + 1, CODE}, {0, UINT64_MAX}};
	for (size_t i = 0; i <= 4; i++) {
		struct graph_input in = {
			.image = image, .isa = &isa_x86_64, .parts = parts, .part_count = i};
		struct graph g;
		assert_null(graph_build(&in, &g));
		assert_int_equal(g.block_count, 0);
		assert_int_equal(g.entry, GRAPH_NONE);
		assert_int_equal(graph_find(&g, CODE), GRAPH_NONE);
		graph_free(&g);
	}
	image_close(image);
}

/* Parts that overlap give each byte once. */
static void test_overlap(void **state)
{
	(void)state;
	static const char code[] = "\xff\xc0\xff\xc0\xff\xc0\xc3";
	const struct made_section section = {
		.name = ".text", .address = CODE, .bytes = code, .size = 7, .code = true};
	struct image *image = made_image(EM_X86_64, CODE, &section, 1);
	static const struct graph_part parts[] = {
		{CODE, CODE + 4}, {CODE + 2, CODE + 7}, {CODE, CODE + 2}};
	struct graph_input in = {
		.image = image, .isa = &isa_x86_64, .parts = parts, .part_count = 3};
	struct graph g;
	uint64_t covered = 0;
	assert_null(graph_build(&in, &g));
	for (size_t i = 0; i < g.block_count; i++) {
		assert_true(!i || g.blocks[i].start >= g.blocks[i - 1].end);
		assert_true(g.blocks[i].reached);
		covered += g.blocks[i].end - g.blocks[i].start;
	}
	assert_int_equal(covered, 7);
	graph_free(&g);
	image_close(image);
}

/* Nothing but indirect jumps, and nothing but branches: both end soon. */
static void test_large(void **state)
{
	(void)state;
	enum { SIZE = 1 << 20 };
	static char code[SIZE];
	static const char *const patterns[] = {
		"\x74\x00\xff\xe0", /* je; jmp *%rax */
		"\x74\xfe\x75\xfa", /* je itself; jne before */
		"\x48\x01\xd0\x90", /* add %rdx,%rax; nop */
	};
	for (size_t i = 0; i < 3; i++) {
		for (size_t at = 0; at < SIZE; at += 4)
			memcpy(code + at, patterns[i], 4);
		const struct made_section section = {.name = ".text",
						     .address = CODE,
						     .bytes = code,
						     .size = SIZE,
						     .code = true};
		struct image *image = made_image(EM_X86_64, CODE, &section, 1);
		const struct graph_part part = {CODE, CODE + SIZE};
		struct graph_input in = {
			.image = image, .isa = &isa_x86_64, .parts = &part, .part_count = 1};
		struct graph g;
		assert_null(references_open(image, &isa_x86_64, &in.references));
		assert_null(graph_build(&in, &g));
		assert_true(g.block_count >= 1);
		graph_free(&g);
		references_close(in.references);
		image_close(image);
	}
}

static void add(void *context, uint64_t to)
{
	char *text = context;
	sprintf(text + strlen(text), "%lx ", (unsigned long)to);
}

static void test_references(void **state)
{
	(void)state;
	char found[128] = "";
	/* lea 0x10(%rip),%rax; nop; lea -7(%rip),%r9; lea 8(%rax),%rax; jmp *0x2010(,%rax,8) */
	static const char x86[] = "\x48\x8d\x05\x10\x00\x00\x00\x90\x4c\x8d\x0d\xf9\xff\xff\xff"
				  "\x48\x8d\x40\x08\xff\x24\xc5\x10\x20\x00\x00";
	isa_x86_64.find_references((const uint8_t *)x86, 26, CODE, add, found);
	assert_string_equal(found, "1017 1008 2010 ");
	for (size_t cut = 0; cut <= 26; cut++)
		isa_x86_64.find_references((const uint8_t *)x86, cut, CODE, add,
					   memset(found, 0, sizeof found));
	/* adrp x1,2000; adr x2,101c; add x3,x1,#8; ldr w0,[x1,#16]; mov x1,x5; add x1,x1,#4 */
	static const char arm[] = "\x01\x00\x00\xb0\xc2\x00\x00\x10\x23\x20\x00\x91\x20\x10\x40\xb9"
				  "\xe1\x03\x05\xaa\x21\x10\x00\x91";
	memset(found, 0, sizeof found);
	isa_aarch64.find_references((const uint8_t *)arm, 24, CODE, add, found);
	assert_string_equal(found, "101c 2008 2010 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graphs),     cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_overlap),    cmocka_unit_test(test_large),
		cmocka_unit_test(test_references),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
