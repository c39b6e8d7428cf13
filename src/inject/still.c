/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt:
 *
 *    a child process      its tracees are let go when it ends, also if it is killed
 *    /proc/PID/task       which threads wait in which system calls
 *    all threads stop     one that cannot be stopped: it sleeps in the kernel. Its child may run in the same memory
 *                         (vfork). So nothing is changed, and it is tried again; also if it takes too long
 *    system calls         that would end with EINTR because of this begin again
 *    their PCs            from the registers, and from the frames of signals on their stacks
 *    writes, one by one   threads are moved away from where one goes, and then it is done, and read again
 *    they go on           also if there are more writes: those come at the next attempt
 *
 * It takes 7 to 11 us for each thread: to interrupt it, to wait for it and to read its registers 6, to look at its stack 3.5 (not
 * if one instruction replaces one, or nothing but a jump is taken out), to let it go 1.5. All must stand still at the same time: a
 * thread at a time would do if the first byte became a breakpoint meanwhile, but if we are killed then, the process dies of it.
 *
 * A frame of a signal is known by words that the kernel puts there (registers_signal_frame). The SP in it leads to the next
 * stack, if the handler has one of its own. What is above SP on a stack may also be a frame that is gone. To change the PC
 * there changes nothing.
 */

#include "inject/still.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "inject/borrow.h"
#include "process/maps.h"
#include "process/registers.h"
#include "process/remote.h"
#include "process/status.h"

#define PATIENCE_NS 3000000000ull
#define PAUSE_NS 1000000 /* between tries, at first */
#define PAUSE_MAX_NS 64000000
/* The process goes on if not all threads stop in this time: a busy machine does not let them come so far. After STRICT_NS, it
   may take twice as long, and again after each LENIENT_NS. */
#define STOP_NS 1000000u
#define STOP_THREAD_NS 25000u /* more for each thread */
#define STRICT_NS 100000000u
#define LENIENT_NS 100000000u
#define LENIENCY_MAX 10u
#define STACK_MAX (16u << 20) /* bytes of a stack that are looked at */
#define PIECE 65536u
#define STACKS 8u /* of a thread */

/* How long the process stands still beyond what it takes to stop it; so many writes are done nevertheless. */
#define WRITES_NS 1000000u
#define WRITES_AT_ONCE 16u

enum { ATTEMPT_FAILED, ATTEMPT_BUSY, ATTEMPT_PART, ATTEMPT_DONE };

struct work {
	struct still_write *writes;
	size_t count;
	const struct still_place *places;
	size_t place_count;
	pid_t except;
	still_question *is_inside;
	void *context;
	const struct still_also *also;
};

struct shared { /* with the child process */
	uint32_t end;
	uint64_t ns;
	char why[400];
	struct still_write writes[];
};

struct place { /* where a thread goes on */
	uint64_t pc;
	pid_t tid;
	uint64_t frame; /* the word with the PC; 0: it is in its registers */
};

struct seen {
	pid_t tid;
	struct cpu_seen call;
};

struct attempt {
	pid_t pid;
	struct seen *seen;
	size_t seen_count;
	int memory;
	struct maps maps;
	struct remote stopped;
	struct place *all;
	size_t count, room;
	uint64_t *piece;
};

/* ---- system calls ---- */

/* In the order of their numbers, as the kernel lists them and remote_stop sorts them. */
static struct err *look_at_calls(struct attempt *t)
{
	pid_t *tids;
	size_t count;
	struct err *e = process_tasks(t->pid, &tids, &count);
	if (!e && !(t->seen = calloc(count + 1, sizeof *t->seen)))
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < count; i++) {
		t->seen[i].tid = tids[i];
		borrow_look(t->pid, tids[i], &t->seen[i].call);
		t->seen_count = i + 1;
	}
	free(tids);
	return e;
}

static const struct seen *seen_of(const struct attempt *t, pid_t tid, size_t index)
{
	if (index < t->seen_count && t->seen[index].tid == tid)
		return &t->seen[index];
	for (size_t i = 0; i < t->seen_count; i++)
		if (t->seen[i].tid == tid)
			return &t->seen[i];
	return NULL;
}

/* Epoll_wait and some others end with EINTR when a thread is stopped, and not only when a signal comes. */
static void begin_call_again(struct attempt *t, struct remote_thread *thread, size_t index)
{
	const struct seen *seen = seen_of(t, thread->tid, index);
	const struct cpu_seen none = {.number = -1};
	struct cpu_state state;
	struct cpu_call call;
	uint8_t code[8] = {0};
	/* Register 0 has the result, on both CPUs. */
	if ((int64_t)thread->registers[0] != -EINTR || thread->signal ||
	    borrow_has_signal(t->pid, thread->tid, NULL) || cpu_read(thread->tid, &state))
		return;
	if (pread(t->memory, code, sizeof code, (off_t)(thread->pc - 4)) < 4)
		return;
	cpu_settle_ended(&state, seen ? &seen->call : &none, code, &call);
	if (call.ended && cpu_begin_again(thread->tid, &state, &call, false))
		registers_read(thread);
}

static void begin_calls_again(struct attempt *t)
{
	for (size_t i = 0; i < t->stopped.thread_count; i++) {
		struct remote_thread *thread = &t->stopped.threads[i];
		if (!thread->stuck && !thread->gone)
			begin_call_again(t, thread, i);
	}
}

/* Those that did not stop in time go on by themselves, but their calls may have ended, too. They are waited for one by one, while
   all others go on. */
static void begin_late_calls_again(struct attempt *t)
{
	for (size_t i = 0; i < t->stopped.thread_count; i++) {
		struct remote_thread *thread = &t->stopped.threads[i];
		if (!remote_catch(thread))
			continue;
		begin_call_again(t, thread, i);
		remote_resume(&t->stopped);
	}
}

/* ---- where the threads are ---- */

static bool add(struct attempt *t, const struct place *p)
{
	if (!ARRAY_ROOM(t->all, t->count, t->room))
		return false;
	t->all[t->count++] = *p;
	return true;
}

/* The upper end of what is looked at. */
static uint64_t end_of_stack(const struct attempt *t, uint64_t sp)
{
	size_t low = 0, high = t->maps.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sp < t->maps.items[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	bool found = low < t->maps.count && t->maps.items[low].end - sp < STACK_MAX;
	return found ? t->maps.items[low].end : sp + STACK_MAX;
}

struct stacks { /* of one thread, that were looked at */
	uint64_t low[STACKS], high[STACKS];
	unsigned count;
};

static bool is_new(const struct stacks *s, uint64_t sp)
{
	for (unsigned i = 0; i < s->count; i++)
		if (sp >= s->low[i] && sp < s->high[i])
			return false;
	return s->count < STACKS;
}

/* A word of a stack. Before it in the piece are as many as a frame has. *next: another stack. */
static bool look_at_word(struct attempt *t, pid_t tid, const struct stacks *s, uint64_t address,
			 const uint64_t *word, uint64_t *next)
{
	const struct registers_frame *f = &registers_signal_frame;
	if ((*word & f->mask) != f->value)
		return true;
	if (is_new(s, word[-(int)f->sp]))
		*next = word[-(int)f->sp];
	return add(t, &(struct place){word[-(int)f->pc], tid, address - f->pc * sizeof *word});
}

static bool look_at_stack(struct attempt *t, pid_t tid, struct stacks *s, uint64_t sp,
			  uint64_t *next)
{
	const unsigned before = registers_signal_frame.sp;
	uint64_t at = (sp + 7) & ~7ull, end = end_of_stack(t, sp);
	s->low[s->count] = sp;
	s->high[s->count++] = end;
	while (at + sizeof at <= end) {
		size_t size = end - at < PIECE ? end - at : PIECE;
		ssize_t got = pread(t->memory, t->piece, size, (off_t)at);
		size_t words = got > 0 ? (size_t)got / sizeof *t->piece : 0;
		for (size_t i = before; i < words; i++)
			if (!look_at_word(t, tid, s, at + i * sizeof at, t->piece + i, next))
				return false;
		if (words <= before || at + words * sizeof at >= end)
			break;
		at += (words - before) * sizeof at;
	}
	return true;
}

static bool look_at_thread(struct attempt *t, const struct remote_thread *thread)
{
	struct stacks s = {0};
	uint64_t next = thread->registers[unwind_cpu_for(native_machine)->sp];
	bool good = add(t, &(struct place){thread->pc, thread->tid, 0});
	while (good && next) {
		uint64_t sp = next;
		next = 0;
		good = look_at_stack(t, thread->tid, &s, sp, &next);
	}
	return good;
}

/* Whether it matters where threads are: several instructions are replaced, or nobody may be somewhere. */
static bool is_place_asked(const struct work *w)
{
	bool asked = w->place_count > 0 || w->also;
	for (size_t i = 0; i < w->count && !asked; i++)
		asked = w->writes[i].step_count > 1 || w->writes[i].whole;
	return asked;
}

/* False: not all could be stopped, or there is no memory. */
static bool look_at_threads(struct attempt *t, const struct work *w)
{
	if (!remote_is_whole(&t->stopped))
		return false;
	if (!is_place_asked(w))
		return true;
	for (size_t i = 0; i < t->stopped.thread_count; i++) {
		const struct remote_thread *thread = &t->stopped.threads[i];
		if (!thread->gone && !look_at_thread(t, thread))
			return false;
	}
	return true;
}

/* ---- what is done meanwhile ---- */

/* Where a thread goes on that is here; 0: it need not be moved. *moves: false if it would have to be, but cannot. */
static uint64_t moved(const struct still_write *w, uint64_t pc, bool *moves)
{
	*moves = true;
	if ((!w->step_count && !w->whole) || pc <= w->at || pc >= w->at + w->known)
		return 0;
	for (unsigned i = 0; i < w->step_count && i < STILL_STEPS; i++)
		if (w->at + w->steps[i].from == pc)
			return w->steps[i].to;
	*moves = false;
	return 0;
}

static bool move_away(struct attempt *t, const struct still_write *w)
{
	bool moves;
	for (size_t i = 0; i < t->count; i++)
		if (!moved(w, t->all[i].pc, &moves) && !moves)
			return false;
	for (size_t i = 0; i < t->count; i++) {
		struct place *p = &t->all[i];
		uint64_t to = moved(w, p->pc, &moves);
		if (!to)
			continue;
		if (p->frame ? pwrite(t->memory, &to, sizeof to, (off_t)p->frame) != sizeof to
			     : !registers_set_pc(p->tid, to))
			return false;
		p->pc = to;
	}
	return true;
}

static bool holds(const struct attempt *t, uint64_t at, const uint8_t *bytes, size_t size)
{
	uint8_t now[STILL_BYTES];
	return size <= sizeof now && pread(t->memory, now, size, (off_t)at) == (ssize_t)size &&
	       !memcmp(now, bytes, size);
}

static enum still_result write_one(struct attempt *t, const struct still_write *w)
{
	if (!holds(t, w->at, w->expected, w->known))
		return STILL_CHANGED;
	if (!move_away(t, w))
		return STILL_WAITS;
	if (pwrite(t->memory, w->bytes, w->length, (off_t)w->at) == w->length &&
	    holds(t, w->at, w->bytes, w->length))
		return STILL_DONE;
	ssize_t back = pwrite(t->memory, w->expected, w->length, (off_t)w->at);
	(void)back;
	return STILL_FAILED;
}

/* A write fails for a while if a thread is there, and then others may be done. */
static uint32_t write_all(struct attempt *t, struct still_write *writes, size_t count)
{
	uint64_t start = now_ns();
	uint32_t end = ATTEMPT_DONE;
	unsigned tried = 0;
	for (size_t i = 0; i < count; i++) {
		if (writes[i].result != STILL_WAITS)
			continue;
		writes[i].result = (uint8_t)write_one(t, &writes[i]);
		if (writes[i].result == STILL_WAITS)
			end = ATTEMPT_BUSY;
		else if (++tried % WRITES_AT_ONCE == 0 && now_ns() - start > WRITES_NS)
			return ATTEMPT_PART;
	}
	return end;
}

static bool is_any_inside(const struct attempt *t, const struct work *w)
{
	const uint8_t sp = unwind_cpu_for(native_machine)->sp;
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < w->place_count; k++)
			if (t->all[i].tid != w->except && t->all[i].pc >= w->places[k].start &&
			    t->all[i].pc < w->places[k].end)
				return true;
	for (size_t i = 0; i < t->stopped.thread_count; i++) {
		const struct remote_thread *thread = &t->stopped.threads[i];
		if (!thread->gone && w->is_inside && thread->tid != w->except &&
		    w->is_inside(w->context, thread->tid, thread->registers[sp]))
			return true;
	}
	return false;
}

/* ---- an attempt ---- */

static struct err *open_attempt(struct attempt *t)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	t->piece = malloc(PIECE);
	if (t->memory < 0)
		return err_errno("process %d: its memory cannot be opened", (int)t->pid);
	struct err *e = t->piece ? maps_read(t->pid, &t->maps) : err_new("out of memory");
	return e ? e : look_at_calls(t);
}

/* All stand still. */
static uint32_t act(struct attempt *t, const struct work *w, struct shared *s)
{
	const struct still_also none = {0}, *also = w->also ? w->also : &none;
	const char *why = also->before ? also->before(also->context, &t->stopped) : NULL;
	if (why) {
		snprintf(s->why, sizeof s->why, "%s", why);
		return ATTEMPT_FAILED;
	}
	uint32_t end = w->count              ? write_all(t, s->writes, w->count)
		       : is_any_inside(t, w) ? ATTEMPT_BUSY
					     : ATTEMPT_DONE;
	if (end == ATTEMPT_DONE && also->after)
		also->after(also->context);
	return end;
}

static void attempt(pid_t pid, const struct work *w, struct shared *s, unsigned leniency)
{
	struct attempt t = {.pid = pid, .memory = -1};
	const struct sched_param first = {.sched_priority = 1};
	setpgid(0,
		0); /* a signal for all of the command's group does not hit us in the middle of it */
	if (sched_setscheduler(0, SCHED_FIFO, &first)) /* only root may */
		setpriority(PRIO_PROCESS, 0, -20);
	struct err *e = open_attempt(&t);
	if (!e)
		e = remote_stop_soon(pid, (STOP_NS + t.seen_count * STOP_THREAD_NS) << leniency,
				     &t.stopped);
	if (e) {
		snprintf(s->why, sizeof s->why, "%s", err_text(e));
		return;
	}
	begin_calls_again(&t);
	uint32_t end = look_at_threads(&t, w) ? act(&t, w, s) : ATTEMPT_BUSY;
	remote_resume(&t.stopped);
	s->ns = now_ns() - t.stopped.stopped_ns;
	begin_late_calls_again(&t);
	s->end = end;
}

/* In a process of its own. */
static struct err *attempt_apart(pid_t pid, const struct work *w, struct shared *s,
				 unsigned leniency)
{
	int status;
	s->end = ATTEMPT_FAILED;
	s->ns = 0;
	pid_t child = fork();
	if (child < 0)
		return err_errno("cannot begin a process");
	if (!child) {
		attempt(pid, w, s, leniency);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (s->end != ATTEMPT_FAILED)
		return NULL;
	return err_new("%s", s->why[0] ? s->why : "a process of ours was killed");
}

static unsigned leniency_after(uint64_t ns)
{
	if (ns <= STRICT_NS)
		return 0;
	uint64_t leniency = (ns - STRICT_NS) / LENIENT_NS + 1;
	return leniency < LENIENCY_MAX ? (unsigned)leniency : LENIENCY_MAX;
}

static struct err *attempt_often(pid_t pid, const struct work *w, struct shared *s,
				 struct still_report *report)
{
	uint64_t start = now_ns();
	for (long pause = PAUSE_NS;; pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS) {
		uint64_t passed = now_ns() - start;
		struct err *e = attempt_apart(pid, w, s, leniency_after(passed));
		if (e)
			return e;
		report->stops++;
		report->longest_ns = s->ns > report->longest_ns ? s->ns : report->longest_ns;
		if (s->end == ATTEMPT_DONE || (s->end == ATTEMPT_BUSY && passed > PATIENCE_NS))
			return NULL;
		if (s->end == ATTEMPT_PART) { /* it gets on */
			start = now_ns();
			pause = PAUSE_NS;
		}
		nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
	}
}

static struct err *run(pid_t pid, const struct work *w, struct still_report *report, bool *done)
{
	size_t size = sizeof(struct shared) + w->count * sizeof *w->writes;
	struct shared *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				0);
	*done = false;
	if (s == MAP_FAILED)
		return err_new("out of memory");
	if (w->count)
		memcpy(s->writes, w->writes, w->count * sizeof *w->writes);
	struct err *e = attempt_often(pid, w, s, report);
	if (w->count)
		memcpy(w->writes, s->writes, w->count * sizeof *w->writes);
	*done = s->end == ATTEMPT_DONE;
	munmap(s, size);
	return e;
}

struct err *still_write(pid_t pid, struct still_write *writes, size_t count,
			struct still_report *report)
{
	bool done;
	for (size_t i = 0; i < count; i++)
		writes[i].result = STILL_WAITS;
	return count ? run(pid, &(struct work){.writes = writes, .count = count}, report, &done)
		     : NULL;
}

struct err *still_write_and(pid_t pid, struct still_write *writes, size_t count,
			    const struct still_also *also, struct still_report *report)
{
	const struct work work = {.writes = writes, .count = count, .also = also};
	bool done;
	for (size_t i = 0; i < count; i++)
		writes[i].result = STILL_WAITS;
	struct err *e = run(pid, &work, report, &done);
	return !e && !done && !count
		       ? err_new("process %d: a thread sleeps in the kernel, where it cannot be stopped",
				 (int)pid)
		       : e;
}

struct err *still_outside(pid_t pid, pid_t except, const struct still_place *places, size_t count,
			  still_question *is_inside, void *context, struct still_report *report,
			  bool *outside)
{
	const struct work work = {.places = places,
				  .place_count = count,
				  .except = except,
				  .is_inside = is_inside,
				  .context = context};
	return run(pid, &work, report, outside);
}
