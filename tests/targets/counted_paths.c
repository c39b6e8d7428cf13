/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function that does nothing, in many ways, and tells in a shared file how often: counted_paths FILE WAY [NUMBER]. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define THREADS 64
#define CALLS 20000

extern char **environ;

/* Room for a jump. */
void counted(void);
__asm__(".text\n.globl counted\n.type counted, @function\n"
	"counted: .fill 16, 1, 0x90\nret\n.size counted, . - counted\n");

static _Atomic long *told;
static char *self, *file;

static void call(long times)
{
	for (long i = 0; i < times; i++) {
		counted();
		atomic_fetch_add(told, 1);
	}
}

static void check(int good)
{
	if (!good)
		_exit(42);
}

/* ---- threads ---- */

static pthread_key_t key;

static void at_thread_end(void *value)
{
	if ((long)value < 3) {
		pthread_setspecific(key, (void *)((long)value + 1));
		call(7);
	}
}

static void *work(void *argument)
{
	pthread_setspecific(key, (void *)1);
	call((long)argument);
	if ((long)argument % 2)
		pthread_exit(NULL);
	return NULL;
}

static int work_c11(void *argument)
{
	call((long)argument);
	return 0;
}

static void together(void)
{
	pthread_t all[THREADS];
	for (int i = 0; i < THREADS; i++)
		check(!pthread_create(&all[i], NULL, work, (void *)(long)(CALLS + i)));
	for (int i = 0; i < THREADS; i++)
		check(!pthread_join(all[i], NULL));
}

static void one_after_the_other(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;
		thrd_t c11;
		check(!pthread_create(&thread, NULL, work, (void *)(i % 10)));
		check(thrd_create(&c11, work_c11, (void *)5) == thrd_success);
		check(!pthread_join(thread, NULL));
		check(thrd_join(c11, NULL) == thrd_success);
	}
}

static void detached(void)
{
	static const sigset_t none;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 128 << 10);
	pthread_attr_setsigmask_np(&attributes, &none);
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;
		while (pthread_create(&thread, &attributes, work, (void *)9))
			usleep(1000);
	}
	long wanted = 1000 * (9 + 3 * 7 - 7);
	for (int i = 0; i < 20000 && atomic_load(told) < wanted; i++)
		usleep(1000);
	usleep(50000);
}

static _Atomic int standing;
static void *stand(void *go)
{
	call(3);
	atomic_fetch_add(&standing, 1);
	while (!atomic_load((_Atomic int *)go))
		usleep(20000);
	call(3);
	return NULL;
}

static void many_at_once(long count)
{
	static _Atomic int go;
	pthread_t *all = calloc((size_t)count, sizeof *all);
	for (long i = 0; i < count; i++)
		check(!pthread_create(&all[i], NULL, stand, &go));
	while (atomic_load(&standing) < count)
		usleep(1000);
	go = 1;
	for (long i = 0; i < count; i++)
		check(!pthread_join(all[i], NULL));
}

static void *end_all(void *argument)
{
	call((long)argument);
	exit(0);
}

/* ---- processes ---- */

static void wait_for(pid_t pid)
{
	int status;
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void fork_often(long count)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = i % 5 ? fork() : _Fork();
		call(50);
		if (!pid) {
			if (i % 5 == 1)
				one_after_the_other(2);
			_exit(0);
		}
		wait_for(pid);
	}
}

/* All at once, from several threads, and their children fork again. */
static void *storm(void *argument)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (!pid) {
			pid_t below = fork();
			call(200);
			if (below)
				wait_for(below);
			_exit(0);
		}
		call(200);
		wait_for(pid);
	}
	return argument;
}

static void storms(void)
{
	pthread_t all[8];
	for (int i = 0; i < 8; i++)
		check(!pthread_create(&all[i], NULL, storm, NULL));
	for (int i = 0; i < 8; i++)
		check(!pthread_join(all[i], NULL));
}

static void execute(const char *way, const char *number)
{
	execl(self, self, file, way, number, NULL);
	_exit(43);
}

static void spawn_others(void)
{
	char *const arguments[] = {self, file, (char *)"one", (char *)"11", NULL};
	pid_t pid;
	for (int i = 0; i < 5; i++) {
		check(!posix_spawn(&pid, self, NULL, NULL, arguments, environ));
		wait_for(pid);
		pid = vfork();
		if (!pid) {
			call(3);
			execl(self, self, file, "one", "13", NULL);
			_exit(43);
		}
		wait_for(pid);
		pid = vfork();
		if (!pid) {
			call(3);
			_exit(0);
		}
		wait_for(pid);
		call(2);
	}
	check(!system("exit 0"));
}

/* ---- signals ---- */

static void on_signal(int number)
{
	int saved = errno;
	(void)number;
	call(1);
	errno = saved;
}

/* Everywhere, also while threads and processes begin. */
static void under_signals(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	one_after_the_other(300);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork(), got;
		if (!pid) {
			call(100);
			_exit(0);
		}
		do
			got = waitpid(pid, NULL, 0);
		while (got < 0 && errno == EINTR);
	}
	setitimer(ITIMER_REAL, &never, NULL);
}

static void go(const char *way, long number)
{
	pthread_t thread;
	if (!strcmp(way, "one"))
		call(number);
	else if (!strcmp(way, "together"))
		together();
	else if (!strcmp(way, "short"))
		one_after_the_other(number);
	else if (!strcmp(way, "detached"))
		detached();
	else if (!strcmp(way, "locked"))
		check(!mlockall(MCL_CURRENT | MCL_FUTURE) || errno == EPERM || errno == ENOMEM),
			one_after_the_other(number);
	else if (!strcmp(way, "many"))
		many_at_once(number);
	else if (!strcmp(way, "exit"))
		check(!pthread_create(&thread, NULL, end_all, (void *)number) && pause());
	else if (!strcmp(way, "fork"))
		fork_often(number);
	else if (!strcmp(way, "storm"))
		storms();
	else if (!strcmp(way, "exec"))
		call(number), execute("one", "17");
	else if (!strcmp(way, "exec-thread"))
		check(!pthread_create(&thread, NULL, end_all, (void *)1) && pause());
	else if (!strcmp(way, "spawn"))
		spawn_others();
	else if (!strcmp(way, "signals"))
		under_signals();
	else if (!strcmp(way, "outlive")) {
		if (!fork()) {
			call(number);
			sleep(3);
			_exit(0);
		}
		while (atomic_load(told) < number)
			usleep(1000);
	} else if (!strcmp(way, "endless"))
		for (;;)
			call(number);
	else
		check(0);
}

int main(int argc, char **argv)
{
	check(argc >= 3);
	for (int fd = 3; fd < 64; fd++)
		check(fcntl(fd, F_GETFD) < 0);
	self = argv[0];
	file = argv[1];
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	check(fd >= 0 && !ftruncate(fd, 4096));
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	pthread_key_create(&key, at_thread_end);
	go(argv[2], argc > 3 ? strtol(argv[3], NULL, 10) : 0);
	return 0;
}
