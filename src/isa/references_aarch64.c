/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adr takes an address; so do adrp, which takes a page, and an add or an access with the
 * rest. What comes next to something in memory may be reached by a further add. Between
 * them may stand anything, so the address in each register is kept while the code is read in a
 * line. Behind a jump nothing is known of registers that calls change; the others may well hold
 * what was put there long before.
 */
#include "isa/references_cpu.h"

#include <string.h>

#include "isa/insn_aarch64.h"

#define CALLS_KEEP 0x1ff80000u /* x19 to x28 */

struct pages {
	uint64_t page[32]; /* or whole address */
	uint32_t known;    /* a bit per register */
};

static void lose(struct pages *p, unsigned reg)
{
	p->known &= ~(1u << reg);
}

static bool is_add(uint32_t w)
{
	return (w & 0xffc00000) == 0x91000000; /* of a constant, 64 bits */
}

/* The whole address that the word makes of a page, 0: none. */
static uint64_t completed(const struct pages *p, uint32_t w)
{
	bool known = p->known >> rn(w) & 1;
	if (!known)
		return 0;
	if (is_add(w))
		return p->page[rn(w)] + bits(w, 21, 10);
	if ((w & 0x3b000000) == 0x39000000) { /* access of one register, unsigned offset */
		unsigned scale = bits(w, 31, 30);
		if (bit(w, 26) && bit(w, 23) && scale == 0)
			scale = 4;
		return p->page[rn(w)] + ((uint64_t)bits(w, 21, 10) << scale);
	}
	return 0;
}

static bool is_store(uint32_t w)
{
	return (w & 0x0a000000) == 0x08000000 && !bit(w, 22) && !bit(w, 23);
}

static void pass(struct pages *p, uint32_t w)
{
	if ((w & 0x7c000000) == 0x14000000 || (w & 0xfe000000) == 0xd6000000) {
		p->known &= CALLS_KEEP; /* b, bl, br, blr, ret */
	} else if ((w & 0xfe000000) == 0x54000000 || (w & 0x7c000000) == 0x34000000 ||
		   is_store(w) || ((w & 0x0a000000) == 0x08000000 && bit(w, 26))) {
		return; /* branches, stores, vectors: no register is written */
	} else {
		lose(p, rd(w));
		if ((w & 0x3a000000) == 0x28000000) /* of two registers */
			lose(p, rt2(w));
	}
}

void aarch64_find_references(const uint8_t *code, size_t size, uint64_t address,
			     void (*each)(void *context, uint64_t to), void *context)
{
	struct pages p = {.known = 0};
	for (size_t at = 0; at + 4 <= size; at += 4, address += 4) {
		uint32_t w;
		memcpy(&w, code + at, sizeof w);
		int64_t n = (int64_t)((uint64_t)signed_bits(w, 23, 5) << 2 | bits(w, 30, 29));
		if ((w & 0x9f000000) == 0x10000000) {
			each(context, address + (uint64_t)n);
			lose(&p, rd(w));
			continue;
		}
		if ((w & 0x9f000000) == 0x90000000) {
			p.page[rd(w)] = (address & ~UINT64_C(0xfff)) + ((uint64_t)n << 12);
			p.known |= 1u << rd(w);
			continue;
		}
		uint64_t to = p.known ? completed(&p, w) : 0;
		if (to)
			each(context, to);
		if (to && is_add(w)) {
			p.page[rd(w)] = to;
			p.known |= 1u << rd(w);
		} else if (p.known) {
			pass(&p, w);
		}
	}
}
