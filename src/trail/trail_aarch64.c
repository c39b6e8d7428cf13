/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets aarch64's code, for programs as compilers make them: all instructions for general registers, loads and
 * stores, with those that take part in locks. Of vector registers only the effects on others are known: memory that
 * is stored, addresses that are moved on, results that come into general registers or flags and are not known.
 *
 * Signatures of return addresses: a return address that is signed here stays as it is, and one that is checked loses
 * its signature.
 */
#include "trail/trail_aarch64.h"

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
			aarch64_set_flags(t, 0, false);
	} else if ((w & 0x5f200000) == 0x1e000000) {
		general = field(w, 16, 3) < 2;
	} else if ((w & 0xff203c00) == 0x1e202000 || (w & 0xff200c00) == 0x1e200400) {
		aarch64_set_flags(t, 0, false);
	} else {
		general = (w & 0xbfe0fc00) == 0x0e003c00 || (w & 0xbfe0fc00) == 0x0e002c00;
	}
	if (general)
		aarch64_set(t, d, TRAIL_NOT_KNOWN);
	return true;
}

/* ---- all ---- */

static bool step(struct trail *t, uint32_t w, uint64_t *next)
{
	switch (field(w, 25, 4)) {
	case 8:
	case 9:
		return aarch64_with_immediate(t, w);
	case 10:
	case 11:
		return aarch64_branches(t, w, next);
	case 4:
	case 6:
	case 12:
	case 14:
		return aarch64_loads_and_stores(t, w);
	case 5:
	case 13:
		return aarch64_with_registers(t, w);
	case 7:
	case 15:
		return with_vectors(t, w);
	default:
		return trail_stop(t, TRAIL_STRANGE);
	}
}

void trail_follow_aarch64(struct trail *t, uint32_t steps)
{
	trail_begin(t);
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
