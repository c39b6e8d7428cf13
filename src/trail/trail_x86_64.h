/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of x86-64's interpreter share. Functions that return a bool return false where the trail ends.
 */
#include "trail/trail_x86_64_operands.h"

#define CF 1u
#define PF 4u
#define AF 16u
#define ZF 64u
#define SF 128u
#define OF 2048u
#define ALL (CF | PF | AF | ZF | SF | OF)

enum { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };           /* operations on two numbers */
enum { ROL, ROR, RCL, RCR, SHL, SHR, SAL, SAR };          /* shifts and rotations */
enum { BIT_TEST = 4, BIT_SET, BIT_CLEAR, BIT_TURN_OVER }; /* what is done with a bit */

/* ---- flags and arithmetic ---- */

/* Sets those of `which` and makes those of `undefined` unknown. */
void x86_set_flags(struct trail *t, unsigned which, unsigned value, bool known, unsigned undefined);
/* SF, ZF and PF of a result. */
unsigned x86_flags_of(uint64_t result, unsigned width);
/* Whether a condition holds. */
struct trail_value x86_holds(const struct trail *t, unsigned condition);

/* ADD to CMP, with flags. `same`: both operands are the same register. */
struct trail_value x86_calculate(struct trail *t, unsigned operation, struct trail_value a,
				 struct trail_value b, unsigned width, bool same);
/* Instructions whose operands are taken. */
bool x86_count_by_one(struct trail *t, const struct code *c, bool down);
bool x86_multiply(struct trail *t, const struct code *c, bool is_signed); /* ax, dx = ax * rm */
bool x86_divide(struct trail *t, const struct code *c, bool is_signed);
bool x86_multiply_into(struct trail *t, const struct code *c, struct trail_value a,
		       struct trail_value b); /* reg = a * b */

/* ---- bits ---- */

bool x86_shift(struct trail *t, const struct code *c, unsigned operation, struct trail_value by);
bool x86_shift_double(struct trail *t, const struct code *c, bool left, struct trail_value by);
bool x86_bit_test(struct trail *t, const struct code *c, unsigned operation,
		  struct trail_value bit);
/* These take their operands, as those below do. */
bool x86_scan_bits(struct trail *t, struct code *c, bool from_top);
bool x86_count_ones(struct trail *t, struct code *c);

/* ---- parts of the opcode maps ---- */

bool x86_branch(struct trail *t, struct code *c, unsigned condition, unsigned bytes);
bool x86_jump(struct trail *t, struct code *c, unsigned bytes);
bool x86_call(struct trail *t, struct code *c);
bool x86_return(struct trail *t, struct code *c, unsigned drops);
bool x86_branch_if_cx_is_zero(struct trail *t, struct code *c);
/* A jump or a call to what the operand says. */
bool x86_jump_indirect(struct trail *t, struct code *c, bool is_call);

bool x86_extend(struct trail *t, struct code *c, unsigned width, bool is_signed);
bool x86_two_bytes(struct trail *t, struct code *c); /* after 0F */
/* Of vectors. `map`: 1 for 0F, 2 for 0F 38, 3 for 0F 3A. */
bool x86_vector(struct trail *t, struct code *c, unsigned map, unsigned opcode);
bool x86_with_vex(struct trail *t, struct code *c, unsigned opcode);
/* The old floating point. */
bool x86_floating(struct trail *t, struct code *c, unsigned opcode);
