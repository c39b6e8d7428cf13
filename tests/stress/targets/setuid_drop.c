/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up root, with threads running, and goes on; one child in an empty root folder. */
#include "stress.h"
#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int stop;

static void *spin(void *unused)
{
	while (!atomic_load(&stop))
		burn(1);
	return unused;
}

static void *work(void *units)
{
	return (void *)(uintptr_t)(burn((unsigned)(uintptr_t)units) & 0xffff);
}

static void threads(const char *when)
{
	pthread_t thread[4];
	void *result;
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)100),
		     "pthread_create");
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &result);
		printf("%s: %lu as %d:%d\n", when, (unsigned long)result, getuid(), getgid());
	}
	fflush(stdout);
}

static int in_child(void (*body)(void))
{
	int status;
	pid_t pid;
	fflush(stdout);
	pid = fork();

	if (pid == 0) {
		body();
		exit(7);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void jailed(void)
{
	char folder[] = "jail-XXXXXX";
	must(mkdtemp(folder) && !chroot(folder) && !chdir("/"), "chroot");
	must(!setgid(65534) && !setuid(65534), "setuid");
	threads("jailed");
}

static void plain(void)
{
	threads("child");
}

static void start(void)
{
	execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; exit 9",
	      (char *)NULL);
}

static void undumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	threads("undumpable");
}

int main(int argc, char **argv)
{
	pthread_t spinner;
	int rounds = scaled(argc, argv, 4);
	for (int i = 0; i < rounds; i++) {
		printf("jailed: %d\n", in_child(jailed));
		printf("undumpable: %d\n", in_child(undumpable));
	}
	must(!pthread_create(&spinner, NULL, spin, NULL), "pthread_create");
	must(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "setuid");
	expect(setuid(0) == -1, "root is gone");
	for (int i = 0; i < rounds; i++) {
		threads("dropped");
		printf("child: %d\n", in_child(plain));
		printf("program: %d\n", in_child(start));
	}
	atomic_store(&stop, 1);
	pthread_join(spinner, NULL);
	return expect_failed;
}
