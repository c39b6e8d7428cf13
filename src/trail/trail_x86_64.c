/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets x86-64's code, for programs as compilers make them: instructions for general registers, loads and
 * stores. Of vector registers and the old floating point, only the effects on others are known: memory that is stored,
 * results that come into general registers or flags and are not known. Flags that the CPU's manual leaves
 * undefined are not known, either. Instructions that repeat, and those of AVX-512, end a trail.
 *
 * Here are the opcodes of one byte, by the rows of the manual's map.
 */
#include "trail/trail_x86_64.h"

/* Of many pairs of opcodes, the even one is for bytes. */
static void choose_width(struct code *c, unsigned opcode)
{
	if (!(opcode & 1))
		c->width = 1;
}

static bool strange(struct trail *t)
{
	return trail_stop(t, TRAIL_STRANGE);
}

/* ---- arithmetic ---- */

/* Of the accumulator and a number. */
static struct trail_value calculate_with_ax(struct trail *t, struct code *c, unsigned operation)
{
	struct trail_value a = x86_get(t, c, AX, c->width);
	uint64_t b = x86_take_number(c, x86_number_size(c)) & trail_mask(c->width);
	return x86_calculate(t, operation, a, trail_known(b), c->width, false);
}

static bool arithmetic_with_ax(struct trail *t, struct code *c, unsigned operation)
{
	struct trail_value result = calculate_with_ax(t, c, operation);
	if (operation != CMP)
		x86_set(t, c, AX, c->width, result);
	return true;
}

/* The first 64 opcodes: eight operations with six forms of operands each. */
static bool arithmetic(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned operation = opcode >> 3, form = opcode & 7;
	struct trail_value a, b;
	choose_width(c, opcode);
	if (form >= 6)
		return strange(t);
	if (form >= 4)
		return arithmetic_with_ax(t, c, operation);
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	b = x86_get_reg(t, c);
	bool same = c->mod == 3 && c->reg == c->rm, into_rm = form < 2;
	a = x86_calculate(t, operation, into_rm ? a : b, into_rm ? b : a, c->width, same);
	if (operation == CMP)
		return true;
	if (into_rm)
		return x86_write(t, c, c->width, a);
	x86_set_reg(t, c, a);
	return true;
}

static bool arithmetic_with_number(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned bytes = opcode == 0x81 ? x86_number_size(c) : 1;
	struct trail_value a;
	if (opcode == 0x82)
		return strange(t);
	choose_width(c, opcode);
	x86_take_operands(t, c, bytes);
	unsigned operation = c->reg & 7;
	uint64_t b = x86_take_number(c, bytes) & trail_mask(c->width);
	if (!x86_read(t, c, c->width, &a))
		return false;
	a = x86_calculate(t, operation, a, trail_known(b), c->width, false);
	return operation == CMP || x86_write(t, c, c->width, a);
}

static bool test_with_number(struct trail *t, struct code *c)
{
	uint64_t b = x86_take_number(c, x86_number_size(c)) & trail_mask(c->width);
	struct trail_value a;
	if (!x86_read(t, c, c->width, &a))
		return false;
	x86_calculate(t, AND, a, trail_known(b), c->width, false);
	return true;
}

/* F6, F7: NOT, NEG, TEST, multiplications and divisions */
static bool group_three(struct trail *t, struct code *c)
{
	struct trail_value a;
	/* Only the first two have a number behind the address: that matters if it is relative to the PC. */
	bool has_number = c->at < c->size && !(c->bytes[c->at] >> 3 & 6);
	x86_take_operands(t, c, has_number ? x86_number_size(c) : 0);
	switch (c->reg & 7) {
	case 0:
	case 1:
		return test_with_number(t, c);
	case 2:
	case 3:
		if (!x86_read(t, c, c->width, &a))
			return false;
		if (c->reg & 1)
			a = x86_calculate(t, SUB, trail_known(0), a, c->width, false);
		else
			a.bits = ~a.bits;
		return x86_write(t, c, c->width, a);
	case 4:
	case 5:
		return x86_multiply(t, c, c->reg & 1);
	default:
		return x86_divide(t, c, c->reg & 1);
	}
}

static bool multiply_by_number(struct trail *t, struct code *c, unsigned bytes)
{
	struct trail_value a;
	x86_take_operands(t, c, bytes);
	uint64_t b = x86_take_number(c, bytes) & trail_mask(c->width);
	return x86_read(t, c, c->width, &a) && x86_multiply_into(t, c, a, trail_known(b));
}

/* C0, C1, D0 to D3: by a number, by one, by cl */
static bool shift(struct trail *t, struct code *c, unsigned opcode)
{
	bool by_number = opcode < 0xd0;
	struct trail_value by = opcode < 0xd2 ? trail_known(1) : x86_get(t, c, CX, 8);
	choose_width(c, opcode);
	x86_take_operands(t, c, by_number);
	if (by_number)
		by.bits = x86_take(c);
	return x86_shift(t, c, c->reg & 7, by);
}

/* ---- moves ---- */

bool x86_extend(struct trail *t, struct code *c, unsigned width, bool is_signed)
{
	struct trail_value a;
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, width, &a))
		return false;
	if (is_signed)
		a.bits = (uint64_t)trail_signed(a.bits, width);
	x86_set_reg(t, c, a);
	return true;
}

/* 98, 99: the accumulator is extended by its sign, into itself or into dx. */
static bool widen(struct trail *t, struct code *c, bool into_dx)
{
	struct trail_value a = x86_get(t, c, AX, c->width);
	int64_t value = trail_signed(a.bits, into_dx ? c->width : c->width / 2);
	if (into_dx)
		a.bits = value < 0 ? UINT64_MAX : 0;
	else
		a.bits = (uint64_t)value;
	x86_set(t, c, into_dx ? DX : AX, c->width, a);
	return true;
}

static bool exchange(struct trail *t, struct code *c)
{
	struct trail_value a, b = x86_get_reg(t, c);
	if (!x86_read(t, c, c->width, &a) || !x86_write(t, c, c->width, b))
		return false;
	x86_set_reg(t, c, a);
	return true;
}

static bool load(struct trail *t, struct code *c)
{
	struct trail_value a;
	if (!x86_read(t, c, c->width, &a))
		return false;
	x86_set_reg(t, c, a);
	return true;
}

static bool test(struct trail *t, struct code *c)
{
	struct trail_value a;
	if (!x86_read(t, c, c->width, &a))
		return false;
	x86_calculate(t, AND, a, x86_get_reg(t, c), c->width, false);
	return true;
}

static bool load_address(struct trail *t, struct code *c)
{
	c->thread = c->foreign = false;
	x86_take_operands(t, c, 0);
	if (c->mod == 3)
		return strange(t);
	x86_set_reg(t, c, c->address);
	return true;
}

static bool move_number(struct trail *t, struct code *c, unsigned opcode)
{
	choose_width(c, opcode);
	unsigned bytes = x86_number_size(c);
	x86_take_operands(t, c, bytes);
	uint64_t value = x86_take_number(c, bytes);
	if (c->reg & 7)
		return strange(t);
	return x86_write(t, c, c->width, trail_known(value));
}

static bool leave(struct trail *t, struct code *c)
{
	struct trail_value before;
	x86_set(t, c, SP, 8, x86_get(t, c, BP, 8));
	if (!x86_pop(t, c, &before))
		return false;
	x86_set(t, c, BP, 8, before);
	return true;
}

/* ---- rows ---- */

/* The register that an opcode names. */
static unsigned named(const struct code *c, unsigned opcode)
{
	return (opcode & 7) | (c->rex & 1) << 3;
}

static bool push_or_pop(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned n = named(c, opcode);
	struct trail_value value;
	if (c->small)
		return strange(t);
	if (opcode < 0x58)
		return x86_push(t, c, x86_get(t, c, n, 8));
	if (!x86_pop(t, c, &value))
		return false;
	x86_set(t, c, n, 8, value);
	return true;
}

static bool push_or_multiply(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0x63:
		return x86_extend(t, c, 4, true);
	case 0x68:
	case 0x6a:
		if (c->small)
			return strange(t);
		return x86_push(t, c, trail_known(x86_take_number(c, opcode == 0x68 ? 4 : 1)));
	case 0x69:
		return multiply_by_number(t, c, x86_number_size(c));
	case 0x6b:
		return multiply_by_number(t, c, 1);
	default:
		return strange(t);
	}
}

static bool two_operands(struct trail *t, struct code *c, unsigned opcode)
{
	if (opcode < 0x84)
		return arithmetic_with_number(t, c, opcode);
	if (opcode == 0x8d)
		return load_address(t, c);
	if (opcode >= 0x8c)
		return strange(t);
	choose_width(c, opcode);
	x86_take_operands(t, c, 0);
	switch (opcode >> 1 & 7) {
	case 2:
		return test(t, c);
	case 3:
		return exchange(t, c);
	case 4:
		return x86_write(t, c, c->width, x86_get_reg(t, c));
	default:
		return load(t, c);
	}
}

static bool exchange_or_widen(struct trail *t, struct code *c, unsigned opcode)
{
	if (opcode == 0x98 || opcode == 0x99)
		return widen(t, c, opcode & 1);
	if (opcode > 0x99)
		return opcode == 0x9b || strange(t); /* fwait */
	unsigned n = named(c, opcode);
	struct trail_value a = x86_get(t, c, n, c->width), b = x86_get(t, c, AX, c->width);
	if (n == AX)
		return true;
	x86_set(t, c, AX, c->width, a);
	x86_set(t, c, n, c->width, b);
	return true;
}

/* A8, A9; the others of this row are strings. */
static bool test_ax(struct trail *t, struct code *c, unsigned opcode)
{
	if (opcode != 0xa8 && opcode != 0xa9)
		return strange(t);
	choose_width(c, opcode);
	calculate_with_ax(t, c, AND);
	return true;
}

static bool number_into_register(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned width = opcode < 0xb8 ? 1 : c->width;
	x86_set(t, c, named(c, opcode), width, trail_known(x86_take_number(c, width)));
	return true;
}

static bool shift_return_or_move(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xc0:
	case 0xc1:
		return shift(t, c, opcode);
	case 0xc2:
		return x86_return(t, c, (unsigned)x86_take_number(c, 2) & 0xffff);
	case 0xc3:
		return x86_return(t, c, 0);
	case 0xc4:
	case 0xc5:
		return x86_with_vex(t, c, opcode);
	case 0xc6:
	case 0xc7:
		return move_number(t, c, opcode);
	case 0xc9:
		return leave(t, c);
	case 0xcc:
	case 0xcd:
		return trail_stop(t, TRAIL_SYSTEM);
	default:
		return strange(t);
	}
}

static bool shift_or_floating(struct trail *t, struct code *c, unsigned opcode)
{
	if (opcode >= 0xd8)
		return x86_floating(t, c, opcode);
	return opcode < 0xd4 ? shift(t, c, opcode) : strange(t);
}

static bool jump_or_call(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xe3:
		return x86_branch_if_cx_is_zero(t, c);
	case 0xe8:
		return x86_call(t, c);
	case 0xe9:
		return x86_jump(t, c, 4);
	case 0xeb:
		return x86_jump(t, c, 1);
	default:
		return strange(t);
	}
}

/* FE, FF */
static bool group_five(struct trail *t, struct code *c)
{
	struct trail_value value;
	x86_take_operands(t, c, 0);
	unsigned operation = c->reg & 7;
	if (operation < 2)
		return x86_count_by_one(t, c, operation);
	if (c->width == 1)
		return strange(t);
	if (operation == 2 || operation == 4)
		return x86_jump_indirect(t, c, operation == 2);
	if (operation != 6 || c->small)
		return strange(t);
	return x86_read(t, c, 8, &value) && x86_push(t, c, value);
}

static bool flags_and_groups(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode) {
	case 0xf4:
		return trail_stop(t, TRAIL_SYSTEM);
	case 0xf5:
		t->flags ^= CF;
		return true;
	case 0xf6:
	case 0xf7:
		choose_width(c, opcode);
		return group_three(t, c);
	case 0xf8:
	case 0xf9:
		x86_set_flags(t, CF, opcode & 1 ? CF : 0, true, 0);
		return true;
	case 0xfc:
		return true;
	case 0xfe:
	case 0xff:
		choose_width(c, opcode);
		return group_five(t, c);
	default:
		return strange(t);
	}
}

static bool one_byte(struct trail *t, struct code *c, unsigned opcode)
{
	switch (opcode >> 4) {
	case 0x5:
		return push_or_pop(t, c, opcode);
	case 0x6:
		return push_or_multiply(t, c, opcode);
	case 0x7:
		return x86_branch(t, c, opcode & 15, 1);
	case 0x8:
		return two_operands(t, c, opcode);
	case 0x9:
		return exchange_or_widen(t, c, opcode);
	case 0xa:
		return test_ax(t, c, opcode);
	case 0xb:
		return number_into_register(t, c, opcode);
	case 0xc:
		return shift_return_or_move(t, c, opcode);
	case 0xd:
		return shift_or_floating(t, c, opcode);
	case 0xe:
		return jump_or_call(t, c, opcode);
	case 0xf:
		return flags_and_groups(t, c, opcode);
	case 0x4: /* a second prefix REX */
		return strange(t);
	default:
		return opcode == 0x0f ? x86_two_bytes(t, c) : arithmetic(t, c, opcode);
	}
}

/* ---- an instruction ---- */

/* Returns false where no prefix is. */
static bool note_prefix(struct code *c, unsigned byte)
{
	switch (byte) {
	case 0x66:
		c->small = true;
		return true;
	case 0xf2:
		c->repeats_not = true;
		return true;
	case 0xf3:
		c->repeats = true;
		return true;
	case 0x64:
		c->thread = true;
		return true;
	case 0x65:
	case 0x67: /* half of an address: before a call, it is padding */
		c->foreign = true;
		return true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0xf0: /* nobody comes between */
		return true;
	default:
		return false;
	}
}

/* Returns the opcode. */
static unsigned take_prefixes(struct code *c)
{
	unsigned byte = x86_take(c);
	while (note_prefix(c, byte)) {
		if (c->at >= sizeof c->bytes)
			return 0xcc;
		byte = x86_take(c);
	}
	if ((byte & 0xf0) != 0x40)
		return byte;
	c->has_rex = true;
	c->rex = byte & 15;
	return x86_take(c);
}

static bool step(struct trail *t, struct code *c)
{
	unsigned opcode = take_prefixes(c);
	c->width = c->rex & 8 ? 8 : c->small ? 2 : 4;
	if (!one_byte(t, c, opcode))
		return false;
	/* What could not be read was taken for zeros. */
	if (c->at > c->size)
		return trail_stop(t, TRAIL_NO_CODE);
	t->pc = c->next ? c->next : t->pc + c->at;
	return true;
}

void trail_follow_x86_64(struct trail *t, uint32_t steps)
{
	trail_begin(t);
	for (; t->steps < steps; t->steps++) {
		struct code c = {.size = 0};
		uint32_t edges = t->edge_count;
		c.size = (unsigned)t->read_code(t->context, t->pc, c.bytes, 15);
		if (!c.size) {
			t->end = TRAIL_NO_CODE;
			return;
		}
		if (!step(t, &c)) {
			if (t->end == TRAIL_NO_CODE)
				t->edge_count = edges;
			return;
		}
	}
	t->end = TRAIL_LONG;
}
