/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes and threads that are sampled. The sampler tells when a process forks, execs or ends, and
 * when a thread begins or ends. A process is described from /proc while it lives. If its life is too short
 * for that, it has the description of its parent, with the name that the kernel gives it.
 *
 * In a recording of the whole machine most processes are never sampled, and nothing is asked about these.
 * If a process is sampled that no record has told of, it started before us. Processes and threads that have
 * ended are kept for a moment: the kernel still works for them, and is sampled while it does.
 */
#include "collect/kernel/tasks.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "profile/profile.h"

#define NAMED_AT_ONCE 256
#define NAMED_FOR_NS 1000000000ull
#define AFTERLIFE_NS 3000000000ull /* counted samples come later than walked ones */
#define CHECK_NS 10000000000ull
#define RELATIVES_MAX 8 /* steps from parent to parent */

static void finish(struct kernel *k, struct kernel_thread *t);

/* ---- processes ---- */

static struct process **process_bucket(struct kernel *k, pid_t pid)
{
	return &k->tasks.by_pid[(uint32_t)pid % KERNEL_BUCKETS];
}

static struct process *first_process(const struct kernel *k, pid_t pid)
{
	return k->tasks.by_pid[(uint32_t)pid % KERNEL_BUCKETS];
}

struct process *tasks_find_process(const struct kernel *k, pid_t pid)
{
	struct process *p = first_process(k, pid);
	while (p && (p->pid != pid || p->gone))
		p = p->kernel->same_bucket;
	return p;
}

/* The same, or the latest one that has ended. */
static struct process *find_any(const struct kernel *k, pid_t pid)
{
	struct process *p = tasks_find_process(k, pid);
	for (struct process *at = first_process(k, pid); at && !p; at = at->kernel->same_bucket)
		p = at->pid == pid ? at : NULL;
	return p;
}

bool tasks_has_process(const struct kernel *k, pid_t pid)
{
	return find_any(k, pid);
}

/* Adds a process whose end will be told by a record. `parent` may be NULL. */
static struct process *add_process(struct kernel *k, pid_t pid, const struct process *parent)
{
	struct process_kernel *more = calloc(1, sizeof *more);
	struct process *p = more ? process_add(k->recording, pid, pid) : NULL;
	struct process **bucket = process_bucket(k, pid);
	if (!p) {
		free(more);
		return NULL;
	}
	p->kernel = more;
	more->same_bucket = *bucket;
	*bucket = p;
	if (parent) {
		process_inherit(p, parent);
		p->parent = parent->pid;
		more->script = parent->kernel->script;
	}
	more->undescribed = k->whole;
	if (!k->whole)
		process_describe(k->recording, p, !parent);
	return p;
}

static void forget_process(struct kernel *k, struct process *p)
{
	struct process **link = process_bucket(k, p->pid);
	while (*link != p)
		link = &(*link)->kernel->same_bucket;
	*link = p->kernel->same_bucket;
	if (!p->end_ns)
		p->end_ns = now_ns();
	harvest_end_process(k->recording, p);
}

void tasks_forget_all(struct kernel *k)
{
	while (k->recording->processes)
		forget_process(k, k->recording->processes);
}

pid_t tasks_relative(const struct kernel *k, const struct process *p)
{
	for (int i = 0; p && i < RELATIVES_MAX; i++) {
		const struct process *parent = p->parent > 1 ? find_any(k, p->parent) : NULL;
		if (parent && !parent->gone)
			return parent->pid;
		p = parent;
	}
	return 0;
}

static struct kernel_thread **bucket_of(struct kernel *k, pid_t tid)
{
	return &k->tasks.threads[(uint32_t)tid % KERNEL_BUCKETS];
}

static struct kernel_thread *find_thread(const struct kernel *k, pid_t tid)
{
	struct kernel_thread *t = k->tasks.threads[(uint32_t)tid % KERNEL_BUCKETS];
	while (t && t->tid != tid)
		t = t->next;
	return t;
}

static void set_name(char *to, size_t size, const char *comm)
{
	snprintf(to, size, "%.*s", (int)KERNEL_COMM, comm);
}

/* Copies of its stacks may still wait to be walked. It is forgotten after that. */
static void end_process(struct kernel *k, struct process *p)
{
	if (!k->whole)
		tasks_finish(k, p);
	p->gone = true;
	p->end_ns = now_ns();
}

/* Removes a process from the sampler's map. If its list was given after its end, nobody else removes it. */
static void take_back(struct kernel *k, const struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;
	bpf_map_delete_elem(k->processes, &pid);
}

/* Ends the program that a process was, and adds the one that it has become. NULL: no memory. */
static struct process *replace_process(struct kernel *k, struct process *old)
{
	struct kernel_thread *first = find_thread(k, old->pid);
	old->replaced = true;
	if (k->whole && first) /* the new program has the same number */
		finish(k, first);
	end_process(k, old);
	struct process *p = add_process(k, old->pid, NULL);
	if (p && k->whole) { /* in other recordings /proc says */
		p->parent = old->parent;
		p->start_ms = old->start_ms;
	}
	return p;
}

/* Names a process after the program that it has become. */
static void name_program(struct kernel *k, struct process *p, const char *comm)
{
	struct kernel_thread *first = find_thread(k, p->pid);
	if (first)
		set_name(first->name, sizeof first->name, comm);
	set_name(p->name, sizeof p->name, comm);
	p->named = false;
	if (k->whole) {
		free(p->command);
		p->command = NULL;
		p->kernel->undescribed = !p->profile;
	}
	if (!p->kernel->undescribed)
		process_describe(k->recording, p, true); /* which may know a longer name */
}

/* Nothing of the code that the process had before its exec is left. */
static void forget_code(const struct kernel *k, struct process *p)
{
	p->list = NULL;
	p->kernel->script = 0;
	p->kernel->by_history_ns = 0;
	p->kernel->unlooked = !k->whole;
}

/* Adds to all time of a thread: of the program that it was before an exec, or until its end. */
static void add_sums(struct kernel_thread *t, const struct kernel_sums *more, uint64_t time)
{
	if (!more->begun)
		return;
	if (!t->sums.begun || more->begun < t->sums.begun)
		t->sums.begun = more->begun;
	t->sums.blocked_ns += more->blocked_ns;
	t->sums.queued_ns += more->queued_ns;
	t->sums.cpu_ns += more->cpu_ns;
	t->sums_time = time;
}

/* A process that has exec'd before becomes another struct process. But what a child does between fork and
   exec counts for the program that it becomes: it stays the same. */
void tasks_executed(struct kernel *k, const struct kernel_task *t)
{
	pid_t pid = (pid_t)t->head.process;
	struct process *p = tasks_find_process(k, pid);
	struct kernel_thread *first = find_thread(k, pid);
	if (first && p && first->process == p)
		add_sums(first, &t->sums, t->head.time);
	if (!p) {
		k->recording->process_count++;
		p = add_process(k, pid, NULL);
	} else if (p->kernel->executed) {
		p = replace_process(k, p);
	}
	if (!p)
		return;
	name_program(k, p, t->comm);
	forget_code(k, p);
	p->kernel->executed = true;
	p->kernel->changes = (uint32_t)t->changes;
	p->kernel->execs++;
}

static struct process *add_child(struct kernel *k, pid_t pid, pid_t parent)
{
	struct process *from = tasks_find_process(k, parent);
	if (!from && parent && k->whole && tasks_attach(k, parent))
		from = tasks_find_process(k, parent);
	k->recording->process_count++;
	return add_process(k, pid, from);
}

/* ---- threads ---- */

static struct kernel_thread *add_thread(struct kernel *k, struct process *p, pid_t tid,
					uint64_t start_ns)
{
	struct kernel_thread **bucket = bucket_of(k, tid), *t = calloc(1, sizeof *t);
	if (!t) {
		k->recording->notes.unkept++;
		return NULL;
	}
	*t = (struct kernel_thread){
		.next = *bucket, .process = p, .tid = tid, .start_ns = start_ns};
	*bucket = t;
	k->recording->thread_count++;
	return t;
}

bool tasks_has_thread(const struct kernel *k, pid_t tid)
{
	return find_thread(k, tid);
}

struct kernel_thread *tasks_find(struct kernel *k, pid_t process, pid_t tid)
{
	struct kernel_thread *t = find_thread(k, tid);
	if (t && (t->process->pid == process || !k->whole))
		return t;
	if (t) /* another process has this number now */
		finish(k, t);
	struct process *p = k->whole ? find_any(k, process) : tasks_find_process(k, process);
	if (!p && k->whole && tasks_attach(k, process))
		p = tasks_find_process(k, process);
	if (!p) { /* its earlier records were lost */
		p = add_child(k, process, 0);
		if (p)
			p->kernel->unlooked = true;
	}
	return p ? add_thread(k, p, tid, now_ns()) : NULL;
}

/* If the process has become another program since, it keeps the name that it had: a record of the exec
   is still to come. */
static void describe(struct kernel *k, struct process *p)
{
	char name[sizeof p->name];
	uint32_t pid = (uint32_t)p->pid;
	struct kernel_process now;
	memcpy(name, p->name, sizeof name);
	p->kernel->undescribed = false;
	process_describe(k->recording, p, true);
	if (!p->kernel->executed || bpf_map_lookup_elem(k->processes, &pid, &now) ||
	    now.changes == p->kernel->changes)
		return;
	memcpy(p->name, name, sizeof name);
	p->named = false;
	free(p->command);
	p->command = NULL;
}

struct err *tasks_place(struct kernel *k, struct kernel_thread *t, uint32_t *index)
{
	uint32_t process;
	if (t->profile) {
		*index = t->profile - 1;
		return NULL;
	}
	if (t->process->kernel->undescribed)
		describe(k, t->process);
	struct err *e = harvest_add_process(k->recording, t->process, &process);
	if (e)
		return e;
	struct profile_thread wanted = {.process = process,
					.tid = t->tid,
					.name = t->name[0] ? t->name : t->process->name,
					.start_ns = recording_since(k->recording, t->start_ns)};
	e = harvest_add_thread(k->recording, &k->recording->harvest, t->process, &wanted, index);
	if (!e)
		t->profile = *index + 1;
	return e;
}

struct err *tasks_place_ended(struct kernel *k, struct process *p, pid_t tid, uint32_t *index)
{
	struct kernel_thread *t = find_thread(k, tid);
	uint32_t process;
	if (t && t->process == p)
		return tasks_place(k, t, index);
	struct err *e = harvest_add_process(k->recording, p, &process);
	struct profile_thread wanted = {
		.process = process, .tid = tid, .name = p->name, .start_ns = 0};
	return e ? e : harvest_add_thread(k->recording, &k->recording->harvest, p, &wanted, index);
}

/* ---- processes whose threads are not told apart ---- */

struct process *tasks_process(struct kernel *k, pid_t pid, uint32_t changes)
{
	const uint32_t most = 1u << KERNEL_CHANGES_BITS;
	struct process *found = NULL;
	for (struct process *p = first_process(k, pid); p; p = p->kernel->same_bucket) {
		if (p->pid != pid)
			continue;
		found = p; /* the oldest one, if none is old enough */
		if ((changes - p->kernel->changes) % most < most / 2)
			return p;
	}
	if (found)
		return found;
	struct kernel_thread *t = tasks_find(k, pid, pid);
	return t ? t->process : NULL;
}

struct err *tasks_place_process(struct kernel *k, struct process *p, uint32_t *index)
{
	struct err *e = p->kernel->counted ? NULL : tasks_place_ended(k, p, p->pid, index);
	if (e)
		return e;
	if (!p->kernel->counted)
		p->kernel->counted = *index + 1;
	*index = p->kernel->counted - 1;
	return NULL;
}

void tasks_add_cost(struct kernel *k, struct process *p, uint64_t samples, uint64_t ns)
{
	struct kernel_thread *t = find_thread(k, p->pid);
	uint32_t index;
	if (t && t->process == p) {
		t->handled += samples;
		t->handler_ns += ns;
		return;
	}
	struct err *e = tasks_place_process(k, p, &index);
	if (!e) {
		k->recording->harvest.profile->threads[index].handled += samples;
		k->recording->harvest.profile->threads[index].handler_ns += ns;
	}
	err_free(e);
}

/* Estimates the CPU time of a thread by its samples. The kernel tells the time only at the end of a
   thread, and since its very beginning. */
static uint64_t guess_cpu(const struct kernel *k, const struct kernel_thread *t)
{
	const struct recording_event *event = &k->recording->options.events[0];
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

/* Threads get a name when they are made, and many of them rename themselves afterwards. */
void tasks_name(struct kernel *k)
{
	uint64_t now = now_ns();
	unsigned left = NAMED_AT_ONCE;
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i]; t && left; t = t->next) {
			if (!t->profile || t->profile == t->process->more_threads ||
			    now - t->named_ns < NAMED_FOR_NS)
				continue;
			read_name(t);
			t->named_ns = now;
			left--;
			if (t->name[0])
				k->recording->harvest.profile->threads[t->profile - 1].name =
					profile_string(k->recording->harvest.profile, t->name);
		}
}

void tasks_add_sums(struct kernel *k, const struct kernel_told *told)
{
	/* In a recording of the whole machine, threads without a sample have hardly any time. */
	struct kernel_thread *t = k->whole ? find_thread(k, (pid_t)told->thread)
					   : tasks_find(k, (pid_t)told->process,
							(pid_t)told->thread);
	if (t)
		add_sums(t, &told->sums, told->time);
}

/* Puts all time of a thread into the profile. */
static void put_sums(const struct kernel *k, const struct kernel_thread *t,
		     struct profile_thread *x)
{
	uint64_t begun = recording_since(k->recording, t->sums.begun);
	if (begun < x->start_ns)
		x->start_ns = begun;
	if (!t->end_ns)
		x->end_ns = recording_since(k->recording, t->sums_time);
	x->cpu_ns += t->sums.cpu_ns;
	x->blocked_ns += t->sums.blocked_ns;
	x->queued_ns += t->sums.queued_ns;
}

/* Keeps what the waits of other threads may need of a thread that has ended. */
static void remember(struct kernel *k, struct kernel_thread *t)
{
	struct kernel_ended *x = &k->tasks.ended[k->tasks.ended_next++ % KERNEL_ENDED];
	free(x->waits);
	*x = (struct kernel_ended){t->process->pid, t->tid, t->profile, t->waits};
}

/* Ends a thread: puts its totals into the profile, and frees it. */
static void finish(struct kernel *k, struct kernel_thread *t)
{
	uint32_t index;
	bool first = t->tid == t->process->pid && !t->process->replaced && !k->whole;
	if (!t->name[0] && !k->whole)
		read_name(t);
	bool counts = t->handled || first || (t->sums.begun && !k->whole);
	struct err *e = t->profile || counts ? tasks_place(k, t, &index) : NULL;
	recording_note_error(k->recording, e);
	if (t->profile) {
		struct profile_thread *x = &k->recording->harvest.profile->threads[t->profile - 1];
		bool joined = t->profile == t->process->more_threads;
		if (!joined && t->name[0])
			x->name = profile_string(k->recording->harvest.profile, t->name);
		bool told = t->cpu_ns && !t->process->kernel->attached && !t->drained;
		x->end_ns = recording_since(k->recording, t->end_ns ? t->end_ns : now_ns());
		if (t->sums.begun && !t->drained)
			put_sums(k, t, x);
		else
			x->cpu_ns += told ? t->cpu_ns : guess_cpu(k, t);
		x->handler_ns += t->handler_ns;
		x->handled += t->handled;
	}
	struct kernel_thread **link = bucket_of(k, t->tid);
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	remember(k, t);
	free(t->calls);
	free(t);
}

const struct kernel_ended *tasks_ended(const struct kernel *k, pid_t process, pid_t tid)
{
	for (uint32_t i = 1; i <= KERNEL_ENDED; i++) { /* the last one first */
		const struct kernel_ended *x =
			&k->tasks.ended[(k->tasks.ended_next - i) % KERNEL_ENDED];
		if (x->profile && x->process == process && x->tid == tid)
			return x;
	}
	return NULL;
}

void tasks_finish(struct kernel *k, const struct process *p)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i], *next; t; t = next) {
			next = t->next;
			if (!p || t->process == p)
				finish(k, t);
		}
}

void tasks_add_totals(struct kernel *k)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i]; t; t = t->next) {
			if (!t->profile)
				continue;
			struct profile_thread *x =
				&k->recording->harvest.profile->threads[t->profile - 1];
			x->end_ns = recording_since(k->recording, now_ns());
			x->cpu_ns += guess_cpu(k, t);
			x->handler_ns += t->handler_ns;
			x->handled += t->handled;
			t->handler_ns = t->handled = 0;
			t->drained = true;
		}
}

void tasks_restart(struct kernel *k)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i]; t; t = t->next)
			t->profile = 0;
	for (size_t i = 0; i < KERNEL_ENDED; i++)
		k->tasks.ended[i].profile = 0;
	for (struct process *p = k->recording->processes; p; p = p->next)
		p->kernel->counted = 0;
}

/* Frees the threads that were not finished. Nobody needs their totals any more. */
void tasks_close(struct kernel *k)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i], *next; t; t = next) {
			next = t->next;
			free(t->calls);
			free(t->waits);
			free(t);
		}
	for (size_t i = 0; i < KERNEL_ENDED; i++)
		free(k->tasks.ended[i].waits);
	tasks_forget_all(k);
}

/* ---- records ---- */

bool tasks_attach(struct kernel *k, pid_t pid)
{
	struct process *p = tasks_find_process(k, pid);
	if (p)
		return true;
	p = add_process(k, pid, NULL);
	if (!p)
		return false;
	k->recording->process_count++;
	p->kernel->attached = p->kernel->executed = true;
	p->kernel->unlooked = !k->whole;
	return true;
}

/* Names and mappings are read now, for processes that are gone at the time of their first sample, and
   for the children of all. */
void tasks_scan(struct kernel *k)
{
	struct dirent *entry;
	DIR *directory = opendir("/proc");
	while (directory && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct process *p = pid > 0 && tasks_attach(k, pid) ? tasks_find_process(k, pid)
								    : NULL;
		if (!p)
			continue;
		process_read_comm(p);
		mapped_scan(k, pid);
	}
	if (directory)
		closedir(directory);
}

void tasks_forked(struct kernel *k, const struct kernel_task *t)
{
	pid_t pid = (pid_t)t->child_process, tid = (pid_t)t->child_thread;
	struct kernel_thread *old = find_thread(k, tid);
	struct process *p = tasks_find_process(k, pid);
	if (old)
		finish(k, old);
	if (pid == tid) { /* a new process; if the number is known, the old process ended unseen */
		if (p)
			end_process(k, p);
		p = add_child(k, pid, (pid_t)t->head.process);
		if (p) {
			p->kernel->changes = (uint32_t)t->changes;
			process_born(k->recording, p, t->start_ns);
		}
		mapped_forked(k, pid, (pid_t)t->head.process, t->head.time);
	}
	if (p && add_thread(k, p, tid, t->head.time))
		set_name(find_thread(k, tid)->name, KERNEL_COMM + 1, t->comm);
}

void tasks_exited(struct kernel *k, const struct kernel_task *t)
{
	struct process *p = tasks_find_process(k, (pid_t)t->head.process);
	struct kernel_thread *thread = p && t->sums.begun && !k->whole
					       ? tasks_find(k, p->pid, (pid_t)t->head.thread)
					       : find_thread(k, (pid_t)t->head.thread);
	if (thread && thread->process == p) {
		set_name(thread->name, sizeof thread->name, t->comm);
		thread->end_ns = t->head.time;
		thread->cpu_ns = t->cpu_ns;
		add_sums(thread, &t->sums, t->head.time);
		if (!k->whole)
			finish(k, thread);
	}
	if (!t->last || !p)
		return;
	p->status = t->status;
	if (k->whole)
		take_back(k, p);
	end_process(k, p);
}

/* ---- what has ended ---- */

/* Finds processes of whose end no record came, because there was no room in the ring. */
static void find_ended(struct kernel *k, uint64_t now)
{
	k->tasks.checked_ns = now;
	for (struct process *p = k->recording->processes; p; p = p->next)
		if (!p->gone && kill(p->pid, 0) && errno == ESRCH) {
			take_back(k, p);
			end_process(k, p);
		}
}

static bool is_over(const struct kernel_thread *t, uint64_t now)
{
	return (t->end_ns && now > t->end_ns + AFTERLIFE_NS) ||
	       (t->process->gone && now > t->process->end_ns + AFTERLIFE_NS);
}

void tasks_reap(struct kernel *k)
{
	uint64_t now = now_ns();
	if (k->whole && now - k->tasks.reaped_ns < AFTERLIFE_NS)
		return;
	k->tasks.reaped_ns = now;
	if (k->whole && now - k->tasks.checked_ns > CHECK_NS)
		find_ended(k, now);
	for (size_t i = 0; k->whole && i < KERNEL_BUCKETS; i++)
		for (struct kernel_thread *t = k->tasks.threads[i], *next; t; t = next) {
			next = t->next;
			if (is_over(t, now))
				finish(k, t);
		}
	for (struct process *p = k->recording->processes, *next; p; p = next) {
		next = p->next;
		if (p->gone && !p->kernel->waiting && (!k->whole || now > p->end_ns + AFTERLIFE_NS))
			forget_process(k, p);
	}
}
