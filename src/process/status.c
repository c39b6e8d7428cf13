/* SPDX-License-Identifier: Apache-2.0 */
#include "process/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/reach.h"

#define PIECE 4096u

/* To give these files, the kernel needs the process's memory, or a lock that others may hold: that
   may block. */
static bool may_wait(const char *name)
{
	return !strcmp(name, "maps") || !strcmp(name, "cmdline") || !strcmp(name, "environ");
}

struct err *process_file(pid_t pid, const char *name, struct buf *out)
{
	char path[64];
	struct stat st;
	ssize_t got;
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int fd = may_wait(name) ? reach_open(path, 0, &st) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	do { /* most files are at most one page */
		if (!buf_reserve(out, PIECE)) {
			close(fd);
			return err_new("%s: out of memory", path);
		}
		got = read(fd, out->data + out->size, out->capacity - out->size - 1);
		if (got > 0)
			out->size += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	int error = errno;
	close(fd);
	out->data[out->size] = '\0';
	errno = error;
	return got < 0 ? err_errno("%s: cannot read", path) : NULL;
}

/* The number after `key` at the start of a line; `otherwise` if there is no such line. */
static long field(const char *text, const char *key, long otherwise)
{
	const char *at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : otherwise;
}

bool process_status(pid_t pid, struct process_status *out)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "status", &text);
	const char *t = buf_text(&text), *state;
	*out = (struct process_status){0};
	if (!e) {
		state = strstr(t, "\nState:\t");
		out->state = state ? state[8] : '?';
		out->group = (pid_t)field(t, "\nTgid:\t", pid);
		out->tracer = (pid_t)field(t, "\nTracerPid:\t", 0);
		out->parent = (pid_t)field(t, "\nPPid:\t", 0);
		out->user = (uid_t)field(t, "\nUid:\t", 0);
		out->filtered = field(t, "\nSeccomp:\t", 0) != 0;
		out->threads = (unsigned)field(t, "\nThreads:\t", 1);
		/* Kernels before 6.4 do not say Kthread. There, kernel threads are those without VmSize
		   that are not dead: dead processes have no VmSize either. */
		out->kernel = field(t, "\nKthread:\t",
				    !strstr(t, "\nVmSize:") && out->state != 'Z' &&
					    out->state != 'X') != 0;
	}
	bool found = !e;
	err_free(e);
	buf_free(&text);
	return found;
}

void process_wait_untraced(pid_t pid, uint64_t ns)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct process_status s;
	uint64_t start = now_ns();
	while (process_status(pid, &s) && s.tracer && now_ns() - start < ns)
		nanosleep(&pause, NULL);
}

static bool is_dead(const struct process_status *s)
{
	return s->state == 'Z' || s->state == 'X';
}

struct err *process_refusal(pid_t pid)
{
	struct process_status s;
	if (!process_status(pid, &s))
		return err_new("no such process: %d", (int)pid);
	if (s.group != pid)
		return err_new("%d is a thread of process %d: try 'culprit stack %d -t %d'",
			       (int)pid, (int)s.group, (int)s.group, (int)pid);
	if (s.kernel)
		return err_new("process %d is a kernel thread: it has no user stack", (int)pid);
	if (is_dead(&s) && s.threads <= 1)
		return err_new(
			"process %d has ended and waits for its parent to notice (a zombie): "
			"it has no stack any more",
			(int)pid);
	return NULL;
}

static int ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;
	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

struct err *process_forbidden(pid_t pid, pid_t tid)
{
	struct process_status s;
	if (!process_status(tid, &s))
		return err_new("no such process: %d", (int)pid);
	if (s.tracer)
		return err_new("process %d is traced by process %d already (a debugger or strace): "
			       "a process has one tracer at most",
			       (int)pid, (int)s.tracer);
	if (geteuid() != 0 && s.user != getuid())
		return err_new(
			"not permitted to look at process %d: it belongs to another user (%u): "
			"run as that user or as root",
			(int)pid, (unsigned)s.user);
	int scope = ptrace_scope();
	if (scope == 3)
		return err_new(
			"not permitted to look at process %d: kernel.yama.ptrace_scope is 3, "
			"which forbids it to everybody until the next boot",
			(int)pid);
	if (scope)
		return err_new(
			"not permitted to look at process %d: kernel.yama.ptrace_scope is %d: run as "
			"root, or 'sysctl kernel.yama.ptrace_scope=0'",
			(int)pid, scope);
	return err_new(
		"not permitted to look at process %d: it guards itself (set-uid or undumpable), or "
		"this container lacks CAP_SYS_PTRACE: %s",
		(int)pid, geteuid() ? "run as root" : "start it with --cap-add=SYS_PTRACE");
}

struct err *process_tasks(pid_t pid, pid_t **tids, size_t *count)
{
	char path[64];
	size_t capacity = 0;
	struct dirent *entry;
	*tids = NULL;
	*count = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? err_new("no such process: %d", (int)pid)
				       : err_errno("%s: cannot open", path);
	while ((entry = readdir(directory))) {
		long tid = strtol(entry->d_name, NULL, 10);
		if (tid <= 0)
			continue;
		if (*count == capacity) {
			capacity = capacity ? capacity * 2 : 64;
			pid_t *more = reallocarray(*tids, capacity, sizeof *more);
			if (!more) {
				free(*tids);
				closedir(directory);
				*tids = NULL;
				return err_new("out of memory");
			}
			*tids = more;
		}
		(*tids)[(*count)++] = (pid_t)tid;
	}
	closedir(directory);
	return *count ? NULL : err_new("process %d has ended", (int)pid);
}

pid_t process_task(pid_t pid)
{
	struct process_status s;
	pid_t *tids, found = pid;
	size_t count;
	if (!process_status(pid, &s) || !is_dead(&s) || s.threads <= 1)
		return pid;
	struct err *e = process_tasks(pid, &tids, &count);
	if (e) {
		err_free(e);
		return pid;
	}
	for (size_t i = 0; i < count && found == pid; i++)
		if (process_status(tids[i], &s) && !is_dead(&s))
			found = tids[i];
	free(tids);
	return found;
}
