/* SPDX-License-Identifier: Apache-2.0 */
/* reasons ROUNDS: waits for one thing after the other, each in a function of its own. For each it prints the reason
   that culprit should give, the function, and how long it waited, in ns. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define WAIT_US 25000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore, ready;
static bool told;
static int futex_word;
static int ends[2], sockets[2], listener, terminal[2], event, timer, queue, pollset, locked, faults;
static struct sockaddr_in address;
static char *memory, lock_path[] = "reasons.lock", fifo_path[] = "reasons.fifo";
static size_t page;
static volatile unsigned long sum;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nap(void)
{
	const struct timespec t = {0, WAIT_US * 1000};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void must(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(2);
	}
}

/* ---- what the main thread waits for; the helper (below) ends each wait after a while ---- */

NOINLINE void wait_mutex(void)
{
	sem_wait(&ready); /* the helper has it */
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

NOINLINE void wait_rwlock(void)
{
	sem_wait(&ready);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

NOINLINE void wait_condition(void)
{
	pthread_mutex_lock(&mutex);
	while (!told)
		pthread_cond_wait(&condition, &mutex);
	told = false;
	pthread_mutex_unlock(&mutex);
}

NOINLINE void wait_semaphore(void)
{
	sem_wait(&semaphore);
}

NOINLINE void wait_barrier(void)
{
	pthread_barrier_wait(&barrier);
}

NOINLINE void wait_futex(void)
{
	syscall(SYS_futex, &futex_word, 0, 0, NULL, NULL, 0);
	sum++;
}

static pthread_t short_thread;
NOINLINE void wait_thread(void)
{
	pthread_join(short_thread, NULL);
}

NOINLINE void wait_sleep(void)
{
	nap();
	sum++;
}

NOINLINE void wait_timer(void)
{
	uint64_t count;
	const struct itimerspec in = {{0, 0}, {0, WAIT_US * 1000}};
	timerfd_settime(timer, 0, &in, NULL);
	must(read(timer, &count, sizeof count) > 0, "timerfd");
}

NOINLINE void wait_pipe(void)
{
	char byte;
	must(read(ends[0], &byte, 1) == 1, "pipe");
}

NOINLINE void wait_fifo(void)
{
	int fd = open(fifo_path, O_RDONLY);
	must(fd >= 0, "fifo");
	close(fd);
}

NOINLINE void wait_socket(void)
{
	char byte;
	must(recv(sockets[0], &byte, 1, 0) == 1, "socket");
}

NOINLINE void wait_accept(void)
{
	int fd = accept(listener, NULL, NULL);
	must(fd >= 0, "accept");
	close(fd);
}

NOINLINE void wait_poll(void)
{
	char byte;
	struct pollfd fd = {ends[0], POLLIN, 0};
	poll(&fd, 1, -1);
	must(read(ends[0], &byte, 1) == 1, "poll");
}

NOINLINE void wait_select(void)
{
	char byte;
	fd_set fds;
	FD_ZERO(&fds);
	FD_SET(ends[0], &fds);
	select(ends[0] + 1, &fds, NULL, NULL, NULL);
	must(read(ends[0], &byte, 1) == 1, "select");
}

NOINLINE void wait_epoll(void)
{
	char byte;
	struct epoll_event got;
	epoll_wait(pollset, &got, 1, -1);
	must(read(ends[0], &byte, 1) == 1, "epoll");
}

NOINLINE void wait_child(void)
{
	pid_t child = fork();
	if (!child) {
		nap();
		_exit(0);
	}
	must(waitpid(child, NULL, 0) == child, "child");
}

NOINLINE void wait_vfork(void)
{
	if (!vfork()) {
		nap();
		_exit(0);
	}
	sum++;
}

NOINLINE void wait_terminal(void)
{
	char line[8];
	must(read(terminal[1], line, sizeof line) > 0, "terminal");
}

NOINLINE void wait_signal(void)
{
	sigset_t set;
	int got;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &got);
}

NOINLINE void wait_event(void)
{
	uint64_t count;
	must(read(event, &count, sizeof count) > 0, "eventfd");
}

NOINLINE void wait_message(void)
{
	struct {
		long type;
		char text[1];
	} message;
	must(msgrcv(queue, &message, 1, 0, 0) >= 0, "message");
}

NOINLINE void wait_file_lock(void)
{
	sem_wait(&ready);
	flock(locked, LOCK_EX);
	flock(locked, LOCK_UN);
}

NOINLINE void wait_page(void)
{
	sum += (unsigned long)*(volatile char *)memory;
}

/* ---- the helper ---- */

static void hold_mutex(void)
{
	pthread_mutex_lock(&mutex);
	sem_post(&ready);
	nap();
	pthread_mutex_unlock(&mutex);
}

static void hold_rwlock(void)
{
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&ready);
	nap();
	pthread_rwlock_unlock(&rwlock);
}

static void tell_condition(void)
{
	nap();
	pthread_mutex_lock(&mutex);
	told = true;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
}

static void post_semaphore(void)
{
	nap();
	sem_post(&semaphore);
}

static void come_to_barrier(void)
{
	nap();
	pthread_barrier_wait(&barrier);
}

static void wake_futex(void)
{
	nap();
	syscall(SYS_futex, &futex_word, 1, 1, NULL, NULL, 0);
}

static void write_pipe(void)
{
	nap();
	must(write(ends[1], "", 1) == 1, "pipe");
}

static void open_fifo(void)
{
	nap();
	close(open(fifo_path, O_WRONLY));
}

static void write_socket(void)
{
	nap();
	must(write(sockets[1], "", 1) == 1, "socket");
}

static void connect_to(void)
{
	nap();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	must(!connect(fd, (struct sockaddr *)&address, sizeof address), "connect");
	close(fd);
}

static void write_terminal(void)
{
	nap();
	must(write(terminal[0], "x\n", 2) == 2, "terminal");
}

static pthread_t main_thread;
static void send_signal(void)
{
	nap();
	pthread_kill(main_thread, SIGUSR1);
}

static void write_event(void)
{
	const uint64_t one = 1;
	nap();
	must(write(event, &one, sizeof one) > 0, "eventfd");
}

static void send_message(void)
{
	const struct {
		long type;
		char text[1];
	} message = {1, "x"};
	nap();
	must(!msgsnd(queue, &message, 1, 0), "message");
}

static void hold_file(void)
{
	int fd = open(lock_path, O_RDWR);
	flock(fd, LOCK_EX);
	sem_post(&ready);
	nap();
	close(fd);
}

static void give_page(void)
{
	struct uffd_msg message;
	must(read(faults, &message, sizeof message) == sizeof message, "userfaultfd");
	nap();
	struct uffdio_zeropage zero = {.range = {(uintptr_t)memory, page}};
	must(!ioctl(faults, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
}

static void *nap_once(void *unused)
{
	nap();
	return unused;
}

static void start_thread(void)
{
}

struct phase {
	const char *reason, *name;
	void (*wait)(void), (*help)(void);
};

static const struct phase phases[] = {
	{"lock", "wait_mutex", wait_mutex, hold_mutex},
	{"lock", "wait_rwlock", wait_rwlock, hold_rwlock},
	{"condition", "wait_condition", wait_condition, tell_condition},
	{"semaphore", "wait_semaphore", wait_semaphore, post_semaphore},
	{"barrier", "wait_barrier", wait_barrier, come_to_barrier},
	{"futex", "wait_futex", wait_futex, wake_futex},
	{"end of a thread", "wait_thread", wait_thread, start_thread},
	{"sleep", "wait_sleep", wait_sleep, NULL},
	{"sleep", "wait_timer", wait_timer, NULL},
	{"pipe", "wait_pipe", wait_pipe, write_pipe},
	{"pipe", "wait_fifo", wait_fifo, open_fifo},
	{"socket", "wait_socket", wait_socket, write_socket},
	{"socket", "wait_accept", wait_accept, connect_to},
	{"poll", "wait_poll", wait_poll, write_pipe},
	{"poll", "wait_select", wait_select, write_pipe},
	{"poll", "wait_epoll", wait_epoll, write_pipe},
	{"child process", "wait_child", wait_child, NULL},
	{"child process", "wait_vfork", wait_vfork, NULL},
	{"terminal", "wait_terminal", wait_terminal, write_terminal},
	{"signal", "wait_signal", wait_signal, send_signal},
	{"event", "wait_event", wait_event, write_event},
	{"message", "wait_message", wait_message, send_message},
	{"file lock", "wait_file_lock", wait_file_lock, hold_file},
	{"page fault", "wait_page", wait_page, give_page},
};

static void *help(void *phase)
{
	((const struct phase *)phase)->help();
	return NULL;
}

/* Memory whose pages the helper gives. Not every kernel allows it. */
static bool open_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		return false;
	memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {{(uintptr_t)memory, page}, UFFDIO_REGISTER_MODE_MISSING, 0};
	return memory != MAP_FAILED && !ioctl(faults, UFFDIO_REGISTER, &range);
}

static void prepare(void)
{
	socklen_t size = sizeof address;
	struct epoll_event in = {.events = EPOLLIN};
	sigset_t set;
	page = (size_t)sysconf(_SC_PAGESIZE);
	sem_init(&semaphore, 0, 0);
	sem_init(&ready, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	must(!pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "pipe");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address = (struct sockaddr_in){.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 1),
	     "listen");
	getsockname(listener, (struct sockaddr *)&address, &size);
	terminal[0] = posix_openpt(O_RDWR | O_NOCTTY);
	must(terminal[0] >= 0 && !grantpt(terminal[0]) && !unlockpt(terminal[0]), "terminal");
	terminal[1] = open(ptsname(terminal[0]), O_RDWR | O_NOCTTY);
	event = eventfd(0, 0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	queue = msgget(IPC_PRIVATE, 0600);
	pollset = epoll_create1(0);
	must(!epoll_ctl(pollset, EPOLL_CTL_ADD, ends[0], &in), "epoll");
	locked = open(lock_path, O_RDWR | O_CREAT, 0600);
	must(locked >= 0, "lock");
	unlink(fifo_path);
	must(!mkfifo(fifo_path, 0600), "fifo");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	main_thread = pthread_self();
}

static uint64_t once(const struct phase *phase)
{
	pthread_t helper;
	if (phase->wait == wait_page)
		madvise(memory, page, MADV_DONTNEED);
	if (phase->wait == wait_thread)
		pthread_create(&short_thread, NULL, nap_once, NULL);
	if (phase->help)
		pthread_create(&helper, NULL, help, (void *)phase);
	uint64_t start = now();
	phase->wait();
	uint64_t took = now() - start;
	if (phase->help)
		pthread_join(helper, NULL);
	return took;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	prepare();
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
		uint64_t took = 0;
		if (phases[i].wait == wait_page && !open_faults())
			continue;
		for (int round = 0; round < rounds; round++)
			took += once(&phases[i]);
		printf("%s\t%s\t%llu\n", phases[i].reason, phases[i].name,
		       (unsigned long long)took);
	}
	msgctl(queue, IPC_RMID, NULL);
	return 0;
}
