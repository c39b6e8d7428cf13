/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that says HELLO waits for our answer, so its pid is certain: the kernel tells it. A forked child
 * is only a pid in a record. It may have ended since, or run another program by now; and if it is in another
 * namespace, we see another process under this pid. So the pid is believed only if the process has the arena
 * mapped.
 */
#include "collect/agents/programs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/interpreted.h"
#include "collect/agents/state.h"
#include "collect/agents/unseen.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/maps.h"
#include "process/status.h"

/* ---- pids in namespaces ---- */

/* The last number of a line "KEY:\t1\t2\t3". It is the one in the innermost namespace. */
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

/* The number that a process or thread has in its own namespace; 0: it is gone. */
static pid_t namespace_number(pid_t pid)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "status", &text);
	pid_t number = e ? 0 : innermost(buf_text(&text), "\nNSpid:", pid);
	err_free(e);
	buf_free(&text);
	return number;
}

pid_t program_tid(const struct process *p, pid_t namespace_tid)
{
	pid_t *tids = NULL, found = namespace_tid;
	size_t count = 0;
	if (p->namespace_pid == p->pid)
		return namespace_tid;
	struct err *e = process_tasks(p->pid, &tids, &count);
	for (size_t i = 0; !e && i < count; i++)
		if (namespace_number(tids[i]) == namespace_tid)
			found = tids[i];
	err_free(e);
	free(tids);
	return found;
}

/* ---- which process it is ---- */

#define STAT_MEMORY 23 /* in /proc/PID/stat: bytes of memory; 0 when it is gone */

enum answer { NO, YES, UNKNOWN };

/* Whether the process has the arena mapped. For a process that is just ending, that is not known: its memory may have gone
   while the list was read, which ends early then. */
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
	for (size_t i = 0; i < maps.count && answer == NO; i++)
		if (maps.items[i].inode == a->inode &&
		    !strcmp(maps.items[i].path, "/memfd:culprit-arena"))
			answer = YES;
	if (answer == NO && process_stat_field(pid, STAT_MEMORY) <= 0 &&
	    !(process_status(pid, &status) && status.kernel))
		answer = UNKNOWN;
	maps_free(&maps);
	return answer;
}

/* Finds a process of another namespace: it has this pid there, and the arena mapped. */
static pid_t search(const struct arena *a, pid_t namespace_pid)
{
	struct dirent *entry;
	pid_t found = 0;
	DIR *directory = opendir("/proc");
	while (directory && !found && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && namespace_number(pid) == namespace_pid && has_arena(pid, a) == YES)
			found = pid;
	}
	if (directory)
		closedir(directory);
	return found;
}

static struct process *add(struct agents *agents, struct arena *a, pid_t pid, pid_t namespace_pid)
{
	struct process_agent *agent = calloc(1, sizeof *agent);
	struct process *p = agent ? process_add(agents->recording, pid, namespace_pid) : NULL;
	if (!p) {
		free(agent);
		return NULL;
	}
	*agent = (struct process_agent){
		.agents = agents, .arena = a, .next = a->processes, .io_fd = -1};
	p->agent = agent;
	if (agent->next)
		agent->next->agent->previous = p;
	a->processes = p;
	return p;
}

/* Arranges that `ended` is called when the process ends. */
static void watch(struct agents *agents, struct process *p, program_ended *ended)
{
	p->agent->watch = (struct watch){ended, p};
	unseen_open(agents, p);
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0) {
		p->gone = errno == ESRCH || errno == EINVAL;
		return;
	}
	struct err *e = loop_watch(agents->loop, p->pidfd, &p->agent->watch);
	if (e) {
		close(p->pidfd);
		p->pidfd = -1;
	}
	err_free(e);
}

struct process *program_add(struct agents *agents, struct arena *a, pid_t pid, pid_t namespace_pid,
			    program_ended *ended)
{
	struct process *p = add(agents, a, pid, namespace_pid);
	if (!p)
		return NULL;
	a->namespaced |= pid != namespace_pid;
	watch(agents, p, ended);
	process_describe(agents->recording, p, true);
	return p;
}

/* The parent; or, if that is gone, any other process of the arena: they all run the same program. */
static const struct process *parent_in(const struct arena *a, pid_t parent)
{
	for (const struct process *p = a->processes; p; p = p->agent->next)
		if (p->namespace_pid == parent)
			return p;
	return a->processes;
}

struct process *program_add_forked(struct agents *agents, struct arena *a, pid_t namespace_pid,
				   pid_t parent, program_ended *ended)
{
	const struct process *from = parent_in(a, parent);
	a->namespaced |= parent == 0;
	enum answer here = a->namespaced ? UNKNOWN : has_arena(namespace_pid, a);
	if (namespace_pid == getpid()) /* we have the arena mapped, too, but are no child */
		here = NO;
	pid_t pid = a->namespaced ? search(a, namespace_pid) : namespace_pid;
	struct process *p = add(agents, a, pid ? pid : namespace_pid, namespace_pid);
	if (!p)
		return NULL;
	p->parent = parent;
	if (from) {
		process_inherit(p, from);
		p->agent->late = from->agent->late;
	}
	if (a->namespaced && !pid) {
		p->foreign = true;
		agents->recording->process_count++;
		return p;
	}
	watch(agents, p, ended);
	if (here == NO) /* another program has this pid now */
		p->gone = p->replaced = true;
	agents->recording->process_count += !p->replaced;
	process_describe(agents->recording, p, false);
	return p;
}

struct process *program_find(const struct agents *agents, pid_t pid)
{
	for (struct process *p = agents->recording->processes; p; p = p->next)
		if (p->pid == pid && !p->foreign && !p->gone)
			return p;
	return NULL;
}

void program_leave(struct process *p)
{
	struct process_agent *agent = p->agent;
	*(agent->previous ? &agent->previous->agent->next : &agent->arena->processes) = agent->next;
	if (agent->next)
		agent->next->agent->previous = agent->previous;
}

/* ---- the modules of a process ---- */

static void publish(struct agents *agents, struct arena *a, uint32_t chunk, struct arena_thread *r,
		    void *context)
{
	const struct library_list *list = context;
	(void)agents;
	(void)a;
	(void)chunk;
	atomic_store_explicit(&r->list_place, list->place, memory_order_release);
}

struct err *program_look(struct agents *agents, struct process *p,
			 const struct library_module **executable)
{
	struct library_look found;
	struct err *e = library_look(agents->recording->library,
				     &(struct library_question){.pid = p->pid,
								.machine = p->machine,
								.executable = executable},
				     &found);
	if (e)
		return e;
	if (executable)
		*executable = found.executable;
	p->list = found.list;
	interpreted_tell(agents, p);
	arena_each(agents, p->agent->arena, p, publish, (void *)p->list);
	return NULL;
}
