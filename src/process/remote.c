/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops a process without its noticing.
 *
 * PTRACE_SEIZE attaches without a signal, and PTRACE_INTERRUPT stops without one. Neither ends a group stop
 * (SIGSTOP, ^Z): after PTRACE_DETACH the kernel puts such a thread back into its stop. A thread may also stop
 * before our interrupt reaches it, because a signal is about to be delivered. Then we must pass that signal
 * on, and we do so when we detach. No ptrace option is set. So if we die, the kernel detaches, and nothing
 * changes for the process.
 *
 * All threads of the list are seized before the first of them is interrupted: that takes as long as all else, and they go
 * on meanwhile. All known threads are stopped before the list is read again. If such a reading finds no new
 * thread, no running thread is left that could start one. To read the list takes long; so it is not read if the kernel counts as
 * many threads as have stopped. Registers of a thread are read while others are still on their way to their stop.
 */
#include "process/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/registers.h"
#include "process/status.h"

#define STOP_PATIENCE_NS 2000000000ull   /* on a busy machine a stop takes some time */
#define SLEEPER_PATIENCE_NS 100000000ull /* for a thread that cannot be interrupted */
#define YIELDS 64
#define PAGE 4096u
#define PAGES_MAX 16384u /* 64 MiB */

struct remote_page {
	uint64_t number;
	bool readable;
	uint8_t bytes[PAGE];
};

/* ---- stopping ---- */

/* Whether the thread is among the first `count` threads, those of earlier readings. */
static bool is_known(const struct remote *r, size_t count, pid_t tid, size_t index)
{
	/* A second reading usually has the same threads in the same order. */
	if (index < count && r->threads[index].tid == tid)
		return true;
	for (size_t i = 0; i < count; i++)
		if (r->threads[i].tid == tid)
			return true;
	return false;
}

static struct remote_thread *add_thread(struct remote *r, pid_t tid, size_t *capacity)
{
	if (!ARRAY_ROOM(r->threads, r->thread_count, *capacity))
		return NULL;
	struct remote_thread *t = &r->threads[r->thread_count++];
	*t = (struct remote_thread){.tid = tid};
	return t;
}

/* The thread goes on until it is interrupted. */
static struct err *seize(const struct remote *r, struct remote_thread *t)
{
	if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL)) {
		struct process_status s;
		t->gone = true;
		if (errno == ESRCH || !process_status(t->tid, &s) || s.state == 'Z' ||
		    s.state == 'X')
			return NULL;
		return errno == EPERM ? process_forbidden(r->pid, t->tid)
				      : err_errno("cannot attach to thread %d", (int)t->tid);
	}
	t->held = true;
	return NULL;
}

/* Asks those to stop that are new, and does not wait for them. */
static void interrupt(struct remote *r, size_t first)
{
	if (!r->stopped_ns)
		r->stopped_ns = now_ns();
	for (size_t i = first; i < r->thread_count; i++)
		if (r->threads[i].held) /* fails if it is gone; waitpid tells */
			ptrace(PTRACE_INTERRUPT, r->threads[i].tid, NULL, NULL);
}

/* True if the thread has stopped or ended. */
static bool poll_thread(struct remote_thread *t)
{
	int status;
	pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);
	if (!got || (got < 0 && errno == EINTR))
		return false;
	if (got < 0 || !WIFSTOPPED(status)) { /* ended, or replaced by an exec of another thread */
		t->gone = true;
		t->held = false;
		return true;
	}
	bool is_event = status >> 16;
	t->signal = is_event ? 0 : WSTOPSIG(status);
	return true;
}

static bool is_uninterruptible(pid_t tid)
{
	struct process_status s;
	return process_status(tid, &s) && s.state == 'D';
}

struct limits {
	uint64_t patience; /* ns, for a thread that cannot be interrupted */
	uint64_t all;      /* ns, from when the first was stopped; 0: none */
};

static bool is_too_late(const struct remote *r, const struct limits *limits)
{
	return limits->all && now_ns() - r->stopped_ns > limits->all;
}

static void wait_for(const struct remote *r, struct remote_thread *t, uint64_t start,
		     const struct limits *limits)
{
	for (unsigned turn = 0; !poll_thread(t); turn++) {
		if (is_too_late(r, limits)) {
			t->stuck = true;
			return;
		}
		if (turn < YIELDS) {
			sched_yield();
			continue;
		}
		uint64_t waited = now_ns() - start;
		if (waited > STOP_PATIENCE_NS ||
		    (waited > limits->patience && is_uninterruptible(t->tid))) {
			t->stuck = true;
			return;
		}
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
}

static void read_stopped(struct remote_thread *t)
{
	t->read = !t->gone && !t->stuck && registers_read(t);
}

/* Stops all threads that are not known yet. *fresh: how many there were. */
static struct err *stop_round(struct remote *r, pid_t only, const struct limits *limits,
			      size_t *capacity, size_t *fresh)
{
	pid_t *tids;
	size_t count, before = r->thread_count;
	struct err *e = process_tasks(r->pid, &tids, &count);
	for (size_t i = 0; !e && i < count; i++) {
		if ((only && tids[i] != only) || is_known(r, before, tids[i], i))
			continue;
		struct remote_thread *t = add_thread(r, tids[i], capacity);
		e = t ? seize(r, t) : err_new("out of memory");
	}
	free(tids);
	interrupt(r, before);
	uint64_t start = now_ns();
	for (size_t i = before; i < r->thread_count; i++)
		if (r->threads[i].held) {
			wait_for(r, &r->threads[i], start, limits);
			read_stopped(&r->threads[i]);
		}
	*fresh = r->thread_count - before;
	return e;
}

static int compare_threads(const void *a, const void *b)
{
	const struct remote_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void read_name(pid_t pid, struct remote_thread *t)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)t->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, t->name, sizeof t->name - 1);
	if (fd >= 0)
		close(fd);
	t->name[got > 0 ? got : 0] = '\0';
	t->name[strcspn(t->name, "\n")] = '\0';
}

/* Looks which threads have stopped. An error if none did. */
static struct err *check_threads(struct remote *r, pid_t tid)
{
	size_t read = 0, stuck = 0, foreign = 0;
	for (size_t i = 0; i < r->thread_count; i++) {
		struct remote_thread *t = &r->threads[i];
		stuck += t->stuck;
		if (t->gone || t->stuck)
			continue;
		if (t->read) {
			r->memory = t->tid;
			read++;
		} else {
			foreign += kill(r->pid, 0) == 0;
			t->gone = true;
		}
	}
	if (read || stuck)
		return NULL;
	if (tid)
		return err_new("process %d has no thread %d (any more)", (int)r->pid, (int)tid);
	struct err *why = process_refusal(r->pid);
	if (why)
		return why;
	return foreign ? err_new("process %d: its registers cannot be read: is it a 32-bit program?",
				 (int)r->pid)
		       : err_new("process %d ended while it was being stopped", (int)r->pid);
}

/* Whether no other threads can be there than those that have stopped. */
static bool are_all(const struct remote *r)
{
	struct process_status s;
	size_t stopped = 0;
	for (size_t i = 0; i < r->thread_count; i++)
		stopped += r->threads[i].held && !r->threads[i].stuck;
	return stopped == r->thread_count && process_status(r->pid, &s) && s.threads == stopped;
}

static struct err *stop(pid_t pid, pid_t tid, const struct limits *limits, struct remote *out)
{
	size_t capacity = 0, fresh = 0;
	*out = (struct remote){.pid = pid, .memory = pid};
	struct err *e = process_refusal(pid);
	if (!e && pid == getpid())
		e = err_new("process %d is this one", (int)pid);
	do
		e = e ? e : stop_round(out, tid, limits, &capacity, &fresh);
	while (!e && fresh && !tid && !is_too_late(out, limits) && !are_all(out));
	out->partial = fresh && !tid && !are_all(out); /* there may be more threads */
	if (!e)
		e = check_threads(out, tid);
	if (e) {
		remote_close(out);
		return e;
	}
	qsort(out->threads, out->thread_count, sizeof *out->threads, compare_threads);
	return NULL;
}

struct err *remote_stop(pid_t pid, pid_t tid, struct remote *out)
{
	return stop(pid, tid, &(struct limits){.patience = SLEEPER_PATIENCE_NS}, out);
}

struct err *remote_stop_soon(pid_t pid, uint64_t limit_ns, struct remote *out)
{
	return stop(pid, 0, &(struct limits){.all = limit_ns}, out);
}

bool remote_catch(struct remote_thread *t)
{
	const struct remote none = {0};
	if (!t->held || !t->stuck)
		return false;
	t->stuck = false;
	wait_for(&none, t, now_ns(), &(struct limits){0});
	return !t->stuck && !t->gone && registers_read(t);
}

bool remote_is_whole(const struct remote *r)
{
	for (size_t i = 0; i < r->thread_count; i++)
		if (r->threads[i].stuck)
			return false;
	return !r->partial;
}

void remote_resume(struct remote *r)
{
	for (size_t i = 0; i < r->thread_count; i++) {
		struct remote_thread *t = &r->threads[i];
		if (t->held && !t->stuck)
			ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->signal);
		t->held = t->held && t->stuck; /* the kernel releases those when we end */
	}
}

void remote_read_names(struct remote *r)
{
	for (size_t i = 0; i < r->thread_count; i++)
		read_name(r->pid, &r->threads[i]);
}

static void forget_pages(struct remote *r)
{
	for (size_t i = 0; i < r->page_slots; i++)
		free(r->pages[i]);
	free(r->pages);
	r->pages = NULL;
	r->page_count = r->page_slots = 0;
}

void remote_close(struct remote *r)
{
	remote_resume(r);
	forget_pages(r);
	free(r->threads);
	*r = (struct remote){.pid = r->pid};
}

/* ---- memory ---- */

static size_t slot_of(const struct remote *r, uint64_t number)
{
	size_t slot = (size_t)((number * 0x9e3779b97f4a7c15ull) >> 32) & (r->page_slots - 1);
	while (r->pages[slot] && r->pages[slot]->number != number)
		slot = (slot + 1) & (r->page_slots - 1);
	return slot;
}

/* Makes room for one more page; false if out of memory. */
static bool grow_pages(struct remote *r)
{
	if (r->page_count >= PAGES_MAX)
		forget_pages(r);
	if (r->page_count * 2 < r->page_slots)
		return true;
	struct remote old = *r;
	size_t slots = old.page_slots ? old.page_slots * 2 : 256;
	struct remote_page **pages = calloc(slots, sizeof *pages);
	if (!pages)
		return false;
	r->pages = pages;
	r->page_slots = slots;
	for (size_t i = 0; i < old.page_slots; i++)
		if (old.pages[i])
			pages[slot_of(r, old.pages[i]->number)] = old.pages[i];
	free(old.pages);
	return true;
}

static struct remote_page *load_page(struct remote *r, uint64_t number)
{
	struct remote_page *page = grow_pages(r) ? malloc(sizeof *page) : NULL;
	if (!page)
		return NULL;
	struct iovec here = {page->bytes, PAGE}, there = {(void *)(uintptr_t)(number * PAGE), PAGE};
	ssize_t got = process_vm_readv(r->memory, &here, 1, &there, 1, 0);
	if (got < 0 && (errno == ENOSYS || errno == EPERM)) {
		r->peeking = true;
		free(page);
		return NULL;
	}
	page->number = number;
	page->readable = got == PAGE;
	r->pages[slot_of(r, number)] = page;
	r->page_count++;
	return page;
}

static bool peek(const struct remote *r, uint64_t address, uint64_t *out)
{
	for (size_t i = 0; i < r->thread_count; i++) {
		if (!r->threads[i].held || r->threads[i].stuck)
			continue;
		errno = 0;
		*out = (uint64_t)ptrace(PTRACE_PEEKDATA, r->threads[i].tid,
					(void *)(uintptr_t)address, NULL);
		return !errno;
	}
	return false;
}

static bool read_bytes(struct remote *r, uint64_t address, void *out, size_t size)
{
	uint64_t number = address / PAGE;
	struct remote_page *page = r->page_slots ? r->pages[slot_of(r, number)] : NULL;
	if (!page)
		page = load_page(r, number);
	if (!page || !page->readable)
		return false;
	memcpy(out, page->bytes + address % PAGE, size);
	return true;
}

bool remote_word(void *context, uint64_t address, uint64_t *out)
{
	struct remote *r = context;
	/* Addresses may have a tag in the bits that the CPU ignores. */
	address &= unwind_cpu_for(native_machine)->address_bits;
	if (address > UINT64_MAX - sizeof *out)
		return false;
	size_t first = PAGE - address % PAGE;
	if (!r->peeking) {
		bool whole = first >= sizeof *out;
		bool good = whole ? read_bytes(r, address, out, sizeof *out)
				  : read_bytes(r, address, out, first) &&
					    read_bytes(r, address + first, (char *)out + first,
						       sizeof *out - first);
		if (good || !r->peeking)
			return good;
	}
	return peek(r, address, out);
}

bool remote_read(void *context, uint64_t address, void *out, size_t size)
{
	for (size_t done = 0; done < size;) {
		uint64_t word;
		size_t part = size - done < sizeof word ? size - done : sizeof word;
		if (!remote_word(context, address + done, &word))
			return false;
		memcpy((char *)out + done, &word, part);
		done += part;
	}
	return true;
}
