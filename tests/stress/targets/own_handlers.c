/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of its own for every signal that can have one: each delivery counts, and what is read
   back is what was set. */
#include "stress.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int counts[65], codes[65];
static volatile sig_atomic_t masked_wrong;

static void count(int signal)
{
	counts[signal]++;
}

static void count_info(int signal, siginfo_t *info, void *context)
{
	sigset_t mask;
	counts[signal]++;
	codes[signal] = info->si_code;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	if (sigismember(&mask, SIGWINCH) != 1 || sigismember(&mask, signal) != 1)
		masked_wrong = 1;
	(void)context;
}

static bool usable(int signal)
{
	return signal != SIGKILL && signal != SIGSTOP && (signal < 32 || signal >= SIGRTMIN);
}

static void print_dispositions(const char *when)
{
	struct sigaction action;
	printf("%s:", when);
	for (int signal = 1; signal <= 64; signal++)
		if (usable(signal)) {
			sigaction(signal, NULL, &action);
			printf(" %d%s%x", signal,
			       action.sa_handler == SIG_DFL   ? "d"
			       : action.sa_handler == SIG_IGN ? "i"
			       : action.sa_handler == count   ? "c"
							      : "h",
			       (unsigned)action.sa_flags & ~0x04000000u);
		}
	printf("\n");
}

/* Those that an instruction can cause go to the thread: QEMU leaves just these open in a thread of
   its own, and dies if one sent to the whole process arrives there. */
static bool for_the_thread(int signal)
{
	return signal == SIGSEGV || signal == SIGILL || signal == SIGFPE;
}

/* Two of a usual signal that wait at the same time are one, whoever sent them. The sampler sends
   SIGSTKFLT, so one of the program's may be lost: once in a thousand at 10 kHz. */
static void send(int signal, bool by_raise)
{
	int before = counts[signal];
	for (int tries = signal == SIGSTKFLT ? 3 : 1; tries && counts[signal] == before; tries--)
		if (by_raise || for_the_thread(signal))
			raise(signal);
		else
			kill(getpid(), signal);
}

static void raise_all(const char *how, int times)
{
	int wrong = 0;
	memset((void *)counts, 0, sizeof counts);
	for (int i = 0; i < times; i++)
		for (int signal = 1; signal <= 64; signal++)
			if (usable(signal)) {
				burn(i % 4 == 0);
				send(signal, i % 2);
			}
	for (int signal = 1; signal <= 64; signal++)
		if (usable(signal) && counts[signal] != times) {
			printf("%s: signal %d came %d times of %d\n", how, signal, counts[signal],
			       times);
			wrong++;
		}
	printf("%s: %d wrong\n", how, wrong);
}

static void by_sigaction(void)
{
	struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigaddset(&action.sa_mask, SIGWINCH);
	for (int signal = 1; signal <= 64; signal++)
		if (usable(signal))
			must(!sigaction(signal, &action, NULL), "sigaction");
}

static void by_signal(void)
{
	int wrong = 0;
	for (int s = 1; s <= 64; s++)
		if (usable(s))
			wrong += (void *)signal(s, count) != (void *)count_info;
	printf("signal() returned %d wrong\n", wrong);
}

static void ignore_all(void)
{
	for (int s = 1; s <= 64; s++)
		if (usable(s)) {
			signal(s, SIG_IGN);
			raise(s);
		}
}

/* A handler must not outlive exec, but SIG_IGN does. */
static void across_exec(void)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSTKFLT, SIG_DFL);
		execl("/bin/sh", "sh", "-c",
		      "grep -E '^Sig(Ign|Cgt)' /proc/self/status | md5sum >/dev/null",
		      (char *)NULL);
		_exit(99);
	}
	signal(SIGCHLD, SIG_DFL);
	waitpid(pid, &status, 0);
	printf("child: %d\n", status);
}

int main(int argc, char **argv)
{
	int times = scaled(argc, argv, 100);
	print_dispositions("at start");
	by_sigaction();
	print_dispositions("sigaction");
	raise_all("sigaction", times);
	printf("codes of SIGUSR1 and SIGSTKFLT %d %d, mask in handler %s\n", codes[SIGUSR1],
	       codes[SIGSTKFLT], masked_wrong ? "wrong" : "right");
	by_signal();
	print_dispositions("signal");
	raise_all("signal", times);
	ignore_all();
	print_dispositions("ignored");
	burn(2000);
	across_exec();
	return 0;
}
