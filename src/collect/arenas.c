/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at the memory that targets count in. A target says nothing when a
 * thread begins but "look"; and nothing at all when one ends, since the last
 * destructors count too: that a thread is gone is for us to find out.
 *
 * Who has an arena mapped cannot be asked, but there is a way to know that
 * nobody has: the kernel refuses to seal memory against writing while somebody
 * could write. So a child that was forked a moment ago and has not been seen
 * yet keeps its arena, and an arena is given back as soon as it is of no use.
 */
#include "collect/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"

#define ARENAS_MAX 65536u
#define CHECK_NS 10000000ull
#define RETRY_NS 1000000000ull

static bool map_arena(struct arena *a)
{
	void *at = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd,
			0);
	a->header = at == MAP_FAILED ? NULL : at;
	return a->header;
}

struct err *arena_open(struct session *s, struct arena **out)
{
	struct stat st;
	struct arena *a = s->arena_count < ARENAS_MAX ? calloc(1, sizeof *a) : NULL;
	*out = NULL;
	if (!a)
		return err_new("there are too many programs, or no memory");
	a->size = SESSION_ARENA_SIZE + (s->options.timeline ? SESSION_TIMES_SIZE : 0);
	a->fd = memfd_create("culprit-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	a->thread_of = calloc(a->size >> ARENA_CHUNK_BITS, sizeof *a->thread_of);
	if (a->fd < 0 || !a->thread_of || ftruncate(a->fd, (off_t)a->size) ||
	    fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) || fstat(a->fd, &st) ||
	    !map_arena(a)) {
		struct err *e = err_errno("cannot make memory to count in");
		if (a->fd >= 0)
			close(a->fd);
		free(a->thread_of);
		free(a);
		return e;
	}
	a->inode = st.st_ino;
	arena_format(a->header, a->size, (uint32_t)s->options.event_count);
	if (s->options.timeline)
		a->header->times_max = SESSION_TIMES_SIZE >> ARENA_CHUNK_BITS;
	a->next = s->arenas;
	s->arenas = a;
	s->arena_count++;
	*out = a;
	return NULL;
}

struct arena_thread *arena_record(const struct arena *a, uint32_t chunk)
{
	return chunk && chunk < a->size >> ARENA_CHUNK_BITS ? arena_at(a->header, chunk) : NULL;
}

struct thread *arena_thread_of(const struct arena *a, uint32_t chunk)
{
	return a->thread_of[chunk] ? &a->threads[a->thread_of[chunk] - 1] : NULL;
}

void arena_each(struct session *s, struct arena *a, const struct process *process,
		void (*each)(struct session *s, struct arena *a, uint32_t chunk,
			     struct arena_thread *record, void *context),
		void *context)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS; /* the list may have been written over */
	uint32_t chunk = atomic_load(&a->header->threads), next;
	for (struct arena_thread *r; left && (r = arena_record(a, chunk)); left--, chunk = next) {
		next = atomic_load(&r->chunk.next);
		uint32_t state = atomic_load(&r->state);
		if (state != ARENA_FREE && (!process || r->process == process->own))
			each(s, a, chunk, r, context);
	}
}

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

static void thread_remove(struct session *s, struct arena *a, struct thread *t)
{
	struct thread *last = &a->threads[a->thread_count - 1];
	sampling_close(s, t);
	a->thread_of[t->chunk] = 0;
	if (t != last) {
		*t = *last;
		a->thread_of[t->chunk] = (uint16_t)(t - a->threads + 1);
	}
	a->thread_count--;
}

static struct process *process_of(struct session *s, struct arena *a, const struct arena_thread *r)
{
	pid_t own = r->process, parent = r->parent;
	for (struct process *p = a->processes; p; p = p->next)
		if (p->own == own)
			return p;
	return own > 0 ? process_add_forked(s, a, own, parent) : NULL;
}

static struct thread *thread_known(struct session *s, struct arena *a, uint32_t chunk,
				   const struct arena_thread *r, struct process *p)
{
	struct thread *t = thread_add(a, chunk);
	if (!t)
		return NULL;
	t->process = p;
	t->generation = r->generation;
	t->tid = process_tid(p, r->tid);
	t->opened_ns = now_ns();
	s->thread_count++;
	if (!p->list)
		p->list = library_list(s->library, atomic_load(&((struct arena_thread *)r)->space));
	return t;
}

/* A record that nobody will write to any more. */
static void thread_finish(struct session *s, struct arena *a, uint32_t chunk,
			  struct arena_thread *r, void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	struct process *p = context;
	if (t)
		sampling_close(s, t);
	/* A record is taken for a thread before there is one. */
	if (atomic_load(&r->state) != ARENA_TAKEN) {
		if (!t && (unwalked_any(r) || atomic_load(&r->times)))
			t = thread_known(s, a, chunk, r, p);
		unwalked_keep(s, a, p, chunk, r);
		if (t)
			times_take(s, a, t, r);
		s->harvest.profile->untimed += atomic_load(&r->untimed);
		harvest_record(s, &s->harvest, p, t, a, r, true);
	}
	if (t)
		thread_remove(s, a, t);
	atomic_store(&r->state, ARENA_DONE);
	arena_thread_free(a->header, r);
}

/* A thread that has the number of another one: that has ended. */
static void finish_older(struct session *s, struct arena *a, struct process *p, pid_t tid)
{
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		if (t->tid == tid && t->process == p)
			thread_finish(s, a, t->chunk, arena_record(a, t->chunk), p);
	}
}

static void thread_new(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r)
{
	struct process *p = process_of(s, a, r);
	if (!p)
		return;
	finish_older(s, a, p, process_tid(p, r->tid));
	struct thread *t = thread_known(s, a, chunk, r, p);
	if (!t)
		return;
	if (p->list && atomic_load(&r->space) != p->list->place)
		atomic_store(&r->space, p->list->place);
	sampling_open(s, t);
}

/* One that has ended may have the number of a new one: that is seen to later. */
static bool is_number_taken(const struct arena *a, const struct arena_thread *r)
{
	for (size_t i = 0; i < a->thread_count; i++)
		if (a->threads[i].process->own == r->process && a->threads[i].tid == r->tid)
			return true;
	return false;
}

static void greet(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		  void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	(void)context;
	if (t && t->generation == r->generation)
		unwalked_keep(s, a, t->process, chunk, r);
	else if (!t && atomic_load(&r->state) == ARENA_LIVE && !a->namespaced &&
		 !is_number_taken(a, r))
		thread_new(s, a, chunk, r);
}

void arena_greet(struct session *s, struct arena *a)
{
	if (a->header && atomic_load(&a->header->changes) != a->changes)
		arena_each(s, a, NULL, greet, NULL);
}

static void see(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		void *context)
{
	struct thread *t = arena_thread_of(a, chunk);
	uint32_t state = atomic_load(&r->state);
	(void)context;
	if (state == ARENA_TAKEN)
		return;
	if (t && t->generation != r->generation) { /* written over: nothing can be known */
		thread_remove(s, a, t);
		t = NULL;
	}
	if (!t) {
		thread_new(s, a, chunk, r);
		t = arena_thread_of(a, chunk);
	}
	if (t)
		unwalked_keep(s, a, t->process, chunk, r);
	if (t && state == ARENA_DONE)
		thread_finish(s, a, chunk, r, t->process);
}

/* They end with the process: nobody has to delete them (agent/threads.c). */
static void free_timers(struct arena *a, const struct process *p)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS;
	uint32_t chunk = atomic_load(&a->header->threads);
	for (struct arena_thread *r; left && (r = arena_record(a, chunk)); left--) {
		if (atomic_load(&r->state) == ARENA_FREE && r->process == p->own)
			atomic_store(&r->timer, 0);
		chunk = atomic_load(&r->chunk.next);
	}
}

/* First those that we know of, whatever their records say by now. */
void arena_finish(struct session *s, struct process *p)
{
	struct arena *a = p->arena;
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		struct arena_thread *r = a->header ? arena_record(a, t->chunk) : NULL;
		if (t->process != p)
			continue;
		if (r && atomic_load(&r->state) != ARENA_FREE)
			thread_finish(s, a, t->chunk, r, p);
		else
			thread_remove(s, a, t);
	}
	if (a->header) {
		arena_each(s, a, p, thread_finish, p);
		free_timers(a, p);
	}
	unwalked_walk(s);
}

static void end_gone(struct session *s, struct arena *a)
{
	for (struct process *p = a->processes, *next; p; p = next) {
		next = p->next;
		if (p->gone)
			process_end(s, p);
	}
}

static bool has_ended(const struct thread *t)
{
	return !t->process->foreign && t->tid > 0 &&
	       syscall(SYS_tgkill, t->process->pid, t->tid, 0) && errno == ESRCH;
}

/* Threads whose process goes on. */
static void find_ended(struct session *s, struct arena *a, uint64_t now)
{
	a->checked_ns = now;
	for (size_t i = a->thread_count; i; i--) {
		struct thread *t = &a->threads[i - 1];
		struct arena_thread *r = arena_record(a, t->chunk);
		if (has_ended(t))
			thread_finish(s, a, t->chunk, r, t->process);
	}
}

void arena_scan(struct session *s, struct arena *a)
{
	uint32_t changes = atomic_load(&a->header->changes);
	uint64_t now = now_ns();
	if (a->kernel) /* what ends there is told otherwise: collect/kernel_tasks.c */
		return;
	if (changes != a->changes) {
		a->changes = changes;
		arena_each(s, a, NULL, see, NULL);
	}
	unwalked_walk(s);
	if (now - a->checked_ns >= CHECK_NS)
		find_ended(s, a, now);
	end_gone(s, a);
}

/* ---- the end ---- */

static bool is_idle(const struct arena *a)
{
	for (const struct process *p = a->processes; p; p = p->next)
		if (!p->foreign)
			return false;
	return true;
}

/* Whether no process has the arena any more; it is sealed then. */
static bool is_abandoned(struct arena *a)
{
	munmap(a->header, a->size);
	a->header = NULL;
	if (!fcntl(a->fd, F_ADD_SEALS, F_SEAL_WRITE)) {
		a->header = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
				 a->fd, 0);
		if (a->header == MAP_FAILED)
			a->header = NULL;
		return true;
	}
	return !map_arena(a);
}

static void finish_any(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		       void *context)
{
	struct process *p = atomic_load(&r->state) == ARENA_TAKEN ? NULL : process_of(s, a, r);
	(void)context;
	if (p)
		thread_finish(s, a, chunk, r, p);
}

void arena_close(struct session *s, struct arena *a)
{
	struct arena **link = &s->arenas;
	if (a->header) {
		arena_each(s, a, NULL, finish_any, NULL);
		harvest_lost(s, &s->harvest, a, true);
	}
	while (a->thread_count)
		thread_remove(s, a, &a->threads[a->thread_count - 1]);
	while (a->processes)
		process_end(s, a->processes);
	if (a->header)
		munmap(a->header, a->size);
	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	s->arena_count--;
	close(a->fd);
	free(a->threads);
	free(a->thread_of);
	free(a);
}

void arena_sweep(struct session *s)
{
	uint64_t now = now_ns();
	for (struct arena *a = s->arenas, *next; a; a = next) {
		next = a->next;
		if (a->kernel || !is_idle(a) || now - a->tried_ns < RETRY_NS)
			continue;
		a->tried_ns = now;
		arena_scan(s, a);
		if (is_idle(a) && is_abandoned(a))
			arena_close(s, a);
	}
}
