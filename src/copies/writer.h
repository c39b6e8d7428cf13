/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A copy while it is written: internal to writer.c, switches.c and write_*.c.
 *
 * writer.c goes through the blocks and knows what must be counted, set and kept where. A CPU's file knows
 * instructions, and nothing of paths.
 */
#include "base/buf.h"
#include "copies/write.h"
#include "flow/graph.h"

struct fixup { /* an instruction that goes to a block */
	uint32_t at;
	uint32_t block;
};

struct table { /* of a switch */
	const struct graph_table *of;
	uint32_t entries; /* at least those of it */
	uint64_t to;      /* the address of the new one … */
	uint8_t size; /* … and how large its entries are: 4: how far it is from the table, 8: an address */
	uint32_t used; /* times that it was seen to be used */
	uint32_t block;
	uint32_t
		first; /* the instruction from which on the end of the block is written anew, for a CPU that does so */
	size_t owner; /* the number of the switch whose new table it goes by; mostly its own */
	int64_t more; /* what its sum is less than that one's */
	struct sums_block
		behind; /* if tables are shared: where the sum is when it jumps, and what is added to it */
};

#define WRITE_NO_TABLE "a switch has a table that cannot be copied"

struct write_cpu;

struct writer {
	const struct write_input *in;
	const struct write_cpu *cpu;
	struct use_cpu use; /* that of the CPU, but for the register of the record */
	struct copy *out;
	struct buf code;
	size_t step_room, landing_room, call_room, place_room;
	uint32_t *
		labels; /* by block: where it begins for all but exceptions; UINT32_MAX: not written yet */
	uint32_t *stubs; /* by edge of a switch: where its way begins */
	uint32_t *order; /* blocks as they are written */
	size_t block_count;
	struct fixup *fixups;
	size_t fixup_count, fixup_room;
	struct table *tables;
	size_t table_count;
	uint32_t block; /* that is written now */
	uint32_t slot;  /* of the next call */
	bool direct;    /* what is written next is a call that has said its slot */
	bool far;       /* branches must reach further than they can by themselves */
	bool too_far;   /* one does not reach */
	const char *refused;
	bool failed; /* there is no memory */
};

struct write_counter {
	int64_t at;  /* bytes from the thread's first counter on … */
	uint8_t sum; /* … and as many words more as this register says, which is not needed afterwards; SUMS_NONE: none */
	uint32_t free; /* as sums_counting_registers() says */
	/* In the record of its context: `at` counts from there. More registers that are free; and whether the function is left,
	   so its entry is dropped. */
	bool in_record, leaves;
	uint32_t spare;
};

struct write_enter { /* where a copy with contexts begins */
	uint32_t free;
	bool counts_calls;
};

/* Registers are numbered as in isa/insn.h. No function but those that say so changes flags. */
struct write_cpu {
	uint16_t elf_machine;
	const struct use_cpu *use;
	uint64_t reach;
	bool needs_word; /* struct write_input.thread_word */

	/* ---- of the function ---- */
	/* Copies an instruction. If it ends the block, that is by a return, a trap or an indirect jump or call. */
	void (*put_moved)(struct writer *w, uint32_t insn);
	void (*put_call)(struct writer *w, uint32_t insn); /* a direct one */
	/* A branch to a block. False: that cannot be done in one, and nothing is written. */
	bool (*put_if)(struct writer *w, uint32_t insn, uint32_t block);
	/* A branch over what comes, if its condition does not hold: up to where end_unless() is called with the outcome. */
	size_t (*put_unless)(struct writer *w, uint32_t insn);
	void (*end_unless)(struct writer *w, size_t from);
	/* Why a table cannot be copied; NULL: it can. */
	const char *(*check_table)(struct writer *w, struct table *table);

	/* ---- ways ---- */
	void (*put_jump)(struct writer *w, uint64_t to); /* to another function */
	void (*put_jump_to_block)(struct writer *w, uint32_t block);
	/* Sets where an instruction goes that put_if() or put_jump_to_block() has written. */
	void (*fix)(struct writer *w, uint32_t at, uint32_t to);

	/* ---- sums and counters ---- */
	void (*put_set)(struct writer *w, uint8_t reg, int64_t value);
	void (*put_add)(struct writer *w, uint8_t to, uint8_t from, int64_t value);
	void (*put_count)(struct writer *w, const struct write_counter *counter);
	/* Before and after calls. They may change flags if the CPU says so (use.h). */
	void (*put_save)(struct writer *w, const struct sums_block *block);
	void (*put_restore)(struct writer *w, const struct sums_block *block);
	/* For exceptions: drops the entries that nobody waits for any more; sets the sum to that of the last of them, or to
	   `lost`. They may change flags, too. */
	void (*put_drop)(struct writer *w, uint32_t free);
	void (*put_left_sum)(struct writer *w, const struct sums_block *to, int64_t lost);

	/* ---- contexts ---- */
	uint8_t slot_register; /* that says where the slot of a call is; SUMS_NONE: this CPU has no contexts yet */
	/* Sets w->out->direct. */
	void (*put_enter)(struct writer *w, const struct write_enter *enter);
	/* Makes sure that the last entry is of the function: it is what was entered `distance` above SP, or above the frame pointer. Nothing
	   may be in the red zone. */
	void (*put_check)(struct writer *w, uint32_t free, bool by_fp, int32_t distance);
	void (*put_slot)(struct writer *w, uint32_t slot);

	/* ---- from outside ---- */
	void (*aim)(uint8_t *code, uint64_t from, uint64_t to);
	const char *(*enter)(const struct write_entry *entry, struct write_jump *out);
};

extern const struct write_cpu write_x86_64, write_aarch64;

/* ---- switches.c ---- */

/* Finds what tables there must be. */
void switches_take(struct writer *w);
/* The block of the switch whose table and ways the switch of a block has: mostly its own. */
uint32_t switches_owner(const struct writer *w, uint32_t block);
/* Where the sum is behind a block. */
const struct sums_block *switches_behind(const struct writer *w, uint32_t block);
/* Writes the tables, when all blocks are. */
void switches_put(struct writer *w, struct buf *out);

/* ---- what CPUs use of writer.c and switches.c ---- */

static inline void put(struct writer *w, const void *bytes, size_t size)
{
	buf_append(&w->code, bytes, size);
}

/* The address of what is written next. */
static inline uint64_t here(const struct writer *w)
{
	return w->in->address + w->code.size;
}

/* What is written next refers to another function. */
void writer_add_call(struct writer *w, uint64_t target);
/* From what is written next on, the register of the sum may have another value. */
void writer_lose_sum(struct writer *w);
/* What is written next goes to a block. */
void writer_add_fixup(struct writer *w, uint32_t block);
/* The new table for the one of a switch at this address; NULL: none. */
struct table *writer_table_at(struct writer *w, uint64_t address);
/* Whether the address is one of code of the function, but for its entry. */
bool writer_is_own_code(const struct writer *w, uint64_t address);
