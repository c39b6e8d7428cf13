/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

const struct shape_trampoline trampolines_aarch64[] = {
	{"\x68\x11\x80\xd2\x01\x00\x00\xd4", 8}, /* mov x8,#139; svc #0 */
	{0},
};

/*
 * glibc's lazy binding on aarch64. The PLT has pushed x16 and x30 before it jumps here, of which
 * the unwind information does not know: it says that the caller's SP is 16 bytes too low.
 */
static const struct {
	uint32_t first[2], last[3];
	int32_t pushed;
} resolver = {
	.first = {0xa9b327e8, 0xa9011fe6}, /* stp x8,x9,[sp,#-208]!; stp x6,x7,[sp,#16] */
	.last = {0xa8cd27e8, 0xa8c17bf1,
		 0xd61f0200}, /* ldp x8,x9,[sp],#208; ldp x17,x30,[sp],#16; br x16 */
	.pushed = 208,
};

#define RESOLVER_MAX 256 /* bytes */

/* `size`: bytes up to the caller's SP; 0: all is popped. */
static void add_lazy_frame(struct rows *rows, uint64_t start, uint64_t end, int32_t size)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = isa_aarch64.sp,
		.cfa_offset = size,
		.ra = size ? RECIPE_AT_CFA : RECIPE_SAME,
		.ra_offset = size ? -8 : 0,
		.source = RECIPE_FROM_SHAPE,
	};
	rows_add(rows, start, end, rows_rule(rows, &recipe));
}

/* A function that was started by makecontext returns to this, which nobody calls: nop; mov x0,x19;
   cbnz x0,setcontext; b exit. */
static void add_context_starts(const uint8_t *code, size_t size, uint64_t address,
			       struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	for (size_t at = 0; size >= 16 && at <= size - 16; at += 4) {
		uint32_t word[4];
		memcpy(word, code + at, sizeof word);
		if (word[0] == 0xd503201f && word[1] == 0xaa1303e0 &&
		    (word[2] & 0xff80001f) == 0xb5800000 && (word[3] & 0xfc000000) == 0x14000000)
			rows_add(rows, address + (at ? at - 4 : at), address + at + sizeof word,
				 rows_rule(rows, &recipe));
	}
}

void shapes_add_aarch64(struct image *image, const uint8_t *code, size_t size, uint64_t address,
			struct rows *rows)
{
	(void)image;
	add_context_starts(code, size, address, rows);
	for (size_t at = 4; size >= 12 && at <= size - 12; at += 4) {
		if (memcmp(code + at, resolver.first, sizeof resolver.first))
			continue;
		for (size_t end = at; end <= size - 12 && end - at < RESOLVER_MAX; end += 4) {
			if (memcmp(code + end, resolver.last, sizeof resolver.last))
				continue;
			add_lazy_frame(rows, address + at - 4, address + at + 4,
				       16); /* with nop or bti */
			add_lazy_frame(rows, address + at + 4, address + end + 4,
				       resolver.pushed + 16);
			add_lazy_frame(rows, address + end + 4, address + end + 8, 16);
			add_lazy_frame(rows, address + end + 8, address + end + 12, 0);
			return;
		}
	}
}
