/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a few instructions in a row compute, as far as the dispatch of a switch
 * statement needs it: internal to isa/. tables_CPU.c feeds instructions in,
 * tables.c keeps what is known of registers, stack words and the last compare.
 *
 * A value that is not known has a number of its own. Copies, extensions and
 * sums with a constant keep the number, so that a compare of one copy bounds
 * all others.
 */
#include "isa/insn.h"

enum value_kind {
	VALUE_UNKNOWN, /* number `id`, plus `add` */
	VALUE_CONST,   /* `constant` */
	VALUE_SCALED,  /* constant + ((id + add) << shift): the address of a table's entry */
	VALUE_ENTRY,   /* what was loaded from entry id + add of the table at `constant` */
	VALUE_SUM,     /* base + (such an entry << shift) */
};

struct value {
	uint8_t kind;
	uint8_t size; /* of an entry, in bytes */
	uint8_t shift;
	bool is_signed;
	uint32_t id;
	uint32_t self; /* the number of the value as a whole, where it is not an unknown one */
	int64_t add;
	uint64_t limit; /* id + add is not above this, for its width; UINT64_MAX: no limit */
	uint64_t constant;
	uint64_t base;
};

#define EVAL_REGS 33
#define EVAL_BOUNDS 32
#define EVAL_WORDS 48

enum eval_condition {
	EVAL_NEVER_BOUND, /* says nothing about an upper bound */
	EVAL_ABOVE,
	EVAL_ABOVE_OR_EQUAL,
	EVAL_BELOW,
	EVAL_BELOW_OR_EQUAL,
	EVAL_GREATER, /* signed */
	EVAL_GREATER_OR_EQUAL,
	EVAL_LESS,
	EVAL_LESS_OR_EQUAL,
};

struct eval {
	const struct isa *isa;
	struct value regs[EVAL_REGS]; /* the last one is always zero */
	uint32_t next_id;

	struct {
		uint32_t id;
		int64_t add;
		uint64_t max;
		bool is_exact; /* unsigned, and no branch since has had a say in the value */
	} bounds[EVAL_BOUNDS]; /* the latest replace the oldest */
	unsigned bound_count;

	struct {
		struct value base;
		int64_t at;
		struct value holds;
	} words[EVAL_WORDS]; /* of memory, likewise */
	unsigned word_count;

	/* The last compare: of `left` with `right`. Where it was conditional, `otherwise` tells
	   which conditions hold when it was left out. */
	bool compared;
	struct value left;
	uint64_t right;
	uint16_t otherwise; /* a bit per eval_condition; 0: the compare was unconditional */
};

void eval_init(struct eval *e, const struct isa *isa);
struct value eval_fresh(struct eval *e, uint64_t limit);
struct value eval_constant(struct eval *e, uint64_t n);
/* `v` as an index, whatever is known of it. */
struct value eval_index(struct eval *e, struct value v);
/* The same where it is compared, or scaled once more. */
struct value eval_number(struct eval *e, struct value v);
/* `width`: of the addition, in bits. */
struct value eval_sum(struct eval *e, struct value a, struct value b, unsigned width);
struct value eval_plus(struct eval *e, struct value a, int64_t n);
struct value eval_shift_left(struct eval *e, struct value a, unsigned shift);
struct value eval_shift_right(struct eval *e, struct value a, unsigned shift, unsigned width);
struct value eval_and(struct eval *e, struct value a, uint64_t mask);
/* `a` cut to 1, 2 or 4 bytes and extended again. */
struct value eval_extend(struct eval *e, struct value a, unsigned size, bool is_signed);
/* `size` bytes at address `at`. */
struct value eval_load(struct eval *e, struct value at, unsigned size, bool is_signed);
void eval_store(struct eval *e, struct value at, struct value v);
void eval_compare(struct eval *e, struct value left, uint64_t right, uint16_t otherwise);
/* A branch went this way. EVAL_NEVER_BOUND: one on something else than the last compare. */
void eval_holds(struct eval *e, enum eval_condition condition);
enum eval_condition eval_negated(enum eval_condition condition);
/* Other ways come here, too. What is an address has been taken before, for all of them; a small number
   need not be the same. */
void eval_meet(struct eval *e);
/* Whatever instruction it is, by what the decoder says of it. */
void eval_apply(struct eval *e, const struct insn *insn);
/* Reads the table off the value that is jumped to. */
bool eval_table(const struct eval *e, struct value target, struct jump_table *out);
