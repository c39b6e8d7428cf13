/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Does a procedure ever return? Found by following its code (not its frames)
 * from the entry: one that runs into a return, or so far that we stop looking,
 * does. Compilers put unrelated code behind calls of one that does not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;
struct isa;
struct trace_slot;

struct returns {
	const struct isa *isa;
	const uint8_t *(*bytes)(const void *context, uint64_t address,
				size_t *size); /* NULL: no code there */
	const void *context;
	const uint64_t *noreturn; /* sorted: known not to return */
	size_t noreturn_count;
	const struct trace_slot *slots; /* sorted: words that hold the address of a procedure */
	size_t slot_count;
	uint64_t *known; /* what was found before: shared by all threads, lossy */
};

bool returns_init(struct returns *returns); /* after the other fields were set; false: no memory */
void returns_free(struct returns *returns);

/* The procedure that a call goes to: its target, or what the word holds that it goes through; 0 where
   that is not known. */
uint64_t call_target(const struct returns *returns, const struct insn *call);

/* Is it known by name never to return? */
bool procedure_is_noreturn(const struct returns *returns, uint64_t entry);

bool procedure_returns(const struct returns *returns, uint64_t entry);

/* Whether a system call ends the program or the thread: follows its number, *number, -1 at first, from
   instruction to instruction. */
bool syscall_ends(const struct isa *isa, const struct insn *insn, int64_t *number);
