/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/paths/work.h"

/* NULL: it is time to end. */
static struct client *next_job(struct making *m)
{
	struct client *job = NULL;
	pthread_mutex_lock(&m->lock);
	while (!m->jobs && !m->end)
		pthread_cond_wait(&m->more, &m->lock);
	if (!m->end) {
		job = m->jobs;
		m->jobs = job->next_job;
	}
	pthread_mutex_unlock(&m->lock);
	return job;
}

static void finish_job(struct making *m, struct client *job)
{
	pthread_mutex_lock(&m->lock);
	job->next_job = m->done;
	m->done = job;
	pthread_mutex_unlock(&m->lock);
	eventfd_write(m->bell, 1);
}

static void *run(void *context)
{
	struct counting_work *work = context;
	struct client *job;
	while ((job = next_job(&work->making))) {
		if (client_waits(job))
			program_make(work, job->program);
		else
			job->program->problem = err_new("it ended before its beginning");
		finish_job(&work->making, job);
	}
	return NULL;
}

struct err *making_open(struct counting_work *work)
{
	struct making *m = &work->making;
	m->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->bell < 0)
		return err_errno("eventfd");
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->more, NULL);
	errno = pthread_create(&m->thread, NULL, run, work);
	m->started = !errno;
	return m->started ? NULL : err_errno("cannot start a thread");
}

void making_add(struct counting_work *work, struct client *client)
{
	struct making *m = &work->making;
	struct client **last = &m->jobs;
	pthread_mutex_lock(&m->lock);
	while (*last)
		last = &(*last)->next_job;
	client->next_job = NULL;
	*last = client;
	pthread_cond_signal(&m->more);
	pthread_mutex_unlock(&m->lock);
}

void making_take(struct counting_work *work)
{
	struct making *m = &work->making;
	eventfd_t count;
	eventfd_read(m->bell, &count);
	pthread_mutex_lock(&m->lock);
	struct client *done = m->done;
	m->done = NULL;
	pthread_mutex_unlock(&m->lock);
	while (done) {
		struct client *next = done->next_job;
		client_made(work, done);
		done = next;
	}
}

void making_close(struct counting_work *work)
{
	struct making *m = &work->making;
	if (m->started) {
		pthread_mutex_lock(&m->lock);
		m->end = true;
		pthread_cond_signal(&m->more);
		pthread_mutex_unlock(&m->lock);
		pthread_join(m->thread, NULL);
	}
	m->started = false;
	if (m->bell >= 0)
		close(m->bell);
	m->bell = -1;
	m->jobs = m->done = NULL;
}
