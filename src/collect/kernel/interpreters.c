/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/interpreters.h"

#include <stdlib.h>
#include <string.h>

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
	return k->interpreters.all ? NULL : err_errno("cannot map memory of the sampler");
}

/* Processes that were forked have it at the same place. */
static uint32_t number_of(struct kernel *k, const struct python *python)
{
	struct kernel_script wanted = {.runtime = python->runtime,
				       .layout = python->layout,
				       .code_name = python->code_name,
				       .code_file = python->code_file,
				       .code_line = python->code_line,
				       .code_lines = python->code_lines};
	uint32_t i = 0;
	while (i < k->interpreters.count &&
	       memcmp(&k->interpreters.all[i], &wanted, sizeof wanted) != 0)
		i++;
	if (i == KERNEL_SCRIPTS)
		return 0;
	if (i == k->interpreters.count)
		k->interpreters.all[k->interpreters.count++] = wanted;
	return i + 1;
}

uint32_t interpreters_give(struct kernel *k, struct process *p)
{
	struct python python;
	if (!p->list || !scripts_find(k->recording->library, p->list, p->pid, &python))
		return 0;
	if (!p->scripts)
		p->scripts = scripts_open(&python);
	return p->scripts ? number_of(k, &python) : 0;
}

/* The process of a record, if it is interpreted. */
static struct scripts *scripts_of(struct kernel *k, struct kernel_thread *t)
{
	if (t && !t->process->scripts) /* it was forked, and nothing was told about it since */
		interpreters_give(k, t->process);
	return t ? t->process->scripts : NULL;
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
