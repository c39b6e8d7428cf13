/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets aarch64's code, for programs as compilers make them: all instructions for general registers, loads and
 * stores, with those that take part in locks. Of vector registers only the effects on others are known: memory that
 * is stored, addresses that are moved on, results that come into general registers or flags and are not known.
 *
 * Signatures of return addresses: a return address that is signed here stays as it is, and one that is checked loses
 * its signature.
 */
#include "trail/trail.h"

#define ZERO 31u /* as an operand: the register that is zero, or SP */
#define SP 31u
#define LINK 30u

#define FLAG_V 28u /* as in PSTATE */
#define FLAGS 0xf0000000u
#define ADDRESS_BITS 0x0000ffffffffffffull /* of a program's code */

static inline unsigned field(uint32_t w, unsigned low, unsigned count)
{
	return w >> low & ((1u << count) - 1);
}

static inline int64_t signed_field(uint32_t w, unsigned low, unsigned count)
{
	return (int64_t)((uint64_t)w << (64 - low - count)) >> (64 - count);
}

static inline uint64_t narrow(uint64_t value, bool wide)
{
	return wide ? value : (uint32_t)value;
}

/* ---- registers ---- */

static inline uint64_t get(const struct trail *t, unsigned n)
{
	return n == ZERO ? 0 : t->registers[n];
}

static inline bool is_known(const struct trail *t, unsigned n)
{
	return n == ZERO || !(t->unknown >> n & 1);
}

static inline void set(struct trail *t, unsigned n, uint64_t value, bool known)
{
	if (n == ZERO)
		return;
	t->registers[n] = value;
	t->unknown = known ? t->unknown & ~(1u << n) : t->unknown | 1u << n;
}

/* The same where 31 is SP. */
static inline uint64_t get_sp(const struct trail *t, unsigned n)
{
	return t->registers[n];
}

static inline bool is_known_sp(const struct trail *t, unsigned n)
{
	return !(t->unknown >> n & 1);
}

static inline void set_sp(struct trail *t, unsigned n, uint64_t value, bool known)
{
	t->registers[n] = value;
	t->unknown = known ? t->unknown & ~(1u << n) : t->unknown | 1u << n;
}

static void set_flags(struct trail *t, unsigned nzcv, bool known)
{
	t->flags = (uint64_t)nzcv << FLAG_V;
	t->unknown_flags = known ? 0 : FLAGS;
}

/* Whether a condition holds. The flags are known. */
static bool holds(const struct trail *t, unsigned condition)
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

/* ---- arithmetic ---- */

/* a + b + carry, and its flags. */
static uint64_t add(uint64_t a, uint64_t b, unsigned carry, bool wide, unsigned *nzcv)
{
	unsigned top = wide ? 63 : 31;
	a = narrow(a, wide);
	b = narrow(b, wide);
	uint64_t sum = narrow(a + b + carry, wide);
	bool carried = carry ? sum <= a : sum < a;
	bool over = (~(a ^ b) & (a ^ sum)) >> top & 1;
	*nzcv = (unsigned)(sum >> top & 1) << 3 | (unsigned)!sum << 2 | (unsigned)carried << 1 |
		(unsigned)over;
	return sum;
}

static unsigned flags_of(uint64_t value, bool wide)
{
	return (unsigned)(value >> (wide ? 63 : 31) & 1) << 3 | (unsigned)!value << 2;
}

static uint64_t shift(uint64_t value, unsigned kind, unsigned by, bool wide)
{
	unsigned bits = wide ? 64 : 32;
	by &= bits - 1;
	value = narrow(value, wide);
	switch (kind) {
	case 0:
		return narrow(value << by, wide);
	case 1:
		return value >> by;
	case 2:
		return wide ? (uint64_t)((int64_t)value >> by)
			    : (uint32_t)((int32_t)(uint32_t)value >> by);
	default:
		return by ? narrow(value >> by | value << (bits - by), wide) : value;
	}
}

static uint64_t extend(uint64_t value, unsigned option, unsigned by)
{
	switch (option) {
	case 0:
		value = (uint8_t)value;
		break;
	case 1:
		value = (uint16_t)value;
		break;
	case 2:
		value = (uint32_t)value;
		break;
	case 4:
		value = (uint64_t)(int64_t)(int8_t)value;
		break;
	case 5:
		value = (uint64_t)(int64_t)(int16_t)value;
		break;
	case 6:
		value = (uint64_t)(int64_t)(int32_t)value;
		break;
	default:
		break;
	}
	return value << by;
}

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

/* ---- immediate operands ---- */

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
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), nzcv;
	bool wide = w >> 31, subtract = w >> 30 & 1, sets = w >> 29 & 1, known = is_known_sp(t, n);
	uint64_t by = (uint64_t)field(w, 10, 12) << (field(w, 22, 1) ? 12 : 0);
	uint64_t sum = add(get_sp(t, n), subtract ? ~by : by, subtract, wide, &nzcv);
	if (sets) {
		set_flags(t, nzcv, known);
		set(t, d, sum, known);
	} else {
		set_sp(t, d, sum, known);
	}
	return true;
}

static bool logical_immediate(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), operation = field(w, 29, 2);
	bool wide = w >> 31, known = is_known(t, n);
	uint64_t mask, top, value = get(t, n);
	if (!bit_mask(w, true, &mask, &top))
		return trail_stop(t, TRAIL_STRANGE);
	value = operation == 1 ? value | mask : operation == 2 ? value ^ mask : value & mask;
	value = narrow(value, wide);
	if (operation == 3) {
		set_flags(t, flags_of(value, wide), known);
		set(t, d, value, known);
	} else {
		set_sp(t, d, value, known);
	}
	return true;
}

static bool move_wide(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), operation = field(w, 29, 2), by = 16 * field(w, 21, 2);
	bool wide = w >> 31;
	uint64_t value = (uint64_t)field(w, 5, 16) << by;
	if (operation == 3)
		value |= get(t, d) & ~(0xffffull << by);
	else if (operation == 0)
		value = ~value;
	else if (operation == 1)
		return trail_stop(t, TRAIL_STRANGE);
	set(t, d, narrow(value, wide), operation != 3 || is_known(t, d));
	return true;
}

static bool bitfield(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), operation = field(w, 29, 2);
	unsigned r = field(w, 16, 6), s = field(w, 10, 6);
	bool wide = w >> 31, known = is_known(t, n);
	uint64_t mask, top;
	if (operation == 3 || wide != field(w, 22, 1) || !bit_mask(w, false, &mask, &top))
		return trail_stop(t, TRAIL_STRANGE);
	uint64_t source = get(t, n), before = operation == 1 ? get(t, d) : 0;
	uint64_t turned = shift(source, 3, r, wide);
	uint64_t bottom = operation == 1 ? (before & ~mask) | (turned & mask) : turned & mask;
	uint64_t above = operation == 0 ? (source >> s & 1 ? UINT64_MAX : 0) : before;
	set(t, d, narrow((above & ~top) | (bottom & top), wide),
	    known && (operation != 1 || is_known(t, d)));
	return true;
}

static bool extract(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5);
	unsigned by = field(w, 10, 6);
	bool wide = w >> 31;
	uint64_t low = narrow(get(t, m), wide), high = narrow(get(t, n), wide);
	if (field(w, 29, 2) || field(w, 21, 1) || (!wide && by > 31))
		return trail_stop(t, TRAIL_STRANGE);
	set(t, d, by ? narrow(low >> by | high << ((wide ? 64 : 32) - by), wide) : low,
	    is_known(t, n) && is_known(t, m));
	return true;
}

static bool with_immediate(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5);
	int64_t offset;
	switch (field(w, 23, 3)) {
	case 0:
	case 1:
		offset = signed_field(w, 5, 19) * 4 + field(w, 29, 2);
		set(t, d,
		    w >> 31 ? (t->pc & ~0xfffull) + ((uint64_t)offset << 12)
			    : t->pc + (uint64_t)offset,
		    true);
		return true;
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

/* ---- registers as operands ---- */

static bool logical_register(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5);
	unsigned operation = field(w, 29, 2);
	bool wide = w >> 31, known = is_known(t, n) && is_known(t, m);
	uint64_t a = get(t, n), b = shift(get(t, m), field(w, 22, 2), field(w, 10, 6), wide);
	if (field(w, 21, 1))
		b = ~b;
	uint64_t value = operation == 1 ? a | b : operation == 2 ? a ^ b : a & b;
	value = narrow(value, wide);
	if (operation == 3)
		set_flags(t, flags_of(value, wide), known);
	set(t, d, value, known);
	return true;
}

static bool add_register(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5), nzcv;
	bool wide = w >> 31, subtract = w >> 30 & 1, sets = w >> 29 & 1, extended = w >> 21 & 1;
	bool known = (extended ? is_known_sp(t, n) : is_known(t, n)) && is_known(t, m);
	uint64_t a = extended ? get_sp(t, n) : get(t, n);
	uint64_t b = extended ? extend(get(t, m), field(w, 13, 3), field(w, 10, 3))
			      : shift(get(t, m), field(w, 22, 2), field(w, 10, 6), wide);
	uint64_t sum = add(a, subtract ? ~b : b, subtract, wide, &nzcv);
	if (sets)
		set_flags(t, nzcv, known);
	if (extended && !sets)
		set_sp(t, d, sum, known);
	else
		set(t, d, sum, known);
	return true;
}

static bool add_carry(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5), nzcv;
	bool wide = w >> 31, subtract = w >> 30 & 1, sets = w >> 29 & 1;
	bool known = is_known(t, n) && is_known(t, m) && !t->unknown_flags;
	uint64_t b = get(t, m);
	uint64_t sum = add(get(t, n), subtract ? ~b : b, t->flags >> 29 & 1, wide, &nzcv);
	if (sets)
		set_flags(t, nzcv, known);
	set(t, d, sum, known);
	return true;
}

static bool compare_if(struct trail *t, uint32_t w)
{
	unsigned n = field(w, 5, 5), m = field(w, 16, 5), nzcv;
	bool wide = w >> 31, subtract = w >> 30 & 1, immediate = w >> 11 & 1;
	if (!field(w, 29, 1) || field(w, 10, 1) || field(w, 4, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (t->unknown_flags)
		return true; /* they stay unknown */
	if (!holds(t, field(w, 12, 4))) {
		set_flags(t, field(w, 0, 4), true);
		return true;
	}
	uint64_t b = immediate ? m : get(t, m);
	add(get(t, n), subtract ? ~b : b, subtract, wide, &nzcv);
	set_flags(t, nzcv, is_known(t, n) && (immediate || is_known(t, m)));
	return true;
}

static bool choose(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5);
	bool wide = w >> 31, invert = w >> 30 & 1, increment = w >> 10 & 1;
	if (field(w, 29, 1) || field(w, 11, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (t->unknown_flags) {
		set(t, d, 0, false);
		return true;
	}
	if (holds(t, field(w, 12, 4))) {
		set(t, d, narrow(get(t, n), wide), is_known(t, n));
		return true;
	}
	uint64_t value = get(t, m);
	value = (invert ? ~value : value) + increment;
	set(t, d, narrow(value, wide), is_known(t, m));
	return true;
}

static bool one_source(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5);
	bool wide = w >> 31, known = is_known(t, n);
	uint64_t value = narrow(get(t, n), wide), folded;
	if (field(w, 29, 1) || field(w, 16, 5))
		return trail_stop(t, TRAIL_STRANGE);
	switch (field(w, 10, 6)) {
	case 0:
		value = reverse_bits(value) >> (wide ? 0 : 32);
		break;
	case 1:
		value = reverse_bytes(value, 2);
		break;
	case 2:
		value = reverse_bytes(value, 4);
		break;
	case 3:
		value = reverse_bytes(value, 8);
		break;
	case 4:
		value = leading_zeros(value, wide);
		break;
	case 5:
		folded = narrow(value ^ shift(value, 2, 1, wide), wide);
		value = leading_zeros(folded, wide) - 1;
		break;
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
	set(t, d, narrow(value, wide), known);
	return true;
}

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
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5);
	unsigned operation = field(w, 10, 6);
	bool wide = w >> 31, known = is_known(t, n) && is_known(t, m);
	uint64_t a = narrow(get(t, n), wide), b = narrow(get(t, m), wide);
	if (field(w, 29, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (operation == 2 || operation == 3)
		set(t, d, divide(a, b, operation == 3, wide), known);
	else if (operation >= 8 && operation <= 11)
		set(t, d, shift(a, operation - 8, (unsigned)b, wide), known);
	else if (operation >= 16 && operation < 24) /* checksums */
		set(t, d, 0, false);
	else
		return trail_stop(t, TRAIL_STRANGE);
	return true;
}

static bool three_sources(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5), n = field(w, 5, 5), m = field(w, 16, 5), a = field(w, 10, 5);
	unsigned operation = field(w, 21, 3);
	bool wide = w >> 31, subtract = w >> 15 & 1;
	uint64_t x = get(t, n), y = get(t, m), product;
	bool known = is_known(t, n) && is_known(t, m);
	if (field(w, 29, 2) || (operation && !wide))
		return trail_stop(t, TRAIL_STRANGE);
	switch (operation) {
	case 0:
		product = x * y;
		break;
	case 1:
		product = (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
		break;
	case 5:
		product = (uint64_t)(uint32_t)x * (uint32_t)y;
		break;
	case 2:
		set(t, d, (uint64_t)((__int128)(int64_t)x * (int64_t)y >> 64), known);
		return true;
	case 6:
		set(t, d, (uint64_t)((unsigned __int128)x * y >> 64), known);
		return true;
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
	uint64_t sum = subtract ? get(t, a) - product : get(t, a) + product;
	set(t, d, narrow(sum, wide), known && is_known(t, a));
	return true;
}

static bool with_registers(struct trail *t, uint32_t w)
{
	if ((w & 0x1f000000) == 0x0a000000)
		return logical_register(t, w);
	if ((w & 0x1f000000) == 0x0b000000)
		return add_register(t, w);
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

/* ---- branches and the system ---- */

static bool branch(struct trail *t, uint64_t target, bool taken, uint64_t *next)
{
	*next = taken ? target : t->pc + 4;
	return trail_add(t, t->pc, *next);
}

static bool branch_register(struct trail *t, uint32_t w, uint64_t *next)
{
	unsigned operation = field(w, 21, 4), n = field(w, 5, 5);
	bool signed_return = (w & 0xfffffbff) == 0xd65f0bff;
	if (signed_return)
		n = LINK;
	else if (operation > 2 || field(w, 10, 6) || field(w, 0, 5))
		return trail_stop(t, TRAIL_STRANGE);
	if (!is_known(t, n))
		return trail_stop(t, TRAIL_UNKNOWN);
	*next = get(t, n) & (signed_return ? ADDRESS_BITS : UINT64_MAX);
	if (operation == 1)
		set(t, LINK, t->pc + 4, true);
	return operation != 0 || trail_add(t, t->pc, *next);
}

/* Hints: most do nothing here. */
static bool hint(struct trail *t, uint32_t w)
{
	unsigned number = field(w, 5, 7);
	switch (number) {
	case 2: /* waits for others */
	case 3:
		return trail_stop(t, TRAIL_SYSTEM);
	case 7: /* xpaclri, autiaz, autiasp, autibz, autibsp */
	case 28:
	case 29:
	case 30:
	case 31:
		set(t, LINK, get(t, LINK) & ADDRESS_BITS, is_known(t, LINK));
		return true;
	case 8: /* of x17 by x16 */
	case 10:
	case 12:
	case 14:
		return trail_stop(t, TRAIL_STRANGE);
	default:
		return true;
	}
}

static bool control(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5);
	if ((w & 0xfffff01f) == 0xd503201f)
		return hint(t, w);
	if ((w & 0xfffff01f) == 0xd503301f) /* barriers */
		return true;
	if ((w & 0xffffffe0) == 0xd53bd040) {
		set(t, d, t->thread, true);
		return true;
	}
	if ((w & 0xffffffe0) == 0xd53b4200) {
		set(t, d, t->flags & FLAGS, !t->unknown_flags);
		return true;
	}
	if ((w & 0xffffffe0) == 0xd51b4200) {
		set_flags(t, (unsigned)(get(t, d) >> FLAG_V & 15), is_known(t, d));
		return true;
	}
	if ((w & 0xfff00000) == 0xd5300000) { /* other registers of the system */
		set(t, d, 0, false);
		return true;
	}
	if ((w & 0xffffff00) == 0xd51b4400) /* how floating point is rounded, and what it met */
		return true;
	return trail_stop(t, TRAIL_SYSTEM);
}

static bool branches(struct trail *t, uint32_t w, uint64_t *next)
{
	unsigned n = field(w, 0, 5);
	if ((w & 0x7c000000) == 0x14000000) {
		*next = t->pc + (uint64_t)(signed_field(w, 0, 26) * 4);
		if (w >> 31)
			set(t, LINK, t->pc + 4, true);
		return true;
	}
	if ((w & 0x7e000000) == 0x34000000) {
		if (!is_known(t, n))
			return trail_stop(t, TRAIL_UNKNOWN);
		return branch(t, t->pc + (uint64_t)(signed_field(w, 5, 19) * 4),
			      (narrow(get(t, n), w >> 31) != 0) == field(w, 24, 1), next);
	}
	if ((w & 0x7e000000) == 0x36000000) {
		unsigned bit = field(w, 31, 1) << 5 | field(w, 19, 5);
		if (!is_known(t, n))
			return trail_stop(t, TRAIL_UNKNOWN);
		return branch(t, t->pc + (uint64_t)(signed_field(w, 5, 14) * 4),
			      (get(t, n) >> bit & 1) == field(w, 24, 1), next);
	}
	if ((w & 0xff000000) == 0x54000000) {
		if (t->unknown_flags)
			return trail_stop(t, TRAIL_UNKNOWN);
		return branch(t, t->pc + (uint64_t)(signed_field(w, 5, 19) * 4),
			      holds(t, field(w, 0, 4)), next);
	}
	if ((w & 0xfe000000) == 0xd6000000)
		return branch_register(t, w, next);
	if ((w & 0xffc00000) == 0xd5000000)
		return control(t, w);
	return trail_stop(t, TRAIL_SYSTEM);
}

/* ---- memory ---- */

/* A load into a general register. `extends`: 0 none, 1 to 64 bits, 2 to 32 bits. */
static bool load(struct trail *t, unsigned d, uint64_t address, bool known, unsigned size,
		 unsigned extends)
{
	uint64_t value = 0;
	if (known && !trail_load(t, address, size, &value, &known))
		return false;
	if (extends) {
		unsigned up = 64 - 8 * size;
		value = narrow((uint64_t)((int64_t)(value << up) >> up), extends == 1);
	}
	set(t, d, value, known);
	return true;
}

static bool store(struct trail *t, unsigned s, uint64_t address, bool known, unsigned size)
{
	if (!known)
		return trail_stop(t, TRAIL_MEMORY);
	return trail_store(t, address, size, get(t, s), is_known(t, s));
}

static bool store_vector(struct trail *t, uint64_t address, bool known, unsigned size)
{
	if (!known)
		return trail_stop(t, TRAIL_MEMORY);
	return trail_store_unknown(t, address, size);
}

/* One register, by the size and opc fields, as most loads and stores have them. */
static bool move_one(struct trail *t, uint32_t w, uint64_t address, bool known)
{
	unsigned size = field(w, 30, 2), opc = field(w, 22, 2), r = field(w, 0, 5);
	if (field(w, 26, 1)) {
		unsigned bytes = opc & 2 ? 16 : 1u << size;
		return opc & 1 || store_vector(t, address, known, bytes);
	}
	switch (opc) {
	case 0:
		return store(t, r, address, known, 1u << size);
	case 1:
		return load(t, r, address, known, 1u << size, 0);
	case 2:
		return size == 3 || load(t, r, address, known, 1u << size, 1); /* or a prefetch */
	default:
		return size < 2 ? load(t, r, address, known, 1u << size, 2)
				: trail_stop(t, TRAIL_STRANGE);
	}
}

static bool move_indexed(struct trail *t, uint32_t w)
{
	unsigned n = field(w, 5, 5), mode = field(w, 10, 2);
	bool known = is_known_sp(t, n);
	uint64_t base = get_sp(t, n), by = (uint64_t)signed_field(w, 12, 9);
	if (mode == 2)
		return trail_stop(t, TRAIL_STRANGE);
	if (!move_one(t, w, mode == 1 ? base : base + by, known))
		return false;
	if (mode)
		set_sp(t, n, base + by, known);
	return true;
}

static bool move_pair(struct trail *t, uint32_t w)
{
	unsigned a = field(w, 0, 5), b = field(w, 10, 5), n = field(w, 5, 5);
	unsigned opc = field(w, 30, 2), mode = field(w, 23, 2);
	bool vector = w >> 26 & 1, is_load = w >> 22 & 1, known = is_known_sp(t, n), done;
	unsigned size = vector ? 4u << opc : opc == 2 ? 8 : 4;
	uint64_t base = get_sp(t, n), by = (uint64_t)(signed_field(w, 15, 7) * (int)size);
	uint64_t address = mode == 1 ? base : base + by;
	if (opc == 3 || (!vector && opc == 1 && !is_load))
		return trail_stop(t, TRAIL_STRANGE);
	if (vector)
		done = is_load || store_vector(t, address, known, 2 * size);
	else if (is_load)
		done = load(t, a, address, known, size, opc == 1) &&
		       load(t, b, address + size, known, size, opc == 1);
	else
		done = store(t, a, address, known, size) &&
		       store(t, b, address + size, known, size);
	if (done && mode & 1)
		set_sp(t, n, base + by, known);
	return done;
}

static bool load_literal(struct trail *t, uint32_t w)
{
	unsigned opc = field(w, 30, 2), d = field(w, 0, 5);
	uint64_t address = t->pc + (uint64_t)(signed_field(w, 5, 19) * 4);
	if (field(w, 26, 1) || opc == 3)
		return true;
	return load(t, d, address, true, opc == 1 ? 8 : 4, opc == 2);
}

/* Exclusive and ordered ones. Nobody comes between. */
static bool move_exclusive(struct trail *t, uint32_t w)
{
	unsigned size = 1u << field(w, 30, 2), r = field(w, 0, 5), n = field(w, 5, 5);
	unsigned s = field(w, 16, 5);
	bool ordered = w >> 23 & 1, is_load = w >> 22 & 1, more = w >> 21 & 1;
	bool known = is_known_sp(t, n), there;
	uint64_t address = get_sp(t, n), value;
	if (more && !ordered)
		return trail_stop(t, TRAIL_STRANGE);
	if (more) { /* compare and swap */
		if (!known || !is_known(t, s))
			return trail_stop(t, TRAIL_MEMORY);
		if (!trail_load(t, address, size, &value, &there))
			return false;
		uint64_t mask = size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
		if (!there)
			return trail_stop(t, TRAIL_MEMORY);
		if (value == (get(t, s) & mask) && !store(t, r, address, known, size))
			return false;
		set(t, s, value, true);
		return true;
	}
	if (is_load)
		return load(t, r, address, known, size, 0);
	if (!store(t, r, address, known, size))
		return false;
	if (!ordered)
		set(t, s, 0, true);
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
	unsigned size = 1u << field(w, 30, 2), r = field(w, 0, 5), n = field(w, 5, 5);
	unsigned s = field(w, 16, 5), operation = field(w, 12, 3);
	bool swap = w >> 15 & 1, known = is_known_sp(t, n), there;
	uint64_t address = get_sp(t, n), value, by = get(t, s);
	if (field(w, 26, 1))
		return trail_stop(t, TRAIL_STRANGE);
	if (swap && operation == 4) /* ldapr */
		return load(t, r, address, known, size, 0);
	if ((swap && operation) || !known)
		return trail_stop(t, swap ? TRAIL_STRANGE : TRAIL_MEMORY);
	if (!trail_load(t, address, size, &value, &there))
		return false;
	if (!trail_store(t, address, size, swap ? by : changed(operation, value, by, size),
			 is_known(t, s) && (swap || there)))
		return false;
	set(t, r, value, there);
	return true;
}

/* Loads and stores of several vectors. */
static bool move_vectors(struct trail *t, uint32_t w)
{
	unsigned n = field(w, 5, 5), m = field(w, 16, 5), count;
	bool is_load = w >> 22 & 1, moves = w >> 23 & 1, known = is_known_sp(t, n);
	uint64_t address = get_sp(t, n);
	if (field(w, 24, 1)) { /* one element of each */
		if (!is_load)
			return trail_stop(t, TRAIL_STRANGE);
		if (moves)
			set_sp(t, n, address, false);
		return true;
	}
	switch (field(w, 12, 4)) {
	case 7:
		count = 1;
		break;
	case 8:
	case 10:
		count = 2;
		break;
	case 4:
	case 6:
		count = 3;
		break;
	case 0:
	case 2:
		count = 4;
		break;
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
	unsigned bytes = count * (w >> 30 & 1 ? 16 : 8);
	if (!is_load && !store_vector(t, address, known, bytes))
		return false;
	if (moves && m == ZERO)
		set_sp(t, n, address + bytes, known);
	else if (moves)
		set_sp(t, n, address + get(t, m), known && is_known(t, m));
	return true;
}

static bool loads_and_stores(struct trail *t, uint32_t w)
{
	unsigned n = field(w, 5, 5), m = field(w, 16, 5), size = field(w, 30, 2);
	if ((w & 0x3b000000) == 0x39000000) {
		unsigned by = w >> 26 & 1 && w >> 23 & 1 ? 4 : size;
		return move_one(t, w, get_sp(t, n) + ((uint64_t)field(w, 10, 12) << by),
				is_known_sp(t, n));
	}
	if ((w & 0x3a000000) == 0x28000000)
		return move_pair(t, w);
	if ((w & 0x3b200000) == 0x38000000)
		return move_indexed(t, w);
	if ((w & 0x3b200c00) == 0x38200800) {
		unsigned by = !field(w, 12, 1) ? 0 : w >> 26 & 1 && w >> 23 & 1 ? 4 : size;
		return move_one(t, w, get_sp(t, n) + extend(get(t, m), field(w, 13, 3), by),
				is_known_sp(t, n) && is_known(t, m));
	}
	if ((w & 0x3b200c00) == 0x38200000)
		return change_memory(t, w);
	if ((w & 0x3f000000) == 0x08000000)
		return move_exclusive(t, w);
	if ((w & 0x3b000000) == 0x18000000)
		return load_literal(t, w);
	if ((w & 0xbe000000) == 0x0c000000)
		return move_vectors(t, w);
	if ((w & 0x3f200c00) == 0x19000000) /* ordered, with an offset */
		return move_one(t, w, get_sp(t, n) + (uint64_t)signed_field(w, 12, 9),
				is_known_sp(t, n));
	return trail_stop(t, TRAIL_STRANGE);
}

/* ---- vectors ---- */

/* Only what leads out of them matters. */
static bool with_vectors(struct trail *t, uint32_t w)
{
	unsigned d = field(w, 0, 5);
	bool general = false;
	if ((w & 0x5f20fc00) == 0x1e200000) {
		unsigned operation = field(w, 16, 3);
		general = operation < 2 || (operation >= 4 && operation <= 6);
		if (operation == 6 && field(w, 19, 2) == 3)
			set_flags(t, 0, false);
	} else if ((w & 0x5f200000) == 0x1e000000) {
		general = field(w, 16, 3) < 2;
	} else if ((w & 0xff203c00) == 0x1e202000 || (w & 0xff200c00) == 0x1e200400) {
		set_flags(t, 0, false);
	} else {
		general = (w & 0xbfe0fc00) == 0x0e003c00 || (w & 0xbfe0fc00) == 0x0e002c00;
	}
	if (general)
		set(t, d, 0, false);
	return true;
}

/* ---- all ---- */

static bool step(struct trail *t, uint32_t w, uint64_t *next)
{
	switch (field(w, 25, 4)) {
	case 8:
	case 9:
		return with_immediate(t, w);
	case 10:
	case 11:
		return branches(t, w, next);
	case 4:
	case 6:
	case 12:
	case 14:
		return loads_and_stores(t, w);
	case 5:
	case 13:
		return with_registers(t, w);
	case 7:
	case 15:
		return with_vectors(t, w);
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
}

void trail_follow_aarch64(struct trail *t, uint32_t steps)
{
	t->edge_count = t->store_count = t->steps = 0;
	t->unknown = t->unknown_flags = 0;
	t->end = TRAIL_ON;
	for (; t->steps < steps; t->steps++) {
		uint64_t next = t->pc + 4;
		uint32_t w;
		if (t->pc & 3 || t->read_code(t->context, t->pc, &w, sizeof w) != sizeof w) {
			t->end = TRAIL_NO_CODE;
			return;
		}
		if (!step(t, w, &next))
			return;
		t->pc = next;
	}
	t->end = TRAIL_LONG;
}
