/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An instruction of x86-64, and what it works on. Functions that return a bool return false where the trail ends.
 */
#include "trail/interpret.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI }; /* registers, by the CPU's numbers */

struct code { /* an instruction */
	uint8_t bytes[16];
	unsigned size, at; /* bytes that could be read; those that are used */
	unsigned rex;      /* WRXB */
	bool has_rex, small /* 66 */, repeats /* F3 */, repeats_not /* F2 */;
	bool thread, foreign; /* the address is relative to fs; to something that is not known */
	bool has_vex, vex_length; /* VEX.L: vectors of 32 bytes, not 16 */
	unsigned vex_register;    /* VEX.vvvv: one more operand */
	unsigned width;           /* of operands, in bytes */
	unsigned mod, reg, rm;
	struct trail_value address; /* of the operand in memory */
	uint64_t next;              /* where it leads; 0: to what comes after it */
};

/* The next byte; a number of so many bytes, extended by its sign. */
unsigned x86_take(struct code *c);
uint64_t x86_take_number(struct code *c, unsigned bytes);
/* The size of a number in code that is an operand of c->width. */
static inline unsigned x86_number_size(const struct code *c)
{
	return c->width > 4 ? 4 : c->width;
}
/* The mod, reg and rm fields, and the address that they stand for. `after`: bytes of the instruction that come after
   the address. */
void x86_take_operands(const struct trail *t, struct code *c, unsigned after);

/* A general register, by the CPU's number. */
struct trail_value x86_get(const struct trail *t, const struct code *c, unsigned n, unsigned width);
void x86_set(struct trail *t, const struct code *c, unsigned n, unsigned width,
	     struct trail_value value);
void x86_forget(struct trail *t, unsigned n);
/* The operand that is a register or memory. */
bool x86_read(struct trail *t, const struct code *c, unsigned width, struct trail_value *value);
bool x86_write(struct trail *t, const struct code *c, unsigned width, struct trail_value value);
/* Something of a vector comes there. */
bool x86_write_vector(struct trail *t, const struct code *c, unsigned bytes);
/* The operand that is always a register. */
static inline struct trail_value x86_get_reg(const struct trail *t, const struct code *c)
{
	return x86_get(t, c, c->reg, c->width);
}
static inline void x86_set_reg(struct trail *t, const struct code *c, struct trail_value value)
{
	x86_set(t, c, c->reg, c->width, value);
}
bool x86_push(struct trail *t, const struct code *c, struct trail_value value);
bool x86_pop(struct trail *t, const struct code *c, struct trail_value *value);
