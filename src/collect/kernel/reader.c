/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empties the ring that the sampler writes to. A thread does that, so samples do not wait for whatever else
 * the collector is doing (tables are made, a profile is saved to a slow disk). The ring fills up only if
 * very much waits in memory. Then the sampler itself counts what is lost. The thread also watches the rings
 * of mapped.c, which tell what programs map.
 */
#include "collect/kernel/reader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/schedule.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/state.h"

#define BATCH (256u << 10)
#define HELD_MAX ((size_t)1 << 30) /* bytes that wait in memory */
/* The same for the whole machine, which may go on for weeks. */
#define HELD_WHOLE ((size_t)64 << 20)
/* Bytes that are read beyond a copy, if much waits already or may wait. */
#define MORE_LITTLE ((size_t)256 << 10)
#define MUCH ((size_t)128 << 20)
#define LOOK_MS 50 /* the sampler wakes us only for what is urgent */

static bool is_urgent(const struct kernel_reader *r, const struct kernel_head *head)
{
	return head->kind == KERNEL_COPY || head->kind == KERNEL_FAR ||
	       (head->kind == KERNEL_EXEC && !r->relaxed);
}

static void ring_bell(int fd)
{
	uint64_t one = 1;
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* Usually takes the batch that was read last. */
static struct kernel_batch *make_batch(struct kernel_reader *r, size_t size)
{
	size_t room = size > BATCH ? size : BATCH;
	struct kernel_batch *b = room == BATCH ? r->spare : NULL;
	if (b)
		r->spare = NULL;
	else
		b = malloc(sizeof *b + room);
	if (b)
		*b = (struct kernel_batch){.room = room};
	return b;
}

/* Returns room for this many bytes in the last batch; NULL: no memory. */
static uint64_t *make_room(struct kernel_reader *r, size_t size)
{
	struct kernel_batch *b = r->last;
	if (!b || b->room - b->used < size) {
		b = make_batch(r, size);
		if (!b)
			return NULL;
		if (r->last)
			r->last->next = b;
		else
			r->first = b;
		r->last = b;
		r->bytes += b->room;
	}
	uint64_t *at = b->bytes + b->used / sizeof *at;
	b->used += size;
	return at;
}

static size_t held(struct kernel_reader *r)
{
	pthread_mutex_lock(&r->lock);
	size_t bytes = r->bytes;
	pthread_mutex_unlock(&r->lock);
	return bytes;
}

static bool make_scratch(struct kernel_reader *r, size_t size)
{
	if (r->scratch_room >= size)
		return true;
	free(r->scratch);
	r->scratch = malloc(size);
	r->scratch_room = r->scratch ? size : 0;
	return r->scratch;
}

static bool is_incomplete(const void *data, size_t size)
{
	size_t before;
	const struct kernel_copy *s = copy_in(data, size, &before);
	bool holes = false;
	if (!s)
		return false;
	for (size_t i = 0; i < KERNEL_HOLES; i++)
		holes |= s->holes[i];
	return s->size && (holes || s->beyond);
}

/* Returns the record with those parts of the stack that the sampler could not copy. When the copy is
   walked, it may be too late to read them. */
static void *complete(struct kernel_reader *r, void *data, size_t *size)
{
	size_t before;
	const struct kernel_copy *from = copy_in(data, *size, &before);
	size_t room = r->relaxed || held(r) > MUCH ? MORE_LITTLE : COPY_MORE;
	if (before) /* other stacks are behind it, so it cannot grow */
		room = 0;
	else if (from->beyond < room)
		room = from->beyond;
	if (!make_scratch(r, *size + room))
		return data;
	memcpy(r->scratch, data, *size);
	struct kernel_copy *s = (void *)((char *)r->scratch + before);
	struct partial_stack stack = {
		(pid_t)s->head.process, s->head.time, s->address, s->size, s->holes,
		(uint8_t *)(s + 1)};
	copy_complete(&stack, room);
	uint64_t more = stack.size - s->size;
	s->beyond -= more;
	s->size += more;
	*size += more;
	return r->scratch;
}

int reader_hold(void *reader, void *data, size_t size)
{
	struct kernel_reader *r = reader;
	if (is_incomplete(data, size))
		data = complete(r, data, &size);
	size_t whole = (size + 7) / 8 * 8;
	pthread_mutex_lock(&r->lock);
	uint64_t *at = make_room(r, whole + sizeof *at);
	if (at) {
		*at = size;
		memcpy(at + 1, data, size);
	}
	r->missed += !at;
	bool full = !at || r->bytes >= r->bytes_max;
	pthread_mutex_unlock(&r->lock);
	if (at && size >= sizeof(struct kernel_head) && is_urgent(r, data))
		ring_bell(r->urgent);
	return full ? -ENOMEM : 0;
}

static bool is_full(struct kernel_reader *r)
{
	return held(r) >= r->bytes_max;
}

/* A record is out of the ring whatever reader_hold returns. So nothing is read if there is no room. */
void reader_sync(struct kernel *k)
{
	pthread_mutex_lock(&k->reader.reading);
	if (!is_full(&k->reader))
		ring_buffer__consume(k->reader.ring);
	pthread_mutex_unlock(&k->reader.reading);
}

static void *read_ring(void *context)
{
	struct kernel *k = context;
	schedule_soon(); /* missing parts of a stack can be read only while its program runs */
	struct pollfd ready[] = {{k->reader.wake, POLLIN, 0},
				 {ring_buffer__epoll_fd(k->reader.ring), POLLIN, 0}};
	while (!atomic_load(&k->reader.stop)) {
		poll(ready, is_full(&k->reader) ? 1 : 2, LOOK_MS);
		reader_sync(k);
		mapped_hold(k);
	}
	return NULL;
}

struct err *reader_open(struct kernel *k)
{
	struct kernel_reader *r = &k->reader;
	sigset_t all, before;
	int failed;
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->reading, NULL);
	r->bytes_max = k->whole ? HELD_WHOLE : HELD_MAX;
	r->relaxed = k->whole;
	r->urgent = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->reader.ring = ring_buffer__new(bpf_object__find_map_fd_by_name(k->object, "ring"),
					  reader_hold, r, NULL);
	if (r->urgent < 0 || r->wake < 0 || !k->reader.ring)
		return err_errno("cannot read from the sampler");
	struct epoll_event event = {.events = EPOLLIN};
	epoll_ctl(k->epoll, EPOLL_CTL_ADD, r->urgent, &event);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&r->thread, NULL, read_ring, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	r->running = !failed;
	return failed ? err_new("cannot make a thread: %s", strerror(failed)) : NULL;
}

static void stop(struct kernel *k)
{
	if (!k->reader.running)
		return;
	atomic_store(&k->reader.stop, true);
	ring_bell(k->reader.wake);
	pthread_join(k->reader.thread, NULL);
	k->reader.running = false;
}

void reader_flush(struct kernel *k)
{
	stop(k);
	k->reader.bytes_max = SIZE_MAX;
	ring_buffer__consume(k->reader.ring);
}

static void leave_batch(struct kernel_reader *r, struct kernel_batch *b)
{
	pthread_mutex_lock(&r->lock);
	if (b->room == BATCH && !r->spare) {
		r->spare = b;
		b = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	free(b);
}

bool reader_take(struct kernel *k, void (*take)(struct kernel *k, const void *data, size_t size))
{
	struct kernel_reader *r = &k->reader;
	uint64_t rung;
	while (read(r->urgent, &rung, sizeof rung) < 0 && errno == EINTR)
		;
	pthread_mutex_lock(&r->lock);
	struct kernel_batch *b = r->first;
	uint64_t missed = r->missed;
	r->first = r->last = NULL;
	r->bytes = r->missed = 0;
	pthread_mutex_unlock(&r->lock);
	while (b) {
		struct kernel_batch *next = b->next;
		for (size_t at = 0; at < b->used;) {
			const uint64_t *record = b->bytes + at / sizeof *record;
			take(k, record + 1, *record);
			at += (*record + 7) / 8 * 8 + sizeof *record;
		}
		leave_batch(r, b);
		b = next;
	}
	k->unusable += missed;
	return !missed;
}

static void drop(struct kernel *k, const void *data, size_t size)
{
	(void)k;
	(void)data;
	(void)size;
}

void reader_close(struct kernel *k)
{
	stop(k);
	ring_buffer__free(k->reader.ring);
	if (k->reader.urgent >= 0) {
		reader_take(k, drop);
		close(k->reader.urgent);
	}
	free(k->reader.spare);
	free(k->reader.scratch);
	if (k->reader.wake >= 0)
		close(k->reader.wake);
}
