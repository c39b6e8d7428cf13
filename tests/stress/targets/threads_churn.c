/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand threads in waves: joined and detached, short and long, on the smallest stacks that
   there are, and some that the C library does not know. */
#include "stress.h"
#include <limits.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAVE = 50, RAW_STACK = 16384 };
static _Atomic uint64_t sum;
static _Atomic int ended, stop;

static void *small_work(void *units)
{
	atomic_fetch_add(&sum, burn((unsigned)(uintptr_t)units) & 0xffff);
	atomic_fetch_add(&ended, 1);
	return units;
}

static void *long_work(void *unused)
{
	uint64_t rounds = 0;
	while (!atomic_load(&stop)) {
		burn(1);
		rounds++;
		if (rounds % 8 == 0)
			usleep(100);
	}
	(void)unused;
	return NULL;
}

static int raw_work(void *done)
{
	atomic_fetch_add(&sum, burn(5) & 0xffff);
	atomic_store((_Atomic int *)done, 1);
	for (;;) /* no exit through the C library, whose thread this is not */
		syscall(SYS_exit, 0);
}

static void run_raw(void)
{
	_Atomic int done = 0;
	pid_t tid = 1;
	char *stack = mmap(NULL, RAW_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	must(stack != MAP_FAILED, "mmap");
	must(clone(raw_work, stack + RAW_STACK, flags, (void *)&done, &tid, NULL, &tid) > 0,
	     "clone");
	while (!atomic_load(&done) || *(volatile pid_t *)&tid != 0)
		usleep(50);
	munmap(stack, RAW_STACK);
}

static void start(pthread_t *thread, int i)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	if (i % 2)
		must(!pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN), "stack size");
	if (i % 3 == 0)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	must(!pthread_create(thread, &attr, small_work, (void *)(uintptr_t)(i % 7 == 0 ? 20 : 1)),
	     "pthread_create");
	pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
	int waves = scaled(argc, argv, 20);
	pthread_t longs[4], threads[WAVE];
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&longs[i], NULL, long_work, NULL), "pthread_create");
	for (int wave = 0; wave < waves; wave++) {
		for (int i = 0; i < WAVE; i++)
			start(&threads[i], i);
		run_raw();
		for (int i = 0; i < WAVE; i++)
			if (i % 3)
				must(!pthread_join(threads[i], NULL), "pthread_join");
		while (atomic_load(&ended) < (wave + 1) * WAVE)
			usleep(100);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(longs[i], NULL);
	printf("%d threads ended, sum %llu\n", ended, (unsigned long long)sum);
	return 0;
}
