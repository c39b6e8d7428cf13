/* SPDX-License-Identifier: Apache-2.0 */
/* The opcodes that come after the byte 0F, by the rows of the manual's map. */
#include "trail/trail_x86_64.h"

static bool forget_all(struct trail *t, unsigned registers) /* a bit for each */
{
	for (unsigned n = 0; n < 8; n++)
		if (registers >> n & 1)
			x86_forget(t, n);
	return true;
}

static bool strange(struct trail *t)
{
	return trail_stop(t, TRAIL_STRANGE);
}

/* ---- what is done if a condition holds ---- */

static bool move_if(struct trail *t, struct code *c, unsigned condition)
{
	struct trail_value a, yes = x86_holds(t, condition);
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	if (!yes.known)
		x86_set_reg(t, c, TRAIL_NOT_KNOWN);
	else if (yes.bits)
		x86_set_reg(t, c, a);
	else if (c->width == 4) /* the upper half becomes zero anyway */
		x86_set_reg(t, c, x86_get_reg(t, c));
	return true;
}

static bool set_if(struct trail *t, struct code *c, unsigned condition)
{
	struct trail_value yes = x86_holds(t, condition);
	x86_take_operands(t, c, 0);
	return x86_write(t, c, 1, yes);
}

/* ---- exchanges ---- */

static bool compare_exchange(struct trail *t, struct code *c)
{
	struct trail_value a, accumulator = x86_get(t, c, AX, c->width);
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	if (!a.known || !accumulator.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	x86_calculate(t, CMP, accumulator, a, c->width, false);
	if (a.bits == accumulator.bits)
		return x86_write(t, c, c->width, x86_get_reg(t, c));
	x86_set(t, c, AX, c->width, a);
	return true;
}

static bool exchange_add(struct trail *t, struct code *c)
{
	struct trail_value a, sum;
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	sum = x86_calculate(t, ADD, a, x86_get_reg(t, c), c->width, false);
	x86_set_reg(t, c, a);
	return x86_write(t, c, c->width, sum);
}

static bool swap_bytes(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned n = (opcode & 7) | (c->rex & 1) << 3;
	struct trail_value a = x86_get(t, c, n, c->width);
	if (c->width < 4)
		return strange(t);
	a.bits = c->width == 8 ? __builtin_bswap64(a.bits) : __builtin_bswap32((uint32_t)a.bits);
	x86_set(t, c, n, c->width, a);
	return true;
}

static bool move_past_caches(struct trail *t, struct code *c)
{
	x86_take_operands(t, c, 0);
	if (c->mod == 3)
		return strange(t);
	return x86_write(t, c, c->width, x86_get_reg(t, c));
}

/* ---- the system ---- */

static bool system_or_prefetch(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0x05:
	case 0x0b:
		return trail_stop(t, TRAIL_SYSTEM);
	case 0x01: /* xgetbv */
		return x86_take(c) == 0xd0 ? forget_all(t, 1u << AX | 1u << DX) : strange(t);
	case 0x0d: /* prefetch */
		x86_take_operands(t, c, 0);
		return true;
	default:
		return strange(t);
	}
}

/* Hints and what does nothing; 1E is also rdsspq. */
static bool hint(struct trail *t, struct code *c, unsigned opcode)
{
	x86_take_operands(t, c, 0);
	if (opcode == 0x1e && c->repeats && c->mod == 3 && (c->reg & 7) == 1)
		x86_forget(t, c->rm);
	return true;
}

static bool state_of_cpu(struct trail *t, struct code *c)
{
	x86_take_operands(t, c, 0);
	unsigned operation = c->reg & 7;
	if (c->mod == 3) { /* fences */
		if (operation >= 5 && !c->repeats && !c->repeats_not && !c->small)
			return true;
		if (!c->repeats || operation >= 2)
			return strange(t);
		x86_forget(t, c->rm);
		return true;
	}
	if (operation == 2 || operation == 7)
		return true;
	return operation == 3 ? x86_write_vector(t, c, 4) : strange(t);
}

/* ---- rows ---- */

static bool clock_or_vectors(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0x31:
		return forget_all(t, 1u << AX | 1u << DX);
	case 0x38:
		return x86_vector(t, c, 2, x86_take(c));
	case 0x3a:
		return x86_vector(t, c, 3, x86_take(c));
	default:
		return strange(t);
	}
}

/* A3, AB, B3, BB */
static bool bit_of_register(struct trail *t, struct code *c, unsigned opcode)
{
	x86_take_operands(t, c, 0);
	if (c->mod != 3) /* the bit may be anywhere */
		return strange(t);
	return x86_bit_test(t, c, opcode >> 3 & 7, x86_get_reg(t, c));
}

static bool bit_by_number(struct trail *t, struct code *c)
{
	x86_take_operands(t, c, 1);
	if ((c->reg & 7) < BIT_TEST)
		return strange(t);
	return x86_bit_test(t, c, c->reg & 7, trail_known(x86_take(c)));
}

static bool multiply_into(struct trail *t, struct code *c)
{
	struct trail_value a;
	x86_take_operands(t, c, 0);
	return x86_read(t, c, c->width, &a) && x86_multiply_into(t, c, x86_get_reg(t, c), a);
}

static bool bits_and_states(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xa2: /* cpuid */
		return forget_all(t, 1u << AX | 1u << BX | 1u << CX | 1u << DX);
	case 0xa3:
	case 0xab:
		return bit_of_register(t, c, opcode);
	case 0xa4:
	case 0xac:
		x86_take_operands(t, c, 1);
		return x86_shift_double(t, c, opcode == 0xa4, trail_known(x86_take(c)));
	case 0xa5:
	case 0xad:
		x86_take_operands(t, c, 0);
		return x86_shift_double(t, c, opcode == 0xa5, x86_get(t, c, CX, 8));
	case 0xae:
		return state_of_cpu(t, c);
	case 0xaf:
		return multiply_into(t, c);
	default:
		return strange(t);
	}
}

static bool bits_and_extensions(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xb0:
		c->width = 1;
		return compare_exchange(t, c);
	case 0xb1:
		return compare_exchange(t, c);
	case 0xb3:
	case 0xbb:
		return bit_of_register(t, c, opcode);
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return x86_extend(t, c, opcode & 1 ? 2 : 1, opcode & 8);
	case 0xb8:
		return x86_count_ones(t, c);
	case 0xba:
		return bit_by_number(t, c);
	case 0xbc:
	case 0xbd:
		return x86_scan_bits(t, c, opcode & 1);
	default:
		return strange(t);
	}
}

static bool exchanges(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xc0:
		c->width = 1;
		return exchange_add(t, c);
	case 0xc1:
		return exchange_add(t, c);
	case 0xc2:
	case 0xc4 ... 0xc6:
		return x86_vector(t, c, 1, opcode);
	case 0xc3:
		return move_past_caches(t, c);
	case 0xc7:
		return strange(t);
	default:
		return swap_bytes(t, c, opcode);
	}
}

bool x86_two_bytes(struct trail *t, struct code *c)
{
	unsigned opcode = x86_take(c);
	switch (opcode >> 4) {
	case 0x0:
		return system_or_prefetch(t, c, opcode);
	case 0x1:
		return opcode < 0x18 ? x86_vector(t, c, 1, opcode) : hint(t, c, opcode);
	case 0x2:
		return opcode < 0x28 ? strange(t) : x86_vector(t, c, 1, opcode);
	case 0x3:
		return clock_or_vectors(t, c, opcode);
	case 0x4:
		return move_if(t, c, opcode & 15);
	case 0x7:
		if (opcode == 0x77) /* emms */
			return true;
		return opcode >= 0x78 && opcode < 0x7c ? strange(t) : x86_vector(t, c, 1, opcode);
	case 0x8:
		return x86_branch(t, c, opcode & 15, 4);
	case 0x9:
		return set_if(t, c, opcode & 15);
	case 0xa:
		return bits_and_states(t, c, opcode);
	case 0xb:
		return bits_and_extensions(t, c, opcode);
	case 0xc:
		return exchanges(t, c, opcode);
	default: /* 5, 6, D, E, F */
		return x86_vector(t, c, 1, opcode);
	}
}
