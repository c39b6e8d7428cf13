/* SPDX-License-Identifier: Apache-2.0 */
/* All signals blocked everywhere; what is read back must be what was set. */
#include "stress.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int rounds;

static void mask_text(const sigset_t *set, char *text)
{
	for (int signal = 1; signal <= 64; signal++)
		text[signal - 1] = (char)('0' + sigismember(set, signal));
	text[64] = '\0';
}

static void *blocked(void *text)
{
	sigset_t all, old;
	struct timespec none = {0};
	int other = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < rounds; i++) {
		burn(5);
		pthread_sigmask(SIG_BLOCK, &all, &old);
		/* whatever is pending for us was not sent by this program */
		other += sigtimedwait(&all, NULL, &none) >= 0;
	}
	pthread_sigmask(SIG_SETMASK, NULL, &old);
	mask_text(&old, text);
	if (other)
		strcpy(text, "signals that nobody sent");
	return text;
}

static int wait_for(int signal)
{
	sigset_t set;
	siginfo_t info;
	struct timespec limit = {.tv_sec = 5};
	int got = 0, sum = 0;
	sigemptyset(&set);
	sigaddset(&set, signal);
	for (int i = 0; i < rounds / 4 + 1; i++) {
		union sigval value = {.sival_int = i};
		burn(1);
		sigqueue(getpid(), signal, value);
		if (i % 3 == 0 && !sigwait(&set, &got))
			sum += got == signal;
		else if (i % 3 == 1)
			sum += sigwaitinfo(&set, &info) == signal && info.si_value.sival_int == i;
		else if (i % 3 == 2)
			sum += sigtimedwait(&set, &info, &limit) == signal;
	}
	return sum;
}

static int read_fd(void)
{
	sigset_t set;
	struct signalfd_siginfo info;
	int sum = 0, fd;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	fd = signalfd(-1, &set, 0);
	for (int i = 0; i < rounds / 4 + 1; i++) {
		burn(1);
		kill(getpid(), SIGUSR2);
		sum += read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2;
	}
	close(fd);
	return sum;
}

static int read_pending(void)
{
	sigset_t set;
	raise(SIGRTMIN + 3);
	burn(10);
	sigpending(&set);
	for (int signal = 1; signal <= 64; signal++)
		if (sigismember(&set, signal) != (signal == SIGRTMIN + 3))
			return signal;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	return sigwaitinfo(&set, NULL) == SIGRTMIN + 3 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static char texts[5][65];
	pthread_t threads[4];
	sigset_t start, all;
	rounds = scaled(argc, argv, 400);
	sigprocmask(SIG_SETMASK, NULL, &start);
	mask_text(&start, texts[4]);
	printf("at start %s\n", texts[4]);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &start);
	mask_text(&start, texts[4]);
	printf("before   %s\n", texts[4]);
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&threads[i], NULL, blocked, texts[i]), "pthread_create");
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		printf("thread   %s\n", texts[i]);
	}
	blocked(texts[4]);
	printf("main     %s\n", texts[4]);
	printf("waited %d %d, read %d, pending %d\n", wait_for(SIGRTMIN + 1), wait_for(SIGUSR1),
	       read_fd(), read_pending());
	return 0;
}
