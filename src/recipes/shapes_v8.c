/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builtins of V8 (node, Chromium): assembly that V8's own compiler made, put into the program
 * without unwind information. Its callers are code made at run time and others of its kind, and
 * all of them keep frame pointers; but they push and pop in ways that no analysis can follow (as
 * many arguments as a register says), and deoptimized code "returns" to the first instruction of
 * some of them.
 *
 * So wherever a builtin calls, its frame is taken by FP; elsewhere the analysis is believed, which
 * knows those that have no frame. The entries from and to C++ are left to the analysis altogether,
 * but for two:
 *
 * DirectCEntry puts the return address into a slot at the end of its caller's frame, and calls.
 *
 * DeoptimizationEntry_* calls C++ twice. Before the second call it copies the frame of the function
 * that is deoptimized into an object (the Deoptimizer) and pops it. The frame's caller is in the
 * object from then on, and nowhere else; the object's address is on top of the stack:
 *
 *     push the object; call Deoptimizer::ComputeOutputFrames; pop the object;
 *     SP = object->caller_frame_top     and behind that: caller_fp, caller_pc
 */
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "flow/builtins.h"
#include "image/image.h"
#include "image/symbols.h"
#include "image/v8tab.h"
#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define BUILTINS_MIN 100u /* fewer are somebody else's */

static enum builtin_kind kind_of(struct image *image, const struct isa *isa, const struct symbol *s)
{
	return s->size ? builtin_kind(image, isa, s) : BUILTIN_NONE;
}

static uint32_t pointer_rule(const struct isa *isa, struct rows *rows)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = isa->fp,
		.cfa_offset = 16,
		.ra = RECIPE_AT_CFA,
		.ra_offset = -8,
		.fp = RECIPE_AT_CFA,
		.fp_offset = -16,
		.extra = RECIPE_LOST,
		.source = RECIPE_FROM_SHAPE,
	};
	return rows_rule(rows, &recipe);
}

/* What is done after a call, as far as it tells of the deoptimizer. */
struct unwinding {
	bool aligned;        /* SP is restored from where it points to */
	uint8_t object, top; /* registers that hold the object and the new SP; or INSN_NO_REG */
	int32_t popped;      /* bytes, with the object in the lowest word */
	int32_t member;      /* of the new SP in the object */
	uint64_t stays;      /* up to there SP is as it was at the call */
};

static void follow_effect(const struct isa *isa, const struct effect *e, struct unwinding *u)
{
	bool from_sp = e->op == EFFECT_LOAD && e->src == isa->sp && !e->imm;
	if (from_sp && e->dst == isa->sp)
		u->aligned = true;
	else if (from_sp && u->object == INSN_NO_REG)
		u->object = e->dst;
	else if (e->op == EFFECT_MOVE && e->dst == isa->sp && e->src == isa->sp)
		u->popped += (int32_t)e->imm;
	else if (e->op == EFFECT_LOAD && u->object != INSN_NO_REG && e->src == u->object &&
		 u->top == INSN_NO_REG && e->imm > 0 && e->imm < 4096) {
		u->top = e->dst;
		u->member = (int32_t)e->imm;
	} else if (e->op == EFFECT_MOVE && e->dst == isa->sp && e->src == u->top && !e->imm) {
		u->top = isa->sp;
	}
}

#define UNWINDING_INSNS 8

/* Whether what follows a call is the end of an unwinding; `code` is what follows. */
static bool is_unwinding(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
			 struct unwinding *u)
{
	*u = (struct unwinding){.object = INSN_NO_REG, .top = INSN_NO_REG};
	for (int i = 0; i < UNWINDING_INSNS && size; i++) {
		struct insn insn;
		isa->decode(code, size, address, &insn);
		if (!insn.length || insn.length > size || insn.kind != INSN_OTHER)
			return false;
		code += insn.length;
		size -= insn.length;
		address += insn.length;
		for (unsigned k = 0; k < insn.effect_count; k++)
			follow_effect(isa, &insn.effects[k], u);
		if (!u->stays && (u->aligned || u->popped))
			u->stays = address;
		if (u->top == isa->sp)
			return u->popped >= 8 && u->popped <= 16;
	}
	return false;
}

static void add_unwinding(const struct isa *isa, const struct unwinding *u, uint64_t call,
			  struct rows *rows)
{
	const struct recipe recipe = {
		.cfa = u->aligned ? RECIPE_DEREF : RECIPE_REG,
		.cfa_reg = isa->sp,
		.cfa_offset = u->aligned ? 0 : u->popped,
		.cfa_add = u->aligned ? u->popped : 0,
		.ra = RECIPE_VIA_CFA,
		.ra_offset = RECIPE_VIA(-u->popped, u->member + 16),
		.fp = RECIPE_VIA_CFA,
		.fp_offset = RECIPE_VIA(-u->popped, u->member + 8),
		.extra = RECIPE_LOST,
		.source = RECIPE_FROM_SHAPE,
	};
	rows_add(rows, call, u->stays, rows_rule(rows, &recipe));
}

/* Its callers are walked by FP, so their SP may as well be above the slot. */
static void add_direct_entry(struct image *image, const struct isa *isa, const struct symbol *s,
			     struct rows *rows)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = isa->sp,
		.cfa_offset = 16,
		.ra = RECIPE_AT_CFA,
		.ra_offset = -16,
		.extra = RECIPE_LOST,
		.source = RECIPE_FROM_SHAPE,
	};
	uint64_t start, end;
	if (builtin_direct_call(image, isa, s, &start, &end))
		rows_add(rows, start, end, rows_rule(rows, &recipe));
}

static void add_calls(struct image *image, const struct isa *isa, const struct symbol *s,
		      bool deoptimizes, struct rows *rows)
{
	size_t size;
	const uint8_t *code = image_bytes_at(image, s->address, &size);
	uint32_t rule = pointer_rule(isa, rows);
	if (code && size > s->size)
		size = s->size;
	for (size_t at = 0; code && at < size;) {
		struct insn insn;
		isa->decode(code + at, size - at, s->address + at, &insn);
		if (!insn.length)
			break;
		uint64_t call = s->address + at;
		struct unwinding u;
		at += insn.length;
		if (insn.kind != INSN_CALL && insn.kind != INSN_CALL_INDIRECT)
			continue;
		if (deoptimizes && at < size &&
		    is_unwinding(isa, code + at, size - at, s->address + at, &u))
			add_unwinding(isa, &u, call, rows);
		else
			rows_add(rows, call, s->address + at, rule);
	}
}

static bool has_text(struct image *image, const char *name, const char *text)
{
	const struct image_section *section = image_section(image, name);
	size_t size = 0;
	const uint8_t *bytes = section ? image_section_bytes(image, section, &size) : NULL;
	return bytes && memmem(bytes, size, text, strlen(text));
}

/* Before all symbols of a large library are read in vain. */
static bool may_have_builtins(struct image *image)
{
	return has_text(image, ".strtab", BUILTIN_PREFIX) ||
	       has_text(image, ".dynstr", BUILTIN_PREFIX) ||
	       has_text(image, ".dynstr", V8TAB_EXPORTED);
}

/* Not the end of the one before. */
static bool is_padding(struct image *image, uint64_t address)
{
	size_t size;
	const uint8_t *byte = image_bytes_at(image, address, &size);
	return byte && size && *byte == V8TAB_PADDING;
}

static void add_builtin(struct image *image, const struct isa *isa, const struct symbol *s,
			struct rows *rows)
{
	enum builtin_kind kind = kind_of(image, isa, s);
	bool numbered = kind == BUILTIN_NUMBERED;
	if (kind == BUILTIN_DIRECT_ENTRY)
		add_direct_entry(image, isa, s, rows);
	if (!builtin_keeps_pointer(kind))
		return;
	add_calls(image, isa, s, numbered || kind == BUILTIN_DEOPTIMIZER, rows);
	if ((numbered || kind == BUILTIN_CONTINUATION) &&
	    is_padding(image, s->address - isa->insn_min))
		rows_add(rows, s->address - isa->insn_min, s->address, pointer_rule(isa, rows));
}

static void add_last(struct image *image, const struct isa *isa, const struct symbol *s,
		     struct rows *rows)
{
	if (builtin_keeps_pointer(kind_of(image, isa, s)))
		rows_add(rows, s->address, s->address + s->size, pointer_rule(isa, rows));
}

static void each_builtin(struct image *image, struct rows *rows,
			 void (*add)(struct image *, const struct isa *, const struct symbol *,
				     struct rows *))
{
	if (!may_have_builtins(image))
		return;
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct symbols *symbols = NULL;
	const struct symbol *all;
	err_free(symbols_read(image, NULL, &symbols));
	size_t count = symbols && isa ? symbols_all(symbols, &all) : 0, builtins = 0;
	for (size_t i = 0; i < count; i++)
		builtins += kind_of(image, isa, &all[i]) != BUILTIN_NONE;
	for (size_t i = 0; builtins >= BUILTINS_MIN && i < count; i++)
		add(image, isa, &all[i], rows);
	symbols_free(symbols);
}

void shapes_add_v8(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, add_builtin);
}

void shapes_add_v8_last(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, add_last);
}
