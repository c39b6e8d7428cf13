/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions whose second operand is in their code. */
#include "trail/trail_aarch64.h"

/* The mask that a logical or bitfield instruction stands for. Returns false if there is none. */
static bool bit_mask(uint32_t w, bool immediate, uint64_t *whole, uint64_t *top)
{
	unsigned n = field(w, 22, 1), s = field(w, 10, 6), r = field(w, 16, 6);
	unsigned select = n << 6 | (~s & 63);
	if (!select)
		return false;
	unsigned length = 31 - (unsigned)__builtin_clz(select), size = 1u << length;
	if (!length)
		return false;
	unsigned levels = size - 1, ones = (s & levels) + 1, turn = r & levels;
	unsigned difference = (ones - 1 - turn) & levels;
	if (immediate && ones == size)
		return false;
	uint64_t element = ones == 64 ? UINT64_MAX : (1ull << ones) - 1;
	uint64_t all = size == 64 ? UINT64_MAX : (1ull << size) - 1;
	uint64_t high = difference == 63 ? UINT64_MAX : (1ull << (difference + 1)) - 1;
	if (turn)
		element = (element >> turn | element << (size - turn)) & all;
	for (; size < 64; size *= 2) {
		element |= element << size;
		high |= high << size;
	}
	*whole = element;
	*top = high;
	return true;
}

static bool add_immediate(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5);
	bool subtract = w >> 30 & 1, sets = w >> 29 & 1;
	uint64_t by = (uint64_t)field(w, 10, 12) << (field(w, 22, 1) ? 12 : 0);
	struct trail_value sum = aarch64_add(t, w, trail_get(t, n), trail_known(by), subtract);
	if (sets)
		aarch64_set(t, d, sum);
	else
		trail_set(t, d, sum);
	return true;
}

static bool logical_immediate(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), operation = field(w, 29, 2);
	bool wide = w >> 31;
	uint64_t mask, top;
	struct trail_value value = aarch64_get(t, field(w, 5, 5));
	if (!bit_mask(w, true, &mask, &top))
		return trail_stop(t, TRAIL_STRANGE);
	value.bits = narrow(aarch64_logical(operation, value.bits, mask), wide);
	if (operation == 3) {
		aarch64_set_flags(t, aarch64_flags_of(value.bits, wide), value.known);
		aarch64_set(t, d, value);
	} else {
		trail_set(t, d, value);
	}
	return true;
}

static bool move_wide(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), operation = field(w, 29, 2), by = 16 * field(w, 21, 2);
	struct trail_value value = trail_known((uint64_t)field(w, 5, 16) << by);
	if (operation == 1)
		return trail_stop(t, TRAIL_STRANGE);
	if (operation == 3) { /* the other bits stay */
		struct trail_value before = aarch64_get(t, d);
		value.bits |= before.bits & ~(0xffffull << by);
		value.known = before.known;
	} else if (operation == 0) {
		value.bits = ~value.bits;
	}
	value.bits = narrow(value.bits, w >> 31);
	aarch64_set(t, d, value);
	return true;
}

static bool bitfield(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), operation = field(w, 29, 2);
	unsigned r = field(w, 16, 6), s = field(w, 10, 6);
	bool wide = w >> 31;
	uint64_t mask, top;
	if (operation == 3 || wide != field(w, 22, 1) || !bit_mask(w, false, &mask, &top))
		return trail_stop(t, TRAIL_STRANGE);
	struct trail_value source = aarch64_get(t, field(w, 5, 5)), before = trail_known(0);
	if (operation == 1)
		before = aarch64_get(t, d);
	uint64_t turned = aarch64_shift(source.bits, 3, r, wide), above = before.bits;
	if (operation == 0) /* the sign */
		above = source.bits >> s & 1 ? UINT64_MAX : 0;
	uint64_t bottom = (before.bits & ~mask) | (turned & mask);
	aarch64_set(t, d,
		    (struct trail_value){narrow((above & ~top) | (bottom & top), wide),
					 source.known && before.known});
	return true;
}

static bool extract(struct trail *t, uint32_t w)
{
	unsigned by = field(w, 10, 6);
	bool wide = w >> 31;
	struct trail_value high = aarch64_get(t, field(w, 5, 5)),
			   low = aarch64_get(t, field(w, 16, 5));
	if (field(w, 29, 2) || field(w, 21, 1) || (!wide && by > 31))
		return trail_stop(t, TRAIL_STRANGE);
	low.bits = narrow(low.bits, wide);
	if (by)
		low.bits = narrow(low.bits >> by | high.bits << ((wide ? 64 : 32) - by), wide);
	low.known &= high.known;
	aarch64_set(t, field(w, 0, 5), low);
	return true;
}

/* Of a byte, or of a page. */
static bool address_nearby(struct trail *t, uint32_t w)
{
	uint64_t offset = (uint64_t)(signed_field(w, 5, 19) * 4 + field(w, 29, 2));
	aarch64_set(t, field(w, 0, 5),
		    trail_known(w >> 31 ? (t->pc & ~0xfffull) + (offset << 12) : t->pc + offset));
	return true;
}

bool aarch64_with_immediate(struct trail *t, uint32_t w)
{
	switch (field(w, 23, 3)) {
	case 0:
	case 1:
		return address_nearby(t, w);
	case 2:
		return add_immediate(t, w);
	case 4:
		return logical_immediate(t, w);
	case 5:
		return move_wide(t, w);
	case 6:
		return bitfield(t, w);
	case 7:
		return extract(t, w);
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
}
