/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/absences.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/interpreters.h"
#include "collect/kernel/io.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"

#define WAITING_MAX ((uint64_t)512 << 20) /* bytes of all */
/* The same for the whole machine, which may go on for weeks. */
#define WAITING_WHOLE ((uint64_t)32 << 20)
/* Bytes. Most stacks are not larger, and are kept as long as there is any room. */
#define WAITING_SMALL 8192u

static uint64_t bytes_of(const struct kernel_waiting *w)
{
	return w->size + (w->pieces ? w->pieces->bytes : 0);
}

static void add(struct kernel *k, struct kernel_waiting *w)
{
	w->process->kernel->waiting++;
	w->process->kernel->waiting_bytes += bytes_of(w);
	k->waiting.bytes += sizeof *w + bytes_of(w);
	*k->waiting.end = w;
	k->waiting.end = &w->next;
}

/* Whether so much waits already that the stack of this copy is not kept. */
static bool has_too_much(const struct kernel *k, const struct process *p,
			 const struct kernel_copy *from)
{
	return k->whole && (p->kernel->waiting_bytes > 2 * WAITING_ONE ||
			    (from->size > WAITING_SMALL && k->waiting.bytes > WAITING_WHOLE / 2));
}

static bool is_sane(const struct kernel *k, const struct kernel_copy *from, uint64_t size)
{
	return absences_have_event(k, from->head.event) && size <= KERNEL_STACK + COPY_MORE &&
	       from->kernel_frame_count <= KERNEL_OWN_FRAMES;
}

void waiting_add(struct kernel *k, const struct kernel_copy *from, const uint8_t *bytes,
		 const struct kernel_far *far)
{
	struct kernel_thread *t = tasks_find(k, (pid_t)from->head.process,
					     (pid_t)from->head.thread);
	struct kernel_waiting *w = NULL;
	uint64_t size = t && has_too_much(k, t->process, from) ? 0 : from->size;
	uint64_t own = from->kernel_frame_count * sizeof *from->kernel_frames;
	uint32_t thread;
	struct err *e = t ? tasks_place(k, t, &thread) : NULL;
	if (t && !e && is_sane(k, from, size) &&
	    k->waiting.bytes < (k->whole ? WAITING_WHOLE : WAITING_MAX))
		w = malloc(sizeof *w + size + own + (far ? copy_far_size(far) : 0));
	err_free(e);
	if (!w) {
		k->unusable++;
		return;
	}
	*w = (struct kernel_waiting){.process = t->process,
				     .list = t->process->list,
				     .list_ns = t->process->kernel->list_ns,
				     .list_end_ns = t->process->kernel->list_end_ns,
				     .execs = t->process->kernel->execs,
				     .thread = thread,
				     .tid = t->tid,
				     .event = from->head.event,
				     .time = from->head.time,
				     .pc = from->pc,
				     .address = from->address,
				     .unborn = (enum kernel_unborn)from->unborn,
				     .unlisted = from->unlisted,
				     .cut = !size,
				     .size = size,
				     .copied = from->copied < size ? from->copied : size,
				     .beyond = from->beyond};
	memcpy(w->registers, from->registers, sizeof w->registers);
	memcpy(w->holes, from->holes, sizeof w->holes);
	memcpy(w->bytes, bytes, size);
	if (from->kernel_frame_count) { /* aligned, since stacks are whole words */
		w->kernel_frames = (uint64_t *)(w->bytes + w->size);
		w->kernel_frame_count = (uint32_t)from->kernel_frame_count;
		memcpy(w->bytes + w->size, from->kernel_frames, own);
	}
	if (far) {
		w->pieces = (void *)(w->bytes + w->size + own);
		copy_far(far, bytes + from->size, w->pieces);
	}
	w->calls = interpreters_calls(t, w->time);
	if (w->event == KERNEL_EVENT_OFF)
		w->absence = absences_take(t, w->time);
	bool called = w->event == KERNEL_EVENT_IO || w->event == KERNEL_EVENT_PROBE;
	if (called)
		w->io = io_take(t, w->time);
	t->handled += !called; /* no interrupt has brought it */
	k->copies++;
	add(k, w);
}

/* Adds samples of a place, without a stack. */
static struct err *add_place(struct kernel *k, struct process *p, uint64_t pc, uint32_t event,
			     uint64_t count, uint64_t time)
{
	struct kernel_waiting *w = k->waiting.bytes < WAITING_WHOLE ? calloc(1, sizeof *w) : NULL;
	if (!w)
		return err_new("no room");
	w->process = p;
	w->list = p->list;
	w->list_ns = p->kernel->list_ns;
	w->list_end_ns = p->kernel->list_end_ns;
	w->execs = p->kernel->execs;
	w->thread = KERNEL_THREAD_NONE;
	w->tid = p->pid;
	w->event = event;
	w->time = time;
	w->pc = pc;
	w->count = count;
	add(k, w);
	return NULL;
}

struct err *waiting_count(struct kernel *k, struct process *p, uint64_t pc, uint32_t event,
			  uint64_t count)
{
	return add_place(k, p, pc, event, count, now_ns());
}

void waiting_add_place(struct kernel *k, const struct kernel_place *from)
{
	struct process *p = tasks_process(k, (pid_t)from->head.process, (uint32_t)from->changes);
	struct err *e = p && from->head.event < k->recording->options.event_count
				? add_place(k, p, from->pc, from->head.event, 1, from->head.time)
				: err_new("of nobody");
	if (e)
		k->unusable++;
	else
		tasks_add_cost(k, p, 1, 0);
	err_free(e);
}

/* ---- the queue ---- */

/* Takes the first one off the list. */
static struct kernel_waiting *take_first(struct kernel_waiting **first,
					 struct kernel_waiting ***end)
{
	struct kernel_waiting *w = *first;
	*first = w->next;
	if (!w->next)
		*end = first;
	return w;
}

static void remove_one(struct kernel *k, struct kernel_waiting *w)
{
	free(w->calls);
	k->waiting.bytes -= sizeof *w + bytes_of(w);
	w->process->kernel->waiting--;
	w->process->kernel->waiting_bytes -= bytes_of(w);
	free(w);
}

void waiting_remove(struct kernel *k)
{
	remove_one(k, take_first(&k->waiting.first, &k->waiting.end));
}

void waiting_remove_parked(struct kernel *k, struct process *p)
{
	remove_one(k, take_first(&p->kernel->parked, &p->kernel->parked_end));
}

void waiting_park(struct kernel *k)
{
	struct kernel_waiting *w = take_first(&k->waiting.first, &k->waiting.end);
	struct process_kernel *at = w->process->kernel;
	if (!at->parked) {
		at->parked_end = &at->parked;
		at->next_parked = k->waiting.parked;
		k->waiting.parked = w->process;
	}
	w->next = NULL;
	*at->parked_end = w;
	at->parked_end = &w->next;
}

void waiting_sort_out(struct kernel *k)
{
	for (struct process **link = &k->waiting.parked, *p; (p = *link);) {
		if (p->kernel->parked) {
			link = &p->kernel->next_parked;
			continue;
		}
		*link = p->kernel->next_parked;
		p->kernel->next_parked = NULL;
	}
}

bool waiting_any(const struct kernel *k)
{
	return k->waiting.first || k->waiting.parked;
}

static void each(const struct kernel *k, void (*work)(struct kernel_waiting *w))
{
	for (struct kernel_waiting *w = k->waiting.first, *next; w; w = next) {
		next = w->next;
		work(w);
	}
	for (const struct process *p = k->waiting.parked; p; p = p->kernel->next_parked)
		for (struct kernel_waiting *w = p->kernel->parked, *next; w; w = next) {
			next = w->next;
			work(w);
		}
}

static void mark_used(struct kernel_waiting *w)
{
	library_mark_used(w->list);
}

void waiting_mark_used(const struct kernel *k)
{
	each(k, mark_used);
}

static void forget_thread(struct kernel_waiting *w)
{
	w->thread = KERNEL_THREAD_NONE;
}

void waiting_restart(struct kernel *k)
{
	each(k, forget_thread);
}

static void free_one(struct kernel_waiting *w)
{
	free(w->calls);
	free(w);
}

void waiting_close(struct kernel *k)
{
	each(k, free_one);
	k->waiting.first = NULL;
	k->waiting.parked = NULL;
}
