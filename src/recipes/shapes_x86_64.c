/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "image/image.h"
#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

const struct shape_trampoline trampolines_x86_64[] = {
	{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9}, /* mov $15,%rax; syscall */
	{"\xb8\x0f\x00\x00\x00\x0f\x05", 7},         /* mov $15,%eax; syscall */
	{0},
};

/*
 * glibc's lazy binding on x86-64: the PLT has pushed two words, the resolver saves rbx and hangs its frame on
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

/* A function that was started by makecontext returns to this, which nobody calls: mov %rbx,%rsp;
   mov (%rsp),%rdi; test %rdi,%rdi; je …; call setcontext … hlt */
static void add_context_starts(const uint8_t *code, size_t size, uint64_t address,
			       struct rows *rows)
{
	static const char start[] = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8";
	const struct recipe recipe = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	const uint8_t *from = code, *found;
	while ((found = memmem(from, size - (size_t)(from - code), start, sizeof start - 1))) {
		uint64_t at = address + (uint64_t)(found - code);
		rows_add(rows, at ? at - 1 : at, at + sizeof start - 1, rows_rule(rows, &recipe));
		from = found + 1;
	}
}

#define RDI 5

/*
 * A longjmp without secrets (Free Pascal's, musl's): all registers are loaded from the buffer at rdi. From the
 * first of them on the caller's are lost, so the walk goes to where it jumps.
 */
static void add_longjmps(const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
	/* mov (%rdi),%rbx; mov 8(%rdi),%rbp; mov 16(%rdi),%r12 … mov 40(%rdi),%r15 */
	static const char first[] = "\x48\x8b\x1f\x48\x8b\x6f\x08\x4c\x8b\x67\x10\x4c\x8b\x6f"
				    "\x18\x4c\x8b\x77\x20\x4c\x8b\x7f\x28";
	/* mov 48(%rdi),%rsp; jmp *56(%rdi), or the same by rdx */
	static const char last[] = "\x48\x8b\x67\x30\xff\x67\x38";
	static const char older[] = "\x48\x8b\x57\x30\x48\x89\xd4\x48\x8b\x57\x38\xff\xe2";
	const struct recipe recipe = {.cfa = RECIPE_SPECIAL,
				      .cfa_vg = RECIPE_WORD,
				      .cfa_reg = RDI,
				      .cfa_offset = 48,
				      .ra = RECIPE_AT_BASE,
				      .ra_offset = 56,
				      .fp = RECIPE_AT_BASE,
				      .fp_offset = 8,
				      .extra = RECIPE_AT_BASE,
				      .source = RECIPE_FROM_SHAPE};
	const uint8_t *from = code, *found;
	while ((found = memmem(from, size - (size_t)(from - code), first, sizeof first - 1))) {
		const uint8_t *end = found + sizeof first - 1;
		size_t left = size - (size_t)(end - code);
		uint64_t at = address + (uint64_t)(found - code);
		from = end;
		if (left >= sizeof last - 1 && !memcmp(end, last, sizeof last - 1))
			end += sizeof last - 1;
		else if (left >= sizeof older - 1 && !memcmp(end, older, sizeof older - 1))
			end += sizeof older - 1;
		else
			continue;
		rows_add(rows, at + 3, address + (uint64_t)(end - code), rows_rule(rows, &recipe));
	}
}

void shapes_add_x86_64(struct image *image, const uint8_t *code, size_t size, uint64_t address,
		       struct rows *rows)
{
	const struct image_section *plt = image_section(image, ".plt");
	add_resolver_x86(code, size, address, rows);
	add_context_starts(code, size, address, rows);
	add_longjmps(code, size, address, rows);
	if (plt && plt->address >= address && plt->address - address < size)
		add_first_plt_x86(image, rows);
}
