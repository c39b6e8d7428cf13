/* SPDX-License-Identifier: Apache-2.0 */
/* waiting CALL [SECONDS]: waits in a system call for 2 seconds, or as many. Says "CALL ok", or what is wrong: an error, too short, too long. For
   a call that ends with EINTR whenever its process is stopped, the time may begin anew. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int seconds = 2;

static int ends[2]; /* of a pipe that gets four bytes after this time */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_signal(int signal)
{
	(void)signal;
}

static bool in_read(void)
{
	char bytes[8];
	return read(ends[0], bytes, sizeof bytes) == 4;
}

static bool in_nanosleep(void)
{
	return nanosleep(&(struct timespec){seconds, 0}, NULL) == 0;
}

static bool in_until(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += seconds;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == 0;
}

static bool in_poll(void)
{
	return poll(NULL, 0, seconds * 1000) == 0;
}

static bool in_pollfd(void)
{
	return poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, -1) == 1;
}

static bool in_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){seconds, 0}) == 0;
}

static bool in_epoll(void)
{
	int set = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	return !epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) &&
	       epoll_wait(set, &event, 1, -1) == 1;
}

static bool in_futex(void)
{
	int word = 0;
	struct timespec t = {seconds, 0};
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0) == -1 && errno == ETIMEDOUT;
}

static bool in_semaphore(void)
{
	sem_t s;
	struct timespec t;
	sem_init(&s, 0, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += seconds;
	return sem_timedwait(&s, &t) == -1 && errno == ETIMEDOUT;
}

static bool in_wait(void)
{
	return wait(NULL) > 0;
}

static bool in_pause(void) /* EINTR is right here: the child ends */
{
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGCHLD, &action, NULL);
	return pause() == -1 && errno == EINTR;
}

static bool in_suspend(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t child, none;
	sigemptyset(&none);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	return sigsuspend(&none) == -1 && errno == EINTR;
}

static bool in_epoll_timed(void)
{
	struct epoll_event event;
	return epoll_wait(epoll_create1(0), &event, 1, seconds * 1000) == 0;
}

static bool in_receive_timed(void)
{
	int both[2];
	char byte;
	struct timeval limit = {seconds, 0};
	socketpair(AF_UNIX, SOCK_STREAM, 0, both);
	setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return recv(both[0], &byte, 1, 0) == -1 && errno == EAGAIN;
}

static const struct {
	const char *name;
	bool (*wait)(void);
	bool anew;
} calls[] = {
	{"read", in_read, false},
	{"nanosleep", in_nanosleep, false},
	{"until", in_until, false},
	{"poll", in_poll, false},
	{"pollfd", in_pollfd, false},
	{"select", in_select, false},
	{"epoll", in_epoll, false},
	{"futex", in_futex, false},
	{"semaphore", in_semaphore, false},
	{"wait", in_wait, false},
	{"pause", in_pause, false},
	{"suspend", in_suspend, false},
	{"epoll-timed", in_epoll_timed, true},
	{"receive-timed", in_receive_timed, true},
};

static void write_later(void)
{
	close(ends[0]);
	nanosleep(&(struct timespec){seconds, 0}, NULL);
	if (write(ends[1], "late", 4) != 4)
		_exit(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		seconds = atoi(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof calls / sizeof *calls; i++) {
		if (strcmp(argv[1], calls[i].name))
			continue;
		if (pipe(ends))
			return 2;
		double start = now();
		if (!fork())
			write_later();
		errno = 0;
		bool right = calls[i].wait();
		int error = errno;
		double took = now() - start;
		bool timely = took > seconds - 0.1 && (calls[i].anew || took < seconds + 1);
		if (right && timely)
			printf("%s ok\n", argv[1]);
		else
			printf("%s: errno %d, took %.3f s\n", argv[1], error, took);
		return right && timely ? 0 : 1;
	}
	return 2;
}
