/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacements for the exec functions. After exec, the new program has no handler for our signal and would
 * die of one that is already on its way. So the agent has the signal ignored during exec. The new program
 * inherits that, unlike a handler. The agent in the new program then installs its handler. A program without
 * the agent keeps ignoring a signal that nobody sends.
 *
 * These functions also run in children of vfork, that is, in the memory of another process. They change
 * nothing in it.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

REAL_SLOT(execve);
REAL_SLOT(execv);
REAL_SLOT(execvp);
REAL_SLOT(execvpe);
REAL_SLOT(fexecve);
REAL_SLOT(execveat);
REAL_SLOT(sigaction);

static bool guard(struct sigaction *before)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	return atomic_load(&agent.on) && REAL(sigaction)(WIRE_SIGNAL, &ignore, before) == 0;
}

/* exec failed: the old action is restored. */
static int unguard(bool guarded, const struct sigaction *before, int result)
{
	int saved = errno;
	if (guarded)
		REAL(sigaction)(WIRE_SIGNAL, before, NULL);
	errno = saved;
	return result;
}

#define GUARDED(call)                                     \
	do {                                              \
		struct sigaction before;                  \
		bool guarded = guard(&before);            \
		return unguard(guarded, &before, (call)); \
	} while (0)

AGENT_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	GUARDED(REAL(execve)(path, arguments, environment));
}

AGENT_EXPORT int execv(const char *path, char *const arguments[])
{
	GUARDED(REAL(execv)(path, arguments));
}

AGENT_EXPORT int execvp(const char *file, char *const arguments[])
{
	GUARDED(REAL(execvp)(file, arguments));
}

AGENT_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	GUARDED(REAL(execvpe)(file, arguments, environment));
}

AGENT_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	GUARDED(REAL(fexecve)(fd, arguments, environment));
}

AGENT_EXPORT int execveat(int directory, const char *path, char *const arguments[],
			  char *const environment[], int flags)
{
	GUARDED(REAL(execveat)(directory, path, arguments, environment, flags));
}

/* ---- exec functions with a variable number of arguments ---- */

static size_t count_arguments(const char *first, va_list list)
{
	size_t count = 1;
	if (first)
		while (va_arg(list, const char *))
			count++;
	return count;
}

static void take_arguments(char **out, const char *first, va_list list)
{
	*out = (char *)first;
	while (*out)
		*++out = va_arg(list, char *);
}

/* Collects the variable arguments and makes the call with `arguments`; also with `environment`, if that
   follows them. */
#define WITH_ARGUMENTS(last, follows, call)                                     \
	do {                                                                    \
		va_list list;                                                   \
		va_start(list, last);                                           \
		size_t count = count_arguments(last, list);                     \
		va_end(list);                                                   \
		char *arguments[count + 1];                                     \
		va_start(list, last);                                           \
		take_arguments(arguments, last, list);                          \
		char **environment = follows ? va_arg(list, char **) : environ; \
		va_end(list);                                                   \
		(void)environment;                                              \
		return call;                                                    \
	} while (0)

AGENT_EXPORT int execl(const char *path, const char *argument, ...)
{
	WITH_ARGUMENTS(argument, false, execv(path, arguments));
}

AGENT_EXPORT int execlp(const char *file, const char *argument, ...)
{
	WITH_ARGUMENTS(argument, false, execvp(file, arguments));
}

AGENT_EXPORT int execle(const char *path, const char *argument, ...)
{
	WITH_ARGUMENTS(argument, true, execve(path, arguments, environment));
}

/* Programs may also use syscall(). Ours is in syscall_CPU.S. It comes here for execve, execveat, futex and
   seccomp, and as long as the address of libc's syscall() is not known. */

REAL_SLOT(syscall);
void *agent_real_syscall __attribute__((visibility("hidden")));
long agent_syscall(long number, long a, long b, long c, long d, long e, long f)
	__attribute__((visibility("hidden")));

__attribute__((constructor)) static void know_syscall(void)
{
	agent_real_syscall = real_function(&real_syscall, "syscall");
}

long agent_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_execve)
		return execve((const char *)a, (char *const *)b, (char *const *)c);
	if (number == SYS_execveat)
		return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d,
				(int)e);
	if (number == SYS_futex)
		return wait_futex(REAL(syscall), a, b, c, d, e, f);
	if (number == SYS_seccomp)
		sandbox_begin((unsigned)a, (unsigned)b, (const void *)c);
	return REAL(syscall)(number, a, b, c, d, e, f);
}
