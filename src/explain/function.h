/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One function of a profile, explained: how often each of its instructions ran, how many cycles each took,
 * how many of these the code itself asks for, and what the others may have been lost to.
 *
 * Cycles are those of all executions together, unless they are said to be of one. A cause is a range: what
 * is surely lost to it, and what may be at most.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/frequency.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "isa/operands.h"

struct annotation;
struct err;
struct machine;
struct seen;
struct spots;
struct text;

enum cause {
	CAUSE_DCACHE,
	CAUSE_DTLB,
	CAUSE_MISPREDICT,
	CAUSE_ICACHE,
	CAUSE_ITLB,
	CAUSE_STORE,   /* the buffer of stores is full */
	CAUSE_FORWARD, /* a load waits for stores that cannot be handed on to it */
	CAUSE_DIVISION,
	CAUSE_PORTS,
	CAUSE_DEPENDENCY,
	CAUSE_LOCK,    /* atomic operations and fences */
	CAUSE_SHARING, /* a line that other threads write, too */
	CAUSE_PAGE_FAULT,
	CAUSE_STOLEN, /* the host ran something else meanwhile */
	CAUSE_UNEXPLAINED,
	CAUSE_EXECUTION, /* no loss: instructions that were done one after the other */
	CAUSES,
};

/* "d-cache"; and for people "data cache". */
const char *cause_name(enum cause cause);
const char *cause_title(enum cause cause);

struct range {
	double low, high;
	double likely; /* between them, if code ran as often as estimated */
};

struct range_sum { /* by cause */
	struct range of[CAUSES];
};

struct culprit {
	uint8_t cause;
	struct range cycles; /* of one execution of the instruction that waits */
	struct range part;   /* the same without chance, which sums of many have less of */
	uint32_t by;         /* the instruction that is to blame */
};

#define CULPRITS_MAX 6

struct explain_insn {
	uint64_t address;
	uint32_t block;       /* GRAPH_NONE: in none */
	uint8_t length, kind; /* enum insn_kind */
	struct operands operands;
	double samples;   /* as recorded */
	double faults;    /* samples in the kernel, for page faults of this instruction */
	bool shared;      /* several threads run it at once */
	double cycles;    /* where they belong */
	double frequency; /* executions */
	double cpi, fixed,
		lost; /* cycles of one execution: all, what the code asks for, the rest */
	double model; /* what the model says of `fixed` */
	struct range lost_range; /* chance included; lost_part: without it */
	struct range lost_part;
	uint8_t why; /* enum cause of what the code asks for */
	bool stalls; /* `lost` is more than chance */
	struct culprit culprits[CULPRITS_MAX];
	unsigned culprit_count;
};

struct explain_loop {
	uint32_t loop; /* of `loops` */
	uint64_t address;
	const char *file; /* NULL: not known */
	uint32_t line;
	double iterations, entries;
	double own;    /* cycles in it, but not in loops inside */
	double cycles; /* of one iteration, without loops inside */
	double ports, chain,
		width;    /* cycles of an iteration that each of them asks for; 0: not known */
	double forwarded; /* the chain, if all stores could be handed on to loads */
	double undivided; /* the chain, if divisions were as quick as additions */
	struct range_sum causes; /* of `own` */
	double lost;   /* cycles of `own` that the code does not ask for, and not at chance */
	uint8_t cause; /* the worst */
	uint32_t by;   /* the instruction that is to blame for most of it */
	double faster; /* how many times faster without the worst cause; 1: no faster */
};

struct function {
	const struct annotation *annotation;
	const struct machine *machine;
	uint32_t metric;
	double cycles_per_sample, samples, faults;
	double cycles; /* of samples and faults */
	struct graph graph;
	struct loops loops;
	struct frequency_result frequency;
	struct explain_insn *insns; /* as those of the annotation */
	size_t insn_count;
	struct explain_loop *loop_list; /* of `loops`, with the same index */
	struct range_sum causes;
	bool incomplete; /* indirect jumps whose targets are not known */
	struct function_private *own;
};

struct function_options {
	uint32_t metric;
	double cycles_per_sample;
	double hot_lines,
		hot_pages; /* of code that the whole program has samples in: does it fit into a cache? */
	double unseen_lines;       /* that likely ran, too, but without samples */
	const struct spots *spots; /* what else is known of instructions */
};

/* Reads its code and its samples, and explains nothing yet. Annotation and machine must outlive the result. */
struct err *function_read(const struct annotation *annotation, const struct machine *machine,
			  const struct function_options *options, struct function *out);
/* Learns from functions that were read what the instructions of their program cost. The result is the caller's:
   frequency_forget. */
struct err *function_learn(const struct function *const *functions, size_t count,
			   struct frequency_costs **out);
/* Takes the edges that were seen of it (explain/seen.h), for later estimates. */
struct err *function_see(struct function *f, const struct seen *seen);
/* Estimates its frequencies, for the weights of trails. The caller frees the result: frequency_free. */
struct err *function_guess(const struct function *f, const struct frequency_costs *costs,
			   struct frequency_result *out);
/* Tells them to `seen`. */
void function_weigh(const struct function *f, const struct frequency_result *result,
		    struct seen *seen);
/* Explains one that was read. */
struct err *function_explain(struct function *function, const struct frequency_costs *costs);
void function_free(struct function *function);

/* The text of an instruction; owned by the function, until the next call. */
const char *function_text(const struct function *function, size_t insn);

/* Which causes matter most: their numbers, the likeliest first; those whose ranges have a middle of less
   than `least` are left out. Returns how many. */
unsigned causes_order(const struct range_sum *sum, double least, uint8_t out[CAUSES]);

/* One sentence about a loop, and what would be won. */
struct buf;
void loop_verdict(const struct function *function, const struct explain_loop *loop, double whole,
		  struct buf *out);
