/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/interpreters.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "collect/kernel/object.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"

struct err *interpreters_open(struct kernel *k)
{
	k->interpreters.all = object_map(k, "scripts",
					 KERNEL_SCRIPTS * sizeof *k->interpreters.all);
	k->interpreters.known = calloc(KERNEL_SCRIPTS, sizeof *k->interpreters.known);
	if (!k->interpreters.all)
		return err_errno("cannot map memory of the sampler");
	return k->interpreters.known ? NULL : err_new("out of memory");
}

void interpreters_close(struct kernel *k)
{
	if (k->interpreters.all)
		munmap(k->interpreters.all, KERNEL_SCRIPTS * sizeof *k->interpreters.all);
	free(k->interpreters.known);
}

static bool is_used(const struct kernel *k, uint32_t number)
{
	for (const struct process *p = k->recording->processes; p; p = p->next)
		if (!p->gone && p->kernel->script == number + 1)
			return true;
	return false;
}

/* Returns a number that can be given: a new one; or, when all were given, one whose processes are gone.
   KERNEL_SCRIPTS: there is none. */
static uint32_t find_free(const struct kernel *k)
{
	uint32_t i = 0;
	if (k->interpreters.count < KERNEL_SCRIPTS)
		return k->interpreters.count;
	while (i < KERNEL_SCRIPTS && is_used(k, i))
		i++;
	return i;
}

/* Returns the number of an interpreter + 1, and gives the interpreter to the sampler if it is new; 0: there is
   no room. Processes that were forked have theirs at the same place, and share it. */
static uint32_t number_of(struct kernel *k, const struct python *python)
{
	struct kernel_interpreters *x = &k->interpreters;
	for (uint32_t i = 0; i < x->count; i++)
		if (!memcmp(&x->known[i], python, sizeof *python))
			return i + 1;
	uint32_t i = find_free(k);
	if (i == KERNEL_SCRIPTS)
		return 0;
	x->count += i == x->count;
	x->known[i] = *python;
	x->all[i] = (struct kernel_script){.runtime = python->runtime,
					   .layout = python->layout,
					   .code_name = python->code_name,
					   .code_file = python->code_file,
					   .code_line = python->code_line,
					   .code_lines = python->code_lines};
	return i + 1;
}

uint32_t interpreters_give(struct kernel *k, struct process *p)
{
	struct python python;
	bool found = p->list && scripts_find(k->recording->library, p->list, p->pid, &python);
	p->kernel->script = found ? number_of(k, &python) : 0;
	if (p->kernel->script && p->scripts)
		scripts_read_as(p->scripts, &python);
	return p->kernel->script;
}

/* What is known of the functions of the thread's process; NULL if it is not interpreted. */
static struct scripts *scripts_of(const struct kernel *k, struct kernel_thread *t)
{
	struct process *p = t ? t->process : NULL;
	if (p && !p->scripts && p->kernel->script)
		p->scripts = scripts_open(&k->interpreters.known[p->kernel->script - 1]);
	return p ? p->scripts : NULL;
}

void interpreters_learn(struct kernel *k, const struct kernel_function *f)
{
	struct scripts *s = scripts_of(
		k, tasks_find(k, (pid_t)f->head.process, (pid_t)f->head.thread));
	struct python_pieces pieces = {(const char *)&f->object,
				       sizeof *f - offsetof(struct kernel_function, object)};
	const struct python_memory memory = {python_read_pieces, &pieces};
	const struct python_call call = {.code = f->code, .identity = f->identity};
	if (s)
		scripts_learn(s, &memory, &call);
}

void interpreters_take(struct kernel *k, const struct kernel_calls *calls)
{
	struct kernel_thread *t = tasks_find(k, (pid_t)calls->head.process,
					     (pid_t)calls->head.thread);
	struct scripts *s = scripts_of(k, t);
	if (!s)
		return;
	free(t->calls);
	t->calls = scripts_resolve(s, (const struct python_call *)(calls + 1), calls->count);
	t->calls_time = calls->head.time;
}

struct script_calls *interpreters_calls(struct kernel_thread *t, uint64_t time)
{
	struct script_calls *calls = t->calls_time == time ? t->calls : NULL;
	if (calls)
		t->calls = NULL;
	return calls;
}
