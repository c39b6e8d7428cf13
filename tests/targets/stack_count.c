/* SPDX-License-Identifier: Apache-2.0 */
/* stack_count: counts signals (queued ones, so each counts) in two threads; SIGTERM: prints how many. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_ulong count;
static atomic_int done;
static volatile unsigned long work;

static void counted(int number)
{
	(void)number;
	atomic_fetch_add(&count, 1);
}

static void end(int number)
{
	(void)number;
	atomic_store(&done, 1);
}

static void *spin(void *unused)
{
	(void)unused;
	while (!atomic_load(&done))
		work++;
	return NULL;
}

int main(void)
{
	pthread_t thread;
	sigset_t terminate, nothing;
	sigemptyset(&nothing);
	sigemptyset(&terminate);
	sigaddset(&terminate, SIGTERM);
	sigprocmask(SIG_BLOCK, &terminate, NULL); /* handled in sigsuspend alone: never missed */
	signal(SIGRTMIN, counted);
	signal(SIGTERM, end);
	alarm(300);
	if (pthread_create(&thread, NULL, spin, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	while (!atomic_load(&done))
		sigsuspend(&nothing);
	pthread_join(thread, NULL);
	printf("%lu\n", atomic_load(&count));
	return 0;
}
