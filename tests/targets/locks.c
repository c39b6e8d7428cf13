// SPDX-License-Identifier: Apache-2.0
/*
 * locks KIND [MILLISECONDS]: threads wait for each other, and one function is to blame.
 *
 * guilty() has the lock for 4 ms at a time, and the others for moments, but often. For conditions,
 * semaphores and barriers, guilty() is late. Prints the sum of the times that victim() waited, in microseconds.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static mtx_t c11;
static cnd_t c11_cond;
static const char *kind;
static int work; /* what conditions tell of */
static _Atomic long waited_us;
static _Atomic int stop;

static long now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

KEEP static void rest(long us)
{
	for (long end = now_us() + us, left; (left = end - now_us()) > 0;)
		usleep((useconds_t)left);
}

static int is(const char *name)
{
	return !strcmp(kind, name);
}

static int is_condition(void)
{
	return is("condition") || is("polling") || is("c11-condition") || is("c11-polling");
}

static int is_c11(void)
{
	return is("c11") || is("c11-timed") || is("c11-condition") || is("c11-polling");
}

static int is_semaphore_lock(void)
{
	return is("semaphore-lock") || is("semaphore-timed") || is("semaphore-clocked");
}

static int is_futex_lock(void)
{
	return is("futex") || is("futex-timed");
}

static struct timespec soon(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_sec += 5;
	return t;
}

static struct timespec in_a_moment(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* ---- a lock of the program's own: 0 free, 1 taken, 2 taken and somebody may wait ---- */

static _Atomic unsigned word, event;

static void futex_wait(_Atomic unsigned *at, unsigned value)
{
	struct timespec until = soon(CLOCK_MONOTONIC);
	if (is("futex-timed"))
		syscall(SYS_futex, at, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL,
			FUTEX_BITSET_MATCH_ANY);
	else
		syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic unsigned *at, int count)
{
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void futex_lock(void)
{
	unsigned none = 0;
	if (!__atomic_compare_exchange_n((unsigned *)&word, &none, 1, 0, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		while (__atomic_exchange_n((unsigned *)&word, 2, __ATOMIC_ACQUIRE))
			futex_wait(&word, 2);
}

static void futex_unlock(void)
{
	if (__atomic_exchange_n((unsigned *)&word, 0, __ATOMIC_RELEASE) == 2)
		futex_wake(&word, 1);
}

KEEP static void lock(int reader)
{
	struct timespec until;
	if (is_futex_lock()) {
		futex_lock();
		return;
	}
	if (is("rwlock-timed") || is("rwlock-clocked")) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 100;
		is("rwlock-timed") ? pthread_rwlock_timedwrlock(&rwlock, &until)
				   : pthread_rwlock_clockwrlock(&rwlock, CLOCK_REALTIME, &until);
	} else if (is("rwlock") || (is("writer") && !reader))
		pthread_rwlock_wrlock(&rwlock);
	else if (is("writer") || is("reader"))
		reader ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock);
	else if (is("c11"))
		mtx_lock(&c11);
	else if (is("semaphore-lock"))
		sem_wait(&semaphore);
	else if (is("c11-timed") && (until = soon(CLOCK_REALTIME), 1))
		mtx_timedlock(&c11, &until);
	else if (is("semaphore-timed") && (until = soon(CLOCK_REALTIME), 1))
		sem_timedwait(&semaphore, &until);
	else if (is("semaphore-clocked") && (until = soon(CLOCK_MONOTONIC), 1))
		sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until);
	else if (is("timed") && (until = soon(CLOCK_REALTIME), 1))
		pthread_mutex_timedlock(&mutex, &until);
	else if (is("clocked") && (until = soon(CLOCK_MONOTONIC), 1))
		pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
	else
		pthread_mutex_lock(&mutex);
}

KEEP static void unlock(void)
{
	if (is("rwlock") || is("rwlock-timed") || is("rwlock-clocked") || is("writer") ||
	    is("reader"))
		pthread_rwlock_unlock(&rwlock);
	else if (is_futex_lock())
		futex_unlock();
	else if (is_c11())
		mtx_unlock(&c11);
	else if (is_semaphore_lock())
		sem_post(&semaphore);
	else
		pthread_mutex_unlock(&mutex);
}

/* ---- the three parts ---- */

KEEP static void guilty(void)
{
	if (is_condition()) {
		rest(4000);
		!is_c11() ? pthread_mutex_lock(&mutex) : mtx_lock(&c11);
		work++;
		!is_c11() ? pthread_cond_broadcast(&cond) : cnd_broadcast(&c11_cond);
		!is_c11() ? pthread_mutex_unlock(&mutex) : mtx_unlock(&c11);
	} else if (is("semaphore")) {
		rest(4000);
		sem_post(&semaphore);
	} else if (is("futex-event")) {
		rest(4000);
		event++;
		futex_wake(&event, 1000);
	} else if (is("barrier")) {
		rest(4000);
		pthread_barrier_wait(&barrier);
	} else {
		lock(is("reader"));
		rest(4000);
		unlock();
		rest(500);
	}
}

KEEP static void innocent(void)
{
	if (is("barrier")) {
		rest(100);
		pthread_barrier_wait(&barrier);
		return;
	}
	rest(300);
	pthread_mutex_lock(&other);
	pthread_mutex_unlock(&other);
	if (is_condition() || is("semaphore") || is("futex-event"))
		return;
	lock(0);
	unlock();
}

KEEP static void victim(void)
{
	long start = now_us();
	if (is("condition") || is("polling")) {
		pthread_mutex_lock(&mutex);
		for (int seen = work; seen == work && !stop;) {
			struct timespec until = in_a_moment();
			if (is("polling"))
				pthread_cond_timedwait(&cond, &mutex, &until);
			else
				pthread_cond_wait(&cond, &mutex);
		}
		pthread_mutex_unlock(&mutex);
	} else if (is_condition()) {
		mtx_lock(&c11);
		for (int seen = work; seen == work && !stop;) {
			struct timespec until = in_a_moment();
			if (is("c11-polling"))
				cnd_timedwait(&c11_cond, &c11, &until);
			else
				cnd_wait(&c11_cond, &c11);
		}
		mtx_unlock(&c11);
	} else if (is("futex-event")) {
		for (unsigned seen = event; seen == event && !stop;)
			futex_wait(&event, seen);
	} else if (is("semaphore")) {
		sem_wait(&semaphore);
	} else if (is("barrier")) {
		pthread_barrier_wait(&barrier);
	} else {
		lock(is("writer"));
		waited_us += now_us() - start;
		unlock();
		rest(300); /* so that the others have a chance */
		return;
	}
	waited_us += now_us() - start;
}

/* ---- */

/* The barrier needs all three to the end. */
static _Atomic int rounds_left;

static void *run(void *part)
{
	void (*function)(void) = part;
	for (int i = 0; is("barrier") ? i < rounds_left : !stop; i++)
		function();
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[3];
	long ms = count > 2 ? atol(arguments[2]) : 300;
	pthread_mutexattr_t attributes;
	kind = count > 1 ? arguments[1] : "mutex";
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, is("recursive")    ? PTHREAD_MUTEX_RECURSIVE
					       : is("errorcheck") ? PTHREAD_MUTEX_ERRORCHECK
								  : PTHREAD_MUTEX_NORMAL);
	pthread_mutex_init(&mutex, &attributes);
	pthread_barrier_init(&barrier, NULL, 3);
	sem_init(&semaphore, 0, (unsigned)is_semaphore_lock());
	mtx_init(&c11, mtx_timed);
	cnd_init(&c11_cond);
	rounds_left = (int)(ms / 4);
	pthread_create(&threads[0], NULL, run, guilty);
	pthread_create(&threads[1], NULL, run, innocent);
	pthread_create(&threads[2], NULL, run, victim);
	rest(ms * 1000);
	stop = 1;
	for (int i = 0; i < 3; i++) {
		if (i == 2) { /* nobody wakes it any more */
			pthread_mutex_lock(&mutex);
			pthread_cond_broadcast(&cond);
			pthread_mutex_unlock(&mutex);
			mtx_lock(&c11);
			cnd_broadcast(&c11_cond);
			mtx_unlock(&c11);
			sem_post(&semaphore);
			event++;
			futex_wake(&event, 1000);
		}
		pthread_join(threads[i], NULL);
	}
	printf("%ld\n", (long)waited_us);
	return 0;
}
