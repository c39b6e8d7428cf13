/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files know of each other that explain a function. */
#include "explain/function.h"
#include "explain/model.h"

/* Loads, stores and atomic operations, whose samples fall behind them. */
static inline bool insn_may_wait_long(const struct explain_insn *i)
{
	const struct operands *o = &i->operands;
	return (o->load && !o->fixed) || (o->store && !o->stack) || o->class == OPERANDS_ATOMIC;
}

struct function_private {
	struct text *text;
	struct model_insn *costs; /* of each instruction */
	uint32_t *before; /* of each block: the one that mostly comes before it, or GRAPH_NONE */
	uint32_t *first, *count;            /* of each block: its instructions */
	uint32_t *come;                     /* edges, by the block that they go to */
	uint32_t *come_first;               /* of each block, and one more: the first of them */
	struct frequency_insn *sampled;     /* each instruction, for estimates */
	struct frequency_observation *seen; /* edges */
	size_t seen_count;
	double hot_lines, hot_pages, unseen_lines;
	/* Of each loop, and of the code in none: how many times longer its instructions take than the width of the CPU
	   allows, because an iteration takes a cycle at least. */
	double *slowness;
};

/* Instructions in the order in which they run, mostly. */
struct path {
	uint32_t *insns;
	size_t count;
};

#define PATH_MAX_INSNS 384

/* What comes before a block and the block itself, at most `most` instructions; the block is the last `own` of
   them. A call breaks it. */
void path_to(const struct function *f, uint32_t block, size_t most, struct path *out, size_t *own);
/* One iteration of a loop, from its header; false where it is too long or goes elsewhere. */
bool path_around(const struct function *f, uint32_t loop, size_t most, struct path *out);

enum pipeline_mode {
	PIPELINE_WHOLE,
	PIPELINE_CHAIN,     /* only what waits for each other */
	PIPELINE_FORWARDED, /* the same, and every store can be handed on */
	PIPELINE_UNDIVIDED, /* the same, and divisions are as quick as additions */
	PIPELINE_PORTS,     /* only what is busy */
};

struct pipeline_step {
	float waits; /* cycles for which the instruction is the oldest that is not finished */
	uint8_t why; /* enum cause */
};

/* Runs a path through the model. `out` has a step for each instruction. Returns cycles. */
double pipeline_run(const struct function *f, const struct path *path, enum pipeline_mode mode,
		    struct pipeline_step *out);

/* Cycles of a path that is run over and over, each time. */
double pipeline_steady(const struct function *f, const struct path *path, enum pipeline_mode mode);

/* The same: the cycles for which each instruction is the oldest that is not finished, each time, if loads take so many
   cycles longer than they do at best. */
void pipeline_waits(const struct function *f, const struct path *path, double late, double *waits);

/* The parts of the work, in their order. */
void samples_place(struct function *f);              /* samples to where they belong */
struct err *function_find_fixed(struct function *f); /* what the code asks for */
struct err *frequency_refine(struct function *f, struct frequency_input *input);
void stalls_find(struct function *f); /* cycles of one execution, and what is lost */
void culprits_find(struct function *f);
void loops_measure(struct function *f); /* what the code of loops asks for */
void loops_explain(struct function *f);
/* The constant that an instruction sets its register to; false where it does something else. */
bool function_constant(const struct function *f, size_t insn, int64_t *out);
/* How often a loop was come to from outside. */
double loop_entries(const struct function *f, uint32_t loop);
/* The store that this load may not be handed the value of; GRAPH_NONE: there is none. */
uint32_t forwarding_blocker(const struct function *f, uint32_t insn);
/* By how many bytes the address of a load or store moves in each iteration of its innermost loop; 0: it does not, INT64_MAX: not known. */
int64_t stride_of(const struct function *f, uint32_t insn);
