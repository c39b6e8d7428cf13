/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the arenas. A target only rings when a thread begins. It says nothing when a thread ends, because the
 * thread's last destructors are sampled, too. So we must find out ourselves that a thread is gone.
 *
 * We cannot ask which processes have an arena mapped, but we can find out that none has: the kernel refuses
 * to seal memory against writing as long as somebody could write. So an arena stays if a child was forked a
 * moment ago that we have not seen yet, and it is freed as soon as it is of no use.
 */
#include "collect/agents/scan.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "collect/agents/arenas.h"
#include "collect/agents/copies.h"
#include "collect/agents/heaps.h"
#include "collect/agents/patches.h"
#include "collect/agents/programs.h"
#include "collect/agents/sampling.h"
#include "collect/agents/state.h"
#include "collect/agents/times.h"
#include "collect/agents/trails.h"
#include "collect/agents/trees.h"
#include "collect/agents/unseen.h"
#include "collect/agents/waiting.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "profile/profile.h"

#define CHECK_NS 10000000ull
#define RETRY_NS 1000000000ull

/* ---- threads ---- */

static struct thread *thread_add(struct arena *a, uint32_t chunk)
{
	if (!ARRAY_ROOM(a->threads, a->thread_count, a->thread_room))
		return NULL;
	struct thread *t = &a->threads[a->thread_count++];
	*t = (struct thread){.chunk = chunk};
	a->thread_of[chunk] = (uint16_t)a->thread_count;
	return t;
}

static void thread_remove(struct agents *agents, struct arena *a, struct thread *t)
{
	struct thread *last = &a->threads[a->thread_count - 1];
	sampling_close(agents, t);
	a->thread_of[t->chunk] = 0;
	if (t != last) {
		*t = *last;
		a->thread_of[t->chunk] = (uint16_t)(t - a->threads + 1);
	}
	a->thread_count--;
}

static void on_end(void *process)
{
	scan_end(process);
}

struct process *scan_add_program(struct agents *agents, struct arena *a, pid_t pid,
				 pid_t namespace_pid)
{
	return program_add(agents, a, pid, namespace_pid, on_end);
}

static struct process *process_of(struct agents *agents, struct arena *a,
				  const struct arena_thread *r)
{
	pid_t namespace_pid = r->process, parent = r->parent;
	for (struct process *p = a->processes; p; p = p->agent->next)
		if (p->namespace_pid == namespace_pid)
			return p;
	return namespace_pid > 0 ? program_add_forked(agents, a, namespace_pid, parent, on_end)
				 : NULL;
}

static struct thread *thread_register(struct agents *agents, struct arena *a, uint32_t chunk,
				      const struct arena_thread *r, struct process *p)
{
	struct thread *t = thread_add(a, chunk);
	if (!t)
		return NULL;
	t->process = p;
	t->generation = r->generation;
	t->tid = program_tid(p, r->tid);
	agents->recording->thread_count++;
	if (!p->list)
		p->list = library_list(agents->recording->library,
				       atomic_load(&((struct arena_thread *)r)->list_place));
	return t;
}

/* Takes everything from a record that nobody will write to any more. */
static void thread_finish(struct agents *agents, struct arena *a, uint32_t chunk,
			  struct arena_thread *r, void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	struct process *p = context;
	if (t)
		sampling_close(agents, t);
	/* In state TAKEN the thread has not begun: there is nothing to take. */
	if (atomic_load(&r->state) != ARENA_TAKEN) {
		if (!t && (copies_any(r) || atomic_load(&r->times) || atomic_load(&r->trails)))
			t = thread_register(agents, a, chunk, r, p);
		copies_take_out(agents, a, p, chunk, r);
		if (t)
			times_take(agents, a, t, r);
		if (t)
			trails_take(agents, a, t, r);
		agents->recording->harvest.profile->untimed += atomic_load(&r->untimed);
		unseen_add(p, r);
		trees_take(agents->recording, &agents->recording->harvest, p, t, a, r, true);
	}
	if (t)
		thread_remove(agents, a, t);
	atomic_store(&r->state, ARENA_DONE);
	arena_thread_free(a->header, r);
}

/* If a new thread has the tid of another one, that one has ended. */
static void finish_older(struct agents *agents, struct arena *a, struct process *p, pid_t tid)
{
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		if (t->tid == tid && t->process == p)
			thread_finish(agents, a, t->chunk, arena_record(a, t->chunk), p);
	}
}

static void thread_new(struct agents *agents, struct arena *a, uint32_t chunk,
		       struct arena_thread *r)
{
	struct process *p = process_of(agents, a, r);
	if (!p)
		return;
	finish_older(agents, a, p, program_tid(p, r->tid));
	struct thread *t = thread_register(agents, a, chunk, r, p);
	if (!t)
		return;
	if (p->list && atomic_load(&r->list_place) != p->list->place)
		atomic_store(&r->list_place, p->list->place);
	waiting_begin_thread(agents, t);
	sampling_open(agents, t);
}

/* Whether a thread that we know has this tid. It may have ended, and the tid belong to a new thread now:
   that case is left to scan_arena. */
static bool is_number_taken(const struct arena *a, const struct arena_thread *r)
{
	for (size_t i = 0; i < a->thread_count; i++)
		if (a->threads[i].process->namespace_pid == r->process &&
		    a->threads[i].tid == r->tid)
			return true;
	return false;
}

/* For scan_briefly: takes copies, and begins to sample new threads. */
static void greet(struct agents *agents, struct arena *a, uint32_t chunk, struct arena_thread *r,
		  void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	(void)context;
	if (t && t->generation == r->generation)
		copies_take_out(agents, a, t->process, chunk, r);
	else if (!t && atomic_load(&r->state) == ARENA_LIVE && !a->namespaced &&
		 !is_number_taken(a, r))
		thread_new(agents, a, chunk, r);
}

void scan_briefly(struct agents *agents)
{
	for (struct arena *a = agents->arenas; a; a = a->next)
		if (a->header && atomic_load(&a->header->changes) != a->changes)
			arena_each(agents, a, NULL, greet, NULL);
}

/* For scan_arena: looks at one record. */
static void see(struct agents *agents, struct arena *a, uint32_t chunk, struct arena_thread *r,
		void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	uint32_t state = atomic_load(&r->state);
	(void)context;
	if (state == ARENA_TAKEN)
		return;
	if (t && t->generation != r->generation) { /* overwritten: nothing is known about it */
		thread_remove(agents, a, t);
		t = NULL;
	}
	if (!t) {
		thread_new(agents, a, chunk, r);
		t = arena_thread_of(a, chunk);
	}
	if (t)
		copies_take_out(agents, a, t->process, chunk, r);
	if (t && state == ARENA_DONE)
		thread_finish(agents, a, chunk, r, t->process);
}

/* The timers of a process end with it: no thread has to delete them (agent/threads.c). */
static void free_timers(struct arena *a, const struct process *p)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS;
	uint32_t chunk = atomic_load(&a->header->threads);
	for (struct arena_thread *r; left && (r = arena_record(a, chunk)); left--) {
		if (atomic_load(&r->state) == ARENA_FREE && r->process == p->namespace_pid)
			atomic_store(&r->timer, 0);
		chunk = atomic_load(&r->chunk.next);
	}
}

/* First the threads that we know, whatever their records contain by now. */
static void finish_threads(struct agents *agents, struct process *p)
{
	struct arena *a = p->agent->arena;
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		struct arena_thread *r = a->header ? arena_record(a, t->chunk) : NULL;
		if (t->process != p)
			continue;
		if (r && atomic_load(&r->state) != ARENA_FREE)
			thread_finish(agents, a, t->chunk, r, p);
		else
			thread_remove(agents, a, t);
	}
	if (a->header) {
		arena_each(agents, a, p, thread_finish, p);
		free_timers(a, p);
	}
	copies_walk(agents, scan_briefly);
}

static void read_status(struct process *p)
{
	if (!p->foreign && p->pidfd >= 0 && process_stat_field(p->pid, 3) == 'Z')
		p->status = (int32_t)process_stat_field(p->pid, 52);
}

void scan_end(struct process *p)
{
	struct agents *agents = p->agent->agents;
	read_status(p);
	unseen_look(p);
	p->end_ns = now_ns();
	sampling_close_early(agents, p);
	finish_threads(agents, p);
	heaps_end(agents, p);
	unseen_end(agents, p);
	program_leave(p);
	harvest_end_process(agents->recording, p);
}

static void end_gone(struct arena *a)
{
	for (struct process *p = a->processes, *next; p; p = next) {
		next = p->agent->next;
		if (p->gone)
			scan_end(p);
	}
}

static bool has_ended(const struct thread *t)
{
	return !t->process->foreign && t->tid > 0 &&
	       syscall(SYS_tgkill, t->process->pid, t->tid, 0) && errno == ESRCH;
}

/* Finishes threads that have ended while their process goes on. */
static void end_threads(struct agents *agents, struct arena *a, uint64_t now)
{
	a->checked_ns = now;
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		struct arena_thread *r = arena_record(a, t->chunk);
		if (has_ended(t))
			thread_finish(agents, a, t->chunk, r, t->process);
	}
}

void scan_arena(struct agents *agents, struct arena *a)
{
	uint32_t changes = atomic_load(&a->header->changes);
	uint64_t now = now_ns();
	if (changes != a->changes) {
		a->changes = changes;
		arena_each(agents, a, NULL, see, NULL);
	}
	copies_walk(agents, scan_briefly);
	if (now - a->checked_ns >= CHECK_NS)
		end_threads(agents, a, now);
	end_gone(a);
}

/* ---- the end ---- */

static bool is_idle(const struct arena *a)
{
	for (const struct process *p = a->processes; p; p = p->agent->next)
		if (!p->foreign)
			return false;
	return true;
}

static void finish_any(struct agents *agents, struct arena *a, uint32_t chunk,
		       struct arena_thread *r, void *context)
{
	struct process *p = atomic_load(&r->state) == ARENA_TAKEN ? NULL : process_of(agents, a, r);
	(void)context;
	if (p)
		thread_finish(agents, a, chunk, r, p);
}

void scan_finish(struct agents *agents, struct arena *a)
{
	if (a->header) {
		arena_each(agents, a, NULL, finish_any, NULL);
		trees_lose(agents->recording, &agents->recording->harvest, a, true);
		patches_settle(agents->recording, a, true);
	}
	while (a->thread_count)
		thread_remove(agents, a, &a->threads[a->thread_count - 1]);
	while (a->processes)
		scan_end(a->processes);
	arena_close(agents, a);
}

/* Ends processes for which we have no descriptor (pidfd) that would tell their end. */
static void end_unwatched(struct agents *agents)
{
	for (struct process *p = agents->recording->processes, *next; p; p = next) {
		next = p->next;
		if (p->pidfd < 0 && !p->foreign && !process_is_alive(p))
			scan_end(p);
	}
}

/* Frees arenas that nobody has mapped any more. */
static void sweep(struct agents *agents, uint64_t now)
{
	for (struct arena *a = agents->arenas, *next; a; a = next) {
		next = a->next;
		if (!is_idle(a) || now - a->tried_ns < RETRY_NS)
			continue;
		a->tried_ns = now;
		scan_arena(agents, a);
		if (is_idle(a) && arena_is_abandoned(a))
			scan_finish(agents, a);
	}
}

void scan_all(struct agents *agents)
{
	for (struct arena *a = agents->arenas; a; a = a->next)
		scan_arena(agents, a);
	times_take_all(agents);
	trails_take_all(agents);
	end_unwatched(agents);
	sweep(agents, now_ns());
}
