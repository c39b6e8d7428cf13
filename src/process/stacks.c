/* SPDX-License-Identifier: Apache-2.0 */
#include "process/stacks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/interpreted.h"
#include "process/pointer.h"
#include "process/remote.h"
#include "process/runtime.h"

#include "process/space.h"

#define TRIES 3

static bool is_code(const struct space *space, uint64_t address)
{
	const struct map *map = space_map(space, address);
	return map && map->executable;
}

/* Whether the code is of a module whose file could be read. */
static bool is_readable_module(const struct space *space, uint64_t address)
{
	const struct space_module *m = space_find(space, address);
	return m && m->image;
}

static enum code_kind code_at(const void *space, uint64_t address)
{
	if (!is_code(space, address))
		return CODE_NONE;
	if (is_readable_module(space, address))
		return CODE_MODULE;
	return ((const struct space *)space)->runtime->bare ? CODE_BARE : CODE_OTHER;
}

static enum stack_how how_of(const struct recipe *recipe)
{
	if (recipe->cfa == RECIPE_SIGNAL)
		return STACK_SIGNAL;
	if (recipe->source == RECIPE_FROM_CFI)
		return STACK_CFI;
	return recipe->source == RECIPE_FROM_SHAPE ? STACK_SHAPE : STACK_CODE;
}

static enum walk_end step(struct walk *w, const struct space *space,
			  const struct walk_reader *reader, bool fresh, uint8_t *how)
{
	const struct code_kinds code = {code_at, space,           &space->walk, space->runtime->top,
					fresh,   space->maps.task};
	uint64_t at = w->pc - !w->exact;
	enum walk_end end = walk_step(w, &space->walk, reader);
	if (end == WALK_ON) {
		*how = how_of(w->recipe);
		return end;
	}
	if ((end != WALK_NO_MODULE && end != WALK_NO_RECIPE) || is_readable_module(space, at))
		return end;
	if (fresh && pointer_step_back(w, &code, reader)) {
		*how = STACK_CALL;
		return WALK_ON;
	}
	if (code_at(space, at) == CODE_OTHER && pointer_step(w, &code, reader)) {
		*how = STACK_FP;
		return WALK_ON;
	}
	return end;
}

static bool add_frame(struct stack *stack, size_t *capacity, const struct walk *w)
{
	if (!ARRAY_ROOM(stack->frames, stack->count, *capacity))
		return false;
	stack->frames[stack->count++] = (struct stack_frame){
		.address = w->pc, .sp = w->sp, .exact = w->exact};
	return true;
}

bool stacks_walk(struct remote *remote, const struct remote_thread *thread,
		 const struct space *space, size_t max, bool fresh, struct stack *stack)
{
	struct walk w;
	struct walk_reader reader = {remote_word, remote};
	size_t capacity = 0;
	walk_begin(&w, unwind_cpu_for(space->machine), thread->registers, thread->pc);
	do {
		if (stack->count == max) {
			stack->end = WALK_TOO_DEEP;
			return true;
		}
		if (!add_frame(stack, &capacity, &w))
			return false;
		stack->end = step(&w, space, &reader, fresh, &stack->frames[stack->count - 1].how);
	} while (stack->end == WALK_ON);
	return true;
}

static void take_names(struct remote *remote, struct stacks *out)
{
	size_t at = 0;
	remote_read_names(remote);
	for (size_t i = 0; i < remote->thread_count && at < out->count; i++)
		if (remote->threads[i].tid == out->threads[at].tid)
			memcpy(out->threads[at++].name, remote->threads[i].name,
			       sizeof out->threads->name);
}

static struct err *take_once(pid_t pid, pid_t tid, size_t max, bool fresh,
			     const struct space *space, struct stacks *out)
{
	struct remote remote;
	struct err *e = remote_stop(pid, tid, &remote);
	if (e)
		return e;
	out->threads = calloc(remote.thread_count, sizeof *out->threads);
	bool good = out->threads;
	for (size_t i = 0; good && i < remote.thread_count; i++) {
		const struct remote_thread *t = &remote.threads[i];
		if (t->gone)
			continue;
		struct stack *stack = &out->threads[out->count++];
		stack->tid = t->tid;
		stack->stuck = t->stuck;
		stack->end = WALK_BAD_MEMORY;
		good = t->stuck || stacks_walk(&remote, t, space, max, fresh, stack);
	}
	good = good && interpreted_add(&remote, space, out);
	remote_resume(&remote);
	out->stopped_ns += now_ns() - remote.stopped_ns;
	out->stops++;
	if (good)
		take_names(&remote, out);
	remote_close(&remote);
	return good ? NULL : err_new("out of memory");
}

static void drop(struct stacks *stacks)
{
	for (size_t i = 0; i < stacks->count; i++) {
		struct stack *s = &stacks->threads[i];
		for (size_t k = 0; k < s->call_count; k++) {
			free(s->calls[k].name);
			free(s->calls[k].file);
		}
		free(s->calls);
		free(s->frames);
	}
	free(stacks->threads);
	stacks->threads = NULL;
	stacks->count = 0;
}

/* Whether a walk ended in memory that was not mapped when the maps were read. */
static bool met_unknown(const struct stacks *stacks, const struct space *space)
{
	for (size_t i = 0; i < stacks->count; i++) {
		const struct stack *s = &stacks->threads[i];
		const struct stack_frame *last = s->count ? &s->frames[s->count - 1] : NULL;
		if (last && s->end == WALK_NO_MODULE &&
		    !is_code(space, last->address - !last->exact))
			return true;
	}
	return false;
}

struct err *stacks_take(pid_t pid, pid_t tid, size_t max, enum recipes_mode mode,
			struct space *space, struct stacks *out)
{
	*out = (struct stacks){0};
	for (unsigned try = 1;; try++) {
		struct err *e = take_once(pid, tid, max, try > 1, space, out);
		size_t added;
		if (e) {
			drop(out);
			return e;
		}
		if (try == TRIES || !met_unknown(out, space))
			return NULL;
		/* New code was loaded: read the maps while the process runs, and try again. */
		e = space_refresh(pid, mode, space, &added);
		if (e) {
			err_free(e); /* it may have ended: what was seen is still worth showing */
			return NULL;
		}
		drop(out);
	}
}

void stacks_free(struct stacks *stacks)
{
	drop(stacks);
	*stacks = (struct stacks){0};
}

const char *stack_how_name(enum stack_how how)
{
	static const char *const names[] = {
		[STACK_NOTHING] = "",    [STACK_CFI] = "cfi",       [STACK_CODE] = "code",
		[STACK_SHAPE] = "shape", [STACK_SIGNAL] = "signal", [STACK_FP] = "fp",
		[STACK_CALL] = "call",
	};
	return names[how];
}
