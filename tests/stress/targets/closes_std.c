/* SPDX-License-Identifier: Apache-2.0 */
/* Closes standard input, output and error, and goes on; the exit status says what it found. */
#include "stress.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused)
{
	burn(100);
	return unused;
}

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 30), status, good = 0;
	printf("closing\n");
	fflush(stdout);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int i = 0; i < rounds; i++) {
		pthread_t thread;
		good += open("/dev/null", O_RDWR) == 0;
		must(!pthread_create(&thread, NULL, work, NULL), "pthread_create");
		good += open("/dev/null", O_RDWR) == 1;
		pthread_join(thread, NULL);
		pid_t pid = fork();

		if (pid == 0) {
			burn(50);
			if (i % 2)
				_exit(open("/dev/null", O_RDWR) == 2 ? 5 : 6);
			close(0);
			close(1);
			execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		}
		waitpid(pid, &status, 0);
		good += WEXITSTATUS(status) == 5;
		close(0);
		close(1);
	}
	return good == 3 * rounds ? 21 : 22;
}
