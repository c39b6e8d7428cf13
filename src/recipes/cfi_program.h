/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The machine that runs call-frame instructions (DWARF 5, section 6.4.2) and
 * says each row that they describe as a recipe. Of the registers only those
 * are followed that a walk needs: the return address, FP, SP and the extra one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "recipes/cfi_cursor.h"
#include "recipes/rows.h"

struct cfi_stats;
struct isa;

enum cfi_rule_kind {
	RULE_UNSPECIFIED,
	RULE_UNDEFINED,
	RULE_SAME,
	RULE_OFFSET,         /* in the word at CFA + value */
	RULE_VAL_OFFSET,     /* is CFA + value */
	RULE_REGISTER,       /* in register `value` */
	RULE_EXPRESSION,     /* in the word at the block's value */
	RULE_VAL_EXPRESSION, /* is the block's value */
};

struct cfi_rule {
	const uint8_t *block;
	int64_t value;
	uint32_t block_size;
	uint8_t kind; /* enum cfi_rule_kind */
};

enum cfi_slot { SLOT_RA, SLOT_FP, SLOT_SP, SLOT_EXTRA, SLOT_COUNT };

struct cfi_state {
	struct cfi_rule rules[SLOT_COUNT];
	struct cfi_rule cfa; /* RULE_REGISTER: cfa_reg + value. RULE_EXPRESSION: the block */
	uint64_t cfa_reg;
};

/* What the entries of a CIE have in common. */
struct cfi_common {
	const struct isa *isa;
	uint64_t code_align;
	int64_t data_align;
	uint64_t columns[SLOT_COUNT]; /* DWARF numbers of the registers that are followed */
	uint8_t pointer_encoding;     /* of DW_CFA_set_loc */
	struct cfi_state initial;
};

#define CFI_REMEMBER_MAX 64

struct cfi_machine {
	struct rows *rows;
	struct cfi_stats *stats;
	uint64_t budget;     /* operations of expressions that may still be computed */
	struct row *pending; /* rows of the entry that is being read */
	size_t pending_count, pending_capacity;
	bool out_of_memory;
	struct cfi_state state;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
	unsigned remembered_count;
};

void cfi_machine_init(struct cfi_machine *machine, struct rows *rows, struct cfi_stats *stats);
void cfi_machine_free(struct cfi_machine *machine);

/* Runs a CIE's instructions into common->initial. False where they are damaged. */
bool cfi_machine_prepare(struct cfi_machine *machine, struct cfi_common *common,
			 struct cursor program);

/* Runs an FDE's instructions for [start, end) and adds the rows. False, and none added, where
   they are damaged. */
bool cfi_machine_run(struct cfi_machine *machine, const struct cfi_common *common,
		     struct cursor program, const struct cfi_bases *bases, uint64_t start,
		     uint64_t end);

/* The recipe of a state at `pc`; *used_pc says that it may differ at other addresses. */
struct recipe cfi_recipe(const struct cfi_common *common, const struct cfi_state *state,
			 uint64_t pc, uint64_t *budget, bool *used_pc);
