/* SPDX-License-Identifier: Apache-2.0 */
/* born N: N times four threads and a process on a stack of its own, which end soon. */
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

static volatile unsigned long sink;

static void *run(void *nothing)
{
	for (int i = 0; i < 20000; i++)
		sink += (unsigned long)i;
	return nothing;
}

static void start_process(void)
{
	char program[] = "/proc/self/exe", *argv[] = {program, NULL};
	pid_t pid;
	if (posix_spawn(&pid, program, NULL, NULL, argv, NULL))
		abort();
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
		pthread_t threads[4];
		for (int k = 0; k < 4; k++)
			if (pthread_create(&threads[k], NULL, run, NULL))
				abort();
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
		start_process();
	}
	return 0;
}
