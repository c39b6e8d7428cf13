/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that runs already:
 *
 *    a thread of its own loads the counter        as for agents (inject/inject.h); it has the conversation (counter/late.c)
 *    all threads stand still, and get banks       and from now on, new ones come to the counter first: hooks
 *    until none is where threads are made         such a thread may have begun before the hooks: so its bank may be another's
 *    all threads stand still, several times       the functions' beginnings become jumps, some hundred at a time
 *
 *    …                                            it counts, and so do its children
 *
 *    all threads stand still, several times       the beginnings are restored, in children first. At the last time, what was
 *                                                 counted is read: so no count is missing in the middle of a path
 *
 * Threads that are in a function when it changes go on there, and are not counted until the next call. When it is restored, those
 * that are in a copy go on there. So nothing is unmapped, and calls of copies go to the functions.
 *
 * A thread's bank is told by its GS base, which we set by ptrace. If the program uses that itself, nothing is changed. A thread
 * that has one of an earlier collector may be in the middle of a copy of then: so what stands before its bank is carried over.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agent_path.h"
#include "collect/paths/left.h"
#include "collect/paths/work.h"
#include "inject/cpu.h"
#include "inject/inject.h"
#include "inject/still.h"
#include "process/registers.h"
#include "process/remote.h"
#include "process/status.h"
#include "unwind/cpu.h"

#define FUNCTION "culprit_paths_late"
#define OTHERWISE "culprit record --collector=kernel can sample it (as root)"
#define HELLO_NS 20000000000ull
#define BANKS_MAX (1u << 20)
#define MAKERS_TRIES 25 /* looks whether a thread is where threads and processes are made */
#define MAKERS_PAUSE_NS 10000000
#define STACK_LOOK 8192u

/* ---- the beginning ---- */

static struct err *refuse(pid_t pid)
{
	enum left_found found;
	if (!cpu_has_segment)
		return err_new("process %d: on this CPU, paths of a running process cannot be "
			       "counted: " OTHERWISE,
			       (int)pid);
	struct err *e = process_refusal(pid);
	if (!e)
		e = paths_left_clear(pid, &found);
	if (!e && found == LEFT_ALIVE)
		e = err_new("process %d: culprit paths counts there already", (int)pid);
	return e;
}

static bool has_ended(const struct running *r)
{
	struct pollfd ended = {.fd = r->descriptor, .events = POLLIN};
	return r->descriptor >= 0 && poll(&ended, 1, 0) == 1;
}

struct err *running_begin(struct counting_work *work)
{
	char library[PATH_MAX];
	struct running *r = &work->running;
	r->pid = work->counting->pid;
	struct err *e = refuse(r->pid);
	if (!e)
		e = agent_path_find(COUNTING_LIBRARY, work->counting->libdir, library);
	if (e)
		return e;
	const struct inject what = {.library = library,
				    .function = FUNCTION,
				    .text = work->door.socket,
				    .otherwise = OTHERWISE};
	r->descriptor = (int)syscall(SYS_pidfd_open, r->pid, 0);
	e = inject_library(r->pid, &what, NULL);
	r->begun_ns = now_ns();
	if (e && has_ended(r)) {
		err_free(e);
		e = err_new("process %d has ended", (int)r->pid);
	}
	return e;
}

/* ---- banks for its threads ---- */

struct giving { /* shared with the process that stops it */
	uint64_t memory, size;
	const struct banks_function *functions;
	bool for_makers; /* are looked for */
	uint32_t makers; /* threads that may be making a thread or a process */
	uint64_t needed; /* so many banks, which are more than there are */
	/* Of that process, at one stop: all threads; and the banks that they keep, ascending. */
	struct holder {
		pid_t tid;
		uint64_t bank; /* perhaps of an earlier collector; 0: none */
		bool owns;     /* the bank is its own for sure */
		bool keeps, carries;
	} * holders;
	uint64_t *held;
	size_t holder_count, held_count;
	int process; /* its memory */
	size_t count;
	uint64_t given[]; /* banks, ascending */
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static bool is_among(uint64_t bank, const uint64_t *banks, size_t count)
{
	return bsearch(&bank, banks, count, sizeof *banks, by_value);
}

/* Whether GS begins at a bank of ours, also of an earlier collector. */
static bool is_bank(struct remote *stopped, uint64_t bank)
{
	uint64_t word = 0;
	return bank > BANKS_PAGE && bank % BANKS_PAGE == 0 &&
	       remote_read(stopped, bank - BANKS_PAGE, &word, sizeof word) && word == bank;
}

/* Whether it is one of the present memory, or one that was given when there was no more room in that. */
static bool is_present(const struct giving *g, uint64_t bank)
{
	return (bank >= g->memory && bank - g->memory < g->size) ||
	       is_among(bank, g->given, g->count);
}

static bool makes(const struct giving *g, uint64_t pc)
{
	for (size_t i = 0; i < BANKS_HOOKED; i++)
		if (pc - g->functions[i].at < g->functions[i].size)
			return true;
	return false;
}

/* Whether it may be where a thread or a process is made: it is there, or a word on its stack looks like a way back to there. */
static bool may_make(const struct giving *g, struct remote *stopped, const struct remote_thread *t)
{
	uint64_t words[STACK_LOOK / sizeof(uint64_t)];
	uint64_t at = t->registers[unwind_cpu_for(native_machine)->sp];
	size_t count = sizeof words / sizeof *words;
	while (count && !remote_read(stopped, at, words, count * sizeof *words))
		count /= 2;
	for (size_t i = 0; i < count; i++)
		if (makes(g, words[i]))
			return true;
	return makes(g, t->pc);
}

static const char *look_at(struct giving *g, struct remote *stopped, const struct remote_thread *t)
{
	struct holder *h = &g->holders[g->holder_count++];
	int32_t numbers[2]; /* BANKS_ROOM_THREAD, BANKS_ROOM_GIVEN */
	*h = (struct holder){.tid = t->tid};
	if (!cpu_segment(t->tid, &h->bank) || (h->bank && !is_bank(stopped, h->bank)))
		return "it uses the GS register itself";
	h->owns = h->bank &&
		  remote_read(stopped, h->bank - BANKS_PAGE + BANKS_ROOM_THREAD, numbers,
			      sizeof numbers) &&
		  (numbers[0] == t->tid || numbers[1] == t->tid);
	g->makers += g->for_makers && may_make(g, stopped, t);
	return NULL;
}

/* Owners first. */
static int by_bank(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	return x->bank != y->bank ? (x->bank > y->bank) - (x->bank < y->bank)
				  : (y->owns > x->owns) - (y->owns < x->owns);
}

/* One thread for each bank. A thread that was made when nobody counted, or just before the hooks, has the bank of the one that made
   it, and has never been in a copy. */
static void sort_out(struct giving *g)
{
	qsort(g->holders, g->holder_count, sizeof *g->holders, by_bank);
	for (size_t i = 0; i < g->holder_count; i++) {
		struct holder *h = &g->holders[i];
		bool first = h->bank && (!i || h[-1].bank != h->bank);
		h->keeps = first && is_present(g, h->bank);
		h->carries = first && !h->keeps;
		if (h->keeps)
			g->held[g->held_count++] = h->bank;
	}
}

/* The thread may be in a copy of an earlier collector, in the middle of something: so it keeps its path stack. */
static bool carry_over(const struct giving *g, const struct holder *h, uint64_t bank)
{
	uint8_t own[BANKS_PAGE - BANKS_ROOM];
	uint64_t from = h->bank - sizeof own, to = bank - sizeof own;
	return pread(g->process, own, sizeof own, (off_t)from) == (ssize_t)sizeof own &&
	       pwrite(g->process, own, sizeof own, (off_t)to) == (ssize_t)sizeof own;
}

static bool give_one(const struct giving *g, const struct holder *h, uint64_t bank)
{
	const int32_t given = h->tid;
	off_t at = (off_t)(bank - BANKS_PAGE + BANKS_ROOM_GIVEN);
	if (h->carries && !carry_over(g, h, bank))
		return false;
	return pwrite(g->process, &given, sizeof given, at) == sizeof given &&
	       cpu_set_segment(h->tid, bank);
}

static const char *give_each(struct giving *g)
{
	size_t next = 0;
	for (size_t i = 0; i < g->holder_count; i++) {
		if (g->holders[i].keeps)
			continue;
		while (next < g->count && is_among(g->given[next], g->held, g->held_count))
			next++;
		if (next == g->count) {
			g->needed = g->holder_count;
			return "it makes threads faster than they can be counted";
		}
		if (!give_one(g, &g->holders[i], g->given[next++]))
			return "a thread cannot be changed";
	}
	return NULL;
}

/* All threads stand still. */
static const char *give(void *context, struct remote *stopped)
{
	struct giving *g = context;
	const char *why = NULL;
	g->needed = 0;
	g->makers = 0;
	g->holder_count = g->held_count = 0;
	g->held = calloc(stopped->thread_count + 1, sizeof *g->held);
	g->holders = calloc(stopped->thread_count + 1, sizeof *g->holders);
	if (!g->held || !g->holders)
		return "out of memory";
	for (size_t i = 0; i < stopped->thread_count && !why; i++)
		if (!stopped->threads[i].gone)
			why = look_at(g, stopped, &stopped->threads[i]);
	if (why)
		return why;
	sort_out(g);
	return give_each(g);
}

static void close_giving(struct giving *g, size_t size)
{
	if (g->process >= 0)
		close(g->process);
	munmap(g, size);
}

static struct giving *open_giving(const struct program *p, const struct banks_request *request,
				  size_t *size)
{
	char path[64];
	if (request->bank_count > BANKS_MAX)
		return NULL;
	*size = sizeof(struct giving) + request->bank_count * sizeof(uint64_t);
	struct giving *g = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				0);
	if (g == MAP_FAILED)
		return NULL;
	*g = (struct giving){.memory = request->memory,
			     .size = request->size,
			     .functions = p->functions,
			     .count = request->bank_count};
	snprintf(path, sizeof path, "/proc/%d/mem", (int)p->face.pid);
	g->process = open(path, O_RDWR | O_CLOEXEC);
	size_t bytes = g->count * sizeof *g->given;
	bool good = g->process >= 0 &&
		    pread(g->process, g->given, bytes, (off_t)request->banks) == (ssize_t)bytes;
	qsort(g->given, g->count, sizeof *g->given, by_value);
	if (good)
		return g;
	close_giving(g, *size);
	return NULL;
}

/* ---- changing ---- */

static bool is_hook(const struct program *p, uint64_t at)
{
	for (size_t i = 0; i < p->hook_count; i++)
		if (p->hooks[i].at == at)
			return true;
	return false;
}

static const char another_tool[] = "another tool has changed its code (culprit probe?)";

/* Whether a function begins as in its file. */
static bool begins_as_known(int memory, const struct counting_patch *patch)
{
	uint8_t now[COUNTING_START];
	size_t size = patch->start_size;
	return pread(memory, now, size, (off_t)patch->entry) == (ssize_t)size &&
	       !memcmp(now, patch->start, size);
}

static struct still_write *list_jumps(struct program *p, int memory, size_t *patches, size_t *count)
{
	struct still_write *out = calloc(p->plan.patch_count + 1, sizeof *out);
	for (size_t i = 0; out && i < p->plan.patch_count; i++) {
		const struct counting_patch *patch = &p->plan.patches[i];
		if (!program_has_loaded(p, patch->object))
			continue;
		if (is_hook(p, patch->at)) {
			program_unchanged(p, i, "new threads and processes are noticed there");
			continue;
		}
		if (!begins_as_known(memory, patch)) {
			program_unchanged(p, i, another_tool);
			continue;
		}
		struct still_write *w = &out[*count];
		patches[(*count)++] = i;
		w->at = patch->at;
		w->known = w->length = patch->length;
		w->whole = true;
		memcpy(w->expected, patch->expected, patch->length);
		memcpy(w->bytes, patch->bytes, patch->length);
	}
	return out;
}

static const char *why_unchanged(uint8_t result)
{
	return result == STILL_CHANGED ? another_tool
	       : result == STILL_WAITS ? "a thread stays where its code is to be changed"
				       : "its code cannot be written";
}

/* Returns whether any function was changed. */
static struct err *put_jumps_in(struct counting_work *work, struct program *p, struct giving *g,
				const struct still_also *also)
{
	size_t count = 0, changed = 0, *patches = calloc(p->plan.patch_count + 1, sizeof *patches);
	bool good = patches && program_expect_unchanged(p);
	struct still_write *writes = good ? list_jumps(p, g->process, patches, &count) : NULL;
	struct err *e = writes ? NULL : err_new("out of memory");
	if (!e)
		e = still_write_and(p->face.pid, writes, count, also, &work->running.report);
	for (size_t i = 0; !e && i < count; i++) {
		if (writes[i].result == STILL_DONE)
			changed++;
		else
			program_unchanged(p, patches[i], why_unchanged(writes[i].result));
	}
	if (!e && !changed)
		e = err_new("%s", p->face.unchanged_count ? p->face.unchanged[0].why
							  : "no copies could be loaded");
	free(patches);
	free(writes);
	return e;
}

static bool hooks_are_in(const struct program *p)
{
	for (size_t i = 0; i < p->hook_count; i++)
		if (p->hooks[i].result != STILL_DONE)
			return false;
	return true;
}

static struct err *put_hooks_in(struct counting_work *work, struct program *p, struct giving *g,
				const struct still_also *also)
{
	struct err *e = still_write_and(p->face.pid, p->hooks, p->hook_count, also,
					&work->running.report);
	if (!e && !hooks_are_in(p))
		e = err_new("its C library is changed by another tool");
	g->for_makers = true;
	for (int i = 0; i < MAKERS_TRIES && !e; i++) {
		e = still_write_and(p->face.pid, NULL, 0, also, &work->running.report);
		if (!g->makers)
			break;
		nanosleep(&(struct timespec){.tv_nsec = MAKERS_PAUSE_NS}, NULL);
	}
	g->for_makers = false;
	return e;
}

static struct banks_patch *list_patches(const struct program *p)
{
	struct banks_patch *out = calloc(p->listed + 1, sizeof *out);
	size_t size = p->listed * sizeof *out;
	if (out && pread(p->memory, out, size, (off_t)p->patches_at) == (ssize_t)size)
		return out;
	free(out);
	return NULL;
}

/* Nothing was counted. */
static void take_back(struct counting_work *work, struct program *p)
{
	struct banks_patch *patches = list_patches(p);
	if (patches)
		err_free(paths_left_restore(p->face.pid, patches, p->listed, NULL,
					    &work->running.report));
	free(patches);
}

static struct err *change(struct counting_work *work, struct program *p, struct giving *g)
{
	const struct still_also also = {.before = give, .context = g};
	struct err *e = put_hooks_in(work, p, g, &also);
	if (!e)
		e = put_jumps_in(work, p, g, &also);
	if (e)
		take_back(work, p);
	return e;
}

static void begin_time(struct counting_work *work)
{
	struct running *r = &work->running;
	uint64_t duration = work->counting->duration_ns;
	r->counts_ns = now_ns();
	if (duration)
		r->end_ns = r->counts_ns + duration;
	if (work->counting->begun)
		work->counting->begun(work->counting->context);
}

uint64_t running_change(struct counting_work *work, struct client *client,
			const struct banks_request *request, bool *changed)
{
	struct program *p = client->program;
	uint32_t stage = BANKS_WAITING;
	size_t size = 0;
	uint64_t needed = 0;
	*changed = false;
	if (!client_waits(client) ||
	    !atomic_compare_exchange_strong(&p->header->stage, &stage, BANKS_CHANGING))
		return 0;
	struct giving *g = open_giving(p, request, &size);
	struct err *e = g ? change(work, p, g) : err_new("its memory cannot be read");
	if (e && g && g->needed) {
		needed = g->needed * 2;
		atomic_store(&p->header->stage, BANKS_WAITING);
	} else if (e) {
		program_note(work, p, "%s", err_text(e));
	} else {
		*changed = true;
		begin_time(work);
	}
	err_free(e);
	if (g)
		close_giving(g, size);
	return needed;
}

/* ---- meanwhile ---- */

bool running_is_over(struct counting_work *work)
{
	struct running *r = &work->running;
	const struct program *p = r->program;
	bool waits = p && !p->face.changed && work->clients;
	if (target_interrupted(&work->target) || has_ended(r) ||
	    (r->end_ns && now_ns() >= r->end_ns) || (p && p->face.changed && p->memory < 0))
		return true;
	if (p)
		return !p->face.changed && !waits;
	if (now_ns() - r->begun_ns < HELLO_NS)
		return false;
	r->e = err_new(
		"process %d: it has loaded the counter, but that cannot reach us: do both see "
		"the same /tmp?",
		(int)r->pid);
	return true;
}

/* ---- the end ---- */

struct ending {
	struct counting_work *work;
	struct program *program;
	struct banks_patch *patches;
	pid_t pid;
};

static void read_now(void *context)
{
	const struct ending *end = context;
	program_sum(end->program, end->pid);
}

static struct err *restore(void *context, pid_t pid)
{
	struct ending *end = context;
	const struct still_also also = {.after = read_now, .context = end};
	end->pid = pid;
	struct err *e = paths_left_restore(pid, end->patches, end->program->listed, &also,
					   &end->work->running.report);
	if (e)
		program_note(end->work, end->program, "%s", err_text(e));
	err_free(e);
	return NULL;
}

/* What is read while a process stands still is read by a process of its own. */
static bool share_counts(struct program *p)
{
	const int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
	void *counts = mmap(NULL, p->face.words * sizeof(uint64_t), protection, flags, -1, 0);
	void *summed = mmap(NULL, p->slots * sizeof(bool), protection, flags, -1, 0);
	p->face.counts = counts == MAP_FAILED ? NULL : counts;
	p->summed = summed == MAP_FAILED ? NULL : summed;
	return p->face.counts && p->summed;
}

static void restore_all(struct counting_work *work)
{
	struct program *p = work->running.program;
	struct stat st;
	const uint32_t over = 1;
	if (!p || !p->face.changed || p->memory < 0)
		return;
	struct ending end = {.work = work, .program = p, .patches = list_patches(p)};
	struct err *e = !end.patches || !share_counts(p) || fstat(p->memory, &st)
				? err_new("out of memory")
				: paths_left_each(st.st_ino, restore, &end);
	if (e)
		program_note(work, p, "%s", err_text(e));
	else if (pwrite(p->memory, &over, sizeof over, offsetof(struct banks_header, over)) < 0)
		errno = 0; /* the next one restores it again */
	err_free(e);
	free(end.patches);
}

void running_end(struct counting_work *work)
{
	const struct running *r = &work->running;
	uint64_t now = now_ns();
	restore_all(work);
	work->counting->counted_ns = r->counts_ns ? now - r->counts_ns : 0;
	work->counting->stop_ns = r->report.longest_ns;
}
