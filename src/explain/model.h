/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a CPU does with each kind of instruction: tables (models/NAME.txt) that tools/make-cpu-models made from
 * LLVM's scheduling models. And which table is for which CPU (models/cpus.txt).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct isa;
struct model;

#define MODEL_PORT_MAX 32
#define MODEL_USE_MAX 24

struct model_use {
	uint8_t port;
	float cycles;
};

struct model_insn {
	float uops, latency,
		throughput; /* throughput: cycles of each, if many wait for nothing else */
	struct model_use uses[MODEL_USE_MAX];
	unsigned use_count;
	bool known; /* false: the table has none like it, and what is usual is assumed */
};

/* What is usual for a CPU, where the machine itself cannot be measured; cycles, but for hz. */
struct model_usual {
	double hz, window /* instructions in flight */, l1, l2, l3, dram, walk, mispredict,
		division, store, forward, atomic, skid;
};

/* The table for a CPU, as base/cpu_id.h names it; a generic one of `isa` where it is not known. The caller's:
   model_close. */
struct err *model_open(const struct isa *isa, const char *cpu, struct model **out);
void model_close(struct model *model); /* NULL is fine */

/* "neoverse-v1", "generic-aarch64"; and what people call the CPU, NULL where it is not known. */
const char *model_name(const struct model *model);
const char *model_cpu(const struct model *model);
bool model_is_generic(const struct model *model);
const struct model_usual *model_usual(const struct model *model);
unsigned model_width(const struct model *model);
unsigned model_port_count(const struct model *model);

/* What is known of an instruction, by its text (isa/text.h). */
void model_find(const struct model *model, const char *text, struct model_insn *out);
