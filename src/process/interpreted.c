/* SPDX-License-Identifier: Apache-2.0 */
#include "process/interpreted.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "process/remote.h"
#include "process/space.h"
#include "process/stack.h"
#include "script/python.h"

/* Of all threads together: the process stands still meanwhile. */
#define CALLS_MAX (1u << 18)

struct looker {
	const struct python *python;
	const struct python_memory *memory;
	struct stacks *stacks;
	struct python_call *calls; /* CALLS_MAX of them */
	size_t left;               /* calls that may still be read */
	bool failed;
};

/* The frame of the stack that this address lies in; `count` if in none. */
static size_t frame_with(const struct stack *s, uint64_t address)
{
	for (size_t i = 0; i + 1 < s->count; i++)
		if (s->frames[i].sp <= address && address < s->frames[i + 1].sp)
			return i;
	return s->count;
}

/* The interpreter does not say which thread it is; its record on the C stack does. */
static struct stack *stack_with(const struct looker *l, uint64_t address)
{
	for (size_t i = 0; i < l->stacks->count; i++) {
		struct stack *s = &l->stacks->threads[i];
		if (frame_with(s, address) < s->count)
			return s;
	}
	return NULL;
}

/* A call whose function cannot be read is left out. */
static bool add_call(const struct looker *l, struct stack *s, size_t frame,
		     const struct python_call *call)
{
	struct python_function f;
	if (!python_function_read(l->python, l->memory, call->code, &f))
		return true;
	size_t room = s->call_room;
	bool good = ARRAY_ROOM(s->calls, s->call_count, room);
	s->call_room = room;
	if (good) {
		s->calls[s->call_count++] = (struct stack_call){
			.frame = frame,
			.address = call->instruction,
			.name = f.name,
			.file = f.file,
			.line = python_line(&f, call->instruction),
		};
		f.name = f.file = NULL;
	}
	python_function_free(&f);
	return good;
}

/* Each group of calls ends with one that says where on the C stack it belongs. */
static bool see(void *context, uint64_t thread)
{
	struct looker *l = context;
	size_t count = python_calls(l->python, l->memory, thread, l->calls, l->left);
	l->left -= count;
	struct stack *s = NULL;
	for (size_t i = 0, first = 0; i < count && !l->failed; i++) {
		if (l->calls[i].code)
			continue;
		if (!s)
			s = stack_with(l, l->calls[i].instruction);
		size_t frame = s ? frame_with(s, l->calls[i].instruction) : 0;
		for (; s && frame < s->count && first < i && !l->failed; first++)
			l->failed = !add_call(l, s, frame, &l->calls[first]);
		first = i + 1;
	}
	return !l->failed && l->left;
}

bool interpreted_add(struct remote *remote, const struct space *space, struct stacks *stacks)
{
	const struct python_memory memory = {remote_read, remote};
	struct looker l = {.memory = &memory, .stacks = stacks, .left = CALLS_MAX};
	for (size_t i = 0; i < space->module_count && !l.failed; i++) {
		const struct space_module *m = &space->modules[i];
		struct python_file file;
		struct python python;
		if (!m->image || !python_in_file(m->image, &file) ||
		    !python_open(&file, m->bias, &memory, &python))
			continue;
		if (!l.calls)
			l.calls = calloc(CALLS_MAX, sizeof *l.calls);
		l.failed = !l.calls;
		l.python = &python;
		if (!l.failed)
			python_threads(&python, &memory, see, &l);
	}
	free(l.calls);
	return !l.failed;
}
