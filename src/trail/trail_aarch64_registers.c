/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose operands are general registers. */
#include "trail/trail_aarch64.h"

/* ---- sums, logic, conditions ---- */

static struct trail_value shifted_operand(const struct trail *t, uint32_t w)
{
	struct trail_value m = aarch64_get(t, field(w, 16, 5));
	m.bits = aarch64_shift(m.bits, field(w, 22, 2), field(w, 10, 6), w >> 31);
	return m;
}

static bool logical_register(struct trail *t, uint32_t w)
{
	unsigned operation = field(w, 29, 2);
	bool wide = w >> 31;
	struct trail_value a = aarch64_get(t, field(w, 5, 5)), b = shifted_operand(t, w);
	if (field(w, 21, 1))
		b.bits = ~b.bits;
	a.bits = narrow(aarch64_logical(operation, a.bits, b.bits), wide);
	a.known &= b.known;
	if (operation == 3)
		aarch64_set_flags(t, aarch64_flags_of(a.bits, wide), a.known);
	aarch64_set(t, field(w, 0, 5), a);
	return true;
}

static bool add_shifted(struct trail *t, uint32_t w)
{
	bool subtract = w >> 30 & 1;
	struct trail_value a = aarch64_get(t, field(w, 5, 5));
	aarch64_set(t, field(w, 0, 5), aarch64_add(t, w, a, shifted_operand(t, w), subtract));
	return true;
}

static bool add_extended(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5);
	bool subtract = w >> 30 & 1, sets = w >> 29 & 1;
	struct trail_value a = trail_get(t, field(w, 5, 5)), b = aarch64_get(t, field(w, 16, 5));
	b = aarch64_extend(b, field(w, 13, 3), field(w, 10, 3));
	a = aarch64_add(t, w, a, b, subtract);
	if (sets)
		aarch64_set(t, d, a);
	else
		trail_set(t, d, a);
	return true;
}

static bool add_carry(struct trail *t, uint32_t w)
{
	struct trail_value a = aarch64_get(t, field(w, 5, 5)), b = aarch64_get(t, field(w, 16, 5));
	a.known &= !t->unknown_flags;
	aarch64_set(t, field(w, 0, 5), aarch64_add(t, w, a, b, t->flags >> 29 & 1));
	return true;
}

static bool compare_if(struct trail *t, uint32_t w)
{
	unsigned m = field(w, 16, 5);
	bool subtract = w >> 30 & 1, immediate = w >> 11 & 1;
	if (!field(w, 29, 1) || field(w, 10, 1) || field(w, 4, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (t->unknown_flags)
		return true; /* they stay unknown */
	if (!aarch64_holds(t, field(w, 12, 4))) {
		aarch64_set_flags(t, field(w, 0, 4), true);
		return true;
	}
	aarch64_add(t, w, aarch64_get(t, field(w, 5, 5)),
		    immediate ? trail_known(m) : aarch64_get(t, m), subtract);
	return true;
}

static bool choose(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5);
	bool wide = w >> 31, invert = w >> 30 & 1, increment = w >> 10 & 1;
	struct trail_value value = aarch64_get(t, field(w, 5, 5));
	if (field(w, 29, 1) || field(w, 11, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (t->unknown_flags) {
		aarch64_set(t, d, TRAIL_NOT_KNOWN);
		return true;
	}
	if (!aarch64_holds(t, field(w, 12, 4))) {
		value = aarch64_get(t, field(w, 16, 5));
		value.bits = (invert ? ~value.bits : value.bits) + increment;
	}
	value.bits = narrow(value.bits, wide);
	aarch64_set(t, d, value);
	return true;
}

/* ---- one source ---- */

static uint64_t reverse_bytes(uint64_t value, unsigned size) /* in each part of so many bytes */
{
	value = __builtin_bswap64(value);
	if (size == 8)
		return value;
	if (size == 4)
		return value >> 32 | value << 32;
	value = value >> 32 | value << 32;
	return (value >> 16 & 0x0000ffff0000ffffull) | (value & 0x0000ffff0000ffffull) << 16;
}

static uint64_t reverse_bits(uint64_t value)
{
	value = (value >> 1 & 0x5555555555555555ull) | (value & 0x5555555555555555ull) << 1;
	value = (value >> 2 & 0x3333333333333333ull) | (value & 0x3333333333333333ull) << 2;
	value = (value >> 4 & 0x0f0f0f0f0f0f0f0full) | (value & 0x0f0f0f0f0f0f0f0full) << 4;
	return __builtin_bswap64(value);
}

static unsigned leading_zeros(uint64_t value, bool wide)
{
	if (!value)
		return wide ? 64 : 32;
	return (unsigned)__builtin_clzll(value) - (wide ? 0 : 32);
}

static bool one_source(struct trail *t, uint32_t w)
{
	bool wide = w >> 31;
	struct trail_value value = aarch64_get(t, field(w, 5, 5));
	uint64_t a = narrow(value.bits, wide);
	unsigned operation = field(w, 10, 6);
	if (field(w, 29, 1) || field(w, 16, 5) || operation > 5)
		return trail_stop(t, TRAIL_STRANGE);
	if (operation == 0)
		a = reverse_bits(a) >> (wide ? 0 : 32);
	else if (operation < 4)
		a = reverse_bytes(a, 1u << operation);
	else if (operation == 4)
		a = leading_zeros(a, wide);
	else /* those like the sign, without it */
		a = leading_zeros(narrow(a ^ aarch64_shift(a, 2, 1, wide), wide), wide) - 1;
	value.bits = narrow(a, wide);
	aarch64_set(t, field(w, 0, 5), value);
	return true;
}

/* ---- two and three sources ---- */

static uint64_t divide(uint64_t a, uint64_t b, bool is_signed, bool wide)
{
	if (!b)
		return 0;
	if (!is_signed)
		return a / b;
	int64_t x = wide ? (int64_t)a : (int32_t)(uint32_t)a;
	int64_t y = wide ? (int64_t)b : (int32_t)(uint32_t)b;
	return narrow(y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y), wide);
}

static bool two_sources(struct trail *t, uint32_t w)
{
	unsigned operation = field(w, 10, 6);
	bool wide = w >> 31;
	struct trail_value a = aarch64_get(t, field(w, 5, 5)), b = aarch64_get(t, field(w, 16, 5));
	a.bits = narrow(a.bits, wide);
	b.bits = narrow(b.bits, wide);
	a.known &= b.known;
	if (field(w, 29, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (operation == 2 || operation == 3)
		a.bits = divide(a.bits, b.bits, operation == 3, wide);
	else if (operation >= 8 && operation <= 11)
		a.bits = aarch64_shift(a.bits, operation - 8, (unsigned)b.bits, wide);
	else if (operation >= 16 && operation < 24) /* checksums */
		a = TRAIL_NOT_KNOWN;
	else
		return trail_stop(t, TRAIL_STRANGE);
	aarch64_set(t, field(w, 0, 5), a);
	return true;
}

/* What is added to the third source, or subtracted from it. Returns false if there is no such operation. */
static bool multiply(uint64_t x, uint64_t y, unsigned operation, uint64_t *product)
{
	switch (operation) {
	case 0:
		*product = x * y;
		return true;
	case 1:
		*product = (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
		return true;
	case 5:
		*product = (uint64_t)(uint32_t)x * (uint32_t)y;
		return true;
	case 2: /* the upper half; a third source is not looked at */
		*product = (uint64_t)((__int128)(int64_t)x * (int64_t)y >> 64);
		return true;
	case 6:
		*product = (uint64_t)((unsigned __int128)x * y >> 64);
		return true;
	default:
		return false;
	}
}

static bool three_sources(struct trail *t, uint32_t w)
{
	unsigned operation = field(w, 21, 3);
	bool wide = w >> 31, subtract = w >> 15 & 1, upper = operation == 2 || operation == 6;
	struct trail_value x = aarch64_get(t, field(w, 5, 5)), y = aarch64_get(t, field(w, 16, 5));
	struct trail_value sum = upper ? trail_known(0) : aarch64_get(t, field(w, 10, 5));
	uint64_t product;
	if (field(w, 29, 2) || (operation && !wide) ||
	    !multiply(x.bits, y.bits, operation, &product))
		return trail_stop(t, TRAIL_STRANGE);
	sum.bits = narrow(subtract && !upper ? sum.bits - product : sum.bits + product, wide);
	sum.known &= x.known && y.known;
	aarch64_set(t, field(w, 0, 5), sum);
	return true;
}

/* ---- all ---- */

bool aarch64_with_registers(struct trail *t, uint32_t w)
{
	if ((w & 0x1f000000) == 0x0a000000)
		return logical_register(t, w);
	if ((w & 0x1f000000) == 0x0b000000)
		return w >> 21 & 1 ? add_extended(t, w) : add_shifted(t, w);
	if ((w & 0x1f000000) == 0x1b000000)
		return three_sources(t, w);
	if ((w & 0x1fe0fc00) == 0x1a000000)
		return add_carry(t, w);
	if ((w & 0x1fe00000) == 0x1a400000)
		return compare_if(t, w);
	if ((w & 0x1fe00000) == 0x1a800000)
		return choose(t, w);
	if ((w & 0x5fe00000) == 0x5ac00000)
		return one_source(t, w);
	if ((w & 0x5fe00000) == 0x1ac00000)
		return two_sources(t, w);
	return trail_stop(t, TRAIL_STRANGE);
}
