/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that move bytes, or wait for other threads, processes and files. They are only in the agent for events
 * (libculprit-events.so); those that move bytes by sockets are in waits.c. See pauses.h.
 */
#undef _FILE_OFFSET_BITS /* else pread would be pread64, and there would be no pread */
#include "agent/pauses.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

/* A function that moves `size` bytes at most, by a descriptor; its result is how many it has moved. */
#define MOVE(act, fd, size, name, ...) \
	TRANSFER(act, fd, size, pause_result, REAL(name), REAL(name)(__VA_ARGS__))
#define SYNC(fd, name, ...) TRANSFER(ARENA_SYNC, fd, 0, 0, REAL(name), REAL(name)(__VA_ARGS__))
#define WAIT(kind, name, ...) PAUSE(ARENA_WAITS_##kind, -1, REAL(name), REAL(name)(__VA_ARGS__))

static size_t bytes_of(const struct iovec *parts, int count)
{
	size_t sum = 0;
	for (int i = 0; pauses_watched() && i < count && i < 64; i++)
		sum += parts[i].iov_len;
	return sum;
}

/* ---- reading and writing ---- */

REAL_SLOT(read);
REAL_SLOT(write);
REAL_SLOT(pread);
REAL_SLOT(pread64);
REAL_SLOT(pwrite);
REAL_SLOT(pwrite64);

AGENT_EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
	return MOVE(ARENA_READ, fd, size, read, fd, buffer, size);
}

AGENT_EXPORT ssize_t write(int fd, const void *buffer, size_t size)
{
	return MOVE(ARENA_WRITE, fd, size, write, fd, buffer, size);
}

AGENT_EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t at)
{
	return MOVE(ARENA_READ, fd, size, pread, fd, buffer, size, at);
}

AGENT_EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t at)
{
	return MOVE(ARENA_READ, fd, size, pread64, fd, buffer, size, at);
}

AGENT_EXPORT ssize_t pwrite(int fd, const void *buffer, size_t size, off_t at)
{
	return MOVE(ARENA_WRITE, fd, size, pwrite, fd, buffer, size, at);
}

AGENT_EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t at)
{
	return MOVE(ARENA_WRITE, fd, size, pwrite64, fd, buffer, size, at);
}

/* ---- several parts ---- */

REAL_SLOT(readv);
REAL_SLOT(writev);
REAL_SLOT(preadv);
REAL_SLOT(preadv64);
REAL_SLOT(pwritev);
REAL_SLOT(pwritev64);
REAL_SLOT(preadv2);
REAL_SLOT(preadv64v2);
REAL_SLOT(pwritev2);
REAL_SLOT(pwritev64v2);

AGENT_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	return MOVE(ARENA_READ, fd, bytes_of(parts, count), readv, fd, parts, count);
}

AGENT_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return MOVE(ARENA_WRITE, fd, bytes_of(parts, count), writev, fd, parts, count);
}

AGENT_EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at)
{
	return MOVE(ARENA_READ, fd, bytes_of(parts, count), preadv, fd, parts, count, at);
}

AGENT_EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t at)
{
	return MOVE(ARENA_READ, fd, bytes_of(parts, count), preadv64, fd, parts, count, at);
}

AGENT_EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
	return MOVE(ARENA_WRITE, fd, bytes_of(parts, count), pwritev, fd, parts, count, at);
}

AGENT_EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
	return MOVE(ARENA_WRITE, fd, bytes_of(parts, count), pwritev64, fd, parts, count, at);
}

AGENT_EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t at, int flags)
{
	return MOVE(ARENA_READ, fd, bytes_of(parts, count), preadv2, fd, parts, count, at, flags);
}

AGENT_EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
{
	return MOVE(ARENA_READ, fd, bytes_of(parts, count), preadv64v2, fd, parts, count, at,
		    flags);
}

AGENT_EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags)
{
	return MOVE(ARENA_WRITE, fd, bytes_of(parts, count), pwritev2, fd, parts, count, at, flags);
}

AGENT_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t at,
				 int flags)
{
	return MOVE(ARENA_WRITE, fd, bytes_of(parts, count), pwritev64v2, fd, parts, count, at,
		    flags);
}

/* ---- sockets, and from one descriptor to another ---- */

REAL_SLOT(recvmmsg);
REAL_SLOT(sendmmsg);
REAL_SLOT(sendfile);
REAL_SLOT(sendfile64);
REAL_SLOT(splice);
REAL_SLOT(tee);
REAL_SLOT(vmsplice);
REAL_SLOT(copy_file_range);

static uint64_t bytes_of_messages(const struct mmsghdr *messages, int count)
{
	uint64_t sum = 0;
	for (int i = 0; i < count; i++)
		sum += messages[i].msg_len;
	return sum;
}

AGENT_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
			  struct timespec *timeout)
{
	return TRANSFER(ARENA_READ | PAUSE_UNCOUNTED, fd, 0,
			bytes_of_messages(messages, pause_result), REAL(recvmmsg),
			REAL(recvmmsg)(fd, messages, count, flags, timeout));
}

AGENT_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return TRANSFER(ARENA_WRITE | PAUSE_UNCOUNTED, fd, 0,
			bytes_of_messages(messages, pause_result), REAL(sendmmsg),
			REAL(sendmmsg)(fd, messages, count, flags));
}

AGENT_EXPORT ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
	return MOVE(ARENA_COPY | PAUSE_TWICE, to, size, sendfile, to, from, at, size);
}

AGENT_EXPORT ssize_t sendfile64(int to, int from, off64_t *at, size_t size)
{
	return MOVE(ARENA_COPY | PAUSE_TWICE, to, size, sendfile64, to, from, at, size);
}

AGENT_EXPORT ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t size,
			    unsigned flags)
{
	return MOVE(ARENA_COPY | PAUSE_UNCOUNTED, to, size, splice, from, from_at, to, to_at, size,
		    flags);
}

AGENT_EXPORT ssize_t tee(int from, int to, size_t size, unsigned flags)
{
	return MOVE(ARENA_COPY | PAUSE_UNCOUNTED, to, size, tee, from, to, size, flags);
}

AGENT_EXPORT ssize_t vmsplice(int fd, const struct iovec *parts, size_t count, unsigned flags)
{
	return MOVE(ARENA_WRITE | PAUSE_UNCOUNTED, fd, bytes_of(parts, (int)count), vmsplice, fd,
		    parts, count, flags);
}

AGENT_EXPORT ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at,
				     size_t size, unsigned flags)
{
	return MOVE(ARENA_COPY | PAUSE_TWICE, to, size, copy_file_range, from, from_at, to, to_at,
		    size, flags);
}

/* ---- what programs call that were compiled with checks of their buffers ---- */

extern ssize_t __read_chk(int, void *, size_t, size_t);
extern ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
extern ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
extern ssize_t __recv_chk(int, void *, size_t, size_t, int);
extern ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
extern int __poll_chk(struct pollfd *, unsigned long, int, size_t);

REAL_SLOT(__read_chk);
REAL_SLOT(__pread_chk);
REAL_SLOT(__pread64_chk);
REAL_SLOT(__recv_chk);
REAL_SLOT(__recvfrom_chk);
REAL_SLOT(__poll_chk);

AGENT_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	return MOVE(ARENA_READ, fd, size, __read_chk, fd, buffer, size, room);
}

AGENT_EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room)
{
	return MOVE(ARENA_READ, fd, size, __pread_chk, fd, buffer, size, at, room);
}

AGENT_EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t at, size_t room)
{
	return MOVE(ARENA_READ, fd, size, __pread64_chk, fd, buffer, size, at, room);
}

AGENT_EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
	return MOVE(ARENA_READ | PAUSE_UNCOUNTED, fd, size, __recv_chk, fd, buffer, size, room,
		    flags);
}

AGENT_EXPORT ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
				    struct sockaddr *from, socklen_t *from_size)
{
	return MOVE(ARENA_READ | PAUSE_UNCOUNTED, fd, size, __recvfrom_chk, fd, buffer, size, room,
		    flags, from, from_size);
}

AGENT_EXPORT int __poll_chk(struct pollfd *fds, unsigned long count, int timeout, size_t room)
{
	return timeout ? WAIT(POLL, __poll_chk, fds, count, timeout, room)
		       : REAL(__poll_chk)(fds, count, timeout, room);
}

/* ---- until data is on a disk ---- */

REAL_SLOT(fsync);
REAL_SLOT(fdatasync);
REAL_SLOT(syncfs);
REAL_SLOT(sync_file_range);
REAL_SLOT(msync);

AGENT_EXPORT int fsync(int fd)
{
	return SYNC(fd, fsync, fd);
}

AGENT_EXPORT int fdatasync(int fd)
{
	return SYNC(fd, fdatasync, fd);
}

AGENT_EXPORT int syncfs(int fd)
{
	return SYNC(fd, syncfs, fd);
}

AGENT_EXPORT int sync_file_range(int fd, off64_t at, off64_t size, unsigned flags)
{
	return SYNC(fd, sync_file_range, fd, at, size, flags);
}

AGENT_EXPORT int msync(void *at, size_t size, int flags)
{
	return WAIT(DISK, msync, at, size, flags);
}

/* ---- locks of files, threads and processes ---- */

REAL_SLOT(flock);
REAL_SLOT(lockf);
REAL_SLOT(lockf64);
REAL_SLOT(pthread_join);
REAL_SLOT(pthread_timedjoin_np);
REAL_SLOT(pthread_clockjoin_np);
REAL_SLOT(thrd_join);
REAL_SLOT(wait);
REAL_SLOT(waitpid);
REAL_SLOT(waitid);
REAL_SLOT(wait3);
REAL_SLOT(wait4);

AGENT_EXPORT int flock(int fd, int operation)
{
	return WAIT(FILE_LOCK, flock, fd, operation);
}

AGENT_EXPORT int lockf(int fd, int operation, off_t size)
{
	return WAIT(FILE_LOCK, lockf, fd, operation, size);
}

AGENT_EXPORT int lockf64(int fd, int operation, off64_t size)
{
	return WAIT(FILE_LOCK, lockf64, fd, operation, size);
}

AGENT_EXPORT int pthread_join(pthread_t thread, void **result)
{
	return WAIT(THREAD, pthread_join, thread, result);
}

AGENT_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	return WAIT(THREAD, pthread_timedjoin_np, thread, result, until);
}

AGENT_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
				      const struct timespec *until)
{
	return WAIT(THREAD, pthread_clockjoin_np, thread, result, clock, until);
}

AGENT_EXPORT int thrd_join(thrd_t thread, int *result)
{
	return WAIT(THREAD, thrd_join, thread, result);
}

AGENT_EXPORT pid_t wait(int *status)
{
	return WAIT(CHILD, wait, status);
}

AGENT_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	return WAIT(CHILD, waitpid, pid, status, options);
}

AGENT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	return WAIT(CHILD, waitid, type, id, info, options);
}

AGENT_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	return WAIT(CHILD, wait3, status, options, usage);
}

AGENT_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	return WAIT(CHILD, wait4, pid, status, options, usage);
}
