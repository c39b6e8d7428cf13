/* SPDX-License-Identifier: Apache-2.0 */
#include "apart/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

/* LANDLOCK_ACCESS_FS_TRUNCATE, which older headers lack. */
#define ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#define SOON_MS 20     /* most answers come within this time, without a look at schedstat */
#define STARVED_MAX 4u /* on a busy machine, wait at most this many times as long */
#define FREE (APART_FIRST + APART_FILES_MAX) /* descriptors from here on are free for other uses */
/* Score for the kernel's OOM killer: this process is killed before others if memory runs out. */
#define FIRST_TO_GO "500"

/* ---- in the process that asks ---- */

static int spawn(const char *program, char *const *arguments, const int *files, size_t count,
		 pid_t *pid)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int problem = 0;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	for (size_t i = 0; i < count && !problem; i++)
		if (files[i] >= 0)
			problem = posix_spawn_file_actions_adddup2(&actions, files[i],
								   APART_FIRST + (int)i);
	if (!problem)
		problem = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return problem;
}

/* Copies the descriptors to numbers above those that the new process gets, so that none is overwritten. */
struct err *apart_start(const char *program, char *const *arguments, const int *files, size_t count,
			pid_t *pid)
{
	int copies[APART_FILES_MAX] = {0};
	struct err *e = NULL;
	for (size_t i = 0; i < count; i++) {
		copies[i] = files[i] < 0 ? -1 : fcntl(files[i], F_DUPFD_CLOEXEC, FREE);
		if (copies[i] < 0 && files[i] >= 0 && !e)
			e = err_errno("cannot hand over a file");
	}
	if (!e) {
		errno = spawn(program, arguments, copies, count, pid);
		e = errno ? err_errno("cannot start '%s'", program) : NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (copies[i] >= 0)
			close(copies[i]);
	return e;
}

/* Sets which of our capabilities a program keeps after exec. */
static void hand_on(uint64_t rights)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, data))
		return;
	for (int i = 0; i < 2; i++)
		data[i].inheritable = data[i].permitted & (uint32_t)(rights >> 32 * i);
	syscall(SYS_capset, &head, data);
	for (int i = 0; i < 64; i++)
		if (rights >> i & 1)
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
}

struct err *apart_start_with(uint64_t rights, const char *program, char *const *arguments,
			     const int *files, size_t count, pid_t *pid)
{
	hand_on(rights);
	struct err *e = apart_start(program, arguments, files, count, pid);
	hand_on(0);
	return e;
}

int apart_end(pid_t pid, uint64_t *cpu_ns)
{
	struct rusage usage = {0};
	int status = 0;
	kill(pid, SIGKILL);
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	const struct timeval user = usage.ru_utime, system = usage.ru_stime;
	*cpu_ns += (uint64_t)(user.tv_sec + system.tv_sec) * 1000000000u +
		   (uint64_t)(user.tv_usec + system.tv_usec) * 1000u;
	return status;
}

struct err *apart_say_death(int status, uint64_t cpu_seconds)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return err_new("it took more than %llu seconds of CPU time",
			       (unsigned long long)cpu_seconds);
	if (WIFSIGNALED(status))
		return err_new("the process for it ended by signal %d (%s)", WTERMSIG(status),
			       strsignal(WTERMSIG(status)));
	return err_new("the process for it ended with status %d", WEXITSTATUS(status));
}

/* How long the process has waited for a CPU so far. */
static uint64_t starved_ms(pid_t pid)
{
	char path[64];
	unsigned long long ran, waited = 0;
	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return waited / 1000000;
}

bool apart_wait(pid_t pid, int socket, uint64_t ms)
{
	uint64_t begun = now_ms(), until = begun + ms;
	struct pollfd ready = {socket, POLLIN, 0};
	if (poll(&ready, 1, SOON_MS) > 0)
		return true;
	uint64_t starved = starved_ms(pid);
	for (;;) {
		uint64_t now = now_ms();
		if (now >= until)
			until = begun + ms + starved_ms(pid) - starved;
		if (now >= until || now >= begun + ms * STARVED_MAX)
			return false;
		if (poll(&ready, 1, (int)(until - now)) > 0)
			return true;
	}
}

/* ---- in the process that works ---- */

/* The value of a line of /proc/self/status, in bytes; 0 if it cannot be read. */
static uint64_t own_status(const char *name)
{
	char line[128];
	size_t length = strlen(name);
	uint64_t kilobytes = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, length) && line[length] == ':')
			kilobytes = strtoull(line + length + 1, NULL, 10);
	if (file)
		fclose(file);
	return kilobytes * 1024;
}

uint64_t apart_memory(void)
{
	return own_status("VmHWM");
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Lowers a limit for good. The hard limit is one higher: so a process that takes too much CPU time gets
   SIGXCPU, which tells the reason, and not SIGKILL. */
static void limit(int what, uint64_t most)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)what, &limit))
		return;
	limit.rlim_cur = least(limit.rlim_cur, most);
	limit.rlim_max = least(limit.rlim_max, most + 1);
	setrlimit((__rlimit_resource_t)what, &limit);
}

/* At most half of the machine's memory. */
static uint64_t memory_bound(uint64_t most)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
	uint64_t half = pages / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
	return half ? least(half, most) : most;
}

/* Errors are ignored: then the default stays. */
static void tell_kernel(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		errno = 0;
	close(fd);
}

/* Linux may first divide the CPU among sessions (sched(7), autogroup). So the process gets a session of
   its own. */
static void be_nice(int nice)
{
	char text[16];
	setsid();
	snprintf(text, sizeof text, "%d", nice);
	tell_kernel("/proc/self/autogroup", text);
	setpriority(PRIO_PROCESS, 0, nice);
}

static void set_bounds(const struct apart_bounds *b)
{
	tell_kernel("/proc/self/oom_score_adj", FIRST_TO_GO);
	if (b->nice)
		be_nice(b->nice);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_DATA, own_status("VmData") + memory_bound(b->memory));
	if (b->cpu_seconds)
		limit(RLIMIT_CPU, b->cpu_seconds);
	if (b->file_size)
		limit(RLIMIT_FSIZE, b->file_size);
	if (b->files)
		limit(RLIMIT_NOFILE, b->files);
}

void apart_limit_rights(uint64_t rights)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capget, &head, data);
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(rights >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &head, data);
}

/* The process parses foreign bytes, and its user may be root. So it can open no file for writing, and can
   make, remove or truncate none, also in the cache. This needs a kernel with Landlock: Linux 5.13, for
   truncation 6.2. */
static void write_nowhere(void)
{
	struct landlock_ruleset_attr writing = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	if (version >= 3)
		writing.handled_access_fs |= ACCESS_FS_TRUNCATE;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &writing,
				 sizeof writing.handled_access_fs, 0);
	if (rules < 0)
		return;
	syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

bool apart_enter(pid_t parent, int handed, const struct apart_bounds *bounds)
{
	prctl(PR_SET_NAME, "culprit");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent has ended already */
		return false;
	syscall(SYS_close_range, APART_FIRST + handed, ~0u, 0);
	set_bounds(bounds);
	apart_limit_rights(0); /* the files that it needs are open */
	write_nowhere();
	apart_restrict_calls();
	return true;
}
