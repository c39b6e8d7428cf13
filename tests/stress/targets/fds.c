/* SPDX-License-Identifier: Apache-2.0 */
/* Closes all descriptors, counts on the numbers of new ones, in main, in threads, after fork and
   exec. */
#include "stress.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 3; /* ".", ".." and the folder itself */
}

static void numbers(const char *where)
{
	int fd[4];
	burn(20);
	for (int i = 0; i < 4; i++)
		fd[i] = open("/dev/null", O_RDWR);
	printf("%s: %d %d %d %d of %d\n", where, fd[0], fd[1], fd[2], fd[3], count_open());
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	fflush(stdout);
}

static void *in_thread(void *unused)
{
	for (int fd = 3; fd < 1000; fd++)
		close(fd);
	numbers("thread");
	return unused;
}

static void in_child(const char *name)
{
	pid_t pid = fork();
	if (pid == 0) {
		numbers(name);
		syscall(SYS_close_range, 3u, ~0u, 0u);
		burn(20);
		numbers(name);
		exit(4);
	}
	int status = 0;

	waitpid(pid, &status, 0);
	printf("%s ended %d\n", name, status);
}

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 20);
	pthread_t thread;
	printf("at start %d open\n", count_open());
	numbers("main");
	if (argc > 2)
		return 6; /* the program that was started anew */
	for (int i = 0; i < rounds; i++) {
		must(!pthread_create(&thread, NULL, in_thread, NULL), "pthread_create");
		pthread_join(thread, NULL);
		in_child("child");
		syscall(SYS_close_range, 3u, ~0u, 0u);
		closefrom(3);
		for (int fd = 3; fd < 40; fd++)
			must(dup2(1, fd) == fd, "dup2");
		burn(20);
		for (int fd = 3; fd < 40; fd++)
			if (close(fd))
				printf("descriptor %d was closed by somebody\n", fd);
		printf("at end %d open\n", count_open());
		fflush(stdout);
	}
	execl("/proc/self/exe", "fds", "100", "again", (char *)NULL);
	return 99;
}
