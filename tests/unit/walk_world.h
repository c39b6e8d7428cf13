/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small world to walk in: recorded memory and a hand-made table, for both CPUs on either. It stands on
 * unwind/ alone, so that the tests also run for the other CPU.
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "unwind/cpu.h"
#include "unwind/table.h"
#include "unwind/walk.h"

/* The module: its own addresses begin at CODE, at run time at CODE + BIAS. Each rule holds for 16
   bytes: rule n at CODE + 16 n. */
#define CODE 0x1000u
#define BIAS UINT64_C(0x555500000000)
#define RULES 16
#define PC(n) (BIAS + CODE + 16u * (n))           /* inside the code of rule n */
#define RETURN(n) (BIAS + CODE + 16u * (n) + 16u) /* after a call that is its last instruction */

#define STACK UINT64_C(0x7ffc00010000)
#define WORDS 256

struct world {
	const struct unwind_cpu *cpu;
	struct {
		struct table_header header;
		uint32_t pages[2];
		uint32_t rows[RULES]; /* pages and rows: an even number of words */
		struct recipe rules[RULES];
	} file;
	struct walk_module module;
	struct walk_space space;
	uint64_t registers[CPU_REGISTERS];
	uint64_t stack[WORDS]; /* at STACK */
	struct walk walk;
};

static inline bool read_stack(void *context, uint64_t address, uint64_t *out)
{
	const struct world *w = context;
	if (address % 8 || address < STACK || address - STACK >= sizeof w->stack)
		return false;
	*out = w->stack[(address - STACK) / 8];
	return true;
}

/* A world whose registers have recognisable values, its SP at the stack's beginning. */
static inline void world_begin(struct world *w, const struct unwind_cpu *cpu)
{
	memset(w, 0, sizeof *w);
	w->cpu = cpu;
	w->file.header = (struct table_header){
		.magic = TABLE_MAGIC,
		.version = TABLE_VERSION,
		.machine = cpu->elf_machine,
		.start = CODE,
		.page_count = 1,
		.row_count = RULES,
		.rule_count = RULES,
	};
	w->file.pages[1] = RULES;
	for (uint32_t i = 0; i < RULES; i++)
		w->file.rows[i] = i * 16 << TABLE_RULE_BITS | i;
	assert_true(table_open(&w->module.table, &w->file, sizeof w->file));
	w->module.start = BIAS + CODE;
	w->module.end = BIAS + CODE + 16 * RULES;
	w->module.bias = BIAS;
	w->space = (struct walk_space){&w->module, 1};
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		w->registers[i] = 0xbad00000 + i;
	w->registers[cpu->sp] = STACK;
}

static inline void world_start(struct world *w, uint64_t pc)
{
	walk_begin(&w->walk, w->cpu, w->registers, pc);
}

static inline enum walk_end step(struct world *w)
{
	const struct walk_reader reader = {read_stack, w};
	return walk_step(&w->walk, &w->space, &reader);
}

static inline void expect_at(const struct world *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(w->walk.pc, pc);
	assert_int_equal(w->walk.sp, sp);
	assert_int_equal(w->walk.fp, fp);
}

/* Numbers of registers. */
#define RBX 3u
#define RBP 6u
#define RSP 7u
#define X29 29u
#define X30 30u

/* CFA = rsp + 8 n, return address below it: the frame of most code. */
static inline struct recipe x86_frame(int words)
{
	return (struct recipe){.cfa = RECIPE_REG,
			       .cfa_reg = RSP,
			       .cfa_offset = 8 * words,
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = -8};
}
