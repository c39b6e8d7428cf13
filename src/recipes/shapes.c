/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/shapes.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "image/image.h"
#include "isa/insn.h"
#include "recipes/go.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

static const struct shape_trampoline *trampolines(uint16_t machine)
{
	static const struct shape_trampoline none = {0};
	return machine == EM_AARCH64  ? trampolines_aarch64
	       : machine == EM_X86_64 ? trampolines_x86_64
				      : &none;
}

unsigned shapes_trampoline(uint16_t machine, const uint8_t *code, size_t size)
{
	for (const struct shape_trampoline *shape = trampolines(machine); shape->bytes; shape++)
		if (size >= shape->length && !memcmp(code, shape->bytes, shape->length))
			return shape->length;
	return 0;
}

/* A handler "returns" to the first instruction of its trampoline, so what stands before it (a nop,
   put there for that; but in some programs the end of another procedure) must have the recipe too. */
static void add_trampoline(const struct shape_trampoline *shape, const struct isa *isa,
			   const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_SIGNAL, .source = RECIPE_FROM_SHAPE},
			    before = {.cfa = RECIPE_SIGNAL,
				      .cfa_add = RECIPE_RETURNED,
				      .source = RECIPE_FROM_SHAPE};
	const uint8_t *from = code, *found;
	while ((found = memmem(from, size - (size_t)(from - code), shape->bytes, shape->length))) {
		uint64_t at = address + (uint64_t)(found - code);
		from = found + 1;
		if (at % isa->insn_min || at < isa->insn_min)
			continue;
		rows_add(rows, at - isa->insn_min, at, rows_rule(rows, &before));
		rows_add(rows, at, at + shape->length, rows_rule(rows, &recipe));
	}
}

#define START_INSNS 8

static bool moves_sp(const struct isa *isa, const struct insn *insn)
{
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].dst == isa->sp && insn->effects[i].op != EFFECT_STORE)
			return true;
	return false;
}

/* Bytes of the entry up to where FP is zeroed, from when on the code shows that it is a root. 0: it does
   not do that, and may be a library's, whose header can name any address. */
static unsigned start_length(const struct isa *isa, const uint8_t *code, size_t size,
			     uint64_t address)
{
	unsigned at = 0;
	for (unsigned i = 0; i < START_INSNS && at < size; i++) {
		struct insn insn;
		isa->decode(code + at, size - at, address + at, &insn);
		if ((insn.kind != INSN_OTHER && insn.kind != INSN_NOP) || moves_sp(isa, &insn))
			break;
		at += insn.length;
		if (insn.effect_count && insn.effects[0].op == EFFECT_CONST &&
		    insn.effects[0].dst == isa->fp && !insn.effects[0].imm)
			return at;
	}
	return 0;
}

bool shapes_zeroes_pointer(struct image *image)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	uint64_t start = image_entry(image);
	size_t size;
	const uint8_t *code = isa && start ? image_bytes_at(image, start, &size) : NULL;
	return code && start_length(isa, code, size, start);
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
	unsigned zeroed = code ? start_length(isa, code, size, start) : 0;
	if (zeroed)
		rows_add(rows, start, start + zeroed, rows_rule(rows, &recipe));
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

void shapes_add_last(struct image *image, struct rows *rows)
{
	shapes_add_v8_last(image, rows);
}

void shapes_add(struct image *image, struct rows *rows)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	bool arm = image_machine(image) == EM_AARCH64;
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	shapes_add_v8(image, rows);
	for (size_t i = 0; isa && i < count; i++) {
		size_t size;
		const uint8_t *code = segments[i].executable
					      ? image_bytes_at(image, segments[i].address, &size)
					      : NULL;
		const struct shape_trampoline *shape = trampolines(image_machine(image));
		for (; code && shape->bytes; shape++)
			add_trampoline(shape, isa, code, size, segments[i].address, rows);
		if (!code)
			continue;
		(arm ? shapes_add_aarch64 : shapes_add_x86_64)(image, code, size,
							       segments[i].address, rows);
		shapes_add_throws(isa, code, size, segments[i].address, rows);
		shapes_add_threads(isa, code, size, segments[i].address, rows);
		shapes_add_switches(isa, code, size, segments[i].address, rows);
	}
	add_start(image, rows);
	shapes_add_haskell(image, rows);
	go_add(image, rows);
}
