/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which registers and flags an instruction needs, and which values are gone after it: for who wants to put code of his
   own between instructions. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USE_CARRY 1u  /* the carry flag */
#define USE_OTHERS 2u /* all other flags of arithmetic */

struct use {
	uint32_t reads;  /* general registers, numbered as in isa/insn.h */
	uint32_t writes; /* at least a part of them, or only sometimes */
	uint32_t kills;  /* all of them: what they had is gone */
	uint8_t reads_flags, kills_flags;
	/* It does nothing but write registers. If nobody reads these afterwards, they are read by someone whom we do not
	   know; or it makes one 0 so that nobody can read what was there. */
	bool only_writes, clears;
	bool odd; /* it would not do the same elsewhere */
};

/* What functions may rely on, by the rules for calls of the CPU's compilers. */
struct use_cpu {
	uint32_t all;       /* registers that other code may use where they are free */
	uint32_t arguments; /* that a call may read */
	uint32_t results;   /* that a caller may read after it */
	uint32_t kept;      /* that a function gives back as they were, with SP */
	uint32_t
		thrown; /* that have a value where an exception comes in, besides those that are kept */
	uint32_t passing; /* that may change on the way into a function and out of it */
	/* How many free registers code needs that counts, if the flags may change; if they may not; and code that keeps a
	   sum at a call, but for the sum itself. */
	uint8_t to_count, to_count_slowly, to_keep;
	bool uses_sum;      /* where the sum is in a register, that is one of those for counting */
	bool changes_flags; /* such code does */
	bool keeps_on_stack; /* before a call it can do without, because it keeps registers below the stack */
	bool shares_tables; /* switches that have the same table have the same new one in a copy */
	void (*read)(const uint8_t *code, size_t size, struct use *out);
};

extern const struct use_cpu use_x86_64, use_aarch64;
/* Returns what is known of the CPU with this ELF number; NULL: nothing. */
const struct use_cpu *use_cpu_for(uint16_t elf_machine);
