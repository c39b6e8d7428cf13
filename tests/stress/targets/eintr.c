/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that sleep, each right after CPU work, so that a sample can come just before it sleeps: no
   call may end early or with EINTR, since this program sends itself no signals but where it says. */
#include "stress.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum { SLEEP_NS = 1000000 };

static const struct timespec nap = {0, SLEEP_NS};
static int pipes[2], epoll_fd, sockets[2], listener, queue_id, semaphore_id;
static mqd_t queue;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static struct timespec later(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += SLEEP_NS;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

/* Each returns 0 where the call ended as it should: after the time. */
static int try_nanosleep(void)
{
	return nanosleep(&nap, NULL);
}
static int try_clock_nanosleep(void)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}
static int try_absolute(void)
{
	struct timespec until = later();
	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}
static int try_usleep(void)
{
	return usleep(SLEEP_NS / 1000);
}
static int try_thrd_sleep(void)
{
	return thrd_sleep(&nap, NULL);
}
static int try_poll(void)
{
	struct pollfd fd = {pipes[0], POLLIN, 0};
	return poll(&fd, 1, SLEEP_NS / 1000000);
}
static int try_ppoll(void)
{
	struct pollfd fd = {pipes[0], POLLIN, 0};
	return ppoll(&fd, 1, &nap, NULL);
}
static int try_select(void)
{
	struct timeval limit = {0, SLEEP_NS / 1000};
	return select(0, NULL, NULL, NULL, &limit);
}
static int try_pselect(void)
{
	sigset_t none;
	sigemptyset(&none);
	return pselect(0, NULL, NULL, NULL, &nap, &none);
}
static int try_epoll_wait(void)
{
	struct epoll_event event;
	return epoll_wait(epoll_fd, &event, 1, SLEEP_NS / 1000000);
}
static int try_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t none;
	sigemptyset(&none);
	return epoll_pwait(epoll_fd, &event, 1, SLEEP_NS / 1000000, &none);
}
static int try_sem_timedwait(void)
{
	struct timespec until = later();
	return sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT ? 0 : -1;
}
static int try_cond(void)
{
	struct timespec until = later();
	int result;
	pthread_mutex_lock(&mutex);
	result = pthread_cond_timedwait(&condition, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	return result == ETIMEDOUT ? 0 : -1;
}
static int try_sigtimedwait(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &nap) == -1 && errno == EAGAIN ? 0 : -1;
}
static int try_semtimedop(void)
{
	struct sembuf down = {0, -1, 0};
	return semtimedop(semaphore_id, &down, 1, &nap) == -1 && errno == EAGAIN ? 0 : -1;
}
static int try_recv(void)
{
	char byte;
	return recv(sockets[0], &byte, 1, 0) == -1 && errno == EAGAIN ? 0 : -1;
}
static int try_accept(void)
{
	return accept(listener, NULL, NULL) == -1 && errno == EAGAIN ? 0 : -1;
}
static int try_futex(void)
{
	int word = 1;
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &nap, NULL, 0) == -1 &&
			       errno == ETIMEDOUT
		       ? 0
		       : -1;
}
static int try_mq(void)
{
	struct timespec until = later();
	char text[64];
	return mq_timedreceive(queue, text, sizeof text, NULL, &until) == -1 && errno == ETIMEDOUT
		       ? 0
		       : -1;
}

/* These wait for a child that acts after a nap. */
static pid_t child_that(void (*act)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		struct timespec longer = {0, SLEEP_NS + SLEEP_NS / 2};
		while (nanosleep(&longer, &longer))
			;
		act();
		_exit(0);
	}
	return pid;
}
static int reap(pid_t pid, int result)
{
	int saved = errno;
	if (TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0)) != pid)
		result = -1;
	errno = saved;
	return result;
}
static void act_nothing(void)
{
}
static void act_write(void)
{
	if (write(pipes[1], "x", 1) != 1)
		_exit(1);
}
static void act_message(void)
{
	struct msgbuf message = {1, "x"};
	msgsnd(queue_id, &message, 1, 0);
}
static void act_semop(void)
{
	struct sembuf up = {0, 1, 0};
	semop(semaphore_id, &up, 1);
}
static int try_waitpid(void)
{
	pid_t pid = child_that(act_nothing);
	return waitpid(pid, NULL, 0) == pid ? 0 : reap(pid, -1);
}
static int try_read(void)
{
	pid_t pid = child_that(act_write);
	char byte;
	return reap(pid, read(pipes[0], &byte, 1) == 1 ? 0 : -1);
}
static int try_msgrcv(void)
{
	pid_t pid = child_that(act_message);
	struct msgbuf message;
	return reap(pid, msgrcv(queue_id, &message, 1, 0, 0) == 1 ? 0 : -1);
}
static int try_semop(void)
{
	pid_t pid = child_that(act_semop);
	struct sembuf down = {0, -1, 0};
	return reap(pid, semop(semaphore_id, &down, 1) == 0 ? 0 : -1);
}

/* Signals of its own must still interrupt. */
static volatile int alarms;
static void count_alarm(int signal)
{
	(void)signal;
	alarms++;
}
static void set_alarm(bool again)
{
	struct itimerval soon = {.it_value = {.tv_usec = 1500},
				 .it_interval = {.tv_usec = again ? 1500 : 0}};
	setitimer(ITIMER_REAL, &soon, NULL);
}
static int try_sigsuspend(void)
{
	sigset_t block, open;
	int before = alarms;
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	sigprocmask(SIG_BLOCK, &block, &open);
	set_alarm(false);
	int result = sigsuspend(&open) == -1 && errno == EINTR && alarms == before + 1 ? 0 : -1;

	sigprocmask(SIG_SETMASK, &open, NULL);
	return result;
}
static int try_flock(void)
{
	int before = alarms, fd = open("eintr.lock", O_RDWR | O_CREAT, 0600);
	struct sigaction action = {.sa_handler = count_alarm};
	struct itimerval none = {0};
	sigaction(SIGALRM, &action, NULL); /* without SA_RESTART */
	set_alarm(true);                   /* the first may come before the call does */
	int result = flock(fd, LOCK_EX) == -1 && errno == EINTR && alarms > before ? 0 : -1;

	setitimer(ITIMER_REAL, &none, NULL);

	close(fd);
	return result;
}

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
	{"nanosleep", try_nanosleep},
	{"clock_nanosleep", try_clock_nanosleep},
	{"clock_nanosleep absolute", try_absolute},
	{"usleep", try_usleep},
	{"thrd_sleep", try_thrd_sleep},
	{"poll", try_poll},
	{"ppoll", try_ppoll},
	{"select", try_select},
	{"pselect", try_pselect},
	{"epoll_wait", try_epoll_wait},
	{"epoll_pwait", try_epoll_pwait},
	{"sem_timedwait", try_sem_timedwait},
	{"pthread_cond_timedwait", try_cond},
	{"sigtimedwait", try_sigtimedwait},
	{"semtimedop", try_semtimedop},
	{"recv", try_recv},
	{"accept", try_accept},
	{"futex", try_futex},
	{"mq_timedreceive", try_mq},
	{"waitpid", try_waitpid},
	{"read", try_read},
	{"msgrcv", try_msgrcv},
	{"semop", try_semop},
	{"sigsuspend", try_sigsuspend},
	{"flock", try_flock},
};

static void prepare(void)
{
	struct timeval limit = {0, SLEEP_NS / 1000};
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 64};
	struct epoll_event event = {.events = EPOLLIN};
	char name[64];
	must(!pipe(pipes), "pipe");
	epoll_fd = epoll_create1(0);
	must(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipes[0], &event), "epoll_ctl");
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 1),
	     "listen");
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	must(!sem_init(&semaphore, 0, 0), "sem_init");
	queue_id = msgget(IPC_PRIVATE, 0600);
	semaphore_id = semget(IPC_PRIVATE, 1, 0600);
	must(queue_id >= 0 && semaphore_id >= 0, "ipc");
	snprintf(name, sizeof name, "/culprit-stress-%d", getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	mq_unlink(name);
	signal(SIGALRM, count_alarm);
}

static void try(const char *name, int (*call)(void), int rounds)
{
	int interrupted = 0, failed = 0, early = 0, late = 0;
	for (int i = 0; i < rounds; i++) {
		volatile uint64_t work = 0;
		/* another length each time: the sample should hit every instruction of the call */
		for (int j = 0; j < 40000 + i * 997 % 20000; j++)
			work += (uint64_t)j;
		int64_t start = now_ns(CLOCK_MONOTONIC);
		int result = call();
		int64_t took = now_ns(CLOCK_MONOTONIC) - start;

		if (result) {
			interrupted += errno == EINTR || result == EINTR;
			failed++;
		}
		early += took < SLEEP_NS - 100000; /* clocks of different grain */
		late += took > SLEEP_NS + 100000000;
	}
	printf("%s: %d failed (%d interrupted), %d early, %s\n", name, failed, interrupted, early,
	       late > rounds / 4 ? "LATE" : "in time");
}

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 100), lock = open("eintr.lock", O_RDWR | O_CREAT, 0600);
	prepare();
	flock(lock, LOCK_EX);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (calls[i].call == try_mq && queue == (mqd_t)-1) {
			printf("no message queues here\n");
			continue;
		}
		try(calls[i].name, calls[i].call, rounds);
		fflush(stdout);
	}
	msgctl(queue_id, IPC_RMID, NULL);
	semctl(semaphore_id, 0, IPC_RMID);
	unlink("eintr.lock");
	return 0;
}
