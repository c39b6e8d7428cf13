/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacements for functions that wait.
 *
 * Most samples come while the thread runs its own code, so they interrupt no call of the program: see
 * collect/agents/sampling.c. In some cases that is not possible (agent.interrupts): counters of the CPU,
 * which signal a little late; POSIX timers of old kernels; emulators. Then a sample may come between the
 * start of a call and its sleep. The kernel restarts most system calls after a handler. But calls with a time
 * limit, and calls that wait for signals, return EINTR, whatever the handler's flags are. Programs that never
 * get a signal do not expect that. So in these cases our signal is blocked around such calls, at the cost of
 * two system calls.
 *
 * A signal that was held back comes at the end of the wait, and its time belongs there. If a call takes a
 * mask of signals, we add ours to that.
 */
#include "agent/agent.h"

#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "agent/pauses.h"
#include "safe/syscall.h"

static void block(int how)
{
	uint64_t ours = 1ull << (WIRE_SIGNAL - 1);
	SAFE_SYSCALL(SYS_rt_sigprocmask, how, &ours, 0, sizeof ours);
}

/* Returns whether it has blocked the signal, for wait_end. */
static bool wait_begin(void)
{
	if (__builtin_expect(!agent.interrupts, 1) || !agent_self || signals_must_stay_blocked())
		return false;
	block(SIG_BLOCK);
	return true;
}

static void wait_end(bool blocked)
{
	if (blocked)
		block(SIG_UNBLOCK);
}

#define WAIT_FOR(call)                        \
	({                                    \
		bool blocked_ = wait_begin(); \
		__auto_type result_ = (call); \
		wait_end(blocked_);           \
		result_;                      \
	})
/* Calls a function that waits. `act`, `fd`: for what (pauses.h). */
#define WAIT(act, fd, name, ...) WAIT_FOR(PAUSE(act, fd, REAL(name), REAL(name)(__VA_ARGS__)))
/* The same, if it moves bytes. */
#define MOVE(act, fd, size, name, ...) \
	WAIT_FOR(TRANSFER(act, fd, size, pause_result, REAL(name), REAL(name)(__VA_ARGS__)))

/* The mask with our signal added, in `room`; NULL stays NULL. */
static const sigset_t *with_ours(const sigset_t *mask, sigset_t *room)
{
	if (!mask || !atomic_load_explicit(&agent.on, memory_order_relaxed))
		return mask;
	*room = *mask;
	sigaddset(room, WIRE_SIGNAL);
	return room;
}

/* The set without our signal, in `room`: the program must not receive a sample that is held back. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
	if (!set || !atomic_load_explicit(&agent.on, memory_order_relaxed))
		return set;
	*room = *set;
	sigdelset(room, WIRE_SIGNAL);
	return room;
}

/* ---- waits for descriptors ---- */

REAL_SLOT(poll);
REAL_SLOT(ppoll);
REAL_SLOT(select);
REAL_SLOT(pselect);
REAL_SLOT(epoll_wait);
REAL_SLOT(epoll_pwait);
REAL_SLOT(epoll_pwait2);

AGENT_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return timeout ? WAIT(ARENA_WAITS_POLL, -1, poll, fds, count, timeout)
		       : REAL(poll)(fds, count, timeout);
}

AGENT_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask)
{
	sigset_t room;
	if (mask)
		return PAUSE(ARENA_WAITS_POLL, -1, REAL(ppoll),
			     REAL(ppoll)(fds, count, timeout, with_ours(mask, &room)));
	return WAIT(ARENA_WAITS_POLL, -1, ppoll, fds, count, timeout, mask);
}

AGENT_EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *odd, struct timeval *timeout)
{
	return WAIT(ARENA_WAITS_POLL, -1, select, count, in, out, odd, timeout);
}

AGENT_EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *odd,
			 const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t room;
	if (mask)
		return PAUSE(ARENA_WAITS_POLL, -1, REAL(pselect),
			     REAL(pselect)(count, in, out, odd, timeout, with_ours(mask, &room)));
	return WAIT(ARENA_WAITS_POLL, -1, pselect, count, in, out, odd, timeout, mask);
}

AGENT_EXPORT int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
	return timeout ? WAIT(ARENA_WAITS_POLL, -1, epoll_wait, fd, events, count, timeout)
		       : REAL(epoll_wait)(fd, events, count, timeout);
}

AGENT_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
			     const sigset_t *mask)
{
	sigset_t room;
	if (mask)
		return PAUSE(ARENA_WAITS_POLL, -1, REAL(epoll_pwait),
			     REAL(epoll_pwait)(fd, events, count, timeout, with_ours(mask, &room)));
	return WAIT(ARENA_WAITS_POLL, -1, epoll_pwait, fd, events, count, timeout, mask);
}

AGENT_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int count,
			      const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t room;
	if (mask)
		return PAUSE(
			ARENA_WAITS_POLL, -1, REAL(epoll_pwait2),
			REAL(epoll_pwait2)(fd, events, count, timeout, with_ours(mask, &room)));
	return WAIT(ARENA_WAITS_POLL, -1, epoll_pwait2, fd, events, count, timeout, mask);
}

/* ---- waits for time ---- */

REAL_SLOT(nanosleep);
REAL_SLOT(clock_nanosleep);
REAL_SLOT(usleep);
REAL_SLOT(sleep);
REAL_SLOT(thrd_sleep);

AGENT_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	return WAIT(ARENA_WAITS_SLEEP, -1, nanosleep, time, left);
}

AGENT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				 struct timespec *left)
{
	return WAIT(ARENA_WAITS_SLEEP, -1, clock_nanosleep, clock, flags, time, left);
}

AGENT_EXPORT int usleep(useconds_t time)
{
	return WAIT(ARENA_WAITS_SLEEP, -1, usleep, time);
}

AGENT_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	return WAIT(ARENA_WAITS_SLEEP, -1, thrd_sleep, time, left);
}

AGENT_EXPORT unsigned sleep(unsigned seconds)
{
	return WAIT(ARENA_WAITS_SLEEP, -1, sleep, seconds);
}

/* ---- waits for signals ---- */

REAL_SLOT(pause);
REAL_SLOT(sigsuspend);
REAL_SLOT(sigwait);
REAL_SLOT(sigwaitinfo);
REAL_SLOT(signalfd);
REAL_SLOT(sigtimedwait);

AGENT_EXPORT int pause(void)
{
	if (!agent_self || !atomic_load(&agent.on) || signals_must_stay_blocked())
		return REAL(pause)();
	block(SIG_BLOCK);
	int result = PAUSE(ARENA_WAITS_SIGNAL, -1, REAL(pause), REAL(pause)());
	block(SIG_UNBLOCK);
	return result;
}

AGENT_EXPORT int sigsuspend(const sigset_t *mask)
{
	sigset_t room;
	return PAUSE(ARENA_WAITS_SIGNAL, -1, REAL(sigsuspend),
		     REAL(sigsuspend)(with_ours(mask, &room)));
}

AGENT_EXPORT int sigwait(const sigset_t *set, int *signal)
{
	sigset_t room;
	return WAIT(ARENA_WAITS_SIGNAL, -1, sigwait, without_ours(set, &room), signal);
}

AGENT_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t room;
	return WAIT(ARENA_WAITS_SIGNAL, -1, sigwaitinfo, without_ours(set, &room), info);
}

AGENT_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t room;
	return WAIT(ARENA_WAITS_SIGNAL, -1, sigtimedwait, without_ours(set, &room), info, timeout);
}

AGENT_EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t room;
	return REAL(signalfd)(fd, without_ours(set, &room), flags);
}

/* ---- waits for other threads and processes ---- */

REAL_SLOT(sem_timedwait);
REAL_SLOT(sem_clockwait);
REAL_SLOT(semop);
REAL_SLOT(semtimedop);
REAL_SLOT(msgrcv);
REAL_SLOT(msgsnd);
REAL_SLOT(mq_timedreceive);
REAL_SLOT(mq_timedsend);

AGENT_EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	if (lock_sem_timed && (agent.locks.wanted || agent.pauses.off) && agent_self)
		return WAIT_FOR(lock_sem_timed(semaphore, CLOCK_REALTIME, until));
	return WAIT_FOR(REAL(sem_timedwait)(semaphore, until));
}

AGENT_EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	if (lock_sem_timed && clock != CLOCK_REALTIME && (agent.locks.wanted || agent.pauses.off) &&
	    agent_self)
		return WAIT_FOR(lock_sem_timed(semaphore, clock, until));
	return WAIT_FOR(REAL(sem_clockwait)(semaphore, clock, until));
}

AGENT_EXPORT int semop(int id, struct sembuf *operations, size_t count)
{
	return WAIT(ARENA_WAITS_SEMAPHORE, -1, semop, id, operations, count);
}

AGENT_EXPORT int semtimedop(int id, struct sembuf *operations, size_t count,
			    const struct timespec *timeout)
{
	return WAIT(ARENA_WAITS_SEMAPHORE, -1, semtimedop, id, operations, count, timeout);
}

AGENT_EXPORT ssize_t msgrcv(int id, void *message, size_t size, long type, int flags)
{
	return WAIT(ARENA_WAITS_MESSAGE, -1, msgrcv, id, message, size, type, flags);
}

AGENT_EXPORT int msgsnd(int id, const void *message, size_t size, int flags)
{
	return WAIT(ARENA_WAITS_MESSAGE, -1, msgsnd, id, message, size, flags);
}

AGENT_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t size,
				     unsigned *restrict priority,
				     const struct timespec *restrict until)
{
	return WAIT(ARENA_WAITS_MESSAGE, -1, mq_timedreceive, queue, message, size, priority,
		    until);
}

AGENT_EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t size, unsigned priority,
			      const struct timespec *until)
{
	return WAIT(ARENA_WAITS_MESSAGE, -1, mq_timedsend, queue, message, size, priority, until);
}

/* Sockets may have a time limit of their own (SO_RCVTIMEO, SO_SNDTIMEO). */

REAL_SLOT(accept);
REAL_SLOT(accept4);
REAL_SLOT(connect);
REAL_SLOT(recv);
REAL_SLOT(recvfrom);
REAL_SLOT(recvmsg);
REAL_SLOT(send);
REAL_SLOT(sendto);
REAL_SLOT(sendmsg);

AGENT_EXPORT int accept(int fd, struct sockaddr *address, socklen_t *size)
{
	return WAIT(ARENA_WAITS_SOCKET, -1, accept, fd, address, size);
}

AGENT_EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return WAIT(ARENA_WAITS_SOCKET, -1, accept4, fd, address, size, flags);
}

AGENT_EXPORT int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	return WAIT(ARENA_WAITS_SOCKET, -1, connect, fd, address, size);
}

AGENT_EXPORT ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	return MOVE(ARENA_READ | PAUSE_UNCOUNTED, fd, size, recv, fd, buffer, size, flags);
}

AGENT_EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t size, int flags,
			      struct sockaddr *restrict from, socklen_t *restrict from_size)
{
	return MOVE(ARENA_READ | PAUSE_UNCOUNTED, fd, size, recvfrom, fd, buffer, size, flags, from,
		    from_size);
}

AGENT_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return MOVE(ARENA_READ | PAUSE_UNCOUNTED, fd, 0, recvmsg, fd, message, flags);
}

AGENT_EXPORT ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
	return MOVE(ARENA_WRITE | PAUSE_UNCOUNTED, fd, size, send, fd, buffer, size, flags);
}

AGENT_EXPORT ssize_t sendto(int fd, const void *buffer, size_t size, int flags,
			    const struct sockaddr *to, socklen_t to_size)
{
	return MOVE(ARENA_WRITE | PAUSE_UNCOUNTED, fd, size, sendto, fd, buffer, size, flags, to,
		    to_size);
}

AGENT_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return MOVE(ARENA_WRITE | PAUSE_UNCOUNTED, fd, 0, sendmsg, fd, message, flags);
}

/* ---- system calls by number: see syscall_CPU.S ---- */

long wait_futex(__typeof__(&syscall) real, long a, long b, long c, long d, long e, long f)
{
	if (lock_futex && (agent.locks.wanted || agent.pauses.off))
		return WAIT_FOR(lock_futex(real, a, b, c, d, e, f));
	return WAIT_FOR(real(SYS_futex, a, b, c, d, e, f));
}
