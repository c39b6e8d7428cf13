/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes copies of stacks, and reads their words.
 *
 * An interrupt cannot reach all pages of a stack, and copies only a limited part of it. The rest is read
 * from the process as soon as the copy comes out of the ring, because it may take long until the copy is
 * looked at, and longer until it is walked. The stack may have changed by then. So the copied words next to
 * the missing part must be unchanged, and the copy must be recent: a stack that has returned and grown
 * again may have the same words there.
 */
#include "collect/kernel/copy.h"

#include <string.h>

#include "base/clock.h"
#include "collect/kernel/state.h"
#include "harvest/process.h"
#include "process/reach.h"

#define PAGE 4096u
/* Older copies are not completed. */
#define SOON_NS 1000000000u
#define BEYOND_MAX ((uint64_t)1 << 30) /* bytes that a stack may have beyond its copy */
#define AGAIN 64u                      /* bytes that must be unchanged */

/* Returns the size of the other stacks in a record. */
static uint64_t far_bytes(const struct kernel_far *far)
{
	uint64_t size = 0;
	for (size_t i = 0; i < KERNEL_FAR_STACKS; i++)
		size += far->stacks[i].size < KERNEL_STACK ? far->stacks[i].size : KERNEL_STACK;
	return size;
}

const struct kernel_copy *copy_in(const void *record, size_t size, size_t *before)
{
	const struct kernel_head *head = record;
	uint32_t kind = size >= sizeof *head ? head->kind : 0;
	*before = kind == KERNEL_FAR ? sizeof(struct kernel_far) : 0;
	const struct kernel_copy *s = (const void *)((const char *)record + *before);
	if ((kind != KERNEL_FAR && kind != KERNEL_COPY) || size < *before + sizeof *s)
		return NULL;
	uint64_t bytes = size - *before - sizeof *s, behind = *before ? far_bytes(record) : 0;
	return behind <= bytes && s->size <= bytes - behind ? s : NULL;
}

uint64_t copy_far_size(const struct kernel_far *far)
{
	return sizeof(struct kernel_pieces) + sizeof far->go + far_bytes(far);
}

static void add_piece(struct kernel_pieces *p, uint64_t address, const void *from, uint64_t size)
{
	memcpy(p->words + p->bytes / sizeof *p->words, from, size);
	p->pieces[p->count].address = address;
	p->pieces[p->count++].size = size;
	p->bytes += size;
}

void copy_far(const struct kernel_far *far, const uint8_t *stacks, struct kernel_pieces *out)
{
	out->count = 0;
	out->bytes = 0;
	out->g = far->go_at[0];
	for (size_t i = 0; i < KERNEL_GO; i++)
		if (far->go_at[i])
			add_piece(out, far->go_at[i], far->go[i], sizeof far->go[i]);
	for (size_t i = 0; i < KERNEL_FAR_STACKS; i++) {
		uint64_t size = far->stacks[i].size;
		if (size > KERNEL_STACK || size % sizeof(uint64_t))
			break;
		add_piece(out, far->stacks[i].address, stacks, size);
		stacks += size;
	}
}

/* Only pages that the sampler tried to copy can be holes. */
static bool is_hole(const uint64_t *holes, size_t page)
{
	return page / 64 < KERNEL_HOLES && holes[page / 64] >> page % 64 & 1;
}

static bool is_soon(uint64_t time)
{
	return now_ns() - time <= SOON_NS;
}

/* Whether the bytes at `end` were copied, and have changed since. Then the thread has returned from the
   frames below `end`, and their memory only looks unchanged. */
static bool has_changed(const struct partial_stack *c, uint64_t end)
{
	uint64_t offset = end - c->address;
	uint8_t again[AGAIN];
	return offset + AGAIN <= c->size && (!reach_bytes(c->pid, end, again, AGAIN) ||
					     memcmp(again, c->bytes + offset, AGAIN) != 0);
}

/* Reads the memory from `address` on, if the copied bytes before `edge` are unchanged. Returns how many
   bytes were read. */
static uint64_t read_behind(const struct partial_stack *c, uint64_t edge, uint64_t address,
			    uint8_t *out, uint64_t size)
{
	uint64_t copied = edge - c->address, check = copied < AGAIN ? copied : AGAIN;
	uint8_t again[AGAIN];
	const struct reach_piece pieces[] = {{edge - check, check, again}, {address, size, out}};
	ssize_t got = check ? reach_memory(c->pid, pieces, 2) : 0;
	if (got <= (ssize_t)check || memcmp(again, c->bytes + copied - check, check) != 0)
		return 0;
	return (uint64_t)got - check;
}

/* Fills all holes but the innermost page, which changes all the time. */
static void fill_holes(struct partial_stack *c)
{
	uint64_t first = c->address / PAGE, end = (c->address + c->size) / PAGE - first;
	for (uint64_t page = 1, next; page < end; page = next) {
		next = page + 1;
		if (!is_hole(c->holes, page) || is_hole(c->holes, page - 1))
			continue;
		while (next < end && is_hole(c->holes, next))
			next++;
		uint64_t from = (first + page) * PAGE;
		uint64_t got = read_behind(c, from, from, c->bytes + (from - c->address),
					   (next - page) * PAGE);
		if (got && has_changed(c, from + (next - page) * PAGE))
			continue;
		for (; got >= PAGE; got -= PAGE, page++)
			c->holes[page / 64] &= ~(1ull << page % 64);
	}
}

void copy_complete(struct partial_stack *c, uint64_t room)
{
	if (!is_soon(c->time))
		return;
	fill_holes(c);
	uint64_t end = c->address + c->size, edge = end;
	while (edge > c->address && is_hole(c->holes, (edge - 1) / PAGE - c->address / PAGE))
		edge = (edge - 1) / PAGE * PAGE;
	if (room && edge > c->address)
		c->size += read_behind(c, edge, end, c->bytes + c->size, room) / sizeof(uint64_t) *
			   sizeof(uint64_t);
}

/* Reads a word of a stack that is larger than what was read until now. */
static bool read_beyond(const struct kernel_waiting *w, uint64_t address, uint64_t *out)
{
	uint64_t then, now;
	const struct process *p = w->process;
	const struct reach_piece pieces[] = {{address, sizeof *out, out},
					     {w->edge, sizeof now, &now}};
	if (!w->edge || address - w->edge > BEYOND_MAX || !is_soon(w->time) || p->gone ||
	    w->execs != p->kernel->execs ||
	    reach_memory(p->pid, pieces, 2) != (ssize_t)(sizeof *out + sizeof now))
		return false;
	memcpy(&then, w->bytes + (w->edge - w->address), sizeof then);
	return now == then;
}

/* Reads a word of another stack, or of Go's structures that lead to it. */
static bool read_piece(const struct kernel_pieces *p, uint64_t address, uint64_t *out)
{
	const uint64_t *words = p->words;
	for (uint32_t i = 0; i < p->count; words += p->pieces[i++].size / sizeof *words) {
		uint64_t offset = address - p->pieces[i].address;
		if (offset < p->pieces[i].size) {
			*out = words[offset / sizeof *words];
			return true;
		}
	}
	return false;
}

bool copy_read(void *waiting, uint64_t address, uint64_t *out)
{
	struct kernel_waiting *w = waiting;
	uint64_t offset = address - w->address;
	if (address % sizeof *out)
		return false;
	uint64_t size = w->copied_only ? w->copied : w->size;
	if (offset >= size && w->pieces) /* Go's stacks move, so nothing of them is read later */
		return read_piece(w->pieces, address, out);
	w->used |= offset >= w->copied;
	if (offset > size || size - offset < sizeof *out) {
		bool got = !w->copied_only && read_beyond(w, address, out);
		uint64_t left_out = w->beyond + w->size -
				    size; /* bytes of the stack behind `size` */
		w->missing |= !got && offset >= size && left_out && offset - size <= left_out;
		return got;
	}
	if (is_hole(w->holes, address / PAGE - w->address / PAGE))
		return false;
	memcpy(out, w->bytes + offset, sizeof *out);
	if (address > w->edge)
		w->edge = address;
	return true;
}
