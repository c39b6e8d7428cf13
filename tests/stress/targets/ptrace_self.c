/* SPDX-License-Identifier: Apache-2.0 */
/* A debugger and its program: steps, system call stops, and signals handed on. */
#include "stress.h"
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int seen;

static void see(int signal)
{
	seen += signal;
}

static void debuggee(int units)
{
	signal(SIGUSR1, see);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (int i = 0; i < units; i++) {
		burn(1);
		if (i % 100 == 0)
			raise(SIGUSR1);
	}
	_exit(seen == (units + 99) / 100 * SIGUSR1 ? 12 : 13);
}

/* Resumes after each stop as a debugger does: by steps at first, then from call to call. */
static int debug(pid_t pid, int *own_signals)
{
	int status, steps = 0;
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);
		int how = ++steps < 3000 ? PTRACE_SINGLESTEP
			  : steps < 4000 ? PTRACE_SYSCALL
					 : PTRACE_CONT;
		*own_signals += signal == SIGUSR1;
		if (signal == SIGTRAP || signal == SIGSTOP)
			signal = 0;
		ptrace(how, pid, NULL, (void *)(intptr_t)signal);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int units = scaled(argc, argv, 2000), own = 0;
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0)
			debuggee(units);
		int result = debug(pid, &own);

		printf("debugged: %d, %d signals\n", result, own);
		fflush(stdout);
	}
	return 0;
}
