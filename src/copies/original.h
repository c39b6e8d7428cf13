/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A module whose functions are to be copied, as far as it is read for that: its functions, their code, and how they unwind. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies/frames.h"
#include "structure/control.h"
#include "structure/extents.h"

struct err;
struct graph;
struct image;
struct insn;
struct symbols;
struct use_cpu;

struct original_call { /* procedures */
	uint32_t from, to;
};

struct original {
	struct image *image;
	uint16_t machine;
	const struct use_cpu *cpu; /* NULL: nothing can be copied */
	struct symbols *symbols;
	struct extents extents;
	struct control_module control;
	struct frames frames;
	bool runtime; /* the runtime of its language knows code by its addresses */
	bool guarded; /* as in struct write_entry */
	/* Ascending: words with addresses of functions that may return several times, but for those that stubs read. */
	uint64_t *again_slots;
	size_t again_count, again_room;
	/* Where jumps go from one function to another, but to its beginning; ascending. */
	uint64_t *targets;
	size_t target_count, target_room;
	/* Where code of a procedure calls another one or jumps to its beginning, other than by a pointer or a stub; ascending by
	   `from`. And by procedure, how often it is called so. */
	struct original_call *calls;
	size_t call_count, call_room;
	uint32_t *called;
	bool *jumped_to; /* by procedure */
};

/* `image` must outlive it. */
struct err *original_open(struct image *image, struct original *out);
void original_close(struct original *original);

/* Whether a function with this name may return several times: after one call, or in a child as well. */
bool original_returns_again(const char *name);
/* Whether an address is that of a word with the address of such a function, or of its page. */
bool original_reads_again(const struct original *original, uint64_t address);
/* Makes the graph of a procedure. */
struct err *original_graph(const struct original *original, uint32_t procedure, struct graph *out);
/* The procedure that such a call or jump leads to; EXTENT_NONE: it is none. */
uint32_t original_callee(const struct original *original, uint32_t from, uint8_t kind,
			 uint64_t target);
/* Reads the instruction at an address. False: there is none. */
bool original_insn(const struct original *original, uint64_t address, struct insn *out);
/* The name of the function in another file that the code at this address leads to; NULL: it does not. */
const char *original_stub(const struct original *original, uint64_t address);
