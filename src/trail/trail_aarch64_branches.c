/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, hints, and what is for the system. */
#include "trail/trail_aarch64.h"

#define LINK 30u
#define ADDRESS_BITS 0x0000ffffffffffffull /* of a program's code */

static bool branch(struct trail *t, int64_t offset, bool taken, uint64_t *next)
{
	*next = t->pc + (taken ? (uint64_t)offset : 4);
	return trail_add(t, t->pc, *next);
}

static void set_link(struct trail *t)
{
	aarch64_set(t, LINK, trail_known(t->pc + 4));
}

static bool branch_register(struct trail *t, uint32_t w, uint64_t *next)
{
	unsigned operation = field(w, 21, 4), n = field(w, 5, 5);
	bool signed_return = (w & 0xfffffbff) == 0xd65f0bff;
	if (signed_return)
		n = LINK;
	else if (operation > 2 || field(w, 10, 6) || field(w, 0, 5))
		return trail_stop(t, TRAIL_STRANGE);
	struct trail_value target = aarch64_get(t, n);
	if (!target.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	*next = target.bits & (signed_return ? ADDRESS_BITS : UINT64_MAX);
	if (operation == 1)
		set_link(t);
	return operation != 0 || trail_add(t, t->pc, *next);
}

/* Hints: most do nothing here. */
static bool hint(struct trail *t, uint32_t w)
{
	struct trail_value link = aarch64_get(t, LINK);
	switch (field(w, 5, 7)) {
	case 2: /* waits for others */
	case 3:
		return trail_stop(t, TRAIL_SYSTEM);
	case 7: /* xpaclri, autiaz, autiasp, autibz, autibsp */
	case 28 ... 31:
		link.bits &= ADDRESS_BITS;
		aarch64_set(t, LINK, link);
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
	if ((w & 0xffffffe0) == 0xd53bd040) { /* the thread pointer */
		aarch64_set(t, d, trail_known(t->thread));
		return true;
	}
	if ((w & 0xffffffe0) == 0xd53b4200) { /* the flags */
		aarch64_set(t, d, (struct trail_value){t->flags & FLAGS, !t->unknown_flags});
		return true;
	}
	if ((w & 0xffffffe0) == 0xd51b4200) {
		struct trail_value flags = aarch64_get(t, d);
		aarch64_set_flags(t, (unsigned)(flags.bits >> FLAG_V & 15), flags.known);
		return true;
	}
	if ((w & 0xfff00000) == 0xd5300000) { /* other registers of the system */
		aarch64_set(t, d, TRAIL_NOT_KNOWN);
		return true;
	}
	if ((w & 0xffffff00) == 0xd51b4400) /* how floating point is rounded, and what it met */
		return true;
	return trail_stop(t, TRAIL_SYSTEM);
}

/* cbz, cbnz, tbz, tbnz */
static bool branch_by_register(struct trail *t, uint32_t w, uint64_t *next)
{
	struct trail_value value = aarch64_get(t, field(w, 0, 5));
	bool by_bit = field(w, 25, 1), wanted = field(w, 24, 1);
	unsigned bit = field(w, 31, 1) << 5 | field(w, 19, 5);
	if (!value.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	if (by_bit)
		return branch(t, signed_field(w, 5, 14) * 4, (value.bits >> bit & 1) == wanted,
			      next);
	return branch(t, signed_field(w, 5, 19) * 4, (narrow(value.bits, w >> 31) != 0) == wanted,
		      next);
}

bool aarch64_branches(struct trail *t, uint32_t w, uint64_t *next)
{
	if ((w & 0x7c000000) == 0x14000000) {
		*next = t->pc + (uint64_t)(signed_field(w, 0, 26) * 4);
		if (w >> 31)
			set_link(t);
		return true;
	}
	if ((w & 0x7c000000) == 0x34000000)
		return branch_by_register(t, w, next);
	if ((w & 0xff000000) == 0x54000000) {
		if (t->unknown_flags)
			return trail_stop(t, TRAIL_UNKNOWN);
		return branch(t, signed_field(w, 5, 19) * 4, aarch64_holds(t, field(w, 0, 4)),
			      next);
	}
	if ((w & 0xfe000000) == 0xd6000000)
		return branch_register(t, w, next);
	if ((w & 0xffc00000) == 0xd5000000)
		return control(t, w);
	return trail_stop(t, TRAIL_SYSTEM);
}
