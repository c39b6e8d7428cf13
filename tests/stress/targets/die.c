/* SPDX-License-Identifier: Apache-2.0 */
/* die SCALE WAY: computes in several threads, then ends in one of many ways. */
#include "stress.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void *spin(void *unused)
{
	for (;;)
		burn(1);
	return unused;
}

static __attribute__((noinline)) int sink(int depth)
{
	volatile char frame[128];
	frame[0] = (char)depth;
	return sink(depth + 1) + frame[0];
}

static void at_exit(void)
{
	burn(100);
	printf("at exit\n");
	fflush(stdout);
}

static void die(const char *way)
{
	volatile int *volatile nowhere = (int *)16;
	if (!strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "segv"))
		*nowhere = 1;
	if (!strcmp(way, "kill9"))
		kill(getpid(), SIGKILL);
	if (!strcmp(way, "term"))
		raise(SIGTERM);
	if (!strcmp(way, "trap"))
		__builtin_trap();
	if (!strcmp(way, "overflow"))
		sink(0);
	if (!strcmp(way, "exit"))
		exit(41);
	if (!strcmp(way, "_exit"))
		_exit(42);
	if (!strcmp(way, "quick_exit"))
		quick_exit(43);
	if (!strcmp(way, "last_thread"))
		pthread_exit(NULL);
	if (!strcmp(way, "stkflt")) {
		signal(SIGSTKFLT, SIG_DFL);
		kill(getpid(), SIGSTKFLT);
		sleep(2);
	}
	pause();
}

static void *die_in_thread(void *way)
{
	die(way);
	return NULL;
}

int main(int argc, char **argv)
{
	char *way = argc > 2 ? argv[2] : (char *)"exit";
	bool threads = strcmp(way, "last_thread") != 0;
	pthread_t thread;
	printf("begin %llx\n", (unsigned long long)burn((unsigned)scaled(argc, argv, 1000)));
	fflush(stdout);
	atexit(at_exit);
	at_quick_exit(at_exit);
	for (int i = 0; i < 3 && threads; i++)
		must(!pthread_create(&thread, NULL, spin, NULL), "pthread_create");
	burn((unsigned)scaled(argc, argv, 2000));
	if (strncmp(way, "thread_", 7))
		die(way);
	must(!pthread_create(&thread, NULL, die_in_thread, way + 7), "pthread_create");
	for (;;)
		burn(1);
}
