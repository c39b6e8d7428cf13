/* SPDX-License-Identifier: Apache-2.0 */
/* The table has parts, each with a lock, so that threads seldom wait for each other. */
#include "agent/blocks.h"

#include <stddef.h>
#include <sys/mman.h>

#include "agent/alone.h"
#include "agent/guard.h"
#include "safe/syscall.h"

#define PARTS_BITS 6
#define REGION_BITS 16 /* of an address: all blocks of a region are in the same part */
#define GROUP_BITS 10  /* and those of a group next to each other */
#define BLOCK_BITS 5   /* allocators leave about so much from block to block */
#define PLACES_BITS (GROUP_BITS - BLOCK_BITS) /* of a group */
#define PART_BITS 7u                          /* of the first size of a part */

#define ADDRESS_BITS 48   /* heaps are not above; what is there may be a tag */
#define UNIT_BITS 3       /* of addresses: all blocks begin at a multiple */
#define SITE_UNIT_BITS 4u /* of references to sites: they have 128 bytes, in units of 8 */
#define BYTES_BITS 36
#define BYTES_DIGITS 33u /* of these: what is before the exponent */
#define BYTES_STEP 4u    /* by which an exponent of one more moves them */
#define CALLS_BITS 19
#define CALLS_DIGITS 15u
#define CALLS_STEP 1u

/* `address` is 0 if it is of no block. */
struct entry {
	uint64_t address : ADDRESS_BITS - UNIT_BITS, calls : CALLS_BITS;
	uint64_t bytes : BYTES_BITS, site : 28;
	uint64_t ticks;
};
_Static_assert(sizeof(struct entry) == 24, "small, for the caches");

static struct part {
	_Atomic uint32_t guard;
	uint32_t bits; /* it has room for 2^bits blocks; 0: for none */
	uint64_t count;
	struct entry *entries;
} parts[1u << PARTS_BITS];

/* ---- large numbers in few bits ---- */

static uint64_t shorten(uint64_t number, unsigned digits, unsigned step)
{
	uint64_t exponent = 0;
	for (; number >> digits; number >>= step)
		exponent++;
	return exponent << digits | number;
}

static uint64_t lengthen(uint64_t number, unsigned digits, unsigned step)
{
	return (number & ((UINT64_C(1) << digits) - 1)) << (number >> digits) * step;
}

/* exponent: the largest one */
static uint64_t fit(uint64_t number, unsigned digits, unsigned step, unsigned exponent)
{
	uint64_t most = ((UINT64_C(1) << digits) - 1) << exponent * step;
	return lengthen(shorten(number < most ? number : most, digits, step), digits, step);
}

uint64_t blocks_bytes(uint64_t bytes)
{
	if (!(bytes >> BYTES_DIGITS))
		return bytes;
	return fit(bytes, BYTES_DIGITS, BYTES_STEP, (1u << (BYTES_BITS - BYTES_DIGITS)) - 1);
}

uint32_t blocks_calls(uint64_t calls)
{
	return (uint32_t)fit(calls, CALLS_DIGITS, CALLS_STEP,
			     (1u << (CALLS_BITS - CALLS_DIGITS)) - 1);
}

static uint64_t key_of(uint64_t address)
{
	return (address & ((UINT64_C(1) << ADDRESS_BITS) - 1)) >> UNIT_BITS;
}

static struct entry entry_of(const struct heap_block *block)
{
	return (struct entry){
		.address = key_of(block->address),
		.calls = shorten(block->calls, CALLS_DIGITS, CALLS_STEP),
		.bytes = shorten(block->bytes, BYTES_DIGITS, BYTES_STEP),
		.site = block->site >> SITE_UNIT_BITS,
		.ticks = block->ticks,
	};
}

/* Without its address, of which an entry has not all bits. */
static struct heap_block block_of(const struct entry *entry)
{
	return (struct heap_block){
		.calls = (uint32_t)lengthen(entry->calls, CALLS_DIGITS, CALLS_STEP),
		.bytes = lengthen(entry->bytes, BYTES_DIGITS, BYTES_STEP),
		.site = (uint32_t)entry->site << SITE_UNIT_BITS,
		.ticks = entry->ticks,
	};
}

/* ---- the table ---- */

/* Returns `bits` bits. */
static uint64_t hash(uint64_t number, unsigned bits)
{
	return number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

static struct part *part_of(uint64_t address)
{
	return &parts[hash(key_of(address) >> (REGION_BITS - UNIT_BITS), PARTS_BITS)];
}

static struct part *part_lock(uint64_t address)
{
	struct part *p = part_of(address);
	if (!is_alone())
		guard_lock(&p->guard);
	return p;
}

static uint64_t place_of(const struct part *p, uint64_t address)
{
	uint64_t in_group = address >> BLOCK_BITS & ((1u << PLACES_BITS) - 1);
	return hash(key_of(address) >> (GROUP_BITS - UNIT_BITS), p->bits - PLACES_BITS)
		       << PLACES_BITS |
	       in_group;
}

/* The table may move meanwhile: then this was in vain. */
void blocks_prefetch(const void *address)
{
	const struct part *p = part_of((uint64_t)address);
	if (p->bits)
		__builtin_prefetch(&p->entries[place_of(p, (uint64_t)address)], 1);
}

static struct entry *map_entries(uint32_t bits)
{
	size_t size = sizeof(struct entry) << bits;
	long at = safe_syscall6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at < 0 && at > -4096 ? NULL : (struct entry *)at;
}

/* Returns where the block is, or would be. */
static struct entry *part_find(const struct part *p, uint64_t address)
{
	uint64_t mask = (UINT64_C(1) << p->bits) - 1, at = place_of(p, address);
	uint64_t wanted = key_of(address);
	while (p->entries[at].address && p->entries[at].address != wanted)
		at = (at + 1) & mask;
	return &p->entries[at];
}

static void free_entries(const struct part *p)
{
	if (p->bits)
		SAFE_SYSCALL(SYS_munmap, p->entries, sizeof *p->entries << p->bits, 0, 0);
}

/* Makes room for one more. */
static bool part_grow(struct part *p)
{
	struct part larger = {.bits = p->bits ? p->bits + 1 : PART_BITS};
	if (p->bits && p->count < (UINT64_C(1) << p->bits) / 2)
		return true;
	larger.entries = map_entries(larger.bits);
	if (!larger.entries)
		return p->bits && p->count + 1 < UINT64_C(1) << p->bits;
	for (uint64_t i = 0; p->bits && i < UINT64_C(1) << p->bits; i++)
		if (p->entries[i].address)
			*part_find(&larger,
				   (uint64_t)p->entries[i].address << UNIT_BITS) = p->entries[i];
	free_entries(p);
	p->entries = larger.entries;
	p->bits = larger.bits;
	return true;
}

/* Blocks behind a gap move into it, if they belong before it. */
static void part_close_gap(struct part *p, uint64_t gap)
{
	uint64_t mask = (UINT64_C(1) << p->bits) - 1;
	for (uint64_t at = (gap + 1) & mask; p->entries[at].address; at = (at + 1) & mask) {
		uint64_t home = place_of(p, (uint64_t)p->entries[at].address << UNIT_BITS);
		if (((at - home) & mask) >= ((at - gap) & mask)) {
			p->entries[gap] = p->entries[at];
			gap = at;
		}
	}
	p->entries[gap].address = 0;
}

bool blocks_add(const struct heap_block *block, struct heap_block *old)
{
	old->address = 0;
	struct part *p = part_lock(block->address);
	bool good = part_grow(p);
	if (good) {
		struct entry *at = part_find(p, block->address);
		if (at->address) {
			*old = block_of(at);
			old->address = block->address;
		} else {
			p->count++;
		}
		*at = entry_of(block);
	}
	guard_unlock(&p->guard);
	return good;
}

bool blocks_take(const void *address, struct heap_block *out)
{
	struct part *p = part_lock((uint64_t)address);
	struct entry *at = p->bits ? part_find(p, (uint64_t)address) : NULL;
	bool found = at && at->address;
	if (found) {
		*out = block_of(at);
		out->address = (uint64_t)address;
		part_close_gap(p, (uint64_t)(at - p->entries));
		p->count--;
	}
	guard_unlock(&p->guard);
	return found;
}

void blocks_after_fork(void)
{
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		free_entries(&parts[i]);
		parts[i] = (struct part){0};
	}
}
