/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "explain/kinds.h"

static uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
	return word >> low & ((1u << (high - low + 1)) - 1);
}

/* Loads, stores, exclusives and atomics: bit 27 set, bit 25 clear. */
static enum frequency_kind kind_of_memory(uint32_t word)
{
	bool vector = bits(word, 26, 26);
	switch (bits(word, 29, 28)) {
	case 0: /* exclusive, ordered, compare-and-swap; of vectors: structures */
		if (!vector)
			return FREQUENCY_SLOW;
		return bits(word, 22, 22) ? FREQUENCY_LOAD : FREQUENCY_STORE;
	case 1: /* literals */
		return FREQUENCY_LOAD;
	case 2: /* pairs */
		return bits(word, 22, 22) ? FREQUENCY_LOAD : FREQUENCY_STORE;
	default:
		if (!vector && !bits(word, 24, 24) && bits(word, 21, 21) && !bits(word, 11, 10))
			return FREQUENCY_SLOW; /* atomic */
		if (vector)                    /* opc: 00 and 10 store */
			return bits(word, 22, 22) ? FREQUENCY_LOAD : FREQUENCY_STORE;
		return bits(word, 23, 22) ? FREQUENCY_LOAD : FREQUENCY_STORE;
	}
}

static enum frequency_kind kind_of_registers(uint32_t word)
{
	if (bits(word, 28, 24) == 0x1b) /* three sources: multiply and add */
		return FREQUENCY_SLOW;
	bool divides = bits(word, 30, 21) == 0x0d6 && bits(word, 15, 11) == 1;
	return divides ? FREQUENCY_SLOW : FREQUENCY_PLAIN;
}

enum frequency_kind kind_aarch64(const uint8_t *code, size_t size)
{
	uint32_t word;
	if (size < sizeof word)
		return FREQUENCY_PLAIN;
	memcpy(&word, code, sizeof word); /* little-endian, as this CPU's code is */
	uint32_t group = bits(word, 28, 25);
	if ((group & 5) == 4)
		return kind_of_memory(word);
	if ((group & 7) == 5)
		return kind_of_registers(word);
	if ((group & 7) == 7 || group == 2)
		return FREQUENCY_VECTOR;
	return bits(word, 31, 22) == 0x354 ? FREQUENCY_SLOW
					   : FREQUENCY_PLAIN; /* system registers, barriers */
}
