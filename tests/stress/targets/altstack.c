/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers on stacks of their own; recovery from a stack that ran over, in main and in threads.
   altstack SCALE [KILOBYTES]: how large these stacks are beyond what the kernel asks for. */
#include "stress.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static size_t alternate_size;
static _Thread_local sigjmp_buf back;
static _Thread_local volatile int handled;
static _Thread_local char *alternate;

static __attribute__((noinline)) int sink(int depth)
{
	volatile char frame[512];
	frame[0] = (char)depth;
	return sink(depth + 1) + frame[0];
}

static void recover(int signal)
{
	burn(1);
	siglongjmp(back, signal);
}

static void on_stack(int signal)
{
	char here;
	sigset_t other;
	burn(1);
	usleep(1); /* neither a wait nor a change of the mask brings what has no room here */
	sigemptyset(&other);
	sigaddset(&other, SIGUSR2);
	sigprocmask(SIG_UNBLOCK, &other, NULL);
	if (&here > alternate && &here < alternate + alternate_size)
		handled++;
	(void)signal;
}

static void set(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	sigaction(signal, &action, NULL);
}

static void *run(void *rounds)
{
	volatile long sum = 0;
	stack_t stack = {.ss_size = alternate_size}, before, after;
	sigaltstack(NULL, &before);
	stack.ss_sp = alternate = malloc(alternate_size);
	must(!sigaltstack(&stack, NULL), "sigaltstack");
	for (volatile int i = 0; i < (int)(intptr_t)rounds; i++) {
		if (!sigsetjmp(back, 1))
			sink(0);
		sum += SIGSEGV;
		raise(SIGUSR1);
	}
	sigaltstack(NULL, &after);
	if (after.ss_sp != alternate || after.ss_size != alternate_size || after.ss_flags ||
	    before.ss_flags != SS_DISABLE)
		sum = -1;
	stack.ss_flags = SS_DISABLE;
	must(!sigaltstack(&stack, NULL), "sigaltstack");
	free(alternate);
	return (void *)(sum * 100000 + handled);
}

/* To look a function up takes more stack than the function does: 3 KB for its registers alone, on some CPUs. */
static void look_up(void)
{
	sigset_t none;
	usleep(1);
	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	sigprocmask(SIG_UNBLOCK, &none, NULL);
	if (!sigsetjmp(back, 1))
		siglongjmp(back, 1);
}

int main(int argc, char **argv)
{
	void *rounds = (void *)(intptr_t)scaled(argc, argv, 300), *result;
	pthread_t threads[3];
	alternate_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 1024 * (argc > 2 ? atoi(argv[2]) : 64);
	look_up();
	set(SIGSEGV, recover);
	set(SIGBUS, recover);
	set(SIGUSR1, on_stack);
	for (int i = 0; i < 3; i++)
		must(!pthread_create(&threads[i], NULL, run, rounds), "pthread_create");
	printf("main: %ld\n", (long)run(rounds));
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		printf("thread: %ld\n", (long)result);
	}
	return 0;
}
