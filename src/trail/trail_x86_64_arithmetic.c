/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, sums, products, quotients. */
#include "trail/trail_x86_64.h"

/* ---- flags ---- */

void x86_set_flags(struct trail *t, unsigned which, unsigned value, bool known, unsigned undefined)
{
	t->flags = (t->flags & ~(uint64_t)which) | (value & which);
	t->unknown_flags = known ? t->unknown_flags & ~which : t->unknown_flags | which;
	t->unknown_flags |= undefined;
}

unsigned x86_flags_of(uint64_t result, unsigned width)
{
	return (result >> (8 * width - 1) & 1 ? SF : 0) | (result ? 0 : ZF) |
	       (__builtin_parity((unsigned)result & 0xff) ? 0 : PF);
}

struct trail_value x86_holds(const struct trail *t, unsigned condition)
{
	/* The flags of each pair of conditions: one of them is set. Of the last two, SF and OF differ, or ZF is set. */
	static const uint16_t needs[8] = {OF, CF, ZF, CF | ZF, SF, PF, SF | OF, SF | OF | ZF};
	unsigned needed = needs[condition >> 1], set = (unsigned)t->flags & needed;
	bool holds = set;
	if (condition >> 1 >= 6)
		holds = !(set & SF) != !(set & OF) || set & ZF;
	return (struct trail_value){holds != (condition & 1), !(t->unknown_flags & needed)};
}

/* ---- sums ---- */

static unsigned flags_of_sum(struct trail_sum sum, uint64_t a, uint64_t b, bool subtracts,
			     unsigned width)
{
	return (sum.carried != subtracts ? CF : 0) | (sum.overflowed ? OF : 0) |
	       x86_flags_of(sum.bits, width) | ((a ^ b ^ sum.bits) & AF);
}

static struct trail_value add(struct trail *t, unsigned operation, struct trail_value a,
			      struct trail_value b, unsigned width)
{
	bool subtracts = operation == SUB || operation == SBB || operation == CMP, carry = false;
	bool known = a.known && b.known;
	if (operation == ADC || operation == SBB) {
		carry = t->flags & CF;
		known &= !(t->unknown_flags & CF);
	}
	/* a - b is a + ~b + 1, and what is borrowed is what is not carried. */
	uint64_t other = subtracts ? ~b.bits & trail_mask(width) : b.bits;
	struct trail_sum sum = trail_sum(a.bits, other, carry != subtracts, width);
	x86_set_flags(t, ALL, flags_of_sum(sum, a.bits, b.bits, subtracts, width), known, 0);
	return (struct trail_value){sum.bits, known};
}

struct trail_value x86_calculate(struct trail *t, unsigned operation, struct trail_value a,
				 struct trail_value b, unsigned width, bool same)
{
	if (same && (operation == XOR || operation == SUB || operation == CMP || operation == SBB))
		a = b = trail_known(0);
	struct trail_value result = {0, a.known && b.known};
	switch (operation) {
	case OR:
		result.bits = a.bits | b.bits;
		break;
	case AND:
		result.bits = a.bits & b.bits;
		break;
	case XOR:
		result.bits = a.bits ^ b.bits;
		break;
	default:
		return add(t, operation, a, b, width);
	}
	x86_set_flags(t, ALL & ~AF, x86_flags_of(result.bits, width), result.known, AF);
	return result;
}

bool x86_count_by_one(struct trail *t, const struct code *c, bool down)
{
	struct trail_value a;
	if (!x86_read(t, c, c->width, &a))
		return false;
	uint64_t by = down ? trail_mask(c->width) : 1;
	struct trail_sum sum = trail_sum(a.bits, by, false, c->width);
	x86_set_flags(t, ALL & ~CF, flags_of_sum(sum, a.bits, 1, down, c->width), a.known, 0);
	a.bits = sum.bits;
	return x86_write(t, c, c->width, a);
}

/* ---- products ---- */

static void set_flags_of_product(struct trail *t, bool more, bool known)
{
	x86_set_flags(t, CF | OF, more ? CF | OF : 0, known, SF | ZF | AF | PF);
}

bool x86_multiply(struct trail *t, const struct code *c, bool is_signed)
{
	unsigned width = c->width, bits = 8 * width;
	uint64_t low, high;
	struct trail_value a = x86_get(t, c, AX, width), b;
	bool more;
	if (!x86_read(t, c, width, &b))
		return false;
	bool known = a.known && b.known;
	if (is_signed) {
		__int128 p = (__int128)trail_signed(a.bits, width) * trail_signed(b.bits, width);
		low = (uint64_t)p & trail_mask(width);
		high = (uint64_t)(p >> bits) & trail_mask(width);
		more = p != trail_signed(low, width);
	} else {
		unsigned __int128 p = (unsigned __int128)a.bits * b.bits;
		low = (uint64_t)p & trail_mask(width);
		high = (uint64_t)(p >> bits) & trail_mask(width);
		more = high;
	}
	set_flags_of_product(t, more, known);
	if (width == 1) {
		x86_set(t, c, AX, 2, (struct trail_value){low | high << 8, known});
	} else {
		x86_set(t, c, AX, width, (struct trail_value){low, known});
		x86_set(t, c, DX, width, (struct trail_value){high, known});
	}
	return true;
}

bool x86_multiply_into(struct trail *t, const struct code *c, struct trail_value a,
		       struct trail_value b)
{
	unsigned width = c->width;
	__int128 p = (__int128)trail_signed(a.bits, width) * trail_signed(b.bits, width);
	struct trail_value r = {(uint64_t)p & trail_mask(width), a.known && b.known};
	set_flags_of_product(t, p != trail_signed(r.bits, width), r.known);
	x86_set_reg(t, c, r);
	return true;
}

/* ---- quotients ---- */

static bool divide_signed(struct trail *t, const struct code *c, uint64_t a, uint64_t by)
{
	int64_t x = trail_signed(a, c->width), y = trail_signed(by, c->width);
	if (y == -1)
		return trail_stop(t, TRAIL_STRANGE);
	x86_set(t, c, AX, c->width, trail_known((uint64_t)(x / y)));
	x86_set(t, c, DX, c->width, trail_known((uint64_t)(x % y)));
	return true;
}

static bool forget_quotient(struct trail *t, const struct code *c)
{
	x86_forget(t, AX);
	if (c->width > 1)
		x86_forget(t, DX);
	return true;
}

bool x86_divide(struct trail *t, const struct code *c, bool is_signed)
{
	unsigned width = c->width;
	struct trail_value by, low = x86_get(t, c, AX, width), high = x86_get(t, c, DX, width);
	if (!x86_read(t, c, width, &by))
		return false;
	t->unknown_flags |= ALL;
	if (width == 1 || !by.known || !low.known || !high.known)
		return forget_quotient(t, c);
	if (!by.bits)
		return trail_stop(t, TRAIL_SYSTEM);
	/* A long one is rare, and would need a function of its own. */
	bool negative = is_signed && low.bits >> (8 * width - 1);
	if (high.bits != (negative ? trail_mask(width) : 0)) {
		if (!is_signed && high.bits >= by.bits)
			return trail_stop(t, TRAIL_SYSTEM);
		return forget_quotient(t, c);
	}
	if (is_signed)
		return divide_signed(t, c, low.bits, by.bits);
	x86_set(t, c, AX, width, trail_known(low.bits / by.bits));
	x86_set(t, c, DX, width, trail_known(low.bits % by.bits));
	return true;
}
