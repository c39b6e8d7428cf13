/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copies of the chosen functions of a module, in a shared object, and how the functions are made to jump to them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "copies/copy.h"
#include "copies/sums.h"
#include "copies/write.h"

struct err;
struct image;
struct path_choice;
struct path_spot;

struct path_item { /* a function that was chosen */
	char *name;
	uint32_t procedure; /* its number in the module */
	uint64_t entry;
	const char *reason; /* why it is not counted; NULL: it is. The rest is of those that are */
	char *told;         /* the memory of such a reason, if it has one */
	struct graph *graph;
	struct graph_part *parts;
	struct sums sums;
	struct copy copy;
	uint64_t first_word; /* of its counters: of calls, then of paths */
	bool keeps_record;
	const char *
		no_context; /* why its calling contexts are not told apart; NULL: they are, if they are wanted */
	/* What is to be written into the function. */
	uint64_t jump_at;
	uint8_t jump_size, original[WRITE_JUMP_MAX], jump[WRITE_JUMP_MAX];
};

struct path_module {
	struct path_item *items;
	size_t count;
	uint32_t *copied; /* those that have copies: indices, in the order of these in memory */
	size_t copied_count;
	struct buf object; /* the file; empty if no function is counted */
	uint64_t words;    /* of counters, all in all */
};

struct path_module_input {
	struct image *image;
	const struct path_choice *choice;
	const char *path;     /* of the module, for the choice */
	const char *name;     /* of the object */
	uint64_t base, bias;  /* as in struct object_input */
	uint64_t first_word;  /* counters from here on are ours */
	uint64_t thread_word; /* as in struct write_input, with the next one; 0: there is none */
	bool atomics;
	/* Threads may be in the functions when they begin to jump, and the jumps may be taken out again: then calls go to the
	   functions themselves. */
	bool running;
	bool contexts; /* calling contexts are told apart, where that can be done */
};

struct err *path_module_make(const struct path_module_input *input, struct path_module *out);
void path_module_free(struct path_module *module);

/* The function in whose copy an address of the module is: its index, and the copy's path there. `registers` has what was in them, by
   the numbers of isa/insn.h. False: it is in no copy. */
bool path_module_spot(const struct path_module *module, uint64_t address, const uint64_t *registers,
		      size_t *item, struct path_spot *out);

/* The instruction of the function that the copy calls by where the call returns to this address of the module; 0: the copy has
   none. */
uint64_t path_item_site(const struct path_item *item, uint64_t returns);

/* How often the function was called. `words`: its counters. */
uint64_t path_item_calls(const struct path_item *item, const uint64_t *words);
