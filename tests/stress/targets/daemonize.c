/* SPDX-License-Identifier: Apache-2.0 */
/* Becomes a daemon, which works on for a second after the command has ended; its result is in
   daemon.out. */
#include "stress.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(unsigned units)
{
	int fd = open("daemon.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	must(fd >= 0, "daemon.tmp");
	for (int i = 0; i < 10; i++) {
		dprintf(fd, "%llx\n", (unsigned long long)burn(units));
		usleep(100000);
	}
	close(fd);
	must(!rename("daemon.tmp", "daemon.out"), "rename");
}

int main(int argc, char **argv)
{
	unsigned units = (unsigned)scaled(argc, argv, 300);
	int status;
	pid_t pid;
	burn(units * 10);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork())
			_exit(0);
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		for (int fd = 0; fd < 3; fd++)
			must(open("/dev/null", O_RDWR) == fd, "open");
		serve(units);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("started %d\n", status);
	return 0;
}
