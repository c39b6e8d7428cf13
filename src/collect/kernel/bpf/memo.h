/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * The memo: the previous walk, of the same thread. Frames that have not changed since need no recipe. It is
 * enough that the words from which their PCs were read are the same. take.h uses it.
 *
 * All of these words are compared, and nothing less would do: a thread may have returned to its first
 * frame, called from another place there, and come to the same inner frames again. So the cost of a deep
 * stack is the cost of comparing it. To keep that small, the stack is read in whole pages, and words are
 * compared in groups, with one test of the outcome for each group.
 */
#include "collect/kernel/bpf/step.h"

/* Returns an address of the stack as the memo has it; 0: none. */
INLINE uint32_t offset_of(struct walk *w, uint64_t address)
{
	uint64_t offset = address - w->base;
	if (offset >> 32 && address)
		w->far = 1;
	return address ? (uint32_t)offset : 0;
}

/* Returns where the PC was read, as the memo has it. Only whole words are compared. */
INLINE uint32_t slot_of(struct walk *w)
{
	return w->slot & 7 ? 0 : offset_of(w, w->slot);
}

/* Returns the PC as the memo has it. A thread that was interrupted at an address is marked, because a
   frame that only returns to the same address is another frame. */
INLINE uint64_t marked_pc(const struct walk *w)
{
	return w->exact ? w->pc | FRAME_EXACT : w->pc;
}

struct compare {
	struct walk *walk;
	struct memo *memo;
};

/* Whether the words of a group of frames are unchanged. All must be in the page that was read. */
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

/* The same for one frame, whose word may be elsewhere. */
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

/* The state of the loop is in the map's memory. On the stack, the verifier would follow each round. */
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

/* Compares the frames of the memo from the one on that the walk has come to. Returns how many of the
   outermost ones must be walked again; 0: all are unchanged. */
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

/* Finds the frame of the memo that the walk stands on; 0: there is none. */
CHECKED int find_frame(struct walk *w, struct memo *memo)
{
	if (!w || !memo)
		return 0;
	/* One step may pass several frames of the memo: at most 8 are looked at. */
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

/* Copies by a helper, which is faster than a loop. */
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

/* Puts the new frames into the memo, before the `kept` ones that stay. */
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
