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
	   know. */
	bool only_writes;
	bool odd; /* it would not do the same elsewhere */
};

/* What functions may rely on, by the rules for calls of the CPU's compilers. */
struct use_cpu {
	uint32_t all;       /* registers that there are */
	uint32_t arguments; /* that a call may read */
	uint32_t results;   /* that a caller may read after it */
	uint32_t kept;      /* that a function gives back as they were, with SP */
	void (*read)(const uint8_t *code, size_t size, struct use *out);
};

extern const struct use_cpu use_x86_64;
/* Returns what is known of the CPU with this ELF number; NULL: nothing. */
const struct use_cpu *use_cpu_for(uint16_t elf_machine);
