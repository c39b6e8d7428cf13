/* SPDX-License-Identifier: Apache-2.0 */
/* Jumps, calls and returns. */
#include "trail/trail_x86_64.h"

static bool branch(struct trail *t, struct code *c, struct trail_value taken, uint64_t offset)
{
	if (!taken.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	c->next = t->pc + c->at + (taken.bits ? offset : 0);
	return trail_add(t, t->pc, c->next);
}

bool x86_branch(struct trail *t, struct code *c, unsigned condition, unsigned bytes)
{
	uint64_t offset = x86_take_number(c, bytes);
	return branch(t, c, x86_holds(t, condition), offset);
}

bool x86_branch_if_cx_is_zero(struct trail *t, struct code *c)
{
	uint64_t offset = x86_take_number(c, 1);
	struct trail_value count = x86_get(t, c, CX, 8);
	count.bits = !count.bits;
	return branch(t, c, count, offset);
}

bool x86_jump(struct trail *t, struct code *c, unsigned bytes)
{
	uint64_t offset = x86_take_number(c, bytes);
	c->next = t->pc + c->at + offset;
	return true;
}

bool x86_call(struct trail *t, struct code *c)
{
	return x86_jump(t, c, 4) && x86_push(t, c, trail_known(t->pc + c->at));
}

bool x86_return(struct trail *t, struct code *c, unsigned drops)
{
	struct trail_value target;
	if (!x86_pop(t, c, &target))
		return false;
	c->next = target.bits;
	if (!target.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	if (drops)
		x86_set(t, c, SP, 8, trail_known(x86_get(t, c, SP, 8).bits + drops));
	return true;
}

bool x86_jump_indirect(struct trail *t, struct code *c, bool is_call)
{
	struct trail_value target;
	if (!x86_read(t, c, 8, &target))
		return false;
	if (!target.known)
		return trail_stop(t, TRAIL_UNKNOWN);
	c->next = target.bits;
	if (is_call)
		return x86_push(t, c, trail_known(t->pc + c->at));
	return trail_add(t, t->pc, target.bits);
}
