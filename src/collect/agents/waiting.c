/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/arenas.h"
#include "collect/agents/copies.h"
#include "collect/agents/sample_ring.h"
#include "collect/agents/state.h"
#include "collect/agents/waits.h"
#include "harvest/process.h"
#include "process/reach.h"
#include "process/status.h"
#include "unwind/cpu.h"

#define LONG_NS 20000000u /* shorter waits end soon */
#define AT_ONCE 64u       /* threads that are looked at in a tick */
#define STACK_READ (64u << 10)

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- times ---- */

/* What the scheduler has counted: time on the CPU, and time in which the thread could run, but had none. */
static void read_times(struct thread *t)
{
	char name[48];
	struct buf text = {0};
	uint64_t cpu, queued;
	snprintf(name, sizeof name, "task/%d/schedstat", (int)t->tid);
	struct err *e = process_file(t->process->pid, name, &text);
	if (!e && sscanf(buf_text(&text), "%" SCNu64 " %" SCNu64, &cpu, &queued) == 2) {
		t->cpu_ns = cpu;
		t->queued_ns = queued;
	}
	err_free(e);
	buf_free(&text);
}

void waiting_begin_thread(struct agents *agents, struct thread *t)
{
	if (!waits_wanted(agents->recording) || t->process->foreign)
		return;
	read_times(t);
	t->queued_start_ns = t->queued_ns;
}

/* ---- where threads wait ---- */

static void fill_copy(const struct arena_wait *w, uint64_t function, uint64_t act,
		      struct arena_copy *out)
{
	*out = (struct arena_copy){.pc = w->pc,
				   .below = {function, cct_key(false, CCT_OBJECT, act)}};
	memcpy(out->registers, w->registers, sizeof out->registers);
}

/* For what it waits, if that is a descriptor. */
static uint32_t act_of(const struct process *p, const struct arena_wait *w)
{
	static const struct {
		const char *begins;
		uint32_t act;
	} kinds[] = {{"pipe:", ARENA_WAITS_PIPE},
		     {"socket:", ARENA_WAITS_SOCKET},
		     {"anon_inode:", ARENA_WAITS_EVENT},
		     {"/dev/", ARENA_WAITS_TERMINAL},
		     {"/", ARENA_WAITS_DISK}};
	char link[64], text[64] = "";
	if (w->act > ARENA_WAITS_DESCRIPTOR && w->act < ARENA_ACTS)
		return w->act;
	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)p->pid, (int)w->descriptor);
	if (readlink(link, text, sizeof text - 1) > 0)
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
			if (!strncmp(text, kinds[i].begins, strlen(kinds[i].begins)))
				return kinds[i].act;
	return ARENA_WAITS_OTHER;
}

/* Keeps the stack of a thread that waits. It may go on meanwhile: then nothing is kept. */
static void look_at(struct agents *agents, struct arena *a, struct thread *t,
		    struct arena_thread *record, uint64_t since)
{
	const struct process *p = t->process;
	const struct unwind_cpu *cpu = unwind_cpu_for(p->machine);
	const struct arena_wait *w = &record->wait;
	struct arena_copy from;
	struct ring_copy *copy = calloc(1, sizeof *copy + STACK_READ);
	if (!copy || !cpu) {
		free(copy);
		return;
	}
	fill_copy(w, waits_function_key(p, w->function), act_of(p, w), &from);
	from.address = (from.registers[cpu->sp] & ~7ull) - cpu->kept_below;
	uint64_t size = less(record->stack_top, from.address);
	if (!size || size > STACK_READ)
		size = STACK_READ;
	const struct reach_piece piece = {from.address, size, copy->stack};
	ssize_t got = reach_memory(p->pid, &piece, 1);
	from.size = got > 0 ? (uint64_t)got & ~7ull : 0;
	from.cut = size == STACK_READ;
	from.ns = now_ns();
	copy->copied = from.size;
	if (from.size && atomic_load(&record->wait.since) == since) {
		t->wait_since = since;
		t->wait_node = 0;
		copies_add_wait(agents, a, t->chunk, &from, copy, since);
	}
	free(copy);
}

/* Whether it did anything. */
static bool look_briefly(struct agents *agents, struct arena *a, struct thread *t, uint64_t now,
			 uint64_t age)
{
	struct arena_thread *record = arena_record(a, t->chunk);
	uint64_t since = record ? atomic_load(&record->wait.since) : 0;
	if (!record || t->process->gone || t->process->foreign ||
	    t->generation != record->generation)
		return false;
	read_times(t);
	if (since && since != t->wait_since && less(now, since) >= age)
		look_at(agents, a, t, record, since);
	return true;
}

void waiting_tick(struct agents *agents)
{
	uint64_t now = now_ns();
	unsigned left = AT_ONCE;
	if (!waits_wanted(agents->recording))
		return;
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count && left; i++) {
			size_t turn = (a->looked_at + i) % a->thread_count;
			left -= look_briefly(agents, a, &a->threads[turn], now, LONG_NS);
			if (!left)
				a->looked_at = turn + 1;
		}
}

void waiting_look(struct agents *agents, const struct process *p)
{
	uint64_t now = now_ns();
	if (!waits_wanted(agents->recording))
		return;
	for (struct arena *a = agents->arenas; a; a = a->next)
		for (size_t i = 0; i < a->thread_count; i++)
			if (!p || a->threads[i].process == p)
				look_briefly(agents, a, &a->threads[i], now, 0);
}
