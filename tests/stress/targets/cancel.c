/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are cancelled: deferred, at any instruction, in a sleep; threads that leave by
   pthread_exit from deep. */
#include "stress.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int cleaned, started, destroyed;
static pthread_key_t key;

static void clean(void *unused)
{
	burn(1);
	atomic_fetch_add(&cleaned, 1);
	(void)unused;
}

static void destroy(void *unused)
{
	atomic_fetch_add(&destroyed, 1);
	(void)unused;
}

static void ready(void)
{
	pthread_setspecific(key, &key);
	atomic_fetch_add(&started, 1);
}

static void *deferred(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	ready();
	for (;;) {
		burn(1);
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return unused;
}

static void *asynchronous(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	ready();
	for (;;)
		burn(1);
	pthread_cleanup_pop(0);
	return unused;
}

static void *sleeping(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	ready();
	for (;;)
		usleep(1000000);
	pthread_cleanup_pop(0);
	return unused;
}

static __attribute__((noinline)) int leave(int depth)
{
	int result = 0;
	pthread_cleanup_push(clean, NULL);
	if (depth == 0)
		pthread_exit((void *)42);
	burn(1);
	result = leave(depth - 1) + 1;
	pthread_cleanup_pop(0);
	return result;
}

static void *deep(void *unused)
{
	ready();
	leave(10);
	return unused;
}

int main(int argc, char **argv)
{
	static void *(*const kinds[])(void *) = {deferred, asynchronous, sleeping, deep};
	int rounds = scaled(argc, argv, 150), cancelled = 0, left = 0;
	pthread_key_create(&key, destroy);
	for (int round = 0; round < rounds; round++) {
		pthread_t threads[4];
		void *result;
		for (int i = 0; i < 4; i++)
			must(!pthread_create(&threads[i], NULL, kinds[i], NULL), "pthread_create");
		while (atomic_load(&started) < 4 * (round + 1))
			usleep(50);
		burn(1 + (unsigned)round % 8);
		for (int i = 0; i < 3; i++)
			pthread_cancel(threads[i]);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], &result);
			cancelled += result == PTHREAD_CANCELED;
			left += result == (void *)42;
		}
	}
	printf("cancelled %d, left %d, cleaned %d, destroyed %d\n", cancelled, left, cleaned,
	       destroyed);
	return 0;
}
