/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, sums and shifts. */
#include "trail/trail_aarch64.h"

/* ---- flags ---- */

void aarch64_set_flags(struct trail *t, unsigned nzcv, bool known)
{
	t->flags = (uint64_t)nzcv << FLAG_V;
	t->unknown_flags = known ? 0 : FLAGS;
}

unsigned aarch64_flags_of(uint64_t result, bool wide)
{
	return (unsigned)(result >> (wide ? 63 : 31) & 1) << 3 | (unsigned)!result << 2;
}

bool aarch64_holds(const struct trail *t, unsigned condition)
{
	unsigned f = (unsigned)(t->flags >> FLAG_V);
	bool n = f & 8, z = f & 4, c = f & 2, v = f & 1, result;
	switch (condition >> 1) {
	case 0:
		result = z;
		break;
	case 1:
		result = c;
		break;
	case 2:
		result = n;
		break;
	case 3:
		result = v;
		break;
	case 4:
		result = c && !z;
		break;
	case 5:
		result = n == v;
		break;
	case 6:
		result = n == v && !z;
		break;
	default:
		return true;
	}
	return result != (condition & 1);
}

/* ---- numbers ---- */

struct trail_value aarch64_add(struct trail *t, uint32_t w, struct trail_value a,
			       struct trail_value b, bool carry)
{
	bool wide = w >> 31, subtract = w >> 30 & 1, sets = w >> 29 & 1;
	if (subtract)
		b.bits = ~b.bits;
	a.known &= b.known;
	if (!sets) {
		a.bits = narrow(a.bits + b.bits + carry, wide);
		return a;
	}
	struct trail_sum sum = trail_sum(narrow(a.bits, wide), narrow(b.bits, wide), carry,
					 wide ? 8 : 4);
	aarch64_set_flags(t,
			  aarch64_flags_of(sum.bits, wide) | (unsigned)sum.carried << 1 |
				  (unsigned)sum.overflowed,
			  a.known);
	a.bits = sum.bits;
	return a;
}

uint64_t aarch64_shift(uint64_t bits, unsigned kind, unsigned by, bool wide)
{
	unsigned all = wide ? 64 : 32;
	by &= all - 1;
	bits = narrow(bits, wide);
	switch (kind) {
	case 0:
		return narrow(bits << by, wide);
	case 1:
		return bits >> by;
	case 2:
		return wide ? (uint64_t)((int64_t)bits >> by)
			    : (uint32_t)((int32_t)(uint32_t)bits >> by);
	default:
		return by ? narrow(bits >> by | bits << (all - by), wide) : bits;
	}
}

struct trail_value aarch64_extend(struct trail_value value, unsigned option, unsigned by)
{
	unsigned size = 1u << (option & 3);
	value.bits = option & 4 ? (uint64_t)trail_signed(value.bits, size)
				: value.bits & trail_mask(size);
	value.bits <<= by;
	return value;
}
