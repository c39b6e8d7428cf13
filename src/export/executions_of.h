/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the formats of executions share. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"

struct err;
struct function;
struct image;
struct modules;
struct program;
struct symbols;

struct call_target {    /* where an indirect call went, as paths of samples show */
	uint64_t after; /* the instruction behind the call */
	uint32_t module;
	uint64_t start; /* of the function that was called */
	double samples; /* in it, and in all that it called */
};

struct executions {
	const struct program *program;
	struct modules *modules;
	uint32_t module;
	enum export_format format;
	struct image *image;
	const struct symbols *symbols;
	struct call_target *targets; /* ascending by `after`, `module`, `start` */
	size_t target_count;
	FILE *out;
};

/* As a whole number. */
uint64_t executions_round(double executions);

/* Calls `each` for all calls and tail calls of a function that are known: with the instruction, the address that is
   called (0: it is in another file), its symbol, and how often that was. */
void executions_of_calls(const struct executions *x, const struct function *f,
			 void (*each)(void *context, size_t insn, uint64_t to, const char *symbol,
				      double count),
			 void *context);

/* The length of a symbol without what compilers append to those of copies and parts of a function. */
size_t executions_name_size(const char *symbol);

struct err *autofdo_write(struct executions *x);
struct err *llvm_sample_write(struct executions *x);
struct err *ranges_write(struct executions *x);
struct err *bolt_write(struct executions *x);
