/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/sample_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/schedule.h"
#include "collect/tally.h"
#include "harvest/mark.h"
#include "process/registers.h"

#define COPY_MAX ((size_t)16 << 10) /* bytes of a stack that the kernel copies */
#define COPIES_MIN 8u               /* copies that a ring has room for */
#define RECORD_MAX (64u << 10)
#define BEYOND_MAX (480u << 10) /* bytes of a stack that are read later */
/* The upper end of a stack may be this far above what its thread says. */
#define TOP_UNSURE (64u << 10)
#define KEPT_MAX ((size_t)256 << 20) /* bytes of all copies that wait */
#define PAUSE_NS 500000              /* between two rounds, so that a round finds several samples */

/* A ring. `first` is the list of copies that were read from it. */
struct sample_ring {
	struct sample_ring *next;
	int event;
	pid_t tid;
	size_t size;
	struct perf_event_mmap_page *head;
	const uint8_t *data;
	uint64_t stack_top; /* 0: not known yet */
	struct ring_copy *first, **last;
	uint64_t lost;
};

struct sample_rings {
	int epoll, come, wake; /* come: wakes the main thread; wake: the reader */
	_Atomic bool stop;
	bool reading, kernel_frames;
	pthread_t reader;
	pthread_mutex_t lock; /* for what follows, and the lists of rings */
	struct sample_ring *rings;
	size_t kept;
	/* Buffers: for one record of a ring, and for the rest of a stack. */
	struct record *record;
	uint8_t *beyond;
};

/* A record, as sample_ring_ask wants it. */
struct record {
	struct perf_event_header header;
	uint64_t id, ns;
	struct tally_reading reading;
	uint64_t words[];
	/* if `kernel_frames`: uint64_t count, frames[count];
	   uint64_t abi, registers[]; uint64_t size; uint8_t stack[size]; uint64_t copied */
};

void sample_ring_ask(struct perf_event_attr *attr, size_t size, bool kernel_frames)
{
	attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
			    PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	if (kernel_frames) {
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr->exclude_callchain_user = 1;
		attr->sample_max_stack = RING_KERNEL_FRAMES;
	}
	attr->sample_regs_user = registers_perf_mask;
	attr->sample_stack_user = (uint32_t)(size / COPIES_MIN < COPY_MAX ? size / COPIES_MIN
									  : COPY_MAX);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->wakeup_events = 1;
}

/* ---- from the ring to the list ---- */

/* Reads the part of the stack above the copy, up to its upper end, into all->beyond. Returns the number
   of bytes. */
static size_t read_beyond(struct sample_rings *all, const struct sample_ring *ring,
			  const struct ring_copy *copy, const uint8_t *stack)
{
	uint64_t end = copy->address + copy->size, room = BEYOND_MAX;
	struct mark mark;
	if (ring->stack_top && ring->stack_top + TOP_UNSURE - end < room)
		room = ring->stack_top + TOP_UNSURE - end;
	mark_make(&mark, copy->address, stack, copy->size);
	return mark_read(&mark, ring->tid, copy->ns, end, all->beyond, room);
}

static void add_copy(struct sample_rings *all, struct sample_ring *ring,
		     const struct ring_copy *head, const uint8_t *stack, size_t beyond)
{
	size_t size = sizeof *head + head->size + beyond;
	struct ring_copy *copy = all->kept + size <= KEPT_MAX ? malloc(size) : NULL;
	if (!copy) {
		ring->lost++;
		return;
	}
	*copy = *head;
	memcpy(copy->stack, stack, head->size);
	memcpy(copy->stack + head->size, all->beyond, beyond);
	copy->size += beyond;
	all->kept += size;
	*ring->last = copy;
	ring->last = &copy->next;
}

/* Takes the frames of the kernel, if there are some. Returns what follows in the record. */
static const uint64_t *take_kernel_frames(const struct sample_rings *all, const struct record *r,
					  struct ring_copy *out)
{
	const uint64_t *at = r->words;
	if (!all->kernel_frames)
		return at;
	for (uint64_t count = *at++; count; count--, at++) {
		bool mark = *at >= PERF_CONTEXT_MAX; /* stands between kinds of frames */
		if (!mark && out->kernel_frame_count < RING_KERNEL_FRAMES)
			out->kernel_frames[out->kernel_frame_count++] = *at;
	}
	return at;
}

static void take_sample(struct sample_rings *all, struct sample_ring *ring, const struct record *r)
{
	struct ring_copy head = {.id = r->id, .count = r->reading.count, .ns = r->ns};
	const uint64_t *abi = take_kernel_frames(all, r, &head), *registers = abi + 1;
	const uint64_t *size = registers + registers_perf_count;
	/* There is no program any more, or not yet. */
	if (*abi != PERF_SAMPLE_REGS_ABI_64 || !*size)
		return;
	const uint64_t *words = size + 1, copied = words[*size / sizeof *words];
	if (!copied || copied > *size)
		return;
	registers_from_perf(registers, head.registers, &head.pc);
	head.address = head.registers[unwind_cpu_for(native_machine)->sp];
	head.size = head.copied = copied / sizeof *words * sizeof *words;
	head.cut = copied == *size || head.address + head.size < ring->stack_top;
	const uint8_t *stack = (const uint8_t *)words;
	add_copy(all, ring, &head, stack, head.cut ? read_beyond(all, ring, &head, stack) : 0);
}

static void take_record(struct sample_rings *all, struct sample_ring *ring, const struct record *r)
{
	struct {
		struct perf_event_header header;
		uint64_t id, count;
	} const *lost = (const void *)r;
	if (r->header.type == PERF_RECORD_SAMPLE)
		take_sample(all, ring, r);
	else if (r->header.type == PERF_RECORD_LOST)
		ring->lost += lost->count;
}

static void read_ring(const struct sample_ring *ring, uint64_t from, void *to, size_t size)
{
	size_t at = (size_t)from & (ring->size - 1), part = ring->size - at;
	if (part > size)
		part = size;
	memcpy(to, ring->data + at, part);
	memcpy((uint8_t *)to + part, ring->data, size - part);
}

/* Reads all records of a ring; the caller holds the lock. Returns whether there were any. */
static bool empty_ring(struct sample_rings *all, struct sample_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE),
		 tail = ring->head->data_tail;
	bool any = tail != head;
	while (tail < head) {
		struct perf_event_header header;
		read_ring(ring, tail, &header, sizeof header);
		if (header.size < sizeof header)
			break;
		read_ring(ring, tail, all->record, header.size);
		take_record(all, ring, all->record);
		tail += header.size;
		__atomic_store_n(&ring->head->data_tail, tail, __ATOMIC_RELEASE);
	}
	return any;
}

/* ---- the reader thread ---- */

static void read_all(struct sample_rings *all)
{
	const uint64_t one = 1;
	bool any = false;
	pthread_mutex_lock(&all->lock);
	for (struct sample_ring *ring = all->rings; ring; ring = ring->next)
		any |= empty_ring(all, ring);
	pthread_mutex_unlock(&all->lock);
	while (any && write(all->come, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* A ring reports only once that it has something, and may be closed before we know which one it was. So
   all rings are looked at. */
static void *read_rings(void *context)
{
	struct sample_rings *all = context;
	const struct timespec pause = {0, PAUSE_NS};
	struct epoll_event ready;
	schedule_soon();
	while (!atomic_load(&all->stop)) {
		if (epoll_wait(all->epoll, &ready, 1, -1) < 0 && errno != EINTR)
			break;
		read_all(all);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static struct err *start(struct sample_rings *all)
{
	struct epoll_event wake = {.events = EPOLLIN};
	sigset_t every, before;
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	all->come = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->record = malloc(RECORD_MAX);
	all->beyond = malloc(BEYOND_MAX);
	if (!all->record || !all->beyond)
		return err_new("out of memory");
	if (all->epoll < 0 || all->come < 0 || all->wake < 0 ||
	    epoll_ctl(all->epoll, EPOLL_CTL_ADD, all->wake, &wake))
		return err_errno("cannot watch descriptors");
	sigfillset(&every); /* signals are for the main thread */
	pthread_sigmask(SIG_SETMASK, &every, &before);
	int error = pthread_create(&all->reader, NULL, read_rings, all);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	all->reading = !error;
	errno = error;
	return error ? err_errno("cannot start a thread") : NULL;
}

struct err *sample_rings_open(bool kernel_frames, struct sample_rings **out)
{
	struct sample_rings *all = calloc(1, sizeof *all);
	if (!all)
		return err_new("out of memory");
	all->kernel_frames = kernel_frames;
	all->epoll = all->come = all->wake = -1;
	pthread_mutex_init(&all->lock, NULL);
	struct err *e = start(all);
	if (e) {
		sample_rings_close(all);
		return e;
	}
	*out = all;
	return NULL;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void sample_rings_close(struct sample_rings *all)
{
	const uint64_t one = 1;
	if (!all)
		return;
	if (all->reading) {
		atomic_store(&all->stop, true);
		while (write(all->wake, &one, sizeof one) < 0 && errno == EINTR)
			;
		pthread_join(all->reader, NULL);
	}
	close_one(all->epoll);
	close_one(all->come);
	close_one(all->wake);
	pthread_mutex_destroy(&all->lock);
	free(all->record);
	free(all->beyond);
	free(all);
}

int sample_rings_fd(const struct sample_rings *all)
{
	return all->come;
}

void sample_rings_hear(const struct sample_rings *all)
{
	uint64_t count;
	while (read(all->come, &count, sizeof count) < 0 && errno == EINTR)
		;
}

/* ---- one ring ---- */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

struct sample_ring *sample_ring_open(struct sample_rings *all, int event, pid_t tid, size_t size)
{
	/* edge-triggered: a ring whose thread has ended would be ready all the time */
	struct epoll_event wake = {.events = EPOLLIN | EPOLLET};
	struct sample_ring *ring = calloc(1, sizeof *ring);
	if (!ring)
		return NULL;
	*ring = (struct sample_ring){.event = event, .tid = tid, .size = size};
	ring->last = &ring->first;
	void *memory = mmap(NULL, page_size() + size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (memory == MAP_FAILED) {
		free(ring);
		return NULL;
	}
	ring->head = memory;
	ring->data = (const uint8_t *)memory + page_size();
	/* If this fails, the ring is read when others are. */
	epoll_ctl(all->epoll, EPOLL_CTL_ADD, event, &wake);
	pthread_mutex_lock(&all->lock);
	ring->next = all->rings;
	all->rings = ring;
	pthread_mutex_unlock(&all->lock);
	return ring;
}

void sample_ring_know(struct sample_rings *all, struct sample_ring *ring, uint64_t stack_top)
{
	pthread_mutex_lock(&all->lock);
	ring->stack_top = stack_top;
	pthread_mutex_unlock(&all->lock);
}

struct ring_copy *sample_ring_take(struct sample_rings *all, struct sample_ring *ring,
				   uint64_t *lost)
{
	pthread_mutex_lock(&all->lock);
	empty_ring(all, ring);
	struct ring_copy *first = ring->first;
	for (const struct ring_copy *copy = first; copy; copy = copy->next)
		all->kept -= sizeof *copy + copy->size;
	ring->first = NULL;
	ring->last = &ring->first;
	*lost = ring->lost;
	ring->lost = 0;
	pthread_mutex_unlock(&all->lock);
	return first;
}

void sample_ring_close(struct sample_rings *all, struct sample_ring *ring)
{
	uint64_t lost;
	struct sample_ring **link = &all->rings;
	for (struct ring_copy *copy = sample_ring_take(all, ring, &lost), *next; copy;
	     copy = next) {
		next = copy->next;
		free(copy);
	}
	pthread_mutex_lock(&all->lock);
	while (*link != ring)
		link = &(*link)->next;
	*link = ring->next;
	pthread_mutex_unlock(&all->lock);
	epoll_ctl(all->epoll, EPOLL_CTL_DEL, ring->event, NULL);
	munmap(ring->head, page_size() + ring->size);
	free(ring);
}
