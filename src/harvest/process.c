/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/process.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"
#include "process/registers.h"
#include "process/status.h"
#include "profile/process_name.h"
#include "profile/profile.h"

#define COMMAND_MAX 4096u
#define DESCRIBE_NS 1000000000ull
#define DESCRIBE_WHOLE_NS (10 * DESCRIBE_NS)
#define DESCRIBE_SOON_NS 100000000ull /* after its start: by then it has its final name */
#define DESCRIBE_AT_ONCE 20
#define NAMED_NS DESCRIBE_WHOLE_NS
#define CONTAINER_MAX 200
#define ID_DIGITS 64 /* of a container's id */
#define ID_SHOWN 12  /* as container engines show it */
#define START_FIELD 22

/* ---- the list of processes ---- */

struct process *process_add(struct recording *r, pid_t pid, pid_t namespace_pid)
{
	struct process *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct process){.pid = pid,
			      .namespace_pid = namespace_pid,
			      .pidfd = -1,
			      .rank = -1,
			      .status = -1,
			      .machine = native_machine,
			      .start_ns = now_ns(),
			      .next = r->processes};
	if (p->next)
		p->next->previous = p;
	r->processes = p;
	return p;
}

void process_inherit(struct process *p, const struct process *parent)
{
	memcpy(p->name, parent->name, sizeof p->name);
	p->command = parent->command ? strdup(parent->command) : NULL;
	p->container = parent->container ? strdup(parent->container) : NULL;
	p->rank = parent->rank;
	p->user = parent->user;
	p->list = parent->list;
	p->machine = parent->machine;
}

bool process_is_alive(const struct process *p)
{
	struct pollfd poll_pidfd = {.fd = p->pidfd, .events = POLLIN};
	if (p->gone)
		return false;
	if (p->foreign)
		return true;
	if (p->pidfd < 0)
		return (!kill(p->pid, 0) || errno != ESRCH) && process_stat_field(p->pid, 3) != 'Z';
	return poll(&poll_pidfd, 1, 0) == 0;
}

void process_forget(struct recording *r, struct process *p)
{
	*(p->previous ? &p->previous->next : &r->processes) = p->next;
	if (p->next)
		p->next->previous = p->previous;
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->command);
	free(p->container);
	scripts_close(p->scripts);
	free(p->agent);
	free(p->kernel);
	free(p);
}

/* ---- what /proc says ---- */

/* Changes nothing if the process is gone. */
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

/* Kernel threads have no executable. A kernel worker has its present work behind its name: this is cut
   off. */
void process_read_comm(struct process *p)
{
	read_comm(p, p->name, sizeof p->name);
	if (!strncmp(p->name, "kworker/", 8))
		p->name[strcspn(p->name, "+-")] = '\0';
}

/* Reads what it calls itself. After a while it keeps its name, so that a process that renames itself
   again and again stays one process. */
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

/* Reads the rank that the starters of parallel programs tell each process. */
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

/* Returns the id of a container within the path of a control group; NULL: none. */
static const char *find_id(const char *path)
{
	for (const char *at = path; *at;) {
		size_t digits = strspn(at, "0123456789abcdef");
		if (digits == ID_DIGITS)
			return at;
		at += digits ? digits : 1;
	}
	return NULL;
}

/* Lines are NUMBER:CONTROLLERS:PATH. Number 0 is the unified hierarchy of today; on older systems,
   systemd's hierarchy counts. */
static char *read_container(pid_t pid)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "cgroup", &text);
	const char *found = NULL;
	for (const char *line = e ? NULL : buf_text(&text); line && *line;) {
		const char *path = strchr(line, ':');
		bool wanted = path &&
			      (!strncmp(line, "0::", 3) || !strncmp(path, ":name=systemd:", 14));
		path = path ? strchr(path + 1, ':') : NULL;
		if (path && wanted && path[1] == '/' && path[2] && path[2] != '\n')
			found = path + 1;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	const char *id = found ? find_id(found) : NULL;
	size_t length = found ? strcspn(found, "\n") : 0;
	if (id && id < found + length) {
		found = id;
		length = ID_SHOWN;
	}
	char *out = found ? strndup(found, length < CONTAINER_MAX ? length : CONTAINER_MAX) : NULL;
	err_free(e);
	buf_free(&text);
	return out;
}

/* As /proc shows it: in ticks. */
static int64_t start_of(const struct recording *r, uint64_t ticks)
{
	return r->boot_ms + (int64_t)(ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

void process_born(const struct recording *r, struct process *p, uint64_t boot_ns)
{
	p->start_ms = start_of(r, boot_ns / (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)));
}

/* If the process is gone, it keeps what it has from its parent. */
static void read_owner(struct recording *r, struct process *p)
{
	struct process_status status;
	long ticks = p->start_ms ? -1 : process_stat_field(p->pid, START_FIELD);
	if (ticks >= 0)
		p->start_ms = start_of(r, (uint64_t)ticks);
	if (!process_status(p->pid, &status))
		return;
	p->user = status.user; /* its folder in /proc may be root's, whoever owns the process */
	free(p->container);
	p->container = read_container(p->pid);
}

void process_describe(struct recording *r, struct process *p, bool first)
{
	char path[64];
	struct stat st;
	p->described_ns = now_ns();
	if (p->foreign || p->gone)
		return;
	read_name(p);
	read_command(p);
	snprintf(path, sizeof path, "/proc/%d", (int)p->pid);
	if (r->options.drained)
		read_owner(r, p);
	else if (!stat(path, &st))
		p->user = st.st_uid;
	if (first && !r->options.drained) /* drains do not keep it */
		read_rank(p);
	/* In a recording of the whole machine, the parent is the process that forked it, even if that
	   has ended since. */
	if (first && !(r->options.whole && p->parent)) {
		long parent = process_stat_field(p->pid, 4);
		if (parent >= 0) /* else it is gone, and what is known of it stays */
			p->parent = (pid_t)parent;
	}
	if (p->profile) {
		struct profile_process *x = &r->harvest.profile->processes[p->profile - 1];
		x->command = profile_string(r->harvest.profile, p->command ? p->command : "");
		x->name = profile_string(r->harvest.profile, p->name);
		x->rank = p->rank; /* a sample may have come between fork and exec */
	}
}

/* In a recording of the whole machine, records tell of each exec, and most processes are of no interest. */
static bool is_due(const struct recording *r, const struct process *p, uint64_t now)
{
	if (r->options.whole)
		return p->profile && now - p->described_ns >= DESCRIBE_WHOLE_NS;
	return now - p->described_ns >= DESCRIBE_NS ||
	       (p->described_ns - p->start_ns < DESCRIBE_SOON_NS / 2 &&
		now - p->start_ns >= DESCRIBE_SOON_NS);
}

void process_describe_some(struct recording *r, uint64_t now)
{
	unsigned left = DESCRIBE_AT_ONCE;
	for (struct process *p = r->processes; p && left; p = p->next)
		if (is_due(r, p, now)) {
			process_describe(r, p, false);
			left--;
		}
}
