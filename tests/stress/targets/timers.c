/* SPDX-License-Identifier: Apache-2.0 */
/* All timers that a program can have, at once. */
#include "stress.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

static volatile int real, virtual, prof, created, per_thread;
static volatile int threaded;

static void tick(int signal)
{
	if (signal == SIGALRM)
		real++;
	else if (signal == SIGVTALRM)
		virtual ++;
	else if (signal == SIGPROF)
		prof++;
	else if (signal == SIGRTMIN + 1)
		created++;
	else
		per_thread++;
}

static void thread_tick(union sigval value)
{
	(void)value;
	__atomic_fetch_add(&threaded, 1, __ATOMIC_RELAXED);
}

static timer_t make(clockid_t clock, int notify, int signal)
{
	struct sigevent event = {.sigev_notify = notify, .sigev_signo = signal};
	struct itimerspec every = {{0, 10000000}, {0, 10000000}};
	timer_t timer;
	if (notify == SIGEV_THREAD)
		event.sigev_notify_function = thread_tick;
	must(!timer_create(clock, &event, &timer), "timer_create");
	must(!timer_settime(timer, 0, &every, NULL), "timer_settime");
	return timer;
}

static bool about(int64_t count, int64_t ns)
{
	int64_t wanted = ns / 10000000;
	/* CPU timers go by the scheduler's tick, and a busy machine merges expirations */
	return count >= wanted / 3 && count <= wanted + wanted / 2 + 5;
}

int main(int argc, char **argv)
{
	struct itimerval every = {{0, 10000}, {0, 10000}}, left;
	struct itimerspec fd_every = {{0, 10000000}, {0, 10000000}};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0),
	    signals[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGRTMIN + 1, SIGRTMIN + 2};
	uint64_t expirations = 0;
	timer_t timers[3];
	for (size_t i = 0; i < 5; i++) {
		struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
		sigaction(signals[i], &action, NULL);
	}
	int64_t start = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);

	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_VIRTUAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	timers[0] = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 1);
	timers[1] = make(CLOCK_THREAD_CPUTIME_ID, SIGEV_SIGNAL, SIGRTMIN + 2);
	timers[2] = make(CLOCK_MONOTONIC, SIGEV_THREAD, 0);
	timerfd_settime(fd, 0, &fd_every, NULL);
	burn((unsigned)scaled(argc, argv, 12000));
	getitimer(ITIMER_PROF, &left);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	start = now_ns(CLOCK_MONOTONIC) - start;
	expect(read(fd, &expirations, sizeof expirations) == sizeof expirations, "timerfd read");
	expect(about((int64_t)expirations, start), "timerfd");
	expect(about(real, start), "real");
	expect(about(virtual, cpu), "virtual");
	expect(about(prof, cpu), "prof");
	expect(about(created, start), "created");
	expect(about(per_thread, cpu), "thread clock");
	expect(about(threaded, start), "SIGEV_THREAD");
	expect(left.it_interval.tv_usec == 10000, "interval as set");
	expect(timer_getoverrun(timers[0]) >= 0, "overrun");
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_PROF, &every, NULL);
	for (int i = 0; i < 3; i++)
		expect(!timer_delete(timers[i]), "delete");
	return expect_failed;
}
