/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * The memo: the walk before, of the same thread. Frames that did not change since need no recipe,
 * only that the words which their PCs were read from still hold them.
 *
 * All of these words are compared, for nothing less will do: a thread may have returned to its first frame
 * since, called from elsewhere there, and have come to the same inner frames again. So what a deep stack costs is what
 * one compare does, and that is made small: the stack is read in whole pages, and words are compared
 * in groups, with one look at the outcome for each.
 */
#include "collect/kernel/bpf/step.h"

/* An address of the stack as the memo has it; 0: none. */
INLINE uint32_t offset_of(struct walk *w, uint64_t address)
{
	uint64_t offset = address - w->base;
	if (offset >> 32 && address)
		w->far = 1;
	return address ? (uint32_t)offset : 0;
}

/* Where the PC was read. Only whole words are compared. */
INLINE uint32_t slot_of(struct walk *w)
{
	return w->slot & 7 ? 0 : offset_of(w, w->slot);
}

/* As the memo has it: a thread that is interrupted where a call will return to, or has returned to, stands
   elsewhere than the caller does. */
INLINE uint64_t marked_pc(const struct walk *w)
{
	return w->exact ? w->pc | FRAME_EXACT : w->pc;
}

struct compare {
	struct walk *walk;
	struct memo *memo;
};

/* Whether the words of a group of frames, which must all be in the page at hand, are as they were. */
INLINE bool compare_group(const struct walk *w, const struct frame *f)
{
	uint64_t from = w->base - w->at, beyond = 0, differs = 0;
	if (w->have != KERNEL_WINDOW)
		return false;
#pragma clang loop unroll(full)
	for (int k = 0; k < COMPARED_AT_ONCE; k++) {
		uint64_t offset = from + f[k].slot;
		beyond |= offset;
		MASK(offset, KERNEL_WINDOW - 8);
		differs |= *(const uint64_t *)(w->bytes + offset) ^ f[k].pc;
		KEEP(differs);
		KEEP(beyond);
	}
	return !(differs & CPU.address_bits) && beyond < KERNEL_WINDOW;
}

/* The same for one, which may lie elsewhere. */
INLINE bool compare_one(struct walk *w, const struct frame *f)
{
	uint64_t slot = w->base + f->slot, offset = slot - w->at;
	if (offset >= w->have) {
		if (!f->slot || read_near(w, slot, f[1].slot - f->slot))
			return false;
		offset = slot - w->at;
	}
	MASK(offset, KERNEL_WINDOW - 8);
	return !((*(uint64_t *)(w->bytes + offset) ^ f->pc) & CPU.address_bits);
}

/* How far it came is in the map's memory: on the stack the verifier would follow each round. */
static long compare_some(uint32_t i, struct compare *c)
{
	uint32_t count = c->walk->to_compare;
	uint64_t index = KERNEL_FRAMES - count;
	if (!count)
		return 1;
	MASK(index, KERNEL_FRAMES - 1);
	struct frame *f = &c->memo->frames[index];
	if (count >= COMPARED_AT_ONCE && compare_group(c->walk, f)) {
		c->walk->to_compare = count - COMPARED_AT_ONCE;
		return 0;
	}
	int k;
	for (k = 0; k < COMPARED_AT_ONCE && count; k++, count--)
		if (!compare_one(c->walk, f + k))
			break;
	c->walk->to_compare = count;
	return k < COMPARED_AT_ONCE;
}

/* How many of the outermost frames of the memo that the walk has come to must be walked again: 0
   where all are as they were. */
CHECKED int compare(struct walk *w, struct memo *memo)
{
	if (!w || !memo)
		return 1;
	struct compare c = {w, memo};
	w->to_compare = w->known - 1;
	if (w->to_compare > WORTH_A_PAGE)
		w->window = KERNEL_WINDOW;
	bpf_loop(KERNEL_FRAMES / COMPARED_AT_ONCE + 1, compare_some, &c, 0);
	return (int)w->to_compare;
}

/* Goes to the frame of the memo that the walk stands on; 0: there is none. */
CHECKED int find_frame(struct walk *w, struct memo *memo)
{
	if (!w || !memo)
		return 0;
	/* As many are looked at as one step may pass. */
	for (int i = 0; i < 8 && w->known; i++, w->known--) {
		uint64_t index = KERNEL_FRAMES - w->known;
		MASK(index, KERNEL_FRAMES - 1);
		struct frame *f = &memo->frames[index];
		w->next = w->base + f->sp;
		if (w->next > w->sp)
			return 0;
		if (w->next == w->sp && f->pc == marked_pc(w)) {
			f->slot = slot_of(w); /* it may have been in a register */
			return 1;
		}
	}
	if (!w->known)
		w->next = UINT64_MAX;
	return 0;
}

struct remembering {
	struct workspace *ws;
	struct memo *memo;
};

/* A copy by a helper is quicker than a loop. */
static long remember_some(uint32_t i, struct remembering *r)
{
	uint64_t from = r->ws->walk.done, count = r->ws->walk.fresh - from;
	uint64_t at = r->ws->walk.word + from;
	if (count > COPIED_AT_ONCE)
		count = COPIED_AT_ONCE;
	MASK(from, KERNEL_FRAMES - 1);
	MASK(at, KERNEL_FRAMES - 1);
	if (!count ||
	    bpf_probe_read_kernel(&r->memo->frames[at], (uint32_t)(count * sizeof(struct frame)),
				  &r->ws->fresh[from]))
		return 1;
	r->ws->walk.done += count;
	return 0;
}

/* The fresh frames before those that stay. */
INLINE void remember(struct workspace *ws, struct memo *memo, uint32_t kept)
{
	struct remembering r = {ws, memo};
	uint64_t count = ws->walk.fresh;
	memo->count = kept + (uint32_t)count;
	memo->base = ws->walk.base;
	if (kept + count > KERNEL_FRAMES || ws->walk.far) {
		memo->count = 0;
		return;
	}
	ws->walk.word = KERNEL_FRAMES - kept - count;
	ws->walk.done = 0;
	bpf_loop(KERNEL_FRAMES / COPIED_AT_ONCE, remember_some, &r, 0);
	if (ws->walk.done != count)
		memo->count = 0;
}
