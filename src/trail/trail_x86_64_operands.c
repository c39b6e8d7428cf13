/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an instruction, and where its operands are: registers, memory, the stack. */
#include "trail/trail_x86_64_operands.h"

/* DWARF's numbers, by the CPU's. */
static const uint8_t numbers[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- bytes ---- */

unsigned x86_take(struct code *c)
{
	unsigned at = c->at++;
	return at < c->size ? c->bytes[at] : 0;
}

uint64_t x86_take_number(struct code *c, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)x86_take(c) << 8 * i;
	return (uint64_t)trail_signed(value, bytes);
}

/* ---- registers ---- */

/* ah, ch, dh, bh */
static bool is_high(const struct code *c, unsigned n, unsigned width)
{
	return width == 1 && !c->has_rex && n >= 4;
}

struct trail_value x86_get(const struct trail *t, const struct code *c, unsigned n, unsigned width)
{
	bool high = is_high(c, n, width);
	struct trail_value value = trail_get(t, numbers[high ? n - 4 : n]);
	value.bits = value.bits >> (high ? 8 : 0) & trail_mask(width);
	return value;
}

void x86_set(struct trail *t, const struct code *c, unsigned n, unsigned width,
	     struct trail_value value)
{
	bool high = is_high(c, n, width);
	unsigned number = numbers[high ? n - 4 : n];
	value.bits &= trail_mask(width);
	if (width < 4) { /* the rest stays */
		struct trail_value before = trail_get(t, number);
		unsigned by = high ? 8 : 0;
		value.bits = (before.bits & ~(trail_mask(width) << by)) | value.bits << by;
		value.known &= before.known;
	}
	trail_set(t, number, value);
}

void x86_forget(struct trail *t, unsigned n)
{
	t->unknown |= 1u << numbers[n];
}

/* ---- addresses ---- */

static void add_to(struct trail_value *address, struct trail_value part)
{
	address->bits += part.bits;
	address->known &= part.known;
}

/* The byte for a base and an index. Returns the base, 16 if there is none. */
static unsigned take_index(const struct trail *t, struct code *c)
{
	unsigned sib = x86_take(c), index = (sib >> 3 & 7) | (c->rex & 2) << 2, base = sib & 7;
	if (index != 4) {
		struct trail_value value = x86_get(t, c, index, 8);
		value.bits <<= sib >> 6;
		add_to(&c->address, value);
	}
	if (base != 5 || c->mod)
		return base | (c->rex & 1) << 3;
	c->address.bits += x86_take_number(c, 4);
	return 16;
}

/* The address that the mod and rm fields, and what follows them, stand for. */
static void take_address(const struct trail *t, struct code *c, unsigned after)
{
	unsigned base = c->rm | (c->rex & 1) << 3;
	c->address = trail_known(0);
	if (c->rm == 4) {
		base = take_index(t, c);
	} else if (c->rm == 5 && !c->mod) {
		c->address.bits = x86_take_number(c, 4);
		c->address.bits += t->pc + c->at + after;
		base = 16;
	}
	if (base < 16)
		add_to(&c->address, x86_get(t, c, base, 8));
	if (c->mod)
		c->address.bits += x86_take_number(c, c->mod == 1 ? 1 : 4);
	if (c->thread)
		c->address.bits += t->thread;
	c->address.known &= !c->foreign;
}

void x86_take_operands(const struct trail *t, struct code *c, unsigned after)
{
	unsigned byte = x86_take(c);
	c->mod = byte >> 6;
	c->reg = (byte >> 3 & 7) | (c->rex & 4) << 1;
	c->rm = byte & 7;
	if (c->mod == 3)
		c->rm |= (c->rex & 1) << 3;
	else
		take_address(t, c, after);
}

/* ---- operands ---- */

bool x86_read(struct trail *t, const struct code *c, unsigned width, struct trail_value *value)
{
	if (c->mod != 3)
		return trail_load(t, c->address, width, value);
	*value = x86_get(t, c, c->rm, width);
	return true;
}

bool x86_write(struct trail *t, const struct code *c, unsigned width, struct trail_value value)
{
	if (c->mod == 3) {
		x86_set(t, c, c->rm, width, value);
		return true;
	}
	value.bits &= trail_mask(width);
	return trail_store(t, c->address, width, value);
}

bool x86_write_vector(struct trail *t, const struct code *c, unsigned bytes)
{
	return c->mod == 3 || trail_store_unknown(t, c->address, bytes);
}

bool x86_push(struct trail *t, const struct code *c, struct trail_value value)
{
	struct trail_value sp = x86_get(t, c, SP, 8);
	if (!sp.known)
		return trail_stop(t, TRAIL_MEMORY);
	sp.bits -= 8;
	x86_set(t, c, SP, 8, sp);
	return trail_store(t, sp, 8, value);
}

bool x86_pop(struct trail *t, const struct code *c, struct trail_value *value)
{
	struct trail_value sp = x86_get(t, c, SP, 8);
	if (!sp.known)
		return trail_stop(t, TRAIL_MEMORY);
	if (!trail_load(t, sp, 8, value))
		return false;
	sp.bits += 8;
	x86_set(t, c, SP, 8, sp);
	return true;
}
