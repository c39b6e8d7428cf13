/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes the code of a copy: block after block as in the function, with the code that counts in between.
 *
 * What the code needs of its thread is its bank:
 *    bank + 0  counters, 8 bytes each (`counters`)
 *    bank - 8  where its path stack ends. That grows upwards. An entry has a sum and the SP of the call that it waits for. The
 *              lowest one has an SP that is larger than any.
 *    bank - 16 an address in the path stack. If it has grown beyond that where a sum is lost, it begins anew: entries of calls that
 *              never came back may have filled it, as those of coroutines that nobody resumed
 *    bank - 24 where it begins: behind the lowest entry
 *
 * Calling contexts (safe/contexts.h, counter/contexts.h): a copy whose contexts are told apart counts in a record of its
 * context, which is at the top of the thread's stack of contexts. Each entry of that is a function that goes on: where it is entered, it finds
 * its record and adds an entry, and where it leaves, it drops that. Behind each call, and where an exception comes in, it sees to
 * it that the last entry is its own: that has the SP with which it was entered. Whoever was called may have been left
 * without an end. A function that calls nobody keeps its record in a register, if there is one, and has no entry. A call by another copy says where in its own record it keeps the record of who is called: in r11. Who comes by another way
 * asks.
 *
 * x86-64: GS begins at the bank.
 * aarch64: the word at TPIDR_EL0 + `thread_word` is the address of the bank. It must never be 0: threads begin with that of
 * a bank that nobody reads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies/copy.h"
#include "copies/live.h"
#include "copies/sums.h"

struct buf;
struct depth;
struct err;
struct graph;
struct image;

struct write_input {
	struct image *image;
	const struct graph *graph;
	const struct live *live;
	const struct sums *sums;
	const struct graph_part *parts; /* as in struct copy */
	size_t part_count;
	uint64_t address; /* of the copy */
	uint64_t tables;  /* address of what is written to the buffer of tables next */
	uint64_t bias;    /* as in struct object_input */
	uint64_t
		counters; /* bytes from the first counter of a thread to ours: of calls, then sums->words of paths */
	uint64_t thread_word; /* aarch64: see above */
	bool atomics;         /* aarch64: the CPU adds to memory by one instruction (LSE) */
	/* Of copies whose calling contexts are told apart: by instruction; NULL: they are not. Then the function's number among
	   contexts, and how many slots its record has. */
	const struct depth *depths;
	uint32_t function, slots;
	bool keeps_record; /* nobody is called, and a register is kept for the record: there is no entry */
};

/* What code may use of registers if the function can keep its record in one. False: it cannot. */
bool write_can_keep(uint16_t elf_machine, const struct live *live, struct use_cpu *out);

/* Why the calling contexts of a function cannot be told apart; NULL: they can. `depths`: of its instructions. */
const char *write_contexts(const struct write_input *input, const struct depth *depths);
/* How many slots its record has. */
uint32_t write_slots(const struct live *live);

/* Sets code and steps of `out`, which are malloc'ed, and adds to `tables`. *refused: why it cannot be written; then `out` and `tables`
   are as before. */
struct err *write_copy(const struct write_input *input, struct copy *out, struct buf *tables,
		       const char **refused);

/* How many entries more a table may get than the function's, if it is not known for sure how long that is. */
#define WRITE_TABLE_SPARE 1024u

/* How far the code of this CPU may be from all that it refers to, and what refers to it. */
uint64_t write_reach(uint16_t elf_machine);

/* Whether code of this CPU needs the `thread_word`. */
bool write_needs_word(uint16_t elf_machine);

/* Changes the place of a struct copy_call, which is at `from`, to lead to `to`. */
void write_aim(uint16_t elf_machine, uint8_t *code, uint64_t from, uint64_t to);

/* How a function is made to go to its copy. */
#define WRITE_JUMP_MAX 16u
struct write_entry {
	const uint8_t *code; /* of the function */
	size_t size;         /* how much of it may be overwritten */
	uint64_t address;
	uint64_t copy;
	bool guarded; /* indirect calls must come to an instruction that says so, or the CPU stops them (BTI) */
};
struct write_jump {
	uint64_t at;
	uint8_t size, bytes[WRITE_JUMP_MAX];
};
/* Returns why it cannot be done; NULL: it can. */
const char *write_enter(uint16_t elf_machine, const struct write_entry *entry,
			struct write_jump *out);
