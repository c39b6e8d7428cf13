/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/walks.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cct/cct.h"
#include "collect/kernel/code.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/inner_end.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tables.h"
#include "collect/kernel/tasks.h"
#include "collect/kernel/waiting.h"
#include "harvest/kernel_frames.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"
#include "harvest/stack.h"
#include "library/library.h"
#include "process/kernel_names.h"

/* After new code was mapped: how many looks are tried again, for the whole machine. */
#define HOPES 4u
/* Walks in a row for which it was useless to look at the process again. */
#define UNRESOLVED_MAX 64u

static struct walk_space space_of(struct kernel *k, const struct library_list *list)
{
	return list ? library_walk(k->recording->library, list) : (struct walk_space){0};
}

static enum walk_end walk_with(struct kernel *k, struct kernel_waiting *w, struct stack_code *code,
			       uint64_t *keys, uint32_t *frames)
{
	struct walk_reader reader = {copy_read, w};
	code->hosts = w->calls ? w->calls->hosts : NULL;
	code->host_count = w->calls ? w->calls->groups : 0;
	w->edge = 0;
	w->missing = w->used = false;
	return stack_walk(code, w->process->machine, w->registers, w->pc, &reader, keys,
			  k->max_depth, frames);
}

/* Returns the process if it still runs the same program; else 0. */
static pid_t task_of(const struct kernel_waiting *w)
{
	return w->process->gone || w->execs != w->process->kernel->execs ? 0 : w->process->pid;
}

static uint64_t g_of(const struct kernel_waiting *w)
{
	return w->pieces ? w->pieces->g : 0;
}

static enum walk_end walk(struct kernel *k, struct kernel_waiting *w,
			  const struct library_list *list, uint64_t *keys, uint32_t *frames)
{
	struct stack_code code = {.space = space_of(k, list), .task = task_of(w), .g = g_of(w)};
	return walk_with(k, w, &code, keys, frames);
}

/* Whether the process is still the program that it was when the sample came. */
static bool is_same_program(const struct kernel *k, const struct kernel_waiting *w)
{
	const struct process *p = w->process;
	return w->execs == p->kernel->execs && !mapped_executed(k, p->pid, w->time);
}

/* Whether a library was replaced between the sample and the time at which the process had that list. */
static bool was_replaced(const struct kernel *k, const struct kernel_waiting *w, uint64_t list_ns,
			 uint64_t list_end_ns)
{
	pid_t pid = w->process->pid;
	return mapped_replaced(k, pid, w->time, list_ns) ||
	       mapped_replaced(k, pid, w->time, list_end_ns);
}

/* Returns the list of the process if it was right when the sample came (sets `now`), otherwise the list
   that its history has for that time. */
static const struct library_list *list_of(struct kernel *k, const struct kernel_waiting *w,
					  bool *now)
{
	const struct process *p = w->process;
	*now = is_same_program(k, w) &&
	       !was_replaced(k, w, p->kernel->list_ns, p->kernel->list_end_ns);
	return *now ? p->list : code_list_at(k, p, w->time);
}

static enum walk_end walk_listed(struct kernel *k, struct kernel_waiting *w, uint64_t *keys,
				 uint32_t *frames)
{
	bool now;
	return walk(k, w, list_of(k, w, &now), keys, frames);
}

/* The last try, if no list explains the stack: walks as far as possible. */
static enum walk_end walk_last(struct kernel *k, struct kernel_waiting *w, uint64_t *keys,
			       uint32_t *frames)
{
	bool now;
	struct stack_code code = {
		.space = space_of(k, list_of(k, w, &now)), .task = task_of(w), .g = g_of(w)};
	code.fresh = now && w->process->looked_ns > w->time;
	return walk_with(k, w, &code, keys, frames);
}

/* Adds a sample without a stack to the profile. */
static struct err *keep_count(struct kernel *k, const struct kernel_waiting *w, uint64_t key)
{
	uint32_t thread;
	struct err *e = tasks_place_process(k, w->process, &thread);
	return e ? e : frames_count_place(k, w->process, thread, key, w->event, w->count);
}

/* Adds a path to the profile. */
static struct err *keep(struct kernel *k, const struct kernel_waiting *w, const uint64_t *keys,
			uint32_t frames, enum walk_end end)
{
	struct kernel_inner_end inner = {.process = w->process,
					 .thread = w->thread,
					 .event = w->event,
					 .absence = w->absence,
					 .io = w->io,
					 .end = end,
					 .time = w->time,
					 .kernel_frames = w->kernel_frames,
					 .kernel_frame_count = w->kernel_frame_count};
	struct err *e = w->thread == KERNEL_THREAD_NONE
				? tasks_place_ended(k, w->process, w->tid, &inner.thread)
				: NULL;
	if (!e)
		e = frames_add_root(k, w->process, end, &inner.node);
	size_t hosts = 0, left;
	for (uint32_t i = 0; i < frames; i++)
		hosts += frames_is_host(keys[i]);
	left = w->calls && hosts == w->calls->groups ? w->calls->count : 0;
	for (uint32_t i = frames; !e && i; i--)
		e = frames_add_called(k, w->process, keys[i - 1], w->calls, &left, &inner.node);
	return e ? e : inner_end_add(k, &inner);
}

/* Whether the first frame is in code that is known. */
static bool is_known(struct kernel *k, const struct kernel_waiting *w)
{
	struct walk_space space = space_of(k, w->process->list);
	return walk_find_module(&space, w->pc);
}

/* Walks the stack of a process that has ended, has become another program or has unloaded a library
   since. Tries what the history has for that time, then what was known when the sample came, then the list of
   its parent. */
static enum walk_end walk_back(struct kernel *k, struct kernel_waiting *w, uint64_t *keys,
			       uint32_t *frames)
{
	enum walk_end end = walk(k, w, code_list_at(k, w->process, w->time), keys, frames);
	if (end == WALK_NO_MODULE && w->list && !was_replaced(k, w, w->list_ns, w->list_end_ns))
		end = walk(k, w, w->list, keys, frames);
	if (end == WALK_NO_MODULE)
		end = walk(k, w, code_parent_list(k, w->process), keys, frames);
	return end;
}

/* Whether the sampler had no list when the sample came, and nobody has looked since: the parent had none yet
   when it forked the process, or a library was replaced. */
static bool was_unlisted(const struct kernel_waiting *w)
{
	const struct process_kernel *p = w->process->kernel;
	return w->unlisted && !p->doubtful_ns && w->time > p->list_ns;
}

/* Looks at the process before its stack is walked, if the walk would be in vain otherwise. Returns whether
   it has looked. */
static bool look_first(struct kernel *k, const struct kernel_waiting *w)
{
	struct process *p = w->process;
	if (!was_unlisted(w) && is_known(k, w))
		return false;
	code_look(k, p);
	/* A list made from a history may lack this code: the memory map has it. */
	if (p->kernel->by_history_ns && !code_waits_for(k) && !is_known(k, w))
		code_ask(k, p);
	return true;
}

/* Counts the looks in a row that brought nothing new. After many, the sampler makes no more copies of such
   stacks. */
static void count_useless(struct kernel *k, struct process *p, bool looked, bool patient, bool news)
{
	if (looked && !news)
		p->useless++;
	else if (patient)
		p->useless = 0;
	if (p->useless == UNRESOLVED_MAX)
		code_stop_copies(k, p);
}

/*
 * Walks a stack by one list of modules after another, until one has all of its code:
 *
 *  1. the list of the process; look_first may make a new one
 *  2. the list that the memory map of the process gives now
 *  3. lists of other times (walk_back)
 *  4. if no list has all of it, the walk goes as far as the list of the process does (walk_last)
 *
 * A list may need tables that are still being made (code_waits_for). Then the sample waits, and begins anew
 * later. The process is looked at only if it is still the program that it was, and only while we are patient:
 * looks were not useless lately.
 */
static enum walk_end walk_looking(struct kernel *k, struct kernel_waiting *w, uint64_t *keys,
				  uint32_t *frames)
{
	struct process *p = w->process;
	const struct library_list *before = p->list;
	bool same = is_same_program(k, w), there = same && !p->gone;
	bool patient = there && p->useless <= UNRESOLVED_MAX;
	bool looked = patient && look_first(k, w);
	if (code_waits_for(k))
		return WALK_NO_MODULE;
	enum walk_end end = same ? walk_listed(k, w, keys, frames) : WALK_NO_MODULE;
	bool asked = looked && !p->kernel->by_history_ns;
	if (end == WALK_NO_MODULE && patient && !asked && !code_waits_for(k)) {
		code_ask(k, p);
		looked = true;
		if (p->list != before)
			end = walk_listed(k, w, keys, frames);
	}
	if (code_waits_for(k))
		return WALK_NO_MODULE;
	/* In a recording of the whole machine, more is not tried for code that stays unknown. */
	bool resigned = k->whole && there && !patient;
	if (end == WALK_NO_MODULE && !resigned)
		end = walk_back(k, w, keys, frames);
	if (code_waits_for(k))
		return end;
	if (end == WALK_NO_MODULE && same)
		end = walk_last(k, w, keys, frames);
	count_useless(k, p, looked, patient, p->list != before);
	return end;
}

/* Whether a thread has not run yet, and so has no frame on its stack: the kernel's outermost frame is
   ret_from_fork. */
static bool is_new(const struct kernel *k, const struct kernel_waiting *w)
{
	uint64_t start, size;
	uint32_t count = w->kernel_frame_count;
	const struct kernel_names *names = count ? kernel_frames_names(k->recording) : NULL;
	const char *name = names ? kernel_names_find(names, w->kernel_frames[count - 1] - 1, &start,
						     &size)
				 : NULL;
	return name && !strncmp(name, "ret_from_fork", strlen("ret_from_fork"));
}

/* The same decision as is_unborn() in bpf/take.h. */
static bool is_unborn(const struct kernel *k, const struct kernel_waiting *w, enum walk_end end)
{
	return w->unborn == KERNEL_UNBORN ||
	       (w->unborn == KERNEL_RETURNING && KERNEL_IS_NOWHERE(end)) ||
	       (end == WALK_BAD_MEMORY && (w->unborn == KERNEL_UNBORN_COPY || is_new(k, w)));
}

/* Adds a sample that was walked to the profile. */
static void keep_walked(struct kernel *k, struct kernel_waiting *w, uint64_t *keys, uint32_t frames,
			enum walk_end end)
{
	if (w->count) {
		struct err *e = keep_count(k, w, frames ? keys[0] : w->pc & CCT_ADDRESS);
		k->recording->notes.unkept += e ? w->count : 0;
		err_free(e);
		return;
	}
	if (w->used && end != WALK_COMPLETE && end != WALK_TOO_DEEP) {
		/* Words that were read later are of another time. Frames found by them are believed only
		   if the walk has come to the root. */
		w->copied_only = true;
		end = walk_listed(k, w, keys, &frames);
	}
	if (is_unborn(k, w, end)) { /* as keep_only_kernel() in bpf/take.h */
		keys[0] = KERNEL_KEY_KERNEL;
		frames = w->kernel_frame_count ? 0 : 1;
		end = WALK_COMPLETE;
	}
	if (end == WALK_BAD_MEMORY && (w->cut || w->missing))
		end = WALK_NO_STACK;
	tables_need(k, keys, frames);
	recording_note_error(k->recording, keep(k, w, keys, frames, end));
}

/* Run-time compilers have new code again and again. So for the whole machine only a few more looks are
   tried. */
void walks_allow_looks(const struct kernel *k, struct process *p)
{
	if (!k->whole)
		p->useless = 0;
	else if (p->useless > UNRESOLVED_MAX - HOPES)
		p->useless = UNRESOLVED_MAX - HOPES;
}

/* Whether the code of the sample is not known yet, but will be. */
static bool must_wait(struct kernel *k, struct kernel_waiting *w, enum walk_end end)
{
	unsigned unready = code_waits_for(k);
	code_forget_waits(k);
	bool wait = unready && end == WALK_NO_MODULE;
	if (wait)
		w->process->kernel->waits_for = unready;
	return wait;
}

/* Walks a sample, and adds it to the profile. False: it must wait, and so must later ones of its process. */
static bool walk_one(struct kernel *k, struct kernel_waiting *w, uint64_t *keys, unsigned builds)
{
	struct process *p = w->process;
	uint32_t frames = 0;
	bool wait = builds && (p->kernel->without_tables || p->kernel->waits_for == builds);
	if (!wait) {
		/* Clears what earlier looks have reported. */
		code_forget_waits(k);
		enum walk_end end = walk_looking(k, w, keys, &frames);
		wait = must_wait(k, w, end);
		if (!wait)
			keep_walked(k, w, keys, frames, end);
	}
	if (wait && p->kernel->waiting_bytes > WAITING_ONE && !p->kernel->without_tables &&
	    !p->gone)
		code_look_without_tables(k, p);
	return !wait;
}

/* First those that are parked: they are older. */
void walks_all(struct kernel *k)
{
	uint64_t *keys = waiting_any(k) ? reallocarray(NULL, KERNEL_FRAMES, sizeof *keys) : NULL;
	unsigned builds = k->whole ? library_builds(k->recording->library) : 0;
	if (!keys)
		return;
	for (struct process *p = k->waiting.parked; p; p = p->kernel->next_parked)
		while (p->kernel->parked && walk_one(k, p->kernel->parked, keys, builds))
			waiting_remove_parked(k, p);
	waiting_sort_out(k);
	while (k->waiting.first) {
		if (walk_one(k, k->waiting.first, keys, builds))
			waiting_remove(k);
		else
			waiting_park(k);
	}
	free(keys);
}

static void give_up(struct kernel *k, struct kernel_waiting *w, uint64_t *keys)
{
	uint32_t frames = 0;
	enum walk_end end = walk_listed(k, w, keys, &frames);
	keep_walked(k, w, keys, frames, end);
}

void walks_give_up(struct kernel *k)
{
	uint64_t *keys = waiting_any(k) ? reallocarray(NULL, KERNEL_FRAMES, sizeof *keys) : NULL;
	if (!keys)
		return;
	for (struct process *p = k->waiting.parked; p; p = p->kernel->next_parked)
		while (p->kernel->parked) {
			give_up(k, p->kernel->parked, keys);
			waiting_remove_parked(k, p);
		}
	waiting_sort_out(k);
	while (k->waiting.first) {
		give_up(k, k->waiting.first, keys);
		waiting_remove(k);
	}
	free(keys);
}
