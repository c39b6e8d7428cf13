/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Instructions of hot functions, as far as there is room for them: those with samples of their own and
 * what is near to them.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct modules;
struct profile;
struct strings;

struct code_insn {
	uint32_t function; /* of `functions` */
	uint64_t address;
	uint32_t text, file, line; /* texts; file and line 0: not known */
	uint32_t intel;            /* the text in Intel's syntax; 0: the CPU has but one */
	uint32_t gap;              /* 1: others before it are left out */
};

struct code_function {
	uint32_t module;
	uint64_t start;
	uint64_t self; /* samples of all metrics */
};

struct code {
	struct code_function *functions; /* hottest first */
	size_t function_count;
	struct code_insn *insns; /* ascending by function, address */
	size_t count, room;
	size_t metric_count;
	uint64_t *self;      /* [insn * metric_count + metric] */
	struct err *no_text; /* why instructions of a CPU are left out; NULL: none are */
};

struct err *code_make(const struct profile *profile, struct modules *modules,
		      struct strings *strings, struct code *out);
void code_free(struct code *code);
