/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is sampled, as the sampler tells it: a process that forks, execs or ends,
 * with each thread that comes and goes. A process is described from /proc while
 * it lives; one that was too short for that is what its parent was, under the
 * name that the kernel gives it.
 *
 * In a recording of the whole machine most processes are never sampled, and
 * nothing is asked about those. One that is sampled without having been told of
 * was there before us. What has ended is kept for a moment: the kernel still
 * works for it, and is sampled doing so.
 */
#include "collect/kernel_internal.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

#define NAMED_AT_ONCE 256
#define NAMED_FOR_NS 1000000000ull
#define AFTERLIFE_NS 3000000000ull /* what was counted comes later than what was walked */
#define CHECK_NS 10000000000ull
#define RELATIVES_MAX 8 /* from parent to parent */

static void finish(struct session *s, struct kernel_thread *t);

/* ---- processes ---- */

static struct process **process_bucket(struct kernel *k, pid_t pid)
{
	return &k->by_pid[(uint32_t)pid % KERNEL_BUCKETS];
}

static struct process *find_process(const struct session *s, pid_t pid)
{
	struct process *p = *process_bucket(s->kernel, pid);
	while (p && (p->pid != pid || p->gone))
		p = p->same_bucket;
	return p;
}

/* The same, or the last one that has ended. */
static struct process *find_any(const struct session *s, pid_t pid)
{
	struct process *p = find_process(s, pid);
	for (struct process *at = *process_bucket(s->kernel, pid); at && !p; at = at->same_bucket)
		p = at->pid == pid ? at : NULL;
	return p;
}

bool tasks_has(const struct session *s, pid_t pid)
{
	return find_any(s, pid);
}

static struct process *add_process(struct session *s, pid_t pid, const struct process *parent)
{
	struct process *p = process_add_sampled(s, s->kernel->home, pid, parent);
	struct process **bucket = process_bucket(s->kernel, pid);
	if (!p)
		return NULL;
	p->same_bucket = *bucket;
	*bucket = p;
	return p;
}

static void forget_process(struct session *s, struct process *p)
{
	struct process **link = process_bucket(s->kernel, p->pid);
	while (*link != p)
		link = &(*link)->same_bucket;
	*link = p->same_bucket;
	process_end(s, p);
}

const struct library_list *tasks_parent_list(struct session *s, const struct process *p)
{
	struct process *parent = find_process(s, p->parent);
	if (parent && !parent->list && !parent->gone)
		code_look(s, parent);
	return parent ? parent->list : NULL;
}

pid_t tasks_relative(const struct session *s, const struct process *p)
{
	for (int i = 0; p && i < RELATIVES_MAX; i++) {
		const struct process *parent = p->parent > 1 ? find_any(s, p->parent) : NULL;
		if (parent && !parent->gone)
			return parent->pid;
		p = parent;
	}
	return 0;
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
	if (!s->kernel->whole)
		tasks_finish(s, p);
	p->gone = true;
	p->end_ns = now_ns();
}

/* Where the sampler was given its code after it had ended, nobody else takes that back. */
static void take_back(struct session *s, const struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	bpf_map_delete_elem(s->kernel->processes, &pid);
}

/* Between fork and exec a child is nobody yet: what it took then counts for what it became. */
void tasks_executed(struct session *s, const struct kernel_task *t)
{
	pid_t pid = (pid_t)t->head.process;
	struct process *p = find_process(s, pid);
	s->process_count += !p;
	struct kernel_thread *first = find_thread(s->kernel, pid);
	const struct process *before = p && p->executed ? p : NULL;
	if (before) {
		p->replaced = true;
		if (s->kernel->whole && first) { /* what it becomes has the same number */
			finish(s, first);
			first = NULL;
		}
		end_process(s, p);
		p = NULL;
	}
	if (!p)
		p = add_process(s, pid, NULL);
	if (!p)
		return;
	if (before && s->kernel->whole) { /* which is kept for a while */
		p->parent = before->parent;
		p->start_ms = before->start_ms;
	}
	first = find_thread(s->kernel, pid);
	if (first)
		set_name(first->name, sizeof first->name, t->comm);
	set_name(p->name, sizeof p->name, t->comm);
	p->named = false;
	if (s->kernel->whole) {
		free(p->command);
		p->command = NULL;
		p->undescribed = !p->profile;
	}
	if (!p->undescribed)
		process_describe(s, p, true); /* which may know a longer one */
	p->executed = true;
	p->changes = (uint32_t)t->changes;
	p->image++;
	p->list = NULL;
	p->noted_ns = 0;
	p->unlooked = !s->kernel->whole;
}

static struct process *add_child(struct session *s, pid_t pid, pid_t parent)
{
	struct process *from = find_process(s, parent);
	if (!from && parent && s->kernel->whole && tasks_attach(s, parent))
		from = find_process(s, parent);
	s->process_count++;
	return add_process(s, pid, from);
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
	if (t && (t->process->pid == process || !s->kernel->whole))
		return t;
	if (t) /* the number is another one's now */
		finish(s, t);
	struct process *p = s->kernel->whole ? find_any(s, process) : find_process(s, process);
	if (!p && s->kernel->whole && tasks_attach(s, process))
		p = find_process(s, process);
	if (!p) { /* what came before was lost */
		p = add_child(s, process, 0);
		if (p)
			p->unlooked = true;
	}
	return p ? add_thread(s, p, tid, now_ns()) : NULL;
}

/* One that has become another program since, of which we will hear, keeps the name that it had. */
static void describe(struct session *s, struct process *p)
{
	char name[sizeof p->name];
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	memcpy(name, p->name, sizeof name);
	p->undescribed = false;
	process_describe(s, p, true);
	if (!p->executed || bpf_map_lookup_elem(s->kernel->processes, &pid, &now) ||
	    now.changes == p->changes)
		return;
	memcpy(p->name, name, sizeof name);
	p->named = false;
	free(p->command);
	p->command = NULL;
}

struct err *tasks_keep(struct session *s, struct kernel_thread *t, uint32_t *index)
{
	uint32_t process;
	if (t->profile) {
		*index = t->profile - 1;
		return NULL;
	}
	if (t->process->undescribed)
		describe(s, t->process);
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

struct err *tasks_keep_again(struct session *s, struct process *p, pid_t tid, uint32_t *index)
{
	struct kernel_thread *t = find_thread(s->kernel, tid);
	uint32_t process;
	if (t && t->process == p)
		return tasks_keep(s, t, index);
	struct err *e = process_keep(s, p, &process);
	struct profile_thread wanted = {
		.process = process, .tid = tid, .name = p->name, .start_ns = 0};
	return e ? e : harvest_add_thread(s, &s->harvest, p, &wanted, index);
}

/* ---- processes whose threads are not told apart ---- */

struct process *tasks_process(struct session *s, pid_t pid, uint32_t changes)
{
	const uint32_t most = 1u << KERNEL_CHANGES_BITS;
	struct process *found = NULL;
	for (struct process *p = *process_bucket(s->kernel, pid); p; p = p->same_bucket) {
		if (p->pid != pid)
			continue;
		found = p; /* the oldest, if none is as old */
		if ((changes - p->changes) % most < most / 2)
			return p;
	}
	if (found)
		return found;
	struct kernel_thread *t = tasks_find(s, pid, pid);
	return t ? t->process : NULL;
}

struct err *tasks_keep_process(struct session *s, struct process *p, uint32_t *index)
{
	struct err *e = p->counted ? NULL : tasks_keep_again(s, p, p->pid, index);
	if (e)
		return e;
	if (!p->counted)
		p->counted = *index + 1;
	*index = p->counted - 1;
	return NULL;
}

void tasks_add_cost(struct session *s, struct process *p, uint64_t samples, uint64_t ns)
{
	struct kernel_thread *t = find_thread(s->kernel, p->pid);
	uint32_t index;
	if (t && t->process == p) {
		t->handled += samples;
		t->handler_ns += ns;
		return;
	}
	struct err *e = tasks_keep_process(s, p, &index);
	if (!e) {
		s->harvest.profile->threads[index].handled += samples;
		s->harvest.profile->threads[index].handler_ns += ns;
	}
	err_free(e);
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
	uint64_t now = now_ns();
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
	bool first = t->tid == t->process->pid && !t->process->replaced && !s->kernel->whole;
	if (!t->name[0] && !s->kernel->whole)
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
		bool told = t->cpu_ns && !t->process->attached && !t->drained;
		x->end_ns = session_since(s, t->end_ns ? t->end_ns : now_ns());
		x->cpu_ns += told ? t->cpu_ns : guess_cpu(s, t);
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

void tasks_settle(struct session *s)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = s->kernel->threads[i]; t; t = t->next) {
			if (!t->profile)
				continue;
			struct profile_thread *x = &s->harvest.profile->threads[t->profile - 1];
			x->end_ns = session_since(s, now_ns());
			x->cpu_ns += guess_cpu(s, t);
			x->handler_ns += t->handler_ns;
			x->handled += t->handled;
			t->handler_ns = t->handled = 0;
			t->drained = true;
		}
}

void tasks_restart(struct session *s)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = s->kernel->threads[i]; t; t = t->next)
			t->profile = 0;
	for (struct process *p = s->kernel->home->processes; p; p = p->next) {
		p->profile = p->more_threads = p->counted = 0;
		p->unnamed_code = false;
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
	p = add_process(s, pid, NULL);
	if (!p)
		return false;
	s->process_count++;
	p->attached = p->executed = true;
	p->unlooked = !s->kernel->whole;
	return true;
}

/* What is asked now is of use for those that are gone by the time of their first sample, and for the
   children of all. */
void tasks_scan(struct session *s)
{
	struct dirent *entry;
	DIR *directory = opendir("/proc");
	while (directory && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct process *p = pid > 0 && tasks_attach(s, pid) ? find_process(s, pid) : NULL;
		if (!p)
			continue;
		process_read_comm(p);
		maps_scan(s->kernel, pid);
	}
	if (directory)
		closedir(directory);
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
		if (p) {
			p->changes = (uint32_t)t->changes;
			drain_born(s, p, t->start_ns);
		}
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
		if (!s->kernel->whole)
			finish(s, thread);
	}
	if (!t->last || !p)
		return;
	p->status = t->status;
	if (s->kernel->whole)
		take_back(s, p);
	end_process(s, p);
}

/* ---- what has ended ---- */

/* Those of whose end nobody told us, because there was no room in the ring. */
static void find_ended(struct session *s, uint64_t now)
{
	s->kernel->checked_ns = now;
	for (struct process *p = s->kernel->home->processes; p; p = p->next)
		if (!p->gone && kill(p->pid, 0) && errno == ESRCH) {
			take_back(s, p);
			end_process(s, p);
		}
}

static bool is_over(const struct kernel_thread *t, uint64_t now)
{
	return (t->end_ns && now > t->end_ns + AFTERLIFE_NS) ||
	       (t->process->gone && now > t->process->end_ns + AFTERLIFE_NS);
}

void tasks_reap(struct session *s)
{
	struct kernel *k = s->kernel;
	uint64_t now = now_ns();
	if (k->whole && now - k->reaped_ns < AFTERLIFE_NS)
		return;
	k->reaped_ns = now;
	if (k->whole && now - k->checked_ns > CHECK_NS)
		find_ended(s, now);
	for (size_t i = 0; k->whole && i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->threads[i], *next; t; t = next) {
			next = t->next;
			if (is_over(t, now))
				finish(s, t);
		}
	for (struct process *p = k->home->processes, *next; p; p = next) {
		next = p->next;
		if (p->gone && !p->waiting && (!k->whole || now > p->end_ns + AFTERLIFE_NS))
			forget_process(s, p);
	}
}
