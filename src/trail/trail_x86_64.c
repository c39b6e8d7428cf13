/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets x86-64's code, for programs as compilers make them: instructions for general registers, loads and
 * stores. Of vector registers and the old floating point, only the effects on others are known: memory that is stored,
 * results that come into general registers or flags and are not known. Flags that the CPU's manual leaves
 * undefined are not known, either. Instructions that repeat, and those of AVX-512, end a trail.
 */
#include "trail/trail.h"

#define CF 1u
#define PF 4u
#define AF 16u
#define ZF 64u
#define SF 128u
#define OF 2048u
#define ALL (CF | PF | AF | ZF | SF | OF)

enum { AX, CX, DX, BX, SP, BP, SI, DI };

/* DWARF's numbers, by the CPU's. */
static const uint8_t numbers[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

struct code { /* an instruction */
	uint8_t bytes[16];
	unsigned size, at; /* bytes that could be read; those that are used */
	unsigned rex;      /* WRXB; */
	bool has_rex, small /* 66 */, repeats /* F3 */, repeats_not /* F2 */;
	bool thread, foreign; /* the address is relative to fs; to something that is not known */
	unsigned width;       /* of operands, in bytes */
	unsigned mod, reg, rm;
	uint64_t address; /* of the operand in memory */
	bool known;       /* the address is */
};

/* ---- bytes ---- */

static unsigned take(struct code *c)
{
	unsigned at = c->at++;
	return at < c->size ? c->bytes[at] : 0;
}

static uint64_t take_number(struct code *c, unsigned bytes) /* is extended by its sign */
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)take(c) << 8 * i;
	unsigned up = 64 - 8 * bytes;
	return (uint64_t)((int64_t)(value << up) >> up);
}

/* ---- registers ---- */

static uint64_t mask_of(unsigned width)
{
	return width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
}

static bool is_high(const struct code *c, unsigned n, unsigned width)
{
	return width == 1 && !c->has_rex && n >= 4;
}

static uint64_t get(const struct trail *t, const struct code *c, unsigned n, unsigned width)
{
	if (is_high(c, n, width))
		return t->registers[numbers[n - 4]] >> 8 & 0xff;
	return t->registers[numbers[n]] & mask_of(width);
}

static bool is_known(const struct trail *t, const struct code *c, unsigned n, unsigned width)
{
	return !(t->unknown >> numbers[is_high(c, n, width) ? n - 4 : n] & 1);
}

static void set(struct trail *t, const struct code *c, unsigned n, unsigned width, uint64_t value,
		bool known)
{
	bool high = is_high(c, n, width);
	unsigned number = numbers[high ? n - 4 : n];
	uint64_t before = t->registers[number];
	value &= mask_of(width);
	if (high)
		value = (before & ~0xff00ull) | value << 8;
	else if (width < 4)
		value |= before & ~mask_of(width);
	if (width < 4)
		known &= !(t->unknown >> number & 1);
	t->registers[number] = value;
	t->unknown = known ? t->unknown & ~(1u << number) : t->unknown | 1u << number;
}

static void forget(struct trail *t, unsigned n)
{
	t->unknown |= 1u << numbers[n];
}

/* ---- flags ---- */

/* Sets those of `which` and makes those of `undefined` unknown. */
static void set_flags(struct trail *t, unsigned which, unsigned value, bool known,
		      unsigned undefined)
{
	t->flags = (t->flags & ~(uint64_t)which) | (value & which);
	t->unknown_flags = known ? t->unknown_flags & ~which : t->unknown_flags | which;
	t->unknown_flags |= undefined;
}

static unsigned flags_of(uint64_t result, unsigned width)
{
	return (result >> (8 * width - 1) & 1 ? SF : 0) | (result ? 0 : ZF) |
	       (__builtin_parity((unsigned)result & 0xff) ? 0 : PF);
}

/* Whether a condition holds; *known: whether that is known. */
static bool holds(const struct trail *t, unsigned condition, bool *known)
{
	uint64_t f = t->flags;
	bool sign = !(f & SF) != !(f & OF), result;
	unsigned needs;
	switch (condition >> 1) {
	case 0:
		needs = OF;
		result = f & OF;
		break;
	case 1:
		needs = CF;
		result = f & CF;
		break;
	case 2:
		needs = ZF;
		result = f & ZF;
		break;
	case 3:
		needs = CF | ZF;
		result = f & (CF | ZF);
		break;
	case 4:
		needs = SF;
		result = f & SF;
		break;
	case 5:
		needs = PF;
		result = f & PF;
		break;
	case 6:
		needs = SF | OF;
		result = sign;
		break;
	default:
		needs = SF | OF | ZF;
		result = sign || f & ZF;
		break;
	}
	*known = !(t->unknown_flags & needs);
	return result != (condition & 1);
}

/* ---- operands ---- */

/* The address that the mod and rm fields, and what follows them, stand for. `after`: bytes of the instruction that come
   after the address. */
static void take_address(const struct trail *t, struct code *c, unsigned after)
{
	unsigned base = c->rm & 7;
	uint64_t address = 0;
	c->known = true;
	if (base == 4) {
		unsigned sib = take(c), index = (sib >> 3 & 7) | (c->rex & 2) << 2;
		base = (sib & 7) | (c->rex & 1) << 3;
		if (index != 4) {
			address = get(t, c, index, 8) << (sib >> 6);
			c->known &= is_known(t, c, index, 8);
		}
		if ((base & 7) == 5 && !c->mod) {
			address += take_number(c, 4);
			base = 16;
		}
	} else if (base == 5 && !c->mod) {
		address = take_number(c, 4);
		address += t->pc + c->at + after;
		base = 16;
	} else {
		base |= (c->rex & 1) << 3;
	}
	if (base < 16) {
		address += get(t, c, base, 8);
		c->known &= is_known(t, c, base, 8);
	}
	if (c->mod == 1)
		address += take_number(c, 1);
	else if (c->mod == 2)
		address += take_number(c, 4);
	if (c->thread)
		address += t->thread;
	c->known &= !c->foreign;
	c->address = address;
}

static void take_operands(const struct trail *t, struct code *c, unsigned after)
{
	unsigned byte = take(c);
	c->mod = byte >> 6;
	c->reg = (byte >> 3 & 7) | (c->rex & 4) << 1;
	c->rm = byte & 7;
	if (c->mod == 3)
		c->rm |= (c->rex & 1) << 3;
	else
		take_address(t, c, after);
}

static bool load(struct trail *t, uint64_t address, unsigned width, uint64_t *value, bool *known)
{
	if (*known)
		return trail_load(t, address, width, value, known);
	*value = 0;
	return true;
}

static bool read_rm(struct trail *t, const struct code *c, unsigned width, uint64_t *value,
		    bool *known)
{
	if (c->mod == 3) {
		*value = get(t, c, c->rm, width);
		*known = is_known(t, c, c->rm, width);
		return true;
	}
	*known = c->known;
	return load(t, c->address, width, value, known);
}

static bool write_rm(struct trail *t, const struct code *c, unsigned width, uint64_t value,
		     bool known)
{
	if (c->mod == 3) {
		set(t, c, c->rm, width, value, known);
		return true;
	}
	if (!c->known)
		return trail_stop(t, TRAIL_MEMORY);
	return trail_store(t, c->address, width, value & mask_of(width), known);
}

/* Something of a vector comes there. */
static bool write_unknown(struct trail *t, const struct code *c, unsigned bytes)
{
	if (c->mod == 3)
		return true;
	if (!c->known)
		return trail_stop(t, TRAIL_MEMORY);
	return trail_store_unknown(t, c->address, bytes);
}

static bool push(struct trail *t, const struct code *c, uint64_t value, bool known)
{
	uint64_t sp = get(t, c, SP, 8) - 8;
	if (!is_known(t, c, SP, 8))
		return trail_stop(t, TRAIL_MEMORY);
	set(t, c, SP, 8, sp, true);
	return trail_store(t, sp, 8, value, known);
}

static bool pop(struct trail *t, const struct code *c, uint64_t *value, bool *known)
{
	uint64_t sp = get(t, c, SP, 8);
	*known = is_known(t, c, SP, 8);
	if (!*known)
		return trail_stop(t, TRAIL_MEMORY);
	if (!trail_load(t, sp, 8, value, known))
		return false;
	set(t, c, SP, 8, sp + 8, true);
	return true;
}

/* ---- arithmetic ---- */

enum { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

/* `same`: both operands are the same register. */
static uint64_t calculate(struct trail *t, unsigned operation, uint64_t a, uint64_t b,
			  unsigned width, bool same, bool *known)
{
	uint64_t mask = mask_of(width), top = 1ull << (8 * width - 1), r;
	unsigned carry = 0, flags;
	if (same &&
	    (operation == XOR || operation == SUB || operation == CMP || operation == SBB)) {
		a = b = 0;
		*known = true;
	}
	if (operation == ADC || operation == SBB) {
		carry = t->flags & CF;
		*known &= !(t->unknown_flags & CF);
	}
	switch (operation) {
	case ADD:
	case ADC:
		r = (a + b + carry) & mask;
		flags = (carry ? r <= a : r < a) ? CF : 0;
		flags |= (~(a ^ b) & (a ^ r)) & top ? OF : 0;
		break;
	case SUB:
	case CMP:
	case SBB:
		r = (a - b - carry) & mask;
		flags = (carry ? a <= b : a < b) ? CF : 0;
		flags |= ((a ^ b) & (a ^ r)) & top ? OF : 0;
		break;
	default:
		r = operation == OR ? a | b : operation == AND ? a & b : a ^ b;
		set_flags(t, ALL & ~AF, flags_of(r, width), *known, AF);
		return r;
	}
	set_flags(t, ALL, flags | flags_of(r, width) | ((a ^ b ^ r) & AF), *known, 0);
	return r;
}

static bool count_by_one(struct trail *t, const struct code *c, bool down)
{
	uint64_t a, r, top = 1ull << (8 * c->width - 1);
	bool known;
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	r = (down ? a - 1 : a + 1) & mask_of(c->width);
	set_flags(t, ALL & ~CF,
		  flags_of(r, c->width) | ((a ^ r ^ 1) & AF) |
			  (r == (down ? top - 1 : top) ? OF : 0),
		  known, 0);
	return write_rm(t, c, c->width, r, known);
}

/* Shifts and rotations by a number of bits that is known. */
static bool shift(struct trail *t, const struct code *c, unsigned operation, unsigned by)
{
	unsigned width = c->width, bits = 8 * width;
	uint64_t a, r, mask = mask_of(width);
	unsigned flags;
	bool known;
	by &= width == 8 ? 63 : 31;
	if (!read_rm(t, c, width, &a, &known))
		return false;
	if (!by)
		return c->mod != 3 || width != 4 || write_rm(t, c, width, a, known);
	unsigned turn = by % bits;
	switch (operation) {
	case 0: /* rol */
		r = (turn ? a << turn | a >> (bits - turn) : a) & mask;
		flags = r & 1 ? CF : 0;
		flags |= (r >> (bits - 1) ^ r) & 1 ? OF : 0;
		break;
	case 1: /* ror */
		r = (turn ? a >> turn | a << (bits - turn) : a) & mask;
		flags = r >> (bits - 1) & 1 ? CF : 0;
		flags |= (r >> (bits - 1) ^ r >> (bits - 2)) & 1 ? OF : 0;
		break;
	case 4:
	case 6:
		r = (by < bits ? a << by : 0) & mask;
		flags = by <= bits && a >> (bits - by) & 1 ? CF : 0;
		flags |= (r >> (bits - 1) & 1) != (flags & CF) ? OF : 0;
		break;
	case 5:
		r = by < bits ? a >> by : 0;
		flags = by <= bits && a >> (by - 1) & 1 ? CF : 0;
		flags |= a >> (bits - 1) & 1 ? OF : 0;
		break;
	case 7: {
		int64_t s = (int64_t)(a << (64 - bits)) >> (64 - bits);
		r = (uint64_t)(s >> (by < 63 ? by : 63)) & mask;
		flags = s >> (by - 1 < 63 ? by - 1 : 63) & 1 ? CF : 0;
		break;
	}
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
	unsigned undefined = by > 1 ? OF : 0;
	if (operation < 2)
		set_flags(t, CF | OF, flags, known, undefined);
	else
		set_flags(t, ALL & ~AF, flags | flags_of(r, width), known, undefined | AF);
	if (by >= bits && operation >= 4)
		t->unknown_flags |= CF;
	return write_rm(t, c, width, r, known);
}

static bool shift_by_cl(struct trail *t, const struct code *c, unsigned operation)
{
	if (is_known(t, c, CX, 8))
		return shift(t, c, operation, (unsigned)get(t, c, CX, 8) & 0xff);
	t->unknown_flags |= ALL;
	return write_rm(t, c, c->width, 0, false);
}

static bool shift_double(struct trail *t, const struct code *c, bool left, unsigned by, bool there)
{
	unsigned width = c->width, bits = 8 * width;
	uint64_t a, b = get(t, c, c->reg, width), r;
	bool known;
	by &= width == 8 ? 63 : 31;
	if (width < 4)
		return trail_stop(t, TRAIL_STRANGE);
	if (!read_rm(t, c, width, &a, &known))
		return false;
	known &= there && is_known(t, c, c->reg, width);
	if (there && !by)
		return c->mod != 3 || width != 4 || write_rm(t, c, width, a, known);
	t->unknown_flags |= ALL;
	r = !by ? 0 : left ? a << by | b >> (bits - by) : a >> by | b << (bits - by);
	return write_rm(t, c, width, r, known);
}

static bool multiply(struct trail *t, const struct code *c, bool is_signed)
{
	unsigned width = c->width, bits = 8 * width;
	uint64_t a = get(t, c, AX, width), b, low, high;
	bool known, more;
	if (!read_rm(t, c, width, &b, &known))
		return false;
	known &= is_known(t, c, AX, width);
	unsigned up = 64 - bits;
	if (is_signed) {
		__int128 p = (__int128)((int64_t)(a << up) >> up) * ((int64_t)(b << up) >> up);
		low = (uint64_t)p & mask_of(width);
		high = (uint64_t)(p >> bits) & mask_of(width);
		more = p != (__int128)((int64_t)(low << up) >> up);
	} else {
		unsigned __int128 p = (unsigned __int128)a * b;
		low = (uint64_t)p & mask_of(width);
		high = (uint64_t)(p >> bits) & mask_of(width);
		more = high;
	}
	set_flags(t, CF | OF, more ? CF | OF : 0, known, SF | ZF | AF | PF);
	if (width == 1) {
		set(t, c, AX, 2, low | high << 8, known);
	} else {
		set(t, c, AX, width, low, known);
		set(t, c, DX, width, high, known);
	}
	return true;
}

static bool multiply_into(struct trail *t, const struct code *c, uint64_t a, uint64_t b, bool known)
{
	unsigned width = c->width, up = 64 - 8 * width;
	__int128 p = (__int128)((int64_t)(a << up) >> up) * ((int64_t)(b << up) >> up);
	uint64_t r = (uint64_t)p & mask_of(width);
	bool more = p != (__int128)((int64_t)(r << up) >> up);
	set_flags(t, CF | OF, more ? CF | OF : 0, known, SF | ZF | AF | PF);
	set(t, c, c->reg, width, r, known);
	return true;
}

static bool divide(struct trail *t, const struct code *c, bool is_signed)
{
	unsigned width = c->width, bits = 8 * width, up = 64 - bits;
	uint64_t by;
	bool known;
	if (!read_rm(t, c, width, &by, &known))
		return false;
	known &= is_known(t, c, AX, 8) && (width == 1 || is_known(t, c, DX, 8));
	t->unknown_flags |= ALL;
	if (width == 1 || !known) {
		forget(t, AX);
		if (width > 1)
			forget(t, DX);
		return true;
	}
	uint64_t low = get(t, c, AX, width), high = get(t, c, DX, width), quotient, rest;
	if (!by)
		return trail_stop(t, TRAIL_SYSTEM);
	/* A long one is rare, and would need a function of its own. */
	bool negative = low >> (bits - 1);
	if (high != (is_signed && negative ? mask_of(width) : 0)) {
		if (!is_signed && high >= by)
			return trail_stop(t, TRAIL_SYSTEM);
		forget(t, AX);
		forget(t, DX);
		return true;
	}
	if (is_signed) {
		int64_t x = (int64_t)(low << up) >> up, y = (int64_t)(by << up) >> up;
		if (y == -1)
			return trail_stop(t, TRAIL_STRANGE);
		quotient = (uint64_t)(x / y);
		rest = (uint64_t)(x % y);
	} else {
		quotient = low / by;
		rest = low % by;
	}
	set(t, c, AX, width, quotient, true);
	set(t, c, DX, width, rest, true);
	return true;
}

/* ---- groups ---- */

static bool with_immediate(struct trail *t, struct code *c, unsigned bytes)
{
	uint64_t a, b;
	bool known;
	take_operands(t, c, bytes);
	unsigned operation = c->reg & 7;
	b = take_number(c, bytes) & mask_of(c->width);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	a = calculate(t, operation, a, b, c->width, false, &known);
	return operation == CMP || write_rm(t, c, c->width, a, known);
}

/* The first 64 opcodes: eight operations with six forms of operands each. */
static bool arithmetic(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned operation = opcode >> 3, form = opcode & 7;
	uint64_t a, b;
	bool known, same = false;
	if (!(form & 1))
		c->width = 1;
	if (form >= 6)
		return trail_stop(t, TRAIL_STRANGE);
	if (form >= 4) {
		b = take_number(c, c->width > 4 ? 4 : c->width) & mask_of(c->width);
		known = is_known(t, c, AX, c->width);
		a = calculate(t, operation, get(t, c, AX, c->width), b, c->width, false, &known);
		if (operation != CMP)
			set(t, c, AX, c->width, a, known);
		return true;
	}
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	b = get(t, c, c->reg, c->width);
	known &= is_known(t, c, c->reg, c->width);
	same = c->mod == 3 && c->reg == c->rm;
	if (form < 2) {
		a = calculate(t, operation, a, b, c->width, same, &known);
		return operation == CMP || write_rm(t, c, c->width, a, known);
	}
	a = calculate(t, operation, b, a, c->width, same, &known);
	if (operation != CMP)
		set(t, c, c->reg, c->width, a, known);
	return true;
}

static bool test(struct trail *t, const struct code *c, uint64_t a, uint64_t b, bool known)
{
	calculate(t, AND, a, b, c->width, false, &known);
	return true;
}

static bool group_three(struct trail *t, struct code *c)
{
	uint64_t a;
	bool known;
	unsigned bytes = c->width > 4 ? 4 : c->width;
	/* Only the first two have a number behind the address: that matters if it is relative to the PC. */
	bool has_number = c->at < c->size && !(c->bytes[c->at] >> 3 & 6);
	take_operands(t, c, has_number ? bytes : 0);
	switch (c->reg & 7) {
	case 0:
	case 1: {
		uint64_t b = take_number(c, bytes) & mask_of(c->width);
		return read_rm(t, c, c->width, &a, &known) && test(t, c, a, b, known);
	}
	case 2:
		return read_rm(t, c, c->width, &a, &known) &&
		       write_rm(t, c, c->width, ~a & mask_of(c->width), known);
	case 3:
		if (!read_rm(t, c, c->width, &a, &known))
			return false;
		a = calculate(t, SUB, 0, a, c->width, false, &known);
		return write_rm(t, c, c->width, a, known);
	case 4:
	case 5:
		return multiply(t, c, c->reg & 1);
	default:
		return divide(t, c, c->reg & 1);
	}
}

static bool jump_indirect(struct trail *t, const struct code *c, uint64_t *next)
{
	uint64_t target;
	bool known;
	if (!read_rm(t, c, 8, &target, &known))
		return false;
	if (!known)
		return trail_stop(t, TRAIL_UNKNOWN);
	if ((c->reg & 7) == 2 && !push(t, c, *next, true))
		return false;
	*next = target;
	return (c->reg & 7) == 2 || trail_add(t, t->pc, target);
}

static bool group_five(struct trail *t, struct code *c, uint64_t *next)
{
	uint64_t value;
	bool known;
	take_operands(t, c, 0);
	*next = t->pc + c->at;
	switch (c->reg & 7) {
	case 0:
		return count_by_one(t, c, false);
	case 1:
		return count_by_one(t, c, true);
	case 2:
	case 4:
		return c->width == 1 ? trail_stop(t, TRAIL_STRANGE) : jump_indirect(t, c, next);
	case 6:
		if (c->width == 1 || c->small)
			return trail_stop(t, TRAIL_STRANGE);
		return read_rm(t, c, 8, &value, &known) && push(t, c, value, known);
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
}

static bool branch(struct trail *t, struct code *c, unsigned condition, unsigned bytes,
		   uint64_t *next)
{
	uint64_t offset = take_number(c, bytes);
	bool known, taken = holds(t, condition, &known);
	if (!known)
		return trail_stop(t, TRAIL_UNKNOWN);
	*next = t->pc + c->at + (taken ? offset : 0);
	return trail_add(t, t->pc, *next);
}

static bool call(struct trail *t, struct code *c, uint64_t *next)
{
	uint64_t offset = take_number(c, 4);
	*next = t->pc + c->at + offset;
	return push(t, c, t->pc + c->at, true);
}

static bool go_back(struct trail *t, struct code *c, unsigned drops, uint64_t *next)
{
	bool known;
	if (!pop(t, c, next, &known))
		return false;
	if (!known)
		return trail_stop(t, TRAIL_UNKNOWN);
	if (drops)
		set(t, c, SP, 8, get(t, c, SP, 8) + drops, true);
	return true;
}

static bool exchange(struct trail *t, struct code *c)
{
	uint64_t a, b;
	bool known, other;
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	b = get(t, c, c->reg, c->width);
	other = is_known(t, c, c->reg, c->width);
	if (!write_rm(t, c, c->width, b, other))
		return false;
	set(t, c, c->reg, c->width, a, known);
	return true;
}

/* ---- the old floating point ---- */

static bool floating(struct trail *t, struct code *c, unsigned opcode)
{
	take_operands(t, c, 0);
	unsigned operation = c->reg & 7;
	if (c->mod == 3) {
		if (opcode == 0xdf && operation == 4 && (c->rm & 7) == 0)
			forget(t, AX);
		if ((opcode == 0xdb || opcode == 0xdf) && (operation == 5 || operation == 6))
			t->unknown_flags |= ALL;
		return true;
	}
	bool stores = (opcode & 1) && operation && operation != 5 &&
		      !(opcode == 0xd9 && operation == 4) && !(opcode == 0xdd && operation == 4) &&
		      !(opcode == 0xdf && operation == 4) && !(opcode == 0xd9 && operation == 1);
	if ((opcode == 0xd9 && (operation == 4 || operation == 6)) ||
	    (opcode == 0xdd && (operation == 4 || operation == 6)))
		return trail_stop(t, TRAIL_STRANGE);
	return !stores || write_unknown(t, c, 16);
}

/* ---- vectors ---- */

/* What an instruction of a vector does to others. `map`: 1 for 0F, 2 for 0F 38, 3 for 0F 3A. `bytes`: of a vector. */
static bool vector(struct trail *t, struct code *c, unsigned map, unsigned opcode, bool vex,
		   unsigned third, unsigned bytes)
{
	bool number = map == 3 ||
		      (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
				    (opcode >= 0xc4 && opcode <= 0xc6)));
	if (vex && map == 1 && opcode == 0x77)
		return true;
	take_operands(t, c, number);
	if (number)
		take(c);
	if (map == 1) {
		switch (opcode) {
		case 0x11:
		case 0x13:
		case 0x17:
		case 0x29:
		case 0x2b:
		case 0x7f:
		case 0xd6:
		case 0xe7:
			return write_unknown(t, c, bytes);
		case 0x7e:
			if (c->repeats)
				return true;
			if (c->mod == 3)
				forget(t, c->rm);
			return write_unknown(t, c, 8);
		case 0x2c:
		case 0x2d:
		case 0x50:
		case 0xc5:
		case 0xd7:
			forget(t, c->reg);
			return true;
		case 0x2e:
		case 0x2f:
			t->unknown_flags |= ALL;
			return true;
		case 0x93:
			forget(t, c->reg);
			return vex || trail_stop(t, TRAIL_STRANGE);
		case 0x98:
		case 0x99:
			t->unknown_flags |= ALL;
			return vex || trail_stop(t, TRAIL_STRANGE);
		case 0x91:
			return vex ? write_unknown(t, c, 8) : trail_stop(t, TRAIL_STRANGE);
		case 0x90:
		case 0x92:
			return vex || trail_stop(t, TRAIL_STRANGE);
		case 0xf7:
		case 0xff:
		case 0x78:
		case 0x79:
			return trail_stop(t, TRAIL_STRANGE);
		default:
			return true;
		}
	}
	if (map == 2) {
		switch (opcode) {
		case 0x0e:
		case 0x0f:
		case 0x17:
			t->unknown_flags |= ALL;
			return true;
		case 0x2e:
		case 0x2f:
		case 0x8e:
			return trail_stop(t, TRAIL_STRANGE);
		case 0xf0:
		case 0xf1:
			if (!c->repeats_not)
				return trail_stop(t, TRAIL_STRANGE);
			forget(t, c->reg);
			return true;
		case 0xf2:
		case 0xf3:
		case 0xf5:
		case 0xf6:
		case 0xf7:
			if (!vex)
				return trail_stop(t, TRAIL_STRANGE);
			t->unknown_flags |= ALL;
			if (opcode != 0xf3)
				forget(t, c->reg);
			if (opcode == 0xf3 || opcode == 0xf6)
				forget(t, third);
			return true;
		default:
			return opcode < 0xe0 || trail_stop(t, TRAIL_STRANGE);
		}
	}
	switch (opcode) {
	case 0x14:
	case 0x15:
	case 0x16:
	case 0x17:
		if (c->mod == 3)
			forget(t, c->rm);
		return write_unknown(t, c, 8);
	case 0x19:
	case 0x1d:
	case 0x39:
		return write_unknown(t, c, bytes);
	case 0x60:
	case 0x61:
	case 0x62:
	case 0x63:
		forget(t, CX);
		t->unknown_flags |= ALL;
		return true;
	case 0xf0:
		if (!vex)
			return trail_stop(t, TRAIL_STRANGE);
		forget(t, c->reg);
		return true;
	default:
		return true;
	}
}

static bool with_vex(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned map = 1, byte = take(c);
	c->has_rex = true;
	c->rex = (byte & 0x80 ? 0 : 4);
	if (opcode == 0xc4) {
		map = byte & 31;
		c->rex |= (byte & 0x40 ? 0 : 2) | (byte & 0x20 ? 0 : 1);
		byte = take(c);
		c->rex |= byte & 0x80 ? 8 : 0;
	}
	c->small = (byte & 3) == 1;
	c->repeats = (byte & 3) == 2;
	c->repeats_not = (byte & 3) == 3;
	if (map < 1 || map > 3)
		return trail_stop(t, TRAIL_STRANGE);
	return vector(t, c, map, take(c), true, ~byte >> 3 & 15, byte & 4 ? 32 : 16);
}

/* ---- two bytes ---- */

static bool bit_test(struct trail *t, struct code *c, unsigned operation, uint64_t bit, bool there)
{
	uint64_t a;
	bool known;
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	known &= there;
	bit &= 8 * c->width - 1;
	set_flags(t, CF, a >> bit & 1 ? CF : 0, known, OF | SF | AF | PF);
	uint64_t one = 1ull << bit;
	switch (operation) {
	case 4:
		return true;
	case 5:
		return write_rm(t, c, c->width, a | one, known);
	case 6:
		return write_rm(t, c, c->width, a & ~one, known);
	default:
		return write_rm(t, c, c->width, a ^ one, known);
	}
}

static bool scan_bits(struct trail *t, struct code *c, bool from_top)
{
	uint64_t a;
	bool known;
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	if (c->repeats || !known || !a) {
		/* tzcnt and lzcnt on CPUs that have them, else bsf and bsr. */
		bool same = c->repeats && !from_top && known && a;
		t->unknown_flags |= ALL;
		if (!c->repeats && known)
			set_flags(t, ZF, ZF, true, 0);
		set(t, c, c->reg, c->width, same ? (unsigned)__builtin_ctzll(a) : 0, same);
		if (!same)
			forget(t, c->reg);
		return true;
	}
	t->unknown_flags |= ALL;
	set_flags(t, ZF, 0, true, 0);
	set(t, c, c->reg, c->width,
	    from_top ? 63 - (unsigned)__builtin_clzll(a) : (unsigned)__builtin_ctzll(a), true);
	return true;
}

static bool compare_exchange(struct trail *t, struct code *c)
{
	uint64_t a, accumulator = get(t, c, AX, c->width);
	bool known, there = is_known(t, c, AX, c->width);
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	if (!known || !there)
		return trail_stop(t, TRAIL_UNKNOWN);
	calculate(t, CMP, accumulator, a, c->width, false, &known);
	if (a == accumulator)
		return write_rm(t, c, c->width, get(t, c, c->reg, c->width),
				is_known(t, c, c->reg, c->width));
	set(t, c, AX, c->width, a, true);
	return true;
}

static bool exchange_add(struct trail *t, struct code *c)
{
	uint64_t a, b;
	bool known;
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	bool before = known;
	b = get(t, c, c->reg, c->width);
	known &= is_known(t, c, c->reg, c->width);
	b = calculate(t, ADD, a, b, c->width, false, &known);
	set(t, c, c->reg, c->width, a, before);
	return write_rm(t, c, c->width, b, known);
}

static bool extend(struct trail *t, struct code *c, unsigned width, bool is_signed)
{
	uint64_t a;
	bool known;
	unsigned up = 64 - 8 * width;
	take_operands(t, c, 0);
	if (!read_rm(t, c, width, &a, &known))
		return false;
	if (is_signed)
		a = (uint64_t)((int64_t)(a << up) >> up);
	set(t, c, c->reg, c->width, a, known);
	return true;
}

static bool move_if(struct trail *t, struct code *c, unsigned condition)
{
	uint64_t a;
	bool known, there, yes = holds(t, condition, &there);
	take_operands(t, c, 0);
	if (!read_rm(t, c, c->width, &a, &known))
		return false;
	if (!there) {
		set(t, c, c->reg, c->width, 0, false);
		forget(t, c->reg);
	} else if (yes) {
		set(t, c, c->reg, c->width, a, known);
	} else if (c->width == 4) { /* the upper half becomes zero anyway */
		set(t, c, c->reg, 4, get(t, c, c->reg, 4), is_known(t, c, c->reg, 4));
	}
	return true;
}

static bool state_of_cpu(struct trail *t, struct code *c)
{
	take_operands(t, c, 0);
	unsigned operation = c->reg & 7;
	if (c->mod == 3) { /* fences */
		if (operation >= 5 && !c->repeats && !c->repeats_not && !c->small)
			return true;
		if (c->repeats && operation < 2) {
			forget(t, c->rm);
			return true;
		}
		return trail_stop(t, TRAIL_STRANGE);
	}
	if (operation == 2 || operation == 7)
		return true;
	return operation == 3 ? write_unknown(t, c, 4) : trail_stop(t, TRAIL_STRANGE);
}

static bool two_bytes(struct trail *t, struct code *c, uint64_t *next)
{
	unsigned opcode = take(c);
	uint64_t a;
	bool known, yes;
	if (opcode >= 0x80 && opcode < 0x90)
		return branch(t, c, opcode & 15, 4, next);
	if (opcode >= 0x40 && opcode < 0x50)
		return move_if(t, c, opcode & 15);
	if (opcode >= 0x90 && opcode < 0xa0) {
		yes = holds(t, opcode & 15, &known);
		take_operands(t, c, 0);
		return write_rm(t, c, 1, yes, known);
	}
	if (opcode >= 0xc8 && opcode < 0xd0) {
		unsigned n = (opcode & 7) | (c->rex & 1) << 3;
		if (c->width < 4)
			return trail_stop(t, TRAIL_STRANGE);
		a = get(t, c, n, c->width);
		set(t, c, n, c->width,
		    c->width == 8 ? __builtin_bswap64(a) : __builtin_bswap32((uint32_t)a),
		    is_known(t, c, n, c->width));
		return true;
	}
	switch (opcode) {
	case 0x05:
	case 0x0b:
		return trail_stop(t, TRAIL_SYSTEM);
	case 0x01:
		if (take(c) != 0xd0)
			return trail_stop(t, TRAIL_STRANGE);
		forget(t, AX);
		forget(t, DX);
		return true;
	case 0x0d:
	case 0x18:
	case 0x19:
	case 0x1a:
	case 0x1b:
	case 0x1c:
	case 0x1d:
	case 0x1f:
		take_operands(t, c, 0);
		return true;
	case 0x1e:
		take_operands(t, c, 0);
		if (c->repeats && c->mod == 3 && (c->reg & 7) == 1)
			forget(t, c->rm);
		return true;
	case 0x31:
		forget(t, AX);
		forget(t, DX);
		return true;
	case 0xa2:
		forget(t, AX);
		forget(t, BX);
		forget(t, CX);
		forget(t, DX);
		return true;
	case 0xa3:
	case 0xab:
	case 0xb3:
	case 0xbb:
		take_operands(t, c, 0);
		if (c->mod != 3) /* the bit may be anywhere */
			return trail_stop(t, TRAIL_STRANGE);
		return bit_test(t, c, opcode >> 3 & 7, get(t, c, c->reg, c->width),
				is_known(t, c, c->reg, c->width));
	case 0xba:
		take_operands(t, c, 1);
		if ((c->reg & 7) < 4)
			return trail_stop(t, TRAIL_STRANGE);
		return bit_test(t, c, c->reg & 7, take(c), true);
	case 0xa4:
	case 0xac:
		take_operands(t, c, 1);
		return shift_double(t, c, opcode == 0xa4, take(c), true);
	case 0xa5:
	case 0xad:
		take_operands(t, c, 0);
		return shift_double(t, c, opcode == 0xa5, (unsigned)get(t, c, CX, 8) & 0xff,
				    is_known(t, c, CX, 8));
	case 0xae:
		return state_of_cpu(t, c);
	case 0xaf:
		take_operands(t, c, 0);
		return read_rm(t, c, c->width, &a, &known) &&
		       multiply_into(t, c, get(t, c, c->reg, c->width), a,
				     known && is_known(t, c, c->reg, c->width));
	case 0xb0:
		c->width = 1;
		return compare_exchange(t, c);
	case 0xb1:
		return compare_exchange(t, c);
	case 0xb6:
		return extend(t, c, 1, false);
	case 0xb7:
		return extend(t, c, 2, false);
	case 0xbe:
		return extend(t, c, 1, true);
	case 0xbf:
		return extend(t, c, 2, true);
	case 0xb8:
		if (!c->repeats)
			return trail_stop(t, TRAIL_STRANGE);
		take_operands(t, c, 0);
		if (!read_rm(t, c, c->width, &a, &known))
			return false;
		set_flags(t, ALL, a ? 0 : ZF, known, 0);
		unsigned ones = 0;
		for (uint64_t rest = a; rest; rest &= rest - 1)
			ones++;
		set(t, c, c->reg, c->width, ones, known);
		return true;
	case 0xbc:
		return scan_bits(t, c, false);
	case 0xbd:
		return scan_bits(t, c, true);
	case 0xc0:
		c->width = 1;
		return exchange_add(t, c);
	case 0xc1:
		return exchange_add(t, c);
	case 0xc3:
		take_operands(t, c, 0);
		return c->mod != 3 ? write_rm(t, c, c->width, get(t, c, c->reg, c->width),
					      is_known(t, c, c->reg, c->width))
				   : trail_stop(t, TRAIL_STRANGE);
	case 0x38:
		return vector(t, c, 2, take(c), false, 0, 16);
	case 0x3a:
		return vector(t, c, 3, take(c), false, 0, 16);
	case 0x77:
		return true;
	default:
		if ((opcode >= 0x10 && opcode < 0x18) || (opcode >= 0x28 && opcode < 0x30) ||
		    (opcode >= 0x50 && opcode < 0x78) || (opcode >= 0x7c && opcode < 0x80) ||
		    opcode == 0xc2 || (opcode >= 0xc4 && opcode < 0xc7) || opcode >= 0xd0)
			return vector(t, c, 1, opcode, false, 0, 16);
		return trail_stop(t, TRAIL_STRANGE);
	}
}

/* ---- one byte ---- */

static bool move_immediate(struct trail *t, struct code *c, unsigned bytes)
{
	take_operands(t, c, bytes);
	uint64_t value = take_number(c, bytes);
	if (c->reg & 7)
		return trail_stop(t, TRAIL_STRANGE);
	return write_rm(t, c, c->width, value & mask_of(c->width), true);
}

static bool widen(struct trail *t, struct code *c, unsigned opcode)
{
	unsigned width = c->width, from = opcode == 0x98 ? width / 2 : width, up = 64 - 8 * from;
	bool known = is_known(t, c, AX, width);
	int64_t value = (int64_t)(t->registers[numbers[AX]] << up) >> up;
	if (opcode == 0x98)
		set(t, c, AX, width, (uint64_t)value, known);
	else
		set(t, c, DX, width, value < 0 ? UINT64_MAX : 0, known);
	return true;
}

static bool one_byte(struct trail *t, struct code *c, unsigned opcode, uint64_t *next)
{
	unsigned n = (opcode & 7) | (c->rex & 1) << 3, bytes = c->width > 4 ? 4 : c->width;
	uint64_t a, b;
	bool known;
	if (opcode == 0x0f)
		return two_bytes(t, c, next);
	if (opcode < 0x40)
		return arithmetic(t, c, opcode);
	if (opcode >= 0x70 && opcode < 0x80)
		return branch(t, c, opcode & 15, 1, next);
	if (opcode >= 0xd8 && opcode < 0xe0)
		return floating(t, c, opcode);
	switch (opcode & 0xf8) {
	case 0x50:
		return c->small ? trail_stop(t, TRAIL_STRANGE)
				: push(t, c, get(t, c, n, 8), is_known(t, c, n, 8));
	case 0x58:
		if (c->small)
			return trail_stop(t, TRAIL_STRANGE);
		if (!pop(t, c, &a, &known))
			return false;
		set(t, c, n, 8, a, known);
		return true;
	case 0x90:
		if (n == AX)
			return true;
		a = get(t, c, n, c->width);
		b = get(t, c, AX, c->width);
		known = is_known(t, c, n, c->width);
		bool other = is_known(t, c, AX, c->width);
		set(t, c, AX, c->width, a, known);
		set(t, c, n, c->width, b, other);
		return true;
	case 0xb0:
		set(t, c, n, 1, take(c), true);
		return true;
	case 0xb8:
		a = take_number(c, c->width);
		set(t, c, n, c->width, a, true);
		return true;
	default:
		break;
	}
	switch (opcode) {
	case 0x63:
		return extend(t, c, 4, true);
	case 0x68:
		return c->small ? trail_stop(t, TRAIL_STRANGE)
				: push(t, c, take_number(c, 4), true);
	case 0x6a:
		return c->small ? trail_stop(t, TRAIL_STRANGE)
				: push(t, c, take_number(c, 1), true);
	case 0x69:
	case 0x6b:
		bytes = opcode == 0x69 ? bytes : 1;
		take_operands(t, c, bytes);
		b = take_number(c, bytes) & mask_of(c->width);
		return read_rm(t, c, c->width, &a, &known) && multiply_into(t, c, a, b, known);
	case 0x80:
		c->width = 1;
		return with_immediate(t, c, 1);
	case 0x81:
		return with_immediate(t, c, bytes);
	case 0x83:
		return with_immediate(t, c, 1);
	case 0x84:
		c->width = 1;
		__attribute__((fallthrough));
	case 0x85:
		take_operands(t, c, 0);
		return read_rm(t, c, c->width, &a, &known) &&
		       test(t, c, a, get(t, c, c->reg, c->width),
			    known && is_known(t, c, c->reg, c->width));
	case 0x86:
		c->width = 1;
		return exchange(t, c);
	case 0x87:
		return exchange(t, c);
	case 0x88:
		c->width = 1;
		__attribute__((fallthrough));
	case 0x89:
		take_operands(t, c, 0);
		return write_rm(t, c, c->width, get(t, c, c->reg, c->width),
				is_known(t, c, c->reg, c->width));
	case 0x8a:
		c->width = 1;
		__attribute__((fallthrough));
	case 0x8b:
		take_operands(t, c, 0);
		if (!read_rm(t, c, c->width, &a, &known))
			return false;
		set(t, c, c->reg, c->width, a, known);
		return true;
	case 0x8d:
		c->thread = c->foreign = false;
		take_operands(t, c, 0);
		if (c->mod == 3)
			return trail_stop(t, TRAIL_STRANGE);
		set(t, c, c->reg, c->width, c->address, c->known);
		return true;
	case 0x98:
	case 0x99:
		return widen(t, c, opcode);
	case 0x9b:
	case 0xfc:
		return true;
	case 0xa8:
		c->width = bytes = 1;
		__attribute__((fallthrough));
	case 0xa9:
		b = take_number(c, bytes) & mask_of(c->width);
		return test(t, c, get(t, c, AX, c->width), b, is_known(t, c, AX, c->width));
	case 0xc0:
		c->width = 1;
		__attribute__((fallthrough));
	case 0xc1:
		take_operands(t, c, 1);
		return shift(t, c, c->reg & 7, take(c));
	case 0xd0:
		c->width = 1;
		__attribute__((fallthrough));
	case 0xd1:
		take_operands(t, c, 0);
		return shift(t, c, c->reg & 7, 1);
	case 0xd2:
		c->width = 1;
		__attribute__((fallthrough));
	case 0xd3:
		take_operands(t, c, 0);
		return shift_by_cl(t, c, c->reg & 7);
	case 0xc2:
		bytes = (unsigned)take_number(c, 2) & 0xffff;
		return go_back(t, c, bytes, next);
	case 0xc3:
		return go_back(t, c, 0, next);
	case 0xc4:
	case 0xc5:
		return with_vex(t, c, opcode);
	case 0xc6:
		c->width = 1;
		return move_immediate(t, c, 1);
	case 0xc7:
		return move_immediate(t, c, bytes);
	case 0xc9:
		set(t, c, SP, 8, get(t, c, BP, 8), is_known(t, c, BP, 8));
		if (!pop(t, c, &a, &known))
			return false;
		set(t, c, BP, 8, a, known);
		return true;
	case 0xe3:
		a = take_number(c, 1);
		if (!is_known(t, c, CX, 8))
			return trail_stop(t, TRAIL_UNKNOWN);
		*next = t->pc + c->at + (get(t, c, CX, 8) ? 0 : a);
		return trail_add(t, t->pc, *next);
	case 0xe8:
		return call(t, c, next);
	case 0xe9:
		a = take_number(c, 4);
		*next = t->pc + c->at + a;
		return true;
	case 0xeb:
		a = take_number(c, 1);
		*next = t->pc + c->at + a;
		return true;
	case 0xf5:
		t->flags ^= CF;
		return true;
	case 0xf8:
	case 0xf9:
		set_flags(t, CF, opcode & 1 ? CF : 0, true, 0);
		return true;
	case 0xf6:
		c->width = 1;
		return group_three(t, c);
	case 0xf7:
		return group_three(t, c);
	case 0xfe:
		c->width = 1;
		return group_five(t, c, next);
	case 0xff:
		return group_five(t, c, next);
	case 0xcc:
	case 0xcd:
	case 0xf4:
		return trail_stop(t, TRAIL_SYSTEM);
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
}

static unsigned take_prefixes(struct code *c)
{
	for (;;) {
		unsigned byte = take(c);
		switch (byte) {
		case 0x66:
			c->small = true;
			break;
		case 0xf2:
			c->repeats_not = true;
			break;
		case 0xf3:
			c->repeats = true;
			break;
		case 0x64:
			c->thread = true;
			break;
		case 0x65:
		case 0x67: /* half of an address: before a call, it is padding */
			c->foreign = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0: /* nobody comes between */
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return byte;
			c->has_rex = true;
			c->rex = byte & 15;
			return take(c);
		}
		if (c->at >= sizeof c->bytes)
			return 0xcc;
	}
}

static bool step(struct trail *t, struct code *c, uint64_t *next)
{
	unsigned opcode = take_prefixes(c);
	c->width = c->rex & 8 ? 8 : c->small ? 2 : 4;
	*next = 0;
	if (!one_byte(t, c, opcode, next))
		return false;
	if (!*next)
		*next = t->pc + c->at;
	/* What could not be read was taken for zeros. */
	return c->at <= c->size || trail_stop(t, TRAIL_NO_CODE);
}

void trail_follow_x86_64(struct trail *t, uint32_t steps)
{
	t->edge_count = t->store_count = t->steps = 0;
	t->unknown = t->unknown_flags = 0;
	t->end = TRAIL_ON;
	for (; t->steps < steps; t->steps++) {
		struct code c = {.size = 0};
		uint64_t next;
		uint32_t edges = t->edge_count;
		c.size = (unsigned)t->read_code(t->context, t->pc, c.bytes, 15);
		if (!c.size) {
			t->end = TRAIL_NO_CODE;
			return;
		}
		if (!step(t, &c, &next)) {
			if (t->end == TRAIL_NO_CODE)
				t->edge_count = edges;
			return;
		}
		t->pc = next;
	}
	t->end = TRAIL_LONG;
}
