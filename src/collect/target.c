/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/target.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/foreign.h"
#include "base/path.h"
#include "image/image.h"
#include "process/registers.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPTS_MAX 5 /* one run by another: as many as the kernel follows */
#define FIRST_BYTES 256

/* ---- finding it ---- */

static struct err *judge_file(const char *path)
{
	struct stat info;
	if (stat(path, &info))
		return errno == ENOENT || errno == ENOTDIR ? err_new("no such file")
							   : err_errno("cannot look at it");
	if (S_ISDIR(info.st_mode))
		return err_new("a directory, not a program");
	if (!S_ISREG(info.st_mode))
		return err_new("not a program");
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return err_new("not executable: chmod +x makes it so, if it is a program");
	return NULL;
}

static struct err *search(const char *name, struct buf *path)
{
	const char *place = getenv("PATH"), *denied = NULL;
	size_t length;
	if (!place)
		place = "/bin:/usr/bin";
	for (;; place += length + 1) {
		struct err *e;
		struct stat info;
		length = strcspn(place, ":");
		buf_clear(path);
		buf_printf(path, "%.*s/%s", length ? (int)length : 1, length ? place : ".", name);
		if (path->failed)
			return err_new("out of memory");
		e = judge_file(path->data);
		if (!e)
			return NULL;
		err_free(e);
		if (!stat(path->data, &info) && S_ISREG(info.st_mode))
			denied = "found in PATH, but not executable";
		if (!place[length])
			break;
	}
	if (denied)
		return err_new("%s", denied);
	return err_new("not found in PATH%s",
		       access(name, F_OK) ? "" : ": ./ before it means the one in this directory");
}

/* ---- looking at it ---- */

static bool gains_privileges(const char *path)
{
	struct statvfs place;
	struct stat info;
	if (stat(path, &info) || (!statvfs(path, &place) && place.f_flag & ST_NOSUID) ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	if (info.st_mode & S_ISUID && info.st_uid != getuid())
		return true;
	if (info.st_mode & S_ISGID && info.st_mode & S_IXGRP && info.st_gid != getgid())
		return true;
	return geteuid() && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Whether the file name is one that only glibc's dynamic linker has. */
static bool is_glibc_linker(const char *path)
{
	const char *name = path_file(path);
	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-2.", 5) ||
	       !strncmp(name, "ld.so", 5);
}

static const char *cpu_name(uint16_t machine)
{
	return machine == EM_X86_64 ? "x86-64" : "aarch64";
}

/* What else can be done with a program that nothing can be preloaded into. */
static const char *other_way(enum target_use use)
{
	return use == TARGET_SAMPLED ? "run culprit as root, so that the kernel samples it"
				     : "its paths cannot be counted";
}

static struct err *judge_linker(const char *path, const char *linker, enum target_use use)
{
	if (!linker && is_glibc_linker(path))
		return NULL; /* it is the linker itself, which preloads as usual */
	if (!linker)
		return err_new("a static program, into which nothing can be preloaded: %s%s",
			       other_way(use),
			       use == TARGET_SAMPLED ? ", or link it dynamically (without -static)"
						     : " unless it is linked dynamically (without "
						       "-static)");
	if (strstr(linker, "ld-musl"))
		return err_new("a program for the musl C library, and the agent is for glibc: %s",
			       other_way(use));
	if (!is_glibc_linker(linker))
		return err_new(
			"a program for the dynamic linker %s, and the agent is for glibc: %s",
			linker, other_way(use));
	return NULL;
}

static struct err *judge_elf(int fd, const char *path, enum target_use use)
{
	struct image *image;
	struct err *e = image_open_fd(fd, path, &image);
	char *linker;
	if (e)
		return e;
	if (image_machine(image) != native_machine) {
		e = err_new("a program for %s: this culprit records those for %s",
			    cpu_name(image_machine(image)), cpu_name(native_machine));
	} else {
		linker = image_interpreter(image);
		e = judge_linker(path, linker, use);
		free(linker);
	}
	image_close(image);
	if (!e && gains_privileges(path))
		return err_new(
			"it runs with the rights of its owner (setuid, setgid or "
			"capabilities), and nothing can be preloaded into such a program: run "
			"culprit itself as that user, or record a copy without these rights");
	return e;
}

/* How far we have come from a script to its interpreter. */
struct judging {
	enum target_use use;
	unsigned depth;
};

static struct err *judge_program(const char *path, struct judging j);

/* Judges the program that runs the script: "#!/bin/sh -e". */
static struct err *judge_script(const char *line, struct judging j)
{
	char interpreter[FIRST_BYTES];
	size_t start = 2 + strspn(line + 2, " \t"), length = strcspn(line + start, " \t\n");
	if (!length)
		return err_new("a script that names no interpreter after #!");
	if (j.depth++ >= SCRIPTS_MAX)
		return err_new("scripts run by scripts, more than %d of them", SCRIPTS_MAX);
	memcpy(interpreter, line + start, length);
	interpreter[length] = 0;
	return err_context(judge_program(interpreter, j), "its interpreter %s", interpreter);
}

static struct err *judge_bytes(int fd, const char *path, struct judging j)
{
	char first[FIRST_BYTES];
	ssize_t size = pread(fd, first, sizeof first - 1, 0);
	if (size < 0)
		return err_errno("cannot read it");
	first[size] = 0;
	if (size >= SELFMAG && !memcmp(first, ELFMAG, SELFMAG))
		return j.use == TARGET_RUN ? NULL : judge_elf(fd, path, j.use);
	if (size >= 2 && first[0] == '#' && first[1] == '!')
		return judge_script(first, j);
	if (memchr(first, 0, (size_t)size))
		return err_new("not a program: neither an ELF file nor a script");
	/* execvp runs a text file with /bin/sh. */
	j.depth = SCRIPTS_MAX;
	return err_context(judge_program("/bin/sh", j), "run by /bin/sh");
}

static struct err *judge_program(const char *path, struct judging j)
{
	struct err *e = judge_file(path);
	int fd;
	if (e)
		return e;
	fd = foreign_open(path, 0);
	if (fd < 0)
		return errno == EACCES
			       ? err_new("it may be run but not read, and without reading it its "
					 "stacks cannot be walked: chmod +r, or run culprit as its owner")
			       : err_errno("cannot open it");
	e = judge_bytes(fd, path, j);
	close(fd);
	return e;
}

struct err *target_find(const char *command, struct buf *path)
{
	if (!*command)
		return err_new("the command's name is empty");
	if (!strchr(command, '/'))
		return search(command, path);
	buf_puts(path, command);
	return path->failed ? err_new("out of memory") : NULL;
}

struct err *target_check(const char *command, enum target_use use)
{
	struct buf path = {0};
	struct err *e = target_find(command, &path);
	if (!e)
		e = judge_program(path.data, (struct judging){.use = use});
	buf_free(&path);
	return err_context(e, "%.200s", command);
}

/* ---- starting it ---- */

struct err *target_prepare(struct target *target)
{
	static const int held[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
				   SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
	struct sigaction usual = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
	sigset_t set;
	size_t i;
	*target = (struct target){.signals = -1};
	sigemptyset(&set);
	for (i = 0; i < sizeof held / sizeof held[0]; i++)
		sigaddset(&set, held[i]);
	sigprocmask(SIG_BLOCK, &set, &target->mask);
	/* If we had inherited "ignore", the exit status would be lost. */
	sigaction(SIGCHLD, &usual, &target->child_action);
	sigaction(SIGPIPE, &ignored, &target->pipe_action);
	target->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (target->signals < 0) {
		struct err *e = err_errno("signalfd");
		target_release(target);
		return e;
	}
	return NULL;
}

static _Noreturn void run_child(const struct target *target, char **arguments, char **environment,
				int report)
{
	int error;
	sigaction(SIGCHLD, &target->child_action, NULL);
	sigaction(SIGPIPE, &target->pipe_action, NULL);
	sigprocmask(SIG_SETMASK, &target->mask, NULL);
	execvpe(arguments[0], arguments, environment);
	error = errno;
	if (write(report, &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

/* Waits until the child runs the command. Returns its error number if it could not, else 0. */
static int wait_for_exec(int report)
{
	int error = 0;
	ssize_t got;
	do
		got = read(report, &error, sizeof error);
	while (got < 0 && errno == EINTR);
	return got == sizeof error ? error : 0;
}

/* Waits until the parent has closed its end of the pipe. */
static void wait_for_parent(int go[2])
{
	char nothing;
	close(go[1]);
	while (read(go[0], &nothing, 1) < 0 && errno == EINTR)
		;
	close(go[0]);
}

/* Waits for what becomes of the new process. Returns 0, or the error of its exec. */
static int await(pid_t pid, const struct target_hooks *hooks, int go[2], int report[2])
{
	close(report[1]);
	close(go[0]);
	if (hooks->in_parent)
		hooks->in_parent(hooks->context, pid);
	close(go[1]);
	int error = wait_for_exec(report[0]);
	close(report[0]);
	while (error && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return error;
}

struct err *target_start(struct target *target, char **arguments, char **environment,
			 const struct target_hooks *hooks)
{
	int report[2], go[2];
	if (pipe2(report, O_CLOEXEC))
		return err_errno("cannot start a process: pipe");
	if (pipe2(go, O_CLOEXEC)) {
		struct err *e = err_errno("cannot start a process: pipe");
		close(report[0]);
		close(report[1]);
		return e;
	}
	pid_t pid = fork();
	if (pid < 0) {
		struct err *e = err_errno("cannot start a process");
		const int all[] = {report[0], report[1], go[0], go[1]};
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			close(all[i]);
		return e;
	}
	if (!pid) {
		if (hooks->in_child)
			hooks->in_child(hooks->context);
		wait_for_parent(go);
		run_child(target, arguments, environment, report[1]);
	}
	errno = await(pid, hooks, go, report);
	if (errno)
		return err_errno("%.200s: cannot execute it", arguments[0]);
	target->pid = pid;
	return NULL;
}

/* ---- while it runs ---- */

/* The terminal sends SIGINT and SIGQUIT to the command as well. kill(1) sends them to us alone. */
static void pass_on(const struct target *target, const struct signalfd_siginfo *info)
{
	bool keyboard = info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT;
	if (info->ssi_signo == SIGCHLD || (keyboard && info->ssi_code == SI_KERNEL))
		return;
	kill(target->pid, (int)info->ssi_signo);
}

/* Whether it has ended. It stays as a zombie until target_release: its sampler may still read about it. */
static bool has_ended(struct target *target)
{
	siginfo_t info = {0};
	if (waitid(P_PID, (id_t)target->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    info.si_pid != target->pid)
		return false;
	target->status = info.si_code == CLD_EXITED
				 ? (info.si_status & 0xff) << 8
				 : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
	return true;
}

void target_handle(struct target *target)
{
	struct signalfd_siginfo info;
	if (!target->pid || target->ended)
		return;
	/* Before signals are passed on: after that, its number may belong to another process. */
	target->ended = has_ended(target);
	while (read(target->signals, &info, sizeof info) == sizeof info)
		if (!target->ended)
			pass_on(target, &info);
}

bool target_interrupted(const struct target *target)
{
	struct signalfd_siginfo info;
	bool asked = false;
	if (target->pid && !target->ended)
		return false;
	while (read(target->signals, &info, sizeof info) == sizeof info)
		asked |= info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT ||
			 info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP;
	return asked;
}

void target_release(struct target *target)
{
	struct signalfd_siginfo info;
	if (target->signals >= 0) {
		while (read(target->signals, &info, sizeof info) == sizeof info)
			;
		close(target->signals);
	}
	target->signals = -1;
	while (target->ended && waitpid(target->pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGCHLD, &target->child_action, NULL);
	sigaction(SIGPIPE, &target->pipe_action, NULL);
	sigprocmask(SIG_SETMASK, &target->mask, NULL);
}

int target_exit(const struct target *target)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	struct rlimit no_core = {0, 0};
	sigset_t set;
	int number;
	if (!WIFSIGNALED(target->status))
		return WEXITSTATUS(target->status);
	number = WTERMSIG(target->status);
	setrlimit(RLIMIT_CORE, &no_core);
	/* If a program takes the core files, the limit has no effect. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	sigaction(number, &usual, NULL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
	return 128 + number;
}
