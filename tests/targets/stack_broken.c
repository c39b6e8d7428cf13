/* SPDX-License-Identifier: Apache-2.0 */
/* stack_broken: overwrites the return address of a frame, then sleeps below it. With an argument:
   the first thread ends, a second sleeps. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int sink;

__attribute__((noinline)) static void sleep_here(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

/* Built with frame pointers: the return address lies above the saved one. */
__attribute__((noinline)) static void broken(void)
{
	void *volatile *frame = __builtin_frame_address(0);
	frame[1] = (void *)0x1234;
	sleep_here();
	sink = 1;
}

static void *alone(void *unused)
{
	usleep(100000);
	sleep_here();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	(void)argv;
	alarm(300);
	if (argc > 1 && !pthread_create(&thread, NULL, alone, NULL))
		pthread_exit(NULL);
	broken();
	sink = 2;
	return 0;
}
