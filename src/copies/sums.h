/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the code of a function keeps the sum of a path (numbering.h) on its way.
 *
 * In many blocks the sum can have only one value. There the code need not have it. Elsewhere it is in a register that
 * nothing else needs in that block. At calls it is kept in memory, if the block needs it afterwards. Where no register is free,
 * all ways to the block are cut: so the sum is known again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies/live.h"
#include "paths/numbering.h"

struct err;

#define SUMS_NONE 0xff
#define SUMS_NO_CALL UINT32_MAX

struct sums_block {
	bool varies; /* the sum has several values; else it is `value` at the end of the block, and where it begins */
	int64_t value;
	/* If it varies: the registers that it is in where the block begins, and ends. */
	uint8_t in, out;
	/* Before the instruction `save` of struct live the sum goes to memory, after `restore` it comes back. SUMS_NO_CALL:
	   there is no call. */
	uint32_t save, restore;
	uint32_t save_free,
		restore_free; /* registers that are free there: as many as the CPU needs */
	int64_t sp_moves;     /* how much larger SP is after `restore` than before `save` */
	/* Of landing blocks: registers that are free where an exception comes in; 0: too few. And one more; SUMS_NONE: there
	   is none. */
	uint32_t landing_free;
	uint8_t landing_sum;
	int64_t lost; /* what the sum is set to if it cannot be had back: its path ends as an unknown one */
};

struct sums {
	struct numbering numbering;
	struct sums_block *blocks;
	/* Calls are counted where the function begins. Else it calls nobody, and each call of it ends in one path that starts
	   at the entry. */
	bool counts_calls;
	uint32_t entry_free; /* registers for counting there */
	uint64_t words;      /* counters: those of paths, and behind them those of unknown ones */
	uint32_t pressed;    /* blocks whose ways were cut because no register was free */
	const char *refused; /* why the paths cannot be counted; NULL: they can */
};

struct err *sums_make(const struct graph *graph, const struct live *live, const struct use_cpu *cpu,
		      const double *weights, struct sums *out);
/* Finds registers that are free where the path behind a block ends, by an edge or by leaving the function (SUMS_LEAVES): as
   many as the CPU needs to count there. If the flags may not change, these are those for counting slowly. `sum`: where the
   sum is then. False: there are too few. */
#define SUMS_LEAVES UINT32_MAX
/* All registers that are free there, but for the one with the sum. */
uint32_t sums_free_registers(const struct graph *graph, const struct live *live,
			     const struct use_cpu *cpu, const struct sums_block *sum,
			     uint32_t block, uint32_t edge);
bool sums_counting_registers(const struct graph *graph, const struct live *live,
			     const struct use_cpu *cpu, const struct sums_block *sum,
			     uint32_t block, uint32_t edge, uint32_t *out);
void sums_free(struct sums *sums);
