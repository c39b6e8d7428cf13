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
struct image;
struct insn;
struct symbols;
struct use_cpu;

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
	/* Where jumps go from one function to another, but to its beginning; ascending. */
	uint64_t *targets;
	size_t target_count, target_room;
};

/* `image` must outlive it. */
struct err *original_open(struct image *image, struct original *out);
void original_close(struct original *original);

/* Reads the instruction at an address. False: there is none. */
bool original_insn(const struct original *original, uint64_t address, struct insn *out);
/* The name of the function in another file that the code at this address leads to; NULL: it does not. */
const char *original_stub(const struct original *original, uint64_t address);
