/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the processes of a recording are. One that says HELLO waits for our
 * answer, so its number is its own. A forked child is only a number in a
 * record: it may have ended since, may run another program by now, and in a
 * namespace of its own the number means somebody else to us. So it is believed
 * only where the process with that number has the arena in its memory.
 */
#include "collect/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/maps.h"
#include "process/registers.h"
#include "process/status.h"
#include "profile/process_name.h"

#define COMMAND_MAX 4096u
#define DESCRIBE_NS 1000000000ull
#define DESCRIBE_WHOLE_NS (10 * DESCRIBE_NS)
#define DESCRIBE_AT_ONCE 20
#define NAMED_NS DESCRIBE_WHOLE_NS

/* ---- what /proc says ---- */

/* The last number of a line "KEY:\t1\t2\t3": the innermost namespace's. */
static pid_t innermost(const char *status, const char *key, pid_t otherwise)
{
	const char *line = strstr(status, key);
	if (!line)
		return otherwise;
	line += strlen(key);
	size_t length = strcspn(line, "\n");
	while (length && !isspace((unsigned char)line[length - 1]))
		length--;
	pid_t number = (pid_t)strtol(line + length, NULL, 10);
	return number > 0 ? number : otherwise;
}

static pid_t own_number(pid_t pid)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "status", &text);
	pid_t own = e ? 0 : innermost(buf_text(&text), "\nNSpid:", pid);
	err_free(e);
	buf_free(&text);
	return own;
}

pid_t process_tid(const struct process *p, pid_t own)
{
	pid_t *tids = NULL, found = own;
	size_t count = 0;
	if (p->own == p->pid)
		return own;
	struct err *e = process_tasks(p->pid, &tids, &count);
	for (size_t i = 0; !e && i < count; i++)
		if (own_number(tids[i]) == own)
			found = tids[i];
	err_free(e);
	free(tids);
	return found;
}

/* Nothing is changed where it is gone. */
static bool read_comm(const struct process *p, char *out, size_t size)
{
	struct buf text = {0};
	struct err *e = process_file(p->pid, "comm", &text);
	bool good = !e && text.size;
	if (good)
		snprintf(out, size, "%.*s", (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
	err_free(e);
	buf_free(&text);
	return good;
}

/* Threads of the kernel have no executable. What a worker of it is at stands behind its name. */
void process_read_comm(struct process *p)
{
	read_comm(p, p->name, sizeof p->name);
	if (!strncmp(p->name, "kworker/", 8))
		p->name[strcspn(p->name, "+-")] = '\0';
}

/* What it calls itself when it has been there for a while; one that goes on and on to rename itself stays one process. */
static void read_name(struct process *p)
{
	char path[64], target[4096], comm[PROCESS_COMM_MAX + 1] = "";
	snprintf(path, sizeof path, "/proc/%d/exe", (int)p->pid);
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length <= 0) {
		if (!p->name[0])
			process_read_comm(p);
		return;
	}
	target[length] = '\0';
	char *deleted = strstr(target, " (deleted)"), *slash = strrchr(target, '/');
	if (deleted)
		*deleted = '\0';
	slash = slash ? slash + 1 : target;
	if (p->named && !strncmp(slash, p->file, sizeof p->file - 1))
		return;
	if (!read_comm(p, comm, sizeof comm) && p->name[0])
		return;
	snprintf(p->file, sizeof p->file, "%.63s", slash);
	process_name_make(p->name, sizeof p->name, comm, p->file);
	p->named = now_ns() - p->start_ns >= NAMED_NS;
}

static void read_command(struct process *p)
{
	struct buf text = {0};
	struct err *e = process_file(p->pid, "cmdline", &text);
	size_t size = text.size < COMMAND_MAX ? text.size : COMMAND_MAX;
	while (size && (!text.data[size - 1] || text.data[size - 1] == ' '))
		size--;
	char *command = !e && size ? malloc(size + 1) : NULL;
	if (command) {
		for (size_t i = 0; i < size; i++)
			command[i] = iscntrl((unsigned char)text.data[i]) ? ' ' : text.data[i];
		command[size] = '\0';
		free(p->command);
		p->command = command;
	}
	err_free(e);
	buf_free(&text);
}

/* What the starters of parallel programs tell each process. */
static void read_rank(struct process *p)
{
	static const char *const names[] = {
		"OMPI_COMM_WORLD_RANK=", "MV2_COMM_WORLD_RANK=", "PMIX_RANK=",   "PMI_RANK=",
		"PALS_RANKID=",          "FLUX_TASK_RANK=",      "SLURM_PROCID="};
	struct buf text = {0};
	struct err *e = process_file(p->pid, "environ", &text);
	size_t best = sizeof names / sizeof *names;
	for (size_t at = 0; !e && at < text.size; at += strlen(text.data + at) + 1)
		for (size_t i = 0; i < best; i++)
			if (!strncmp(text.data + at, names[i], strlen(names[i]))) {
				const char *value = text.data + at + strlen(names[i]);
				p->rank = isdigit((unsigned char)*value)
						  ? (int32_t)strtol(value, NULL, 10)
						  : -1;
				best = i;
			}
	err_free(e);
	buf_free(&text);
}

long process_stat_field(pid_t pid, unsigned number)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "stat", &text);
	const char *at = e ? NULL : strrchr(buf_text(&text), ')');
	long value = -1;
	for (unsigned field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	if (at)
		value = number == 3 ? at[1] : strtol(at + 1, NULL, 10);
	err_free(e);
	buf_free(&text);
	return value;
}

void process_describe(struct session *s, struct process *p, bool first)
{
	char path[64];
	struct stat st;
	p->described_ns = now_ns();
	if (p->foreign || p->gone)
		return;
	read_name(p);
	read_command(p);
	snprintf(path, sizeof path, "/proc/%d", (int)p->pid);
	if (s->options.drained)
		drain_describe(s, p);
	else if (!stat(path, &st))
		p->user = st.st_uid;
	if (first && !s->options.drained) /* nobody keeps it there */
		read_rank(p);
	/* Of the whole machine's the one that forked it, which may have ended since. */
	if (first && !(s->options.whole && p->parent)) {
		long parent = process_stat_field(p->pid, 4);
		if (parent >= 0) /* else it is gone, and what is known of it stays */
			p->parent = (pid_t)parent;
	}
	if (p->profile) {
		struct profile_process *x = &s->harvest.profile->processes[p->profile - 1];
		x->command = profile_string(s->harvest.profile, p->command ? p->command : "");
		x->name = profile_string(s->harvest.profile, p->name);
		x->rank = p->rank; /* a sample may have come between fork and exec */
	}
}

/* Of the whole machine's processes exec is told, and most are of no interest. */
static bool is_due(const struct session *s, const struct process *p, uint64_t now)
{
	if (s->options.whole)
		return p->profile && now - p->described_ns >= DESCRIBE_WHOLE_NS;
	return now - p->described_ns >= DESCRIBE_NS ||
	       (p->described_ns - p->start_ns < SESSION_TICK_NS / 2 &&
		now - p->start_ns >= SESSION_TICK_NS);
}

void process_tick(struct session *s, uint64_t now)
{
	unsigned left = DESCRIBE_AT_ONCE;
	for (struct arena *a = s->arenas; a && left; a = a->next)
		for (struct process *p = a->processes; p && left; p = p->next)
			if (is_due(s, p, now)) {
				process_describe(s, p, false);
				left--;
			}
}

/* ---- who is who ---- */

enum answer { NO, YES, UNKNOWN };

/* Whether the process has the arena in its memory. Of one that is ending nobody can tell. */
static enum answer has_arena(pid_t pid, const struct arena *a)
{
	struct maps maps;
	struct process_status status;
	enum answer answer = NO;
	struct err *e = maps_read(pid, &maps);
	if (e) {
		err_free(e);
		return process_status(pid, &status) && status.kernel ? NO : UNKNOWN;
	}
	if (!maps.count && process_status(pid, &status) && !status.kernel)
		answer = UNKNOWN;
	for (size_t i = 0; i < maps.count && answer == NO; i++)
		if (maps.items[i].inode == a->inode &&
		    !strcmp(maps.items[i].path, "/memfd:culprit-arena"))
			answer = YES;
	maps_free(&maps);
	return answer;
}

/* In another namespace: whoever calls itself so and has the arena. */
static pid_t search(const struct arena *a, pid_t own)
{
	struct dirent *entry;
	pid_t found = 0;
	DIR *directory = opendir("/proc");
	while (directory && !found && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && own_number(pid) == own && has_arena(pid, a) == YES)
			found = pid;
	}
	if (directory)
		closedir(directory);
	return found;
}

static struct process *add(struct arena *a, pid_t pid, pid_t own)
{
	struct process *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct process){.watch = WATCH_PROCESS,
			      .arena = a,
			      .pid = pid,
			      .own = own,
			      .pidfd = -1,
			      .rank = -1,
			      .status = -1,
			      .machine = native_machine,
			      .start_ns = now_ns()};
	p->next = a->processes;
	if (p->next)
		p->next->previous = p;
	a->processes = p;
	return p;
}

/* To be told when it ends. */
static void watch(struct session *s, struct process *p)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		p->gone = errno == ESRCH || errno == EINVAL;
	else if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->pidfd, &event)) {
		close(p->pidfd);
		p->pidfd = -1;
	}
}

struct process *process_add(struct session *s, struct arena *a, pid_t pid, pid_t own)
{
	struct process *p = add(a, pid, own);
	if (!p)
		return NULL;
	a->namespaced |= pid != own;
	watch(s, p);
	process_describe(s, p, true);
	return p;
}

/* A child is like its parent until it says otherwise. */
static void inherit(struct process *p, const struct process *parent)
{
	memcpy(p->name, parent->name, sizeof p->name);
	p->command = parent->command ? strdup(parent->command) : NULL;
	p->container = parent->container ? strdup(parent->container) : NULL;
	p->rank = parent->rank;
	p->user = parent->user;
	p->list = parent->list;
	p->machine = parent->machine;
}

struct process *process_add_forked(struct session *s, struct arena *a, pid_t own, pid_t parent)
{
	struct process *from = a->processes, *p;
	for (struct process *x = a->processes; x; x = x->next)
		if (x->own == parent)
			from = x;
	a->namespaced |= parent == 0;
	enum answer here = a->namespaced ? UNKNOWN : has_arena(own, a);
	if (own == getpid()) /* we have it too, but are nobody's child */
		here = NO;
	pid_t pid = a->namespaced ? search(a, own) : own;
	p = add(a, pid ? pid : own, own);
	if (!p)
		return NULL;
	p->parent = parent;
	if (from)
		inherit(p, from);
	if (a->namespaced && !pid) {
		p->foreign = true;
		s->process_count++;
		return p;
	}
	watch(s, p);
	if (here == NO) /* another program has the number now */
		p->gone = p->replaced = true;
	s->process_count += !p->replaced;
	process_describe(s, p, false);
	return p;
}

struct process *process_add_sampled(struct session *s, struct arena *a, pid_t pid,
				    const struct process *parent)
{
	struct process *p = add(a, pid, pid);
	if (!p)
		return NULL;
	if (parent) {
		inherit(p, parent);
		p->parent = parent->pid;
	}
	p->undescribed = s->options.whole;
	if (!p->undescribed)
		process_describe(s, p, !parent);
	return p;
}

struct process *process_find(struct session *s, pid_t pid)
{
	for (struct arena *a = s->arenas; a; a = a->next)
		for (struct process *p = a->processes; p; p = p->next)
			if (p->pid == pid && !p->foreign && !p->gone)
				return p;
	return NULL;
}

bool process_is_alive(const struct process *p)
{
	struct pollfd poll_pidfd = {.fd = p->pidfd, .events = POLLIN};
	if (p->gone)
		return false;
	if (p->foreign)
		return true;
	if (p->pidfd < 0)
		return !kill(p->pid, 0) || errno != ESRCH;
	return poll(&poll_pidfd, 1, 0) == 0;
}

/* ---- its modules ---- */

static void publish(struct session *s, struct arena *a, uint32_t chunk, struct arena_thread *r,
		    void *context)
{
	const struct library_list *list = context;
	(void)s;
	(void)a;
	(void)chunk;
	atomic_store_explicit(&r->space, list->place, memory_order_release);
}

struct err *process_look(struct session *s, struct process *p,
			 const struct library_module **executable)
{
	const struct library_list *list;
	struct err *e = library_look(s->library, p->pid, p->machine, &list, executable);
	if (e || !list) /* not yet */
		return e;
	p->list = list;
	arena_each(s, p->arena, p, publish, (void *)list);
	return NULL;
}

/* ---- its place in the profile ---- */

struct err *process_keep(struct session *s, struct process *p, uint32_t *index)
{
	if (!p->profile) {
		struct profile_process x = {
			.pid = p->pid,
			.parent = p->parent,
			.name = p->name,
			.command = p->command ? p->command : "",
			.rank = p->rank,
			.start_ns = session_since(s, p->start_ns),
			.end_ns = session_since(s, now_ns()),
			.status = p->status,
		};
		struct err *e = profile_add_process(s->harvest.profile, &x, index);
		if (e)
			return e;
		p->profile = *index + 1;
	}
	*index = p->profile - 1;
	return s->options.drained ? drain_note(s, p) : NULL;
}

static void read_status(struct process *p)
{
	if (!p->foreign && p->pidfd >= 0 && process_stat_field(p->pid, 3) == 'Z')
		p->status = (int32_t)process_stat_field(p->pid, 52);
}

static void forget(struct process *p)
{
	*(p->previous ? &p->previous->next : &p->arena->processes) = p->next;
	if (p->next)
		p->next->previous = p->previous;
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->command);
	free(p->container);
	free(p);
}

void process_end(struct session *s, struct process *p)
{
	uint32_t index;
	read_status(p);
	p->end_ns = now_ns();
	sampling_close_early(s, p);
	arena_finish(s, p);
	/* What a child was between fork and exec is of interest only where it took time, and so is any
	   process of the whole machine's. */
	struct err *e = p->replaced || s->options.whole ? NULL : process_keep(s, p, &index);
	if (e)
		s->notes.unkept++;
	err_free(e);
	if (p->profile) {
		struct profile_process *x = &s->harvest.profile->processes[p->profile - 1];
		x->end_ns = session_since(s, p->end_ns);
		x->status = p->status;
		if (p->unnamed_code)
			harvest_name_code(&s->harvest, p);
	}
	forget(p);
}
