/* SPDX-License-Identifier: Apache-2.0 */
#include "trail/interpret.h"

static struct trail_store *find_store(struct trail *t, uint64_t word)
{
	for (uint32_t i = t->store_count; i-- > 0;)
		if (t->stores[i].address == word)
			return &t->stores[i];
	return NULL;
}

/* The bytes `first` up to `first + size` of a word, a bit for each. */
static unsigned bytes_of(unsigned first, unsigned size)
{
	return ((1u << size) - 1) << first & 0xff;
}

/* Each bit becomes a byte. */
static uint64_t spread(unsigned bytes)
{
	/* Seven of the bits, each moved by seven times its number: none meets another. Then the last one. */
	uint64_t bits = (bytes & 0x7f) * 0x0002040810204081ull | (uint64_t)(bytes >> 7) << 56;
	return (bits & 0x0101010101010101ull) * 0xff;
}

/* What was stored of the wanted bytes of a word. *missing: those that must come from memory. */
static uint64_t stored_part(struct trail *t, uint64_t word, unsigned wanted, unsigned *missing,
			    bool *known)
{
	const struct trail_store *s = find_store(t, word);
	*missing = wanted;
	if (!s)
		return 0;
	*missing = wanted & ~s->written;
	if (wanted & s->written & ~s->known)
		*known = false;
	return s->value & spread(wanted & s->written);
}

bool trail_load(struct trail *t, struct trail_value address, unsigned size, struct trail_value *out)
{
	uint64_t memory = 0, value = 0, wanted = UINT64_MAX, word = address.bits & ~7ull;
	unsigned first = address.bits & 7, missing;
	bool known = true;
	*out = TRAIL_NOT_KNOWN;
	if (!address.known)
		return true;
	if (t->store_count) {
		unsigned here = first + size > 8 ? 8 - first : size;
		value = stored_part(t, word, bytes_of(first, here), &missing, &known) >> 8 * first;
		wanted = spread(missing) >> 8 * first;
		if (here < size) {
			value |=
				stored_part(t, word + 8, bytes_of(0, size - here), &missing, &known)
				<< 8 * here;
			wanted |= spread(missing) << 8 * here;
		}
	}
	if (wanted && t->read_data(t->context, address.bits, &memory, size) != size)
		return trail_stop(t, TRAIL_MEMORY);
	*out = (struct trail_value){value | (memory & wanted), known};
	return true;
}

static bool store_part(struct trail *t, uint64_t word, unsigned bytes, uint64_t value, bool known)
{
	struct trail_store *s = find_store(t, word);
	if (!s) {
		if (t->store_count == TRAIL_STORES)
			return trail_stop(t, TRAIL_FULL);
		s = &t->stores[t->store_count++];
		*s = (struct trail_store){.address = word};
	}
	uint64_t mask = spread(bytes);
	s->value = (s->value & ~mask) | (value & mask);
	s->written |= (uint8_t)bytes;
	s->known = (uint8_t)(known ? s->known | bytes : s->known & ~bytes);
	return true;
}

bool trail_store(struct trail *t, struct trail_value address, unsigned size,
		 struct trail_value value)
{
	unsigned first = address.bits & 7, here = first + size > 8 ? 8 - first : size;
	uint64_t word = address.bits & ~7ull;
	if (!address.known)
		return trail_stop(t, TRAIL_MEMORY);
	if (!store_part(t, word, bytes_of(first, here), value.bits << 8 * first, value.known))
		return false;
	return here == size || store_part(t, word + 8, bytes_of(0, size - here),
					  value.bits >> 8 * here, value.known);
}

bool trail_store_unknown(struct trail *t, struct trail_value address, unsigned size)
{
	for (unsigned part; size; address.bits += part, size -= part) {
		part = size < 8 ? size : 8;
		if (!trail_store(t, address, part, TRAIL_NOT_KNOWN))
			return false;
	}
	return true;
}

bool trail_add(struct trail *t, uint64_t from, uint64_t to)
{
	if (t->edge_count == TRAIL_EDGES)
		return trail_stop(t, TRAIL_LONG);
	t->edges[t->edge_count++] = (struct trail_edge){from, to};
	return true;
}

void trail_begin(struct trail *t)
{
	t->edge_count = t->store_count = t->steps = 0;
	t->unknown = t->unknown_flags = 0;
	t->end = TRAIL_ON;
}
