/* SPDX-License-Identifier: Apache-2.0 */
/* Jumps out of deep frames and out of signal handlers. */
#include "stress.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static jmp_buf plain;
static sigjmp_buf masked;
static _Thread_local jmp_buf own;
static volatile char *forbidden;

static __attribute__((noinline)) int fall(int depth, jmp_buf *to)
{
	if (depth == 0) {
		burn(1);
		longjmp(*to, 7);
	}
	return fall(depth - 1, to) + 1;
}

static long jumps(int rounds, jmp_buf *to)
{
	volatile long sum = 0;
	for (volatile int i = 0; i < rounds; i++) {
		int value = setjmp(*to);
		if (!value)
			fall(i % 50, to);
		sum += value;
	}
	return sum;
}

static void leave(int signal)
{
	burn(1);
	siglongjmp(masked, signal);
}

static long alarms(int rounds)
{
	volatile long sum = 0;
	signal(SIGALRM, leave);
	for (volatile int i = 0; i < rounds; i++) {
		int value = sigsetjmp(masked, 1);
		if (!value) {
			struct itimerval soon = {.it_value = {.tv_usec = 500 + i % 700}};
			setitimer(ITIMER_REAL, &soon, NULL);
			for (;;)
				burn(1);
		}
		sum += value;
	}
	return sum;
}

static long faults(int rounds)
{
	volatile long sum = 0;
	signal(SIGSEGV, leave);
	for (volatile int i = 0; i < rounds; i++) {
		int value = sigsetjmp(masked, 1);
		if (!value)
			*forbidden = 1;
		sum += value;
	}
	return sum;
}

static void *in_thread(void *rounds)
{
	return (void *)jumps((int)(intptr_t)rounds, &own);
}

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 3000);
	pthread_t thread;
	void *result;
	sigset_t mask;
	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(!pthread_create(&thread, NULL, in_thread, (void *)(intptr_t)rounds), "pthread_create");
	printf("jumps: %ld\n", jumps(rounds, &plain));
	pthread_join(thread, &result);
	printf("thread: %ld\n", (long)result);
	printf("alarms: %ld\n", alarms(rounds / 10 + 1));
	printf("faults: %ld\n", faults(rounds));
	sigprocmask(SIG_SETMASK, NULL, &mask);
	expect(!sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGALRM), "mask as before");
	return expect_failed;
}
