/* SPDX-License-Identifier: Apache-2.0 */
/* rlimits SCALE NAME VALUE: starts itself again with a limit, and computes under it in threads and a
   child. */
#include "stress.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	int resource;
} limits[] = {
	{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},     {"as", RLIMIT_AS},
	{"data", RLIMIT_DATA},     {"stack", RLIMIT_STACK},     {"fsize", RLIMIT_FSIZE},
	{"cpu", RLIMIT_CPU},       {"memlock", RLIMIT_MEMLOCK}, {"sigpending", RLIMIT_SIGPENDING}};

static void *work(void *units)
{
	return (void *)(uintptr_t)(burn((unsigned)(uintptr_t)units) & 0xffff);
}

static int compute(unsigned units)
{
	pthread_t thread[3];
	pthread_attr_t attr;
	uintptr_t sum = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (int i = 0; i < 3; i++)
		must(!pthread_create(&thread[i], &attr, work, (void *)(uintptr_t)units),
		     "pthread_create");
	for (int i = 0; i < 3; i++) {
		void *result;
		pthread_join(thread[i], &result);
		sum += (uintptr_t)result;
	}
	printf("sum %lu\n", (unsigned long)sum);
	fflush(stdout);
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		burn(units);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void set(const char *name, rlim_t value)
{
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (!strcmp(limits[i].name, name)) {
			struct rlimit limit = {value, value};
			if (limits[i].resource == RLIMIT_CPU)
				limit.rlim_max++;
			must(!setrlimit((__rlimit_resource_t)limits[i].resource, &limit),
			     "setrlimit");
		}
}

int main(int argc, char **argv)
{
	unsigned units = (unsigned)scaled(argc, argv, 1500);
	struct rlimit limit;
	if (argc > 4) { /* the one that is limited */
		getrlimit(RLIMIT_NOFILE, &limit);
		if (!strcmp(argv[2], "nofile"))
			printf("limit %lu\n", (unsigned long)limit.rlim_cur);
		if (!strcmp(argv[2], "cpu"))
			for (;;)
				burn(1);
		return compute(units);
	}
	if (argc < 4)
		return 98;
	if (!strcmp(argv[2], "mlockall")) {
		must(!mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
		return compute(units);
	}
	set(argv[2], (rlim_t)atoll(argv[3]));
	execl("/proc/self/exe", "rlimits", argv[1], argv[2], argv[3], "limited", (char *)NULL);
	return 99;
}
