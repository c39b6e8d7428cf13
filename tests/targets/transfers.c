/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfers DIRECTORY [THREADS]: reads and writes by all calls that do so, each in a function of its own. Prints for each
 * function how many calls it made and how many bytes these moved, as their results say. Each thread does all of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static const char *directory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sum {
	const char *function;
	long calls, bytes;
} sums[64];

static void count(const char *function, long result)
{
	struct sum *s = sums;
	pthread_mutex_lock(&lock);
	while (s->function && strcmp(s->function, function))
		s++;
	s->function = function;
	s->calls++;
	s->bytes += result > 0 ? result : 0;
	pthread_mutex_unlock(&lock);
}
#define COUNT(call) count(__func__, (call))

static int make(const char *name, int flags)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.%ld", directory, name, syscall(SYS_gettid));
	int fd = open(path, flags | O_RDWR | O_CREAT, 0600);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

KEEP void small_writes(int fd)
{
	for (int i = 0; i < 2000; i++)
		COUNT(write(fd, "hello, world", 12));
}

KEEP void plain_reads(int fd)
{
	static char bytes[1000];
	lseek(fd, 0, SEEK_SET);
	for (long got = 1; got > 0;)
		COUNT(got = read(fd, bytes, sizeof bytes));
}

KEEP void placed(int fd)
{
	char bytes[100];
	COUNT(pwrite(fd, "placed", 6, 100000));
	COUNT(pread(fd, bytes, sizeof bytes, 99990));
}

KEEP void vectors(int fd)
{
	char a[10] = "a", b[20] = "b";
	struct iovec v[] = {{a, sizeof a}, {b, sizeof b}};
	COUNT(pwritev(fd, v, 2, 0));
	COUNT(preadv(fd, v, 2, 0));
	COUNT(pwritev2(fd, v, 2, 0, 0));
	COUNT(preadv2(fd, v, 2, 0, 0));
	COUNT(writev(fd, v, 2));
	lseek(fd, 0, SEEK_SET);
	COUNT(readv(fd, v, 2));
}

KEEP void copies(int from, int to)
{
	loff_t at = 0;
	int ends[2];
	COUNT(sendfile(to, from, &(off_t){0}, 3000));
	at = 0;
	COUNT(copy_file_range(from, &at, to, NULL, 2000, 0));
	if (pipe(ends))
		exit(1);
	at = 0;
	COUNT(splice(from, &at, ends[1], NULL, 500, 0));
	COUNT(splice(ends[0], NULL, to, NULL, 500, 0));
	struct iovec v = {(char *)"spliced", 7};
	COUNT(vmsplice(ends[1], &v, 1, 0));
	close(ends[0]);
	close(ends[1]);
}

KEEP void syncs(int fd)
{
	COUNT(fdatasync(fd));
	COUNT(fsync(fd));
}

KEEP void failures(int fd)
{
	char byte, *volatile nowhere = (char *)1;
	COUNT(read(-1, &byte, 1));
	COUNT(write(fd, nowhere, 1));
}

KEEP void through_pipe(void)
{
	char bytes[64];
	int ends[2];
	if (pipe(ends))
		exit(1);
	for (int i = 0; i < 100; i++) {
		COUNT(write(ends[1], bytes, sizeof bytes));
		COUNT(read(ends[0], bytes, sizeof bytes));
	}
	close(ends[0]);
	close(ends[1]);
}

KEEP void through_event(void)
{
	uint64_t number = 1;
	int fd = eventfd(0, 0);
	COUNT(write(fd, &number, sizeof number));
	COUNT(read(fd, &number, sizeof number));
	close(fd);
}

/* Returns the sum of the messages' lengths. */
static long lengths(struct mmsghdr *all, int count)
{
	long sum = 0;
	for (int i = 0; i < count; i++)
		sum += all[i].msg_len;
	return sum;
}

KEEP void messages(int a, int b)
{
	char bytes[2][300];
	struct iovec v[2] = {{bytes[0], 300}, {bytes[1], 200}};
	struct mmsghdr all[2] = {{.msg_hdr = {.msg_iov = &v[0], .msg_iovlen = 1}},
				 {.msg_hdr = {.msg_iov = &v[1], .msg_iovlen = 1}}};
	COUNT(lengths(all, sendmmsg(a, all, 2, 0)));
	COUNT(lengths(all, recvmmsg(b, all, 2, 0, NULL)));
	COUNT(sendmsg(a, &all[0].msg_hdr, 0));
	COUNT(recvmsg(b, &all[0].msg_hdr, 0));
	COUNT(send(a, bytes, 50, 0));
	COUNT(recv(b, bytes, 300, 0));
}

KEEP void through_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int pair[2], listener = socket(AF_INET, SOCK_STREAM, 0),
		     client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1) ||
	    getsockname(listener, (void *)&address, &size) ||
	    connect(client, (void *)&address, sizeof address) ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		exit(1);
	int server = accept(listener, NULL, NULL);
	char bytes[100];
	for (int i = 0; i < 100; i++) {
		COUNT(send(client, bytes, sizeof bytes, 0));
		COUNT(recv(server, bytes, sizeof bytes, MSG_WAITALL));
	}
	messages(pair[0], pair[1]);
	close(pair[0]);
	close(pair[1]);
	close(client);
	close(server);
	close(listener);
}

/* The C library writes by a function of its own, when its buffer is full or the file is closed. */
KEEP void buffered(void)
{
	FILE *file = fopen("/dev/null", "w");
	static char bytes[10000];
	setvbuf(file, NULL, _IOFBF, 4096);
	fwrite(bytes, 1, sizeof bytes, file);
	fclose(file);
}

static void *all(void *none)
{
	int fd = make("data", O_TRUNC), to = make("copy", O_TRUNC),
	    null = open("/dev/null", O_WRONLY);
	small_writes(fd);
	plain_reads(fd);
	placed(fd);
	vectors(fd);
	copies(fd, to);
	syncs(to);
	failures(fd);
	small_writes(null);
	through_pipe();
	through_event();
	through_sockets();
	buffered();
	close(fd);
	close(to);
	close(null);
	return none;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	int count = argc > 2 ? atoi(argv[2]) : 1;
	directory = argc > 1 ? argv[1] : ".";
	for (int i = 0; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, all, NULL);
	for (int i = 0; i < count && i < 16; i++)
		pthread_join(threads[i], NULL);
	for (struct sum *s = sums; s->function; s++)
		printf("%s %ld %ld\n", s->function, s->calls, s->bytes);
}
