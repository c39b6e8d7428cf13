/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 64

struct job {
	atomic_size_t next;
	size_t count;
	void (*work)(void *context, size_t index);
	void *context;
};

static void *job_run(void *argument)
{
	struct job *job = argument;
	for (;;) {
		size_t index = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
		if (index >= job->count)
			return NULL;
		job->work(job->context, index);
	}
}

/* CULPRIT_THREADS overrides the number of CPUs, so that a test can have many threads on
   one CPU or one thread on many. */
static size_t thread_limit(void)
{
	const char *wish = getenv("CULPRIT_THREADS");
	long n = wish ? strtol(wish, NULL, 10) : 0;
	if (n <= 0)
		n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		n = 1;
	return n > THREADS_MAX ? THREADS_MAX : (size_t)n;
}

void parallel_for(size_t count, void (*work)(void *context, size_t index), void *context)
{
	struct job job = {.count = count, .work = work, .context = context};
	pthread_t helpers[THREADS_MAX];
	size_t wanted = thread_limit(), started = 0;
	sigset_t all, before;
	if (wanted > count)
		wanted = count;
	if (wanted > 1) {
		/* Signals stay the business of the thread that asked. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		while (started < wanted - 1 &&
		       pthread_create(&helpers[started], NULL, job_run, &job) == 0)
			started++;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	/* The caller works too: also the way to go where no thread could be started. */
	job_run(&job);
	for (size_t i = 0; i < started; i++)
		pthread_join(helpers[i], NULL);
}
