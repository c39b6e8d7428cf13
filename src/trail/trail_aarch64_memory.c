/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores. */
#include "trail/trail_aarch64.h"

static struct trail_value plus(struct trail_value address, uint64_t by)
{
	address.bits += by;
	return address;
}

/* Into a general register. `extends`: 0 none, 1 to 64 bits, 2 to 32 bits. */
static bool load(struct trail *t, unsigned d, struct trail_value address, unsigned size,
		 unsigned extends)
{
	struct trail_value value;
	if (!trail_load(t, address, size, &value))
		return false;
	if (extends)
		value.bits = narrow((uint64_t)trail_signed(value.bits, size), extends == 1);
	aarch64_set(t, d, value);
	return true;
}

static bool store(struct trail *t, unsigned s, struct trail_value address, unsigned size)
{
	return trail_store(t, address, size, aarch64_get(t, s));
}

/* ---- one register, or two ---- */

/* By the size and opc fields, as most loads and stores have them. */
static bool move_one(struct trail *t, uint32_t w, struct trail_value address)
{
	unsigned size = field(w, 30, 2), opc = field(w, 22, 2), r = field(w, 0, 5);
	if (field(w, 26, 1)) {
		unsigned bytes = opc & 2 ? 16 : 1u << size;
		return opc & 1 || trail_store_unknown(t, address, bytes);
	}
	switch (opc) {
	case 0:
		return store(t, r, address, 1u << size);
	case 1:
		return load(t, r, address, 1u << size, 0);
	case 2:
		return size == 3 || load(t, r, address, 1u << size, 1); /* or a prefetch */
	default:
		return size < 2 ? load(t, r, address, 1u << size, 2) : trail_stop(t, TRAIL_STRANGE);
	}
}

/* The scale of an offset is the operand's size. */
static unsigned scale_of(uint32_t w)
{
	return field(w, 26, 1) && field(w, 23, 1) ? 4 : field(w, 30, 2);
}

static bool move_at_offset(struct trail *t, uint32_t w)
{
	uint64_t by = (uint64_t)field(w, 10, 12) << scale_of(w);
	return move_one(t, w, plus(trail_get(t, field(w, 5, 5)), by));
}

static bool move_at_register(struct trail *t, uint32_t w)
{
	struct trail_value base = trail_get(t, field(w, 5, 5)),
			   by = aarch64_get(t, field(w, 16, 5));
	by = aarch64_extend(by, field(w, 13, 3), field(w, 12, 1) ? scale_of(w) : 0);
	base.known &= by.known;
	return move_one(t, w, plus(base, by.bits));
}

/* With a small offset; the base may be changed before or after. */
static bool move_indexed(struct trail *t, uint32_t w)
{
	unsigned n = field(w, 5, 5), mode = field(w, 10, 2);
	struct trail_value base = trail_get(t, n);
	struct trail_value moved = plus(base, (uint64_t)signed_field(w, 12, 9));
	if (mode == 2)
		return trail_stop(t, TRAIL_STRANGE);
	if (!move_one(t, w, mode == 1 ? base : moved))
		return false;
	if (mode)
		trail_set(t, n, moved);
	return true;
}

/* Ordered, with an offset. */
static bool move_ordered(struct trail *t, uint32_t w)
{
	return move_one(t, w, plus(trail_get(t, field(w, 5, 5)), (uint64_t)signed_field(w, 12, 9)));
}

static bool move_pair(struct trail *t, uint32_t w)
{
	unsigned a = field(w, 0, 5), b = field(w, 10, 5), n = field(w, 5, 5);
	unsigned opc = field(w, 30, 2), mode = field(w, 23, 2);
	bool vector = w >> 26 & 1, is_load = w >> 22 & 1, done;
	unsigned size = vector ? 4u << opc : opc == 2 ? 8 : 4;
	struct trail_value base = trail_get(t, n);
	struct trail_value moved = plus(base, (uint64_t)(signed_field(w, 15, 7) * (int)size));
	struct trail_value address = mode == 1 ? base : moved;
	if (opc == 3 || (!vector && opc == 1 && !is_load))
		return trail_stop(t, TRAIL_STRANGE);
	if (vector)
		done = is_load || trail_store_unknown(t, address, 2 * size);
	else if (is_load)
		done = load(t, a, address, size, opc == 1) &&
		       load(t, b, plus(address, size), size, opc == 1);
	else
		done = store(t, a, address, size) && store(t, b, plus(address, size), size);
	if (done && mode & 1)
		trail_set(t, n, moved);
	return done;
}

static bool load_literal(struct trail *t, uint32_t w)
{
	unsigned opc = field(w, 30, 2), d = field(w, 0, 5);
	uint64_t address = t->pc + (uint64_t)(signed_field(w, 5, 19) * 4);
	if (field(w, 26, 1) || opc == 3)
		return true;
	return load(t, d, trail_known(address), opc == 1 ? 8 : 4, opc == 2);
}

/* ---- exclusive, ordered and atomic ones: nobody comes between ---- */

static bool compare_and_swap(struct trail *t, uint32_t w, unsigned size)
{
	unsigned s = field(w, 16, 5);
	struct trail_value address = trail_get(t, field(w, 5, 5)), wanted = aarch64_get(t, s),
			   value;
	if (!address.known || !wanted.known)
		return trail_stop(t, TRAIL_MEMORY);
	if (!trail_load(t, address, size, &value))
		return false;
	if (!value.known)
		return trail_stop(t, TRAIL_MEMORY);
	if (value.bits == (wanted.bits & trail_mask(size)) &&
	    !store(t, field(w, 0, 5), address, size))
		return false;
	aarch64_set(t, s, value);
	return true;
}

static bool move_exclusive(struct trail *t, uint32_t w)
{
	unsigned size = 1u << field(w, 30, 2), r = field(w, 0, 5);
	bool ordered = w >> 23 & 1, is_load = w >> 22 & 1, more = w >> 21 & 1;
	struct trail_value address = trail_get(t, field(w, 5, 5));
	if (more)
		return ordered ? compare_and_swap(t, w, size) : trail_stop(t, TRAIL_STRANGE);
	if (is_load)
		return load(t, r, address, size, 0);
	if (!store(t, r, address, size))
		return false;
	if (!ordered) /* it could be stored */
		aarch64_set(t, field(w, 16, 5), trail_known(0));
	return true;
}

static uint64_t changed(unsigned operation, uint64_t a, uint64_t b, unsigned size)
{
	unsigned up = 64 - 8 * size;
	bool less = (int64_t)(a << up) < (int64_t)(b << up), below = a << up < b << up;
	switch (operation) {
	case 0:
		return a + b;
	case 1:
		return a & ~b;
	case 2:
		return a ^ b;
	case 3:
		return a | b;
	case 4:
		return less ? b : a;
	case 5:
		return less ? a : b;
	case 6:
		return below ? b : a;
	default:
		return below ? a : b;
	}
}

static bool change_memory(struct trail *t, uint32_t w)
{
	unsigned size = 1u << field(w, 30, 2), r = field(w, 0, 5), operation = field(w, 12, 3);
	bool swap = w >> 15 & 1;
	struct trail_value address = trail_get(t, field(w, 5, 5)), value;
	struct trail_value by = aarch64_get(t, field(w, 16, 5));
	if (field(w, 26, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (swap && operation == 4) /* ldapr */
		return load(t, r, address, size, 0);
	if ((swap && operation) || !address.known)
		return trail_stop(t, swap ? TRAIL_STRANGE : TRAIL_MEMORY);
	if (!trail_load(t, address, size, &value))
		return false;
	if (!swap) {
		by.bits = changed(operation, value.bits, by.bits, size);
		by.known &= value.known;
	}
	if (!trail_store(t, address, size, by))
		return false;
	aarch64_set(t, r, value);
	return true;
}

/* ---- several vectors ---- */

static bool move_elements(struct trail *t, uint32_t w) /* one of each */
{
	unsigned n = field(w, 5, 5);
	bool is_load = w >> 22 & 1, moves = w >> 23 & 1;
	if (!is_load)
		return trail_stop(t, TRAIL_STRANGE);
	if (moves)
		trail_set(t, n, TRAIL_NOT_KNOWN);
	return true;
}

static bool move_vectors(struct trail *t, uint32_t w)
{
	static const uint8_t counts[16] = {
		[7] = 1, [8] = 2, [10] = 2, [4] = 3, [6] = 3, [0] = 4, [2] = 4};
	unsigned n = field(w, 5, 5), m = field(w, 16, 5), count = counts[field(w, 12, 4)];
	unsigned bytes = count * (w >> 30 & 1 ? 16 : 8);
	bool is_load = w >> 22 & 1, moves = w >> 23 & 1;
	struct trail_value base = trail_get(t, n);
	struct trail_value by = m == ZERO ? trail_known(bytes) : aarch64_get(t, m);
	if (field(w, 24, 1))
		return move_elements(t, w);
	if (!count)
		return trail_stop(t, TRAIL_STRANGE);
	if (!is_load && !trail_store_unknown(t, base, bytes))
		return false;
	base.known &= by.known;
	if (moves)
		trail_set(t, n, plus(base, by.bits));
	return true;
}

/* ---- all ---- */

bool aarch64_loads_and_stores(struct trail *t, uint32_t w)
{
	if ((w & 0x3b000000) == 0x39000000)
		return move_at_offset(t, w);
	if ((w & 0x3a000000) == 0x28000000)
		return move_pair(t, w);
	if ((w & 0x3b200000) == 0x38000000)
		return move_indexed(t, w);
	if ((w & 0x3b200c00) == 0x38200800)
		return move_at_register(t, w);
	if ((w & 0x3b200c00) == 0x38200000)
		return change_memory(t, w);
	if ((w & 0x3f000000) == 0x08000000)
		return move_exclusive(t, w);
	if ((w & 0x3b000000) == 0x18000000)
		return load_literal(t, w);
	if ((w & 0xbe000000) == 0x0c000000)
		return move_vectors(t, w);
	if ((w & 0x3f200c00) == 0x19000000)
		return move_ordered(t, w);
	return trail_stop(t, TRAIL_STRANGE);
}
