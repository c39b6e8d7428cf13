/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/cfi_program.h"
#include <dwarf.h>
#include <stdlib.h>
#include "isa/insn.h"
#include "recipes/cfi_stats.h"
#include "base/array.h"

/* Newer than some <dwarf.h>. */
#define CFA_AARCH64_NEGATE_RA_STATE_WITH_PC 0x2c

/* All expressions of a file together may cost this many operations, a fraction of a second. */
#define BUDGET_OPERATIONS (UINT64_C(32) << 20)
/* A row that depends on the PC is computed for each address of at most so many. */
#define PC_DEPENDENT_MAX (UINT64_C(2) << 20)

static const struct recipe complex_recipe = {.cfa = RECIPE_COMPLEX, .source = RECIPE_FROM_CFI};

/* One run of a program. */
struct run {
	struct cfi_machine *machine;
	const struct cfi_common *common;
	const struct cfi_bases *bases;
	struct cursor cursor;
	uint64_t at, end; /* at == end: the rest describes nothing any more */
	bool initial;     /* a CIE's: no addresses */
};

void cfi_machine_init(struct cfi_machine *machine, struct rows *rows, struct cfi_stats *stats)
{
	machine->rows = rows;
	machine->stats = stats;
	machine->budget = BUDGET_OPERATIONS;
	machine->pending = NULL;
	machine->pending_count = machine->pending_capacity = 0;
	machine->out_of_memory = false;
	machine->remembered_count = 0;
}

void cfi_machine_free(struct cfi_machine *machine)
{
	free(machine->pending);
	machine->pending = NULL;
}

/* ---- rows ---- */

static void pending_push(struct cfi_machine *machine, uint64_t address, const struct recipe *recipe)
{
	if (!ARRAY_ROOM(machine->pending, machine->pending_count, machine->pending_capacity)) {
		machine->out_of_memory = true;
		return;
	}
	machine->pending[machine->pending_count++] = (struct row){
		.address = address, .rule = rows_rule(machine->rows, recipe)};
}

/* Rows for [start, end) by computing the recipe at every address. */
static void emit_each(struct run *run, uint64_t start, uint64_t end)
{
	struct cfi_machine *machine = run->machine;
	struct recipe last = {0};
	bool used_pc;
	for (uint64_t at = start; at < end; at += run->common->isa->insn_min) {
		struct recipe recipe = cfi_recipe(run->common, &machine->state, at,
						  &machine->budget, &used_pc);
		if (!machine->budget) /* nothing can be said about the rest */
			recipe = complex_recipe;
		if (at == start || memcmp(&recipe, &last, sizeof recipe) != 0)
			pending_push(machine, at, &recipe);
		last = recipe;
		if (!machine->budget || end - at <= run->common->isa->insn_min)
			return;
	}
}

/* The row [run->at, next). */
static void emit(struct run *run, uint64_t next)
{
	struct cfi_machine *machine = run->machine;
	struct recipe recipe;
	bool used_pc;
	if (run->initial || next <= run->at)
		return;
	recipe = cfi_recipe(run->common, &machine->state, run->at, &machine->budget, &used_pc);
	if (used_pc && next - run->at <= PC_DEPENDENT_MAX) {
		emit_each(run, run->at, next);
		return;
	}
	if (used_pc)
		recipe = complex_recipe;
	pending_push(machine, run->at, &recipe);
}

static void pending_commit(struct cfi_machine *machine, uint64_t end)
{
	for (size_t i = 0; i < machine->pending_count; i++) {
		const struct row *row = &machine->pending[i];
		uint64_t next = i + 1 < machine->pending_count ? row[1].address : end;
		rows_add(machine->rows, row->address, next, row->rule);
		machine->stats->complex_rows += row->rule < machine->rows->rule_count &&
						machine->rows->rules[row->rule].cfa ==
							RECIPE_COMPLEX;
	}
}

/* ---- instructions ---- */

static bool advance_to(struct run *run, uint64_t address)
{
	if (run->initial || address < run->at)
		return false;
	if (address > run->end)
		address = run->end;
	emit(run, address);
	run->at = address;
	return true;
}

static bool advance(struct run *run, uint64_t delta)
{
	uint64_t address;
	if (__builtin_mul_overflow(delta, run->common->code_align, &delta) ||
	    __builtin_add_overflow(run->at, delta, &address))
		address = run->end;
	return advance_to(run, address);
}

static int64_t factored(const struct run *run, uint64_t value)
{
	return (int64_t)(value * (uint64_t)run->common->data_align);
}

static bool set_rule(struct run *run, uint64_t reg, struct cfi_rule rule)
{
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		if (run->common->columns[slot] == reg)
			run->machine->state.rules[slot] = rule;
	return true;
}

static bool set_value(struct run *run, uint64_t reg, enum cfi_rule_kind kind, int64_t value)
{
	return set_rule(run, reg, (struct cfi_rule){.kind = (uint8_t)kind, .value = value});
}

static bool restore(struct run *run, uint64_t reg)
{
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		if (run->common->columns[slot] == reg)
			run->machine->state.rules[slot] = run->common->initial.rules[slot];
	return true;
}

/* A block of an expression; one that compilers write has some tens of bytes. */
static bool read_block(struct run *run, enum cfi_rule_kind kind, struct cfi_rule *rule)
{
	struct cursor block = cursor_block(&run->cursor, cursor_uleb(&run->cursor));
	if (block.bad || cursor_left(&block) > UINT32_MAX)
		return false;
	*rule = (struct cfi_rule){.block = block.at,
				  .block_size = (uint32_t)cursor_left(&block),
				  .kind = (uint8_t)kind};
	return true;
}

static bool set_block(struct run *run, enum cfi_rule_kind kind)
{
	uint64_t reg = cursor_uleb(&run->cursor);
	struct cfi_rule rule;
	return read_block(run, kind, &rule) && set_rule(run, reg, rule);
}

static bool set_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	struct cfi_state *state = &run->machine->state;
	state->cfa = (struct cfi_rule){.kind = RULE_REGISTER, .value = offset};
	state->cfa_reg = reg;
	return true;
}

static bool remember(struct cfi_machine *machine)
{
	if (machine->remembered_count == CFI_REMEMBER_MAX)
		return false;
	machine->remembered[machine->remembered_count++] = machine->state;
	return true;
}

static bool recall(struct cfi_machine *machine)
{
	if (!machine->remembered_count)
		return false;
	machine->state = machine->remembered[--machine->remembered_count];
	return true;
}

static bool set_location(struct run *run)
{
	if (run->initial)
		return false;
	return advance_to(run,
			  cfi_pointer(&run->cursor, run->common->pointer_encoding, run->bases));
}

static bool execute_register(struct run *run, uint8_t instruction)
{
	struct cursor *cursor = &run->cursor;
	uint64_t reg = cursor_uleb(cursor);
	switch (instruction) {
	case DW_CFA_offset_extended:
		return set_value(run, reg, RULE_OFFSET, factored(run, cursor_uleb(cursor)));
	case DW_CFA_offset_extended_sf:
		return set_value(run, reg, RULE_OFFSET,
				 factored(run, (uint64_t)cursor_sleb(cursor)));
	case DW_CFA_GNU_negative_offset_extended:
		return set_value(run, reg, RULE_OFFSET, factored(run, 0 - cursor_uleb(cursor)));
	case DW_CFA_val_offset:
		return set_value(run, reg, RULE_VAL_OFFSET, factored(run, cursor_uleb(cursor)));
	case DW_CFA_val_offset_sf:
		return set_value(run, reg, RULE_VAL_OFFSET,
				 factored(run, (uint64_t)cursor_sleb(cursor)));
	case DW_CFA_restore_extended:
		return restore(run, reg);
	case DW_CFA_undefined:
		return set_value(run, reg, RULE_UNDEFINED, 0);
	case DW_CFA_same_value:
		return set_value(run, reg, RULE_SAME, 0);
	default: /* DW_CFA_register */
		return set_value(run, reg, RULE_REGISTER, (int64_t)cursor_uleb(cursor));
	}
}

static bool execute_cfa(struct run *run, uint8_t instruction)
{
	struct cfi_state *state = &run->machine->state;
	struct cursor *cursor = &run->cursor;
	uint64_t reg;
	switch (instruction) {
	case DW_CFA_def_cfa:
		reg = cursor_uleb(cursor);
		return set_cfa(run, reg, (int64_t)cursor_uleb(cursor));
	case DW_CFA_def_cfa_sf:
		reg = cursor_uleb(cursor);
		return set_cfa(run, reg, factored(run, (uint64_t)cursor_sleb(cursor)));
	case DW_CFA_def_cfa_register:
		return set_cfa(run, cursor_uleb(cursor), state->cfa.value);
	case DW_CFA_def_cfa_offset:
		state->cfa.value = (int64_t)cursor_uleb(cursor);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		state->cfa.value = factored(run, (uint64_t)cursor_sleb(cursor));
		return true;
	default: /* DW_CFA_def_cfa_expression */
		return read_block(run, RULE_EXPRESSION, &state->cfa);
	}
}

static bool execute_extended(struct run *run, uint8_t instruction)
{
	struct cursor *cursor = &run->cursor;
	switch (instruction) {
	case DW_CFA_nop:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
	case DW_CFA_AARCH64_negate_ra_state: /* readers of return addresses always strip them */
		return true;
	case DW_CFA_set_loc:
		return set_location(run);
	case DW_CFA_advance_loc1:
		return advance(run, cursor_u8(cursor));
	case DW_CFA_advance_loc2:
		return advance(run, cursor_u16(cursor));
	case DW_CFA_advance_loc4:
		return advance(run, cursor_u32(cursor));
	case DW_CFA_MIPS_advance_loc8:
		return advance(run, cursor_u64(cursor));
	case DW_CFA_remember_state:
		return remember(run->machine);
	case DW_CFA_restore_state:
		return recall(run->machine);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return execute_cfa(run, instruction);
	case DW_CFA_offset_extended ... DW_CFA_register:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_GNU_negative_offset_extended:
		return execute_register(run, instruction);
	case DW_CFA_expression:
		return set_block(run, RULE_EXPRESSION);
	case DW_CFA_val_expression:
		return set_block(run, RULE_VAL_EXPRESSION);
	case DW_CFA_GNU_args_size:
		cursor_uleb(cursor);
		return true;
	default:
		return false;
	}
}

static bool execute(struct run *run)
{
	uint8_t instruction = cursor_u8(&run->cursor);
	uint8_t operand = instruction & 0x3f;
	uint64_t offset;
	switch (instruction & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(run, operand);
	case DW_CFA_offset:
		offset = cursor_uleb(&run->cursor);
		return set_value(run, operand, RULE_OFFSET, factored(run, offset));
	case DW_CFA_restore:
		return restore(run, operand);
	default:
		return execute_extended(run, instruction);
	}
}

bool cfi_machine_prepare(struct cfi_machine *machine, struct cfi_common *common,
			 struct cursor program)
{
	struct run run = {.machine = machine, .common = common, .cursor = program, .initial = true};
	memset(&machine->state, 0, sizeof machine->state);
	machine->remembered_count = 0;
	while (cursor_left(&run.cursor))
		if (!execute(&run) || run.cursor.bad)
			return false;
	common->initial = machine->state;
	return true;
}

bool cfi_machine_run(struct cfi_machine *machine, const struct cfi_common *common,
		     struct cursor program, const struct cfi_bases *bases, uint64_t start,
		     uint64_t end)
{
	struct run run = {.machine = machine,
			  .common = common,
			  .bases = bases,
			  .cursor = program,
			  .at = start,
			  .end = end};
	machine->state = common->initial;
	machine->remembered_count = 0;
	machine->pending_count = 0;
	while (cursor_left(&run.cursor) && run.at < end)
		if (!execute(&run) || run.cursor.bad)
			return false;
	emit(&run, end);
	pending_commit(machine, end);
	return true;
}
