/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/sentinels.h"

#include <string.h>

#include "collect/agents/arenas.h"
#include "collect/agents/state.h"
#include "safe/wire.h"
#include "unwind/cpu.h"

#define SLOT ((UINT64_C(1) << 52) - 1)

/* The ring of a thread; NULL: there is none. */
static const struct arena_mark *ring_of(const struct arena *a, uint32_t owner)
{
	const struct arena_thread *t = a->header ? arena_record(a, owner) : NULL;
	const struct arena_chunk *chunk = t ? (void *)arena_record(a, t->marks) : NULL;
	return chunk ? (const struct arena_mark *)(chunk + 2) : NULL;
}

static bool is_stub(const struct arena *a, uint64_t word)
{
	uint64_t stubs = a->header ? a->header->stubs : 0;
	return stubs && word - stubs < WIRE_STUBS * WIRE_STUB;
}

/* A stub may have put its own address elsewhere: the word at the same place is the best, else any of its
   number. A ring has fewer entries than there are stubs, and these are used in turn. */
static uint64_t find(const struct arena *a, uint32_t owner, uint64_t address, uint64_t word)
{
	const struct arena_mark *ring = ring_of(a, owner);
	uint64_t number = (word - a->header->stubs) / WIRE_STUB, found = word;
	for (uint32_t i = 0; ring && i < ARENA_MARKS; i++) {
		uint64_t place = ring[i].place;
		if (!place || place >> 52 != number)
			continue;
		found = ring[i].word;
		if ((place & SLOT) == address)
			break;
	}
	return found;
}

uint64_t sentinels_see_through(const struct arena *a, uint32_t owner, uint64_t address,
			       uint64_t word)
{
	return is_stub(a, word) ? find(a, owner, address, word) : word;
}

void sentinels_remove(const struct arena *a, uint32_t owner, uint64_t address, uint8_t *stack,
		      uint64_t size, uint64_t *registers)
{
	if (!ring_of(a, owner))
		return;
	for (uint64_t at = -address % 8; at + 8 <= size; at += 8) {
		uint64_t word;
		memcpy(&word, stack + at, sizeof word);
		if (!is_stub(a, word))
			continue;
		word = find(a, owner, address + at, word);
		memcpy(stack + at, &word, sizeof word);
	}
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		registers[i] = sentinels_see_through(a, owner, 0, registers[i]);
}
