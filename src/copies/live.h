/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The instructions of a function, and which registers and flags are live at each: have values that something may still
   read. What is not live may be used by code that is put there. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies/use.h"

struct err;
struct graph;
struct image;
struct isa;

struct live_insn {
	uint64_t address, target, refers; /* as in struct insn */
	uint8_t length, kind;
	uint8_t flags;    /* USE_*: live before it */
	bool sets_sp;     /* to something that is not known */
	int32_t sp_moves; /* else: what it adds to SP; of a call nothing, for it returns */
	uint32_t live;    /* registers, before it */
	struct use use;
};

struct live_input {
	struct image *image;
	const struct isa *isa;
	const struct use_cpu *cpu;
	const struct graph *graph;
	/* What callers must expect that a call of the function changes, but for what its own instructions write. */
	uint32_t others;
	/* Registers that code of another procedure reads where a jump leads there; NULL: what the rules for calls say. */
	uint32_t (*read_at)(const void *context, uint64_t address);
	const void *context;
	bool jumped_to; /* by another procedure: `reads` is wanted */
	uint32_t
		needed; /* registers that some caller may read after a call, if it expects that it does not change them */
};

struct live {
	uint32_t
		reads; /* registers that it reads before it has written them; passing them on to calls does not count */
	struct live_insn *insns; /* of all blocks that are reached, in the order of blocks */
	size_t insn_count;
	uint32_t *first;      /* by block, and one more: where its instructions begin */
	uint32_t *after;      /* by block: registers that are live at its end */
	uint8_t *flags_after; /* the same of flags */
	/* It passes values in registers that are not for that, so calls and returns may read all. */
	bool own_rules;
	bool odd; /* an instruction would not do the same elsewhere, or is none */
};

struct err *live_find(const struct live_input *input, struct live *out);
void live_free(struct live *live);

/* Registers that are live after an instruction of a block. */
uint32_t live_behind(const struct live *live, uint32_t block, uint32_t insn);
/* Registers and flags that are live where a block begins. */
uint32_t live_at_block(const struct live *live, uint32_t block);
/* Registers, where an exception comes in there: what is in the others is of the code that threw. No flag is live. */
uint32_t live_at_landing(const struct live *live, const struct use_cpu *cpu, uint32_t block);
uint8_t live_flags_at_block(const struct live *live, uint32_t block);
