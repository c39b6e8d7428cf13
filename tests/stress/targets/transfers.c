/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that take a good part of a sampling period, and waits that no library call stands before: all
   must end as asked for. A signal in the middle would make a transfer shorter, whatever SA_RESTART. */
#include "stress.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGE = 4 << 20, RANDOM = 256 << 10, PIECE = 64 << 10, NAP_MS = 1 };

/* What programs built with _FORTIFY_SOURCE call. */
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
		       struct sockaddr *from, socklen_t *from_size);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);

static char memory[LARGE];
static int zero, random_fd, file, pipes[2], sockets[2], quiet[2];

/* Takes all that the other side sends. */
static void *drain(void *context)
{
	int fd = *(int *)context;
	static __thread char room[PIECE];
	while (read(fd, room, sizeof room) > 0)
		;
	return NULL;
}

/* Sends without end. */
static void *feed(void *context)
{
	static char room[PIECE];
	int fd = *(int *)context;
	while (send(fd, room, sizeof room, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

/* Each returns whether the call ended as it should. */
static bool read_zero(void)
{
	return read(zero, memory, LARGE) == LARGE;
}
static bool readv_zero(void)
{
	struct iovec parts[] = {{memory, LARGE / 2}, {memory + LARGE / 2, LARGE / 2}};
	return readv(zero, parts, 2) == LARGE;
}
static bool read_random(void)
{
	return read(random_fd, memory, RANDOM) == RANDOM;
}
static bool ask_random(void)
{
	return getrandom(memory, RANDOM, 0) == RANDOM;
}
static bool write_pipe(void)
{
	return write(pipes[1], memory, LARGE) == LARGE;
}
static bool writev_pipe(void)
{
	struct iovec parts[] = {{memory, LARGE / 2}, {memory + LARGE / 2, LARGE / 2}};
	return writev(pipes[1], parts, 2) == LARGE;
}
static bool write_socket(void)
{
	return write(sockets[0], memory, LARGE) == LARGE;
}
static bool send_socket(void)
{
	return send(sockets[0], memory, LARGE, 0) == LARGE;
}
static bool send_file(void)
{
	off_t at = 0;
	return sendfile(sockets[0], file, &at, LARGE) == LARGE;
}
static bool write_file(void)
{
	return pwrite(file, memory, LARGE, 0) == LARGE;
}
static bool receive_all(void)
{
	return recv(sockets[0], memory, LARGE, MSG_WAITALL) == LARGE;
}
static bool is_timeout(long result)
{
	return result < 0 && errno == EAGAIN;
}
static bool wait_read(void)
{
	return is_timeout(read(quiet[0], memory, 1));
}
static bool wait_readv(void)
{
	struct iovec part = {memory, 1};
	return is_timeout(readv(quiet[0], &part, 1));
}
static bool wait_recv_chk(void)
{
	return is_timeout(__recv_chk(quiet[0], memory, 1, LARGE, 0));
}
static bool wait_recvfrom_chk(void)
{
	return is_timeout(__recvfrom_chk(quiet[0], memory, 1, LARGE, 0, NULL, NULL));
}
static bool wait_recvmmsg(void)
{
	struct iovec part = {memory, 1};
	struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
	return is_timeout(recvmmsg(quiet[0], &message, 1, 0, NULL));
}
static bool wait_poll_chk(void)
{
	struct pollfd fd = {quiet[0], POLLIN, 0};
	return __poll_chk(&fd, 1, NAP_MS, sizeof fd) == 0;
}
static bool wait_raw(void)
{
	struct pollfd fd = {quiet[0], POLLIN, 0};
	struct timespec nap = {0, NAP_MS * 1000000};
	return syscall(SYS_ppoll, &fd, 1, &nap, NULL, 0) == 0;
}

/* `burned`: units of work before each call, so that a tick is as likely at its beginning. */
static void try(const char *name, bool (*call)(void), int count, unsigned burned)
{
	int bad = 0;
	for (int i = 0; i < count; i++) {
		if (burned)
			burn(burned);
		bad += !call();
	}
	printf("%s: %d of %d ended otherwise\n", name, bad, count);
	fflush(stdout);
}

#define TRY(name, count, burned) try(#name, name, count, burned)

static void try_with(void *(*other)(void *), int *fd, int *ours, void (*tries)(int), int count)
{
	pthread_t thread;
	must(!pthread_create(&thread, NULL, other, fd), "pthread_create");
	tries(count);
	close(*ours);
	pthread_join(thread, NULL);
}

static void try_pipe(int count)
{
	TRY(write_pipe, count, 0);
	TRY(writev_pipe, count, 0);
}

static void try_sending(int count)
{
	TRY(write_socket, count, 0);
	TRY(send_socket, count, 0);
	TRY(send_file, count, 0);
}

static void try_receiving(int count)
{
	TRY(receive_all, count, 0);
}

int main(int argc, char **argv)
{
	int count = scaled(argc, argv, 100);
	struct timeval nap = {0, NAP_MS * 1000};
	zero = open("/dev/zero", O_RDONLY);
	random_fd = open("/dev/urandom", O_RDONLY);
	file = open(".", O_RDWR | O_TMPFILE, 0600);
	must(zero >= 0 && random_fd >= 0 && file >= 0, "open");
	memset(memory, 1, sizeof memory);
	must(write(file, memory, LARGE) == LARGE, "write");
	TRY(read_zero, count, 0);
	TRY(readv_zero, count, 0);
	TRY(read_random, count, 0);
	TRY(ask_random, count, 0);
	TRY(write_file, count, 0);
	must(!pipe(pipes), "pipe");
	try_with(drain, &pipes[0], &pipes[1], try_pipe, count / 2);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
	try_with(drain, &sockets[1], &sockets[0], try_sending, count / 2);
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
	try_with(feed, &sockets[1], &sockets[0], try_receiving, count / 2);
	must(!socketpair(AF_UNIX, SOCK_DGRAM, 0, quiet), "socketpair");
	setsockopt(quiet[0], SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap);
	TRY(wait_read, count / 4, 1);
	TRY(wait_readv, count / 4, 1);
	TRY(wait_recv_chk, count / 4, 1);
	TRY(wait_recvfrom_chk, count / 4, 1);
	TRY(wait_recvmmsg, count / 4, 1);
	TRY(wait_poll_chk, count / 4, 1);
	TRY(wait_raw, count / 4, 1);
	return 0;
}
