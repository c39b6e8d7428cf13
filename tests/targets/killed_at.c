/* SPDX-License-Identifier: Apache-2.0 */
/* killed_at WHO STEP COMMAND...: runs a command, and kills it with SIGKILL before its step with this number, from 1 on; or, if STEP
   is wNUMBER, before the step that follows its write with this number. Steps are the system calls by which it and its children may
   change other processes: ptrace, and writes at a place of a file or of memory. WHO: `all` of its processes are killed, or only the
   `one` that is about to take the step. Exit status 0: that was done, and its output says what the step was. 3: the command has
   ended by itself; the output says after how many steps. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4096

static pid_t all[PROCESSES];
static int count;

static int stop_at_steps(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void add(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (all[i] == pid)
			return;
	if (count == PROCESSES)
		exit(2);
	all[count++] = pid;
}

static void drop(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (all[i] == pid)
			all[i] = all[--count];
}

static int is_write(pid_t pid)
{
	struct __ptrace_syscall_info info = {0};
	ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
	return info.seccomp.nr == SYS_pwrite64 || info.seccomp.nr == SYS_process_vm_writev;
}

static void say_step(pid_t pid)
{
	struct __ptrace_syscall_info info = {0};
	ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
	unsigned long long nr = info.seccomp.nr, *a = (void *)info.seccomp.args;
	printf("%s %llx %llx %llx\n",
	       nr == SYS_ptrace     ? "ptrace"
	       : nr == SYS_pwrite64 ? "pwrite"
				    : "writev",
	       a[0], a[2], a[3]);
	fflush(stdout);
}

static int follow(pid_t command, int one, int by_writes, long wanted)
{
	long step = 0, writes = 0;
	int status, result = 0, killed = 0;
	for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
		if (pid <= 0)
			continue;
		if (!WIFSTOPPED(status)) {
			drop(pid);
			if (pid == command && !killed)
				result = 3;
			continue;
		}
		add(pid);
		int event = status >> 16, signal = event ? 0 : WSTOPSIG(status);
		int is_step = event == PTRACE_EVENT_SECCOMP && !killed;
		step += is_step;
		if (is_step && (by_writes ? writes : step) == wanted) {
			say_step(pid);
			killed = 1;
			for (int i = 0; i < count; i++)
				if (!one || all[i] == pid)
					kill(all[i], SIGKILL);
			continue;
		}
		if (is_step)
			writes += is_write(pid);
		if (event == PTRACE_EVENT_STOP || signal == SIGSTOP)
			signal = 0; /* it is new */
		ptrace(PTRACE_CONT, pid, NULL, (void *)(long)signal);
	}
	if (!killed)
		printf("%ld\n", step);
	return result;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	pid_t command = fork();
	if (!command) {
		raise(SIGSTOP);
		if (stop_at_steps())
			_exit(127);
		execvp(argv[3], argv + 3);
		_exit(127);
	}
	int status;
	waitpid(command, &status, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, command, NULL,
		   PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
			   PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE))
		return 2;
	add(command);
	kill(command, SIGCONT);
	return follow(command, !strcmp(argv[1], "one"), *argv[2] == 'w',
		      atol(argv[2] + (*argv[2] == 'w')));
}
