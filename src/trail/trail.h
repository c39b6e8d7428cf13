/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Trails: where a thread goes next. From the registers of a sample, the program's instructions are interpreted one by
 * one, for a while. Each conditional branch and each indirect jump that is met on the way is an edge that
 * the program is about to take.
 *
 * Nothing is written but the trail itself: stores go to a small list that later loads see first. Memory and code are
 * read by functions of the caller, which say whether that can be done. A value that is not known (it comes from
 * vector registers, or by an instruction that is not interpreted exactly) is marked, and what is made of it is not
 * known, either. A trail ends where it would have to guess: at a branch by a value that is not known, a store to
 * such an address, a system call, code that is not understood. So all edges of a trail are right, unless another thread
 * or a signal changes what the thread reads.
 *
 * This may run in a signal handler: nothing is allocated, and a trail needs no more stack than a few words.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAIL_STEPS 64u
#define TRAIL_EDGES 24u
#define TRAIL_STORES 24u

struct trail_edge {
	uint64_t from, to; /* the branch, and the instruction that comes after it */
};

enum trail_end {
	TRAIL_ON,
	TRAIL_LONG,    /* as many steps or edges as were wanted */
	TRAIL_NO_CODE, /* the code cannot be read */
	TRAIL_UNKNOWN, /* the next instruction depends on a value that is not known */
	TRAIL_SYSTEM,  /* a system call, or something else that the kernel does */
	TRAIL_STRANGE, /* an instruction that is not interpreted */
	TRAIL_MEMORY,  /* memory cannot be read, or the address of a store is not known */
	TRAIL_FULL,    /* too many stores */
};

/* Copies up to `size` bytes of code or data. Returns how many there are. */
typedef size_t trail_read(void *context, uint64_t address, void *out, size_t size);

struct trail_store { /* a word of memory */
	uint64_t address, value;
	uint8_t written,
		known; /* a bit for each byte; `known` has those whose values are known, too */
};

struct trail {
	/* What the caller sets. Registers are by DWARF number (unwind/cpu.h). */
	uint64_t registers[32];
	uint64_t pc, flags; /* flags: as the kernel has them in a signal's context */
	uint64_t thread;    /* where the thread pointer leads */
	trail_read *read_data, *read_code;
	void *context;

	/* What comes of it. */
	struct trail_edge edges[TRAIL_EDGES];
	uint32_t edge_count;
	uint32_t steps;
	uint8_t end; /* enum trail_end */

	/* Private. */
	uint32_t unknown;       /* a bit for each register */
	uint32_t unknown_flags; /* a bit for each flag */
	uint32_t store_count;
	struct trail_store stores[TRAIL_STORES];
};

/* Each follows the code of its CPU, for at most `steps` instructions. */
void trail_follow_aarch64(struct trail *trail, uint32_t steps);
void trail_follow_x86_64(struct trail *trail, uint32_t steps);
