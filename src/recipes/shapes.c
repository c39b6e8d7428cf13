/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/shapes.h"

#include <elf.h>
#include <string.h>

#include "image/image.h"
#include "isa/insn.h"
#include "recipes/rows.h"

struct shape {
	uint16_t machine;
	const char *bytes;
	unsigned length, step;
	unsigned before; /* a handler "returns" to the first instruction, so the byte before it
			    must have the recipe too */
};

static const struct shape shapes[] = {
	{EM_X86_64, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, 1, 1}, /* mov $15,%rax; syscall */
	{EM_X86_64, "\xb8\x0f\x00\x00\x00\x0f\x05", 7, 1, 1},         /* mov $15,%eax; syscall */
	{EM_AARCH64, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 8, 4, 4},    /* mov x8,#139; svc #0 */
};

static void add_shape(const struct shape *shape, const uint8_t *code, size_t size, uint64_t address,
		      struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_SIGNAL, .source = RECIPE_FROM_SHAPE};
	if (size < shape->length)
		return;
	for (size_t at = 0; at <= size - shape->length; at += shape->step) {
		if (shape->step == 1) { /* let memchr find the first byte */
			const uint8_t *found = memchr(code + at, shape->bytes[0],
						      size - shape->length + 1 - at);
			if (!found)
				return;
			at = (size_t)(found - code);
		}
		if (address + at >= shape->before &&
		    !memcmp(code + at, shape->bytes, shape->length))
			rows_add(rows, address + at - shape->before, address + at + shape->length,
				 rows_rule(rows, &recipe));
	}
}

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

static void add_resolver(const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
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

/*
 * The same on x86-64: the PLT has pushed two words, the resolver saves rbx and hangs its frame on
 * it. Unwind information tells, but the code alone does not.
 */
static void add_lazy_x86(struct rows *rows, uint64_t start, uint64_t end, uint8_t reg, int32_t size,
			 bool rbx_saved)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = reg,
		.cfa_offset = size,
		.ra = RECIPE_AT_CFA,
		.ra_offset = -8,
		.extra = rbx_saved ? RECIPE_AT_CFA : RECIPE_SAME,
		.extra_offset = rbx_saved ? -32 : 0,
		.source = RECIPE_FROM_SHAPE,
	};
	rows_add(rows, start, end, rows_rule(rows, &recipe));
}

#define RESOLVER_X86_MAX 512 /* bytes */

static void add_resolver_x86(const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
	/* push %rbx; mov %rsp,%rbx; and $-N,%rsp … mov %rbx,%rsp; mov (%rsp),%rbx; add $24,%rsp */
	static const uint8_t first[] = {0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4};
	static const uint8_t last[] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x1c,
				       0x24, 0x48, 0x83, 0xc4, 0x18};
	const uint8_t sp = isa_x86_64.sp, rbx = isa_x86_64.extra;
	const uint8_t *from = code, *found;
	while ((found = memmem(from, size - (size_t)(from - code), first, sizeof first))) {
		size_t left = size - (size_t)(found - code);
		const uint8_t *end = memmem(found,
					    left < RESOLVER_X86_MAX ? left : RESOLVER_X86_MAX, last,
					    sizeof last);
		uint64_t at = address + (uint64_t)(found - code);
		from = found + 1;
		if (!end)
			continue;
		uint64_t out = address + (uint64_t)(end - code);
		add_lazy_x86(rows, at, at + 1, sp, 24, false);
		add_lazy_x86(rows, at + 1, at + 4, sp, 32, true);
		add_lazy_x86(rows, at + 4, out + 3, rbx, 32, true);
		add_lazy_x86(rows, out + 3, out + 7, sp, 32, true);
		add_lazy_x86(rows, out + 7, out + 11, sp, 32, false);
		add_lazy_x86(rows, out + 11, out + 14, sp, 8, false); /* jmp *%r11 */
	}
}

/* The first entry of a lazily bound PLT: push GOT+8(%rip); jmp *GOT+16(%rip), after a push. */
static void add_first_plt_x86(struct image *image, struct rows *rows)
{
	const struct image_section *plt = image_section(image, ".plt");
	size_t size = 0;
	const uint8_t *code = plt ? image_bytes_at(image, plt->address, &size) : NULL;
	if (!code || size < 16 || code[0] != 0xff || code[1] != 0x35)
		return;
	size_t jump = code[6] == 0xf2 ? 7 : 6; /* bnd */
	if (code[jump] != 0xff || code[jump + 1] != 0x25)
		return;
	add_lazy_x86(rows, plt->address, plt->address + 6, isa_x86_64.sp, 16, false);
	add_lazy_x86(rows, plt->address + 6, plt->address + jump + 6, isa_x86_64.sp, 24, false);
}

#define START_MAX 256 /* bytes */

/* The dynamic linker's entry, to which the kernel jumps: it calls with SP as the argument, and
   ends in a jump to the program. */
static void add_start(struct image *image, struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	const struct isa *isa = isa_for_machine(image_machine(image));
	uint64_t start = image_entry(image), address = start;
	size_t size;
	const uint8_t *code = isa && start ? image_bytes_at(image, start, &size) : NULL;
	if (code && size) /* whatever stands there, nobody called it */
		rows_add(rows, start, start + isa->insn_min, rows_rule(rows, &recipe));
	bool takes_sp = false, calls = false;
	while (code && size && address - start < START_MAX) {
		struct insn insn;
		isa->decode(code, size, address, &insn);
		if (insn.kind == INSN_BAD || insn.length > size)
			return;
		if (!calls && insn.kind != INSN_NOP) {
			const struct effect *e = &insn.effects[0];
			bool takes = insn.effect_count == 1 && e->op == EFFECT_MOVE &&
				     e->src == isa->sp && !e->imm && e->dst != isa->fp &&
				     e->dst != isa->sp;
			calls = takes_sp && insn.kind == INSN_CALL;
			if (!calls && (takes_sp || !takes))
				return;
			takes_sp = takes;
		}
		address += insn.length;
		code += insn.length;
		size -= insn.length;
		if (insn.kind == INSN_JUMP_INDIRECT) {
			rows_add(rows, start, address, rows_rule(rows, &recipe));
			return;
		}
		if (insn.kind == INSN_RETURN || insn.kind == INSN_JUMP || insn.kind == INSN_TRAP)
			return;
	}
}

void shapes_add(struct image *image, struct rows *rows)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++) {
		size_t size;
		const uint8_t *code;
		if (!segments[i].executable)
			continue;
		code = image_bytes_at(image, segments[i].address, &size);
		for (size_t k = 0; code && k < sizeof shapes / sizeof *shapes; k++)
			if (shapes[k].machine == image_machine(image))
				add_shape(&shapes[k], code, size, segments[i].address, rows);
		if (code && image_machine(image) == EM_AARCH64)
			add_resolver(code, size, segments[i].address, rows);
		if (code && image_machine(image) == EM_X86_64)
			add_resolver_x86(code, size, segments[i].address, rows);
	}
	if (image_machine(image) == EM_X86_64)
		add_first_plt_x86(image, rows);
	add_start(image, rows);
}
