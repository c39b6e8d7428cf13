/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes the copies of chosen functions for programs that wait to be counted (collect/paths/counting.h), and afterwards tells
 * what was counted of which path. collect/paths/copier.c has it.
 */
#include "paths/choice.h"

struct counting_plan;
struct counting_program;
struct err;
struct copier;
struct path_result;

struct copier_options {
	struct path_choice choice; /* what it points to must outlive the copier */
	bool emulated; /* programs are of an emulator: what they may execute is mapped as what they may read */
};

struct err *copier_open(const struct copier_options *options, struct copier **out);
/* As counting_make wants it; `copier` is a struct copier. */
struct err *copier_make(void *copier, struct counting_program *program, struct counting_plan *plan);
/* After the run: adds what was counted in a program to the result, also the functions that were refused. */
struct err *copier_collect(struct copier *copier, const struct counting_program *program,
			   struct path_result *out);
void copier_close(struct copier *copier); /* NULL is fine */
