/* SPDX-License-Identifier: Apache-2.0 */
/* passing COUNT: so many threads, one after the other, with a pause between. Prints by how many the signals that are
   queued, or for which there is room, have become more: a timer has room for one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *work(void *unused)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_nsec < 5000000);
	return unused;
}

static int queued(void)
{
	char line[256];
	int count = -1;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "SigQ: %d", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

int main(int argc, char **argv)
{
	int before = queued();
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i; i--) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
		pthread_join(thread, NULL);
		usleep(120000);
	}
	printf("%d\n", queued() - before);
	return 0;
}
