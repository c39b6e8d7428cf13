/* SPDX-License-Identifier: Apache-2.0 */
/* path_threads [once|abort]: step() is called 8 * 100 000 times by threads, 3 * 1000 times by forked processes, and once in a program that
   is executed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int fives, odd, even; /* so that there are branches */
__attribute__((noinline, noclone, noipa)) int step(int n)
{
	if (n % 5 == 0) {
		fives++;
		return 1;
	}
	if (n % 2) {
		odd++;
		return 2;
	}
	even++;
	return 3;
}
static void *work(void *unused)
{
	volatile int sum = 0;
	(void)unused;
	for (int i = 0; i < 100000; i++)
		sum += step(i);
	return NULL;
}
int main(int count, char **arguments)
{
	pthread_t threads[8];
	if (count > 1 && !strcmp(arguments[1], "once"))
		return step(5) != 1;
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (!child) {
			for (int k = 0; k < 1000; k++)
				step(k);
			if (i == 2)
				execl(arguments[0], arguments[0], "once", (char *)NULL);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	if (count > 1)
		abort();
	return 7;
}
