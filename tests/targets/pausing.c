/* SPDX-License-Identifier: Apache-2.0 */
/* pausing: functions that wait for one kind of thing each, for about 100 ms; one that waits in a way that no function of
   the C library does, and threads that still wait when the process ends. Prints each function, how long it waited, in
   ns, and for what. With an argument, it is killed by a signal instead of ending itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define LONG 100000 /* us */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int pipes[2], sockets[2], event, futex_word;
static sigjmp_buf back;
static volatile long sum;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A system call that no wrapper sees. */
static void nap_unseen(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
#ifdef __aarch64__
	register long number __asm__("x8") = SYS_nanosleep;
	register long a __asm__("x0") = (long)&t, b __asm__("x1") = 0;
	__asm__ volatile("svc 0" : "+r"(a) : "r"(number), "r"(b) : "memory");
#else
	long number = SYS_nanosleep;
	__asm__ volatile("syscall" : "+a"(number) : "D"(&t), "S"(0L) : "rcx", "r11", "memory");
#endif
}

static void *helper(void *what)
{
	char byte = 1;
	uint64_t one = 1;
	pthread_mutex_lock(&mutex);
	usleep(LONG);
	pthread_mutex_unlock(&mutex);
	usleep(LONG);
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
	usleep(LONG);
	sem_post(&semaphore);
	usleep(LONG);
	if (write(pipes[1], &byte, 1) != 1)
		exit(2);
	usleep(LONG);
	if (send(sockets[1], &byte, 1, 0) != 1)
		exit(2);
	usleep(LONG);
	if (write(event, &one, sizeof one) != sizeof one)
		exit(2);
	usleep(LONG);
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
	usleep(LONG);
	return what;
}

NOINLINE void lock(void)
{
	pthread_mutex_lock(&mutex);
	sum++;
}

NOINLINE void wait_condition(void)
{
	pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
}

NOINLINE void wait_semaphore(void)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	if (sem_timedwait(&semaphore, &until))
		exit(2);
	sum++;
}

NOINLINE void read_pipe(void)
{
	char byte;
	if (read(pipes[0], &byte, 1) != 1)
		exit(2);
	sum++;
}

NOINLINE void receive(void)
{
	char byte;
	if (recv(sockets[0], &byte, 1, 0) != 1)
		exit(2);
	sum++;
}

NOINLINE void read_event(void)
{
	uint64_t value;
	if (read(event, &value, sizeof value) != sizeof value)
		exit(2);
	sum++;
}

NOINLINE void wait_futex(void)
{
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
	sum++;
}

static pthread_t thread;

NOINLINE void join(void)
{
	pthread_join(thread, NULL);
	sum++;
}

NOINLINE void wait_child(void)
{
	pid_t child = fork();
	if (!child) {
		nap_unseen(LONG);
		_exit(0);
	}
	while (waitpid(child, NULL, 0) != child)
		;
	sum++;
}

NOINLINE void poll_nothing(void)
{
	poll(NULL, 0, LONG / 1000);
	sum++;
}

NOINLINE void nap(void)
{
	usleep(LONG);
	sum++;
}

static void jump(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* The wait that is left by a jump is in none that has ended; the one after it counts. */
NOINLINE void nap_after_jump(void)
{
	const struct itimerval soon = {.it_value = {0, 5000}};
	signal(SIGALRM, jump);
	if (!sigsetjmp(back, 1)) {
		setitimer(ITIMER_REAL, &soon, NULL);
		usleep(10 * LONG);
	}
	nap();
}

NOINLINE void nap_hidden(void)
{
	nap_unseen(LONG);
	sum++;
}

NOINLINE void compute(void)
{
	for (uint64_t end = now() + LONG * 1000ul; now() < end;)
		sum++;
}

NOINLINE void *wait_for_ever(void *unused)
{
	pause();
	sum++;
	return unused;
}

static void run(const char *name, const char *what, void (*f)(void))
{
	uint64_t start = now();
	f();
	printf("%s %llu %s\n", name, (unsigned long long)(now() - start), what);
}

int main(int argc, char **argv)
{
	pthread_t idle;
	uint64_t start = now();
	(void)argv;
	sem_init(&semaphore, 0, 0);
	event = eventfd(0, 0);
	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || event < 0)
		return 2;
	pthread_create(&idle, NULL, wait_for_ever, NULL);
	pthread_create(&thread, NULL, helper, NULL);
	usleep(LONG / 10);
	run("lock", "lock", lock);
	run("wait_condition", "condition", wait_condition);
	run("wait_semaphore", "semaphore", wait_semaphore);
	run("read_pipe", "pipe", read_pipe);
	run("receive", "socket", receive);
	run("read_event", "event", read_event);
	run("wait_futex", "futex", wait_futex);
	run("join", "end-of-a-thread", join);
	run("wait_child", "child-process", wait_child);
	run("poll_nothing", "poll", poll_nothing);
	run("nap_after_jump", "sleep", nap_after_jump);
	run("nap_hidden", "-", nap_hidden);
	run("compute", "-", compute);
	printf("wait_for_ever %llu signal\n", (unsigned long long)(now() - start));
	fflush(stdout);
	if (argc > 1)
		kill(getpid(), SIGKILL);
	return 0;
}
