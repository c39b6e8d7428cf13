/* SPDX-License-Identifier: Apache-2.0 */
#include "live/worker.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "profile/profile.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int ready; /* an eventfd */
	/* under the lock */
	bool stop, works, changed;
	struct profile *profile; /* to be taken */
	bool fresh;
	struct board_wish wish;
	struct board *board; /* to be fetched */
	struct err *problem;
	/* the thread's own */
	struct board_maker *maker;
	bool has_profile, detailed; /* inlined functions were looked for already */
};

static void publish(struct worker *w, struct board *board, struct err *problem)
{
	const uint64_t one = 1;
	pthread_mutex_lock(&w->lock);
	board_free(w->board);
	err_free(w->problem);
	w->board = board;
	w->problem = problem;
	pthread_mutex_unlock(&w->lock);
	if (write(w->ready, &one, sizeof one) < 0)
		return; /* it is readable already */
}

/* The first time, names come first; what takes longer follows. */
static void work(struct worker *w, struct profile *profile, bool fresh, struct board_wish wish)
{
	struct board *board = NULL;
	struct err *e = profile ? board_maker_take(w->maker, profile, fresh) : NULL;
	w->has_profile |= profile != NULL;
	if (!e && !w->has_profile)
		return;
	if (!e && wish.by == BOARD_FUNCTION && !w->detailed) {
		e = board_make(w->maker, &wish, true, &board);
		if (!e)
			publish(w, board, NULL);
		board = NULL;
	}
	if (!e)
		e = board_make(w->maker, &wish, false, &board);
	w->detailed |= wish.by == BOARD_FUNCTION;
	publish(w, board, e);
}

static void *run(void *context)
{
	struct worker *w = context;
	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		if (!w->profile && !w->changed) {
			w->works = false;
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		struct profile *profile = w->profile;
		struct board_wish wish = w->wish;
		bool fresh = w->fresh;
		w->profile = NULL;
		w->changed = w->fresh = false;
		pthread_mutex_unlock(&w->lock);
		work(w, profile, fresh, wish);
		pthread_mutex_lock(&w->lock);
	}
	w->works = false;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct err *worker_start(struct worker **out)
{
	struct worker *w = calloc(1, sizeof *w);
	*out = NULL;
	struct err *e = w ? board_maker_new(&w->maker) : err_new("out of memory");
	if (e) {
		free(w);
		return e;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->ready < 0 || pthread_create(&w->thread, NULL, run, w)) {
		e = err_errno("cannot start a thread");
		board_maker_free(w->maker);
		free(w);
		return e;
	}
	*out = w;
	return NULL;
}

bool worker_stop(struct worker *w)
{
	if (!w)
		return true;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	bool works = w->works;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (works)
		return false;
	pthread_join(w->thread, NULL);
	close(w->ready);
	board_free(w->board);
	err_free(w->problem);
	profile_free(w->profile);
	board_maker_free(w->maker);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
	return true;
}

int worker_fd(const struct worker *w)
{
	return w->ready;
}

/* The lock is held. */
static void awake(struct worker *w)
{
	w->works = true;
	pthread_cond_signal(&w->wake);
}

void worker_give(struct worker *w, struct profile *profile, bool fresh)
{
	pthread_mutex_lock(&w->lock);
	profile_free(w->profile);
	w->profile = profile;
	w->fresh |= fresh;
	awake(w);
	pthread_mutex_unlock(&w->lock);
}

void worker_wish(struct worker *w, const struct board_wish *wish)
{
	pthread_mutex_lock(&w->lock);
	w->wish = *wish;
	w->changed = true;
	awake(w);
	pthread_mutex_unlock(&w->lock);
}

struct board *worker_board(struct worker *w, struct err **problem)
{
	uint64_t count;
	if (read(w->ready, &count, sizeof count) < 0)
		count = 0;
	pthread_mutex_lock(&w->lock);
	struct board *board = w->board;
	*problem = w->problem;
	w->board = NULL;
	w->problem = NULL;
	pthread_mutex_unlock(&w->lock);
	return board;
}

bool worker_busy(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	bool busy = w->works;
	pthread_mutex_unlock(&w->lock);
	return busy;
}
