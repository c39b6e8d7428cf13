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
#include "image/image.h"
#include "image/symbols.h"
#include "image/v8tab.h"
#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define PREFIX "Builtins_"
#define BUILTINS_MIN 100u /* fewer are somebody else's */

static bool is_builtin(const struct symbol *s)
{
	return s->size && !strncmp(s->name, PREFIX, strlen(PREFIX));
}

/* What C++ calls, and what calls C++ without a frame of its own. */
static bool is_entry(const char *name)
{
	name += strlen(PREFIX);
	return (!strncmp(name, "JS", 2) && strstr(name, "Entry")) || !strcmp(name, "DirectCEntry");
}

/* It is known by V8's own table alone (image/v8tab.h), and may be any of them. */
static bool is_numbered(const struct symbol *s)
{
	return s->name[strlen(PREFIX)] == '#';
}

/* What the deoptimizer makes the callees of optimized code return to. */
static bool is_continuation(const struct symbol *s)
{
	return is_numbered(s) || strstr(s->name, "EnterAt") || strstr(s->name, "Continuation") ||
	       strstr(s->name, "ContinueTo");
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

/* str x30,[sp]; blr; ldr x30,[sp]; ret. Its callers are walked by FP, so their SP may as well be
   above the slot. */
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
	size_t size;
	const uint8_t *code = image_bytes_at(image, s->address, &size);
	if (isa->link == INSN_NO_REG || !code || size < s->size || s->size < 16)
		return;
	struct insn store, call;
	isa->decode(code, size, s->address, &store);
	isa->decode(code + store.length, size - store.length, s->address + store.length, &call);
	const struct effect *e = &store.effects[0];
	if (store.effect_count == 1 && e->op == EFFECT_STORE && e->dst == isa->sp && !e->imm &&
	    e->src == isa->link && call.kind == INSN_CALL_INDIRECT)
		rows_add(rows, call.address, call.address + 2ull * call.length,
			 rows_rule(rows, &recipe));
}

static bool is_named(const struct symbol *s, const char *name)
{
	return !strncmp(s->name + strlen(PREFIX), name, strlen(name));
}

static void add_calls(struct image *image, const struct isa *isa, const struct symbol *s,
		      uint32_t rule, struct rows *rows)
{
	size_t size;
	const uint8_t *code = image_bytes_at(image, s->address, &size);
	bool deoptimizes = is_numbered(s) || is_named(s, "DeoptimizationEntry");
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
	return has_text(image, ".strtab", PREFIX) || has_text(image, ".dynstr", PREFIX) ||
	       has_text(image, ".dynstr", V8TAB_EXPORTED);
}

/* Not the end of the one before. */
static bool is_padding(struct image *image, uint64_t address)
{
	size_t size;
	const uint8_t *byte = image_bytes_at(image, address, &size);
	return byte && size && *byte == V8TAB_PADDING;
}

static void each_builtin(struct image *image, struct rows *rows, bool last)
{
	if (!may_have_builtins(image))
		return;
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct symbols *symbols = NULL;
	const struct symbol *all;
	err_free(symbols_read(image, NULL, &symbols));
	size_t count = symbols && isa ? symbols_all(symbols, &all) : 0, builtins = 0;
	for (size_t i = 0; i < count; i++)
		builtins += is_builtin(&all[i]);
	for (size_t i = 0; builtins >= BUILTINS_MIN && i < count; i++) {
		if (!is_builtin(&all[i]))
			continue;
		if (!last && is_named(&all[i], "DirectCEntry"))
			add_direct_entry(image, isa, &all[i], rows);
		if (is_entry(all[i].name))
			continue;
		uint32_t rule = pointer_rule(isa, rows);
		uint64_t start = all[i].address;
		if (last) {
			rows_add(rows, start, start + all[i].size, rule);
			continue;
		}
		add_calls(image, isa, &all[i], rule, rows);
		if (is_continuation(&all[i]) && is_padding(image, start - isa->insn_min))
			rows_add(rows, start - isa->insn_min, start, rule);
	}
	symbols_free(symbols);
}

void shapes_add_v8(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, false);
}

void shapes_add_v8_last(struct image *image, struct rows *rows)
{
	each_builtin(image, rows, true);
}
