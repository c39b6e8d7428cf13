/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes the copies of chosen functions for programs that wait to be counted (collect/paths/counting.h), and afterwards tells
 * what was counted of which path. collect/paths/copier.c has it.
 */
#include <stddef.h>
#include <stdint.h>

#include "paths/choice.h"
#include "paths/spots.h"

struct counting_plan;
struct counting_program;
struct err;
struct copier;
struct path_item;
struct path_result;

struct copier_options {
	struct path_choice choice; /* what it points to must outlive the copier */
	size_t metric_count;       /* how many events are sampled */
	bool contexts;             /* calling contexts are told apart */
	bool emulated; /* programs are of an emulator: what they may execute is mapped as what they may read */
};

struct err *copier_open(const struct copier_options *options, struct copier **out);
/* As counting_make wants it; `copier` is a struct copier. */
struct err *copier_make(void *copier, struct counting_program *program, struct counting_plan *plan);
struct copier_place {         /* in a copy, until copier_collect */
	size_t module, index; /* which function: the same one has the same numbers in a program */
	const struct path_item *function;
	struct path_spot spot; /* the path that it is on */
};
/* Where a thread of the program is that has these registers. False: in no copy. */
bool copier_find(const struct counting_program *program, uint64_t pc, const uint64_t *registers,
		 struct copier_place *out);
/* As counting.sampled wants it. */
void copier_sample(void *copier, struct counting_program *program, size_t event, uint64_t pc,
		   const uint64_t *registers, uint64_t value);
/* After the run: adds what was counted in a program to the result, also the functions that were refused. */
struct err *copier_collect(struct copier *copier, const struct counting_program *program,
			   struct path_result *out);
void copier_close(struct copier *copier); /* NULL is fine */
