/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is sampled, as the sampler tells it: a process that forks, execs or ends,
 * with each thread that comes and goes. A process is described from /proc while
 * it lives; one that was too short for that is what its parent was, under the
 * name that the kernel gives it.
 */
#include "collect/kernel_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define NAMED_AT_ONCE 256
#define NAMED_FOR_NS 1000000000ull

/* ---- processes ---- */

static struct process *find_process(const struct session *s, pid_t pid)
{
	for (struct process *p = s->kernel->home->processes; p; p = p->next)
		if (p->pid == pid && !p->gone)
			return p;
	return NULL;
}

const struct library_list *tasks_parent_list(struct session *s, const struct process *p)
{
	struct process *parent = find_process(s, p->parent);
	if (parent && !parent->list && !parent->gone)
		code_look(s, parent);
	return parent ? parent->list : NULL;
}

static struct kernel_thread **bucket_of(struct kernel *k, pid_t tid)
{
	return &k->threads[(uint32_t)tid % KERNEL_BUCKETS];
}

static struct kernel_thread *find_thread(struct kernel *k, pid_t tid)
{
	struct kernel_thread *t = *bucket_of(k, tid);
	while (t && t->tid != tid)
		t = t->next;
	return t;
}

static void set_name(char *to, size_t size, const char *comm)
{
	snprintf(to, size, "%.*s", (int)KERNEL_COMM, comm);
}

/* Its stacks may still wait to be walked: it is forgotten after that. */
static void end_process(struct session *s, struct process *p)
{
	tasks_finish(s, p);
	p->gone = true;
	p->end_ns = session_now();
}

/* Between fork and exec a child is nobody yet: what it took then counts for what it became. */
void tasks_executed(struct session *s, const struct kernel_task *t)
{
	pid_t pid = (pid_t)t->head.process;
	struct process *p = find_process(s, pid);
	s->process_count += !p;
	if (p && p->executed) {
		p->replaced = true;
		end_process(s, p);
		p = NULL;
	}
	if (!p)
		p = process_add_sampled(s, s->kernel->home, pid, NULL);
	if (!p)
		return;
	struct kernel_thread *first = find_thread(s->kernel, pid);
	if (first)
		set_name(first->name, sizeof first->name, t->comm);
	set_name(p->name, sizeof p->name, t->comm);
	process_describe(s, p, true); /* which may know a longer one */
	p->executed = true;
	p->image++;
	p->list = NULL;
	p->unlooked = true;
}

static struct process *add_child(struct session *s, pid_t pid, pid_t parent)
{
	struct process *from = find_process(s, parent);
	s->process_count++;
	return process_add_sampled(s, s->kernel->home, pid, from);
}

/* ---- threads ---- */

static struct kernel_thread *add_thread(struct session *s, struct process *p, pid_t tid,
					uint64_t start_ns)
{
	struct kernel_thread **bucket = bucket_of(s->kernel, tid), *t = calloc(1, sizeof *t);
	if (!t) {
		s->notes.unkept++;
		return NULL;
	}
	*t = (struct kernel_thread){
		.next = *bucket, .process = p, .tid = tid, .start_ns = start_ns};
	*bucket = t;
	s->thread_count++;
	return t;
}

bool tasks_known(const struct session *s, pid_t tid)
{
	return find_thread(s->kernel, tid);
}

struct kernel_thread *tasks_find(struct session *s, pid_t process, pid_t tid)
{
	struct kernel_thread *t = find_thread(s->kernel, tid);
	if (t)
		return t;
	struct process *p = find_process(s, process);
	if (!p) { /* what came before was lost */
		p = add_child(s, process, 0);
		if (p)
			p->unlooked = true;
	}
	return p ? add_thread(s, p, tid, session_now()) : NULL;
}

struct err *tasks_keep(struct session *s, struct kernel_thread *t, uint32_t *index)
{
	uint32_t process;
	if (t->profile) {
		*index = t->profile - 1;
		return NULL;
	}
	struct err *e = process_keep(s, t->process, &process);
	if (e)
		return e;
	struct profile_thread wanted = {.process = process,
					.tid = t->tid,
					.name = t->name[0] ? t->name : t->process->name,
					.start_ns = session_since(s, t->start_ns)};
	e = harvest_add_thread(s, &s->harvest, t->process, &wanted, index);
	if (!e)
		t->profile = *index + 1;
	return e;
}

/* Of one that goes on, or began before us, nobody has told the time on a CPU. */
static uint64_t guess_cpu(const struct session *s, const struct kernel_thread *t)
{
	const struct session_event *event = &s->options.events[0];
	return event->clock ? t->handled * event->period : 0;
}

static void read_name(struct kernel_thread *t)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)t->process->pid, (int)t->tid);
	FILE *file = fopen(path, "re");
	if (file && fgets(t->name, sizeof t->name, file))
		t->name[strcspn(t->name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Threads are named when they are made, and many name themselves afterwards. */
void tasks_name(struct session *s)
{
	uint64_t now = session_now();
	unsigned left = NAMED_AT_ONCE;
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = s->kernel->threads[i]; t && left; t = t->next) {
			if (!t->profile || t->profile == t->process->more_threads ||
			    now - t->named_ns < NAMED_FOR_NS)
				continue;
			read_name(t);
			t->named_ns = now;
			left--;
			if (t->name[0])
				s->harvest.profile->threads[t->profile - 1].name = profile_string(
					s->harvest.profile, t->name);
		}
}

/* Numbers that are known at its end. */
static void finish(struct session *s, struct kernel_thread *t)
{
	uint32_t index;
	bool first = t->tid == t->process->pid && !t->process->replaced;
	if (!t->name[0])
		read_name(t);
	struct err *e = t->profile || t->handled || first ? tasks_keep(s, t, &index) : NULL;
	if (e)
		s->notes.unkept++;
	err_free(e);
	if (t->profile) {
		struct profile_thread *x = &s->harvest.profile->threads[t->profile - 1];
		bool joined = t->profile == t->process->more_threads;
		if (!joined && t->name[0])
			x->name = profile_string(s->harvest.profile, t->name);
		x->end_ns = session_since(s, t->end_ns ? t->end_ns : session_now());
		x->cpu_ns += t->cpu_ns && !t->process->attached ? t->cpu_ns : guess_cpu(s, t);
		x->handler_ns += t->handler_ns;
		x->handled += t->handled;
	}
	struct kernel_thread **link = bucket_of(s->kernel, t->tid);
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	free(t);
}

void tasks_finish(struct session *s, const struct process *p)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = s->kernel->threads[i], *next; t; t = next) {
			next = t->next;
			if (!p || t->process == p)
				finish(s, t);
		}
}

/* Those that nobody finished: their numbers are of no interest any more. */
void tasks_close(struct kernel *k)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->threads[i], *next; t; t = next) {
			next = t->next;
			free(t);
		}
}

/* ---- what the sampler says ---- */

bool tasks_attach(struct session *s, pid_t pid)
{
	struct process *p = find_process(s, pid);
	if (p)
		return true;
	p = process_add_sampled(s, s->kernel->home, pid, NULL);
	if (!p)
		return false;
	s->process_count++;
	p->attached = p->executed = p->unlooked = true;
	return true;
}

void tasks_forked(struct session *s, const struct kernel_task *t)
{
	pid_t pid = (pid_t)t->child_process, tid = (pid_t)t->child_thread;
	struct kernel_thread *old = find_thread(s->kernel, tid);
	struct process *p = find_process(s, pid);
	if (old)
		finish(s, old);
	if (pid == tid) { /* a new process; an old one of this number has ended unseen */
		if (p)
			end_process(s, p);
		p = add_child(s, pid, (pid_t)t->head.process);
		maps_forked(s->kernel, pid, (pid_t)t->head.process, t->head.time);
	}
	if (p && add_thread(s, p, tid, t->head.time))
		set_name(find_thread(s->kernel, tid)->name, KERNEL_COMM + 1, t->comm);
}

void tasks_exited(struct session *s, const struct kernel_task *t)
{
	struct kernel_thread *thread = find_thread(s->kernel, (pid_t)t->head.thread);
	struct process *p = find_process(s, (pid_t)t->head.process);
	if (thread && thread->process == p) {
		set_name(thread->name, sizeof thread->name, t->comm);
		thread->end_ns = t->head.time;
		thread->cpu_ns = t->cpu_ns;
		finish(s, thread);
	}
	if (!t->last || !p)
		return;
	p->status = t->status;
	end_process(s, p);
}
