/* SPDX-License-Identifier: Apache-2.0 */
/* Shifts, rotations and single bits. */
#include "trail/trail_x86_64.h"

/* ---- shifts ---- */

static uint64_t rotate(uint64_t a, bool right, unsigned by, unsigned bits)
{
	unsigned left = (right ? bits - by % bits : by) % bits;
	return (left ? a << left | a >> (bits - left) : a) & trail_mask(bits / 8);
}

/* `by` is not 0. *flags: the CF and OF that come of it. */
static uint64_t shifted(uint64_t a, unsigned operation, unsigned by, unsigned bits, unsigned *flags)
{
	uint64_t r;
	bool carry, over = false;
	switch (operation) {
	case ROL:
		r = rotate(a, false, by, bits);
		carry = r & 1;
		over = (r >> (bits - 1) ^ r) & 1;
		break;
	case ROR:
		r = rotate(a, true, by, bits);
		carry = r >> (bits - 1) & 1;
		over = (r >> (bits - 1) ^ r >> (bits - 2)) & 1;
		break;
	case SHR:
		r = by < bits ? a >> by : 0;
		carry = by <= bits && a >> (by - 1) & 1;
		over = a >> (bits - 1) & 1;
		break;
	case SAR:
		r = (uint64_t)(trail_signed(a, bits / 8) >> by) & trail_mask(bits / 8);
		carry = trail_signed(a, bits / 8) >> (by - 1) & 1;
		break;
	default:
		r = (by < bits ? a << by : 0) & trail_mask(bits / 8);
		carry = by <= bits && a >> (bits - by) & 1;
		over = (r >> (bits - 1) & 1) != carry;
		break;
	}
	*flags = (carry ? CF : 0) | (over ? OF : 0);
	return r;
}

/* A result of 4 bytes clears the upper half of its register, also if nothing is shifted. */
static bool shift_by_nothing(struct trail *t, const struct code *c, struct trail_value a)
{
	return c->mod != 3 || c->width != 4 || x86_write(t, c, c->width, a);
}

static bool shift(struct trail *t, const struct code *c, unsigned operation, unsigned by)
{
	unsigned width = c->width, bits = 8 * width, flags;
	struct trail_value a;
	by &= width == 8 ? 63 : 31;
	if (!x86_read(t, c, width, &a))
		return false;
	if (!by)
		return shift_by_nothing(t, c, a);
	if (operation == RCL || operation == RCR)
		return trail_stop(t, TRAIL_STRANGE);
	a.bits = shifted(a.bits, operation, by, bits, &flags);
	unsigned undefined = by > 1 ? OF : 0;
	if (operation == ROL || operation == ROR)
		x86_set_flags(t, CF | OF, flags, a.known, undefined);
	else
		x86_set_flags(t, ALL & ~AF, flags | x86_flags_of(a.bits, width), a.known,
			      undefined | AF);
	if (by >= bits && operation >= SHL)
		t->unknown_flags |= CF;
	return x86_write(t, c, width, a);
}

bool x86_shift(struct trail *t, const struct code *c, unsigned operation, struct trail_value by)
{
	if (by.known)
		return shift(t, c, operation, (unsigned)by.bits & 0xff);
	t->unknown_flags |= ALL;
	return x86_write(t, c, c->width, TRAIL_NOT_KNOWN);
}

bool x86_shift_double(struct trail *t, const struct code *c, bool left, struct trail_value by)
{
	unsigned width = c->width, bits = 8 * width;
	unsigned n = (unsigned)by.bits & (width == 8 ? 63 : 31);
	struct trail_value a, b = x86_get_reg(t, c);
	if (width < 4)
		return trail_stop(t, TRAIL_STRANGE);
	if (!x86_read(t, c, width, &a))
		return false;
	a.known &= by.known && b.known;
	if (by.known && !n)
		return shift_by_nothing(t, c, a);
	t->unknown_flags |= ALL;
	if (!n)
		a.bits = 0;
	else
		a.bits = left ? a.bits << n | b.bits >> (bits - n)
			      : a.bits >> n | b.bits << (bits - n);
	return x86_write(t, c, width, a);
}

/* ---- single bits ---- */

bool x86_bit_test(struct trail *t, const struct code *c, unsigned operation, struct trail_value bit)
{
	struct trail_value a;
	if (!x86_read(t, c, c->width, &a))
		return false;
	a.known &= bit.known;
	bit.bits &= 8 * c->width - 1;
	x86_set_flags(t, CF, a.bits >> bit.bits & 1 ? CF : 0, a.known, OF | SF | AF | PF);
	uint64_t one = 1ull << bit.bits;
	if (operation == BIT_TEST)
		return true;
	if (operation == BIT_SET)
		a.bits |= one;
	else if (operation == BIT_CLEAR)
		a.bits &= ~one;
	else
		a.bits ^= one;
	return x86_write(t, c, c->width, a);
}

bool x86_scan_bits(struct trail *t, struct code *c, bool from_top)
{
	struct trail_value a, place = TRAIL_NOT_KNOWN;
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	t->unknown_flags |= ALL;
	if (a.known && !c->repeats)
		x86_set_flags(t, ZF, a.bits ? 0 : ZF, true, 0);
	/* With F3, they are tzcnt and lzcnt on CPUs that have them, else bsf and bsr: the first two find the same. */
	if (a.known && a.bits && !from_top)
		place = trail_known((unsigned)__builtin_ctzll(a.bits));
	else if (a.known && a.bits && !c->repeats)
		place = trail_known(63 - (unsigned)__builtin_clzll(a.bits));
	x86_set_reg(t, c, place);
	return true;
}

bool x86_count_ones(struct trail *t, struct code *c)
{
	struct trail_value a;
	unsigned ones = 0;
	if (!c->repeats)
		return trail_stop(t, TRAIL_STRANGE);
	x86_take_operands(t, c, 0);
	if (!x86_read(t, c, c->width, &a))
		return false;
	x86_set_flags(t, ALL, a.bits ? 0 : ZF, a.known, 0);
	for (; a.bits; a.bits &= a.bits - 1)
		ones++;
	a.bits = ones;
	x86_set_reg(t, c, a);
	return true;
}
